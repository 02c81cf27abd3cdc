// What nodes for workloads with scheduling gates would cost: for pods that ask for it by the
// annotation fairlead.dev/estimate. Nothing is provisioned, and no queue is charged.
//
// An estimate is made for one workload as if it waited alone: its pods take what is free on the
// nodes that there are, promises to others respected, and the hook plans nodes for the rest from
// the offers that can be had now. Caps, limits of queues and topology constraints are left aside.
// It is made again when the offers or the pods change, and after kStaysFor, because what is free
// changes. Workloads of equal pods share one.
//
// Ownership: borrows the state and the hook. Thread-safety: the owner's thread; no cycle and no
// event while Update() runs. Complexity: at most kMostPerStep estimates a step, O(nodes * classes)
// and a plan each; the others wait for the next step. A step without such pods costs
// O(entries).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/hook.h"
#include "scheduler/engine/engine.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class Estimates {
 public:
  static constexpr int kMostPerStep = 8;
  static constexpr absl::Duration kStaysFor = absl::Minutes(1);
  static constexpr size_t kLongestText = 512;  // bytes; the verdict has 2048 for all that it says

  Estimates(const state::ClusterState& state, const hook::Hook& hook)
      : state_(state), hook_(hook) {}

  // An estimate that is to be told, about the pod.
  struct Told {
    state::PodId pod = state::kNoId;
    std::string text;
  };
  // Sets Verdict::estimate of the entries that want one. Returns those that differ from what was
  // told of the workload before. `hook_on` false: the estimate says that there is none.
  std::vector<Told> Update(engine::Engine& engine, std::vector<engine::Waiting>& entries,
                           const std::vector<const model::NodePool*>& pools, bool hook_on,
                           absl::Time now);
  // Sets those that were told last: nothing is decided now.
  void Repeat(std::vector<engine::Waiting>& entries) const;
  // Call it when NodePools change.
  void PoolsChanged() { rows_.clear(); }
  // When Update() could say something new although nothing changed; infinite future: never.
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }

 private:
  // The pods of a workload that an estimate is for.
  struct Request {
    std::vector<std::pair<state::PodClassId, int64_t>> classes;  // in task order
    state::PodId first = state::kNoId;                           // that wants an estimate
    std::string invalid;                                         // of such a pod
    bool atomic = false;
    [[nodiscard]] int64_t Pods() const;
  };
  struct Row {
    std::string text;
    uint64_t offers_version = 0;
    absl::Time made = absl::InfinitePast();
    bool used = false;  // in this step
  };

  [[nodiscard]] Request RequestOf(const state::Workload& workload) const;
  [[nodiscard]] std::string KeyOf(const Request& request) const;
  [[nodiscard]] bool IsFresh(const Row& row, absl::Time now) const;
  std::string Make(engine::Engine& engine, const std::vector<engine::Waiting>& entries,
                   const Request& request, const std::string& queue,
                   const std::vector<const model::NodePool*>& pools, absl::Time now) const;

  const state::ClusterState& state_;
  const hook::Hook& hook_;
  std::map<std::string, Row> rows_;          // by KeyOf()
  std::map<std::string, std::string> told_;  // by uid of the workload
  absl::Time wake_at_ = absl::InfiniteFuture();
};

}  // namespace fairlead::core
