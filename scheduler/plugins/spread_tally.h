// The pods that one topology spread constraint of a class counts, by domain, and the least and the
// most of all domains.
//
// Domains are those of the nodes that the constraint looks at: the node is a place for that
// capacity (framework::IsPlace), has the keys of all constraints DoNotSchedule (for one of these),
// and the pod's node affinity and tolerations allow it if the constraint honours them. Pods count
// where they stay: promised ones too, terminating ones do not.
//
// Follows the counters of the framework (framework::SetView). Thread-safety: the state's.
// Complexity: O(log of the different counts) a change, O(1) a question. Memory: 8 bytes a node, 40
// a domain.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "scheduler/framework/domain_counters.h"

namespace fairlead::plugins {

class SpreadTally final : public framework::SetView {
 public:
  // `index` names the constraint of the spec.
  SpreadTally(framework::DomainCounters& counters, std::shared_ptr<const model::PodSpec> spec,
              size_t index);
  ~SpreadTally() override { set_->RemoveView(this); }
  SpreadTally(const SpreadTally&) = delete;
  SpreadTally& operator=(const SpreadTally&) = delete;

  [[nodiscard]] const model::TopologySpreadConstraint& constraint() const {
    return spec_->topology_spread[index_];
  }
  [[nodiscard]] const framework::TopologyKey& key() const { return *key_; }
  // Whether the pods of the class count themselves, once they are placed.
  [[nodiscard]] bool counts_itself() const { return counts_itself_; }

  // What the domains of one capacity say.
  struct View {
    bool is_domain = false;  // some node of it counts
    int64_t pods = 0;        // in the domain
  };
  [[nodiscard]] View In(framework::DomainId domain, framework::Capacity capacity) const;
  [[nodiscard]] int64_t Domains(framework::Capacity capacity) const {
    return Side(capacity).domains;
  }
  // 0 without domains.
  [[nodiscard]] int64_t Least(framework::Capacity capacity) const;
  [[nodiscard]] int64_t Most(framework::Capacity capacity) const;
  // What a domain may have the maximal skew more than: the least, or 0 with too few domains.
  [[nodiscard]] int64_t Floor(framework::Capacity capacity) const;

  void OnTally(state::NodeId node, const framework::PodTally& added,
               const framework::PodTally& taken) override;
  void OnNodeObject(state::NodeId node) override;
  [[nodiscard]] std::string CheckConsistency() const override;

 private:
  struct Domain {
    int64_t nodes = 0, pods = 0;
    friend bool operator==(const Domain&, const Domain&) = default;
  };
  // Of one capacity.
  struct Sums {
    std::vector<Domain> by_domain;
    absl::btree_map<int64_t, int64_t> by_pods;  // number of pods -> domains that have it
    int64_t domains = 0;
  };
  struct NodeEntry {
    framework::DomainId domain = framework::kNoDomain;
    bool now = false, future = false;  // counts for that capacity
  };
  [[nodiscard]] const Sums& Side(framework::Capacity capacity) const {
    return capacity == framework::Capacity::kNow ? now_ : future_;
  }
  [[nodiscard]] NodeEntry Read(state::NodeId node) const;
  static void Change(Sums& side, framework::DomainId domain, int64_t nodes, int64_t pods);

  const state::ClusterState& state_;
  const std::shared_ptr<const model::PodSpec> spec_;
  const size_t index_;
  const std::shared_ptr<framework::TopologyKey> key_;
  const std::shared_ptr<framework::PodSet> set_;
  const bool counts_itself_;
  std::vector<NodeEntry> nodes_;
  Sums now_, future_;
};

// True if the labels have the keys of all constraints DoNotSchedule.
bool HasAllHardKeys(const model::PodSpec& spec, const model::StringMap& labels);

}  // namespace fairlead::plugins
