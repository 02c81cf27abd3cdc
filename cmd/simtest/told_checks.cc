// Of Checks: what pods and groups are told is true.
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cmd/simtest/checks.h"

namespace fairlead::simtest {
namespace {

// A verdict follows what its queue uses within that time.
constexpr absl::Duration kFollows = absl::Seconds(5);

}  // namespace

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

absl::Time Checks::TouchedAt(const std::string& key) const {
  const auto found = touched_.find(key);
  return found == touched_.end() ? absl::InfinitePast() : found->second;
}

// What decides whether a policy holds it, but what its queues use.
bool Checks::IsPolicySettled(const Workload& workload) const {
  const absl::Time known = time_->now() - kKnown;
  return TouchedAt(workload.key) < known && workload.class_changed_at < known &&
         (workload.group == nullptr || workload.group->changed_at < known) &&
         truth_->PolicyChangedAt(workload.queue) < known;
}

// No pod that counts in one of its queues came, went or changed a moment ago.
bool Checks::IsUseSettled(const Workload& workload) const {
  const std::vector<std::string> chain = truth_->Chain(workload.queue);
  return std::none_of(chain.begin(), chain.end(), [&](const std::string& queue) {
    const auto touched = touched_queues_.find(queue);
    return touched != touched_queues_.end() && touched->second > time_->now() - kFollows;
  });
}

void Checks::CheckVerdicts() {
  const absl::Time settled = time_->now() - absl::Seconds(30);
  const absl::Time granted = time_->now() - kGuestMayTake;
  const std::set<std::string> placed = volumes_.AwaitingSince(settled);
  for (const auto& [key, row] : truth_->pods()) {
    const sim::world::PodFacts& pod = row.facts;
    if (!pod.ours || pod.terminal || pod.terminating) continue;
    if (!pod.node.empty()) {
      if (row.bound_at > settled) continue;
      if (!pod.condition.empty() || !pod.verdict.empty()) {
        Fail("verdict", absl::StrCat("pod ", key, " runs on ", pod.node, " and is told ",
                                     pod.condition.empty() ? pod.verdict : pod.condition));
      }
    } else if (std::max(row.created, TouchedAt(key)) < (pod.guest() ? granted : settled) &&
               pod.condition.empty() && !pod.gated && !placed.contains(key)) {
      Fail("condition",
           absl::StrCat("pod ", key, " waits and has no condition PodScheduled=False"));
    }
  }
  static const auto* const kCapacity = new std::set<std::string>{
      "Unschedulable", "InsufficientCapacity", "NodesRequested", "WaitingForVictims"};
  const std::vector<Workload> all = truth_->Waiting();
  // What a webhook refuses counts in its queue while its binding is tried, and does not between.
  std::set<std::string> tried;
  for (const Workload& workload : all) {
    if (IsRefused(workload)) tried.insert(workload.queue);
  }
  for (const Workload& workload : all) {
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
      if (granted_(row->facts.uid)) continue;
      if (!code.empty() && row->facts.condition != code && IsPolicySettled(workload)) {
        Fail("verdict", absl::StrCat("pod ", row->facts.key(), " is told ", row->facts.condition,
                                     "; true is ", code));
      }
      if (code.empty() && row->facts.condition == "QueueLimitReached" &&
          !tried.contains(workload.queue) && truth_->Entitled(workload) &&
          IsPolicySettled(workload) && IsUseSettled(workload) &&
          truth_->OverLimitBeside(workload).empty()) {
        Fail("verdict", absl::StrCat("pod ", row->facts.key(),
                                     " is told QueueLimitReached, and is below every limit, also "
                                     "with all that waits for capacity"));
      }
    }
  }
}

void Checks::GrantedBadNode(const std::string& what, absl::Time since) {
  if (time_->now() - since < kKnown || since <= disturbed_until_ + kRecovery) return;
  Fail("grant", absl::StrCat(what, " since ", absl::FormatDuration(time_->now() - since)));
}

void Checks::CheckGroupsTold() {
  std::map<std::string, absl::Time> untold;
  const absl::Time now = time_->now();
  for (const sim::world::Workload& workload : truth_->Waiting()) {
    if (workload.group == nullptr || !workload.group->facts.verdict_code.empty()) continue;
    // A pod whose share of a GPU waits for its device is placed, and has no verdict.
    // So is one whose volumes are being made.
    const bool silent =
        std::all_of(workload.waiting.begin(), workload.waiting.end(),
                    [](const PodRow* row) { return row->facts.gated || row->facts.shares_gpu; });
    if (silent || truth_->AwaitsVolumes(workload, now - kTold)) continue;
    const auto known = untold_since_.find(workload.key);
    const absl::Time since = known == untold_since_.end() ? now : known->second;
    untold[workload.key] = since;
    // The scheduler of a guest has been told the node, and takes its time to bind the pod.
    const bool guests = std::any_of(workload.waiting.begin(), workload.waiting.end(),
                                    [](const PodRow* row) { return row->facts.guest(); });
    if (now - since <= kTold + (guests ? kGuestMayTake : absl::ZeroDuration())) continue;
    if (since <= std::max(disturbed_until_, refused_until_) + kRecovery) continue;
    Fail("told", absl::StrCat("group ", workload.key, " has waited for ",
                              absl::FormatDuration(now - since), " and has no verdict"));
  }
  untold_since_ = std::move(untold);
}

}  // namespace fairlead::simtest
