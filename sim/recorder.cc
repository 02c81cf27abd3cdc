#include "sim/recorder.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "scheduler/model/api_names.h"

namespace fairlead::sim {
namespace {

std::string HourlyDollars(int64_t micro_usd) {
  return absl::StrFormat("$%d.%04d", micro_usd / 1'000'000, micro_usd % 1'000'000 / 100);
}

}  // namespace

void Recorder::OnNote(absl::Time now, const std::string& text, const std::string& event) {
  Add({.time = now, .event = event, .object = "", .text = text});
}

void Recorder::OnCommit(absl::Time now, const model::Action& action, const absl::Status& status) {
  if (const auto* launch = std::get_if<model::LaunchNode>(&action.what);
      launch != nullptr && !status.ok() && !absl::IsUnavailable(status)) {
    Add({.time = now,
         .event = "node_failed",
         .object = launch->request->meta.name,
         .text = std::string(status.message()),
         .queue = launch->request->queue,
         .instance_type = launch->request->instance_type});
  }
  if (!status.ok()) return;
  if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
    const model::NodeRequest& request = create->request;
    ++nodes_bought_[request.instance_type];
    Add({.time = now,
         .event = "node_requested",
         .object = request.meta.name,
         .text = absl::StrCat(request.instance_type, " in ", request.zone,
                              request.spot ? " (spot)" : "",
                              request.reservation.empty() ? "" : " (reserved)", " at ",
                              HourlyDollars(request.price_micro_usd_per_hour), " an hour for ",
                              request.replaces.empty()
                                  ? absl::StrJoin(request.reason_workloads, ", ")
                                  : absl::StrCat("the pods of ", request.replaces.front().name)),
         .queue = request.queue,
         .instance_type = request.instance_type});
  } else if (const auto* bind = std::get_if<model::BindPod>(&action.what)) {
    Add({.time = now,
         .event = "pod_bound",
         .object = model::Key(bind->ns, bind->name),
         .text = absl::StrCat("to node ", bind->node),
         .node = bind->node});
  } else if (const auto* evict = std::get_if<model::EvictPod>(&action.what)) {
    ++evictions_;
    Add({.time = now,
         .event = "pod_evicted",
         .object = model::Key(evict->ns, evict->name),
         .text = absl::StrCat(evict->reason, ": ", evict->message)});
  }
}

void Recorder::OnChange(absl::Time now, ChangeType type, const Object& object) {
  if (const auto* node = std::get_if<model::Node>(&object)) OnNode(now, type, *node);
  if (const auto* pod = std::get_if<model::Pod>(&object)) OnPod(now, type, *pod);
}

void Recorder::OnNode(absl::Time now, ChangeType type, const model::Node& node) {
  TimelineEvent event{
      .time = now,
      .event = "",
      .object = node.meta.name,
      .text = "",
      .node = node.meta.name,
      .instance_type = std::string(node.meta.labels.Get(model::kInstanceTypeLabel))};
  if (type == ChangeType::kDeleted) {
    node_ready_.erase(node.meta.name);
    event.event = "node_removed";
    return Add(std::move(event));
  }
  const auto [known, added] = node_ready_.try_emplace(node.meta.name, false);
  if (added && !node.ready) {
    event.event = "node_registered";
    Add(event);
  }
  if (node.ready && !known->second) {
    known->second = true;
    event.event = "node_ready";
    Add(std::move(event));
  }
}

void Recorder::OnPod(absl::Time now, ChangeType type, const model::Pod& pod) {
  if (type == ChangeType::kDeleted) {
    pod_phase_.erase(pod.meta.uid);
    return;
  }
  model::PodPhase& phase = pod_phase_[pod.meta.uid];
  if (phase == pod.phase) return;
  phase = pod.phase;
  if (!IsTerminal(pod)) return;
  Add({.time = now,
       .event = "pod_finished",
       .object = model::Key(pod.meta),
       .text = pod.phase == model::PodPhase::kFailed ? "failed" : "succeeded",
       .queue = std::string(pod.meta.labels.Get(model::kQueueLabel)),
       .node = pod.node_name});
}

void Recorder::OnView(const core::View& view) {
  std::set<std::string> waiting;
  for (const core::WaitingRow& row : view.waiting) {
    const std::string code(verdict::CodeName(row.verdict.code));
    for (const std::string& pod : row.pods) {
      waiting.insert(pod);
      auto open = open_.find(pod);
      if (open != open_.end() && open->second.code == code) continue;
      if (open != open_.end()) {
        open->second.until = view.at;
        ended_.push_back(open->second);
      }
      open_[pod] = {.pod = pod, .queue = row.queue, .code = code, .since = view.at};
      Add({.time = view.at,
           .event = "verdict",
           .object = pod,
           .text = row.message,
           .code = code,
           .queue = row.queue});
    }
  }
  for (auto open = open_.begin(); open != open_.end();) {
    if (waiting.contains(open->first)) {
      ++open;
      continue;
    }
    open->second.until = view.at;
    ended_.push_back(open->second);
    open = open_.erase(open);
  }
}

std::vector<WaitEpisode> Recorder::Episodes() const {
  std::vector<WaitEpisode> episodes = ended_;
  for (const auto& [pod, episode] : open_) episodes.push_back(episode);
  return episodes;
}

}  // namespace fairlead::sim
