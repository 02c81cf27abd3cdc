#include "scheduler/plugins/extender.h"

#include <algorithm>

#include "base/status_macros.h"
#include "scheduler/plugins/args.h"

namespace fairlead::plugins {
namespace {

constexpr char kNotAsked[] = "node(s) that the scheduler extenders were not asked about";

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> Extender::Make(absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<Extender>();
}

bool Extender::FilterApplies(const state::PodClass& pod_class) const {
  return !pod_class.spec->node_answers.IsEmpty();
}

bool Extender::Filter(const framework::Context& context, const state::NodeInfo& node,
                      framework::Status* why) const {
  const model::NodeAnswers& answers = context.pod_class.spec->node_answers;
  const model::NodeAnswer* const answer = answers.Find(node.name());
  if (answer != nullptr ? answer->admitted : answers.AdmitsAny()) return true;
  if (why == nullptr) return false;
  why->code = answer != nullptr && answer->unresolvable
                  ? framework::Code::kUnschedulableAndUnresolvable
                  : framework::Code::kUnschedulable;
  why->reason = answer != nullptr ? answer->reason : kNotAsked;
  return false;
}

bool Extender::ScoreApplies(const state::PodClass& pod_class) const {
  const auto& answers = pod_class.spec->node_answers.list();
  return std::any_of(answers.begin(), answers.end(), [](const auto& a) { return a.score != 0; });
}

int64_t Extender::Score(const framework::Context& context, const state::NodeInfo& node) const {
  const model::NodeAnswer* const answer = context.pod_class.spec->node_answers.Find(node.name());
  if (answer == nullptr) return 0;
  // As any other plugin of the largest weight.
  return std::clamp<int64_t>(answer->score, 0, framework::kMaxNodeScore * framework::kMaxWeight);
}

}  // namespace fairlead::plugins
