// The command line of every subcommand, for Fairlead's own program and for programs that bring
// plugins (docs/writing-a-plugin.md):
//
//   int main(int argc, char** argv) {
//     return fairlead::cmd::Main(argc, argv, {{MyPlugin::kName, MyPlugin::Make}});
//   }
//
// Thread-safety: once per process, by its first thread.
#pragma once

#include <vector>

#include "cmd/fairlead/run/profiles.h"
#include "scheduler/framework/framework.h"

namespace fairlead::cmd {

// Runs the command that the arguments name, and returns the exit code of the process: 0, 1 for a
// failure, 2 for a usage error. Prints errors to standard error. Ignores SIGPIPE from now on.
//
// Every command that reads a configuration knows the plugins `own` beside the built-in ones; a
// plugin runs if a profile enables it. A name that is taken is a usage error.
// `profiler`: of the program (--profile-bind-address).
int Main(int argc, char** argv, const std::vector<framework::NamedPlugin>& own = {},
         const Profiler& profiler = {});

}  // namespace fairlead::cmd
