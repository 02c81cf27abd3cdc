#include "scheduler/plugins/remote_plugin.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "scheduler/plugins/args.h"

namespace fairlead::plugins {

using framework::Progress;
using model::RemoteCall;
using model::RemotePoint;

framework::NamedPlugin RemotePlugin::For(const model::RemotePluginConfig& config) {
  return {config.name,
          [config](absl::string_view args) -> absl::StatusOr<std::unique_ptr<framework::Plugin>> {
            const absl::Status read = ReadArgs(config.name, args, {});
            if (!read.ok()) return read;
            return std::make_unique<RemotePlugin>(config);
          }};
}

bool RemotePlugin::Applies(const state::PodClass& pod_class) const {
  if (config_.pod_labels.empty()) return true;
  const model::StringMap& labels = pod_class.spec->labels_for_plugins;
  return std::any_of(config_.pod_labels.begin(), config_.pod_labels.end(),
                     [&](const std::string& label) { return labels.Has(label); });
}

state::StateSubscriber* RemotePlugin::Follow(const state::ClusterState* state) {
  state_ = state;
  nodes_.Follow(state);
  return state != nullptr && nodes_.enabled() ? &nodes_ : nullptr;
}

void RemotePlugin::PodsWait(absl::Span<const state::PodClassId> classes) {
  std::vector<state::PodClassId> asked;
  for (const state::PodClassId id : classes) {
    if (Applies(state_->pod_class(id))) asked.push_back(id);
  }
  nodes_.PodsWait(std::move(asked));
}

absl::Status RemotePlugin::Reserve(const framework::Placement& placement) {
  const state::PodRecord& pod = placement.pod;
  RemoteCall call;
  call.plugin = config_.name;
  call.ns = pod.ns;
  call.name = pod.name;
  call.uid = pod.uid;
  call.node = placement.node.name();
  const model::StringMap& labels =
      placement.state.pod_class(pod.pod_class).spec->labels_for_plugins;
  for (const std::string& label : config_.pod_labels) {
    if (const std::string* value = labels.Find(label)) call.labels.Set(label, *value);
  }
  call.queue = placement.state.QueueOf(pod);
  if (pod.workload != state::kNoId) {
    const state::Workload& workload = placement.state.workload(pod.workload);
    if (workload.is_group) call.pod_group = workload.name;
  }
  Forget(pod.uid);
  rows_[pod.uid] = {.pod = std::move(call), .permitted = {}, .pre_bound = {}};
  return absl::OkStatus();
}

void RemotePlugin::Enqueue(RemoteCall call) {
  Lane& lane = LaneOf(call.point);
  lane.calls.push_back({.call = std::move(call)});
}

void RemotePlugin::Forget(const std::string& uid) {
  const auto found = rows_.find(uid);
  if (found == rows_.end()) return;
  of_.erase(found->second.permit);
  of_.erase(found->second.pre_bind);
  rows_.erase(found);
}

Progress RemotePlugin::AfterFailure(const std::string& why) const {
  return config_.ignorable ? Progress::Done() : Progress::Failed(why);
}

Progress RemotePlugin::Ask(const framework::Placement& placement, RemotePoint point) {
  auto found = rows_.find(placement.pod.uid);
  if (found == rows_.end()) {
    // It did not apply to the pod when that was reserved: a label has come since.
    const absl::Status known = Reserve(placement);
    if (!known.ok()) return Progress::Failed(std::string(known.message()));
    found = rows_.find(placement.pod.uid);
  }
  Row& row = found->second;
  const bool permit = point == RemotePoint::kPermit;
  Said& answer = permit ? row.permitted : row.pre_bound;
  uint64_t& number = permit ? row.permit : row.pre_bind;
  if (answer.has_value()) return *answer;
  if (number == 0) {
    if (health_.Pauses(placement.now)) return AfterFailure(health_.last_failure());
    RemoteCall call = row.pod;
    call.point = point;
    call.number = number = ++numbers_;
    of_[number] = placement.pod.uid;
    Enqueue(std::move(call));
  }
  return Progress::WaitUntil(absl::InfiniteFuture());
}

Progress RemotePlugin::Permit(const framework::Placement& placement) {
  return Ask(placement, RemotePoint::kPermit);
}

Progress RemotePlugin::PreBind(const framework::Placement& placement) {
  return Ask(placement, RemotePoint::kPreBind);
}

void RemotePlugin::Tell(RemoteCall call, RemotePoint point) {
  call.point = point;
  call.number = ++numbers_;
  Enqueue(std::move(call));
}

void RemotePlugin::Unreserve(const framework::PodOnNode& pod) {
  const auto found = rows_.find(pod.uid);
  if (found == rows_.end()) return;
  Row row = std::move(found->second);
  Forget(pod.uid);
  // What was not sent yet need not be taken back.
  size_t sent = 0;
  for (const auto& [number, lane] :
       {std::pair{row.permit, &permits_}, std::pair{row.pre_bind, &others_}}) {
    if (number == 0) continue;
    const auto waits =
        std::find_if(lane->calls.begin(), lane->calls.end(),
                     [wanted = number](const Call& call) { return call.call.number == wanted; });
    if (waits == lane->calls.end()) {
      ++sent;
    } else {
      lane->calls.erase(waits);
    }
  }
  if (sent > 0) Tell(std::move(row.pod), RemotePoint::kUnreserve);
}

void RemotePlugin::PostBind(const framework::PodOnNode& pod) {
  RemoteCall call;
  if (const auto found = rows_.find(pod.uid); found != rows_.end()) {
    call = found->second.pod;
  } else {
    call.plugin = config_.name;
    call.ns = pod.ns;
    call.name = pod.name;
    call.uid = pod.uid;
    call.node = pod.node;
  }
  Tell(std::move(call), RemotePoint::kPostBind);
}

void RemotePlugin::Send(Lane& lane, absl::Time now, std::vector<RemoteCall>& calls) {
  while (lane.MaySend()) {
    Call call = std::move(lane.calls.front());
    lane.calls.pop_front();
    ++lane.open;
    const bool tells =
        call.call.point == RemotePoint::kPostBind || call.call.point == RemotePoint::kUnreserve;
    if (tells && call.give_up == absl::InfiniteFuture()) call.give_up = now + kTellFor;
    calls.push_back(call.call);
    open_.emplace(call.call.number, std::move(call));
  }
}

std::vector<RemoteCall> RemotePlugin::TakeCalls(absl::Time now) {
  while (!repeats_.empty() && repeats_.begin()->first <= now) {
    others_.calls.push_back(std::move(repeats_.begin()->second));
    repeats_.erase(repeats_.begin());
  }
  std::vector<RemoteCall> calls;
  Send(permits_, now, calls);
  Send(others_, now, calls);
  if (auto question = nodes_.TakeQuestion(now); question != nullptr) {
    RemoteCall call;
    call.plugin = config_.name;
    call.point = RemotePoint::kEvaluateNodes;
    call.number = about_nodes_ = ++numbers_;
    call.question = std::move(question);
    calls.push_back(std::move(call));
  }
  return calls;
}

absl::Time RemotePlugin::wake_at() const {
  if (permits_.MaySend() || others_.MaySend()) return absl::InfinitePast();
  return std::min(nodes_.wake_at(),
                  repeats_.empty() ? absl::InfiniteFuture() : repeats_.begin()->first);
}

void RemotePlugin::Answered(uint64_t number, const Answer& said, absl::Time now) {
  if (number == about_nodes_) return nodes_.Answered(said, now);
  const absl::Status& status = said.status;
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  Call call = std::move(found->second);
  open_.erase(found);
  --LaneOf(call.call.point).open;
  const bool answered = status.ok() || absl::IsUnimplemented(status);
  const std::string why = std::string(status.message());
  // That a permit takes too long says nothing about the program.
  const bool late_permit =
      absl::IsDeadlineExceeded(status) && call.call.point == RemotePoint::kPermit;
  if (answered) {
    health_.Succeeded();
  } else if (!late_permit) {
    health_.Failed(why, now);
  }
  if (call.give_up != absl::InfiniteFuture()) {
    if (answered) return;
    const absl::Time due = now + kTellAgain.Pause(++call.failures);
    if (due < call.give_up) repeats_.emplace(due, std::move(call));
    return;
  }
  const auto uid = of_.find(number);
  if (uid == of_.end()) return;  // the pod has gone on, or is gone
  Row& row = rows_.at(uid->second);
  of_.erase(uid);
  Said& answer = call.call.point == RemotePoint::kPermit ? row.permitted : row.pre_bound;
  if (!answered) {
    answer = late_permit ? Progress::Failed(why) : AfterFailure(why);
  } else {
    answer = said.refusal.empty() ? Progress::Done() : Progress::Failed(said.refusal);
  }
}

}  // namespace fairlead::plugins
