#include "scheduler/plugins/taint_toleration.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"
#include "scheduler/plugins/normalize.h"

namespace fairlead::plugins {
namespace {

bool Tolerated(const model::PodSpec& spec, const model::Taint& taint) {
  return std::any_of(spec.tolerations.begin(), spec.tolerations.end(),
                     [&](const model::Toleration& t) { return t.Tolerates(taint); });
}

}  // namespace

const model::Taint* FindUntolerated(const model::PodSpec& spec, const model::Node& node) {
  for (const model::Taint& taint : node.taints) {
    if (taint.effect != model::TaintEffect::kPreferNoSchedule && !Tolerated(spec, taint)) {
      return &taint;
    }
  }
  return nullptr;
}

absl::StatusOr<std::unique_ptr<framework::Plugin>> TaintToleration::Make(
    absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<TaintToleration>();
}

bool TaintToleration::Filter(const framework::Context& context, const state::NodeInfo& node,
                             framework::Status* why) const {
  const model::Taint* taint = FindUntolerated(*context.pod_class.spec, node.object);
  if (taint == nullptr) return true;
  if (why == nullptr) return false;
  why->detail = absl::StrCat("{", taint->key, ": ", taint->value, "}");
  return Refuse(why, framework::Code::kUnschedulableAndUnresolvable,
                "node(s) had untolerated taint(s)");
}

namespace {

int64_t CountUntoleratedSoft(const model::PodSpec& spec, const state::NodeInfo& node) {
  return std::count_if(
      node.object.taints.begin(), node.object.taints.end(), [&spec](const model::Taint& taint) {
        return taint.effect == model::TaintEffect::kPreferNoSchedule && !Tolerated(spec, taint);
      });
}

}  // namespace

void TaintToleration::AddMarks(const framework::Context& context, const state::NodeInfo& node,
                               const framework::TopologyKeys&, framework::Marks& marks) const {
  marks.push_back(CountUntoleratedSoft(*context.pod_class.spec, node));
}

void TaintToleration::ScoreKinds(const framework::Context& context,
                                 absl::Span<const framework::Kind> kinds,
                                 absl::Span<int64_t> scores) const {
  for (size_t i = 0; i < kinds.size(); ++i) {
    scores[i] = CountUntoleratedSoft(*context.pod_class.spec, *kinds[i].node);
  }
  NormalizeByMost(kinds, scores, /*reverse=*/true);
}

}  // namespace fairlead::plugins
