// The state's own witness: everything derived, computed again from the rows.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::state {
namespace {

std::string Text(const model::Resources& r, const model::ResourceNames& names) {
  std::string out;
  for (const auto& [name, amount] : r.ToList(names)) absl::StrAppend(&out, name, "=", amount, " ");
  return out;
}

}  // namespace

std::string ClusterState::CheckConsistency() const {
  model::Resources total;
  for (const auto& [name, id] : nodes_by_name_) {
    const NodeInfo& node = nodes_[id];
    if (node.id != id || node.name() != name) return absl::StrCat("node ", name, ": wrong index");
    model::Resources used, releasing, pipelined, others;
    for (PodId pod_id : node.pods) {
      const PodRecord& pod = pods_[pod_id];
      if (pod.node != id) return absl::StrCat("node ", name, " lists pod ", pod.name, " of elsewhere");
      const model::Resources& requests = classes_[pod.pod_class].requests;
      if (HoldsNode(pod.status)) used += requests;
      if (HoldsNode(pod.status) && !pod.ours) others += requests;
      if (pod.status == PodStatus::kReleasing) releasing += requests;
      if (pod.status == PodStatus::kPipelined) pipelined += requests;
    }
    if (!(used == node.used)) return absl::StrCat("node ", name, ": used ", Text(node.used, names_), "but pods make ", Text(used, names_));
    if (!(releasing == node.releasing)) return absl::StrCat("node ", name, ": releasing differs");
    if (!(pipelined == node.pipelined)) return absl::StrCat("node ", name, ": pipelined differs");
    if (!(others == node.used_by_others)) return absl::StrCat("node ", name, ": others differ");
    if (CountsForQueues(node)) {
      total += node.allocatable;
      total -= others;
    }
  }
  if (!(total == total_for_queues_)) {
    return absl::StrCat("total ", Text(total_for_queues_, names_), "but nodes make ", Text(total, names_));
  }
  size_t live = 0;
  for (const PodRecord& pod : pods_) {
    if (pod.id == kNoId) continue;
    ++live;
    const bool on_node = HoldsNode(pod.status) || pod.status == PodStatus::kPipelined;
    if (on_node != (pod.node != kNoId)) return absl::StrCat("pod ", pod.name, ": status and node");
    if (on_node && std::count(nodes_[pod.node].pods.begin(), nodes_[pod.node].pods.end(), pod.id) != 1) {
      return absl::StrCat("pod ", pod.name, " is not listed once on its node");
    }
    if (pod.ours != (pod.workload != kNoId)) return absl::StrCat("pod ", pod.name, ": workload");
  }
  if (live != live_pods_) return "count of live pods";
  for (const Workload& workload : workloads_) {
    if (workload.id == kNoId) continue;
    uint32_t counts[kPodStatusCount] = {};
    for (PodId pod : workload.pods) {
      if (pods_[pod].workload != workload.id) return absl::StrCat("workload ", workload.name, ": foreign pod");
      ++counts[static_cast<int>(pods_[pod].status)];
    }
    if (!std::equal(std::begin(counts), std::end(counts), std::begin(workload.by_status))) {
      return absl::StrCat("workload ", workload.name, ": counts by status");
    }
  }
  return "";
}

std::string ClusterState::Dump() const {
  std::string out;
  for (const auto& [name, id] : nodes_by_name_) {
    const NodeInfo& n = nodes_[id];
    absl::StrAppend(&out, "node ", name, " kind=", static_cast<int>(n.kind), " exists=", n.exists,
                    " usable=", n.usable, " alloc[", Text(n.allocatable, names_), "] used[",
                    Text(n.used, names_), "] rel[", Text(n.releasing, names_), "] pipe[",
                    Text(n.pipelined, names_), "] pods=", absl::StrJoin(n.pods, ","), "\n");
  }
  for (const PodRecord& p : pods_) {
    if (p.id == kNoId) continue;
    absl::StrAppend(&out, "pod ", p.id, " ", p.ns, "/", p.name, " ", PodStatusName(p.status), " node=",
                    p.node == kNoId ? "-" : nodes_[p.node].name(), " class=", p.pod_class,
                    " workload=", p.workload, "\n");
  }
  for (const Workload& w : workloads_) {
    if (w.id == kNoId) continue;
    absl::StrAppend(&out, "workload ", w.id, " ", w.ns, "/", w.name, " queue=", w.queue, " prio=",
                    w.priority, " preemptible=", w.preemptible, " min=", w.min_member, " pods=",
                    absl::StrJoin(w.pods, ","), " counts=", absl::StrJoin(w.by_status, ","), "\n");
  }
  absl::StrAppend(&out, "total ", Text(total_for_queues_, names_), "\n");
  return out;
}

}  // namespace fairlead::state
