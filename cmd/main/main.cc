// Fairlead's own program: the command line with the built-in plugins.
#include "cmd/main/command_line.h"

#ifdef FAIRLEAD_PROFILER
#include "cmd/main/gperftools.h"
#else
namespace fairlead::cmd {
// Sanitizers have signal handlers and an allocator of their own.
static Profiler GperftoolsProfiler() { return {}; }
}  // namespace fairlead::cmd
#endif

int main(int argc, char** argv) {
  return fairlead::cmd::Main(argc, argv, {}, fairlead::cmd::GperftoolsProfiler());
}
