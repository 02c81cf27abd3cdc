#include "cmd/simtest/belief_checks.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "absl/strings/str_cat.h"
#include "cmd/simtest/checks.h"
#include "core/gpu_reservations.h"

namespace fairlead::simtest {
namespace {

using sim::world::PodRow;
using sim::world::Truth;

constexpr absl::Duration kSettled = absl::Seconds(30);
// Longer than any replica hears nothing: what happened at about the same time has no order.
constexpr absl::Duration kOrdered = absl::Seconds(100);

// What happened since then may not be heard of yet.
constexpr absl::Duration kHeard = absl::Seconds(5);

// A share of a GPU is bound when its device is known, which is waited for longer.
bool IsOnItsWay(const Belief& belief, const Truth& truth, const core::RunningRow& row) {
  if (row.status != "Binding") return false;
  const auto since = belief.binding_since.find(row.pod);
  if (since == belief.binding_since.end()) return true;
  const auto pod = truth.pods().find(row.pod);
  const bool shares = pod != truth.pods().end() && pod->second.facts.shares_gpu;
  // That of a guest when its scheduler does it.
  const bool guest = pod != truth.pods().end() && pod->second.facts.guest();
  const absl::Duration settled = shares  ? core::GpuSharingOptions().index_timeout + kHeard
                                 : guest ? kGuestMayTake
                                         : kSettled;
  return belief.now - since->second < settled;
}

const core::QueueResourceRow* Find(const core::QueueRow& row, const std::string& resource) {
  const auto found = std::find_if(row.resources.begin(), row.resources.end(),
                                  [&](const auto& each) { return each.resource == resource; });
  return found == row.resources.end() ? nullptr : &*found;
}

void CheckStartedUnder(const Belief& belief, const Truth& truth, const FailBelief& fail) {
  for (const core::RunningRow& row : belief.view.running) {
    const auto found = truth.pods().find(row.pod);
    if (found == truth.pods().end() || row.status == "Binding") continue;
    const PodRow& pod = found->second;
    if (pod.started_under.empty() || !pod.BoundByFairlead()) continue;
    // A new process charges to the queues that its objects name what a queue had that is gone.
    const auto queue = truth.queues().find(pod.started_under);
    const bool same_queue =
        queue != truth.queues().end() && queue->second.changed_at < pod.bound_at;
    if (belief.began > pod.bound_at && !same_queue) continue;
    const absl::Duration apart = pod.moved_at - pod.bound_at;
    if (pod.moved_at > pod.created && apart < kOrdered && apart > -kOrdered) continue;
    if (belief.now - pod.bound_at < kSettled || row.queue == pod.started_under) continue;
    fail("charge", absl::StrCat("pod ", row.pod, " was started under queue ", pod.started_under,
                                ", and counts in ", row.queue));
  }
}

// Of what no queue above or below counts twice: CPU of each queue that has pods of its own.
void CheckSums(const Belief& belief, const Truth& truth, const FailBelief& fail) {
  std::map<std::string, int64_t> least, most;
  std::set<std::string> unsettled;
  for (const core::RunningRow& row : belief.view.running) {
    const auto found = truth.pods().find(row.pod);
    if (found == truth.pods().end() || belief.IsTouched(row.pod)) {
      unsettled.insert(row.queue);  // it comes or goes
      continue;
    }
    const sim::world::PodFacts& pod = found->second.facts;
    // A share of a GPU has a pod of its own that holds the GPU.
    if (pod.terminal || pod.odd_amounts) continue;
    most[row.queue] += pod.requests.cpu;
    least[row.queue] += row.status == "Releasing" || pod.terminating ? 0 : pod.requests.cpu;
  }
  std::map<std::string, const core::QueueRow*> rows;
  std::set<std::string> inner;
  for (const core::QueueRow& row : belief.view.queues) {
    rows[row.name] = &row;
    inner.insert(row.parent);
  }
  for (const auto& [queue, held] : least) {
    if (queue.empty() || inner.contains(queue) || unsettled.contains(queue)) continue;
    const auto row = rows.find(queue);
    const core::QueueResourceRow* const cpu =
        row == rows.end() ? nullptr : Find(*row->second, "cpu");
    const int64_t counted = cpu == nullptr ? 0 : cpu->allocated;
    if (counted >= held && counted <= most[queue]) continue;
    fail("charge", absl::StrCat("queue ", queue, " is charged ", counted,
                                " milli-CPU, and its pods hold ", held));
  }
}

// At least: what has no PodGroup may be so, too. A configuration may say that pods cannot be so.
void CheckForGood(const Belief& belief, const Truth& truth, const FailBelief& fail) {
  if (belief.reloaded) return;
  std::map<std::string, int64_t> least;
  for (const core::RunningRow& row : belief.view.running) {
    const auto found = truth.pods().find(row.pod);
    if (found == truth.pods().end() || belief.IsTouched(row.pod)) continue;
    const PodRow& pod = found->second;
    if (row.status != "Bound" && row.status != "Running") continue;
    if (!pod.facts.active() || pod.facts.odd_amounts || !pod.BoundByFairlead()) continue;
    if (belief.now - pod.bound_at < kSettled || !truth.RunsForGood(pod)) continue;
    least[row.queue] += pod.facts.requests.cpu;
  }
  for (const core::QueueRow& row : belief.view.queues) {
    const core::QueueResourceRow* const cpu = Find(row, "cpu");
    const int64_t counted = cpu == nullptr ? 0 : cpu->allocated_non_preemptible;
    if (counted >= least[row.name]) continue;
    fail("charge", absl::StrCat("queue ", row.name, " is charged ", counted,
                                " milli-CPU for good, and its pods hold ", least[row.name]));
  }
}

// Label first and higher first, then age, then uid.
bool ComesBefore(const PodRow& a, const PodRow& b) {
  if (a.facts.has_task_priority != b.facts.has_task_priority) return a.facts.has_task_priority;
  if (a.facts.task_priority != b.facts.task_priority) {
    return a.facts.task_priority > b.facts.task_priority;
  }
  const absl::Time of_a = absl::FromUnixSeconds(absl::ToUnixSeconds(a.created));
  const absl::Time of_b = absl::FromUnixSeconds(absl::ToUnixSeconds(b.created));
  return of_a != of_b ? of_a < of_b : a.facts.uid < b.facts.uid;
}

void CheckFiled(const Belief& belief, const Truth& truth, const FailBelief& fail) {
  for (const core::WaitingRow& row : belief.view.waiting) {
    const auto group = truth.groups().find(row.workload);
    if (!row.is_group || group == truth.groups().end()) continue;
    if (group->second.changed_at > belief.now - kSettled) continue;
    std::string queue = group->second.facts.queue;
    const PodRow* first = nullptr;
    bool settled = true;
    for (const auto& [key, pod] : truth.pods()) {
      if (absl::StrCat(pod.facts.ns, "/", pod.facts.group) != row.workload) continue;
      settled = settled && std::max(pod.created, pod.moved_at) < belief.now - kSettled;
      if (!pod.facts.ours) settled = false;
      if (first == nullptr || ComesBefore(pod, *first)) first = &pod;
    }
    if (first == nullptr || !settled || belief.IsTouched(row.workload)) continue;
    if (queue.empty()) queue = first->facts.queue_label;
    if (queue.empty() || queue == row.queue) continue;
    fail("charge", absl::StrCat("group ", row.workload, " waits in queue ", row.queue,
                                ", and belongs to ", queue));
  }
}

// Not how much: that it is not nothing.
void CheckDivided(const Belief& belief, const Truth& truth, const FailBelief& fail) {
  int64_t has = 0, requested = 0, divided = 0;
  for (const auto& [name, row] : truth.nodes()) {
    if (!row.facts.ready || row.facts.tainted || row.facts.unschedulable) continue;
    const auto load = truth.LoadOf(name, [](const PodRow& pod) { return !pod.facts.ours; });
    has += std::max<int64_t>(0, row.facts.allocatable.cpu - load.amounts.cpu);
  }
  for (const core::QueueRow& row : belief.view.queues) {
    const core::QueueResourceRow* const cpu = row.depth == 0 ? Find(row, "cpu") : nullptr;
    if (cpu == nullptr || cpu->limit == 0 || !row.problem.empty()) continue;
    requested += cpu->requested;
    divided += cpu->fair_share;
  }
  if (has < 1000 || requested < 1000 || divided > 0) return;
  fail("charge", absl::StrCat("queues ask for ", requested, " milli-CPU, nodes have ", has,
                              ", and the fair shares of all are ", divided));
}

}  // namespace

bool Belief::IsTouched(const std::string& key) const {
  const auto found = touched->find(key);
  return found != touched->end() && found->second > now - kHeard;
}

void CheckPods(const Belief& belief, const Truth& truth, const FailBelief& fail) {
  std::set<std::string> believed;
  for (const core::RunningRow& row : belief.view.running) {
    // The write of a binding may be on its way when the world ends.
    if (!IsOnItsWay(belief, truth, row) && !belief.IsTouched(row.pod)) believed.insert(row.pod);
  }
  for (const auto& [key, row] : truth.pods()) {
    if (!row.facts.ours || !row.facts.active()) continue;
    if (believed.erase(key) == 0 && row.bound_at < belief.now - kSettled &&
        !belief.IsTouched(key)) {
      fail("view", absl::StrCat("pod ", key, " runs on ", row.facts.node,
                                ", and the leader does not know"));
    }
  }
  for (const std::string& pod : believed) {
    if (truth.pods().contains(pod) && truth.pods().at(pod).facts.waiting()) {
      fail("view", absl::StrCat("the leader believes that pod ", pod, " is bound"));
    } else if (!truth.pods().contains(pod)) {
      fail("view", absl::StrCat("the leader believes in pod ", pod, ", which is gone"));
    }
  }
}

void CheckNodes(const Belief& belief, const Truth& truth, const FailBelief& fail) {
  for (const core::NodeRow& row : belief.view.nodes) {
    const auto node = truth.nodes().find(row.name);
    if (node == truth.nodes().end() || node->second.removing_since < belief.now) continue;
    const auto load = truth.LoadOf(row.name, [](const PodRow& pod) { return pod.facts.ours; });
    // Pods run there, so it has been good once.
    if (row.status != "Starting" && row.status != "Ordered") continue;
    if (!node->second.facts.ready || load.pods == 0) continue;
    fail("view", absl::StrCat("node ", row.name, " is ready and runs pods of ours, and the leader ",
                              "takes it for ", row.status));
  }
}

void CheckCharges(const Belief& belief, const Truth& truth, const FailBelief& fail) {
  CheckStartedUnder(belief, truth, fail);
  CheckSums(belief, truth, fail);
  CheckForGood(belief, truth, fail);
  CheckFiled(belief, truth, fail);
  CheckDivided(belief, truth, fail);
}

}  // namespace fairlead::simtest
