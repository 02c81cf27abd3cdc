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
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "extenders/api_reader.h"
#include "extenders/client.h"
#include "extenders/endpoint.h"
#include "extenders/wire.h"
#include "scheduler/model/action.h"
#include "scheduler/model/node_answers.h"

namespace fairlead::extenders {

class PreemptionAsk : public std::enable_shared_from_this<PreemptionAsk> {
 public:
  // The positions in the action are valid. `done` is called once.
  PreemptionAsk(std::shared_ptr<const std::vector<Endpoint>> endpoints,
                std::shared_ptr<ApiReader> reader, model::AskExtenders action,
                std::function<void(Answer)> done);
  void Start();

 private:
  [[nodiscard]] const Endpoint& At(int32_t position) const {
    return (*endpoints_)[static_cast<size_t>(position)];
  }
  [[nodiscard]] bool NeedsPods() const;
  // Reads the victim at that place, and what comes behind it.
  void ReadVictims(size_t node, size_t victim);
  void CallNext();
  void OnAnswer(int32_t position, const absl::StatusOr<std::string>& body);
  [[nodiscard]] absl::Status TakeVictims(const Endpoint& endpoint,
                                         const absl::StatusOr<std::string>& body);
  [[nodiscard]] std::string ArgsFor(const Endpoint& endpoint) const;
  [[nodiscard]] size_t BytesFor(const Endpoint& endpoint) const;
  void Refuse(size_t node, std::string reason);
  void Fail(const absl::Status& status, int32_t extender = -1);
  void Succeed();

  const std::shared_ptr<const std::vector<Endpoint>> endpoints_;
  const std::shared_ptr<ApiReader> reader_;
  const model::AskExtenders action_;
  std::function<void(Answer)> done_;

  std::string pod_;                              // its text
  std::vector<std::vector<std::string>> texts_;  // of the victims; empty if none needs them
  AskedNodes asked_;
  std::vector<model::NodeAnswer> answers_;  // of the nodes by position
  size_t next_ = 0;                         // the extender to call, by index in action_.extenders
};

}  // namespace fairlead::extenders
