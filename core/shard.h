// Sharding: one process schedules a part of the cluster, as KAI's SchedulingShard says it. The
// label kai.scheduler/node-pool decides, on Nodes, Queues, PodGroups, NodePools, NodeRequests and
// what asks for capacity; other kinds belong to every shard. The shard of the empty value has the
// objects without the label.
//
//   pod that names a PodGroup   the shard of the PodGroup, whatever the pod's label, also after the
//                               group has gone; while it has not been seen, as a pod without one
//   pod without a PodGroup      its own label; while it may be put into one, PodGrouper decides
//   GPU reservation pod         the shard of its node
//
// ShardFilter stands between the watch and the rest of the core, which has only objects of its
// shard, and the pods of others as pods of another scheduler: they count on nodes, and nothing is
// decided about them. When an object moves, by its label or its group's, the core sees it come or
// go. A pod that the core may have bound stays until the outcome is known: otherwise its
// node would seem to have room for another pod.
//
// A process without a shard has all objects and no filter.
//
// Ownership: copies of pods that may move. Thread-safety: the owner's thread. Determinism: pods
// move in order of their names. Complexity: O(log pods) per event, O(its pods) when a group moves.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/cluster_event.h"
#include "scheduler/state/state_options.h"

namespace fairlead::core {

struct Shard {
  std::string label_value;  // of kai.scheduler/node-pool; empty: objects without the label

  [[nodiscard]] bool Has(const model::ObjectMeta& meta) const;
  friend bool operator==(const Shard&, const Shard&) = default;
};

// The prefix of the names of the shard's NodeRequests: machines bear them, and a shard must not
// take another one's for machines without a request. Null: of a process without a shard.
std::string RequestPrefixOf(const Shard* shard);
// The name of a shard's Lease beside those of others; `name` itself for the empty value.
std::string LeaseNameOf(const std::string& name, const Shard& shard);
// The first rule that `label_value` breaks as the value of a label; empty: none.
std::string LabelValueFault(absl::string_view label_value);

class ShardFilter {
 public:
  using Pass = absl::FunctionRef<void(const model::ClusterEvent&)>;

  // True for a pod without a node, as this object has it, that a binding of the core's may bind.
  using MayBeBound = std::function<bool(const model::Pod&)>;

  // The scheduler name that pods of other shards have here.
  static constexpr char kOtherShard[] = "(another shard's)";

  // `grouping`: pods are put into groups by their owners (pod_grouper.h).
  ShardFilter(Shard shard, std::vector<std::string> scheduler_names,
              std::string reservation_namespace, bool grouping, MayBeBound may_be_bound);

  // Calls `pass` with what the core is to have instead of the event.
  void Apply(const model::ClusterEvent& event, Pass pass);
  // Pods that stay for their binding go, if it has failed. O(such pods).
  void LetGo(Pass pass);

 private:
  // A pod of our schedulers, or one that holds a GPU for those that share it.
  struct PodRow {
    std::string uid;
    bool has = false;               // it belongs to the shard
    std::string leader;             // what decides that besides the pod, as a key of leaders_
    std::optional<model::Pod> pod;  // if there is a leader, or it stays for its binding
  };
  // A group or a node that has been seen. One that has gone is remembered while pods follow it:
  // the deletion of a group must not move what its pods hold.
  struct Leader {
    bool has = false;  // it belongs to the shard
    bool gone = false;
  };

  void ApplyUpsert(const model::ClusterEvent& event, const model::Object& object, Pass pass);
  void ApplyDelete(const model::ClusterEvent& event, const model::Delete& removed, Pass pass);
  void ApplyPod(const model::ClusterEvent* event, const model::Pod& pod, Pass pass);
  // An object that its own label puts into a shard.
  void ApplyLabelled(const model::ClusterEvent& event, const model::Object& object, Pass pass);

  [[nodiscard]] bool IsReservation(const model::Pod& pod) const;
  // Whether its place is decided here; else every shard has it.
  [[nodiscard]] bool IsSharded(const model::Pod& pod) const;
  [[nodiscard]] std::string LeaderOf(const model::Pod& pod) const;
  [[nodiscard]] bool Has(const model::Pod& pod, const std::string& leader) const;
  void Follow(const std::string& key, PodRow& row, std::string leader);
  void ForgetIdle(const std::string& leader);
  // Looks again at the pods that follow it.
  void LookAgain(const std::string& leader, Pass pass);
  void ForgetPod(std::map<std::string, PodRow>::iterator row);

  const Shard shard_;
  const std::vector<std::string> scheduler_names_;
  const std::string reservation_namespace_;
  const bool grouping_;
  const MayBeBound may_be_bound_;
  std::map<std::string, Leader> leaders_;
  std::map<std::string, PodRow> pods_;                      // by "namespace/name"
  std::map<std::string, std::set<std::string>> followers_;  // leader -> keys of pods_
  std::set<std::string> staying_;                           // for their bindings; keys of pods_
  // The labelled objects that the core has: kind and "namespace/name" -> uid.
  std::map<std::pair<model::Kind, std::string>, std::string> passed_;
};

}  // namespace fairlead::core
