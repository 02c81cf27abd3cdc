// Why no node takes a pod of one class: what each node answers, and equal answers counted.
//
// Every real and usable node is asked: whether it takes the pod now, or if it were empty if none of
// them may hold a pod of the class whatever is on it. What each has answered is kept, so that after
// a change only the nodes that changed are asked again: many classes may wait in a full cluster in
// which one pod ends after another.
//
// Ownership: borrows all. Thread-safety: the owner's thread. Complexity: AskAll() O(nodes *
// filters), Renew() O(filters), diagnosis() O(reasons) after a change, and O(nodes) if the node
// that lacked least has changed. Memory: 4 bytes a node, and 8 more for each resource that nodes
// lack at once, until DropAnswers().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::engine {

struct Diagnosis {
  std::vector<verdict::FailedPredicate> predicates;  // most nodes first, then by text
  int64_t nodes = 0;
  int64_t nodes_fit_empty = 0;  // how many of them would take it if they were empty
  // Only a change of a node's object can change any of this.
  bool by_objects = false;
  friend bool operator==(const Diagnosis&, const Diagnosis&) = default;
};

class ClassDiagnosis {
 public:
  // Valid as long as the class.
  ClassDiagnosis(const state::ClusterState& state, const framework::Framework& framework,
                 state::PodClassId pod_class);

  void AskAll();
  // Asks one node again, which may be new or gone; after AskAll(). All, if the others answer to
  // another question now.
  void Renew(state::NodeId node);
  // True if Renew() of each node that has changed brings it up to date: what a node answers does
  // not depend on other nodes.
  [[nodiscard]] bool Renewable() const { return node_local_ && !answers_.empty(); }
  // From now on diagnosis() alone may be called, and AskAll().
  void DropAnswers();
  // Of the answers.
  [[nodiscard]] size_t bytes() const {
    return answers_.capacity() * sizeof(Answer) + amounts_.capacity() * sizeof(int64_t);
  }

  // As of the last call of the above.
  const Diagnosis& diagnosis();

 private:
  // The place of its tally in tallies_, plus one (0: it takes the pod), and flags.
  struct Answer {
    static constexpr uint32_t kAsked = 1U << 31, kMayHold = 1U << 30, kFitsEmpty = 1U << 29;
    uint32_t bits = 0;
    [[nodiscard]] bool Has(uint32_t flag) const { return (bits & flag) != 0; }
    [[nodiscard]] uint32_t tally() const { return bits & (kFitsEmpty - 1); }
  };
  // Nodes that refuse for one reason, and lack the same resources.
  struct Tally {
    absl::string_view plugin;
    std::string reason, detail;
    std::vector<model::ResourceIndex> missing;
    int64_t nodes = 0;
    std::vector<int64_t> smallest;  // that is missing on one of them, of each
    bool stale = false;             // `smallest` is to be found again
    [[nodiscard]] bool Is(const framework::Status& why) const;
  };

  [[nodiscard]] bool IsAsked(state::NodeId node) const;
  [[nodiscard]] bool MayHold(const state::NodeInfo& node) const;
  [[nodiscard]] framework::Context In(framework::Capacity capacity) const;
  // What the node says, without and with its reason; counted.
  void Ask(const state::NodeInfo& node, bool may_hold);
  void Count(state::NodeId node, const framework::Status& why);
  void Uncount(state::NodeId node);
  uint32_t TallyOf(const framework::Status& why);
  // Room for so many amounts of each node.
  void Widen(size_t resources);
  void FindSmallest();
  void WriteDiagnosis();

  const state::ClusterState& state_;
  const framework::Framework& framework_;
  const state::PodClassId pod_class_;
  const framework::ClassPlugins plugins_;
  const framework::ClassFilters filters_;
  const bool node_local_;
  bool by_objects_ = false;
  int64_t asked_ = 0, may_hold_ = 0, fit_empty_ = 0;
  std::vector<Answer> answers_;  // by NodeId
  // Of each node, `width_` of them: how much it lacks of the resources of its tally.
  std::vector<int64_t> amounts_;
  size_t width_ = 0;
  std::vector<Tally> tallies_;
  absl::flat_hash_map<std::string, uint32_t> tally_of_;  // by all that Tally::Is() compares
  uint32_t last_tally_ = 0;
  bool dirty_ = true;
  Diagnosis diagnosis_;
};

}  // namespace fairlead::engine
