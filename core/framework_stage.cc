#include "core/framework_stage.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core {
namespace {

template <typename Plugin>
bool AnyApplies(const std::vector<Plugin*>& plugins, const state::PodClass& pod_class) {
  return std::any_of(plugins.begin(), plugins.end(),
                     [&](const Plugin* plugin) { return plugin->BindingApplies(pod_class); });
}

}  // namespace

bool FrameworkStage::Needs(const state::PodRecord& pod) const {
  if (framework_ == nullptr) return false;
  const state::PodClass& pod_class = state_.pod_class(pod.pod_class);
  const framework::BindingPoints& points = framework_->PointsOf(pod_class);
  if (points_ == Points::kPreBind) return AnyApplies(points.pre_bind, pod_class);
  return AnyApplies(points.reserve, pod_class) || AnyApplies(points.permit, pod_class);
}

absl::Status FrameworkStage::Reserve(const state::PodRecord& pod, model::BindPod bind) {
  rows_[model::Key(pod.ns, pod.name)] = {.bind = std::move(bind), .turn = ++turns_};
  wake_at_ = absl::InfinitePast();
  return absl::OkStatus();
}

framework::Progress FrameworkStage::AskReserve(const state::PodRecord& pod, absl::Time now) {
  const state::PodClass& pod_class = state_.pod_class(pod.pod_class);
  const state::NodeInfo& node = state_.node(pod.node);
  EndReserved(model::Key(pod.ns, pod.name));  // of a former decision
  Reserved& reserved = reserved_[model::Key(pod.ns, pod.name)];
  reserved.pod = {pod.ns, pod.name, pod.uid, node.name()};
  for (framework::ReservePlugin* plugin : PointsOf(pod).reserve) {
    if (!plugin->BindingApplies(pod_class)) continue;
    reserved.plugins.push_back(plugin);
    const absl::Status status = plugin->Reserve({state_, pod, node, now, now});
    if (!status.ok()) {
      return framework::Progress::Failed(absl::StrCat(plugin->Name(), ": ", status.message()));
    }
  }
  return framework::Progress::Done();
}

void FrameworkStage::EndReserved(const std::string& key) {
  const auto found = reserved_.find(key);
  if (found == reserved_.end()) return;
  const Reserved reserved = std::move(found->second);
  reserved_.erase(found);
  for (auto plugin = reserved.plugins.rbegin(); plugin != reserved.plugins.rend(); ++plugin) {
    (*plugin)->Unreserve(reserved.pod);
  }
}

void FrameworkStage::Unreserve(const std::string& ns, const std::string& name) {
  const std::string key = model::Key(ns, name);
  rows_.erase(key);
  EndReserved(key);
}

state::PodId FrameworkStage::Find(const model::BindPod& bind) const {
  const state::PodId id = state_.FindPod(bind.ns, bind.name);
  const bool held = id != state::kNoId && state_.pod(id).uid == bind.uid &&
                    state_.pod(id).status == state::PodStatus::kBinding;
  return held ? id : state::kNoId;
}

template <typename Plugin, typename Question>
framework::Progress FrameworkStage::AskEach(const std::vector<Plugin*>& plugins, state::PodId id,
                                            Row& row, absl::Time now, Question question) {
  using framework::Progress;
  const state::PodRecord& pod = state_.pod(id);
  for (; row.next < plugins.size(); ++row.next, row.since = absl::InfiniteFuture()) {
    Plugin* const plugin = plugins[row.next];
    if (!plugin->BindingApplies(state_.pod_class(pod.pod_class))) continue;
    row.since = std::min(row.since, now);
    Progress progress = question(*plugin, {state_, pod, state_.node(pod.node), now, row.since});
    if (progress.is != Progress::Is::kWaits) {
      ran_.push_back({plugin->Name(), points_ == Points::kPermit ? "Permit" : "PreBind",
                      progress.is == Progress::Is::kDone, now - row.since});
    }
    if (progress.is == Progress::Is::kFailed) {
      progress.reason = absl::StrCat(plugin->Name(), ": ", progress.reason);
    }
    if (progress.is != Progress::Is::kDone) return progress;
  }
  return Progress::Done();
}

framework::Progress FrameworkStage::Ask(state::PodId id, Row& row, absl::Time now) {
  const framework::BindingPoints& points = PointsOf(state_.pod(id));
  if (points_ == Points::kPermit) {
    if (!std::exchange(row.reserved, true)) {
      framework::Progress reserved = AskReserve(state_.pod(id), now);
      if (reserved.is == framework::Progress::Is::kFailed) return reserved;
    }
    return AskEach(points.permit, id, row, now,
                   [](framework::PermitPlugin& plugin, const framework::Placement& placement) {
                     return plugin.Permit(placement);
                   });
  }
  return AskEach(points.pre_bind, id, row, now,
                 [](framework::PreBindPlugin& plugin, const framework::Placement& placement) {
                   return plugin.PreBind(placement);
                 });
}

BindingPlugin::Progress FrameworkStage::Advance(absl::Time now) {
  wake_at_ = absl::InfiniteFuture();
  std::vector<std::pair<uint64_t, std::string>> order;
  order.reserve(rows_.size());
  for (const auto& [key, row] : rows_) order.emplace_back(row.turn, key);
  std::sort(order.begin(), order.end());
  Progress progress;
  for (const auto& [turn, key] : order) {
    const auto row = rows_.find(key);
    if (row == rows_.end()) continue;
    const state::PodId id = Find(row->second.bind);
    if (id == state::kNoId) {  // the pipeline will say so
      rows_.erase(row);
      continue;
    }
    const framework::Progress answer = Ask(id, row->second, now);
    if (answer.is == framework::Progress::Is::kWaits) {
      wake_at_ = std::min(wake_at_, answer.again);
      continue;
    }
    model::BindPod bind = std::move(row->second.bind);
    rows_.erase(row);
    if (answer.is == framework::Progress::Is::kFailed) {
      progress.failed.push_back({bind.ns, bind.name, bind.uid, answer.reason});
    } else {
      progress.reserved.push_back(std::move(bind));
    }
  }
  progress.ran = std::exchange(ran_, {});
  return progress;
}

void FrameworkStage::Bound(state::PodId id) {
  if (framework_ == nullptr || points_ != Points::kPermit) return;
  const state::PodRecord& pod = state_.pod(id);
  const framework::PodOnNode bound{pod.ns, pod.name, pod.uid, state_.node(pod.node).name()};
  const state::PodClass& pod_class = state_.pod_class(pod.pod_class);
  for (framework::PostBindPlugin* plugin : PointsOf(pod).post_bind) {
    if (plugin->BindingApplies(pod_class)) plugin->PostBind(bound);
  }
  const auto found = reserved_.find(model::Key(pod.ns, pod.name));
  if (found == reserved_.end()) return;
  for (framework::ReservePlugin* plugin : found->second.plugins) plugin->Bound(found->second.pod);
  reserved_.erase(found);
}

void FrameworkStage::PodSeen(state::PodId id) {
  if (reserved_.empty()) return;
  const state::PodRecord& pod = state_.pod(id);
  const auto found = reserved_.find(model::Key(pod.ns, pod.name));
  if (found == reserved_.end()) return;
  const framework::PodOnNode& known = found->second.pod;
  const bool there = pod.uid == known.uid && pod.node != state::kNoId &&
                     state_.node(pod.node).name() == known.node &&
                     pod.status != state::PodStatus::kReleasing;
  if (!there) Unreserve(pod.ns, pod.name);
}

void FrameworkStage::PodGoing(state::PodId id) {
  if (!reserved_.empty()) Unreserve(state_.pod(id).ns, state_.pod(id).name);
}

}  // namespace fairlead::core
