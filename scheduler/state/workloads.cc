// Workloads of ClusterState: which pods are scheduled as one, and what their objects say about
// them.
#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/group_name.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/gang_sets.h"
#include "scheduler/state/rows.h"

namespace fairlead::state {

using model::Preemptibility;

struct WorkloadTerms {
  std::string queue;  // empty: none is named
  std::string label_class, pod_class, owner_kind;
  std::optional<int32_t> pod_priority;
  PriorityRules rules = PriorityRules::kKai;
  bool never_preempts = false;
  Preemptibility preemptibility = Preemptibility::kByPriority;
  int64_t min_member = 1;
  std::string invalid;
  std::vector<std::string> warnings;
  std::optional<absl::Duration> staleness_grace;
  absl::Duration preemption_delay;
  absl::Time creation;
};

struct PriorityTerms {
  int32_t priority = 0;
  bool preemptible = true, may_preempt = true;  // as in Workload
};

namespace {

absl::string_view ControllerKind(const model::Pod& pod) {
  for (const model::OwnerReference& owner : pod.meta.owners) {
    if (owner.controller) return owner.kind;
  }
  return "";
}

// KAI's default PriorityClass by the kind of the owner (facts 2.7): serving, interactive, training.
absl::string_view DefaultClassFor(absl::string_view owner_kind) {
  if (owner_kind == "ReplicaSet" || owner_kind == "Deployment") return "inference";
  if (owner_kind == "Notebook") return "build";
  return "train";
}

// A duration as Go writes it, on a pod. What cannot be read is ignored, with a warning, as in KAI.
std::optional<absl::Duration> ReadSpan(const PodRecord& pod, absl::string_view annotation,
                                       absl::string_view text, bool may_be_negative,
                                       std::vector<std::string>& warnings) {
  if (text.empty()) return std::nullopt;
  const std::optional<absl::Duration> span = model::ParseSpan(text);
  if (span.has_value() && (may_be_negative || *span >= absl::ZeroDuration())) return span;
  warnings.push_back(
      absl::StrCat("pod ", model::Key(pod.ns, pod.name), ": annotation ", annotation, ": \"", text,
                   span.has_value() ? "\" is negative" : "\" is no duration", "; it is ignored"));
  return std::nullopt;
}

GroupStatus StatusOf(const model::PodGroup& group) {
  const model::StringMap& annotations = group.meta.annotations;
  return {std::string(annotations.Get(model::kStaleSinceAnnotation)),
          std::string(annotations.Get(model::kLastEvictionAnnotation)), group.schedulability_hash,
          group.scheduling_conditions};
}

// Infinite past: the annotation is absent, or no time.
absl::Time LastStartOf(const model::PodGroup& group) {
  absl::Time start;
  const bool said = absl::ParseTime(
      absl::RFC3339_full, group.meta.annotations.Get(model::kLastStartAnnotation), &start, nullptr);
  return said ? start : absl::InfinitePast();
}

// What a PodGroup leaves open is as the first pod says.
void Override(WorkloadTerms& terms, const model::PodGroupSpec& group) {
  if (!group.queue.empty()) terms.queue = group.queue;
  if (!group.priority_class_name.empty()) terms.label_class = group.priority_class_name;
  if (group.preemptibility != Preemptibility::kByPriority) {
    terms.preemptibility = group.preemptibility;
  }
  terms.min_member = group.min_member.value_or(1);
  terms.invalid = group.invalid;
  if (group.staleness_grace_period.has_value()) {
    terms.staleness_grace = group.staleness_grace_period;
  }
  if (group.preemption_delay.has_value()) {
    terms.preemption_delay = std::max(absl::ZeroDuration(), *group.preemption_delay);
  }
}

}  // namespace

PriorityRules ClusterState::RulesOf(const PodRecord& pod) const {
  const uint16_t profile = classes_[pod.pod_class].spec->profile;
  return profile < options_.priority_rules.size() ? options_.priority_rules[profile]
                                                  : PriorityRules::kKai;
}

int32_t ClusterState::KaiPriority(const WorkloadTerms& terms) const {
  // A class that does not exist is ignored, as in KAI.
  for (absl::string_view name : {terms.label_class, terms.pod_class}) {
    const PriorityClassId id = name.empty() ? kNoId : FindPriorityClass(name);
    if (id != kNoId) return priority_classes_[id].value;
  }
  if (!terms.pod_class.empty() && terms.pod_priority.has_value()) return *terms.pod_priority;
  PriorityClassId id = FindPriorityClass(DefaultClassFor(terms.owner_kind));
  if (id == kNoId) id = global_default_class_;
  return id == kNoId ? options_.default_priority : priority_classes_[id].value;
}

PriorityTerms ClusterState::ReadPriority(const WorkloadTerms& terms) const {
  PriorityTerms read;
  read.preemptible = terms.preemptibility != Preemptibility::kNonPreemptible;
  if (terms.rules == PriorityRules::kKai) {
    read.priority = KaiPriority(terms);
    if (terms.preemptibility == Preemptibility::kByPriority) {
      read.preemptible = read.priority < options_.non_preemptible_priority;
    }
    return read;
  }
  // The API server's admission has resolved the pod's class.
  read.priority = terms.pod_priority.value_or(0);
  read.may_preempt = !terms.never_preempts;
  const PriorityClassId of_group =
      terms.label_class.empty() ? kNoId : FindPriorityClass(terms.label_class);
  if (of_group != kNoId) {
    read.priority = priority_classes_[of_group].value;
    read.may_preempt = !priority_classes_[of_group].never_preempts;
  }
  return read;
}

WorkloadId ClusterState::NewWorkload() {
  const WorkloadId id = TakeRow(workloads_, free_workloads_);
  const uint64_t version = workloads_[id].version + 1;
  workloads_[id] = Workload{};
  workloads_[id].id = id;
  workloads_[id].version = version;
  ++live_workloads_;
  return id;
}

WorkloadId ClusterState::NewGroup(absl::string_view ns, absl::string_view name) {
  const WorkloadId id = NewWorkload();
  Workload& workload = workloads_[id];
  workload.is_group = true;
  workload.ns = std::string(ns);
  workload.name = std::string(name);
  group_index_.Insert(id);
  return id;
}

void ClusterState::AttachToWorkload(PodRecord& record, const model::Pod& pod) {
  PodHints hints;
  const model::StringMap& labels = pod.meta.labels;
  hints.queue = std::string(labels.Get(model::kQueueLabel));
  if (hints.queue.empty()) {
    hints.queue =
        model::QueueOfProject(labels.Get(model::kProjectLabel), labels.Get(model::kNodePoolLabel));
  }
  hints.priority_class_label = std::string(labels.Get(model::kPriorityClassLabel));
  hints.priority_class_name = pod.priority_class_name;
  hints.owner_kind = std::string(ControllerKind(pod));
  hints.preemptibility = model::ParsePreemptibility(labels.Get(model::kPreemptibilityLabel));
  hints.priority = pod.priority;
  hints.never_preempts = pod.never_preempts;
  hints.staleness_grace = std::string(pod.meta.annotations.Get(model::kStalenessGraceAnnotation));
  hints.preemption_delay = std::string(pod.meta.annotations.Get(model::kPreemptionDelayAnnotation));

  const absl::string_view group_name = model::GroupNameOf(pod);
  bool moved = record.workload == kNoId;
  if (!moved) {
    const Workload& current = workloads_[record.workload];
    moved = current.is_group ? current.name != group_name : !group_name.empty();
  }
  if (!moved && hints_[record.id] != nullptr && *hints_[record.id] == hints) {
    const Workload& current = workloads_[record.workload];
    if ((current.details->invalid == record.details->invalid || current.is_group) &&
        TurnOf(current) == current.turn) {
      return;
    }
  }
  // It stays where it is, with all that it holds.
  if (moved && record.workload != kNoId) DetachFromWorkload(record);
  hint_pool_.Release(std::exchange(hints_[record.id], hint_pool_.Intern(hints)));

  if (moved) {
    WorkloadId id = kNoId;
    if (group_name.empty()) {
      id = NewWorkload();
      workloads_[id].ns = record.ns;
      workloads_[id].name = record.name;
      workloads_[id].uid = record.uid;
      workloads_[id].creation = record.creation;
    } else {
      id = FindGroup(record.ns, group_name);
      if (id == kNoId) {
        id = NewGroup(record.ns, group_name);
        workloads_[id].creation = record.creation;
      }
    }
    record.workload = id;
    Workload& workload = workloads_[id];
    ++workload.by_status[static_cast<int>(record.status)];
    if (record.status != PodStatus::kSucceeded) {
      InsertInTaskOrder(workload, record.id);
      // What runs there already decides, also if the pod that comes is older.
      if (HoldsNode(record.status) && workload.oldest_start != kNoId && workload.LacksGroup()) {
        record.started_as = KeptBy(workload);
      }
      CompareStart(workload, record);
      record.set = kNoSet;  // in none of this workload yet
      AssignSet(record);
    }
    if (IsAllocated(record.status)) TellCharged(record);
    TouchWorkload(id);
  }
  RenewWorkload(record.workload, moved);
}

void ClusterState::RenewWorkload(WorkloadId id, bool changed) {
  Workload& workload = workloads_[id];
  const std::string former_queue = pod_claims_.empty() ? "" : workload.queue;
  if (!RefreshWorkload(workload) && !changed) return;
  TouchWorkload(id);
  if (pod_claims_.empty() || workload.queue == former_queue) return;
  // Claims are checked against the queue.
  for (PodId pod : PodIds(workload.pods)) RefreshPodClaims(pod);
}

void ClusterState::DetachFromWorkload(PodRecord& record) {
  const WorkloadId id = record.workload;
  Workload& workload = workloads_[id];
  if (record.set != kNoSet && IsAllocated(record.status)) {
    --workload.active[static_cast<size_t>(record.set)];
  }
  --workload.by_status[static_cast<int>(record.status)];
  if (IsAllocated(record.status)) TellReleased(record);
  if (record.status != PodStatus::kSucceeded) {
    workload.pods.erase(std::find(workload.pods.begin(), workload.pods.end(), record.id));
    if (workload.oldest_start == record.id) workload.oldest_start = FindOldestStart(workload);
  }
  record.workload = kNoId;
  TouchWorkload(id);
  DropWorkloadIfUnused(id);
  if (workload.id != kNoId) RenewWorkload(id, /*changed=*/true);
}

void ClusterState::DropWorkloadIfUnused(WorkloadId id) {
  Workload& workload = workloads_[id];
  if (!workload.pods.empty() || workload.group != nullptr ||
      workload.Count(PodStatus::kSucceeded) > 0) {
    return;
  }
  Tell({.kind = StateChange::Kind::kWorkloadGone, .workload = id});
  if (workload.is_group) group_index_.Erase(id);
  const uint64_t version = workload.version;
  workload = Workload{};
  workload.version = version;
  free_workloads_.push_back(id);
  --live_workloads_;
}

// Label first and higher first, then age, then uid as a plain string (facts 3.4, conformance rule
// 3).
void ClusterState::InsertInTaskOrder(Workload& workload, PodId id) {
  auto before = [this](PodId a_id, PodId b_id) {
    const PodRecord& a = pods_[a_id];
    const PodRecord& b = pods_[b_id];
    if (a.has_task_priority != b.has_task_priority) return a.has_task_priority;
    if (a.task_priority != b.task_priority) return a.task_priority > b.task_priority;
    if (a.creation != b.creation) return a.creation < b.creation;
    return a.uid < b.uid;
  };
  workload.pods.insert(std::upper_bound(workload.pods.begin(), workload.pods.end(), id, before),
                       id);
}

absl::Time ClusterState::TurnOf(const Workload& workload) const {
  const JobOrder& order = options_.job_order;
  if (order.duration_weight == 0) return workload.creation;
  absl::Duration duration = absl::InfiniteDuration();
  if (!workload.pods.empty()) duration = pods_[workload.pods.front()].details->expected_duration;
  if (duration == absl::InfiniteDuration()) duration = order.assumed_duration;
  return workload.creation + order.duration_weight * std::min(duration, JobOrder::kLongestDuration);
}

WorkloadTerms ClusterState::TermsOfFirstPod(const Workload& workload) const {
  WorkloadTerms terms;
  if (workload.pods.empty()) return terms;
  const PodRecord& pod = pods_[workload.pods.front()];
  const PodHints& hints = *hints_[pod.id];
  terms.queue = hints.queue;
  terms.rules = RulesOf(pod);
  // The label is KAI's.
  if (terms.rules == PriorityRules::kKai) terms.label_class = hints.priority_class_label;
  terms.never_preempts = hints.never_preempts;
  terms.pod_class = hints.priority_class_name;
  terms.owner_kind = hints.owner_kind;
  terms.pod_priority = hints.priority;
  terms.preemptibility = hints.preemptibility;
  terms.staleness_grace = ReadSpan(pod, model::kStalenessGraceAnnotation, hints.staleness_grace,
                                   /*may_be_negative=*/true, terms.warnings);
  terms.preemption_delay = ReadSpan(pod, model::kPreemptionDelayAnnotation, hints.preemption_delay,
                                    /*may_be_negative=*/false, terms.warnings)
                               .value_or(absl::ZeroDuration());
  return terms;
}

WorkloadTerms ClusterState::TermsOf(const Workload& workload) const {
  WorkloadTerms terms = TermsOfFirstPod(workload);
  if (workload.group != nullptr) Override(terms, *workload.group);
  if (workload.LacksGroup() && workload.oldest_start != kNoId) {
    terms.preemptibility = KeptBy(workload);
  }
  if (const auto& notes = workload.details->notes; notes != nullptr) {
    if (terms.invalid.empty()) terms.invalid = notes->sets_problem;
    for (const std::string* note :
         {&notes->sets_warning, &notes->stale_warning, &notes->eviction_warning}) {
      if (!note->empty()) terms.warnings.push_back(*note);
    }
  }
  terms.creation = workload.creation;
  if (!workload.pods.empty()) {
    const PodRecord& first = pods_[workload.pods.front()];
    // Without its object a group is as old as its first pod, whichever was seen first.
    if (workload.LacksGroup()) terms.creation = first.creation;
    if (!workload.is_group) terms.invalid = first.details->invalid;
  }
  return terms;
}

bool ClusterState::RefreshWorkload(Workload& workload) {
  WorkloadTerms terms = TermsOf(workload);
  std::string warning = absl::StrJoin(terms.warnings, "; ");
  workload.queue_named = !terms.queue.empty();
  if (terms.queue.empty()) terms.queue = options_.default_queue;
  const bool aged = terms.creation != workload.creation;
  workload.creation = terms.creation;
  const PriorityTerms priority = ReadPriority(terms);
  workload.plain = !workload.is_group && !workload.pods.empty() && terms.invalid.empty() &&
                   warning.empty() && terms.preemption_delay == absl::ZeroDuration();
  const absl::Time turn = TurnOf(workload);
  const bool recharge =
      terms.queue != workload.queue || priority.preemptible != workload.preemptible;
  const bool changed =
      aged || recharge || priority.priority != workload.priority ||
      priority.may_preempt != workload.may_preempt || terms.rules != workload.priority_rules ||
      terms.min_member != workload.details->min_member ||
      terms.invalid != workload.details->invalid || warning != workload.details->warning ||
      terms.staleness_grace != workload.details->staleness_grace ||
      terms.preemption_delay != workload.details->preemption_delay || turn != workload.turn;
  if (!changed) return RefreshSortKey(workload);
  // What it has is charged to the queue that it leaves; the listener sees both sides.
  auto for_each_allocated = [&](auto f) {
    if (!recharge) return;
    for (PodId pod : workload.pods) {
      if (IsAllocated(pods_[pod].status)) f(pods_[pod]);
    }
  };
  for_each_allocated([&](const PodRecord& pod) { TellReleased(pod); });
  workload.queue = std::move(terms.queue);
  workload.priority = priority.priority;
  workload.turn = turn;
  workload.preemptible = priority.preemptible;
  workload.may_preempt = priority.may_preempt;
  workload.priority_rules = terms.rules;
  WorkloadDetails details = *workload.details;
  details.min_member = terms.min_member;
  details.invalid = std::move(terms.invalid);
  details.warning = std::move(warning);
  details.staleness_grace = terms.staleness_grace;
  details.preemption_delay = terms.preemption_delay;
  workload.details.Set(std::move(details));
  for_each_allocated([&](const PodRecord& pod) { TellCharged(pod); });
  RefreshSortKey(workload);
  return true;
}

bool ClusterState::RefreshSortKey(Workload& workload) const {
  if (queue_sort_ == nullptr || workload.pods.empty()) return false;
  const int64_t sort_key = queue_sort_(workload);
  if (sort_key == workload.details->sort_key) return false;
  WorkloadDetails details = *workload.details;
  details.sort_key = sort_key;
  workload.details.Set(std::move(details));
  return true;
}

void ClusterState::RefreshSets(Workload& workload) {
  GangSets read;
  if (workload.group == nullptr) {
    read.sets = SingleSet();
  } else {
    read = ReadGangSets(*workload.group, model::Key(workload.ns, workload.name));
  }
  workload.sets = GangTree(std::move(read.sets));
  workload.active.assign(workload.sets.size(), 0);
  const bool odd = !read.problem.empty() || !read.warning.empty();
  if (odd || workload.details->notes != nullptr) {
    GroupNotes notes = workload.details->notes == nullptr ? GroupNotes{} : *workload.details->notes;
    notes.sets_problem = std::move(read.problem);
    notes.sets_warning = std::move(read.warning);
    workload.details.Own().notes = std::make_shared<const GroupNotes>(std::move(notes));
  }
  for (PodId id : workload.pods) {
    pods_[id].set = kNoSet;  // the set that it was in is no more
    AssignSet(pods_[id]);
  }
}

bool ClusterState::AssignSet(PodRecord& pod) {
  Workload& workload = workloads_[pod.workload];
  const absl::string_view label = pod.labels.Get(model::kSubGroupLabel);
  const int32_t set = SetOfLabel(workload, label);
  if (set == kNoSet || !pod.details->invalid.empty()) {
    const std::string unknown =
        absl::StrCat("pod ", model::Key(pod.ns, pod.name), ": label ", model::kSubGroupLabel,
                     ": \"", label, "\" is no sub-group of PodGroup ", workload.name);
    if (set != kNoSet && pod.details->invalid == unknown) {
      pod.details.Own().invalid.clear();
      pod.details.Shrink();
    }
    if (set == kNoSet && pod.details->invalid.empty()) pod.details.Own().invalid = unknown;
  }
  if (set == pod.set) return false;
  if (IsAllocated(pod.status)) {
    if (pod.set != kNoSet) --workload.active[static_cast<size_t>(pod.set)];
    if (set != kNoSet) ++workload.active[static_cast<size_t>(set)];
  }
  pod.set = set;
  return true;
}

absl::Time ClusterState::StartOf(const Workload& workload) const {
  if (workload.Active() == 0) return absl::InfinitePast();
  absl::Time of_pods = absl::InfiniteFuture();
  bool all_say = true;
  for (PodId id : workload.pods) {
    const PodRecord& pod = pods_[id];
    if (!IsAllocated(pod.status)) continue;
    if (pod.started_at == absl::InfinitePast()) {
      all_say = false;
    } else {
      of_pods = std::min(of_pods, pod.started_at);
    }
  }
  if (workload.group_start != absl::InfinitePast()) {
    return all_say ? std::max(workload.group_start, of_pods) : workload.group_start;
  }
  return of_pods == absl::InfiniteFuture() ? absl::InfinitePast() : of_pods;
}

Change ClusterState::UpsertPodGroup(const model::PodGroup& group) {
  Change change;
  WorkloadId id = FindGroup(group.meta.ns, group.meta.name);
  if (id == kNoId) id = NewGroup(group.meta.ns, group.meta.name);
  Workload& workload = workloads_[id];
  std::optional<FormerGroup> old;
  if (workload.group != nullptr) {
    old = FormerGroup{workload.uid, workload.group, *workload.group_status};
  }
  // Every pod may have a group: what nothing reads is not kept, and what most groups say is shared.
  model::PodGroupSpec spec = group;
  spec.node_pool = model::NodePoolOf(group);
  const bool same_spec = old.has_value() && old->uid == group.meta.uid && *old->spec == spec &&
                         workload.creation == group.meta.creation;
  if (!same_spec) {
    workload.group = group_specs_.Intern(spec);
    workload.uid = group.meta.uid;
    workload.creation = group.meta.creation;
  }
  workload.group_status.Set(StatusOf(group));
  const absl::Time start = LastStartOf(group);
  if (!old.has_value() || start != workload.group_start) {
    workload.group_start = start;
    TouchWorkload(id);  // its victims' order depends on it
  }
  const bool same_generation = old.has_value() && workload.generation == group.meta.generation;
  workload.generation = group.meta.generation;
  const bool past_changed = ReadPast(workload, old.has_value() ? &*old : nullptr);
  if (same_spec && !past_changed) {
    // A verdict that it shares with equivalent workloads names the generation.
    if (!same_generation) {
      TouchWorkload(id);
      change.workloads = true;
    }
    return change;
  }
  if (!same_spec) RefreshSets(workload);
  if (!same_spec && old.has_value()) group_specs_.Release(std::move(old->spec));
  RenewWorkload(id, /*changed=*/true);
  change.workloads = true;
  return change;
}

Change ClusterState::RemovePodGroup(absl::string_view ns, absl::string_view name,
                                    absl::string_view uid) {
  Change change;
  const WorkloadId id = FindGroup(ns, name);
  if (id == kNoId || workloads_[id].group == nullptr) return change;
  Workload& workload = workloads_[id];
  if (!uid.empty() && workload.uid != uid) return change;
  KeepPreemptibility(workload);
  group_specs_.Release(std::exchange(workload.group, nullptr));
  workload.group_status = {};
  workload.group_start = absl::InfinitePast();
  workload.generation = 0;
  workload.uid.clear();
  WorkloadDetails details = *workload.details;
  details.stale_since = absl::InfiniteFuture();
  details.last_eviction = absl::InfinitePast();
  details.failed_attempt = nullptr;
  details.notes = nullptr;
  workload.details.Set(std::move(details));
  RefreshSets(workload);
  TouchWorkload(id);
  change.workloads = true;
  DropWorkloadIfUnused(id);
  if (workload.id != kNoId) RenewWorkload(id, /*changed=*/true);
  return change;
}

void ClusterState::RenewPriorities() {
  // As the API server's admission chooses.
  global_default_class_ = kNoId;
  for (const auto& [name, id] : priority_class_index_) {
    if (!priority_classes_[id].global_default) continue;
    const auto rank = [&](PriorityClassId each) {
      return std::tie(priority_classes_[each].value, priority_classes_[each].meta.name);
    };
    if (global_default_class_ == kNoId || rank(id) < rank(global_default_class_)) {
      global_default_class_ = id;
    }
  }
  for (const Workload& workload : workloads_) {
    if (workload.id != kNoId) RenewWorkload(workload.id);
  }
}

Change ClusterState::UpsertPriorityClass(const model::PriorityClass& priority_class) {
  Change change;
  const auto [it, added] = priority_class_index_.try_emplace(priority_class.meta.name, kNoId);
  if (added) it->second = TakeRow(priority_classes_, free_priority_classes_);
  const PriorityClassId id = it->second;
  model::PriorityClass& row = priority_classes_[id];
  const bool same = !added && row.value == priority_class.value &&
                    row.global_default == priority_class.global_default &&
                    row.never_preempts == priority_class.never_preempts;
  row = priority_class;
  if (same) return change;
  Tell({.kind = StateChange::Kind::kPriorityClass, .row = id});
  change.policy = true;
  RenewPriorities();
  return change;
}

Change ClusterState::RemovePriorityClass(absl::string_view name) {
  Change change;
  const auto it = priority_class_index_.find(name);
  if (it == priority_class_index_.end()) return change;
  const PriorityClassId id = it->second;
  Tell({.kind = StateChange::Kind::kPriorityClassGone, .row = id});
  priority_class_index_.erase(it);
  priority_classes_[id] = model::PriorityClass{};
  free_priority_classes_.push_back(id);
  change.policy = true;
  RenewPriorities();
  return change;
}

}  // namespace fairlead::state
