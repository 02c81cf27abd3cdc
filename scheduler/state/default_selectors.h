// The pods that belong together by the Services and controllers of their namespace: the selector by
// which default constraints of topology spread count pods.
//
// The selector of a pod is the labels of the selectors of all Services that select the pod, and the
// selector of its controller: the labels of a ReplicationController replace those of Services, the
// requirements of a ReplicaSet or a StatefulSet are added. Source: k8s.io/kubernetes
// pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
//
// Pods with equal labels and one controller form a group, which has one selector. A group counts,
// for each of its labels, the different selectors of Services that select the group and name the
// label, so a Service that goes costs no look at the others.
//
// Ownership: keeps copies. Thread-safety: none. Complexity: a Service or a controller costs
// O(groups of its namespace) label lookups, and the pods whose selector may be another one now are
// the result; a pod of a new group costs the Services that are filed under one of its labels, at
// most those of its namespace; any other pod O(its labels).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/kind.h"
#include "scheduler/model/object_meta.h"
#include "scheduler/model/selector.h"
#include "scheduler/model/spread_sources.h"
#include "scheduler/state/ids.h"

namespace fairlead::state {

// What a pod's selector depends on.
struct SpreadGroupKey {
  std::string ns;
  model::StringMap labels;
  // Of its controller, if that is a ReplicationController, ReplicaSet or StatefulSet; without a
  // name otherwise. By name alone, as upstream.
  model::Kind controller_kind = model::Kind::kReplicaSet;
  std::string controller;
  friend bool operator==(const SpreadGroupKey&, const SpreadGroupKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const SpreadGroupKey& k) {
    return H::combine(std::move(h), k.ns, k.labels, k.controller_kind, k.controller);
  }
};
SpreadGroupKey SpreadGroupOf(const model::ObjectMeta& pod);

class DefaultSelectors {
 public:
  // Returns the pods whose selector may be another one now, in the order of ids.
  std::vector<PodId> Upsert(const model::SpreadSource& object);
  std::vector<PodId> Remove(model::Kind kind, absl::string_view ns, absl::string_view name);

  // Of pods with this key; `none` if no object says anything about them.
  [[nodiscard]] model::LabelSelector SelectorOf(const SpreadGroupKey& key) const;
  // Of a pod that was filed.
  [[nodiscard]] model::LabelSelector SelectorOf(PodId pod) const;

  // From now on the pod is among those that Upsert() and Remove() return. Replaces its former key.
  void File(PodId pod, SpreadGroupKey key);
  void Drop(PodId pod);
  // Null if the pod is not filed.
  [[nodiscard]] const SpreadGroupKey* KeyOf(PodId pod) const;
  [[nodiscard]] size_t pod_count() const { return group_of_.size(); }

  // The first difference between what is counted and a count by the definition, or empty.
  [[nodiscard]] std::string CheckConsistency() const;

 private:
  using Label = std::pair<std::string, std::string>;
  using Pods = absl::btree_set<PodId>;
  struct Group {
    SpreadGroupKey key;
    std::vector<uint32_t> counts;  // by the position of the label
    Pods pods;
  };
  using Groups = absl::btree_set<uint32_t>;
  struct Filed {
    size_t services = 0;  // that have the selector
    Label under;          // the one of its labels that had the fewest selectors then
  };
  struct Namespace {
    // By name. Services without a label to select by are left out.
    absl::flat_hash_map<std::string, model::StringMap> services;
    // The different selectors of these.
    absl::flat_hash_map<model::StringMap, Filed> selectors;
    // By the label that a selector is filed under.
    absl::flat_hash_map<Label, std::vector<model::StringMap>> by_label;
    absl::btree_map<std::pair<model::Kind, std::string>, model::LabelSelector> controllers;
    Groups groups;
    [[nodiscard]] bool IsEmpty() const {
      return services.empty() && controllers.empty() && groups.empty();
    }
  };
  using Namespaces = absl::node_hash_map<std::string, Namespace>;

  // An empty selector: the Service is gone, or selects by nothing. `touched` gets the pods whose
  // selector may be another one now.
  void SetService(Namespace& ns, const std::string& name, const model::StringMap& selector,
                  Pods& touched);
  void AddSelector(Namespace& ns, const model::StringMap& selector, Pods& touched);
  void DropSelector(Namespace& ns, const model::StringMap& selector, Pods& touched);
  void CountInGroups(const Namespace& ns, const model::StringMap& selector, bool add,
                     Pods& touched);
  // `none`: the controller is gone, or has no selector.
  void SetController(Namespace& ns, model::Kind kind, const std::string& name,
                     const model::LabelSelector& selector, Pods& touched);
  // By the position of the label.
  [[nodiscard]] std::vector<uint32_t> Count(const SpreadGroupKey& key) const;
  [[nodiscard]] model::LabelSelector Compose(const SpreadGroupKey& key,
                                             const std::vector<uint32_t>& counts) const;
  [[nodiscard]] const Namespace* Find(absl::string_view ns) const;
  void ForgetIfEmpty(absl::string_view ns);

  Namespaces namespaces_;
  std::deque<Group> groups_;
  std::vector<uint32_t> free_groups_;
  absl::flat_hash_map<SpreadGroupKey, uint32_t> group_index_;
  absl::flat_hash_map<PodId, uint32_t> group_of_;
};

}  // namespace fairlead::state
