// Replaces nodes that have pods by a cheaper one.
//
// A node whose pods may be moved, and find no room on other nodes (emptying.h), may be replaced by
// one machine that is cheaper and holds all of them. If no single node may, several together may,
// up to kMostTogether. The new machine is requested first; its NodeRequest names those that it
// replaces (NodeRequest::replaces). When its node is usable, the old nodes are emptied with all
// guards of emptying.h, and removed.
//
//   worth it   Pays(): what the lower price saves in `consolidation_horizon` is more than the
//              evictions cost, and the new machine while it boots; and the price falls by at least
//              kLeastSavingPercent. It was so at each look for the pool's consolidateAfter.
//   not again  A machine that replaced another one is not replaced before it has run for the
//              horizon. So pods are not moved over and over by prices that go up and down.
//   meanwhile  The new machine counts as needed (Machine::replacing), and against all caps, as the
//              old one does. Its node takes pods like any other: if workloads come for it, they may
//              have it, and the old node stays.
//   failure    The new machine fails, or its node is usable and the pods have no room there, or the
//              move is not permitted for kPatience: the old node stays, and is not tried again for
//              a pause that doubles. The new machine is given back at once unless something uses
//              it. Of two machines for one node, as two leaders may have requested them, one is
//              given back, and the old node waits for the other one.
//
// NodeRequests are all that is remembered: after a restart the new machine is found by them, and
// the rest is decided again. A pause is forgotten.
//
// Thread-safety: none. Complexity: O(machines that are not steady) per step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/time/time.h"
#include "autoscale-hook/machines/disruption_budgets.h"
#include "autoscale-hook/machines/emptying.h"
#include "autoscale-hook/machines/evacuation.h"
#include "autoscale-hook/machines/machine_ledger.h"
#include "autoscale-hook/machines/step_context.h"

namespace fairlead::hook {

// Prices in micro-dollars per hour, as a choice counts them (Offer::PriceOfChoice).
struct ReplacementPrices {
  int64_t old_price = 0, new_price = 0;
  absl::Duration boot;    // of the new machine: both are paid for
  absl::int128 lost = 0;  // of the evictions, in micro-dollars per hour times seconds

  // One of the old nodes. `lost_work`: Occupants.
  void Add(int64_t price_micro_usd_per_hour, absl::Duration lost_work);
};
bool Pays(const ReplacementPrices& prices, absl::Duration horizon);

class NodeReplacement {
 public:
  static constexpr int64_t kLeastSavingPercent = 10;
  // From the time when the new node is usable.
  static constexpr absl::Duration kPatience = absl::Minutes(10);
  // After the last pod has left the old node, until those that come in their stead are placed.
  static constexpr absl::Duration kArrival = absl::Minutes(5);
  static constexpr size_t kMostLookedAt = 20;  // nodes, per look
  static constexpr size_t kMostAtOnce = 5;     // new machines, per look
  static constexpr size_t kMostTogether = 4;   // nodes, by one

  // Sets Machine::replacing. At the begin of a step, and when phases have changed.
  static void Mark(MachineLedger& ledger, absl::Time now);
  // Call it before NodeEmptying::Advance. `evacuation` may be null: then nothing begins.
  void Advance(StepContext& context, DisruptionBudgets& budgets, Evacuation* evacuation,
               NodeEmptying& emptying, bool nodes_wanted, bool frozen);
  // It was replaced, or replaced another one, a short while ago.
  [[nodiscard]] static bool Rests(const Machine& machine, const StepContext& context);

  // ---- since when a node could have been replaced at each look
  // Begins a look. What is not noted in it begins anew.
  void BeginLook() { former_since_ = std::exchange(since_, {}); }
  // Since when that is so of the machines. `key`: of their rows.
  absl::Time Note(const std::string& key, absl::Time now);

 private:
  using Replaced = std::vector<const Machine*>;
  // Those of the machines that stand and are not being emptied.
  static Replaced StandingOf(const Machine& machine, const MachineLedger& ledger);
  // Those that no other machine is to replace: two leaders may each have requested one.
  static Replaced WithoutOther(Replaced replaced, const StepContext& context);
  void AdvanceOne(Machine& machine, StepContext& context, DisruptionBudgets& budgets,
                  Evacuation* evacuation, NodeEmptying& emptying, bool calm);
  // False: not now.
  bool MayBegin(const Machine& machine, const Replaced& replaced, StepContext& context,
                Evacuation& evacuation);
  void Begin(Machine& machine, const Replaced& replaced, StepContext& context,
             DisruptionBudgets& budgets, Evacuation& evacuation, NodeEmptying& emptying);
  void GiveUp(Machine& machine, const Replaced& replaced, const char* why, NodeEmptying& emptying,
              StepContext& context);

  std::map<std::string, absl::Time> since_, former_since_;  // by key
};

}  // namespace fairlead::hook
