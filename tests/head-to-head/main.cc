// fairlead-head-to-head [SCENARIO [SIDE]]: the same work on one control plane after the other, with
// the programs of each side, and a table of what each bought. docs/head-to-head.md has the figures.
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tests/head-to-head/run.h"

namespace fairlead::head_to_head {
namespace {

constexpr int kSkipped = 77;

std::string TimeText(absl::Duration time, int may_run, int count, const char* verb) {
  if (may_run == 0) return "-";
  if (time == absl::InfiniteDuration()) return absl::StrCat("never (", count, " ", verb, ")");
  return absl::StrFormat("%.1f s", absl::ToDoubleSeconds(time));
}

void PrintRow(const SideKind& side, const Scenario& scenario, const Figures& figures) {
  const std::string types =
      absl::StrJoin(figures.types, ", ", [](std::string* out, const auto& type) {
        absl::StrAppend(out, type.second, " ", type.first);
      });
  const std::string cpu =
      absl::StrJoin(figures.cpu_seconds, ", ", [](std::string* out, const auto& program) {
        absl::StrAppendFormat(out, "%s %.1f", program.first, program.second);
      });
  std::cout << absl::StrFormat(
                   "| %s | %d%s | %d | %s | %s | %d | %d | %.4f | %s |\n", side.name, figures.nodes,
                   types.empty() ? "" : absl::StrCat(" (", types, ")"), figures.nodes_without_pod,
                   TimeText(figures.all_ran, scenario.may_run, figures.ran, "ran"),
                   TimeText(figures.all_ended, scenario.may_run, figures.ended, "ended"),
                   figures.evictions, figures.nodes_left, figures.usd, cpu)
            << std::flush;
  if (scenario.may_run == 0) return;
  for (const std::string& pod : figures.not_ended) {
    std::cerr << side.name << ": not ended: " << pod << "\n";
  }
}

// How long the jobs waited, if they arrive one after the other.
void PrintWaits(const Scenario& scenario,
                const std::vector<std::pair<std::string, Figures>>& sides) {
  if (scenario.jobs.back().after_seconds == 0) return;
  std::cout << "\nFrom submission to running: the mean of the pods; of a gang, until its last pod "
               "ran.\n\n|";
  for (const Job& job : scenario.jobs) {
    std::cout << " | " << job.name << ", at " << job.after_seconds << " s";
  }
  std::cout << " |\n| ---";
  for (size_t i = 0; i < scenario.jobs.size(); ++i) std::cout << " | ---";
  std::cout << " |\n";
  for (const auto& [name, figures] : sides) {
    std::cout << "| " << name;
    for (const absl::Duration wait : figures.waits) {
      std::cout << " | "
                << (wait == absl::InfiniteDuration()
                        ? "never"
                        : absl::StrFormat("%.1f s", absl::ToDoubleSeconds(wait)));
    }
    std::cout << " |\n";
  }
}

// False: a side cannot be had here.
bool RunOnSides(const Scenario& scenario, const std::string& only) {
  std::cout << "\n## " << scenario.name << "\n\n"
            << scenario.what << ".\n\n"
            << "| | nodes bought | of them never used | all ran after | all ended after | pods "
               "evicted | nodes left | $ | CPU seconds |\n"
               "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  std::vector<std::pair<std::string, Figures>> sides;
  for (const SideKind& kind : SideKinds()) {
    if (!only.empty() && kind.name != only) continue;
    std::string why_not;
    const std::unique_ptr<Side> side = Side::Start(kind, scenario, why_not);
    if (side == nullptr) {
      std::cerr << why_not << "\n";
      return false;
    }
    sides.emplace_back(kind.name, RunScenario(*side, scenario));
    PrintRow(kind, scenario, sides.back().second);
  }
  PrintWaits(scenario, sides);
  return true;
}

int Main(const std::string& only_scenario, const std::string& only_side) {
  const std::vector<Scenario> scenarios = Scenarios(only_scenario);
  if (scenarios.empty()) {
    std::cerr << "there is no scenario \"" << only_scenario << "\"; there are:";
    for (const Scenario& scenario : Scenarios("")) std::cerr << " " << scenario.name;
    std::cerr << "\n";
    return 2;
  }
  if (!only_side.empty() &&
      absl::c_none_of(SideKinds(), [&](const SideKind& kind) { return kind.name == only_side; })) {
    std::cerr << "there is no side \"" << only_side << "\"; there are:\n";
    for (const SideKind& kind : SideKinds()) std::cerr << "  " << kind.name << "\n";
    return 2;
  }
  for (const Scenario& scenario : scenarios) {
    if (!RunOnSides(scenario, only_side)) return kSkipped;
  }
  return 0;
}

}  // namespace
}  // namespace fairlead::head_to_head

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "", side = argc > 2 ? argv[2] : "";
  if (scenario == "--help" || argc > 3) {
    std::cout
        << "fairlead-head-to-head [SCENARIO [SIDE]]\n\nRuns each scenario, or the named one, on "
           "every side or the named one, and prints a table in Markdown.\nFAIRLEAD_CONTROL_PLANE "
           "names the control plane (scripts/control-plane.sh prints it).\n";
    return argc > 3 ? 2 : 0;
  }
  return fairlead::head_to_head::Main(scenario, side);
}
