#include "core/kai_counts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/device_names.h"

namespace fairlead::core {
namespace {

constexpr char kGpuMemoryName[] = "run.ai/gpu.memory";
constexpr int64_t kMilli = 1000;

// On its node as the API server has it: what was only decided does not count.
bool IsOnItsNode(const state::PodRecord& pod) {
  using state::PodStatus;
  return pod.node != state::kNoId &&
         (pod.status == PodStatus::kBound || pod.status == PodStatus::kRunning ||
          pod.status == PodStatus::kReleasing || pod.status == PodStatus::kStuckInReleasing);
}

// Requests of the containers, and devices of claims under the name of their class.
model::ResourceList AmountsOf(const model::PodSpec& spec) {
  model::ResourceList amounts;
  for (const auto& [name, amount] : spec.requests) {
    absl::string_view device_class = name;
    if (absl::StartsWith(name, model::kShapePrefix)) continue;
    if (!absl::ConsumePrefix(&device_class, model::kDemandPrefix)) {
      model::Add(amounts, name, amount);
    } else if (absl::StrContains(absl::AsciiStrToLower(device_class), "gpu")) {
      model::Add(amounts, device_class, amount);
    }
  }
  return amounts;
}

void AddRequestedShare(const model::GpuShare& share, model::ResourceList& amounts) {
  if (share.fraction_milli > 0) {
    model::Add(amounts, model::kGpuName,
               model::SaturatingMultiply(share.fraction_milli, share.devices));
  }
  if (share.memory_mib > 0) {
    model::Add(amounts, kGpuMemoryName, model::SaturatingMultiply(share.memory_mib, share.devices));
  }
}

void AddReceivedShare(const model::GpuShare& share, const model::Node& node,
                      model::ResourceList& amounts) {
  int64_t milli = share.fraction_milli;
  int64_t of_gpu = 0;
  if (share.memory_mib > 0 &&
      absl::SimpleAtoi(node.meta.labels.Get(model::kGpuMemoryLabel), &of_gpu) && of_gpu > 0) {
    const int64_t scaled = model::SaturatingMultiply(share.memory_mib, kMilli);
    milli = scaled / of_gpu + (scaled % of_gpu == 0 ? 0 : 1);
  }
  if (milli > 0) model::Add(amounts, model::kGpuName, milli);
}

}  // namespace

model::KaiCounts CountOfWorkload(const state::ClusterState& state,
                                 const state::Workload& workload) {
  model::KaiCounts counts;
  for (const state::PodId id : workload.pods) {
    const state::PodRecord& pod = state.pod(id);
    if (state::IsFinished(pod.status)) continue;
    const model::PodSpec& spec = *state.class_of(id).spec;
    model::ResourceList amounts = AmountsOf(spec);
    if (IsOnItsNode(pod)) {
      model::ResourceList received = amounts;
      AddReceivedShare(spec.gpu_share, state.node(pod.node).object, received);
      model::AddAll(counts.allocated, received);
    }
    AddRequestedShare(spec.gpu_share, amounts);
    model::AddAll(counts.requested, amounts);
  }
  for (model::ResourceList* list : {&counts.allocated, &counts.requested}) {
    std::erase_if(*list, [](const auto& entry) { return entry.second == 0; });
    std::sort(list->begin(), list->end());
  }
  if (!workload.preemptible) counts.allocated_non_preemptible = counts.allocated;
  return counts;
}

void KaiCounter::Sum::Add(const model::ResourceList& list, int sign) {
  for (const auto& [name, amount] : list) {
    const auto entry = amounts.try_emplace(name).first;
    entry->second += sign * Wide{amount};
    if (entry->second == 0) amounts.erase(entry);
  }
}

model::ResourceList KaiCounter::Sum::ToList() const {
  model::ResourceList list;
  for (const auto& [name, amount] : amounts) {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    list.emplace_back(name, static_cast<int64_t>(std::clamp<Wide>(amount, -kMost, kMost)));
  }
  return list;
}

KaiCounter::KaiCounter(state::ClusterState& state) : state_(state) { state_.Subscribe(this); }
KaiCounter::~KaiCounter() { state_.Unsubscribe(this); }

state::ChangeKinds KaiCounter::Kinds() const {
  using Kind = state::StateChange::Kind;
  return {Kind::kWorkload, Kind::kWorkloadGone};
}

void KaiCounter::Mark(state::WorkloadId id) {
  if (id >= marked_.size()) marked_.resize(id + 1);
  if (marked_[id]) return;
  marked_[id] = true;
  line_.push_back(id);
}

void KaiCounter::OnChange(const state::StateChange& change) {
  // The id of a workload that goes may be given to another one, which is marked then.
  if (change.kind == state::StateChange::Kind::kWorkloadGone) Forget(change.workload);
  Mark(change.workload);
}

void KaiCounter::Forget(state::WorkloadId id) {
  const auto found = counted_.find(id);
  if (found == counted_.end()) return;
  Charge(found->second, -1);
  if (!found->second.group.empty()) {
    changed_.groups.insert(found->second.group);
    const auto group = groups_.find(found->second.group);
    if (group != groups_.end() && group->second == id) groups_.erase(group);
  }
  counted_.erase(found);
}

void KaiCounter::Charge(const Counted& counted, int sign) {
  if (reshaped_) return;  // all is charged again
  std::set<absl::string_view> passed;
  const std::string* queue = &counted.queue;
  while (queue != nullptr && !queue->empty() && passed.insert(*queue).second) {
    Sums& sums = totals_[*queue];
    sums.allocated.Add(counted.counts.allocated, sign);
    sums.allocated_non_preemptible.Add(counted.counts.allocated_non_preemptible, sign);
    sums.requested.Add(counted.counts.requested, sign);
    changed_.queues.insert(*queue);
    const auto parent = parents_.find(*queue);
    queue = parent == parents_.end() ? nullptr : &parent->second;
  }
}

void KaiCounter::Recharge() {
  reshaped_ = false;
  for (const auto& [name, sums] : totals_) changed_.queues.insert(name);
  for (const auto& [name, parent] : parents_) changed_.queues.insert(name);
  totals_.clear();
  for (const auto& [id, counted] : counted_) Charge(counted, 1);
}

void KaiCounter::QueueSeen(const std::string& name, const std::string& parent) {
  const auto [row, added] = parents_.try_emplace(name, parent);
  if (!added && row->second == parent) return;
  if (!added) QueueGone(name);
  parents_[name] = parent;
  if (!parent.empty()) children_[parent].insert(name);
  reshaped_ = true;
}

void KaiCounter::QueueGone(const std::string& name) {
  const auto found = parents_.find(name);
  if (found == parents_.end()) return;
  const auto children = children_.find(found->second);
  if (children != children_.end()) {
    children->second.erase(name);
    if (children->second.empty()) children_.erase(children);
  }
  parents_.erase(found);
  reshaped_ = true;
}

KaiCounter::Changed KaiCounter::Count() {
  if (reshaped_) Recharge();
  for (const state::WorkloadId id : std::exchange(line_, {})) {
    marked_[id] = false;
    Counted now;
    const state::Workload& workload = state_.workload(id);
    if (workload.id != state::kNoId) {
      now.queue = workload.queue;
      if (workload.is_group) now.group = absl::StrCat(workload.ns, "/", workload.name);
      now.counts = CountOfWorkload(state_, workload);
    }
    const auto former = counted_.find(id);
    if (former != counted_.end() && former->second.queue == now.queue &&
        former->second.group == now.group && former->second.counts == now.counts) {
      continue;
    }
    Forget(id);
    if (now.queue.empty()) continue;
    Charge(now, 1);
    if (!now.group.empty()) {
      changed_.groups.insert(now.group);
      groups_[now.group] = id;
    }
    counted_.emplace(id, std::move(now));
  }
  return std::exchange(changed_, {});
}

model::KaiCounts KaiCounter::OfGroup(absl::string_view ns, absl::string_view name) const {
  const auto group = groups_.find(absl::StrCat(ns, "/", name));
  return group == groups_.end() ? model::KaiCounts() : counted_.at(group->second).counts;
}

model::KaiCounts KaiCounter::OfQueue(const std::string& name) const {
  const auto found = totals_.find(name);
  if (found == totals_.end()) return {};
  const Sums& sums = found->second;
  return {sums.allocated.ToList(), sums.allocated_non_preemptible.ToList(),
          sums.requested.ToList()};
}

std::vector<std::string> KaiCounter::ChildrenOf(const std::string& queue) const {
  const auto found = children_.find(queue);
  if (found == children_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

}  // namespace fairlead::core
