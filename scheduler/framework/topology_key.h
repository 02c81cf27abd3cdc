// The domains of one topology key: nodes with the same value of a label are one domain. Kept up to
// date by DomainCounters (domain_counters.h), which owns it.
//
// Ids of domains are dense and are used again when the last node of a domain has left it. That node
// is in an entry of the change log (kNodeObject), so a subscriber that keeps ids knows.
// Thread-safety: the state's. Complexity: O(1) a question, O(log) of the label for a node that the
// state does not have. Memory: 16 bytes a node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::framework {

using DomainId = uint32_t;
inline constexpr DomainId kNoDomain = 0xffffffffu;

// Which capacity of a node counts as free.
enum class Capacity : uint8_t {
  kNow,     // idle
  kFuture,  // idle + releasing: the pod would have to wait
  kEmpty,   // allocatable: would it ever fit?
};

// Is the node one that pods run on now, or will be once it is ready (asked for with another
// capacity)?
inline bool IsPlace(const state::NodeInfo& node, Capacity capacity) {
  if (!node.exists) return false;
  if (capacity != Capacity::kNow) return true;
  return node.kind != state::NodeKind::kOrdered && node.usable;
}

// Where a node is.
struct NodeDomain {
  bool has_key = false;
  // kNoDomain with a key: no node of the state has its value (the node is only being planned).
  DomainId domain = kNoDomain;
};

class TopologyKey : public std::enable_shared_from_this<TopologyKey> {
 public:
  // Nodes that are places (IsPlace), by capacity: kNow, and kFuture.
  struct Places {
    int64_t now = 0, future = 0;
    [[nodiscard]] int64_t In(Capacity capacity) const {
      return capacity == Capacity::kNow ? now : future;
    }
  };

  TopologyKey(std::string name, const state::ClusterState& state);
  TopologyKey(const TopologyKey&) = delete;
  TopologyKey& operator=(const TopologyKey&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  // Of a node of the state, by the last word about its object.
  [[nodiscard]] DomainId DomainOf(state::NodeId node) const {
    return node < nodes_.size() ? nodes_[node].domain : kNoDomain;
  }
  // Of any node.
  [[nodiscard]] NodeDomain DomainOf(const state::NodeInfo& node) const;
  // In no order that a decision may use.
  [[nodiscard]] const std::vector<state::NodeId>& NodesIn(DomainId domain) const {
    return domains_[domain].nodes;
  }
  [[nodiscard]] const Places& PlacesIn(DomainId domain) const { return domains_[domain].places; }
  // Of all nodes, with the key or without.
  [[nodiscard]] const Places& places() const { return places_; }
  // Domains that have nodes.
  [[nodiscard]] size_t domain_count() const { return by_value_.size(); }
  // Domains that have several.
  [[nodiscard]] size_t shared_domain_count() const { return shared_domains_; }
  // Grows when a node leaves a domain that has other nodes.
  [[nodiscard]] uint64_t departures() const { return departures_; }
  // Grows when a node gets another domain, or becomes a place or ceases to be one.
  [[nodiscard]] uint64_t version() const { return version_; }

  // Reads the node's object again; the domain that it had before.
  DomainId Update(state::NodeId node);
  // To be called after Update() when nothing counts for `former` any more.
  void ReleaseIfEmpty(DomainId former);
  // The first difference between this and the rows, or empty.
  [[nodiscard]] std::string CheckConsistency() const;

 private:
  struct NodeEntry {
    DomainId domain = kNoDomain;
    uint32_t position = 0;  // in the domain's list
    bool now = false, future = false;
  };
  struct Domain {
    std::string value;
    std::vector<state::NodeId> nodes;
    Places places;
  };
  DomainId Intern(const std::string& value);
  void Leave(state::NodeId node);
  void Enter(state::NodeId node, DomainId domain);

  const std::string name_;
  const state::ClusterState& state_;
  std::vector<NodeEntry> nodes_;
  std::vector<Domain> domains_;
  std::vector<DomainId> free_;
  absl::flat_hash_map<std::string, DomainId> by_value_;
  Places places_;
  size_t shared_domains_ = 0;
  uint64_t departures_ = 0, version_ = 1;
};

}  // namespace fairlead::framework
