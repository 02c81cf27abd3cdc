// The two commands of fairlead-replay. Arguments are those after the command's name; the result is
// the exit code: 0 done, 1 failed, 2 wrong flags.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace fairlead::replay {

extern const char kOpenbUsage[];
extern const char kPhillyUsage[];

int OpenbCommand(const std::vector<std::string>& args);
int PhillyCommand(const std::vector<std::string>& args);

// Prints the error, with the usage after it if there is one; returns 0, 1 or 2.
int ExitCode(const absl::Status& status, const char* usage);

}  // namespace fairlead::replay
