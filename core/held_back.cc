#include "core/held_back.h"

#include <utility>
#include <vector>

#include "scheduler/framework/enqueue_points.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::core {

void HeldBack::Use(const framework::Framework& framework) {
  if (framework.pre_enqueue().empty()) return;
  framework_ = &framework;
  for (const framework::PreEnqueuePlugin* plugin : framework.pre_enqueue()) {
    const std::vector<model::Kind> kinds = plugin->EventsToRegister();
    events_.insert(kinds.begin(), kinds.end());
  }
}

std::string HeldBack::ReasonOf(const model::Pod& pod) const {
  const state::PodId id = state_.FindPod(pod.meta.ns, pod.meta.name);
  if (id == state::kNoId || !pod.node_name.empty()) return "";
  const state::PodRecord& record = state_.pod(id);
  const bool waits =
      record.ours && record.uid == pod.meta.uid &&
      (record.status == state::PodStatus::kPending || record.status == state::PodStatus::kGated);
  if (!waits) return "";
  for (const framework::PreEnqueuePlugin* plugin :
       framework_->PreEnqueueOf(state_.pod_class(record.pod_class))) {
    const std::string why = plugin->PreEnqueue(state_, record);
    if (!why.empty()) return verdict::HeldByPlugin(plugin->Name(), why);
  }
  return "";
}

state::Change HeldBack::PodSeen(const model::Pod& pod) {
  if (framework_ == nullptr) return {};
  const std::string key = model::Key(pod.meta.ns, pod.meta.name);
  std::string why = ReasonOf(pod);
  if (why.empty()) {
    held_.erase(key);
    return {};
  }
  model::Pod& held = held_[key] = pod;
  held.held_by = std::move(why);
  return state_.UpsertPod(held);
}

void HeldBack::PodGone(const std::string& ns, const std::string& name) {
  if (!held_.empty()) held_.erase(model::Key(ns, name));
}

state::Change HeldBack::Changed(model::Kind kind) {
  state::Change change;
  if (held_.empty() || !events_.contains(kind)) return change;
  for (auto it = held_.begin(); it != held_.end();) {
    model::Pod& pod = it->second;
    std::string why = ReasonOf(pod);
    const bool let_in = why.empty();
    if (why != pod.held_by) {
      pod.held_by = std::move(why);
      change |= state_.UpsertPod(pod);
    }
    it = let_in ? held_.erase(it) : std::next(it);
  }
  return change;
}

}  // namespace fairlead::core
