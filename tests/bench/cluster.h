// Clusters in memory for the benchmarks: the real decision loop, or the engine alone, fed with
// objects.
//
// Shapes are those of the measurements that the goals come from: nodes of 8 GPUs, 128 cores, 1 TiB;
// pods of one GPU, one core, 1 GiB (docs/performance.md).
// Ownership: values and owned parts. Thread-safety: none. Errors end the benchmark
// (Require).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/decision_loop.h"
#include "queues/tree.h"
#include "scheduler/engine/engine.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::bench {

inline constexpr char kNamespace[] = "bench";

std::string Numbered(absl::string_view prefix, int64_t number);  // "node-000017"
model::Node GpuNode(int64_t number);
// A pod of one GPU.
model::Pod GpuPod(absl::string_view prefix, int64_t number, absl::string_view queue);
// The pod as it runs on a node of that number.
model::Pod RunningOn(model::Pod pod, int64_t node);
// A PodGroup for this pod alone, with its queue and its preemptibility; the pod is changed to name
// it.
model::PodGroup OwnGroup(model::Pod& pod);
// The name of a benchmark with lone pods, or of its twin in which each pod has a PodGroup of its
// own, as all pods of a KAI cluster have.
std::string NameOf(absl::string_view name, bool groups);

// The program without sockets. Time advances only on request.
class LoopCluster {
 public:
  // Without events, and without the hook unless it is asked for.
  explicit LoopCluster(core::Options options = QuietOptions());
  static core::Options QuietOptions();

  template <typename Object>
  void Add(const Object& object) {
    loop_->Apply(model::Upsert{object});
  }
  // The pod, and with `groups` its own group.
  void AddJob(model::Pod pod, bool groups);
  void RemoveJob(const model::Pod& pod, bool groups);
  void AddNodes(int64_t count);
  // Marks every kind as listed: from now on Step() decides.
  void Sync();
  void Remove(const model::Pod& pod);
  core::StepResult Step() { return loop_->Step(now_); }
  // A whole cycle after a change of policy that changes no result.
  core::StepResult DecideAnew();
  // Answers every action with OK, as the API server would.
  void Confirm(const core::StepResult& result);

  core::DecisionLoop& loop() { return *loop_; }
  void Advance(absl::Duration by) { now_ += by; }
  [[nodiscard]] absl::Time now() const { return now_; }

 private:
  absl::Time now_ = model::testing::At(1000);
  int64_t pools_ = 0;  // that DecideAnew has added
  std::unique_ptr<core::DecisionLoop> loop_;
};

// State, queues, plugins and engine, without the rest of the loop.
class EngineCluster {
 public:
  // The hook is off.
  explicit EngineCluster(const framework::Profile& profile = framework::DefaultProfile());

  state::ClusterState& state() { return state_; }
  queues::QueueTree& tree() { return tree_; }
  // The pod, and with `groups` its own group.
  void AddJob(model::Pod pod, bool groups);
  void RemoveJob(state::PodId pod, bool groups);
  engine::Engine& engine() { return *engine_; }

 private:
  state::ClusterState state_;
  queues::QueueTree tree_;
  std::unique_ptr<engine::Engine> engine_;
};

// The number of actions of one kind.
template <typename What>
int64_t Count(const core::StepResult& result) {
  int64_t count = 0;
  for (const model::Action& action : result.actions) {
    if (std::holds_alternative<What>(action.what)) ++count;
  }
  return count;
}

// Requests to the API server, without events.
int64_t Writes(const core::StepResult& result);

}  // namespace fairlead::bench
