#include "sim/world/plan_guests.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "sim/faults.h"
#include "sim/world/facts.h"

namespace fairlead::sim::world {
namespace {

constexpr uint64_t kDice = 0x6775657374;

// Guests get no shares of GPUs, and their scheduler allocates devices and volumes itself.
constexpr absl::string_view kPlain[] = {"name", "ns",     "queue",    "pods",  "gpu",
                                        "cpu",  "memory", "grouping", "min",   "class",
                                        "run",  "kind",   "class_in", "gap_ms"};

bool IsPlain(const Operation& job) {
  return std::all_of(job.arguments.begin(), job.arguments.end(), [](const auto& argument) {
    return std::find(std::begin(kPlain), std::end(kPlain), argument.first) != std::end(kPlain);
  });
}

}  // namespace

bool DrawsGuests(uint64_t seed) { return seed % 6 == 5; }

void AddGuests(uint64_t seed, Plan& plan) {
  Random random(seed ^ kDice);
  for (Operation& operation : plan.operations) {
    // Corners go by the clock, which guests would put out of step.
    const bool corner = absl::StartsWith(operation.Text("name"), "corner");
    if (operation.verb != "job" || corner || !IsPlain(operation) || random.Below(3) == 0) continue;
    operation.With("scheduler", kGuestScheduler);
  }
  // No die: the worlds stay as they were but for this.
  if (seed / 6 % 2 == 0) {
    Operation reserve;
    reserve.at_ms = 0;
    reserve.verb = "guests-reserve";
    plan.operations.insert(plan.operations.begin(), std::move(reserve));
  }
  if (random.Below(2) == 0) return;
  Operation unreliable;
  unreliable.at_ms = 0;
  unreliable.verb = "guests-unreliable";
  unreliable.With("until_ms", random.Between(plan.end_ms / 2, plan.end_ms));
  plan.operations.insert(plan.operations.begin(), std::move(unreliable));
}

bool HasGuests(const Plan& plan) {
  return std::any_of(plan.operations.begin(), plan.operations.end(), [](const Operation& each) {
    return each.Text("scheduler") == kGuestScheduler;
  });
}

}  // namespace fairlead::sim::world
