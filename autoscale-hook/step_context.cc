#include "autoscale-hook/step_context.h"

#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

bool SameSecond(const std::optional<absl::Time>& a, const std::optional<absl::Time>& b) {
  if (a.has_value() != b.has_value()) return false;
  return !a.has_value() || absl::ToUnixSeconds(*a) == absl::ToUnixSeconds(*b);
}

}  // namespace

void StepContext::Terminate(RequestView& view) {
  RequestMemory& memory = *view.memory;
  if (memory.terminated) return;
  if (memory.terminate_sent.has_value()) {
    const absl::Time retry =
        memory.terminate_retry_at.value_or(*memory.terminate_sent + options.launch_timeout);
    if (now < retry) return WakeAt(retry);
  }
  memory.terminate_sent = now;
  memory.terminate_retry_at.reset();
  const model::NodeRequest& request = view.request;
  const std::string node_name =
      view.node != nullptr && !view.node->name.empty()
          ? view.node->name
          : (request.node_name.empty() ? request.meta.name : request.node_name);
  Do(model::TerminateNode{request.meta.name, request.provider, node_name,
                          view.node == nullptr ? "" : view.node->provider_id});
  WakeAt(now + options.launch_timeout);
}

bool StepContext::Taint(RequestView& view, bool present) {
  RequestMemory& memory = *view.memory;
  if (memory.taint_sent.has_value() && memory.taint_wanted == present &&
      now < *memory.taint_sent + kWriteRetry) {
    WakeAt(*memory.taint_sent + kWriteRetry);
    return false;
  }
  memory.taint_sent = now;
  memory.taint_wanted = present;
  Do(model::SetNodeTaint{view.node->name,
                         view.node->uid,
                         {model::kRemovalTaint, "", model::TaintEffect::kNoSchedule},
                         present});
  WakeAt(now + kWriteRetry);
  return true;
}

bool SameStatus(const model::NodeRequest& a, const model::NodeRequest& b) {
  return a.phase == b.phase && a.node_name == b.node_name && a.message == b.message &&
         a.failure == b.failure && SameSecond(a.launched_at, b.launched_at) &&
         SameSecond(a.registered_at, b.registered_at) && SameSecond(a.ready_at, b.ready_at) &&
         SameSecond(a.unneeded_since, b.unneeded_since) && SameSecond(a.failed_at, b.failed_at);
}

LaunchKey KeyOf(const model::NodeRequest& request) {
  return {request.provider, request.pool, request.instance_type, request.zone, request.spot};
}

}  // namespace fairlead::hook
