// fairlead-replay: runs published traces through the scheduler and compares with published results.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/replay/commands.h"

namespace fairlead::replay {

int ExitCode(const absl::Status& status, const char* usage) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "fairlead-replay: %s\n%s", std::string(status.message()).c_str(),
               usage != nullptr ? usage : "");
  return usage != nullptr ? 2 : 1;
}

}  // namespace fairlead::replay

namespace {
bool AsksForHelp(const std::string& arg) { return arg == "--help" || arg == "-h"; }
}  // namespace

int main(int argc, char** argv) {
  using namespace fairlead::replay;  // NOLINT(google-build-using-namespace)
  std::vector<std::string> args(argv + 1, argv + argc);
  const std::string name = args.empty() ? "" : args[0];
  if (!args.empty()) args.erase(args.begin());
  const std::string usage = name == "openb"    ? kOpenbUsage
                            : name == "philly" ? kPhillyUsage
                                               : absl::StrCat(kOpenbUsage, "\n", kPhillyUsage);
  if (AsksForHelp(name) || std::any_of(args.begin(), args.end(), AsksForHelp)) {
    std::fputs(usage.c_str(), stdout);
    return 0;
  }
  if (name == "openb") return OpenbCommand(args);
  if (name == "philly") return PhillyCommand(args);
  return ExitCode(absl::InvalidArgumentError("expected: openb FOLDER or philly FILE"),
                  usage.c_str());
}
