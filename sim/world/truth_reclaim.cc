// Of Truth: what a queue below its quota may take from queues above theirs (docs/queues.md).
#include <algorithm>

#include "sim/world/api_json.h"
#include "sim/world/truth.h"

namespace fairlead::sim::world {
namespace {

constexpr absl::Duration kLongSince = absl::Seconds(30);
// Pods without a class have this one (docs/queues.md).
constexpr char kDefaultClass[] = "train";

}  // namespace

bool Truth::MayBeReclaimed(const PodRow& row) const {
  const PodFacts& pod = row.facts;
  if (!pod.ours || pod.guest() || !pod.plain || !pod.active() || pod.terminating) return false;
  const absl::Time since = time_->now() - kLongSince;
  if (row.bound_at >= since || row.moved_at >= since || row.started_under != row.queue) {
    return false;
  }
  std::string priority_class = pod.priority_class;
  if (!pod.group.empty()) {
    const auto group = groups_.find(pod.ns + "/" + pod.group);
    if (group == groups_.end() || group->second.facts.odd || group->second.changed_at >= since) {
      return false;
    }
    if (!group->second.facts.priority_class.empty()) {
      priority_class = group->second.facts.priority_class;
    }
  }
  const ClassRow its = ClassOf(priority_class.empty() ? kDefaultClass : priority_class);
  if (!its.exists || !its.IsPreemptible() || its.changed_at >= since) return false;
  return server_->Find(ResourceType::kPodDisruptionBudgets, pod.ns, pod.job) == nullptr;
}

int64_t Truth::KeptGpus(const std::string& queue) const {
  int64_t gpus = UseOf(queue).gpu;
  for (const auto& [key, row] : pods_) {
    if (row.queue == queue && MayBeReclaimed(row)) gpus -= row.facts.requests.gpu;
  }
  return gpus;
}

bool Truth::IsRoomComing() const {
  const bool leaves = std::any_of(pods_.begin(), pods_.end(), [](const auto& entry) {
    return entry.second.facts.active() && entry.second.facts.terminating;
  });
  bool ordered = false;
  server_->ForEach(ResourceType::kNodeRequests, [&](const Json& request) {
    const std::string phase = TextAt(request, {"status", "phase"});
    ordered = ordered || phase.empty() || phase == "Pending" || phase == "Launched" ||
              phase == "Registered";
  });
  return leaves || ordered;
}

// A queue has its turn by the first in its line, so one that asks for more than the quota may hold
// up those behind it: victims of a queue with a higher priority take back what they gave
// (docs/queues.md).
bool Truth::IsHeldUp(const std::string& queue) const {
  const std::vector<Workload> waiting = Waiting();
  return std::any_of(waiting.begin(), waiting.end(), [&](const Workload& other) {
    if (other.queue != queue) return false;
    Amounts more;
    for (int64_t i = other.needed(); i > 0; --i) more += other.waiting.front()->facts.requests;
    return !OverQuota(queue, more).empty();
  });
}

bool Truth::CouldReclaim(const Workload& workload) const {
  const PodFacts& pod = workload.waiting.front()->facts;
  if (!pod.plain || pod.guest() || pod.requests.gpu < 1000 || !workload.part.empty()) return false;
  const std::vector<std::string> chain = Chain(workload.queue);
  if (chain.empty() || !Entitled(workload) || IsRoomComing()) return false;
  Amounts more;
  for (int64_t i = workload.needed(); i > 0; --i) more += pod.requests;
  if (!OverQuota(workload.queue, more).empty()) return false;
  if (PolicyChangedAt(workload.queue) >= time_->now() - kLongSince) return false;
  const QueueFacts& own = queues_.at(workload.queue).facts;
  if (own.may_buy) return false;
  std::set<std::string> givers;  // they keep their quota whatever is taken of them
  for (const auto& [name, row] : queues_) {
    const QueueFacts& other = row.facts;
    if (name == own.name || other.parent != own.parent || other.odd || !IsLeaf(name)) continue;
    if (other.gpu_quota != kNoLimit && KeptGpus(name) >= other.gpu_quota) givers.insert(name);
  }
  if (givers.empty() || IsHeldUp(workload.queue)) return false;
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    const NodeFacts& node = entry.second.facts;
    if (!node.ready || node.tainted || node.unschedulable) return false;
    Load load = LoadOf(entry.first, [&](const PodRow& row) {
      return !givers.contains(row.queue) || !MayBeReclaimed(row);
    });
    load.amounts += more;
    return load.amounts.FitsIn(node.allocatable) && load.pods + workload.needed() <= node.pods;
  });
}

}  // namespace fairlead::sim::world
