#include "core/engine_evacuation.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "scheduler/engine/gang.h"
#include "scheduler/engine/hypothesis.h"
#include "scheduler/engine/victim_budgets.h"

namespace fairlead::core {
namespace {

using state::PodStatus;
using verdict::Code;

// What waits could start when a pod of its queues is gone for a moment.
bool CouldStart(Code code) {
  switch (code) {
    case Code::kQueueLimitReached:
    case Code::kNonPreemptibleOverQuota:
    case Code::kOverFairShare:
    case Code::kPreemptionDelay:
    case Code::kWaitingForVictims:
    case Code::kNodesRequested:
    case Code::kGpuCapReached:
    case Code::kCostCapReached:
    case Code::kInsufficientCapacity:
    case Code::kSchedulingBackoff:
    case Code::kBindingRefused:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string EngineEvacuation::TopOf(const std::string& queue) const {
  const std::optional<queues::QueueId> leaf = tree_.Find(queue);
  if (!leaf.has_value()) return queue;
  return tree_.Name(tree_.Ancestors(*leaf).back());
}

std::string EngineEvacuation::WhyNotMoved(const state::PodRecord& pod) {
  const auto says = [&](absl::string_view why) {
    return absl::StrCat("pod ", model::Key(pod.ns, pod.name), " ", why);
  };
  if (!pod.ours || pod.workload == state::kNoId) return says("is of another scheduler");
  if (pod.do_not_disrupt) return says("has an annotation against it");
  if (!pod.has_controller) return says("has no controller");
  if (pod.status != PodStatus::kRunning) return says("does not run yet, or not any more");
  if (!busy_tops_.has_value()) {
    busy_tops_.emplace();
    for (const engine::Waiting& entry : waiting_) {
      if (CouldStart(entry.verdict.code)) {
        busy_tops_->insert(TopOf(state_.workload(entry.workload).queue));
      }
    }
  }
  const std::string top = TopOf(std::string(state_.QueueOf(pod)));
  if (busy_tops_->contains(top)) return absl::StrCat("workloads of queue ", top, " wait");
  return "";
}

bool EngineEvacuation::BreaksGang(const std::vector<state::PodId>& pods) const {
  std::map<state::WorkloadId, std::vector<state::PodId>> by_workload;
  for (const state::PodId id : pods) by_workload[state_.pod(id).workload].push_back(id);
  for (const auto& [id, moved] : by_workload) {
    const state::Workload& workload = state_.workload(id);
    if (!workload.is_group || moved.size() == workload.Active()) continue;
    auto active = workload.active;
    for (const state::PodId pod_id : moved) {
      const state::PodRecord& pod = state_.pod(pod_id);
      if (pod.set >= 0) --active[static_cast<size_t>(pod.set)];
    }
    if (engine::WouldBeBelowMinimum(workload, active)) return true;
  }
  return false;
}

absl::Duration EngineEvacuation::LostWork(const state::PodRecord& pod,
                                          const state::NodeInfo& node) const {
  absl::Duration work = kRestart;
  if (pod.runs_to_end) {
    const absl::Time since = pod.start_s == state::PodRecord::kNoStart
                                 ? pod.creation
                                 : absl::FromUnixSeconds(pod.start_s);
    work += std::max(absl::ZeroDuration(), now_ - since);
  }
  // The largest part of the node's amounts that the pod has.
  int64_t part_milli = 1;
  const model::Resources& requests = state_.class_of(pod.id).requests;
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto r = static_cast<model::ResourceIndex>(i);
    const int64_t has = r < node.allocatable.size() ? node.allocatable[r] : 0;
    if (requests[r] <= 0 || has <= 0) continue;
    const auto milli = static_cast<int64_t>(absl::int128(requests[r]) * 1000 / has);
    part_milli = std::max(part_milli, std::min<int64_t>(milli, 1000));
  }
  // A share of a GPU is no request of a resource; it counts as the node's whole, which is dear.
  if (state_.class_of(pod.id).SharesGpu()) part_milli = 1000;
  return work * part_milli / 1000;
}

hook::Occupants EngineEvacuation::OccupantsOf(const std::string& name) {
  hook::Occupants occupants;
  const state::NodeId id = state_.FindNode(name);
  if (id == state::kNoId) return occupants;
  const state::NodeInfo& node = state_.node(id);
  engine::BudgetSpending budgets(state_);
  std::vector<state::PodId> pods;
  const auto block = [&occupants](std::string why) {
    if (occupants.blocked_by.empty()) occupants.blocked_by = std::move(why);
  };
  for (const state::PodId pod_id : node.pods) {
    const state::PodRecord& pod = state_.pod(pod_id);
    if (!Stays(pod)) continue;
    if (!pod.terminating) ++occupants.staying;
    block(WhyNotMoved(pod));
    if (!occupants.blocked_by.empty()) continue;
    if (budgets.Exceeds(pod)) {
      block(absl::StrCat("a PodDisruptionBudget keeps pod ", model::Key(pod.ns, pod.name)));
    }
    pods.push_back(pod_id);
    occupants.lost_work += LostWork(pod, node);
  }
  if (occupants.blocked_by.empty() && BreaksGang(pods)) {
    block("a gang would have less than its minimum");
  }
  return occupants;
}

std::optional<std::vector<state::PodId>> EngineEvacuation::PodsOf(
    const std::vector<std::string>& names, std::set<state::NodeId>& leaving) const {
  std::vector<state::PodId> pods;
  for (const std::string& name : names) {
    const state::NodeId id = state_.FindNode(name);
    if (id == state::kNoId || !leaving.insert(id).second) continue;
    for (const state::PodId pod : state_.node(id).pods) {
      if (!Stays(state_.pod(pod))) continue;
      if (state_.pod(pod).status != PodStatus::kRunning) return std::nullopt;
      pods.push_back(pod);
    }
  }
  // Large ones first: room for them is rarer.
  std::stable_sort(pods.begin(), pods.end(), [&](state::PodId a, state::PodId b) {
    const model::Resources& of_a = state_.class_of(a).requests;
    const model::Resources& of_b = state_.class_of(b).requests;
    return std::pair(of_a[model::kGpu], of_a[model::kCpu]) >
           std::pair(of_b[model::kGpu], of_b[model::kCpu]);
  });
  return pods;
}

bool EngineEvacuation::FindRoom(const std::vector<std::string>& names) {
  std::set<state::NodeId> leaving;
  const auto pods = PodsOf(names, leaving);
  if (!pods.has_value()) return false;
  const std::unique_ptr<engine::Hypothesis> what_if = engine_.WhatIf();
  if (!headroom_.Occupy(*what_if)) return false;
  for (const state::PodId pod : *pods) what_if->Evict(pod);
  std::vector<state::NodeId> fitting;
  for (const state::PodId pod : *pods) {
    const state::PodClassId pod_class = state_.pod(pod).pod_class;
    fitting.clear();
    for (const auto& [name, id] : state_.nodes_by_name()) {
      if (leaving.contains(id) || !state_.node(id).TakesBindings()) continue;
      if (++questions_ > kMostQuestions) return false;
      if (what_if->Fits(pod_class, id, framework::Capacity::kNow)) fitting.push_back(id);
    }
    if (fitting.empty()) return false;
    if (!what_if->Promise(pod, fitting[what_if->BestOf(pod_class, fitting)])) return false;
  }
  return true;
}

model::ResourceList EngineEvacuation::RequestsOf(const std::vector<std::string>& names) {
  std::set<state::NodeId> leaving;
  model::ResourceList sum;
  const auto pods = PodsOf(names, leaving);
  if (!pods.has_value()) return sum;
  for (const state::PodId pod : *pods) {
    const model::Resources& requests = state_.class_of(pod).requests;
    for (const auto& [name, amount] : requests.ToList(state_.resource_names())) {
      model::Add(sum, name, amount);
    }
  }
  return sum;
}

bool EngineEvacuation::FitOn(const std::vector<std::string>& names, const model::Node& node) {
  std::set<state::NodeId> leaving;
  const auto pods = PodsOf(names, leaving);
  if (!pods.has_value() || pods->empty()) return false;
  const std::unique_ptr<engine::Hypothesis> what_if = engine_.WhatIf();
  for (const state::PodId pod : *pods) what_if->Evict(pod);
  const state::NodeId id = what_if->AddNode(node);
  return std::all_of(pods->begin(), pods->end(), [&](state::PodId pod) {
    return ++questions_ <= kMostQuestions && what_if->Promise(pod, id);
  });
}

}  // namespace fairlead::core
