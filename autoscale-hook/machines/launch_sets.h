// When the machines of a set (launch_set.h) are ordered, and what becomes of the others if one of
// them cannot be had.
//
// Ordering. No machine of a set is ordered before the watch has shown the requests of all of them.
// So a provider gets the whole set in one call (providers/provider.h). A member that is not shown
// holds the others as long as its creation may have been carried out:
//   - at most kSetPatience, if the set is not atomic: then its members are ordered as they come;
//   - until launch_timeout, if it is atomic: then the set is given back, as one that cannot be had.
// A member is missing if its creation was refused, or if its request was deleted or cancelled
// before the order. The process that has created the set knows that at once. Another one waits
// kDoubtLasts for it: a write of the former leader may be on its way. Then an atomic set is given
// back, and the members of another set are ordered without the missing one.
//   A set of which a machine was ordered holds nothing: what is missing then was lost later.
//
// Giving back. If a machine of an atomic set fails (NodeRequest.status.failure), the others whose
// nodes have not registered become Draining, in the same step. They are not failures: their offers
// do not back off. A provider that orders sets in one operation refuses all alike; for every other
// one this ends what came of the part. Machines with a registered node stay: the next plan uses
// them, or they go as every unneeded node does.
//
// Alternatives. The offer that failed backs off, the pods of the gang are demand again, and the
// next step plans them for the offers that are left, the cheapest first, under the caps, limits and
// filters of that moment. That is another set. What is given back counts against the caps until its
// end is confirmed.
//
// Nothing here is remembered: all of it follows from the rows of the ledger.
//
// Thread-safety: none; lives for one Step.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "autoscale-hook/machines/machine_ledger.h"

namespace fairlead::hook {

struct MachineView;
struct StepContext;

// A thousand requests are written within two seconds, and machines boot for minutes.
inline constexpr absl::Duration kSetPatience = absl::Seconds(3);

class LaunchSets {
 public:
  LaunchSets() = default;
  // The sets that have members to be ordered. O(rows log sets).
  explicit LaunchSets(const MachineLedger& ledger);

  struct Turn {
    enum class Kind : uint8_t { kOrder, kWait, kGiveBack };
    Kind kind = Kind::kOrder;
    absl::Time until = absl::InfiniteFuture();  // of kWait: what is true then may be another
    std::string why = {};                       // of kGiveBack, for people
  };
  // Of a seen request in phase Pending. O(log sets).
  [[nodiscard]] Turn TurnOf(const Machine& machine, absl::Time now) const;

 private:
  struct Set {
    int64_t seen = 0, unseen = 0;  // members that may be ordered
    bool ordered = false;          // one of them was, or may have been
    bool created_here = true;      // all of them
    // When the first and the last of them were seen.
    absl::Time oldest = absl::InfiniteFuture(), youngest = absl::InfinitePast();
  };
  std::map<std::string, Set> sets_;  // by id
};

// The machine is told to go: its set cannot be had.
void GiveBack(MachineView& view, StepContext& context, const std::string& why);

// Gives back what atomic sets have beside a member that has failed. O(views).
void GiveBackFailedSets(StepContext& context);

}  // namespace fairlead::hook
