// Of Checks: pods run where their selectors, their affinity and their spread permit, and a GPU is
// shared by no more than it has.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cmd/simtest/checks.h"

namespace fairlead::simtest {

using sim::world::Placement;
using sim::world::PodRow;

void Checks::CheckPlacement(const PodRow& row) {
  const sim::world::PodFacts& pod = row.facts;
  if (pod.impossible) {
    Fail("misplaced", absl::StrCat("pod ", pod.key(), " is bound to ", pod.node,
                                   ", and no node has what it selects or requests"));
  }
  const auto node = truth_->nodes().find(pod.node);
  const absl::Time known = KnownSince();
  if (node == truth_->nodes().end() || !pod.ours) return;
  const Placement* const placement = pod.placement.get();
  if (placement != nullptr && node->second.labels_changed_at < known &&
      !sim::world::NodeMatches(*placement, node->second.facts.labels)) {
    Fail("misplaced", absl::StrCat("pod ", pod.key(), " is bound to ", pod.node,
                                   ", whose labels it does not select: ", placement->text));
  }
  if (truth_->nodes_changed_at() >= known) return;
  const std::string apart = truth_->ApartFrom(row, pod.node, known);
  if (!apart.empty()) {
    Fail("misplaced", absl::StrCat("pod ", pod.key(), " is bound to ", pod.node, ": ", apart));
  }
  if (placement == nullptr || placement->unknown) return;
  Bonds bonds{pod.key(), time_->now(), {}};
  for (const auto& rule : placement->spread) {
    bonds.beside.push_back(truth_->CountBeside(row, rule));
  }
  if (placement->names_pods()) bonds_.push_back(std::move(bonds));
}

// Bindings that were decided together are written in any order: judged kKnown later.
void Checks::CheckBonds() {
  const absl::Time now = time_->now();
  for (; !bonds_.empty() && now - bonds_.front().bound_at > kKnown; bonds_.pop_front()) {
    const Bonds& bonds = bonds_.front();
    const absl::Time since = bonds.bound_at - kKnown;
    if (now <= disturbed_until_ + kRecovery || now <= refused_until_ + kRecovery) continue;
    if (truth_->nodes_changed_at() >= since || IsAnyRefused()) continue;
    const auto found = truth_->pods().find(bonds.pod);
    if (found == truth_->pods().end() || found->second.bound_at != bonds.bound_at) continue;
    const PodRow& row = found->second;
    const Placement& placement = *row.facts.placement;
    for (const auto& term : placement.near) {
      // The first of its own kind may go anywhere.
      if (term.app == row.facts.app || truth_->IsNear(row, term, row.facts.node, since)) continue;
      Fail("misplaced", absl::StrCat("pod ", bonds.pod, " was bound to ", row.facts.node, " ",
                                     absl::FormatDuration(now - bonds.bound_at),
                                     " ago, and no pod with app=", term.app, " has been in its ",
                                     term.topology_key, " since"));
    }
    for (size_t i = 0; i < placement.spread.size(); ++i) {
      const int64_t least = truth_->LeastCount(row, placement.spread[i], since);
      if (bonds.beside[i] - least <= placement.spread[i].max_skew) continue;
      Fail("misplaced",
           absl::StrCat("pod ", bonds.pod, " was bound to ", row.facts.node, " as one of ",
                        bonds.beside[i], " in its ", placement.spread[i].topology_key,
                        ", and another one has had ", least, " at most"));
    }
  }
}

void Checks::CheckShare(const PodRow& row) {
  if (!row.facts.ours || row.share_changed_at >= KnownSince()) {
    if (row.share_changed_at > row.created) return;
  }
  const std::string over = truth_->OverShared(row);
  if (!over.empty()) Fail("share", absl::StrCat("pod ", row.facts.key(), " is bound: ", over));
}

}  // namespace fairlead::simtest
