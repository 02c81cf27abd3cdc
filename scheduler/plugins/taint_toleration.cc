#include "scheduler/plugins/taint_toleration.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"
#include "scheduler/plugins/scale.h"

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

int64_t TaintToleration::Score(const framework::Context& context,
                               const state::NodeInfo& node) const {
  int64_t untolerated = 0;
  for (const model::Taint& taint : node.object.taints) {
    if (taint.effect == model::TaintEffect::kPreferNoSchedule &&
        !Tolerated(*context.pod_class.spec, taint)) {
      ++untolerated;
    }
  }
  return 100 / (1 + untolerated) * kPreferenceStep;
}

}  // namespace fairlead::plugins
