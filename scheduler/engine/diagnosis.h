// Why no node takes a pod of a class, remembered for each class that was asked about
// (class_diagnosis.h) and brought up to date when it is asked again: by the nodes that have changed
// since, where each answers for itself, or by all of them. What no node could take even if it were
// empty changes with the objects of nodes alone.
//
// Classes go with their last pod, and what names a claim when the claim changes.
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
  // Both this and `changes` are to be subscribed by the owner.
  Diagnoser(const state::ClusterState& state, const framework::Framework& framework,
            const NodeChanges& changes)
      : state_(state), framework_(framework), changes_(changes) {}
  // Valid until the next change.
  const Diagnosis& For(state::PodClassId pod_class);

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
    uint64_t seen = 0;  // NodeChanges::end() then
    size_t bytes = 0;   // counted in bytes_
  };
  void Drop(state::PodClassId pod_class);
  [[nodiscard]] bool IsCurrent(Cached& cached) const;
  // Asks again what may have changed.
  void CatchUp(Cached& cached);

  const state::ClusterState& state_;
  const framework::Framework& framework_;
  const NodeChanges& changes_;
  absl::flat_hash_map<state::PodClassId, std::unique_ptr<Cached>> cache_;
  size_t bytes_ = 0;  // of answers
};

}  // namespace fairlead::engine
