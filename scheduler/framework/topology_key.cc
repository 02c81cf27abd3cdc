#include "scheduler/framework/topology_key.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::framework {

TopologyKey::TopologyKey(std::string name, const state::ClusterState& state)
    : name_(std::move(name)), state_(state) {
  for (const auto& [node_name, id] : state_.nodes_by_name()) Update(id);
}

NodeDomain TopologyKey::DomainOf(const state::NodeInfo& node) const {
  if (node.id < nodes_.size() && &state_.node(node.id) == &node) {
    const DomainId domain = nodes_[node.id].domain;
    return {domain != kNoDomain, domain};
  }
  const std::string* value = node.object.meta.labels.Find(name_);
  if (value == nullptr) return {};
  const auto it = by_value_.find(*value);
  return {true, it == by_value_.end() ? kNoDomain : it->second};
}

DomainId TopologyKey::Intern(const std::string& value) {
  const auto [it, added] = by_value_.try_emplace(value, kNoDomain);
  if (!added) return it->second;
  if (free_.empty()) {
    it->second = static_cast<DomainId>(domains_.size());
    domains_.emplace_back();
  } else {
    it->second = free_.back();
    free_.pop_back();
  }
  domains_[it->second].value = value;
  return it->second;
}

void TopologyKey::Leave(state::NodeId node) {
  const NodeEntry& entry = nodes_[node];
  if (entry.domain == kNoDomain) return;
  Domain& domain = domains_[entry.domain];
  const state::NodeId last = domain.nodes.back();
  domain.nodes[entry.position] = last;
  nodes_[last].position = entry.position;
  domain.nodes.pop_back();
  if (domain.nodes.size() == 1) --shared_domains_;
  domain.places.now -= entry.now ? 1 : 0;
  domain.places.future -= entry.future ? 1 : 0;
  if (!domain.nodes.empty()) ++departures_;
}

void TopologyKey::Enter(state::NodeId node, DomainId id) {
  NodeEntry& entry = nodes_[node];
  entry.domain = id;
  if (id == kNoDomain) return;
  Domain& domain = domains_[id];
  entry.position = static_cast<uint32_t>(domain.nodes.size());
  domain.nodes.push_back(node);
  if (domain.nodes.size() == 2) ++shared_domains_;
  domain.places.now += entry.now ? 1 : 0;
  domain.places.future += entry.future ? 1 : 0;
}

DomainId TopologyKey::Update(state::NodeId id) {
  if (id >= nodes_.size()) nodes_.resize(id + 1);
  const state::NodeInfo& node = state_.node(id);
  NodeEntry& entry = nodes_[id];
  const DomainId former = entry.domain;
  const std::string* value = node.object.meta.labels.Find(name_);
  const bool same = value == nullptr ? former == kNoDomain
                                     : former != kNoDomain && domains_[former].value == *value;
  const bool now = IsPlace(node, Capacity::kNow);
  const bool future = IsPlace(node, Capacity::kFuture);
  if (same && entry.now == now && entry.future == future) return former;
  ++version_;
  const DomainId domain = same ? former : value == nullptr ? kNoDomain : Intern(*value);
  if (same && former != kNoDomain) {
    Places& places = domains_[former].places;
    places.now += (now ? 1 : 0) - (entry.now ? 1 : 0);
    places.future += (future ? 1 : 0) - (entry.future ? 1 : 0);
  }
  if (!same) Leave(id);
  places_.now += (now ? 1 : 0) - (entry.now ? 1 : 0);
  places_.future += (future ? 1 : 0) - (entry.future ? 1 : 0);
  entry.now = now;
  entry.future = future;
  if (!same) Enter(id, domain);
  return former;
}

void TopologyKey::ReleaseIfEmpty(DomainId former) {
  if (former == kNoDomain || !domains_[former].nodes.empty()) return;
  by_value_.erase(domains_[former].value);
  domains_[former] = Domain{};
  free_.push_back(former);
}

std::string TopologyKey::CheckConsistency() const {
  Places all;
  size_t with_key = 0;
  for (const auto& [node_name, id] : state_.nodes_by_name()) {
    const state::NodeInfo& node = state_.node(id);
    const std::string* value = node.object.meta.labels.Find(name_);
    const DomainId domain = DomainOf(id);
    if ((value == nullptr) != (domain == kNoDomain) ||
        (value != nullptr && domains_[domain].value != *value)) {
      return absl::StrCat("topology key ", name_, ": domain of node ", node_name);
    }
    with_key += domain == kNoDomain ? 0 : 1;
    all.now += IsPlace(node, Capacity::kNow) ? 1 : 0;
    all.future += IsPlace(node, Capacity::kFuture) ? 1 : 0;
  }
  size_t listed = 0;
  size_t shared = 0;
  for (const Domain& domain : domains_) {
    listed += domain.nodes.size();
    shared += domain.nodes.size() > 1 ? 1 : 0;
  }
  if (shared != shared_domains_) return absl::StrCat("topology key ", name_, ": shared domains");
  if (listed != with_key) return absl::StrCat("topology key ", name_, ": nodes in its domains");
  if (all.now != places_.now || all.future != places_.future) {
    return absl::StrCat("topology key ", name_, ": places");
  }
  return "";
}

}  // namespace fairlead::framework
