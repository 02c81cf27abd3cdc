#include "extenders/ask_state.h"

#include "base/utf8.h"

namespace fairlead::extenders {

AskState::AskState(std::shared_ptr<const std::vector<Endpoint>> endpoints,
                   std::shared_ptr<ApiReader> reader, model::AskExtenders action,
                   std::function<void(Answer)> done)
    : endpoints_(std::move(endpoints)),
      reader_(std::move(reader)),
      action_(std::move(action)),
      asked_(action_.nodes),
      answers_(action_.nodes.size()),
      done_(std::move(done)) {
  for (size_t i = 0; i < answers_.size(); ++i) {
    answers_[i].node = action_.nodes[i];
    answers_[i].admitted = true;
  }
}

void AskState::Refuse(size_t node, absl::string_view reason, bool unresolvable) {
  asked_.Remove(node);
  model::NodeAnswer& answer = answers_[node];
  answer.admitted = false;
  answer.unresolvable = unresolvable;
  answer.reason = TruncateUtf8(reason, kTextBytes);
}

void AskState::Fail(const absl::Status& status, int32_t extender) {
  // Not the same object: the thread that gets it shares nothing with this one.
  std::exchange(done_, nullptr)(
      {.status = absl::Status(status.code(), status.message()), .answers = {}, .failed = extender});
}

void AskState::Succeed() {
  std::exchange(done_, nullptr)({.status = absl::OkStatus(),
                                 .answers = model::NodeAnswers(std::move(answers_)),
                                 .failed = -1});
}

}  // namespace fairlead::extenders
