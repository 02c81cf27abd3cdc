#include "core/preemption_asks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fairlead::core {

PreemptionAsks::PreemptionAsks(const state::ClusterState& state,
                               std::vector<model::ExtenderConfig> extenders)
    : state_(state), extenders_(std::move(extenders)), health_(extenders_.size()) {}

bool PreemptionAsks::AsksAny() const {
  return std::any_of(extenders_.begin(), extenders_.end(),
                     [](const auto& extender) { return !extender.preempt_verb.empty(); });
}

bool PreemptionAsks::IsAsked(const model::ExtenderConfig& extender,
                             const state::PodClass& preemptor) const {
  return !extender.preempt_verb.empty() && IsInterested(state_, extender, preemptor);
}

bool PreemptionAsks::Concerns(state::PodClassId preemptor) const {
  const state::PodClass& pod_class = state_.pod_class(preemptor);
  return std::any_of(extenders_.begin(), extenders_.end(),
                     [&](const auto& extender) { return IsAsked(extender, pod_class); });
}

void PreemptionAsks::Add(uint64_t set, std::vector<Question> questions) {
  sets_[set].open = questions.size();
  for (Question& question : questions) {
    Open& open = queue_.emplace_back();
    open.set = set;
    const state::PodClass& preemptor = state_.pod_class(question.preemptor);
    for (size_t i = 0; i < extenders_.size(); ++i) {
      if (IsAsked(extenders_[i], preemptor)) open.extenders.push_back(static_cast<int32_t>(i));
    }
    open.question = std::move(question);
  }
}

void PreemptionAsks::Close(uint64_t set, bool refused) {
  const auto found = sets_.find(set);
  found->second.refused |= refused;
  if (--found->second.open > 0) return;
  done_.push_back({set, found->second.refused});
  sets_.erase(found);
}

void PreemptionAsks::Refuse(const Question& question, const model::NodeAnswers* answers) {
  Refusal refusal{question.preemptor, {}};
  for (size_t i = 0; i < question.nodes.size(); ++i) {
    if (answers != nullptr) {
      const model::NodeAnswer* const answer = answers->Find(question.nodes[i]);
      if (answer != nullptr && answer->admitted) continue;
    }
    const auto& pods = question.victims[i].pods;
    refusal.victims.insert(refusal.victims.end(), pods.begin(), pods.end());
  }
  if (!refusal.victims.empty()) refusals_.push_back(std::move(refusal));
}

void PreemptionAsks::Send(Open open, absl::Time now, Progress& progress) {
  auto [extenders, paused] = health_.Choose(open.extenders, extenders_, now);
  if (!paused.empty()) {
    Refuse(open.question, nullptr);
    return Close(open.set, /*refused=*/true);
  }
  if (extenders.empty()) return Close(open.set, /*refused=*/false);
  open.extenders = extenders;
  const uint64_t number = next_number_++;
  const Question& question = open.question;
  progress.actions.push_back(
      {0, model::AskExtenders{number, question.ns, question.name, question.uid,
                              std::move(extenders), question.nodes, question.victims}});
  asks_.emplace(number, std::move(open));
}

PreemptionAsks::Progress PreemptionAsks::Advance(absl::Time now) {
  Progress progress;
  while (!queue_.empty() && asks_.size() < kMaxAsks) {
    Open open = std::move(queue_.front());
    queue_.pop_front();
    Send(std::move(open), now, progress);
  }
  progress.done = std::exchange(done_, {});
  progress.refusals = std::exchange(refusals_, {});
  return progress;
}

void PreemptionAsks::Answered(uint64_t number, const model::ActionResult& result, absl::Time now) {
  const auto found = asks_.find(number);
  if (found == asks_.end()) return;
  const Open open = std::move(found->second);
  asks_.erase(found);
  health_.Take(open.extenders, result, now);
  const size_t before = refusals_.size();
  Refuse(open.question, result.status.ok() ? &result.node_answers : nullptr);
  Close(open.set, refusals_.size() > before);
}

}  // namespace fairlead::core
