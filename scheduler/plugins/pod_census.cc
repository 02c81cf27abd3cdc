#include "scheduler/plugins/pod_census.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace fairlead::plugins {
namespace {

bool IsAlive(const state::PodRecord& pod) {
  return pod.ours && !pod.terminating && !state::IsFinished(pod.status);
}

}  // namespace

PodCounts CountPods(const state::ClusterState& state) {
  absl::flat_hash_map<state::PodClassId, int64_t> by_class;
  state.ForEachPod([&](const state::PodRecord& pod) {
    if (IsAlive(pod)) ++by_class[pod.pod_class];
  });
  PodCounts counts(by_class.begin(), by_class.end());
  std::sort(counts.begin(), counts.end());
  return counts;
}

PodCensus::PodCensus(const state::ClusterState& state) : state_(state) {
  state.ForEachWorkload([this](const state::Workload& workload) { Mark(workload.id); });
}

void PodCensus::Mark(state::WorkloadId id) {
  if (id >= is_changed_.size()) is_changed_.resize(id + 1, false);
  if (is_changed_[id]) return;
  is_changed_[id] = true;
  changed_.push_back(id);
}

void PodCensus::OnChange(const state::StateChange& change) {
  if (change.kind == state::StateChange::Kind::kWorkload) return Mark(change.workload);
  if (change.workload < parts_.size()) Replace(change.workload, {});
}

PodCensus::Parts PodCensus::PartsOf(const state::Workload& workload) const {
  Parts parts;
  for (const state::PodId id : workload.pods) {
    const state::PodRecord& pod = state_.pod(id);
    if (!IsAlive(pod)) continue;
    // Mostly the class of the pod before it.
    const auto known = std::find_if(parts.rbegin(), parts.rend(), [&](const Part& part) {
      return part.pod_class == pod.pod_class;
    });
    if (known != parts.rend()) {
      ++known->pods;
    } else {
      parts.push_back({state_.pod_class(pod.pod_class).spec, pod.pod_class, 1});
    }
  }
  return parts;
}

void PodCensus::Replace(state::WorkloadId id, Parts now) {
  Parts& parts = parts_[id];
  if (parts == now) return;
  ++version_;
  for (const Part& part : parts) {
    const auto total = totals_.find(part.spec.get());
    total->second.pods -= part.pods;
    if (total->second.pods == 0) totals_.erase(total);
  }
  for (const Part& part : now) {
    Total& total = totals_[part.spec.get()];
    total.spec = part.spec;
    total.pod_class = part.pod_class;
    total.pods += part.pods;
  }
  parts = std::move(now);
}

uint64_t PodCensus::Renew() {
  for (const state::WorkloadId id : changed_) {
    is_changed_[id] = false;
    const state::Workload& workload = state_.workload(id);
    if (workload.id != id) continue;  // it has gone since: OnChange() has taken its parts off
    if (id >= parts_.size()) parts_.resize(id + 1);
    Replace(id, PartsOf(workload));
    // What a share by memory counts depends on the nodes; its workloads are told when that changes.
    version_ += std::any_of(parts_[id].begin(), parts_[id].end(),
                            [](const Part& part) { return part.spec->gpu_share.memory_mib > 0; });
  }
  changed_.clear();
  return version_;
}

PodCounts PodCensus::Counts() const {
  PodCounts counts;
  counts.reserve(totals_.size());
  for (const auto& [spec, total] : totals_) counts.emplace_back(total.pod_class, total.pods);
  std::sort(counts.begin(), counts.end());
  return counts;
}

std::string PodCensus::CheckConsistency() {
  Renew();
  const PodCounts now = CountPods(state_);
  const PodCounts known = Counts();
  if (known == now) return "";
  const auto first = std::mismatch(known.begin(), known.end(), now.begin(), now.end()).first;
  return absl::StrCat("pods by class: ",
                      first == known.end()
                          ? std::string("a class is missing")
                          : absl::StrCat("class ", first->first, " counts ", first->second),
                      ", a recount makes ", now.size(), " classes");
}

}  // namespace fairlead::plugins
