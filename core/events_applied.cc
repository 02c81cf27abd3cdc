// What events of the watches change: the state, and the parts of DecisionLoop that keep something
// of an object.
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/decision_loop_impl.h"
#include "queues/contradictions.h"
#include "queues/default_queue.h"

namespace fairlead::core {
namespace {

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

// What is asked for without pods is another.
state::Change CapacityAsked(bool another) { return {.capacity = another}; }

}  // namespace

void DecisionLoop::Impl::RequestChanged(const std::string& name) {
  if (nodes.RequestChanged(name, pools.InForce()).Any()) dirty = true;
}

void DecisionLoop::Impl::PoolsChanged() {
  memo.valid = false;
  offers_told = false;
  estimates.PoolsChanged();
  for (model::EmitEvent& event : pools.TakeEvents()) {
    if (options.emit_events) events.push_back(std::move(event));
  }
  nodes.TakePools(pools.InForce());
  // An ordered node has the labels and taints of its pool.
  for (const auto& [key, machine] : hook.machines().rows()) RequestChanged(machine.name());
}

// The hook reads which queues are below which.
void DecisionLoop::Impl::QueueProvisioningChanged() {
  memo.valid = false;
  over_quota_told = false;
  for (model::EmitEvent& event : queue_provisioning.TakeEvents()) {
    if (options.emit_events) events.push_back(std::move(event));
  }
}

void DecisionLoop::Impl::QueueObjectChanged(const std::string& name, bool exists) {
  if (name == options.state.default_queue) default_queue_object = exists;
  KeepDefaultQueue();
}

void DecisionLoop::Impl::NoteContradiction(const model::Queue& queue) {
  std::string note = queues::ContradictionOf(queue);
  if (note.empty()) return ForgetContradiction(queue.meta.name);
  std::string& known = queue_notes[queue.meta.name];
  if (known == note) return;
  known = std::move(note);
  if (options.emit_events) untold_notes[queue.meta.name] = queue.meta.uid;
}

void DecisionLoop::Impl::ForgetContradiction(const std::string& queue) {
  queue_notes.erase(queue);
  untold_notes.erase(queue);
}

void DecisionLoop::Impl::KeepDefaultQueue() {
  if (!options.builtin_default_queue) return;
  queues::KeepDefaultQueue(tree, options.state.default_queue, default_queue_object);
}

std::set<model::Kind> DecisionLoop::Impl::KindsRead() const {
  std::set<model::Kind> kinds;
  for (const model::Kind kind : model::kAllKinds) {
    if (Reads(options, kind)) kinds.insert(kind);
  }
  return kinds;
}

// By type: an object without a line here does not compile.
void DecisionLoop::Impl::ApplyUpsert(const model::Upsert& upsert) {
  const state::Change change = std::visit(
      Overloaded{
          [&](const model::Pod& pod) { return UpsertPod(pod); },
          [&](const model::Node& node) { return nodes.Upsert(node); },
          [&](const model::Queue& queue) {
            const uint64_t before = tree.version();
            tree.Upsert(queue);
            QueueObjectChanged(queue.meta.name, /*exists=*/true);
            NoteContradiction(queue);
            if (kai_statuses.has_value()) kai_statuses->Seen(queue);
            const bool capped = queue_provisioning.Upsert(queue);
            const bool changed = tree.version() != before;
            if (capped || changed) QueueProvisioningChanged();
            return state::Change{.policy = capped || changed};
          },
          [&](const model::PodGroup& group) {
            bindings.PodGroupSeen();
            grouper.GroupSeen(group);
            if (kai_statuses.has_value()) kai_statuses->Seen(group);
            return state.UpsertPodGroup(group);
          },
          [&](const model::NativePodGroup& group) {
            bindings.PodGroupSeen();
            return native_groups.Upsert(group);
          },
          [&](const model::PodTemplate& object) { return CapacityAsked(capacity.Upsert(object)); },
          [&](const model::CapacityBuffer& object) {
            return CapacityAsked(capacity.Upsert(object));
          },
          [&](const model::ProvisioningRequest& object) {
            return CapacityAsked(capacity.Upsert(object));
          },
          [&](const model::PriorityClass& priority_class) {
            return state.UpsertPriorityClass(priority_class);
          },
          [&](const model::Topology& topology) { return state.UpsertTopology(topology); },
          [&](const model::NodeRequest& request) {
            const bool changed = hook.Observe(request);
            if (changed) RequestChanged(request.meta.name);
            return state::Change{.capacity = changed};
          },
          [&](const model::NodePool& pool) {
            const bool changed = pools.Upsert(pool);
            if (changed) PoolsChanged();
            return state::Change{.policy = changed};
          },
          [&](const model::PodDisruptionBudget& budget) {
            return state.UpsertDisruptionBudget(budget);
          },
          [&](const model::DeviceClass& device_class) {
            return state.UpsertDeviceObject(device_class);
          },
          [&](const model::ResourceSlice& slice) {
            const std::string before = state.devices().inventory().NodeOfSlice(slice.meta.name);
            state::Change changed = state.UpsertDeviceObject(slice);
            if (before != slice.nodes.name) changed |= nodes.DevicesChanged(before);
            return changed |= nodes.DevicesChanged(slice.nodes.name);
          },
          [&](const model::DeviceTaintRule& rule) { return state.UpsertDeviceObject(rule); },
          [&](const model::ResourceClaim& claim) { return UpsertClaim(claim); },
          [&](const model::NodeResourceTopology& topology) {
            return state.UpsertNodeTopology(topology);
          },
          [&](const model::Namespace& ns) { return state.UpsertNamespace(ns); },
          [&](const model::VolumeObject& object) { return UpsertVolumeObject(object); },
          [&](const model::SpreadSource& object) { return state.UpsertSpreadSource(object); },
      },
      upsert.object);
  if (change.Any()) dirty = true;
  if (held_back.size() == 0) return;
  if (held_back.Changed(model::KindOf(upsert.object)).Any()) dirty = true;
}

state::Change DecisionLoop::Impl::UpsertPod(const model::Pod& pod) {
  return FilePod(pod, grouper.PodSeen(pod));
}

state::Change DecisionLoop::Impl::FilePod(const model::Pod& pod, const PodGrouper::Answer& answer) {
  if (answer.withheld) {
    // A former pod of the name is gone all the same.
    if (const state::PodId known = state.FindPod(pod.meta.ns, pod.meta.name);
        known != state::kNoId) {
      ApplyDelete({model::Kind::kPod, pod.meta.ns, pod.meta.name, state.pod(known).uid});
    }
    return {.capacity = nodes.PodsSeen(pod.meta.resource_version)};
  }
  if (answer.other_shard) return FileForOther(pod);
  std::string held_by = answer.held_by.empty() ? suspensions.HeldBy(pod) : answer.held_by;
  if (!held_by.empty()) {
    model::Pod held = pod;
    held.held_by = std::move(held_by);
    return FileGrouped(held);
  }
  const state::Change change = FileGrouped(pod);
  if (answer.lone) bindings.IsLone(state.FindPod(pod.meta.ns, pod.meta.name));
  return change;
}

bool DecisionLoop::Impl::MayBeBound(const model::Pod& pod) const {
  if (!pod.node_name.empty()) return false;
  const state::PodId known = state.FindPod(pod.meta.ns, pod.meta.name);
  return known != state::kNoId && state.pod(known).uid == pod.meta.uid && bindings.IsSent(known);
}

state::Change DecisionLoop::Impl::FileForOther(const model::Pod& pod) {
  if (MayBeBound(pod)) return FileGrouped(pod);
  state::Change change;
  const state::PodId known = state.FindPod(pod.meta.ns, pod.meta.name);
  if (known != state::kNoId && state.pod(known).ours) {
    PodGoing(known);
    change = state.RemovePod(pod.meta.ns, pod.meta.name, "");
    held_back.PodGone(pod.meta.ns, pod.meta.name);
  }
  model::Pod other = pod;
  other.scheduler_name = ShardFilter::kOtherShard;
  change |= FileGrouped(other);
  return change;
}

void DecisionLoop::Impl::GroupPods(absl::Time now, StepResult& result) {
  if (!grouper.enabled()) return;
  std::vector<model::Action> actions;
  for (const PodGrouper::Decided& decided : grouper.Step(now, actions)) {
    if (FilePod(decided.pod, decided.answer).Any()) dirty = true;
  }
  for (model::Action& action : actions) Emit(std::move(action), result);
}

state::Change DecisionLoop::Impl::FileGrouped(const model::Pod& pod) {
  if (bindings.Holding() || !nominations.empty() || permits.reserved() > 0) {
    const state::PodId known = state.FindPod(pod.meta.ns, pod.meta.name);
    if (known != state::kNoId && state.pod(known).uid != pod.meta.uid) PodGoing(known);
  }
  const bool succeeded = pod.phase == model::PodPhase::kSucceeded;
  if (succeeded) PodSucceeded(pod);
  state::Change change = state.UpsertPod(pod);
  if (pod.held_by.empty()) {
    change |= held_back.PodSeen(pod);
  } else {
    held_back.PodGone(pod.meta.ns, pod.meta.name);
  }
  change.capacity |= nodes.PodsSeen(pod.meta.resource_version);
  if (!succeeded) PodChanged(pod);
  change |= CapacityAsked(capacity.PodSeen(pod));
  return change;
}

// Releases all that the pod has, as its deletion does. The state keeps that it succeeded.
void DecisionLoop::Impl::PodSucceeded(const model::Pod& pod) {
  const state::PodId known = state.FindPod(pod.meta.ns, pod.meta.name);
  const bool told = known != state::kNoId && state.pod(known).uid == pod.meta.uid &&
                    state.pod(known).status == state::PodStatus::kSucceeded;
  if (!told) ApplyDelete({model::Kind::kPod, pod.meta.ns, pod.meta.name, ""});
}

void DecisionLoop::Impl::ApplyDelete(const model::Delete& removed) {
  state::Change change;
  switch (removed.kind) {
    case model::Kind::kPod:
      if (const state::PodId pod = state.FindPod(removed.ns, removed.name);
          pod != state::kNoId && (removed.uid.empty() || state.pod(pod).uid == removed.uid)) {
        PodGoing(pod);
      }
      grouper.PodGone(removed.ns, removed.name, removed.uid);
      change = state.RemovePod(removed.ns, removed.name, removed.uid);
      if (state.FindPod(removed.ns, removed.name) == state::kNoId) {
        held_back.PodGone(removed.ns, removed.name);
      }
      change |= CapacityAsked(capacity.PodGone(removed.ns, removed.name));
      shares.shares().PodGone(removed.ns, removed.name, removed.uid);
      claims.PodGone(removed.ns, removed.name, removed.uid);
      volumes.PodGone(removed.ns, removed.name, removed.uid);
      break;
    case model::Kind::kNode:
      change = nodes.Remove(removed.name, removed.uid);
      shares.shares().NodeGone(removed.name);
      volumes.NodeGone(removed.name);
      break;
    case model::Kind::kQueue:
      tree.Remove(removed.name);
      ForgetContradiction(removed.name);
      if (kai_statuses.has_value()) kai_statuses->QueueGone(removed.name, removed.uid);
      queue_provisioning.Remove(removed.name);
      QueueProvisioningChanged();
      QueueObjectChanged(removed.name, /*exists=*/false);
      change.policy = true;
      break;
    case model::Kind::kPodGroup:
      grouper.GroupGone(removed.ns, removed.name, removed.uid);
      if (kai_statuses.has_value()) {
        kai_statuses->GroupGone(removed.ns, removed.name, removed.uid);
      }
      change = native_groups.RemoveKais(removed.ns, removed.name, removed.uid);
      break;
    case model::Kind::kNativePodGroup:
      change = native_groups.Remove(removed.ns, removed.name, removed.uid);
      break;
    case model::Kind::kPodTemplate:
    case model::Kind::kCapacityBuffer:
    case model::Kind::kProvisioningRequest:
      change = CapacityAsked(capacity.Remove(removed.kind, removed.ns, removed.name, removed.uid));
      break;
    case model::Kind::kPriorityClass:
      change = state.RemovePriorityClass(removed.name);
      break;
    case model::Kind::kNodeRequest:
      if (hook.ObserveGone(removed.name, removed.uid)) {
        change.capacity = true;
        RequestChanged(removed.name);
      }
      break;
    case model::Kind::kNodePool:
      change.policy = pools.Remove(removed.name);
      PoolsChanged();
      break;
    case model::Kind::kTopology:
      change = state.RemoveTopology(removed.name, removed.uid);
      break;
    case model::Kind::kPodDisruptionBudget:
      change = state.RemoveDisruptionBudget(removed.ns, removed.name, removed.uid);
      break;
    case model::Kind::kDeviceClass:
      change = state.RemoveDeviceClass(removed.name);
      break;
    case model::Kind::kResourceSlice: {
      const std::string node = state.devices().inventory().NodeOfSlice(removed.name);
      change = state.RemoveResourceSlice(removed.name);
      change |= nodes.DevicesChanged(node);
      break;
    }
    case model::Kind::kDeviceTaintRule:
      change = state.RemoveDeviceTaintRule(removed.name);
      break;
    case model::Kind::kResourceClaim:
      claims.claims().Gone(removed.ns, removed.name);
      change = state.RemoveResourceClaim(removed.ns, removed.name);
      break;
    case model::Kind::kNodeResourceTopology:
      change = state.RemoveNodeTopology(removed.name, removed.uid);
      break;
    case model::Kind::kNamespace:
      change = state.RemoveNamespace(removed.name);
      break;
    case model::Kind::kPersistentVolumeClaim:
    case model::Kind::kPersistentVolume:
    case model::Kind::kStorageClass:
    case model::Kind::kCsiNode:
    case model::Kind::kCsiDriver:
    case model::Kind::kCsiStorageCapacity:
    case model::Kind::kVolumeAttachment:
      change = RemoveVolumeObject(removed);
      break;
    case model::Kind::kService:
    case model::Kind::kReplicationController:
    case model::Kind::kReplicaSet:
    case model::Kind::kStatefulSet:
      change = state.RemoveSpreadSource(removed.kind, removed.ns, removed.name);
      break;
  }
  if (held_back.size() > 0) change |= held_back.Changed(removed.kind);
  if (change.Any()) dirty = true;
}

}  // namespace fairlead::core
