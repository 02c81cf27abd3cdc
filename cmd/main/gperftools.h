// The profiler of Fairlead's own program: gperftools. Not part of the library, so that programs
// with plugins of their own need not link it.
//
// Thread-safety: one call at a time.
#pragma once

#include "cmd/fairlead/run/profiles.h"

namespace fairlead::cmd {

Profiler GperftoolsProfiler();

}  // namespace fairlead::cmd
