// fairlead-simtest: the command line. Thread-safety: none.
#pragma once

namespace fairlead::simtest {

// 0: every seed held; 1: one did not; 2: wrong usage.
int RunCommand(int argc, char** argv);

}  // namespace fairlead::simtest
