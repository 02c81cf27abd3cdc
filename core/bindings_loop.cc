// Bindings of DecisionLoop: the Host of the pipeline, and gangs that cannot be completed.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_impl.h"
#include "scheduler/engine/gang.h"
#include "scheduler/model/api_names.h"
#include "scheduler/verdict/text.h"

namespace fairlead::core {
namespace {

using state::PodStatus;
using verdict::Code;

// This many attempts of unknown outcome count as a refusal: repeating them binds nothing either.
constexpr int kDoubtsThatRefuse = 5;

}  // namespace

GpuSharingOptions DecisionLoop::Impl::SharingOf(const Options& options) {
  GpuSharingOptions sharing = options.gpu_sharing;
  sharing.enabled = options.state.place_gpu_shares;
  sharing.ns = options.state.reservation_namespace;
  return sharing;
}

void DecisionLoop::Impl::DeviceKindSynced(const model::Synced& synced_kind) {
  if (!model::IsDeviceKind(synced_kind.kind)) return;
  if (synced_kind.missing) {
    missing_device_kinds.insert(synced_kind.kind);
  } else {
    missing_device_kinds.erase(synced_kind.kind);
  }
  if (state.SetClaimsReadable(missing_device_kinds.empty()).Any()) dirty = true;
}

state::Change DecisionLoop::Impl::UpsertClaim(const model::ResourceClaim& claim) {
  return state.UpsertDeviceObject(claims.claims().Seen(claim));
}

// The kinds without which nothing is known of a pod's volumes.
void DecisionLoop::Impl::VolumeKindSynced(const model::Synced& synced_kind) {
  const model::Kind kind = synced_kind.kind;
  if (kind != model::Kind::kPersistentVolumeClaim && kind != model::Kind::kPersistentVolume &&
      kind != model::Kind::kStorageClass) {
    return;
  }
  if (synced_kind.missing) {
    missing_volume_kinds.insert(kind);
  } else {
    missing_volume_kinds.erase(kind);
  }
  if (state.SetVolumesReadable(missing_volume_kinds.empty()).Any()) dirty = true;
}

state::Change DecisionLoop::Impl::UpsertVolumeObject(const model::VolumeObject& object) {
  const state::Change change = state.UpsertVolumeObject(object);
  if (const auto* claim = std::get_if<model::PersistentVolumeClaim>(&object)) {
    volumes.ClaimChanged(model::Key(claim->meta));
  } else if (const auto* volume = std::get_if<model::PersistentVolume>(&object)) {
    volumes.VolumeChanged(volume->meta.name);
  }
  return change;
}

state::Change DecisionLoop::Impl::RemoveVolumeObject(const model::Delete& removed) {
  const state::Change change = state.RemoveVolumeObject(removed.kind, removed.ns, removed.name);
  if (removed.kind == model::Kind::kPersistentVolumeClaim) {
    volumes.ClaimChanged(model::Key(removed.ns, removed.name));
  } else if (removed.kind == model::Kind::kPersistentVolume) {
    volumes.VolumeChanged(removed.name);
  }
  return change;
}

void DecisionLoop::Impl::PodChanged(const model::Pod& pod) {
  const state::PodId id = state.FindPod(pod.meta.ns, pod.meta.name);
  shares.shares().PodChanged(pod);
  bindings.PodChanged(id, pod);
  if (id == state::kNoId) return;
  const state::PodRecord& record = state.pod(id);
  const bool on_node = !pod.node_name.empty();
  if (!on_node && record.ours && record.status == PodStatus::kPending) {
    if (waits.Seen(id, record.uid)) ++stats.pods_added;
  }
  if (!nominations.empty()) nominations.PodSeen(id);
  permits.PodSeen(id);
  if (grants.size() > 0) GuestSeen(record);
  const bool verdict = on_node && (pod.scheduled.status == "False" ||
                                   !pod.meta.annotations.Get(model::kVerdictAnnotation).empty());
  if (verdict || verdicts.AwaitsBound()) verdicts.PodSeen(id);
}

uint64_t DecisionLoop::Impl::Send(model::Action action) {
  Emit(std::move(action), *sending);
  return next_action_id - 1;
}

const model::StringMap& DecisionLoop::Impl::StartAnnotations(const state::PodRecord& pod) {
  const std::string& queue = state.QueueOf(pod);
  const model::Preemptibility started_as = state.workload(pod.workload).preemptibility();
  auto& [known, last] = last_start_annotations;
  if (last.empty() || known.first != queue || known.second != started_as) {
    known = {queue, started_as};
    model::StringMap& made = start_annotations[known];
    if (made.empty()) {
      const std::optional<queues::QueueId> id = tree.FindEver(queue);
      const std::string parent = id.has_value() ? tree.Spec(*id).parent : "";
      made = {{model::kLastStartAnnotation, timestamp},
              {model::kStartedUnderAnnotation,
               parent.empty() ? queue : absl::StrCat(parent, "/", queue)},
              {model::kStartedAsAnnotation, std::string(model::PreemptibilityWord(started_as))}};
    }
    last = made;
  }
  return last;
}

void DecisionLoop::Impl::SendBinding(state::PodId pod, model::BindPod&& bind, uint64_t& id) {
  id = next_action_id++;
  ++stats.bindings;
  if (state.IsGuest(state.pod(pod))) return Grant(pod, id);
  const int32_t extender = options.extenders.empty() ? -1 : extenders.BinderOf(state.pod(pod));
  if (extender < 0 && BindByPlugin(pod, id)) return;
  const model::StringMap& start = StartAnnotations(state.pod(pod));
  if (bind.annotations.empty()) {
    bind.annotations = start;
  } else {
    for (const auto& [key, value] : start) bind.annotations.Set(key, value);
  }
  if (options.state.align_to_numa_nodes) {
    const std::string zones = model::FormatNumaZones(state.ZonesOf(pod));
    if (!zones.empty()) bind.annotations.Set(model::kNumaPredictedAnnotation, zones);
  }
  bind.extender = extender;
  model::Action& action = sending->actions.emplace_back();
  action.id = id;
  action.what.emplace<model::BindPod>(std::move(bind));
}

bool DecisionLoop::Impl::BindByPlugin(state::PodId id, uint64_t action) {
  const state::PodRecord& pod = state.pod(id);
  const state::PodClass& pod_class = state.pod_class(pod.pod_class);
  const framework::BindingPoints& points = engine->framework().PointsOf(pod_class);
  if (points.bind.empty()) return false;
  PluginBinding binding{nullptr, id, pod.uid, sending_at,
                        framework::Progress::Failed("no plugin of the profile binds it")};
  for (framework::BindPlugin* plugin : points.bind) {
    if (!plugin->BindingApplies(pod_class)) continue;
    std::optional<framework::Progress> answer =
        plugin->Bind({state, pod, state.node(pod.node), sending_at, sending_at});
    if (!answer.has_value()) continue;
    binding.plugin = plugin;
    binding.answer = *std::move(answer);
    break;
  }
  if (binding.plugin == nullptr && points.default_binder) return false;
  plugin_bindings.emplace(action, std::move(binding));
  return true;
}

void DecisionLoop::Impl::AskBinders(absl::Time now) {
  // By the order of sending. Answers change what is bound, and so this map.
  std::vector<uint64_t> open;
  for (const auto& [action, binding] : plugin_bindings) open.push_back(action);
  for (const uint64_t action : open) {
    PluginBinding& binding = plugin_bindings.at(action);
    const state::PodRecord& pod = state.pod(binding.pod);
    const bool there = pod.id == binding.pod && pod.uid == binding.uid && pod.node != state::kNoId;
    if (there && binding.answer.is == framework::Progress::Is::kWaits) {
      binding.answer = binding.plugin->Bind({state, pod, state.node(pod.node), now, binding.since})
                           .value_or(framework::Progress::Failed("it gave the binding up"));
    }
    if (there && binding.answer.is == framework::Progress::Is::kWaits) continue;
    absl::Status status;
    if (binding.answer.is == framework::Progress::Is::kFailed) {
      status = absl::InvalidArgumentError(
          absl::StrCat(binding.plugin == nullptr ? "bind" : binding.plugin->Name(), ": ",
                       binding.answer.reason));
    }
    plugin_bindings.erase(action);
    bindings.Answered(action, status, now);
  }
}

void DecisionLoop::Impl::BindingFailed(state::PodId id, const std::string& reason, bool sent,
                                       const BindingPipeline::Taken& taken) {
  dirty = true;
  const state::PodRecord& pod = state.pod(id);
  EndGrant(pod.uid);
  if (sent) {
    Stats::Attempts& attempts = AttemptsOf(pod);
    ++attempts.error;
    attempts.error_us.Add(absl::ToInt64Microseconds(taken.since_decided));
    attempts.refused_us.Add(absl::ToInt64Microseconds(taken.since_sent));
  }
  if (reason.empty()) return;
  ++stats.pods_backing_off;
  if (!sent) AttemptsOf(pod).unprepared_us.Add(absl::ToInt64Microseconds(taken.since_decided));
  refusals.Refused(pod, reason, sending_at);
  engine->OnBindFailed(id, sending_at);
  if (!options.emit_events || sent) return;
  events.push_back(
      EventAbout(pod, /*warning=*/true, "FailedBinding", reason, model::EventAction::kBinding));
}

void DecisionLoop::Impl::BindingInDoubt(state::PodId id, const std::string& reason,
                                        int64_t attempts) {
  if (attempts < kDoubtsThatRefuse) return;
  const state::PodRecord& pod = state.pod(id);
  if (!refusals.Includes(pod)) dirty = true;  // it has a verdict from now on
  refusals.Refused(pod, reason, sending_at);
}

void DecisionLoop::Impl::BindingPrepared(state::PodId id, absl::Duration took) {
  AttemptsOf(state.pod(id)).prepared_us.Add(absl::ToInt64Microseconds(took));
}

void DecisionLoop::Impl::PermitWaited(bool granted, absl::Duration waited) {
  (granted ? stats.permit_granted_us : stats.permit_denied_us)
      .Add(absl::ToInt64Microseconds(waited));
}

void DecisionLoop::Impl::PluginRan(const BindingPlugin::Ran& ran) {
  const bool permit = ran.point == "Permit";
  stats.plugins.Add(ran.plugin, ran.point,
                    ran.ok ? "Success" : (permit ? "Unschedulable" : "Error"), ran.took);
}

void DecisionLoop::Impl::BindingDone(state::PodId id, const BindingPipeline::Taken& taken) {
  const state::PodRecord& pod = state.pod(id);
  refusals.Accepted(pod);
  permits.Bound(id);
  Stats::Attempts& attempts = AttemptsOf(pod);
  ++attempts.scheduled;
  attempts.scheduled_us.Add(absl::ToInt64Microseconds(taken.since_decided));
  attempts.bound_us.Add(absl::ToInt64Microseconds(taken.since_sent));
  if (const std::optional<int64_t> waited = waits.Bound(id, pod.uid, sending_at)) {
    stats.scheduling_latency_us.Add(*waited);
  }
  if (!options.emit_events || state.IsGuest(pod)) return;  // the scheduler that bound it says so
  events.push_back(EventAbout(pod, /*warning=*/false, "Scheduled",
                              absl::StrCat("Successfully assigned ", pod.ns, "/", pod.name, " to ",
                                           state.node(pod.node).name()),
                              model::EventAction::kBinding));
}

model::EmitEvent DecisionLoop::Impl::EventAbout(const state::PodRecord& pod, bool warning,
                                                std::string reason, std::string note,
                                                model::EventAction action) const {
  model::EmitEvent event;
  event.about = model::Kind::kPod;
  event.ns = pod.ns;
  event.name = pod.name;
  event.uid = pod.uid;
  event.warning = warning;
  event.reason = std::move(reason);
  event.note = std::move(note);
  event.action = action;
  event.reporter = std::string(state.SchedulerNameOf(pod));
  return event;
}

void DecisionLoop::Impl::ServeBindings(absl::Time now, StepResult& result) {
  bindings.Step(now);
  if (!plugin_bindings.empty()) AskBinders(now);
  nominations.Step(now);
  CallPlugins(now);
  SetNodeAnswers();
  if (claims.TakeFreed()) dirty = true;
  if (shares.TakeChanges()) dirty = true;
  for (model::EmitEvent& event : std::exchange(events, {})) Emit({0, std::move(event)}, result);
}

void DecisionLoop::Impl::CallPlugins(absl::Time now) {
  for (framework::CallingPlugin* plugin : engine->framework().calling()) {
    for (model::RemoteCall& call : plugin->TakeCalls(now)) {
      const uint64_t number = call.number;
      const uint64_t id =
          Send({0, model::CallPlugin{std::make_shared<const model::RemoteCall>(std::move(call))}});
      plugin_calls[id] = {plugin, number};
    }
  }
}

absl::Time DecisionLoop::Impl::CallsWakeAt() const {
  absl::Time at = absl::InfiniteFuture();
  for (const framework::CallingPlugin* plugin : engine->framework().calling()) {
    at = std::min(at, plugin->wake_at());
  }
  for (const auto& [action, binding] : plugin_bindings) at = std::min(at, binding.answer.again);
  return at;
}

bool DecisionLoop::Impl::PluginAnswered(const model::ActionResult& result, absl::Time now) {
  const auto found = plugin_calls.find(result.action_id);
  if (found == plugin_calls.end()) return false;
  const PluginCall call = found->second;
  plugin_calls.erase(found);
  call.plugin->Answered(call.number, {result.status, result.refusal, result.judgements}, now);
  TakeJudgements(now);
  return true;
}

void DecisionLoop::Impl::TakeJudgements(absl::Time now) {
  for (framework::JudgingPlugin* plugin : engine->framework().judging()) {
    for (const framework::JudgingPlugin::Changed& changed : plugin->TakeChanged(now)) {
      if (state.AnswersChanged(changed.id, changed.serial).Any()) dirty = true;
    }
  }
}

void DecisionLoop::Impl::TellWhatWaits() {
  const framework::Framework& framework = engine->framework();
  if (framework.judging().empty()) return;
  std::set<state::PodClassId> classes;
  for (const engine::Waiting& entry : waiting) {
    for (const auto& promise : entry.pods) classes.insert(state.pod(promise.pod).pod_class);
  }
  std::map<framework::JudgingPlugin*, std::vector<state::PodClassId>> by_plugin;
  for (framework::JudgingPlugin* plugin : framework.judging()) by_plugin[plugin];
  for (const state::PodClassId id : classes) {
    for (framework::JudgingPlugin* plugin : framework.Judging(state.pod_class(id))) {
      by_plugin[plugin].push_back(id);
    }
  }
  for (framework::JudgingPlugin* plugin : framework.judging()) {
    plugin->PodsWait(by_plugin[plugin]);
  }
}

void DecisionLoop::Impl::SetNodeAnswers() {
  for (const ExtenderPlugin::Change& change : extenders.TakeChanges()) {
    const state::PodId pod = state.FindPod(change.ns, change.name);
    if (pod == state::kNoId || state.pod(pod).uid != change.uid) continue;
    if (state.SetNodeAnswers(pod, change.answers).Any()) dirty = true;
  }
}

void DecisionLoop::Impl::FreeIdleClaims(absl::Time now, StepResult& result) {
  for (model::Action& action : claims.FreeIdle(now, wake_at)) Emit(std::move(action), result);
}

// A budget that forbids the pod's eviction is known: the request would be refused, and until then
// the pod's part of a limit would count as free.
bool DecisionLoop::Impl::IsProtected(const state::PodRecord& pod) const {
  const state::BudgetIds budgets = state.BudgetsOf(pod);
  return budgets.size() > 1 || (budgets.size() == 1 && state.budgets().Left(budgets.front()) == 0);
}

void DecisionLoop::Impl::BreakGangs(absl::Time now) {
  const auto awaits_answer = [this](state::PodId pod) { return bindings.AwaitsAnswer(pod); };
  for (BindingRefusals::Break& broken : refusals.TakeBreaks(now, awaits_answer)) {
    const state::Workload& workload = state.workload(broken.workload);
    std::vector<Evictions::Victim> set;
    for (const state::PodId id : broken.evict) {
      const state::PodRecord& pod = state.pod(id);
      if (IsProtected(pod)) continue;
      set.push_back({.evict = {pod.ns, pod.name, pod.uid, kEvictionReason, broken.message},
                     .gang = broken.workload,
                     .may_be_refused = false,
                     .for_workload = model::Key(workload.ns, workload.name),
                     .cause = Evictions::Cause::kOwnGang,
                     .event = EvictionEvent(pod, broken.message)});
      state.ChargeBudgets(id);
      state.AssumeEvicted(id);
    }
    for (const state::PodId id : broken.hold) engine->HoldPod(id, broken.until);
    if (!set.empty()) evictions.Add(std::move(set));
    dirty = true;
  }
}

// A pod whose binding is in doubt and is refused since waits too: what its row says is all that can
// be told of it.
engine::Waiting DecisionLoop::Impl::RefusedWaiting(const state::Workload& workload) const {
  engine::Waiting entry;
  entry.workload = workload.id;
  verdict::Verdict& v = entry.verdict;
  v.code = Code::kBindingRefused;
  v.queue = workload.queue;
  v.min_member = engine::GangMinimum(workload);
  v.scope = workload.is_group && v.min_member > 1 ? verdict::Scope::kGang : verdict::Scope::kPod;
  if (workload.group != nullptr) v.observed_generation = workload.generation;
  for (const state::PodId id : workload.pods) {
    const state::PodRecord& pod = state.pod(id);
    const bool refused = pod.status == PodStatus::kBinding && refusals.Includes(pod);
    if (!refused && pod.status != PodStatus::kPending && pod.status != PodStatus::kGated) {
      const bool runs = pod.status == PodStatus::kBinding || pod.status == PodStatus::kBound ||
                        pod.status == PodStatus::kRunning;
      v.pods_running += runs ? 1 : 0;
      continue;
    }
    ++v.pods_waiting;
    if (!workload.is_group) v.observed_generation = pod.generation;
    entry.pods.push_back({id});
  }
  v.unblockers = {};
  return entry;
}

// So that each of them has an entry of its own, if it waits.
void DecisionLoop::Impl::SetRefusedApart() {
  std::map<uint64_t, std::vector<state::WorkloadId>> refused;
  for (const auto& [id, row] : refusals.rows()) {
    const uint64_t range = engine->EquivalenceClassOf(id);
    if (range != 0) refused[range].push_back(id);
  }
  if (refused.empty()) return;
  std::vector<engine::Waiting> parts;
  for (engine::Waiting& entry : waiting) {
    const auto found = entry.behind > 0 ? refused.find(entry.equivalence_class) : refused.end();
    if (found == refused.end()) {
      parts.push_back(std::move(entry));
      continue;
    }
    for (engine::Waiting& part : engine->SetApart(std::move(entry), found->second)) {
      while (part.behind > 0 && refusals.rows().contains(part.workload)) {
        engine::Waiting others = engine->Divide(part, 1);
        parts.push_back(std::exchange(part, std::move(others)));
      }
      parts.push_back(std::move(part));
    }
  }
  waiting = std::move(parts);
}

void DecisionLoop::Impl::AddRefusals() {
  if (refusals.empty()) return;
  SetRefusedApart();
  std::map<state::WorkloadId, engine::Waiting*> entries;
  for (engine::Waiting& entry : waiting) entries[entry.workload] = &entry;
  std::vector<engine::Waiting> more;
  for (const auto& [id, row] : refusals.rows()) {
    const state::Workload& workload = state.workload(id);
    if (refusals.Find(workload) == nullptr) continue;
    const auto& [name, reason] = *row.pods.begin();
    const std::string what = absl::StrCat("pod ", model::Key(workload.ns, name), ": ", reason);
    if (const auto found = entries.find(id); found != entries.end()) {
      found->second->verdict.details.push_back(absl::StrCat("binding was refused of ", what));
      continue;
    }
    engine::Waiting entry = RefusedWaiting(workload);
    if (entry.pods.empty()) continue;
    entry.verdict.subject = what;
    entry.verdict.unblockers = verdict::DefaultUnblockers(entry.verdict);
    more.push_back(std::move(entry));
  }
  std::move(more.begin(), more.end(), std::back_inserter(waiting));
}

}  // namespace fairlead::core
