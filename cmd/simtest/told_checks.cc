// Of Checks: what pods and groups are told is true.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cmd/simtest/checks.h"

namespace fairlead::simtest {

using sim::world::PodRow;
using sim::world::Workload;

// Long after it was bound, and with nothing in the way of the write.
void Checks::CheckToldThatRun() {
  const absl::Time now = time_->now();
  if (now <= disturbed_until_ + kRecovery) return;
  for (const auto& [key, row] : truth_->pods()) {
    const sim::world::PodFacts& pod = row.facts;
    if (!pod.ours || pod.node.empty() || pod.terminal || pod.terminating) continue;
    if (row.bound_at > now - kRecovery || (pod.condition.empty() && pod.verdict.empty())) continue;
    Fail("verdict", absl::StrCat("pod ", key, " has run on ", pod.node, " for ",
                                 absl::FormatDuration(now - row.bound_at), " and is told ",
                                 pod.condition.empty() ? pod.verdict : pod.condition));
  }
}

void Checks::CheckVerdicts() {
  const absl::Time settled = time_->now() - absl::Seconds(30);
  for (const auto& [key, row] : truth_->pods()) {
    const sim::world::PodFacts& pod = row.facts;
    if (!pod.ours || pod.terminal || pod.terminating) continue;
    if (!pod.node.empty()) {
      if (row.bound_at > settled) continue;
      if (!pod.condition.empty() || !pod.verdict.empty()) {
        Fail("verdict", absl::StrCat("pod ", key, " runs on ", pod.node, " and is told ",
                                     pod.condition.empty() ? pod.verdict : pod.condition));
      }
    } else if (row.created < settled && pod.condition.empty() && !pod.gated) {
      Fail("condition",
           absl::StrCat("pod ", key, " waits and has no condition PodScheduled=False"));
    }
  }
  static const auto* const kCapacity = new std::set<std::string>{
      "Unschedulable", "InsufficientCapacity", "NodesRequested", "WaitingForVictims"};
  for (const Workload& workload : truth_->Waiting()) {
    const std::string code = truth_->PolicyCode(workload);
    for (const PodRow* row : workload.waiting) {
      if (!row->facts.hopeless || row->created > settled) continue;
      if (!kCapacity->contains(row->facts.condition)) continue;
      Fail("verdict", absl::StrCat("pod ", row->facts.key(), " is told ", row->facts.condition,
                                   ", and no node could ever help it"));
    }
    for (const PodRow* row : workload.waiting) {
      // Without a condition: that is told by its own name.
      if (row->created > settled || row->facts.gated || row->facts.condition.empty()) continue;
      if (!code.empty() && row->facts.condition != code) {
        Fail("verdict", absl::StrCat("pod ", row->facts.key(), " is told ", row->facts.condition,
                                     "; true is ", code));
      }
      if (code.empty() && row->facts.condition == "QueueLimitReached" &&
          truth_->Entitled(workload) && truth_->OverLimitBeside(workload).empty()) {
        Fail("verdict", absl::StrCat("pod ", row->facts.key(),
                                     " is told QueueLimitReached, and is below every limit, also "
                                     "with all that waits for capacity"));
      }
    }
  }
}

void Checks::CheckGroupsTold() {
  std::map<std::string, absl::Time> untold;
  const absl::Time now = time_->now();
  for (const sim::world::Workload& workload : truth_->Waiting()) {
    if (workload.group == nullptr || !workload.group->facts.verdict_code.empty()) continue;
    // A pod whose share of a GPU waits for its device is placed, and has no verdict.
    const bool silent =
        std::all_of(workload.waiting.begin(), workload.waiting.end(),
                    [](const PodRow* row) { return row->facts.gated || row->facts.shares_gpu; });
    if (silent) continue;
    const auto known = untold_since_.find(workload.key);
    const absl::Time since = known == untold_since_.end() ? now : known->second;
    untold[workload.key] = since;
    if (now - since <= kTold) continue;
    if (since <= std::max(disturbed_until_, refused_until_) + kRecovery) continue;
    Fail("told", absl::StrCat("group ", workload.key, " has waited for ",
                              absl::FormatDuration(now - since), " and has no verdict"));
  }
  untold_since_ = std::move(untold);
}

}  // namespace fairlead::simtest
