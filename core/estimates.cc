#include "core/estimates.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/utf8.h"
#include "core/engine_placement.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/model/object_meta.h"

namespace fairlead::core {
namespace {

bool IsGated(const state::PodRecord& pod) { return pod.status == state::PodStatus::kGated; }

// Takes from `count` what finds room on the nodes that there are.
void TakeFree(const state::ClusterState& state, engine::Hypothesis& what_if,
              state::PodClassId pod_class, int64_t& count) {
  for (const auto& [name, id] : state.nodes_by_name()) {
    if (count == 0) return;
    const state::NodeInfo& node = state.node(id);
    if (node.exists && node.kind != state::NodeKind::kVirtual) {
      count -= what_if.Place(pod_class, id, count);
    }
  }
}

}  // namespace

int64_t Estimates::Request::Pods() const {
  int64_t pods = 0;
  for (const auto& [pod_class, count] : classes) pods += count;
  return pods;
}

// All pods of the workload that wait, gated or not.
Estimates::Request Estimates::RequestOf(const state::Workload& workload) const {
  Request request;
  request.atomic = workload.is_group;
  for (const state::PodId id : workload.pods) {
    const state::PodRecord& pod = state_.pod(id);
    if (!IsGated(pod) && pod.status != state::PodStatus::kPending) continue;
    if (IsGated(pod) && pod.details->wants_estimate && request.first == state::kNoId) {
      request.first = id;
    }
    if (request.invalid.empty() && !pod.details->invalid.empty()) {
      request.invalid = workload.is_group
                            ? absl::StrCat("pod ", pod.name, ": ", pod.details->invalid)
                            : pod.details->invalid;
    }
    const auto known =
        std::find_if(request.classes.begin(), request.classes.end(),
                     [&](const auto& entry) { return entry.first == pod.pod_class; });
    if (known == request.classes.end()) {
      request.classes.emplace_back(pod.pod_class, 1);
    } else {
      ++known->second;
    }
  }
  return request;
}

std::string Estimates::KeyOf(const Request& request) const {
  std::string key = request.atomic ? "g" : "p";
  for (const auto& [pod_class, count] : request.classes) {
    absl::StrAppend(&key, "/", state_.pod_class(pod_class).serial, "x", count);
  }
  return key;
}

bool Estimates::IsFresh(const Row& row, absl::Time now) const {
  return row.offers_version == hook_.offers_version() && now < row.made + kStaysFor;
}

std::string Estimates::Make(engine::Engine& engine, const std::vector<engine::Waiting>& entries,
                            const Request& request, const std::string& queue,
                            const std::vector<const model::NodePool*>& pools,
                            absl::Time now) const {
  EnginePlacement::Promises promises = EnginePlacement::PromisesOf(entries);
  hook::DemandItem item;
  item.queue = queue;
  item.atomic = request.atomic;
  {
    const std::unique_ptr<engine::Hypothesis> what_if = engine.WhatIf();
    EnginePlacement::Keep(promises, state_, *what_if);
    for (auto [pod_class, count] : request.classes) {
      TakeFree(state_, *what_if, pod_class, count);
      if (count > 0) item.classes.push_back({state_.pod_class(pod_class).spec, count, count});
    }
  }
  const int64_t pods = request.Pods(), rest = hook::PodsOf(item.classes);
  if (rest == 0) return "it would need no more nodes than there are";
  EnginePlacement placement(state_, engine, std::move(promises));
  const hook::Estimate estimate = hook_.EstimateFor(item, pools, placement, now);
  const std::string details = absl::StrJoin(estimate.details, "; ");
  if (estimate.nodes.empty()) {
    return absl::StrCat("no nodes can be had for it now",
                        details.empty() ? ": no instance type on offer suits it" : ": ", details);
  }
  std::string text = absl::StrCat("it would need ", NodesAndPrice(estimate));
  if (rest < pods) {
    absl::StrAppend(&text, "; pods that fit on the nodes that there are: ", pods - rest);
  }
  if (!details.empty()) absl::StrAppend(&text, "; ", details);
  return text;
}

void Estimates::Repeat(std::vector<engine::Waiting>& entries) const {
  if (told_.empty()) return;
  for (engine::Waiting& entry : entries) {
    if (entry.verdict.code != verdict::Code::kGated) continue;
    const auto told = told_.find(state_.workload(entry.workload).uid);
    if (told != told_.end()) entry.verdict.estimate = told->second;
  }
}

std::vector<Estimates::Told> Estimates::Update(engine::Engine& engine,
                                               std::vector<engine::Waiting>& entries,
                                               const std::vector<const model::NodePool*>& pools,
                                               bool hook_on, absl::Time now) {
  std::vector<Told> told;
  std::map<std::string, std::string> texts;
  wake_at_ = absl::InfiniteFuture();
  int left = kMostPerStep;
  for (auto& [key, row] : rows_) row.used = false;
  for (engine::Waiting& entry : entries) {
    if (entry.verdict.code != verdict::Code::kGated) continue;
    const state::Workload& workload = state_.workload(entry.workload);
    const Request request = RequestOf(workload);
    if (request.first == state::kNoId) continue;
    std::string& text = entry.verdict.estimate;
    const auto former = told_.find(workload.uid);
    if (!request.invalid.empty()) {
      text = TruncateUtf8(absl::StrCat("no estimate: ", request.invalid), kLongestText);
    } else if (!hook_on) {
      text = "no estimate: the autoscaler is off (hook.provider)";
    } else {
      Row& row = rows_[KeyOf(request)];
      row.used = true;
      if (!IsFresh(row, now) && left > 0) {
        --left;
        row = {Make(engine, entries, request, workload.queue, pools, now), hook_.offers_version(),
               now, true};
      }
      wake_at_ = std::min(wake_at_, IsFresh(row, now) ? row.made + kStaysFor : now);
      // A provider's message may be part of it.
      text = TruncateUtf8(row.text, kLongestText);
      if (text.empty() && former != told_.end()) text = former->second;
    }
    if (text.empty()) continue;
    if (former == told_.end() || former->second != text) told.push_back({request.first, text});
    texts[workload.uid] = text;
  }
  std::erase_if(rows_, [](const auto& entry) { return !entry.second.used; });
  told_ = std::move(texts);
  return told;
}

}  // namespace fairlead::core
