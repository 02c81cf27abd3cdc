// fairlead-head-to-head [SCENARIO]: the same work on one control plane after the other, with the
// programs of each side, and a table of what each bought. docs/head-to-head.md has the figures.
#include <cstdio>
#include <iostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tests/head-to-head/run.h"

namespace fairlead::head_to_head {
namespace {

constexpr int kSkipped = 77;

void PrintRow(const SideKind& side, const Scenario& scenario, const Figures& figures) {
  const std::string time =
      figures.all_ran == absl::InfiniteDuration() ? absl::StrCat("never (", figures.ran, " ran)")
      : scenario.may_run == 0                     ? "-"
                              : absl::StrFormat("%.1f s", absl::ToDoubleSeconds(figures.all_ran));
  const std::string types =
      absl::StrJoin(figures.types, ", ", [](std::string* out, const auto& type) {
        absl::StrAppend(out, type.second, " ", type.first);
      });
  const std::string cpu =
      absl::StrJoin(figures.cpu_seconds, ", ", [](std::string* out, const auto& program) {
        absl::StrAppendFormat(out, "%s %.1f", program.first, program.second);
      });
  std::cout << absl::StrFormat("| %s | %d%s | %d | %s | %d | %.4f | %s |\n", side.name,
                               figures.nodes, types.empty() ? "" : absl::StrCat(" (", types, ")"),
                               figures.nodes_without_pod, time, figures.nodes_left, figures.usd,
                               cpu)
            << std::flush;
}

int Main(const std::string& only) {
  const std::vector<Scenario> scenarios = Scenarios(only);
  if (scenarios.empty()) {
    std::cerr << "there is no scenario \"" << only << "\"; there are:";
    for (const Scenario& scenario : Scenarios("")) std::cerr << " " << scenario.name;
    std::cerr << "\n";
    return 2;
  }
  for (const Scenario& scenario : scenarios) {
    std::cout << "\n## " << scenario.name << "\n\n"
              << scenario.what << ".\n\n"
              << "| | nodes bought | of them never used | all ran after | nodes left | $ | CPU "
                 "seconds |\n| --- | --- | --- | --- | --- | --- | --- |\n";
    for (const SideKind& kind : SideKinds()) {
      std::string why_not;
      const std::unique_ptr<Side> side = Side::Start(kind, why_not);
      if (side == nullptr) {
        std::cerr << why_not << "\n";
        return kSkipped;
      }
      PrintRow(kind, scenario, RunScenario(*side, scenario));
    }
  }
  return 0;
}

}  // namespace
}  // namespace fairlead::head_to_head

int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  if (only == "--help" || argc > 2) {
    std::cout
        << "fairlead-head-to-head [SCENARIO]\n\nRuns each scenario, or the named one, on every "
           "side, and prints a table in Markdown.\nFAIRLEAD_CONTROL_PLANE names the control "
           "plane (scripts/control-plane.sh prints it).\n";
    return argc > 2 ? 2 : 0;
  }
  return fairlead::head_to_head::Main(only);
}
