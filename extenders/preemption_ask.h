// One ask of the extenders whether pods may be evicted for another: kube-scheduler's
// Evaluator.callExtenders (k8s.io/kubernetes/pkg/scheduler/framework/preemption).
//
// The extenders that have a preemptVerb are called one after the other, each about the nodes that
// are left. A node is left if the answer names it with the very pods that were asked about: an
// extender that wants other victims refuses the node. An error fails the ask, unless the extender
// is ignorable.
//
// Ownership: its own calls hold the ask, and the ask what it calls. Thread-safety: one call at a
// time is open. Complexity: O(bytes of the messages + victims log victims). An extender without
// a node cache is sent the victims themselves: they are read one after another.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "extenders/ask_state.h"
#include "extenders/endpoint.h"

namespace fairlead::extenders {

class PreemptionAsk : private AskState, public std::enable_shared_from_this<PreemptionAsk> {
 public:
  using AskState::AskState;
  void Start();

 private:
  [[nodiscard]] bool NeedsPods() const;
  // Reads the victim at that place, and what comes behind it.
  void ReadVictims(size_t node, size_t victim);
  void CallNext();
  void OnAnswer(int32_t position, const absl::StatusOr<std::string>& body);
  [[nodiscard]] absl::Status TakeVictims(const Endpoint& endpoint,
                                         const absl::StatusOr<std::string>& body);
  [[nodiscard]] std::string ArgsFor(const Endpoint& endpoint) const;
  [[nodiscard]] size_t BytesFor(const Endpoint& endpoint) const;

  std::string pod_;                              // its text
  std::vector<std::vector<std::string>> texts_;  // of the victims; empty if none needs them
};

}  // namespace fairlead::extenders
