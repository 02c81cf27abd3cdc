// Why no node takes a pod of a class, remembered for each class that was asked about
// (class_diagnosis.h) and brought up to date when it is asked again: by the nodes that have changed
// since, where each answers for itself, or by all of them. What no node could take even if it were
// empty changes with the objects of nodes alone.
//
// Classes go with their last pod, and what names a claim when the claim changes.
//
// A cycle asks about so many nodes again as it may (kMaxAsksAgain): beyond it a diagnosis is told
// as it was when it was last up to date, and renewed in one of the next cycles. No class is renewed
// again before those that the last cycle left behind. A class that is new is asked about in any
// case; the walk over all that waits bounds how many there are in a cycle (walk_budget.h).
//
// Thread-safety: the owner's thread. Complexity: O(nodes) for a class that is new, O(changed nodes)
// later; O(nodes) after each change beyond kMaxAnswerBytes. Memory: kMaxAnswerBytes of answers, and
// a Diagnosis for each of kMaxClasses.
#pragma once

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "scheduler/engine/class_diagnosis.h"
#include "scheduler/engine/node_changes.h"
#include "scheduler/framework/framework.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

class Diagnoser final : public state::StateSubscriber {
 public:
  static constexpr uint64_t kMaxAsksAgain = 4'000'000;

  // Both this and `changes` are to be subscribed by the owner.
  Diagnoser(const state::ClusterState& state, const framework::Framework& framework,
            const NodeChanges& changes, uint64_t max_asks_again = kMaxAsksAgain)
      : state_(state), framework_(framework), changes_(changes), max_asks_again_(max_asks_again) {}
  // At the beginning of a cycle.
  void Begin();
  // Valid until the next change.
  const Diagnosis& For(state::PodClassId pod_class);

  // Since Begin() some diagnosis was told that is not up to date.
  [[nodiscard]] bool lagging() const { return lagging_; }

  void OnChange(const state::StateChange& change) override;
  [[nodiscard]] state::ChangeKinds Kinds() const override;
  // What is remembered and up to date, against all nodes asked again; the first difference, or
  // empty. O(classes * nodes).
  [[nodiscard]] std::string CheckConsistency() const;

 private:
  static constexpr size_t kMaxClasses = 32'768;
  static constexpr size_t kMaxAnswerBytes = size_t{256} << 20;
  struct Cached {
    ClassDiagnosis of_class;
    uint64_t seen = 0;   // NodeChanges::end() then
    size_t bytes = 0;    // counted in bytes_
    uint64_t round = 0;  // in which it was last brought up to date; 0: never
  };
  void Drop(state::PodClassId pod_class);
  [[nodiscard]] bool IsCurrent(Cached& cached) const;
  // How many nodes have to be asked to bring it up to date.
  [[nodiscard]] uint64_t AsksFor(const Cached& cached) const;
  // Whether it is all of them, and not those that have changed.
  [[nodiscard]] bool AsksAll(const Cached& cached) const;
  // Asks again what may have changed.
  void CatchUp(Cached& cached);

  const state::ClusterState& state_;
  const framework::Framework& framework_;
  const NodeChanges& changes_;
  const uint64_t max_asks_again_;
  absl::flat_hash_map<state::PodClassId, std::unique_ptr<Cached>> cache_;
  size_t bytes_ = 0;  // of answers
  // Of cycles. It goes on while classes are left behind that were not renewed in it.
  uint64_t round_ = 1;
  bool round_goes_on_ = false;  // since an earlier cycle
  bool left_behind_ = false;    // by this cycle
  uint64_t asked_ = 0;          // again, in this cycle
  bool lagging_ = false;
};

}  // namespace fairlead::engine
