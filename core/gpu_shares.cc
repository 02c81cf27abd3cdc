// Bindings of pods that share GPUs: they wait in the book of reservations until the devices are
// known. Part of DecisionLoop.
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/decision_loop_impl.h"
#include "scheduler/state/gpu_devices.h"

namespace fairlead::core {
namespace {

bool HasSharers(const state::ClusterState& state, const std::string& node,
                const std::string& group) {
  const state::NodeId id = state.FindNode(node);
  if (id == state::kNoId || !state.node(id).exists) return false;
  const std::vector<state::GpuGroup>& groups = state.node(id).gpu_groups;
  const auto found =
      std::lower_bound(groups.begin(), groups.end(), group,
                       [](const state::GpuGroup& g, const std::string& key) { return g.id < key; });
  return found != groups.end() && found->id == group && found->active + found->releasing > 0;
}

// Of each device, as KAI writes it: "0.50".
std::string Portion(const model::GpuShare& share, int64_t gpu_memory_mib) {
  const int64_t milli = state::ShareMilli(share, gpu_memory_mib) / share.devices;
  return absl::StrFormat("%.2f", static_cast<double>(milli) / 1000);
}

}  // namespace

GpuSharingOptions DecisionLoop::Impl::SharingOf(const Options& options) {
  GpuSharingOptions sharing = options.gpu_sharing;
  sharing.enabled = options.state.place_gpu_shares;
  sharing.ns = options.state.reservation_namespace;
  return sharing;
}

void DecisionLoop::Impl::SharesChanged(const model::Pod& pod) {
  shares.PodChanged(pod);
  if (!shares.Holds(pod.meta.ns, pod.meta.name)) return;
  // Bound by somebody else, about to go, or another pod by now.
  const state::PodId id = state.FindPod(pod.meta.ns, pod.meta.name);
  if (id == state::kNoId || state.pod(id).status != state::PodStatus::kBinding) {
    shares.Drop(pod.meta.ns, pod.meta.name);
  }
}

void DecisionLoop::Impl::HoldShare(const state::PodRecord& pod, model::BindPod bind) {
  const model::GpuShare& share = state.pod_class(pod.pod_class).spec->gpu_share;
  shares.Hold(std::move(bind), pod.gpu_groups, Portion(share, state.node(pod.node).gpu_memory_mib));
}

void DecisionLoop::Impl::ForgetBinding(state::PodId pod) {
  const std::string ns = state.pod(pod).ns;
  const std::string name = state.pod(pod).name;
  state.ForgetBinding(pod);
  shares.Drop(ns, name);
  claims.Drop(ns, name);
  dirty = true;
}

void DecisionLoop::Impl::ServeShares(absl::Time now, StepResult& result) {
  if (!shares.HasWork(now)) return;
  GpuReservations::Outcome due =
      shares.Step(now, [this](const std::string& node, const std::string& group) {
        return HasSharers(state, node, group);
      });
  for (model::Action& action : due.actions) {
    if (!options.emit_events && std::holds_alternative<model::EmitEvent>(action.what)) continue;
    Emit(std::move(action), result);
  }
  for (const GpuReservations::Failure& failure : due.failed) {
    const state::PodId pod = FindBinding(failure.ns, failure.name, failure.uid);
    if (pod != state::kNoId) FailBinding(pod, failure.reason, now, result);
  }
  for (model::BindPod& bind : due.bindings) {
    if (FindBinding(bind.ns, bind.name, bind.uid) == state::kNoId) {
      shares.Drop(bind.ns, bind.name);
      continue;
    }
    EmitBinding(std::move(bind), now, result);
  }
}

}  // namespace fairlead::core
