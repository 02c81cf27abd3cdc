// The nodes on which an eviction makes room for a waiting pod, the cheapest first: what
// kube-scheduler's DefaultPreemption chooses from (node_victims.h).
//
// kube-scheduler tries a tenth of the nodes anew for every pod. Here what was found out about a
// node is kept for all pods that are alike, until something on that node, about the workloads there
// or about a budget of theirs changes; so the whole cluster is compared, and a pod costs what has
// changed since the one before it. Pods whose filters look at other nodes (required affinity, hard
// spread) are tried anew on kMinPercent of the nodes, and until there are kMinCandidates, from a
// node on that depends on the pod.
//
// A dry run moves pods and takes that back: what subscribers hear of it is true at each moment, and
// this one ignores its own.
//
// Ownership: borrows state and framework. Thread-safety: the owner's thread. Complexity: a change
// costs a number for each node concerned; a question O(nodes) dry runs for what was not asked
// before, then one for each node that changed. Memory: about 150 bytes a node for each of the
// kMaxRows questions asked last.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "scheduler/engine/change_ring.h"
#include "scheduler/engine/node_victims.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class NodePreemption final : public state::StateSubscriber {
 public:
  static constexpr size_t kMaxRows = 32;
  static constexpr int64_t kMinPercent = 10;
  static constexpr int64_t kMinCandidates = 100;

  // `order`: of the parts that pods take.
  NodePreemption(state::ClusterState& state, const framework::Framework& framework,
                 state::PartsOrder order)
      : state_(state), framework_(framework), order_(order) {}

  struct Candidate {
    EvictionCost cost;
    uint64_t name_rank = 0;
    state::NodeId node = state::kNoId;
    friend auto operator<=>(const Candidate&, const Candidate&) = default;
  };
  using Candidates = absl::btree_set<Candidate>;

  // Valid until the next call. `seed` says where to begin for pods that are tried anew. `tried`:
  // node_victims.h.
  const Candidates& CandidatesFor(Hypothesis& what_if, const NodePreemptor& preemptor,
                                  uint64_t seed, uint64_t& tried);

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override;
  // The first difference between what is kept and a dry run, or empty. O(rows * nodes).
  [[nodiscard]] std::string CheckConsistency() const;

 private:
  // What was last found out about a node.
  struct Slot {
    uint64_t at = 0;           // the end of the log then; 0: never looked at
    state::BudgetIds budgets;  // of pods that may be victims
    bool is_candidate = false;
    Candidate candidate;
  };
  struct Row {
    uint64_t seen = 0;  // the first entry of the log that is not
    uint64_t budgets_seen = 0;
    uint64_t last_use = 0;
    std::vector<Slot> by_node;
    Candidates candidates;
  };

  // What was known of a budget when it changed last.
  struct Budget {
    uint64_t change = 0;  // counted
    model::LabelSelector selector;
    bool lets_unhealthy_go = false;
  };
  using Rows = std::map<NodePreemptor, Row>;

  // Of a workload: all nodes that it has pods on when the entry is read.
  struct Entry {
    bool is_workload = false;
    uint32_t id = state::kNoId;
  };

  [[nodiscard]] bool IsOfCluster(state::NodeId node) const;
  void LogNode(state::NodeId node);
  // `f(node, number)` for each node that entries from that number on concern, with the last one of
  // them; perhaps more than once.
  template <typename F>
  void ForEachLogged(uint64_t from, F f) const;
  void OnBudget(state::BudgetId budget);
  void KnowBudgets();
  void ForgetAll();
  void DropOldest();
  // What the node's pods and budgets say of it now, or nothing.
  [[nodiscard]] Slot Look(Hypothesis& what_if, const NodePreemptor& preemptor, state::NodeId node,
                          uint64_t& tried) const;
  void Renew(Hypothesis& what_if, const NodePreemptor& preemptor, Row& row, state::NodeId node,
             uint64_t& tried) const;
  void CatchUp(Hypothesis& what_if, const NodePreemptor& preemptor, Row& row, uint64_t& tried);
  void TryAnew(Hypothesis& what_if, const NodePreemptor& preemptor, uint64_t seed, uint64_t& tried);

  state::ClusterState& state_;
  const framework::Framework& framework_;
  const state::PartsOrder order_;
  Rows rows_;
  Candidates anew_;  // of the last pod that was tried anew
  uint64_t uses_ = 0;
  mutable bool trying_ = false;
  ChangeRing<Entry> log_;  // what rows may be wrong about; nothing while there are no rows
  absl::flat_hash_map<state::BudgetId, Budget> budgets_;
  uint64_t budget_changes_ = 0;
};

}  // namespace fairlead::engine
