// The pods that one topology spread constraint of a class counts, by domain, and the least of
// all domains.
//
// Domains are those of the nodes that the constraint looks at: the node is a place for that
// capacity (framework::IsPlace), has the keys of all constraints of its kind (DoNotSchedule, or
// ScheduleAnyway; of LooksAtAnyKey() its own key alone), and the pod's node affinity and
// tolerations allow it if the constraint honours them. Pods count where they stay: promised ones
// too, terminating ones do not.
//
// A victim is released by the decision, and runs until its eviction is sent and accepted. Until the
// API server shows that it terminates, a constraint DoNotSchedule counts it for Capacity::kNow, as
// upstream does, and not for kFuture: a pod that passes only without the victim waits for its end.
// Preferences (ScheduleAnyway) do not count victims: they also compare places to wait for.
//
// Follows the counters of the framework (framework::SetView). These do not tell victims from pods
// that terminate, so the victims of a node are counted from the rows when kNow is asked about next
// (a search for victims asks about kFuture alone). Thread-safety: the state's. Complexity: O(the
// different counts) a change; O(1) a question, after one look at each node that has changed
// since the last, and O(pods of the nodes on which the number of
// matching released pods has changed) for the first one about kNow after that. Memory: 16 bytes a
// node, 60 a domain.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

  // 0 without nodes that count.
  [[nodiscard]] int64_t PodsIn(framework::DomainId domain, framework::Capacity capacity);
  // Pods that the constraint counts on the node, whether it looks at the node or not.
  [[nodiscard]] int64_t On(state::NodeId node) const { return set_->On(node).Living(); }
  // Whether the domain may take one more pod of the class. A domain without nodes that count is
  // empty. For Capacity::kNow this holds with the promised pods and without them, as upstream asks
  // twice if pods are nominated: a promise may be broken.
  [[nodiscard]] bool Admits(framework::DomainId domain, framework::Capacity capacity);
  // Appends what domains may have the maximal skew more than: the least, or 0 with too few domains.
  void AddFloors(framework::Capacity capacity, std::vector<int64_t>& floors);

  void OnTally(state::NodeId node, const framework::PodTally& added,
               const framework::PodTally& taken) override;
  [[nodiscard]] std::string CheckConsistency() override;

 private:
  struct Domain {
    int64_t nodes = 0, pods = 0;
    friend bool operator==(const Domain&, const Domain&) = default;
  };
  // How many domains have so many pods. Few counts differ, so they are a sorted list.
  struct DomainsWith {
    int64_t pods = 0, domains = 0;
    friend bool operator==(const DomainsWith&, const DomainsWith&) = default;
  };
  // Of one capacity.
  struct Sums {
    std::vector<Domain> by_domain;
    std::vector<DomainsWith> by_pods;
    int64_t domains = 0;
  };
  struct NodeEntry {
    framework::DomainId domain = framework::kNoDomain;
    bool now = false, future = false;  // counts for that capacity
    bool stale = false;                // its victims may be others: it is in stale_
    int64_t victims = 0;               // that now_ counts
  };
  [[nodiscard]] const Sums& Side(framework::Capacity capacity) {
    if (seen_ != changes_.count()) CatchUp();
    if (capacity != framework::Capacity::kNow) return future_;
    if (!stale_.empty()) CountVictims();
    return now_;
  }
  [[nodiscard]] int64_t FloorOf(const Sums& side) const;
  [[nodiscard]] bool KeepsSkew(const Sums& side, framework::DomainId domain) const;
  [[nodiscard]] NodeEntry Read(state::NodeId node) const;
  void Renew(state::NodeId node);
  // Looks at the nodes that changed since it did so last.
  void CatchUp();
  // Pods of the set that are released and do not terminate. O(pods of the node).
  [[nodiscard]] int64_t VictimsOn(state::NodeId node) const;
  void MarkStale(state::NodeId node);
  // Of the stale nodes.
  void CountVictims();
  static void Change(Sums& side, framework::DomainId domain, int64_t nodes, int64_t pods);
  static void ChangeDomains(std::vector<DomainsWith>& by_pods, int64_t pods, int64_t by);

  const state::ClusterState& state_;
  const std::shared_ptr<const model::PodSpec> spec_;
  const size_t index_;
  const std::shared_ptr<framework::TopologyKey> key_;
  const std::shared_ptr<framework::PodSet> set_;
  const bool counts_itself_;  // pods of the class, once they are placed
  const framework::NodeChanges& changes_;
  uint64_t seen_;  // of changes_
  // By what was found when the node was looked at last. The sums have what the set has on the node
  // now, by that.
  std::vector<NodeEntry> nodes_;
  std::vector<state::NodeId> stale_;  // each once; empty for ScheduleAnyway
  Sums now_, future_;
  Sums unpromised_;  // as now_, without promised pods
};

// True if a constraint looks at the nodes that have its own key, and not only at those that have
// the keys of all: the default constraints of the system do, so that nodes without a zone have a
// score by host name. These are ScheduleAnyway.
inline bool LooksAtAnyKey(const model::PodSpec& spec) {
  return spec.spread_origin == model::SpreadOrigin::kSystem;
}
// True if the labels have the keys of all constraints DoNotSchedule.
bool HasAllHardKeys(const model::PodSpec& spec, const model::StringMap& labels);
// The same of all constraints ScheduleAnyway.
bool HasAllSoftKeys(const model::PodSpec& spec, const model::StringMap& labels);

}  // namespace fairlead::plugins
