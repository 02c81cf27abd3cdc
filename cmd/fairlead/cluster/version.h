// The version of the program, from the build.
#pragma once

namespace fairlead::cmd {

#ifdef FAIRLEAD_VERSION
inline constexpr char kVersion[] = FAIRLEAD_VERSION;
#else
inline constexpr char kVersion[] = "0.0.0-dev";
#endif

}  // namespace fairlead::cmd
