#include "extenders/preemption_ask.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::extenders {
namespace {

// Of a body, beside the texts; and beside each uid.
constexpr size_t kArgsBytes = 128, kUidBytes = 48;

std::vector<std::string> UidsOf(const std::vector<model::AskExtenders::Victim>& pods) {
  std::vector<std::string> uids;
  uids.reserve(pods.size());
  for (const auto& pod : pods) uids.push_back(pod.uid);
  std::sort(uids.begin(), uids.end());
  return uids;
}

}  // namespace

void PreemptionAsk::Start() {
  reader_->ReadPod(action_.ns, action_.name, action_.uid,
                   [self = shared_from_this()](absl::StatusOr<std::string> pod) {
                     if (!pod.ok()) return self->Fail(pod.status());
                     self->pod_ = *std::move(pod);
                     if (!self->NeedsPods()) return self->CallNext();
                     self->texts_.resize(self->action_.nodes.size());
                     self->ReadVictims(0, 0);
                   });
}

bool PreemptionAsk::NeedsPods() const {
  return std::any_of(action_.extenders.begin(), action_.extenders.end(), [this](int32_t position) {
    const model::ExtenderConfig& config = At(position).config();
    return !config.preempt_verb.empty() && !config.node_cache_capable;
  });
}

void PreemptionAsk::ReadVictims(size_t node, size_t victim) {
  while (node < action_.nodes.size() &&
         (victim == action_.victims[node].pods.size() || !asked_.IsLeft(node))) {
    ++node;
    victim = 0;
  }
  if (node == action_.nodes.size()) return CallNext();
  const model::AskExtenders::Victim& pod = action_.victims[node].pods[victim];
  reader_->ReadPod(pod.ns, pod.name, pod.uid,
                   [self = shared_from_this(), node, victim](absl::StatusOr<std::string> text) {
                     if (absl::IsCancelled(text.status())) return self->Fail(text.status());
                     // It has gone meanwhile: another decision is better.
                     if (!text.ok()) {
                       self->Refuse(node, text.status().message(), /*unresolvable=*/false);
                     } else {
                       self->texts_[node].push_back(*std::move(text));
                     }
                     self->ReadVictims(node, victim + 1);
                   });
}

void PreemptionAsk::CallNext() {
  while (next_ < action_.extenders.size() && asked_.count_left() > 0) {
    const int32_t position = action_.extenders[next_++];
    const Endpoint& endpoint = At(position);
    if (endpoint.config().preempt_verb.empty()) continue;
    return endpoint.Ask(
        endpoint.config().preempt_verb, BytesFor(endpoint),
        [self = shared_from_this(), &endpoint] { return self->ArgsFor(endpoint); },
        [self = shared_from_this(), position](absl::StatusOr<std::string> body) {
          self->OnAnswer(position, body);
        });
  }
  Succeed();
}

void PreemptionAsk::OnAnswer(int32_t position, const absl::StatusOr<std::string>& body) {
  const Endpoint& endpoint = At(position);
  const absl::Status status = TakeVictims(endpoint, body);
  // The end of the program is not an extender's failure.
  if (absl::IsCancelled(status)) return Fail(status);
  if (!status.ok() && !endpoint.config().ignorable) {
    return Fail(endpoint.Describe(endpoint.config().preempt_verb, status), position);
  }
  CallNext();
}

// Changes nothing if the answer is an error.
absl::Status PreemptionAsk::TakeVictims(const Endpoint& endpoint,
                                        const absl::StatusOr<std::string>& body) {
  if (!body.ok()) return body.status();
  const absl::StatusOr<std::vector<std::vector<std::string>>> victims =
      ReadPreemptionResult(*body, asked_);
  if (!victims.ok()) return absl::UnavailableError(victims.status().message());
  for (size_t i = 0; i < asked_.size(); ++i) {
    const std::vector<std::string>& named = (*victims)[i];
    if (!asked_.IsLeft(i) || named == UidsOf(action_.victims[i].pods)) continue;
    Refuse(i,
           absl::StrCat("extender ", endpoint.config().url_prefix,
                        named.empty() ? " refuses evictions there"
                                      : " wants other pods to be evicted there"),
           /*unresolvable=*/false);
  }
  return absl::OkStatus();
}

size_t PreemptionAsk::BytesFor(const Endpoint& endpoint) const {
  size_t bytes = pod_.size() + kArgsBytes;
  for (size_t i = 0; i < asked_.size(); ++i) {
    if (!asked_.IsLeft(i)) continue;
    bytes += asked_.name(i).size() + kArgsBytes;
    if (endpoint.config().node_cache_capable) {
      bytes += action_.victims[i].pods.size() * kUidBytes;
    } else {
      for (const std::string& text : texts_[i]) bytes += text.size();
    }
  }
  return bytes;
}

std::string PreemptionAsk::ArgsFor(const Endpoint& endpoint) const {
  const bool names = endpoint.config().node_cache_capable;
  std::vector<VictimsOfNode> victims(action_.victims.size());
  for (size_t i = 0; i < victims.size(); ++i) {
    const model::AskExtenders::NodeVictims& of_node = action_.victims[i];
    victims[i].budget_violations = of_node.budget_violations;
    if (names) {
      for (const auto& pod : of_node.pods) victims[i].pods.emplace_back(pod.uid);
    } else {
      victims[i].pods.assign(texts_[i].begin(), texts_[i].end());
    }
  }
  return PreemptionArgs(pod_, names, asked_, victims);
}

}  // namespace fairlead::extenders
