// What every ask of extenders has (ask.h, preemption_ask.h): the action, the nodes that are left of
// it, the answers so far, and its end.
//
// Ownership: its own calls hold the ask. Thread-safety: none.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "extenders/api_reader.h"
#include "extenders/client.h"
#include "extenders/endpoint.h"
#include "extenders/wire.h"
#include "scheduler/model/action.h"
#include "scheduler/model/node_answers.h"

namespace fairlead::extenders {

class AskState {
 public:
  // The positions in the action are valid. `done` is called once.
  AskState(std::shared_ptr<const std::vector<Endpoint>> endpoints,
           std::shared_ptr<ApiReader> reader, model::AskExtenders action,
           std::function<void(Answer)> done);

 protected:
  ~AskState() = default;

  [[nodiscard]] const Endpoint& At(int32_t position) const {
    return (*endpoints_)[static_cast<size_t>(position)];
  }
  // The node is left no more.
  void Refuse(size_t node, absl::string_view reason, bool unresolvable);
  void Fail(const absl::Status& status, int32_t extender = -1);
  void Succeed();

  const std::shared_ptr<const std::vector<Endpoint>> endpoints_;
  const std::shared_ptr<ApiReader> reader_;
  const model::AskExtenders action_;
  AskedNodes asked_;
  std::vector<model::NodeAnswer> answers_;  // of the nodes by position
  size_t next_ = 0;                         // the extender to call, by index in action_.extenders

 private:
  std::function<void(Answer)> done_;
};

}  // namespace fairlead::extenders
