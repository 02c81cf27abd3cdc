// fairlead_differential: Fairlead's plugins against kube-scheduler's, on random clusters.
//
//   fairlead_differential worlds SEED PAIRS      prints worlds, a line each, with at least so many
//                                                pairs of a pod and a node
//   fairlead_differential compare WORLDS ANSWERS compares with the oracle's answers to that file;
//                                                last lines: "N choices of devices compared",
//                                                "N choices of victims compared", "N scores
//                                                compared", "N pairs, N differences"
//
// scripts/differential.sh runs both, and the oracle between them. Exit code 1 if anything differs
// or nothing was compared, 2 for arguments that make no sense.
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "tests/differential/judge.h"
#include "tests/differential/judge_devices.h"
#include "tests/differential/random_devices.h"
#include "tests/differential/random_world.h"

namespace fairlead::differential {
namespace {

constexpr int kNodes = 12;
constexpr int kAsked = 24;
constexpr size_t kMaxPrinted = 20;

int PrintWorlds(uint64_t seed, int64_t pairs) {
  for (uint64_t number = 0; pairs > 0; ++number, pairs -= kNodes * kAsked) {
    // A world of its own seed can be made again without those before it.
    std::cout << RandomWorld(seed * 1'000'003 + number).Make(kNodes, kAsked).dump() << "\n";
    const Json devices = {{"devices", RandomDevices(seed * 1'000'033 + number).Make()}};
    std::cout << devices.dump() << "\n";
  }
  return 0;
}

int CompareFiles(const std::string& worlds_path, const std::string& answers_path) {
  std::ifstream worlds(worlds_path);
  std::ifstream answers(answers_path);
  std::string world_line;
  std::string answer_line;
  int64_t pairs = 0;
  int64_t scores = 0;
  int64_t preemptions = 0;
  int64_t known_faults = 0;
  DeviceComparison devices;
  size_t differences = 0;
  int64_t number = 0;
  const auto tell = [&](absl::string_view difference) {
    if (++differences <= kMaxPrinted) {
      std::cout << "world " << number << ": " << difference << "\n";
    }
  };
  while (std::getline(worlds, world_line)) {
    ++number;
    const Json world = Json::parse(world_line);
    const Json theirs = std::getline(answers, answer_line) ? Json::parse(answer_line) : Json();
    if (world.contains("devices")) {
      const absl::StatusOr<DeviceComparison> found = CompareDevices(
          world["devices"], theirs.is_object() ? theirs.value("devices", Json()) : Json());
      if (!found.ok()) {
        tell(found.status().message());
        continue;
      }
      devices.pairs += found->pairs;
      devices.found += found->found;
      devices.given_up += found->given_up;
      devices.same_alternatives += found->same_alternatives;
      devices.better_alternatives += found->better_alternatives;
      for (const std::string& difference : found->differences) tell(difference);
      continue;
    }
    const absl::StatusOr<Comparison> comparison = Compare(world, theirs);
    if (!comparison.ok()) {
      tell(comparison.status().message());
      continue;
    }
    pairs += comparison->pairs;
    scores += comparison->scores;
    preemptions += comparison->preemptions;
    known_faults += comparison->known_faults;
    for (const std::string& difference : comparison->differences) tell(difference);
  }
  if (differences > kMaxPrinted) std::cout << "(" << kMaxPrinted << " of them printed)\n";
  if (known_faults > 0) {
    std::cout << known_faults << " answers differ by the fault of kube-scheduler's that "
              << "docs/compatibility.md names\n";
  }
  if (pairs == 0) std::cout << "no pair of " << worlds_path << " was compared\n";
  if (scores == 0) std::cout << "no score was compared\n";
  if (preemptions == 0) std::cout << "no eviction was compared\n";
  if (devices.found == 0) std::cout << "no devices were found\n";
  std::cout << devices.pairs - devices.given_up << " choices of devices compared (" << devices.found
            << " found; " << devices.given_up << " that kube-scheduler gives up left out)\n";
  std::cout << devices.same_alternatives + devices.better_alternatives
            << " choices of alternatives compared (" << devices.better_alternatives
            << " are better here)\n";
  std::cout << preemptions << " choices of victims compared\n";
  std::cout << scores << " scores compared\n";
  std::cout << pairs << " pairs, " << differences << " differences\n";
  const bool compared = pairs > 0 && scores > 0 && preemptions > 0 && devices.found > 0 &&
                        devices.same_alternatives > 0;
  return differences == 0 && compared ? 0 : 1;
}

int Main(const std::vector<std::string>& args) {
  uint64_t seed = 0;
  int64_t pairs = 0;
  if (args.size() == 3 && args[0] == "worlds" && absl::SimpleAtoi(args[1], &seed) &&
      absl::SimpleAtoi(args[2], &pairs) && pairs > 0) {
    return PrintWorlds(seed, pairs);
  }
  if (args.size() == 3 && args[0] == "compare") return CompareFiles(args[1], args[2]);
  std::cerr << "usage: fairlead_differential worlds SEED PAIRS | compare WORLDS ANSWERS\n";
  return 2;
}

}  // namespace
}  // namespace fairlead::differential

int main(int argc, char** argv) {
  return fairlead::differential::Main(std::vector<std::string>(argv + 1, argv + argc));
}
