// Counters of pods by topology domain: how many pods that a term selects, or that have a term, are
// in each domain. Plugins that look at other nodes (affinity, spread) ask them instead of counting
// the cluster again after each placement.
//
// A PodSet is the pods on nodes that belong together: those that a list of terms selects
// (Selected), or those whose spec has a term (ForEachOwner). It knows how many are on each node, by
// how they count (PodTally). A DomainCounter adds a set up by the domains of one topology key;
// other sums over a set (only some nodes, say) are SetViews.
//
// All of it follows the state's change log: a pod that moves, or changes its labels, is taken off
// where it was added and added where it is now; what was added for a node whose label changes moves
// with the node. So undo is exact without code for it (Transaction tells its entries backwards).
// CheckConsistency() compares everything with a count from the rows.
//
// Bounds: sets and keys that are not asked about any more, and terms that no pod on a node has, are
// dropped when they outnumber the others.
//
// Ownership: borrows the state, which has to outlive it, or its last call. Thread-safety: the
// state's. Complexity: a pod that moves costs a look-up for each of its labels, and O(1) for each
// set that it is in; a new set O(pods), a new key O(nodes). A node that changes costs O(keys), and
// each view that is asked later one look at the node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "scheduler/framework/topology_key.h"
#include "scheduler/model/pod_terms.h"
#include "scheduler/state/change_log.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::framework {

// Pods by how they count on their node.
struct PodTally {
  int64_t settled = 0;    // kBinding, kBound, kRunning
  int64_t releasing = 0;  // kReleasing
  int64_t stuck = 0;      // kStuckInReleasing: terminating, and nothing says that it will be gone
  int64_t promised = 0;   // kPipelined
  // On the node now.
  [[nodiscard]] int64_t Holding() const { return settled + releasing + stuck; }
  // There when what terminates is gone (state::IsAllocated).
  [[nodiscard]] int64_t Staying() const { return settled + stuck + promised; }
  // The same without those that terminate.
  [[nodiscard]] int64_t Living() const { return settled + promised; }
  // Pods that others may be attracted by: a promised one attracts none before it is there.
  [[nodiscard]] int64_t Attracting(Capacity capacity) const {
    return capacity == Capacity::kNow ? Holding() : capacity == Capacity::kFuture ? Staying() : 0;
  }
  // Pods that may keep others away. A terminating pod does not if others may wait for its end, and
  // an empty node has none.
  [[nodiscard]] int64_t InTheWay(Capacity capacity) const {
    return capacity == Capacity::kNow      ? Holding() + promised
           : capacity == Capacity::kFuture ? Staying()
                                           : 0;
  }
  [[nodiscard]] bool IsZero() const {
    return settled == 0 && releasing == 0 && stuck == 0 && promised == 0;
  }
  PodTally& operator+=(const PodTally& o) {
    settled += o.settled;
    releasing += o.releasing;
    stuck += o.stuck;
    promised += o.promised;
    return *this;
  }
  PodTally& operator-=(const PodTally& o) {
    settled -= o.settled;
    releasing -= o.releasing;
    stuck -= o.stuck;
    promised -= o.promised;
    return *this;
  }
  friend bool operator==(const PodTally&, const PodTally&) = default;
};

// What one pod of that status counts; nothing if it is on no node.
PodTally TallyOf(state::PodStatus status);

// The nodes whose object or existence changed lately, in order; one may be there often. A view
// keeps the number of those that it has seen, and looks at the others when it is asked: a node
// which comes and goes between two questions costs it one look.
class NodeChanges {
 public:
  [[nodiscard]] uint64_t count() const { return dropped_ + nodes_.size(); }
  // Whether all those after the first `seen` are there still; if not, any node may have changed.
  [[nodiscard]] bool HaveSince(uint64_t seen) const { return seen >= dropped_; }
  [[nodiscard]] absl::Span<const state::NodeId> Since(uint64_t seen) const {
    return absl::MakeConstSpan(nodes_).subspan(seen - dropped_);
  }

  // At most `kept` are kept.
  void Add(state::NodeId node, size_t kept) {
    if (nodes_.size() >= kept) {
      dropped_ += nodes_.size();
      nodes_.clear();
    }
    nodes_.push_back(node);
  }

 private:
  std::vector<state::NodeId> nodes_;
  uint64_t dropped_ = 0;
};

// A sum over the nodes of a PodSet.
class SetView {
 public:
  virtual ~SetView() = default;
  // The set grew on the node by the difference of these two.
  virtual void OnTally(state::NodeId node, const PodTally& added, const PodTally& taken) = 0;
  // The first difference from a recount, or empty.
  [[nodiscard]] virtual std::string CheckConsistency() = 0;
};

class PodSet;

// A PodSet by the domains of one key.
class DomainCounter {
 public:
  DomainCounter(const PodSet& set, std::shared_ptr<TopologyKey> key);
  [[nodiscard]] const TopologyKey& key() const { return *key_; }
  // Zero where nothing is.
  [[nodiscard]] PodTally In(DomainId domain) const {
    const auto it = domains_.find(domain);
    return it == domains_.end() ? PodTally{} : it->second;
  }
  // Pods on nodes that have the key.
  [[nodiscard]] const PodTally& all() const { return all_; }
  // The domains where it is not zero; in no order that a decision may use.
  [[nodiscard]] const absl::flat_hash_map<DomainId, PodTally>& domains() const { return domains_; }
  // Grows with any change.
  [[nodiscard]] uint64_t version() const { return version_; }

 private:
  friend class DomainCounters;
  friend class PodSet;
  void Add(state::NodeId node, const PodTally& added, const PodTally& taken);
  void Change(DomainId domain, const PodTally& added, const PodTally& taken);

  const PodSet& set_;
  const std::shared_ptr<TopologyKey> key_;
  absl::flat_hash_map<DomainId, PodTally> domains_;
  PodTally all_;
  uint64_t version_ = 1;
};

// A required or preferred term, with the namespace of the pods that have it.
struct OwnedTerm {
  std::string ns;
  model::PodAffinityTerm term;
  friend bool operator==(const OwnedTerm&, const OwnedTerm&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const OwnedTerm& t) {
    return H::combine(std::move(h), t.ns, t.term);
  }
};

class PodSet {
 public:
  explicit PodSet(std::vector<OwnedTerm> terms) : terms_(std::move(terms)) {}
  PodSet(const PodSet&) = delete;
  PodSet& operator=(const PodSet&) = delete;
  [[nodiscard]] const std::vector<OwnedTerm>& terms() const { return terms_; }
  [[nodiscard]] PodTally On(state::NodeId node) const {
    const auto it = nodes_.find(node);
    return it == nodes_.end() ? PodTally{} : it->second;
  }
  [[nodiscard]] bool IsEmpty() const { return nodes_.empty(); }
  // Not owned; told from now on. Remove() may follow at any time before the set goes.
  void AddView(SetView* view) { views_.push_back(view); }
  void RemoveView(SetView* view);

 private:
  friend class DomainCounters;
  friend class DomainCounter;
  void Change(state::NodeId node, const PodTally& added, const PodTally& taken);
  // The counter for that key; it lives as long as the set.
  const DomainCounter& CounterFor(const std::shared_ptr<TopologyKey>& key);

  const std::vector<OwnedTerm> terms_;
  absl::flat_hash_map<state::NodeId, PodTally> nodes_;
  std::vector<std::unique_ptr<DomainCounter>> counters_;
  std::vector<SetView*> views_;
};

// Finds the sets whose terms could select given labels without looking at all of them: each is
// filed under the values of one requirement that has to hold.
class TermIndex {
 public:
  void Add(PodSet* set);
  void Remove(PodSet* set);
  [[nodiscard]] bool empty() const { return by_value_.empty() && others_.empty(); }
  // Each candidate once; whether its terms select is the caller's question.
  void ForEach(const model::StringMap& labels, absl::FunctionRef<void(PodSet*)> use) const;

 private:
  using Keys = std::vector<std::pair<std::string, std::string>>;
  static Keys KeysOf(const PodSet& set);
  // Labels are looked up without a copy: by anything with a key `first` and a value `second`.
  struct LabelHash {
    using is_transparent = void;
    template <typename Label>
    size_t operator()(const Label& label) const {
      return absl::HashOf(absl::string_view(label.first), absl::string_view(label.second));
    }
  };
  struct LabelEqual {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return a.first == b.first && a.second == b.second;
    }
  };
  absl::flat_hash_map<std::pair<std::string, std::string>, std::vector<PodSet*>, LabelHash,
                      LabelEqual>
      by_value_;
  std::vector<PodSet*> others_;  // without such a requirement
};

class DomainCounters final : public state::StateSubscriber {
 public:
  // Counts what is there. To be subscribed by its owner, at once; a snapshot otherwise.
  explicit DomainCounters(const state::ClusterState& state);
  ~DomainCounters() override;
  [[nodiscard]] const state::ClusterState& state() const { return state_; }
  // For views; the keys know of all of them.
  [[nodiscard]] const NodeChanges& node_changes() const { return node_changes_; }

  std::shared_ptr<TopologyKey> Key(const std::string& name);
  // Pods that every one of the terms selects (model::Selection::kYes). Topology keys and weights of
  // the terms do not matter.
  std::shared_ptr<PodSet> Selected(std::vector<OwnedTerm> terms);
  const DomainCounter& By(PodSet& set, const std::string& key) { return set.CounterFor(Key(key)); }

  // The terms of pods on nodes that select (or may select) pods in `ns` with these labels. Sets are
  // valid until owners_version() changes; some may be empty.
  enum class TermKind : uint8_t { kAffinity, kAntiAffinity };
  void ForEachOwner(const std::string& ns, const model::StringMap& labels,
                    absl::FunctionRef<void(TermKind, model::Selection, PodSet&)> use);
  // Grows when a term comes or goes.
  [[nodiscard]] uint64_t owners_version() const { return owners_version_; }

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override;
  [[nodiscard]] std::string CheckConsistency() const;
  // Sets that are kept, of both kinds. For tests of the bound.
  [[nodiscard]] size_t set_count() const { return selected_.size() + owners_.size(); }

 private:
  struct OwnerKey {
    TermKind kind;
    OwnedTerm term;
    friend bool operator==(const OwnerKey&, const OwnerKey&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const OwnerKey& k) {
      return H::combine(std::move(h), k.kind, k.term);
    }
  };
  // What a class's pods have; kept while any of them is on a node.
  struct OwnerClass {
    std::shared_ptr<const model::PodSpec> spec;  // its address is the key
    std::vector<PodSet*> sets;                   // one for each term
    int64_t pods = 0;                            // on nodes
  };

  void CountPod(const state::PodRecord& pod, state::NodeId from, const PodTally& taken,
                state::NodeId to, const PodTally& added);
  void CountOwner(const state::PodRecord& pod, state::NodeId from, const PodTally& taken,
                  state::NodeId to, const PodTally& added);
  void CountSelected(const state::PodRecord& pod, state::NodeId from, const PodTally& taken,
                     state::NodeId to, const PodTally& added);
  OwnerClass& OwnerClassOf(const std::shared_ptr<const model::PodSpec>& spec);
  PodSet* Owner(TermKind kind, const std::string& ns, const model::PodAffinityTerm& term);
  void OnNodeObject(state::NodeId node);
  template <typename F>
  void ForEachSet(F f) const;
  void ForgetSets();
  void ForgetOwners();
  void ForgetKeys();
  [[nodiscard]] std::string CheckSet(
      const PodSet& set, const absl::flat_hash_map<state::NodeId, PodTally>& nodes) const;

  const state::ClusterState& state_;
  NodeChanges node_changes_;
  absl::flat_hash_map<std::string, std::shared_ptr<TopologyKey>> keys_;
  absl::flat_hash_map<std::vector<OwnedTerm>, std::shared_ptr<PodSet>> selected_;
  TermIndex selecting_;
  absl::flat_hash_map<OwnerKey, std::unique_ptr<PodSet>> owners_;
  TermIndex affinity_owners_, anti_affinity_owners_;
  absl::flat_hash_map<const model::PodSpec*, OwnerClass> owner_classes_;
  uint64_t owners_version_ = 1;
  size_t sets_after_cleaning_ = 0, owners_after_cleaning_ = 0, keys_after_cleaning_ = 0;
};

}  // namespace fairlead::framework
