// "Does it fit?": the one class that answers, about the cluster as it is and as it could be.
//
//   Feasibility  The questions. They are put to the framework's own filters over ClusterState as it
//                stands, so what a Hypothesis has changed is part of every answer.
//   Hypothesis   The changes: nodes that do not exist, pods on them, pods moved, evicted or gone.
//                They are rows of the state until the Hypothesis is dropped or rolled back
//                (state/transaction.h), so filters, plugins and the accounting of devices, shares,
//                ports and claims run on them unchanged. What the change log counts counts them.
//
// Users: the Placer and NodeFits (does a pod fit here), ClassDiagnosis (may it fit at all),
// VictimSearch (would it fit if these were gone), Reservations (when would it fit), and the hook's
// planner through Engine::WhatIf() and Engine::CountThatFit() (would it fit on nodes to be bought).
//
// Hypotheses nest: any number may be open, each is dropped before the one that it was opened in
// goes on. They do not stand side by side, because plugins read one ClusterState: copies of its
// rows for each would cost every reader an indirection, and no user compares two open ones.
//
// What the hook asks is decided as for nodes on order: pods are promised capacity
// (Capacity::kFuture), and promised pods attract and repel others as the next cycle will see it.
//
// Why in the engine and not in state: the rows and their undo are pure state and stay there; the
// questions need the framework.
//
// Ownership: borrows all. Thread-safety: the owner's thread; no event may be applied while one is
// open. Complexity: opening and dropping O(1) and what was changed; a node added O(labels +
// resources), a pod placed O(filters).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/parts.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {

class Feasibility {
 public:
  Feasibility(const state::ClusterState& state, const framework::Framework& framework)
      : state_(state), framework_(framework) {}

  // May a pod of the class go to the node now, or, by `capacity`, when promises are kept, or if
  // nothing were on it? False for a node that does not exist. `why` may be null; it is filled if
  // not.
  bool Fits(state::PodClassId pod_class, state::NodeId node, framework::Capacity capacity,
            framework::Status* why = nullptr) const;
  // Whether the node's object (labels, taints, conditions) suits the class, whatever is on it.
  [[nodiscard]] bool Suits(state::PodClassId pod_class, state::NodeId node) const;
  // How much the class likes each of the nodes, on all of which it fits, when promises are kept:
  // what decides between them.
  [[nodiscard]] std::vector<int64_t> ScoresOf(state::PodClassId pod_class,
                                              absl::Span<const state::NodeId> nodes) const;
  // The place of the one that it likes best, the first of equals. There has to be one.
  [[nodiscard]] size_t BestOf(state::PodClassId pod_class,
                              absl::Span<const state::NodeId> nodes) const {
    const std::vector<int64_t> scores = ScoresOf(pod_class, nodes);
    return static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  }
  // Other nodes alone are why the node takes no pod of the class when all promises are kept: what
  // it has and what is on it would do. Then every node refuses that is as well placed among the
  // others (DomainLabels).
  [[nodiscard]] bool OthersRefuse(state::PodClassId pod_class, state::NodeId node) const;
  // Whatever other nodes have to say about a node, they say of each with the same values of these
  // labels, host names aside, if nothing is on it yet. Ascending. None: not known, by more than
  // labels. As the cluster is.
  [[nodiscard]] std::optional<std::vector<std::string>> DomainLabels(
      state::PodClassId pod_class) const;
  // No more pods of the class than this find room on the node when all promises are kept, at most
  // `limit`: by the node's object and by amounts alone. What pods do to each other is not asked, so
  // it is a bound from above for pods that come together, too. O(resources + parts).
  [[nodiscard]] int64_t MostThatFit(state::PodClassId pod_class, state::NodeId node,
                                    int64_t limit) const;
  // The same of a node whose object suits the class.
  [[nodiscard]] int64_t MostByAmounts(state::PodClassId pod_class, state::NodeId node,
                                      int64_t limit) const;
  // False if the node takes no pod of the class whatever is on it: its object does not suit, or it
  // has less than one pod requests of some resource that is in its object alone. The answer holds
  // until its object changes. `plugins`: those of the framework that look at the class.
  [[nodiscard]] static bool MayHold(const framework::Framework& framework,
                                    const framework::ClassPlugins& plugins,
                                    const framework::Context& context, const state::NodeInfo& node);
  // Framework::ChecksAmountOf().
  [[nodiscard]] bool ChecksAmountOf(model::ResourceIndex resource) const {
    return framework_.ChecksAmountOf(state_, resource);
  }
  [[nodiscard]] const framework::Framework& framework() const { return framework_; }

 private:
  const state::ClusterState& state_;
  const framework::Framework& framework_;
};

class Hypothesis : public Feasibility {
 public:
  using Checkpoint = state::Transaction::Checkpoint;
  static constexpr framework::Capacity kPromised = framework::Capacity::kFuture;

  // About the state as it is. `order`: of the parts that pods take (state/parts.h).
  Hypothesis(state::ClusterState& state, const framework::Framework& framework,
             state::PartsOrder order);
  // Goes on in a transaction that is open.
  Hypothesis(state::Transaction& txn, state::ClusterState& state,
             const framework::Framework& framework, state::PartsOrder order);
  // Drops what was not kept.
  ~Hypothesis();
  Hypothesis(const Hypothesis&) = delete;
  Hypothesis& operator=(const Hypothesis&) = delete;

  // ---- changes
  // A node like this that exists only here.
  state::NodeId AddNode(const model::Node& node);
  // The class of a spec that perhaps no pod has. Valid until it is rolled back. O(1) if it is known
  // by its address, else O(spec).
  state::PodClassId ClassOf(const std::shared_ptr<const model::PodSpec>& spec);
  // As many pods of the class as fit there, one after another, at most `count`. They stay; their
  // number. Labels: state::Transaction::AddPod().
  int64_t Place(state::PodClassId pod_class, state::NodeId node, int64_t count);
  // A pod that waits, or was evicted or removed here, is promised a place; false, and nothing is
  // changed, if it does not fit.
  bool Promise(state::PodId pod, state::NodeId node);
  void Evict(state::PodId pod) { txn_.Evict(pod); }
  // As if it had ended.
  void Remove(state::PodId pod) { txn_.Remove(pod); }

  [[nodiscard]] Checkpoint Mark() const { return txn_.Mark(); }
  void RollbackTo(Checkpoint mark);
  // Back to how it was opened.
  void Clear() { RollbackTo(start_); }
  // Of one that goes on in a transaction: its changes belong to that from now on.
  void Keep() { start_ = txn_.Mark(); }
  // For the Placer.
  [[nodiscard]] state::Transaction& transaction() { return txn_; }

  // ---- questions that need a try
  // How many pods of the class fit there one after another, at most `limit`.
  int64_t HowManyFit(state::PodClassId pod_class, state::NodeId node, int64_t limit);
  // Where the scheduler would place a pod of the class if every node could be used at once, also
  // those that are on order and those that were added here, but for those that `passed_over` is
  // true for; kNoId: it fits nowhere. None: each node has to be asked about (NodeOrders::BestFor).
  // `work` grows by the filter evaluations made. Complexity: NodeOrders'; the first call for a
  // class looks at all nodes.
  std::optional<state::NodeId> BestNode(state::PodClassId pod_class, uint64_t& work,
                                        absl::FunctionRef<bool(state::NodeId)> passed_over);
  // The first difference of what BestNode() remembers from a look at the nodes, or empty.
  [[nodiscard]] std::string CheckConsistency() const;

 private:
  struct Orders;

  state::ClusterState& state_;
  const state::PartsOrder order_;
  std::optional<state::Transaction> own_;
  state::Transaction& txn_;
  Checkpoint start_;
  // Classes that were asked for, and the length of the transaction before each.
  struct Known {
    std::shared_ptr<const model::PodSpec> spec;
    Checkpoint mark;
  };
  std::vector<Known> known_;
  absl::flat_hash_map<const model::PodSpec*, state::PodClassId> classes_;  // of `known_`
  std::unique_ptr<Orders> orders_;  // null: BestNode() was not called
};

}  // namespace fairlead::engine
