// Room on the nodes that there are for a part of a step, so that nodes are demanded for the other
// pods alone. What is promised here lasts until it is taken back or this goes, so that no other
// step counts on it.
//
// Room counts for pods that stand alone: pods on other nodes make no difference to whether they fit
// on a node, nor do they to whether others fit. The others are left out, because the plan for the
// rest of the step does not know where those have their places (for pods with bonds,
// model/pod_terms.h, the hook looks for room itself). A step that is bound to one domain of a
// topology has room in one domain; rules inside of rules would need a domain for each set that also
// suits the one around it.
//
// Ownership: borrows the inputs of a cycle. Thread-safety: the owner's thread; nothing else may
// change the state while promises last. Complexity: the Placer's for each pod, at most kMaxWork
// filter evaluations in all: steps that come later have no room.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/engine/cycle_context.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/engine/outcome.h"

namespace fairlead::engine {

class PresentRoom {
 public:
  static constexpr uint64_t kMaxWork = 4'000'000;

  explicit PresentRoom(const CycleInputs& inputs) : in_(inputs) {}

  // Promises places to some of the step's pods; returns the others. None: no pod has one, or all
  // have.
  std::optional<std::vector<state::PodId>> Promise(const Outcome& outcome);
  // The same in the domain on offer in which most of them have one, for a step that is bound to it.
  std::optional<Outcome::Room> PromiseInDomain(const Outcome& outcome);

  using Mark = std::optional<Hypothesis::Checkpoint>;
  [[nodiscard]] Mark mark() const;
  void RollbackTo(const Mark& mark);
  // Takes back everything.
  void Clear() { present_.reset(); }

 private:
  // Opens `present_`. False: there is no room for a part of it.
  bool Begin(const Outcome& outcome);
  [[nodiscard]] bool StandsAlone(state::PodId pod);
  [[nodiscard]] bool ClassStandsAlone(state::PodClassId pod_class);
  // Nodes with these values of the labels of the rule are on offer.
  [[nodiscard]] bool IsOnOffer(const verdict::DomainRule& rule,
                               const std::vector<std::string>& values) const;

  const CycleInputs& in_;
  std::optional<Hypothesis> present_;
  std::map<state::PodClassId, bool> alone_;  // ClassStandsAlone()
  uint64_t work_ = 0;
};

}  // namespace fairlead::engine
