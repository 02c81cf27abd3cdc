// Pods of ClusterState: classes of equal specs, shared labels, and what an API object means for a
// row.
#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/expected_duration.h"
#include "scheduler/model/group_name.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/rows.h"
#include "scheduler/state/unknown_gpu.h"

namespace fairlead::state {
namespace {

// Amounts within the bounds that sums are exact for; decoders keep to narrower ones.
model::GpuShare WithinBounds(const model::GpuShare& share) {
  return {std::clamp<int64_t>(share.fraction_milli, 0, 1000),
          std::clamp<int64_t>(share.memory_mib, 0, kMaxGpuMib),
          std::clamp<int64_t>(share.devices, 1, kMaxSharedDevices)};
}

uint32_t StartSecondsOf(const model::Pod& pod) {
  return static_cast<uint32_t>(
      std::clamp<int64_t>(absl::ToUnixSeconds(pod.start_time), 0, PodRecord::kNoStart));
}

PodDetails DetailsOf(const model::Pod& pod) {
  PodDetails details;
  details.invalid = pod.invalid;
  details.gate =
      pod.scheduling_gates.empty() ? pod.held_by : absl::StrJoin(pod.scheduling_gates, ", ");
  details.nominated_node = pod.nominated_node_name;
  const model::StringMap& annotations = pod.meta.annotations;
  details.verdict_hash = model::VerdictHashOf(annotations.Get(model::kVerdictAnnotation));
  if (pod.scheduled.status == "False") details.waiting_reason = pod.scheduled.reason;
  details.expected_duration =
      model::ParseExpectedDuration(annotations.Get(model::kExpectedDurationAnnotation))
          .value_or(details.expected_duration);
  details.wants_estimate = model::WantsEstimate(annotations);
  // The kubelet ends it then, so it runs no longer.
  if (pod.active_deadline_s > 0) {
    details.expected_duration =
        std::min(details.expected_duration, absl::Seconds(pod.active_deadline_s));
  }
  return details;
}

}  // namespace

model::Resources RequestsOf(const model::PodSpec& spec, model::ResourceNames& names) {
  model::Resources requests = model::Resources::FromRequests(spec.requests, names);
  if (!spec.legacy_mig.empty()) {
    requests += model::Resources::FromRequests(spec.legacy_mig, names);
  }
  requests.Set(model::kPods, 1);
  return requests;
}

PodClassId ClusterState::InternClass(const model::PodSpec& spec) {
  auto it = class_index_.find(spec);
  if (it != class_index_.end()) {
    ++classes_[it->second].users;
    return it->second;
  }
  const PodClassId id = TakeRow(classes_, free_classes_);
  if (names_.Full()) ForgetUnusedNames();
  PodClass& added = classes_[id];
  added.spec = std::make_shared<const model::PodSpec>(spec);
  added.requests = RequestsOf(spec, names_);
  if (spec.ns == options_.reservation_namespace && added.requests[model::kGpu] > 0) {
    added.reservation = true;
    added.requests.Set(model::kGpu, 0);
  }
  added.scoring.Set(model::kCpu, std::max<int64_t>(0, spec.scoring_requests.cpu_milli));
  added.scoring.Set(model::kMemory, std::max<int64_t>(0, spec.scoring_requests.memory_bytes));
  added.aligned = AlignedUnitsOf(spec, names_);
  SetCharge(added);
  added.users = 1;
  added.serial = ++last_class_serial_;
  class_index_.emplace(spec, id);
  if (spec.gpu_share.memory_mib > 0) ++memory_share_classes_;
  AddTerms(spec);
  return id;
}

void ClusterState::ReleaseClass(PodClassId id) {
  if (id == kNoId) return;
  PodClass& released = classes_[id];
  FAIRLEAD_CHECK(released.users > 0, "pod class released more often than taken");
  if (--released.users > 0) return;
  Tell({.kind = StateChange::Kind::kClassGone, .row = id});
  class_index_.erase(*released.spec);
  if (released.spec->gpu_share.memory_mib > 0) --memory_share_classes_;
  DropTerms(*released.spec);
  released = PodClass{};
  free_classes_.push_back(id);
  ++classes_gone_;
}

// Names that only pods brought up go with them. A look costs O(classes + nodes), so it is paid for
// by classes that went. Every total over pods is exact, so nothing is left at such an index.
void ClusterState::ForgetUnusedNames() {
  constexpr size_t kClassesGone = 64;
  if (classes_gone_ < kClassesGone) return;
  classes_gone_ = 0;
  std::vector<bool> used(names_.size(), false);
  const auto mark = [&](const model::Resources& amounts) {
    for (size_t i = 0; i < amounts.size(); ++i) {
      if (amounts[static_cast<model::ResourceIndex>(i)] != 0) used[i] = true;
    }
  };
  for (const PodClass& pod_class : classes_) mark(pod_class.requests);
  for (const NodeInfo& node : nodes_) {
    mark(node.allocatable);
    if (node.numa == nullptr) continue;
    for (const model::ResourceIndex resource : node.numa->resources) used[resource] = true;
  }
  names_.Release(used);
}

model::StringMap ClusterState::InternLabels(const model::StringMap& labels) {
  const auto found = labels_index_.find(labels);
  if (found != labels_index_.end()) return *found;
  // What nothing else holds goes when it may outnumber the live pods: amortised O(1) a pod.
  if (labels_index_.size() > 2 * live_pods_ + 1024) {
    absl::erase_if(labels_index_, [](const model::StringMap& map) { return map.IsAlone(); });
  }
  model::StringMap interned = labels;
  interned.Intern(texts_);
  return *labels_index_.insert(std::move(interned)).first;
}

// Of a pod that goes or changes: nothing else may hold them, and tenants may make them large.
void ClusterState::ReleaseLabels(const model::StringMap& labels) {
  if (labels.holders() != 2) return;
  const auto found = labels_index_.find(labels);
  if (found != labels_index_.end() && found->SharesMemoryWith(labels)) labels_index_.erase(found);
}

// True if a decision about other pods could depend on them.
bool ClusterState::TakeLabels(PodRecord& record, const model::StringMap& labels) {
  if (record.labels == labels) return false;
  model::StringMap taken = InternLabels(labels);
  if (record.node == kNoId) {
    ReleaseLabels(std::exchange(record.labels, std::move(taken)));
    return false;
  }
  Tell({.kind = StateChange::Kind::kPodLabelsGo, .pod = record.id, .to_node = record.node});
  ReleaseLabels(std::exchange(record.labels, std::move(taken)));
  Tell({.kind = StateChange::Kind::kPodLabelsCome, .pod = record.id, .to_node = record.node});
  if (classes_with_terms_ == 0) return false;
  TouchNode(record.node);
  return true;
}

PodId ClusterState::NewPod() {
  const PodId id = TakeRow(pods_, free_pods_);
  hints_.resize(pods_.size());
  pods_[id] = PodRecord{};
  pods_[id].id = id;
  ++live_pods_;
  return id;
}

PodRecord& ClusterState::NewNamedPod(const model::ObjectMeta& meta) {
  const PodId id = NewPod();
  PodRecord& record = pods_[id];
  record.ns = meta.ns;
  record.name = meta.name;
  record.uid = meta.uid;
  pod_index_.Insert(id);
  return record;
}

void ClusterState::ReadTaskPriority(PodRecord& record, const model::Pod& pod) {
  int32_t value = 0;
  const bool has = absl::SimpleAtoi(pod.meta.labels.Get(model::kTaskPriorityLabel), &value);
  if (!has) value = 0;
  if (has == record.has_task_priority && value == record.task_priority) return;
  record.has_task_priority = has;
  record.task_priority = value;
  if (record.workload == kNoId) return;
  Workload& workload = workloads_[record.workload];
  workload.pods.erase(std::find(workload.pods.begin(), workload.pods.end(), record.id));
  InsertInTaskOrder(workload, record.id);
  TouchWorkload(workload.id);
  // What its PodGroup leaves open is as the first pod says, and the first may be another one now.
  RenewWorkload(workload.id);
}

size_t ClusterState::SchedulerOf(const model::Pod& pod) const {
  const std::vector<std::string>& names = options_.scheduler_names;
  return static_cast<size_t>(std::find(names.begin(), names.end(), pod.scheduler_name) -
                             names.begin());
}

bool ClusterState::IsGuestScheduler(absl::string_view name) const {
  const std::vector<std::string>& guests = options_.guest_schedulers;
  return std::find(guests.begin(), guests.end(), name) != guests.end();
}

bool ClusterState::IsOurs(const model::Pod& pod) const {
  if (SchedulerOf(pod) >= options_.scheduler_names.size()) return false;
  return !IsGuestScheduler(pod.scheduler_name) ||
         !pod.meta.labels.Get(model::kQueueLabel).empty() || !model::GroupNameOf(pod).empty();
}

bool ClusterState::IsGuest(const PodRecord& pod) const {
  return !options_.guest_schedulers.empty() && IsGuestScheduler(SchedulerNameOf(pod));
}

absl::string_view ClusterState::SchedulerNameOf(const PodRecord& pod) const {
  const std::vector<std::string>& names = options_.scheduler_names;
  return pod.ours && pod.scheduler < names.size() ? absl::string_view(names[pod.scheduler]) : "";
}

void ClusterState::MarkSucceeded(const model::Pod& pod) {
  PodRecord& mark = NewNamedPod(pod.meta);
  mark.ours = true;
  mark.status = PodStatus::kSucceeded;
  mark.pod_class = InternClass(model::PodSpec());
  AttachToWorkload(mark, pod);
}

const model::PodSpec& ClusterState::SpecOfClass(const model::Pod& pod, bool ours,
                                                const PodRecord* known,
                                                std::optional<model::PodSpec>& changed) const {
  const auto own = [&]() -> model::PodSpec& {
    if (!changed.has_value()) changed = pod.spec;
    return *changed;
  };
  const model::GpuShare share = WithinBounds(pod.spec.gpu_share);
  if (!(share == pod.spec.gpu_share)) own().gpu_share = share;
  if (!pod.spec.volume_claims.empty()) own().volume_claims.clear();
  if (ReadsNamespaces(pod.spec)) ResolveNamespaces(own());
  if (ours) {
    if (!options_.profiles.empty()) {
      const auto profile = options_.profiles.find(pod.scheduler_name);
      const bool other = profile != options_.profiles.end() && profile->second != 0;
      if (other) own().profile = profile->second;
    }
    if (options_.keep_images && !pod.images.names.empty()) own().images = pod.images;
    if (TakesDefaultSpread(pod, changed.has_value() ? *changed : pod.spec)) {
      const model::LabelSelector selector = default_selectors_.SelectorOf(SpreadGroupOf(pod.meta));
      if (!selector.none) SetDefaultSpread(selector, pod.meta.labels, own());
    }
    if (known != nullptr && pod.node_name.empty()) {
      const model::NodeAnswers& answers = classes_[known->pod_class].spec->node_answers;
      if (!answers.IsEmpty()) own().node_answers = answers;
    }
    for (const std::string& key : options_.plugin_labels) {
      const std::string* value = pod.meta.labels.Find(key);
      if (value != nullptr) own().labels_for_plugins.Set(key, *value);
    }
    const model::PodSpec& bounded = changed.has_value() ? *changed : pod.spec;
    std::optional<model::PodSpec> selected = SelectedSpec(bounded, pod.meta.labels);
    if (selected.has_value()) changed = std::move(selected);
  }
  return changed.has_value() ? *changed : pod.spec;
}

std::shared_ptr<const model::PodSpec> ClusterState::SpecFor(const model::Pod& pod) const {
  std::optional<model::PodSpec> changed;
  const model::PodSpec& spec = SpecOfClass(pod, /*ours=*/true, nullptr, changed);
  return std::make_shared<model::PodSpec>(spec);
}

PodRecord& ClusterState::AddPod(const model::Pod& pod, bool ours, const model::PodSpec& spec) {
  PodRecord& record = NewNamedPod(pod.meta);
  record.creation = pod.meta.creation;
  record.ours = ours;
  if (ours) record.scheduler = static_cast<uint16_t>(SchedulerOf(pod));
  record.runs_to_end = pod.runs_to_end;
  record.pod_class = InternClass(spec);
  for (const model::OwnerReference& owner : pod.meta.owners) {
    // A node owns what its kubelet mirrors of a static pod.
    const bool bound_to_node = owner.kind == "DaemonSet" || owner.kind == "Node";
    if (owner.controller && bound_to_node) record.daemon = true;
    record.has_controller = record.has_controller || owner.controller;
  }
  if (pod.meta.annotations.Has(model::kMirrorPodAnnotation)) record.daemon = true;
  return record;
}

void ClusterState::ReadMeta(PodRecord& record, const model::Pod& pod) {
  ReadTaskPriority(record, pod);
  // Equivalent workloads share a verdict, which names the generation.
  if (record.generation != pod.meta.generation && record.workload != kNoId) {
    TouchWorkload(record.workload);
  }
  record.generation = pod.meta.generation;
  const model::StringMap& annotations = pod.meta.annotations;
  const bool stays = model::MustStay(annotations);
  const bool estimated = model::WantsEstimate(annotations);
  if ((stays != record.do_not_disrupt || estimated != record.details->wants_estimate) &&
      record.workload != kNoId) {
    TouchWorkload(record.workload);
  }
  record.do_not_disrupt = stays;
  absl::Time started_at;
  if (absl::ParseTime(absl::RFC3339_full, annotations.Get(model::kLastStartAnnotation), &started_at,
                      nullptr) &&
      started_at != record.started_at) {
    record.started_at = started_at;
    if (record.workload != kNoId) TouchWorkload(record.workload);
  }
  if (const uint32_t start_s = StartSecondsOf(pod); start_s != record.start_s) {
    record.start_s = start_s;
    if (record.workload != kNoId) TouchWorkload(record.workload);
  }
  record.has_verdict = !annotations.Get(model::kVerdictAnnotation).empty();
  record.details.Set(DetailsOf(pod));
}

Change ClusterState::UpsertPod(const model::Pod& pod) {
  Change change;
  PodId id = FindPod(pod.meta.ns, pod.meta.name);
  const bool succeeded = pod.phase == model::PodPhase::kSucceeded;
  if (id != kNoId) {
    const PodRecord& known = pods_[id];
    const bool same = known.uid == pod.meta.uid;
    const bool marked = known.status == PodStatus::kSucceeded;
    if (same && marked && succeeded && workloads_[known.workload].name == model::GroupNameOf(pod)) {
      return change;
    }
    if (!same || marked || succeeded) {
      change |= RemovePod(pod.meta.ns, pod.meta.name, known.uid);
      id = kNoId;
    }
  }
  // The scheduler name of a pod does not change.
  const bool ours = id != kNoId ? pods_[id].ours : IsOurs(pod);
  if (succeeded) {
    if (!ours || model::GroupNameOf(pod).empty()) return change;
    MarkSucceeded(pod);
    change.workloads = true;
    return change;
  }
  std::optional<model::PodSpec> changed;
  const model::PodSpec& spec = SpecOfClass(pod, ours, id == kNoId ? nullptr : &pods_[id], changed);
  if (id == kNoId) {
    // A pod of another scheduler matters only while it takes capacity.
    if (!ours && (pod.node_name.empty() || pod.phase == model::PodPhase::kFailed)) return change;
    id = AddPod(pod, ours, spec).id;
    change.workloads = ours;
  }
  PodRecord& record = pods_[id];
  const WorkloadId former_workload = record.workload;
  // What has a nominated node is equivalent to no other workload. It calls for no cycle.
  if (record.details->nominated_node != pod.nominated_node_name && former_workload != kNoId) {
    TouchWorkload(former_workload);
  }
  const uint64_t former_version =
      former_workload == kNoId ? 0 : workloads_[former_workload].version;
  const std::string former_invalid = record.details->invalid;
  ReadMeta(record, pod);
  // Before the labels are replaced: what is filed holds them.
  if (!(record.labels == pod.meta.labels)) default_selectors_.Drop(id);
  change.capacity |= TakeLabels(record, pod.meta.labels);

  const bool claims = ReadClaims(record, pod);
  const bool volumes = ReadVolumes(record, pod);
  const model::PodSpec& classed = *classes_[record.pod_class].spec;
  if (claims || volumes ? !SameWithoutClaims(classed, spec) : !(classed == spec)) {
    ChangeClass(record, spec);
    change.capacity = true;
    change.workloads = true;
  }
  FileForDefaults(record, pod);
  if (ours) {
    AttachToWorkload(record, pod);
    // A pod that is refused takes no part in its workload.
    if (AssignSet(record) || record.details->invalid != former_invalid) {
      change.workloads = true;
      TouchWorkload(record.workload);
    }
    const Workload& workload = workloads_[record.workload];
    if ((workload.id != former_workload || workload.version != former_version) &&
        record.status == PodStatus::kPending && record.node == kNoId) {
      change.workloads = true;
    }
  }
  change |= PlaceFromApi(record, pod);
  if (claims) {
    const PodClassId former = record.pod_class;
    RefreshClaimsOf(record.id);
    change.workloads |= record.pod_class != former;
  }
  if (volumes && RefreshVolumesOf(record.id)) change.workloads = true;
  if (!new_terms_.empty() && ReclassSelected()) change.workloads = true;
  return change;
}

// Resized in place or relabelled: it leaves its old class, with everything charged for it. GPU
// groups that the new class cannot have are replaced.
void ClusterState::ChangeClass(PodRecord& record, const model::PodSpec& spec) {
  const PodStatus status = record.status;
  const NodeId node = record.node;
  const GpuPick groups = record.gpu_groups;
  // What was decided for its volumes may be written already.
  const VolumeDecisions decisions = VolumeDecisionsOf(record.id);
  MovePod(record.id, PodStatus::kPending, kNoId);
  const PodClassId former = record.pod_class;
  record.pod_class = InternClass(spec);
  ReleaseClass(former);
  if (record.workload != kNoId) TouchWorkload(record.workload);
  GpuPick there;
  if (node != kNoId && classes_[record.pod_class].SharesGpu()) {
    const auto devices = static_cast<size_t>(std::max<int64_t>(1, spec.gpu_share.devices));
    there = groups.size() == devices ? groups : GpuPick{};
    for (int64_t number = 0; there.size() < devices; ++number) {
      there.push_back(UnknownGpuId(record.uid, nodes_[node].name(), number));
    }
  }
  MovePod(record.id, status, node, kAtEnd, &there);
  RestoreVolumes(record.id, decisions);
}

Change ClusterState::SetNodeAnswers(PodId id, const model::NodeAnswers& answers) {
  Change change;
  PodRecord& record = pods_[id];
  if (!record.ours || record.status == PodStatus::kSucceeded) return change;
  const std::shared_ptr<const model::PodSpec> former = classes_[record.pod_class].spec;
  if (former->node_answers == answers) return change;
  model::PodSpec spec = *former;
  spec.node_answers = answers;
  ChangeClass(record, spec);
  change.workloads = true;
  return change;
}

Change ClusterState::AnswersChanged(PodClassId id, uint64_t serial) {
  Change change;
  if (id >= classes_.size() || classes_[id].users == 0 || classes_[id].serial != serial) {
    return change;
  }
  Tell({.kind = StateChange::Kind::kClassAnswers, .row = id});
  change.capacity = true;
  return change;
}

Change ClusterState::PlaceFromApi(PodRecord& record, const model::Pod& pod) {
  Change change;
  const PodStatus former = record.status;
  const NodeId former_node = record.node;
  PodStatus status = PodStatus::kPending;
  NodeId node = kNoId;
  if (record.terminating != pod.meta.deletion.has_value()) {
    // A victim that terminates now keeps status and node: topology spread counts it no more.
    const bool victim = record.status == PodStatus::kReleasing;
    if (victim)
      Tell({.kind = StateChange::Kind::kPodLabelsGo, .pod = record.id, .to_node = former_node});
    record.terminating = !record.terminating;
    if (victim)
      Tell({.kind = StateChange::Kind::kPodLabelsCome, .pod = record.id, .to_node = former_node});
    if (victim && classes_with_terms_ > 0) {
      TouchNode(former_node);
      change.capacity = true;
    }
    if (record.workload != kNoId) TouchWorkload(record.workload);
  }
  record.phase_running = pod.phase == model::PodPhase::kRunning;
  // Its budget may let it go now.
  const bool unready = record.ready && !pod.ready;
  record.ready = pod.ready;
  if (unready && record.ours && !budgets_.Covering(record.ns, record.labels).empty()) {
    change.policy = true;
  }
  if (record.terminating && budgets_.in_flight() > 0) budgets_.SeenLeaving(record.uid);
  if (pod.phase == model::PodPhase::kFailed || (record.terminating && pod.node_name.empty())) {
    // Terminating without ever having had a node is as good as gone.
    status = PodStatus::kFailed;
  } else if (!pod.node_name.empty()) {
    node = NodeForPod(pod.node_name);
    status = record.terminating                       ? PodStatus::kReleasing
             : pod.phase == model::PodPhase::kRunning ? PodStatus::kRunning
                                                      : PodStatus::kBound;
    // An accepted eviction counts until the API server shows it.
    if (former == PodStatus::kReleasing && former_node == node) status = PodStatus::kReleasing;
    const bool stuck = former == PodStatus::kStuckInReleasing && former_node == node;
    if (stuck && record.terminating) status = PodStatus::kStuckInReleasing;
  } else if (former == PodStatus::kBinding) {
    return change;  // decided and sent; the API server has not shown it yet
  } else if (former == PodStatus::kPipelined) {
    return change;
  } else if (!pod.scheduling_gates.empty() || !pod.held_by.empty()) {
    status = PodStatus::kGated;
  }
  if (record.terminating && status == PodStatus::kReleasing) {
    grace_ends_.Set(record.id, *pod.meta.deletion);
  } else {
    grace_ends_.Erase(record.id);
  }
  if (node != kNoId) ReadStart(record, pod);
  change.capacity |= ReadZones(record, pod, node);
  const GpuPick groups = GroupsFromApi(record, pod, node);
  const bool same_groups = groups == record.gpu_groups;
  if (status == former && node == former_node && same_groups) return change;
  MovePod(record.id, status, node, kAtEnd, &groups);
  if (node == kNoId) ForgetStart(record.id);
  if (former_node != kNoId && former_node != node) DropNodeIfUnused(former_node);
  const bool same_room = former_node == node && HoldsNode(former) && HoldsNode(status) &&
                         status != PodStatus::kReleasing && same_groups;
  if (!same_room) {
    change.capacity = former_node != kNoId || node != kNoId;
    change.workloads = record.workload != kNoId;
  }
  return change;
}

void ClusterState::ErasePod(PodId id) {
  PodRecord& record = pods_[id];
  const NodeId node = record.node;
  const bool marked = record.status == PodStatus::kSucceeded;
  if (!marked && record.status != PodStatus::kPending) MovePod(id, PodStatus::kPending, kNoId);
  grace_ends_.Erase(id);
  if (node != kNoId) DropNodeIfUnused(node);
  if (!pod_claims_.empty()) ForgetClaims(id);
  if (!pod_volumes_.empty()) ForgetVolumes(id);
  pod_zones_.erase(id);
  if (budgets_.in_flight() > 0) budgets_.SeenLeaving(record.uid);
  if (record.workload != kNoId) DetachFromWorkload(record);
  default_selectors_.Drop(id);
  ReleaseClass(record.pod_class);
  pod_index_.Erase(id);
  ReleaseLabels(record.labels);
  record = PodRecord{};
  hint_pool_.Release(std::exchange(hints_[id], nullptr));
  free_pods_.push_back(id);
  --live_pods_;
}

Change ClusterState::RemovePod(absl::string_view ns, absl::string_view name,
                               absl::string_view uid) {
  Change change;
  const PodId id = FindPod(ns, name);
  if (id == kNoId || (!uid.empty() && pods_[id].uid != uid)) return change;
  change.capacity = pods_[id].node != kNoId;
  change.workloads = pods_[id].workload != kNoId;
  const bool claims = !pod_claims_.empty() && pod_claims_.contains(id);
  ErasePod(id);
  if (claims) RetryRefusedClaims();
  return change;
}

Change ClusterState::ForgetBinding(PodId id) {
  Change change;
  if (pods_[id].status != PodStatus::kBinding) return change;
  const NodeId node = pods_[id].node;
  MovePod(id, PodStatus::kPending, kNoId);
  ForgetStart(id);
  DropNodeIfUnused(node);
  RefreshClaimsOf(id);  // what it has to join counts again
  RefreshVolumesOf(id);
  change.capacity = change.workloads = true;
  return change;
}

Change ClusterState::AssumeEvicted(PodId id) {
  Change change;
  const PodStatus status = pods_[id].status;
  if (status != PodStatus::kBinding && status != PodStatus::kBound &&
      status != PodStatus::kRunning) {
    return change;
  }
  MovePod(id, PodStatus::kReleasing, pods_[id].node);
  change.capacity = change.workloads = true;
  return change;
}

Change ClusterState::MarkStuck(absl::Time grace_end) {
  Change change;
  for (const PodId id : grace_ends_.TakeUntil(grace_end)) {
    MovePod(id, PodStatus::kStuckInReleasing, pods_[id].node);
    change.capacity = true;
  }
  return change;
}

Change ClusterState::ForgetEviction(PodId id) {
  Change change;
  if (pods_[id].status != PodStatus::kReleasing || pods_[id].terminating) return change;
  budgets_.Release(pods_[id].uid);
  MovePod(id, PodStatus::kRunning, pods_[id].node);
  change.capacity = change.workloads = true;
  return change;
}

Change ClusterState::HoldBack(PodId id, const std::string& why, bool held) {
  PodRecord& record = pods_[id];
  const bool gated = record.status == PodStatus::kGated;
  if (held ? record.status != PodStatus::kPending : !gated || record.details->gate != why) {
    return {};
  }
  record.details.Own().gate = held ? why : "";
  record.details.Shrink();
  MovePod(id, held ? PodStatus::kGated : PodStatus::kPending, kNoId);
  return {.workloads = true};
}

}  // namespace fairlead::state
