// The state's own witness: everything derived, computed again from the rows.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scheduler/model/api_names.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/gang_sets.h"

namespace fairlead::state {
namespace {

std::string Text(const model::Resources& r, const model::ResourceNames& names) {
  std::string out;
  for (const auto& [name, amount] : r.ToList(names)) absl::StrAppend(&out, name, "=", amount, " ");
  return out;
}

// The sets of a workload and where its pods belong, made again from its PodGroup and their labels.
std::string CheckSets(const ClusterState& state, const Workload& workload) {
  const std::vector<GangSet> sets =
      workload.group == nullptr ? SingleSet() : ReadGangSets(*workload.group, "").sets;
  std::vector<int32_t> active(sets.size(), 0);
  for (PodId id : workload.pods) {
    const PodRecord& pod = state.pod(id);
    const int32_t set = SetOfLabel(workload, pod.labels.Get(model::kSubGroupLabel));
    if (pod.set != set) {
      return absl::StrCat("pod ", pod.name, ": set ", pod.set, " but its label says ", set);
    }
    if (set == kNoSet && pod.details->invalid.empty()) {
      return absl::StrCat("pod ", pod.name, ": no set and no reason");
    }
    if (set != kNoSet && IsAllocated(pod.status)) ++active[static_cast<size_t>(set)];
  }
  if (sets != workload.sets.list() ||
      !std::equal(active.begin(), active.end(), workload.active.begin(), workload.active.end())) {
    return absl::StrCat("workload ", workload.name, ": sets");
  }
  const bool odd = workload.is_group || workload.pods.size() != 1 ||
                   !state.pod(workload.pods.front()).details->invalid.empty() ||
                   !workload.details->warning.empty() ||
                   workload.details->preemption_delay != absl::ZeroDuration() ||
                   workload.group != nullptr || workload.details->failed_attempt != nullptr ||
                   workload.details->stale_since != absl::InfiniteFuture() ||
                   !(workload.sets.size() == 1);
  if (workload.plain == odd) return absl::StrCat("workload ", workload.name, ": plain");
  return "";
}

std::string SetsText(const Workload& workload) {
  std::string out;
  for (size_t i = 0; i < workload.sets.size(); ++i) {
    const GangSet& set = workload.sets[i];
    absl::StrAppend(&out, " set=", set.name, ":", set.parent, ":", set.min_member, ":",
                    set.min_sub_group.value_or(-1), ":", workload.active[i], ":",
                    set.topology.topology, "/", set.topology.required_level, "/",
                    set.topology.preferred_level);
  }
  return out;
}

}  // namespace

void ClusterState::SumGpuShares(const PodRecord& pod, const NodeInfo& node,
                                std::map<std::string, GpuGroup>& groups) const {
  const int64_t mib = ShareMib(classes_[pod.pod_class].spec->gpu_share, node.gpu_memory_mib);
  for (const std::string& group_id : pod.gpu_groups) {
    GpuGroup& group = groups[group_id];
    group.id = group_id;
    group.closed = IsClosedGpu(node.name(), group_id);
    if (classes_[pod.pod_class].reservation) {
      ++group.reservations;
      const bool stuck = pod.status == PodStatus::kStuckInReleasing;
      if (stuck || pod.status == PodStatus::kReleasing) ++group.ending;
      if (stuck) ++group.stuck;
    } else if (pod.status == PodStatus::kPipelined) {
      ++group.pipelined;
      group.pipelined_mib += mib;
    } else if (pod.status == PodStatus::kReleasing) {
      group.used_mib += mib;
      ++group.releasing;
      group.releasing_mib += mib;
    } else {
      group.used_mib += mib;
      ++group.active;
    }
  }
}

std::string ClusterState::CheckNode(const NodeInfo& node) const {
  const std::string& name = node.name();
  model::ResourceSum used, for_scores, releasing, pipelined, others;
  std::map<std::string, GpuGroup> groups;
  for (PodId pod_id : node.pods) {
    const PodRecord& pod = pods_[pod_id];
    if (pod.node != node.id) {
      return absl::StrCat("node ", name, " lists pod ", pod.name, " of elsewhere");
    }
    const model::Resources& requests = classes_[pod.pod_class].requests;
    if (HoldsNode(pod.status)) used += requests;
    if (HoldsNode(pod.status) && options_.sum_scoring_requests) {
      const model::ScoringRequests& scoring = classes_[pod.pod_class].spec->scoring_requests;
      for_scores.Add(model::kCpu, std::max<int64_t>(0, scoring.cpu_milli));
      for_scores.Add(model::kMemory, std::max<int64_t>(0, scoring.memory_bytes));
    }
    if (HoldsNode(pod.status) && !pod.ours) others += ChargeToOthers(pod, node);
    if (pod.status == PodStatus::kReleasing) releasing += requests;
    if (pod.status == PodStatus::kPipelined) pipelined += requests;
    SumGpuShares(pod, node, groups);
  }
  // Every GPU of which a pod has, or is promised, a share counts as one, in one of the three.
  std::vector<GpuGroup> expected;
  for (const auto& [group_id, group] : groups) {
    expected.push_back(group);
    const bool held = group.active + group.releasing + group.reservations > 0;
    const auto add = [](model::ResourceSum& to) { to.Add(model::kGpu, 1000); };
    if (held) add(used);
    if (held && group.active == 0 && group.stuck == 0) add(releasing);
    if (group.active == 0 && group.pipelined > 0) add(pipelined);
  }
  if (expected != node.gpu_groups) return absl::StrCat("node ", name, ": GPU groups differ");
  if (!(used == node.used)) {
    return absl::StrCat("node ", name, ": used ", Text(node.used, names_), "but pods make ",
                        Text(used, names_));
  }
  if (!(releasing == node.releasing)) return absl::StrCat("node ", name, ": releasing differs");
  if (!(pipelined == node.pipelined)) return absl::StrCat("node ", name, ": pipelined differs");
  if (!(for_scores == node.used_for_scores)) {
    return absl::StrCat("node ", name, ": used for scores differs");
  }
  if (!options_.keep_images && node.kind != NodeKind::kVirtual && !node.object.images.empty()) {
    return absl::StrCat("node ", name, ": images are kept");
  }
  if (!(others == node.used_by_others)) return absl::StrCat("node ", name, ": others differ");
  return CheckZones(node);
}

// Its part of total_for_queues_, of a node whose used_by_others is right.
model::Resources ClusterState::CountedForQueues(const NodeInfo& node) const {
  if (!CountsForQueues(node)) return {};
  model::Resources share = node.allocatable;
  int64_t others_milli = std::min(OtherGpusMilli(node.object.allocatable), kMaxNodeAmount) +
                         1000 * devices_.inventory().CountGpus(node.name());
  // Those that claims give for plain requests are in `share` already.
  if (node.gpus_by_claim) {
    others_milli = std::max<int64_t>(0, others_milli - share[model::kGpu]);
  }
  share.Set(model::kGpu, share[model::kGpu] + others_milli);
  for (size_t i = 0; i < share.size(); ++i) {
    const auto resource = static_cast<model::ResourceIndex>(i);
    const int64_t others = node.used_by_others[resource];
    if (others > 0) share.Set(resource, std::max<int64_t>(0, share[resource] - others));
  }
  return share;
}

std::string ClusterState::CheckPod(const PodRecord& pod) const {
  const bool on_node = HoldsNode(pod.status) || pod.status == PodStatus::kPipelined;
  if (on_node != (pod.node != kNoId)) return absl::StrCat("pod ", pod.name, ": status and node");
  if ((on_node && classes_[pod.pod_class].SharesGpu()) == pod.gpu_groups.empty()) {
    return absl::StrCat("pod ", pod.name, ": GPU groups and node");
  }
  if (std::set<std::string>(pod.gpu_groups.begin(), pod.gpu_groups.end()).size() !=
      pod.gpu_groups.size()) {
    return absl::StrCat("pod ", pod.name, " shares one GPU twice");
  }
  if (on_node &&
      std::count(nodes_[pod.node].pods.begin(), nodes_[pod.node].pods.end(), pod.id) != 1) {
    return absl::StrCat("pod ", pod.name, " is not listed once on its node");
  }
  if (pod.ours != (pod.workload != kNoId)) return absl::StrCat("pod ", pod.name, ": workload");
  if (pod.started_under != nullptr && !on_node) {
    return absl::StrCat("pod ", pod.name, " has a queue that it was started under, and no node");
  }
  if (pod.started_as != model::Preemptibility::kByPriority && (!on_node || !pod.ours)) {
    return absl::StrCat("pod ", pod.name, " was started as something, and is not ours on a node");
  }
  return "";
}

std::string ClusterState::CheckWorkload(const Workload& workload, uint32_t succeeded) const {
  uint32_t counts[kPodStatusCount] = {};
  counts[static_cast<int>(PodStatus::kSucceeded)] = succeeded;
  for (PodId pod : workload.pods) {
    if (pods_[pod].workload != workload.id) {
      return absl::StrCat("workload ", workload.name, ": foreign pod");
    }
    ++counts[static_cast<int>(pods_[pod].status)];
  }
  if (!std::equal(std::begin(counts), std::end(counts), std::begin(workload.by_status))) {
    return absl::StrCat("workload ", workload.name, ": counts by status");
  }
  if (std::string wrong = CheckSets(*this, workload); !wrong.empty()) return wrong;
  if (workload.oldest_start != FindOldestStart(workload)) {
    return absl::StrCat("workload ", workload.name, ": its oldest start");
  }
  const model::Preemptibility kept = KeptBy(workload);
  if (workload.LacksGroup() && kept != model::Preemptibility::kByPriority &&
      workload.preemptibility() != kept) {
    return absl::StrCat("workload ", workload.name, ": is not as it was started, without PodGroup");
  }
  if (workload.turn != TurnOf(workload)) {
    return absl::StrCat("workload ", workload.name, ": its turn is not what its first pod says");
  }
  return "";
}

std::string ClusterState::CheckConsistency() const {
  model::ResourceSum total;
  size_t softly_tainted = 0;
  for (const auto& [name, id] : nodes_by_name_) {
    const NodeInfo& node = nodes_[id];
    if (node.id != id || node.name() != name) return absl::StrCat("node ", name, ": wrong index");
    if (std::string wrong = CheckNode(node); !wrong.empty()) return wrong;
    if (SoftlyTainted(node.object)) ++softly_tainted;
    total += CountedForQueues(node);
  }
  if (softly_tainted != softly_tainted_nodes_) return "count of softly tainted nodes";
  if (!(total == total_for_queues_)) {
    return absl::StrCat("total ", Text(total_for_queues_, names_), "but nodes make ",
                        Text(total, names_));
  }
  size_t live = 0;
  std::map<WorkloadId, uint32_t> succeeded;  // of them the workload has the number alone
  for (const PodRecord& pod : pods_) {
    if (pod.id == kNoId) continue;
    ++live;
    if (pod.status == PodStatus::kSucceeded) ++succeeded[pod.workload];
    if (std::string wrong = CheckPod(pod); !wrong.empty()) return wrong;
  }
  if (live != live_pods_) return "count of live pods";
  if (std::string wrong = CheckDevices(); !wrong.empty()) return wrong;
  if (std::string wrong = CheckNamespaces(); !wrong.empty()) return wrong;
  if (std::string wrong = CheckDefaultSpread(); !wrong.empty()) return wrong;
  if (std::string wrong = CheckVolumes(); !wrong.empty()) return wrong;
  for (const Workload& workload : workloads_) {
    if (workload.id == kNoId) continue;
    if (std::string wrong = CheckWorkload(workload, succeeded[workload.id]); !wrong.empty()) {
      return wrong;
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
                    Text(n.used, names_), "] scores[", Text(n.used_for_scores, names_), "] rel[",
                    Text(n.releasing, names_), "] pipe[", Text(n.pipelined, names_),
                    "] pods=", absl::StrJoin(n.pods, ","), " gpu=", n.gpu_memory_mib, "\n");
    for (const GpuGroup& g : n.gpu_groups) {
      absl::StrAppend(&out, "  group ", g.id, " mib=", g.used_mib, "/", g.releasing_mib, "/",
                      g.pipelined_mib, " pods=", g.active, "/", g.releasing, "/", g.pipelined, "/",
                      g.reservations, g.closed ? " closed" : "", "\n");
    }
    if (n.numa == nullptr) continue;
    for (const NumaNode::Zone& zone : n.numa->zones) {
      absl::StrAppend(&out, "  zone ", zone.name, " alloc[", Text(zone.allocatable, names_),
                      "] used[", Text(zone.used, names_), "] rel[", Text(zone.releasing, names_),
                      "] pipe[", Text(zone.pipelined, names_), "]\n");
    }
  }
  for (const PodRecord& p : pods_) {
    if (p.id == kNoId) continue;
    absl::StrAppend(&out, "pod ", p.id, " ", p.ns, "/", p.name, " ", PodStatusName(p.status),
                    " node=", p.node == kNoId ? "-" : nodes_[p.node].name(), " class=", p.pod_class,
                    " workload=", p.workload,
                    p.gpu_groups.empty() ? "" : " groups=", absl::StrJoin(p.gpu_groups, ","),
                    p.started_under == nullptr ? "" : " under=",
                    p.started_under == nullptr ? "" : *p.started_under,
                    p.started_as == model::Preemptibility::kByPriority ? "" : " as=",
                    model::PreemptibilityWord(p.started_as), " set=", p.set,
                    p.details->invalid.empty() ? "" : " invalid=", p.details->invalid, "\n");
    for (const model::ZoneAmounts& zone : ZonesOf(p.id)) {
      absl::StrAppend(&out, "  zone ", zone.zone);
      for (const auto& [name, amount] : zone.amounts) {
        absl::StrAppend(&out, " ", name, "=", amount);
      }
      absl::StrAppend(&out, "\n");
    }
  }
  for (const Workload& w : workloads_) {
    if (w.id == kNoId) continue;
    absl::StrAppend(&out, "workload ", w.id, " ", w.ns, "/", w.name, " queue=", w.queue,
                    " prio=", w.priority, " preemptible=", w.preemptible,
                    w.may_preempt ? "" : " never-preempts", w.IsMovable() ? "" : " not-moved",
                    " min=", w.details->min_member, " pods=", absl::StrJoin(w.pods, ","),
                    " counts=", absl::StrJoin(w.by_status, ","), SetsText(w),
                    " stale=", absl::FormatTime(w.details->stale_since, absl::UTCTimeZone()), "\n");
  }
  absl::StrAppend(&out, devices_.Dump(), volumes_.Dump());
  absl::StrAppend(&out, "total ", Text(total_for_queues_, names_), "\n");
  return out;
}

}  // namespace fairlead::state
