// Shared by the tests of extenders in the decision loop. Header only; never part of the product.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"

namespace fairlead::core::testing {

class ExtenderLoopTest : public NoHookTest {
 protected:
  // A new process with these, and queue q.
  void With(std::vector<model::ExtenderConfig> extenders) {
    options_.extenders = std::move(extenders);
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  }
  static PodBuilder Pod(const std::string& name) {
    return std::move(PodBuilder("ns", name).Queue("q").Gpus(1));
  }
  using Judge =
      std::function<model::NodeAnswer(const model::AskExtenders&, const std::string& node)>;
  // Answers the asks of a step by what the extender says of each node, and everything else with OK.
  void Say(const StepResult& step, const Judge& judge) {
    for (const Action& action : step.actions) {
      model::ActionResult result{action.id, absl::OkStatus()};
      if (const auto* ask = std::get_if<model::AskExtenders>(&action.what)) {
        std::vector<model::NodeAnswer> answers;
        for (const std::string& node : ask->nodes) {
          answers.push_back(judge(*ask, node));
          answers.back().node = node;
        }
        result.node_answers = model::NodeAnswers(std::move(answers));
      }
      loop_->Apply(result);
    }
  }
  static model::NodeAnswer Yes(int64_t score = 0) { return {"", true, false, "", score}; }
  static model::NodeAnswer No(const std::string& why) { return {"", false, false, why, 0}; }
  void FailAll(const StepResult& step, int32_t extender, const std::string& why) {
    for (const Action& action : step.actions) {
      model::ActionResult result{action.id, absl::OkStatus()};
      if (std::holds_alternative<model::AskExtenders>(action.what)) {
        result.status = absl::UnavailableError(why);
        result.extender = extender;
      }
      loop_->Apply(result);
    }
  }
};

}  // namespace fairlead::core::testing
