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

bool HasAllHardKeys(const model::PodSpec& spec, const model::StringMap& labels) {
  return std::all_of(spec.topology_spread.begin(), spec.topology_spread.end(), [&](const auto& c) {
    return !c.do_not_schedule || labels.Has(c.topology_key);
  });
}

namespace {

std::vector<framework::OwnedTerm> TermsOf(const model::PodSpec& spec, size_t index) {
  framework::OwnedTerm owned{spec.ns, {}};
  owned.term.selector = spec.topology_spread[index].selector;
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
      counts_itself_(constraint().selector.Matches(spec_->labels_for_affinity)) {
  for (const auto& [name, id] : state_.nodes_by_name()) OnNodeObject(id);
  set_->AddView(this);
}

SpreadTally::View SpreadTally::In(DomainId domain, Capacity capacity) const {
  const Sums& side = Side(capacity);
  if (domain >= side.by_domain.size()) return {};
  return {side.by_domain[domain].nodes > 0, side.by_domain[domain].pods};
}

int64_t SpreadTally::Least(Capacity capacity) const {
  const Sums& side = Side(capacity);
  return side.by_pods.empty() ? 0 : side.by_pods.begin()->first;
}

int64_t SpreadTally::Most(Capacity capacity) const {
  const Sums& side = Side(capacity);
  return side.by_pods.empty() ? 0 : side.by_pods.rbegin()->first;
}

int64_t SpreadTally::Floor(Capacity capacity) const {
  return Domains(capacity) < constraint().min_domains ? 0 : Least(capacity);
}

SpreadTally::NodeEntry SpreadTally::Read(state::NodeId id) const {
  const state::NodeInfo& node = state_.node(id);
  const model::TopologySpreadConstraint& c = constraint();
  NodeEntry entry;
  entry.domain = key_->DomainOf(id);
  if (entry.domain == kNoDomain || !framework::IsPlace(node, Capacity::kFuture)) return entry;
  if (c.do_not_schedule && !HasAllHardKeys(*spec_, node.object.meta.labels)) return entry;
  if (c.honor_node_affinity && !MatchesNodeAffinity(*spec_, node.object)) return entry;
  if (c.honor_node_taints && FindUntolerated(*spec_, node.object) != nullptr) return entry;
  entry.future = true;
  entry.now = framework::IsPlace(node, Capacity::kNow);
  return entry;
}

void SpreadTally::Change(Sums& side, DomainId id, int64_t nodes, int64_t pods) {
  if (id >= side.by_domain.size()) side.by_domain.resize(id + 1);
  Domain& domain = side.by_domain[id];
  if (domain.nodes > 0) {
    const auto it = side.by_pods.find(domain.pods);
    if (--it->second == 0) side.by_pods.erase(it);
    --side.domains;
  }
  domain.nodes += nodes;
  domain.pods += pods;
  if (domain.nodes == 0) return;
  ++side.by_pods[domain.pods];
  ++side.domains;
}

void SpreadTally::OnTally(state::NodeId node, const PodTally& added, const PodTally& taken) {
  const int64_t pods = added.Staying() - taken.Staying();
  if (pods == 0 || node >= nodes_.size()) return;
  const NodeEntry& entry = nodes_[node];
  if (entry.now) Change(now_, entry.domain, 0, pods);
  if (entry.future) Change(future_, entry.domain, 0, pods);
}

void SpreadTally::OnNodeObject(state::NodeId node) {
  if (node >= nodes_.size()) nodes_.resize(node + 1);
  NodeEntry& entry = nodes_[node];
  const int64_t pods = set_->On(node).Staying();
  if (entry.now) Change(now_, entry.domain, -1, -pods);
  if (entry.future) Change(future_, entry.domain, -1, -pods);
  entry = Read(node);
  if (entry.now) Change(now_, entry.domain, 1, pods);
  if (entry.future) Change(future_, entry.domain, 1, pods);
}

std::string SpreadTally::CheckConsistency() const {
  Sums now, future;
  for (const auto& [name, id] : state_.nodes_by_name()) {
    const NodeEntry entry = Read(id);
    const int64_t pods = set_->On(id).Staying();
    if (entry.now) Change(now, entry.domain, 1, pods);
    if (entry.future) Change(future, entry.domain, 1, pods);
  }
  const auto same = [](Sums& recount, const Sums& kept) {
    recount.by_domain.resize(std::max(recount.by_domain.size(), kept.by_domain.size()));
    std::vector<Domain> by_domain = kept.by_domain;
    by_domain.resize(recount.by_domain.size());
    return recount.by_domain == by_domain && recount.by_pods == kept.by_pods &&
           recount.domains == kept.domains;
  };
  if (same(now, now_) && same(future, future_)) return "";
  return absl::StrCat("pods spread by ", constraint().topology_key, " in namespace ", spec_->ns);
}

}  // namespace fairlead::plugins
