#include "core/reconcile/bindings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/prefetch.h"
#include "scheduler/engine/gang.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core {
namespace {

// Creation times are whole seconds.
constexpr absl::Duration kCreationPrecision = absl::Seconds(1);

// A binding that was put off so often in a row counts as refused: its capacity may serve others.

constexpr char kKnativeLabels[] = "serving.knative.dev/";

bool IsOfKnative(const model::Pod& pod) {
  return std::any_of(pod.meta.labels.begin(), pod.meta.labels.end(),
                     [](const auto& label) { return label.first.starts_with(kKnativeLabels); });
}

// A pod-grouper makes one PodGroup for all pods of such an owner, which starts when it has its
// minimum. The group of a ReplicaSet or a DaemonSet starts with any pod, but that of a Knative
// Revision starts with as many as its min-scale says.
bool HasGroupingOwner(const model::Pod& pod) {
  return std::any_of(pod.meta.owners.begin(), pod.meta.owners.end(),
                     [&](const model::OwnerReference& owner) {
                       if (!owner.controller || owner.kind == "DaemonSet") return false;
                       if (owner.kind == "ReplicaSet") return IsOfKnative(pod);
                       return owner.kind != "Node";
                     });
}

}  // namespace

BindingPipeline::Row& BindingPipeline::NewRow(state::PodId pod) {
  if (places_.size() <= pod) places_.resize(std::max<size_t>(pod + 1, 2 * places_.size()));
  uint32_t& place = places_[pod];
  if (place != 0) return rows_[place - 1] = {};
  if (free_places_.empty()) {
    rows_.emplace_back();
    place = static_cast<uint32_t>(rows_.size());
  } else {
    place = free_places_.back();
    free_places_.pop_back();
  }
  return rows_[place - 1];
}

const BindingPipeline::Row* BindingPipeline::Find(state::PodId pod) const {
  const uint32_t place = pod < places_.size() ? places_[pod] : 0;
  return place == 0 ? nullptr : &rows_[place - 1];
}

BindingPipeline::Row* BindingPipeline::Find(state::PodId pod) {
  return const_cast<Row*>(std::as_const(*this).Find(pod));
}

void BindingPipeline::Drop(state::PodId pod) {
  if (Find(pod) == nullptr) return;
  const uint32_t place = std::exchange(places_[pod], 0);
  rows_[place - 1] = {};
  free_places_.push_back(place);
}

bool BindingPipeline::IsBinding(state::PodId pod) const {
  return state_.pod(pod).id == pod && state_.pod(pod).status == state::PodStatus::kBinding;
}

model::BindPod BindingPipeline::MakeBinding(state::PodId id) const {
  const state::PodRecord& pod = state_.pod(id);
  model::BindPod bind{pod.ns, pod.name, pod.uid, state_.node(pod.node).name(), {}};
  // The pod's verdict is no longer true.
  if (pod.has_verdict) bind.annotations.Set(model::kVerdictAnnotation, "");
  return bind;
}

bool BindingPipeline::NeedsPlugin(const state::PodRecord& pod) const {
  return std::any_of(plugins_.begin(), plugins_.end(),
                     [&](const BindingPlugin* plugin) { return Needs(*plugin, pod); });
}

bool BindingPipeline::Needs(const BindingPlugin& plugin, const state::PodRecord& pod) const {
  if (!plugin.Needs(pod) || (!plugin.ServesGuests() && state_.IsGuest(pod))) return false;
  const absl::string_view name = plugin.Name();
  return name.empty() || framework_ == nullptr ||
         framework_->Prepares(state_.pod_class(pod.pod_class), name);
}

bool BindingPipeline::AwaitsAnswer(state::PodId pod) const {
  const Row* row = Find(pod);
  return row != nullptr && (row->attempts.in_flight() || row->repeat) && !row->attempts.in_doubt();
}

bool BindingPipeline::IsSent(state::PodId pod) const {
  const Row* row = Find(pod);
  return IsBinding(pod) && (row == nullptr || !row->held);
}

// ---- metrics ------------------------------------------------------------------------------------

void BindingPipeline::SetNow(absl::Time now) {
  if (now == now_) return;
  now_ = now;
  now_us_ = absl::ToUnixMicros(now);
}

BindingPipeline::Taken BindingPipeline::TakenBy(const Row& row) const {
  return {absl::Microseconds(now_us_ - row.decided_us),
          absl::Microseconds(row.sent_us == 0 ? 0 : now_us_ - row.sent_us)};
}

void BindingPipeline::TellRan(const BindingPlugin& plugin, state::PodId pod, bool ok) {
  const Row* row = Find(pod);
  if (row == nullptr || plugin.Name().empty()) return;
  host_.PluginRan({plugin.Name(), "PreBind", ok, absl::Microseconds(now_us_ - row->asked_us)});
}

void BindingPipeline::TellPermit(const Row& row, bool granted) {
  if (row.ready_us == 0 || row.ready_us == now_us_) return;
  host_.PermitWaited(granted, absl::Microseconds(now_us_ - row.ready_us));
}

// ---- decisions ----------------------------------------------------------------------------------

void BindingPipeline::Add(const std::vector<engine::Binding>& bindings, absl::Time now) {
  SetNow(now);
  in_flight_.reserve(in_flight_.size() + bindings.size());
  const engine::Binding* end = bindings.data() + bindings.size();
  const engine::Binding* soon = bindings.data();
  for (const engine::Binding* begin = bindings.data(); begin != end;) {
    const engine::Binding* next = begin + 1;
    while (next != end && next->step == begin->step) ++next;
    constexpr ptrdiff_t kAhead = 8;
    for (; soon != end && soon - begin < kAhead; ++soon) {
      Prefetch(state_.pod(soon->pod));
      if (soon - begin < kAhead / 2) continue;
      __builtin_prefetch(state_.pod((soon - kAhead / 2)->pod).uid.data());
    }
    AddStep(begin, next, now);
    begin = next;
  }
}

absl::Time BindingPipeline::SettlesAt(const state::PodRecord& pod, absl::Time now) const {
  if (may_be_grouped_.empty()) return absl::InfinitePast();
  const auto found = may_be_grouped_.find(pod.id);
  if (found == may_be_grouped_.end()) return absl::InfinitePast();
  // Pods may be listed before the PodGroups are.
  if (!settle_.always && !group_seen_ && !found->second) return absl::InfinitePast();
  // A clock of the API server that is ahead of ours does not hold the pod longer.
  return std::min(pod.creation, now) + kCreationPrecision + settle_.wait;
}

void BindingPipeline::AddStep(const engine::Binding* begin, const engine::Binding* end,
                              absl::Time now) {
  bool hold = false;
  absl::Time not_before = absl::InfinitePast();
  for (const engine::Binding* binding = begin; binding != end; ++binding) {
    const state::PodRecord& pod = state_.pod(binding->pod);
    not_before = std::max(not_before, SettlesAt(pod, now));
    hold = hold || NeedsPlugin(pod) || (end - begin > 1 && host_.GoesFirst(pod));
    in_doubt_.erase(binding->pod);
    Row& row = NewRow(binding->pod);
    row.node = pod.node;
    row.node_version = state_.node(pod.node).object_version;
    row.decided_us = now_us_;
    if (!special_.empty()) special_.erase(binding->pod);
  }
  PlacedStep placed;
  if (!in_doubt_.empty()) AddDoubts(placed, state_.pod(begin->pod).workload);
  if (!hold && not_before <= now && placed.doubts.empty()) {
    for (; begin != end; ++begin) Send(begin->pod, MakeBinding(begin->pod), now);
    return;
  }
  const uint64_t id = next_step_++;
  PlacedStep& step = steps_[id] = std::move(placed);
  step.workload = WorkloadOf(begin->pod);
  step.not_before = not_before;
  step.reserving = static_cast<size_t>(end - begin);
  for (const engine::Binding* binding = begin; binding != end; ++binding) {
    step.members.push_back(binding->pod);
    Row& row = *Find(binding->pod);
    row.held = true;
    row.step = id;
    if (end - begin > 1 && host_.GoesFirst(state_.pod(binding->pod))) {
      step.probes.insert(binding->pod);
    }
  }
  for (const engine::Binding* binding = begin; binding != end; ++binding) {
    // A member that failed at once has removed the step.
    if (!steps_.contains(id)) return;
    Reserve(id, binding->pod, MakeBinding(binding->pod), 0, now);
  }
  const auto added = steps_.find(id);
  if (added != steps_.end() && added->second.reserving > 0) slow_.Add(now + kSlow, id);
}

bool BindingPipeline::IsInDoubt(state::PodId pod) const {
  const Row* row = Find(pod);
  return row != nullptr && row->attempts.in_doubt() && IsBinding(pod);
}

std::string BindingPipeline::WorkloadOf(state::PodId pod) const {
  if (state_.pod(pod).workload == state::kNoId) return "";
  const state::Workload& workload = state_.workload(state_.pod(pod).workload);
  return absl::StrCat(workload.is_group ? "group " : "pod ", workload.ns, "/", workload.name);
}

void BindingPipeline::AddDoubts(PlacedStep& step, state::WorkloadId id) {
  std::erase_if(in_doubt_, [this](state::PodId pod) { return !IsInDoubt(pod); });
  if (in_doubt_.empty() || id == state::kNoId) return;
  const state::Workload& workload = state_.workload(id);
  const int64_t bound =
      workload.Count(state::PodStatus::kBound) + workload.Count(state::PodStatus::kRunning);
  if (!workload.is_group || bound >= engine::GangMinimum(workload)) return;
  for (const state::PodId pod : in_doubt_) {
    if (state_.pod(pod).workload == id) step.doubts.insert(pod);
  }
}

void BindingPipeline::SettleDoubts() {
  std::vector<uint64_t> ended;
  for (auto& [id, step] : steps_) {
    if (step.doubts.empty()) continue;
    bool lost = false;
    std::erase_if(step.doubts, [&](state::PodId pod) {
      if (IsInDoubt(pod)) return false;
      const state::PodRecord& record = state_.pod(pod);
      const bool bound = record.id == pod && WorkloadOf(pod) == step.workload &&
                         (record.status == state::PodStatus::kBinding ||
                          record.status == state::PodStatus::kBound ||
                          record.status == state::PodStatus::kRunning);
      lost = lost || !bound;
      return true;
    });
    if (lost) {
      ended.push_back(id);
    } else if (step.doubts.empty()) {
      permit_again_.insert(id);
    }
  }
  for (const uint64_t id : ended) Unreserve(id, state::kNoId, "", /*sent=*/false);
}

void BindingPipeline::Reserve(uint64_t id, state::PodId pod, model::BindPod bind, size_t first,
                              absl::Time now) {
  for (size_t i = first; i < plugins_.size(); ++i) {
    if (!Needs(*plugins_[i], state_.pod(pod))) continue;
    Find(pod)->asked_us = now_us_;
    const absl::Status status = plugins_[i]->Reserve(state_.pod(pod), std::move(bind));
    if (!status.ok()) {
      TellRan(*plugins_[i], pod, /*ok=*/false);
      Unreserve(id, pod, std::string(status.message()), /*sent=*/false);
    }
    return;  // the plugin gives the binding back
  }
  Row& row = *Find(pod);
  row.ready_us = now_us_;
  if (row.asked_us != 0) host_.BindingPrepared(pod, TakenBy(row).since_decided);
  PlacedStep& step = steps_.at(id);
  --step.reserving;
  step.ready.push_back(std::move(bind));
  TryPermit(id, now);
}

bool BindingPipeline::NodesAreAsDecided(const PlacedStep& step) const {
  return std::all_of(step.members.begin(), step.members.end(), [this](state::PodId pod) {
    const Row* row = Find(pod);
    return row == nullptr || !row->held || NodeIsAsDecided(*row);
  });
}

void BindingPipeline::TryPermit(uint64_t id, absl::Time now) {
  const auto found = steps_.find(id);
  if (found == steps_.end()) return;
  PlacedStep& step = found->second;
  if (step.reserving > 0 || now < step.not_before || !step.doubts.empty()) return;
  if (!NodesAreAsDecided(step)) {
    Unreserve(id, state::kNoId, "", /*sent=*/false);
    return;
  }
  std::vector<model::BindPod> held;
  for (model::BindPod& bind : std::exchange(step.ready, {})) {
    const state::PodId pod = state_.FindPod(bind.ns, bind.name);
    if (!step.probes.empty() && !step.probes.contains(pod)) {
      held.push_back(std::move(bind));
      continue;
    }
    Row& row = *Find(pod);
    TellPermit(row, /*granted=*/true);
    row.held = false;
    if (!step.probes.contains(pod)) row.step = 0;
    if (!bind.labels.empty() || !bind.annotations.empty()) special_[pod] = bind;
    Send(pod, std::move(bind), now);
  }
  step.ready = std::move(held);
  if (!step.ready.empty()) return;
  // Pods that were sent first are not held: each gets its own answer.
  for (const state::PodId pod : step.probes) {
    if (Row* row = Find(pod); row != nullptr) row->step = 0;
  }
  steps_.erase(found);
}

void BindingPipeline::Send(state::PodId pod, model::BindPod&& bind, absl::Time now) {
  uint64_t id = 0;
  host_.SendBinding(pod, std::move(bind), id);
  Row& row = *Find(pod);
  row.action_id = id;
  row.repeat = false;
  if (row.sent_us == 0) row.sent_us = now_us_;
  row.attempts.Sent(now, rules_);
  in_flight_.emplace(id, pod);
}

// ---- progress -----------------------------------------------------------------------------------

void BindingPipeline::Fail(state::PodId pod, const std::string& reason, bool sent) {
  const Row* row = Find(pod);
  const Taken taken = row == nullptr ? Taken() : TakenBy(*row);
  Drop(pod);
  special_.erase(pod);
  const std::string ns = state_.pod(pod).ns;
  const std::string name = state_.pod(pod).name;
  state_.ForgetBinding(pod);
  for (BindingPlugin* plugin : plugins_) plugin->Unreserve(ns, name);
  host_.BindingFailed(pod, reason, sent, taken);
}

void BindingPipeline::Unreserve(uint64_t id, state::PodId culprit, const std::string& reason,
                                bool sent) {
  const auto found = steps_.find(id);
  if (found == steps_.end()) return;
  const PlacedStep step = std::move(found->second);
  steps_.erase(found);
  for (const state::PodId pod : step.members) {
    Row* row = Find(pod);
    if (row == nullptr || row->step != id) continue;
    row->step = 0;
    // A pod that was sent first gets its own answer.
    if (!row->held && pod != culprit) continue;
    if (row->held) TellPermit(*row, /*granted=*/false);
    if (IsBinding(pod)) {
      Fail(pod, pod == culprit ? reason : "", pod == culprit && sent);
      continue;
    }
    Drop(pod);
    if (state_.pod(pod).id == pod) {
      // Bound by another scheduler, or about to be deleted.
      const std::string ns = state_.pod(pod).ns;
      const std::string name = state_.pod(pod).name;
      for (BindingPlugin* plugin : plugins_) plugin->Unreserve(ns, name);
    }
  }
}

void BindingPipeline::ProbeDone(state::PodId pod) {
  Row* row = Find(pod);
  const auto step = row == nullptr ? steps_.end() : steps_.find(std::exchange(row->step, 0));
  if (step == steps_.end()) return;
  step->second.probes.erase(pod);
  if (step->second.probes.empty()) permit_again_.insert(step->first);
}

bool BindingPipeline::Answered(uint64_t action_id, const absl::Status& status, absl::Time now) {
  SetNow(now);
  const auto found = in_flight_.find(action_id);
  if (found == in_flight_.end()) return false;
  const state::PodId pod = found->second;
  in_flight_.erase(found);
  Row* row = Find(pod);
  if (row == nullptr || row->action_id != action_id) return true;  // of a former decision
  // 409: the pod has a node.
  const bool fresh = !absl::IsFailedPrecondition(status) && host_.PodsAreFresh();
  const Outcome outcome = row->attempts.Answered(status, now, rules_, fresh);
  if (outcome != Outcome::kDone && !IsBinding(pod)) {  // the watch was faster
    Decided(pod, *row);
    return true;
  }
  switch (outcome) {
    case Outcome::kDone:
      special_.erase(pod);
      ProbeDone(pod);
      Done(pod, *row);
      Drop(pod);
      break;
    case Outcome::kUnknown:
      in_doubt_.insert(pod);
      RepeatAt(row->attempts.due(), pod, *row);
      host_.BindingInDoubt(pod, std::string(status.message()), row->attempts.failures());
      break;
    case Outcome::kRefused: {
      const std::string reason(status.message());
      if (absl::IsCancelled(status)) {
        row->attempts.Settle();
        RepeatAt(now, pod, *row);
        break;
      }
      if (row->attempts.IsPutOff(status)) {
        RepeatAt(row->attempts.due(), pod, *row);
        break;
      }
      if (row->step != 0) {
        Unreserve(row->step, pod, reason, /*sent=*/true);
      } else {
        Fail(pod, reason, /*sent=*/true);
      }
      break;
    }
  }
  return true;
}

void BindingPipeline::Done(state::PodId pod, Row& row) {
  const state::PodRecord& record = state_.pod(pod);
  // Another pod may have the id or the name by now.
  if (row.done || record.id != pod || record.node != row.node) return;
  row.done = true;
  host_.BindingDone(pod, TakenBy(row));
}

void BindingPipeline::Decided(state::PodId pod, Row& row) {
  const state::PodStatus status = state_.pod(pod).status;
  if (status == state::PodStatus::kBound || status == state::PodStatus::kRunning) Done(pod, row);
  if (row.step == 0) Drop(pod);
}

void BindingPipeline::PodChanged(state::PodId id, const model::Pod& pod) {
  const bool watch_groups = settle_.wait > absl::ZeroDuration();
  if (id == state::kNoId || (steps_.empty() && !watch_groups)) return;
  if (watch_groups) {
    const state::PodRecord& record = state_.pod(id);
    const bool may = record.ours && pod.node_name.empty() && !pod.meta.owners.empty() &&
                     record.workload != state::kNoId &&
                     !state_.workload(record.workload).is_group && HasGroupingOwner(pod);
    if (may) {
      may_be_grouped_[id] = pod.scheduler_name == model::kKaiSchedulerName;
    } else if (!may_be_grouped_.empty()) {
      may_be_grouped_.erase(id);
    }
  }
  const Row* row = steps_.empty() ? nullptr : Find(id);
  if (row == nullptr || row->step == 0) return;
  const uint64_t step = row->step;
  const auto found = steps_.find(step);
  if (found == steps_.end()) return;
  if (!row->held) {
    // Sent before the others of its step.
    if (state_.pod(id).status != state::PodStatus::kBinding) ProbeDone(id);
    return;
  }
  // Bound by another scheduler, about to be deleted, another pod by now, or in a gang since.
  if (IsBinding(id) && WorkloadOf(id) == found->second.workload) return;
  Unreserve(step, id, "", /*sent=*/false);
}

void BindingPipeline::PodGoing(state::PodId pod) {
  may_be_grouped_.erase(pod);
  const Row* row = Find(pod);
  const uint64_t step = row == nullptr ? 0 : row->step;
  if (step != 0) {
    const auto found = steps_.find(step);
    if (found != steps_.end()) {
      // The others are not bound without it: they may be too few.
      std::erase(found->second.members, pod);
      Unreserve(step, state::kNoId, "", /*sent=*/false);
    }
  }
  Drop(pod);
  if (!special_.empty()) special_.erase(pod);
  if (in_doubt_.erase(pod) == 0) return;
  // Its id may be another pod's when the doubts are looked at.
  std::vector<uint64_t> ended;
  for (const auto& [id, waiting] : steps_) {
    if (waiting.doubts.contains(pod)) ended.push_back(id);
  }
  for (const uint64_t id : ended) Unreserve(id, state::kNoId, "", /*sent=*/false);
}

// ---- output of a step ---------------------------------------------------------------------------

void BindingPipeline::RepeatAt(absl::Time at, state::PodId pod, Row& row) {
  row.repeat = true;
  repeats_.Add(at, pod);
}

bool BindingPipeline::NodeIsAsDecided(const Row& row) const {
  const state::NodeInfo& node = state_.node(row.node);
  return node.exists && node.object_version == row.node_version;
}

bool BindingPipeline::NodeHolds(uint64_t action_id) const {
  const auto found = in_flight_.find(action_id);
  if (found == in_flight_.end()) return true;
  const Row* const row = Find(found->second);
  if (row == nullptr || row->action_id != action_id) return true;
  if (!NodeIsAsDecided(*row)) return false;
  // Pods that were bound there since, by others, may have taken its room.
  const state::NodeInfo& node = state_.node(row->node);
  const model::Resources& requests = state_.class_of(found->second).requests;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto resource = static_cast<model::ResourceIndex>(i);
    if (requests[resource] > 0 && node.used[resource] > node.allocatable[resource]) return false;
  }
  return true;
}

void BindingPipeline::Withdraw(uint64_t action_id) {
  const auto found = in_flight_.find(action_id);
  if (found == in_flight_.end()) return;
  const state::PodId pod = found->second;
  in_flight_.erase(found);
  Row* const row = Find(pod);
  if (row == nullptr || row->action_id != action_id) return;
  if (!IsBinding(pod)) return Decided(pod, *row);
  if (row->step != 0) return Unreserve(row->step, pod, "", /*sent=*/false);
  Fail(pod, "", /*sent=*/false);
}

bool BindingPipeline::MayRepeat(state::PodId pod, const Row& row) const {
  // Nothing may be bound to a node that is gone. If the pod was, the watch will show it, and
  // another binding is refused.
  if (row.attempts.in_doubt()) return state_.node(row.node).exists;
  if (!NodeIsAsDecided(row)) return false;
  const state::Workload& workload = state_.workload(state_.pod(pod).workload);
  return !workload.is_group || engine::IsSatisfied(workload);
}

void BindingPipeline::Repeat(state::PodId pod, absl::Time now) {
  Row* row = Find(pod);
  if (row == nullptr || !row->repeat || !row->attempts.MayGo(now)) return;
  if (!IsBinding(pod)) {  // the watch has decided
    Decided(pod, *row);
    return;
  }
  if (!MayRepeat(pod, *row)) {
    if (row->step != 0) {
      Unreserve(row->step, pod, "", /*sent=*/false);
    } else {
      Fail(pod, "", /*sent=*/false);
    }
    return;
  }
  const auto special = special_.find(pod);
  Send(pod, special == special_.end() ? MakeBinding(pod) : model::BindPod(special->second), now);
}

void BindingPipeline::Advance(size_t index, absl::Time now) {
  BindingPlugin& plugin = *plugins_[index];
  if (!plugin.HasWork(now)) return;
  BindingPlugin::Progress progress = plugin.Advance(now);
  for (const BindingPlugin::Ran& ran : progress.ran) host_.PluginRan(ran);
  for (model::Action& action : progress.actions) host_.Send(std::move(action));
  const auto held = [&](const std::string& ns, const std::string& name, const std::string& uid) {
    const state::PodId pod = state_.FindPod(ns, name);
    const Row* row = pod == state::kNoId ? nullptr : Find(pod);
    const bool is = row != nullptr && state_.pod(pod).uid == uid && IsBinding(pod) && row->held &&
                    steps_.contains(row->step);
    return is ? pod : state::kNoId;
  };
  for (const BindingPlugin::Failure& failure : progress.failed) {
    const state::PodId pod = held(failure.ns, failure.name, failure.uid);
    if (pod == state::kNoId) continue;
    TellRan(plugin, pod, /*ok=*/false);
    Unreserve(Find(pod)->step, pod, failure.reason, /*sent=*/false);
  }
  for (model::BindPod& bind : progress.reserved) {
    const state::PodId pod = held(bind.ns, bind.name, bind.uid);
    if (pod == state::kNoId) {
      plugin.Unreserve(bind.ns, bind.name);
    } else if (!state_.node(state_.pod(pod).node).exists) {
      const std::string reason = absl::StrCat("node ", bind.node, " is gone");
      Unreserve(Find(pod)->step, pod, reason, /*sent=*/false);
    } else {
      TellRan(plugin, pod, /*ok=*/true);
      Reserve(Find(pod)->step, pod, std::move(bind), index + 1, now);
    }
  }
}

void BindingPipeline::TellSlow(absl::Time now) {
  for (const uint64_t id : slow_.TakeDue(now)) {
    const auto step = steps_.find(id);
    if (step == steps_.end() || step->second.reserving == 0) continue;
    for (const state::PodId pod : step->second.members) {
      const Row* row = Find(pod);
      if (row != nullptr && row->held && row->step == id && IsBinding(pod)) {
        host_.BindingIsSlow(pod);
      }
    }
  }
}

void BindingPipeline::Step(absl::Time now) {
  SetNow(now);
  for (const state::PodId pod : repeats_.TakeDue(now)) Repeat(pod, now);
  for (size_t i = 0; i < plugins_.size(); ++i) Advance(i, now);
  SettleDoubts();
  for (const auto& [id, step] : steps_) {
    if (step.not_before != absl::InfinitePast() && step.not_before <= now) permit_again_.insert(id);
  }
  for (const uint64_t id : std::exchange(permit_again_, {})) TryPermit(id, now);
  TellSlow(now);
}

size_t BindingPipeline::held() const {
  size_t count = 0;
  for (const auto& [id, step] : steps_) count += step.members.size();
  return count;
}

absl::Time BindingPipeline::wake_at() const {
  absl::Time at = std::min(repeats_.next(), slow_.next());
  for (const BindingPlugin* plugin : plugins_) at = std::min(at, plugin->wake_at());
  for (const auto& [id, step] : steps_) {
    if (step.reserving == 0 && step.doubts.empty() && step.not_before != absl::InfinitePast()) {
      at = std::min(at, step.not_before);
    }
  }
  return permit_again_.empty() ? at : absl::InfinitePast();
}

}  // namespace fairlead::core
