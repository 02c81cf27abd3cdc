#include "scheduler/plugins/spread_tally.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/plugins/node_affinity.h"
#include "scheduler/plugins/taint_toleration.h"

namespace fairlead::plugins {

using framework::Capacity;
using framework::DomainId;
using framework::kNoDomain;
using framework::PodTally;

namespace {

bool HasKeys(const model::PodSpec& spec, bool hard, const model::StringMap& labels) {
  return std::all_of(spec.topology_spread.begin(), spec.topology_spread.end(), [&](const auto& c) {
    return c.do_not_schedule != hard || labels.Has(c.topology_key);
  });
}

}  // namespace

bool HasAllHardKeys(const model::PodSpec& spec, const model::StringMap& labels) {
  return HasKeys(spec, /*hard=*/true, labels);
}

bool HasAllSoftKeys(const model::PodSpec& spec, const model::StringMap& labels) {
  return HasKeys(spec, /*hard=*/false, labels);
}

namespace {

std::vector<framework::OwnedTerm> TermsOf(const model::PodSpec& spec, size_t index) {
  framework::OwnedTerm owned{spec.ns, {}};
  owned.term.selector = spec.topology_spread[index].selector;
  // An empty selector counts no pod, as upstream; only the pod itself matches it.
  if (owned.term.selector.requirements.empty()) owned.term.selector.none = true;
  return {owned};
}

}  // namespace

SpreadTally::SpreadTally(framework::DomainCounters& counters,
                         std::shared_ptr<const model::PodSpec> spec, size_t index)
    : state_(counters.state()),
      spec_(std::move(spec)),
      index_(index),
      key_(counters.Key(constraint().topology_key)),
      set_(counters.Selected(TermsOf(*spec_, index))),
      counts_itself_(constraint().selector.Matches(spec_->labels_for_affinity)),
      changes_(counters.node_changes()),
      seen_(changes_.count()) {
  for (const auto& [name, id] : state_.nodes_by_name()) Renew(id);
  set_->AddView(this);
}

int64_t SpreadTally::PodsIn(DomainId domain, Capacity capacity) {
  const Sums& side = Side(capacity);
  return domain < side.by_domain.size() ? side.by_domain[domain].pods : 0;
}

int64_t SpreadTally::FloorOf(const Sums& side) const {
  return side.domains < constraint().min_domains || side.by_pods.empty()
             ? 0
             : side.by_pods.front().pods;
}

bool SpreadTally::KeepsSkew(const Sums& side, DomainId domain) const {
  const bool is_domain = domain < side.by_domain.size() && side.by_domain[domain].nodes > 0;
  // A domain that only this node will open (it is being planned) is empty.
  const int64_t over = is_domain ? side.by_domain[domain].pods - FloorOf(side) : 0;
  return over + (counts_itself_ ? 1 : 0) <= constraint().max_skew;
}

bool SpreadTally::Admits(DomainId domain, Capacity capacity) {
  if (!KeepsSkew(Side(capacity), domain)) return false;
  return capacity != Capacity::kNow || KeepsSkew(unpromised_, domain);
}

void SpreadTally::AddFloors(Capacity capacity, std::vector<int64_t>& floors) {
  floors.push_back(FloorOf(Side(capacity)));
  if (capacity == Capacity::kNow) floors.push_back(FloorOf(unpromised_));
}

SpreadTally::NodeEntry SpreadTally::Read(state::NodeId id) const {
  const state::NodeInfo& node = state_.node(id);
  const model::TopologySpreadConstraint& c = constraint();
  NodeEntry entry;
  entry.domain = key_->DomainOf(id);
  if (entry.domain == kNoDomain || !framework::IsPlace(node, Capacity::kFuture)) return entry;
  if (!LooksAtAnyKey(*spec_) && !HasKeys(*spec_, c.do_not_schedule, node.object.meta.labels)) {
    return entry;
  }
  if (c.honor_node_affinity && !MatchesNodeAffinity(*spec_, node.object)) return entry;
  if (c.honor_node_taints && FindUntolerated(*spec_, node.object) != nullptr) return entry;
  entry.future = true;
  entry.now = framework::IsPlace(node, Capacity::kNow);
  return entry;
}

void SpreadTally::ChangeDomains(std::vector<DomainsWith>& by_pods, int64_t pods, int64_t by) {
  auto at = std::lower_bound(by_pods.begin(), by_pods.end(), pods,
                             [](const DomainsWith& e, int64_t wanted) { return e.pods < wanted; });
  if (at == by_pods.end() || at->pods != pods) at = by_pods.insert(at, {pods, 0});
  at->domains += by;
  if (at->domains == 0) by_pods.erase(at);
}

void SpreadTally::Change(Sums& side, DomainId id, int64_t nodes, int64_t pods) {
  if (id >= side.by_domain.size()) side.by_domain.resize(id + 1);
  Domain& domain = side.by_domain[id];
  if (domain.nodes > 0) {
    ChangeDomains(side.by_pods, domain.pods, -1);
    --side.domains;
  }
  domain.nodes += nodes;
  domain.pods += pods;
  if (domain.nodes == 0) return;
  ChangeDomains(side.by_pods, domain.pods, 1);
  ++side.domains;
}

int64_t SpreadTally::VictimsOn(state::NodeId id) const {
  if (set_->On(id).releasing == 0) return 0;
  const std::vector<state::PodId>& pods = state_.node(id).pods;
  return std::count_if(pods.begin(), pods.end(), [this](state::PodId pod_id) {
    const state::PodRecord& pod = state_.pod(pod_id);
    return pod.status == state::PodStatus::kReleasing && !pod.terminating && pod.ns == spec_->ns &&
           set_->terms().front().term.selector.Matches(pod.labels);
  });
}

void SpreadTally::MarkStale(state::NodeId node) {
  if (!constraint().do_not_schedule || nodes_[node].stale) return;
  nodes_[node].stale = true;
  stale_.push_back(node);
}

void SpreadTally::CountVictims() {
  for (const state::NodeId node : stale_) {
    NodeEntry& entry = nodes_[node];
    entry.stale = false;
    const int64_t former = entry.victims;
    entry.victims = entry.now ? VictimsOn(node) : 0;
    if (entry.victims == former) continue;
    Change(now_, entry.domain, 0, entry.victims - former);
    Change(unpromised_, entry.domain, 0, entry.victims - former);
  }
  stale_.clear();
}

void SpreadTally::OnTally(state::NodeId node, const PodTally& added, const PodTally& taken) {
  if (node >= nodes_.size()) return;
  if (added.releasing != taken.releasing) MarkStale(node);
  const int64_t pods = added.Living() - taken.Living();
  const int64_t settled = added.settled - taken.settled;
  const NodeEntry& entry = nodes_[node];
  if (entry.now && settled != 0 && constraint().do_not_schedule) {
    Change(unpromised_, entry.domain, 0, settled);
  }
  if (pods == 0) return;
  if (entry.now) Change(now_, entry.domain, 0, pods);
  if (entry.future) Change(future_, entry.domain, 0, pods);
}

void SpreadTally::CatchUp() {
  if (changes_.HaveSince(seen_)) {
    for (const state::NodeId node : changes_.Since(seen_)) Renew(node);
  } else {
    const auto known = static_cast<state::NodeId>(nodes_.size());
    for (state::NodeId node = 0; node < known; ++node) Renew(node);
    for (const auto& [name, node] : state_.nodes_by_name()) {
      if (node >= known) Renew(node);
    }
  }
  seen_ = changes_.count();
}

void SpreadTally::Renew(state::NodeId node) {
  if (node >= nodes_.size()) nodes_.resize(node + 1);
  NodeEntry& entry = nodes_[node];
  const NodeEntry found = Read(node);
  if (found.domain == entry.domain && found.now == entry.now && found.future == entry.future) {
    return;
  }
  const PodTally on = set_->On(node);
  const int64_t pods = on.Living();
  if (entry.now) {
    Change(now_, entry.domain, -1, -pods - entry.victims);
    if (constraint().do_not_schedule) {
      Change(unpromised_, entry.domain, -1, -on.settled - entry.victims);
    }
  }
  if (entry.future) Change(future_, entry.domain, -1, -pods);
  const bool stale = entry.stale;
  entry = found;
  entry.stale = stale;
  if (entry.now) {
    Change(now_, entry.domain, 1, pods);
    if (constraint().do_not_schedule) Change(unpromised_, entry.domain, 1, on.settled);
  }
  if (entry.future) Change(future_, entry.domain, 1, pods);
  if (on.releasing != 0) MarkStale(node);
}

std::string SpreadTally::CheckConsistency() {
  CatchUp();
  Sums now, future, unpromised;
  for (const auto& [name, id] : state_.nodes_by_name()) {
    const NodeEntry entry = Read(id);
    const PodTally on = set_->On(id);
    const int64_t pods = on.Living();
    const NodeEntry kept = id < nodes_.size() ? nodes_[id] : NodeEntry();
    const bool counted = constraint().do_not_schedule && !kept.stale;
    const int64_t victims = counted ? VictimsOn(id) : kept.victims;
    if (entry.now) {
      Change(now, entry.domain, 1, pods + victims);
      if (constraint().do_not_schedule) Change(unpromised, entry.domain, 1, on.settled + victims);
    }
    if (entry.future) Change(future, entry.domain, 1, pods);
  }
  const auto same = [](Sums& recount, const Sums& kept) {
    recount.by_domain.resize(std::max(recount.by_domain.size(), kept.by_domain.size()));
    std::vector<Domain> by_domain = kept.by_domain;
    by_domain.resize(recount.by_domain.size());
    return recount.by_domain == by_domain && recount.by_pods == kept.by_pods &&
           recount.domains == kept.domains;
  };
  if (same(now, now_) && same(future, future_) && same(unpromised, unpromised_)) return "";
  return absl::StrCat("pods spread by ", constraint().topology_key, " in namespace ", spec_->ns);
}

}  // namespace fairlead::plugins
