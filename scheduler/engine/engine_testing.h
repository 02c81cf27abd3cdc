// A cluster for tests of the engine: objects in by short calls, decisions out by name.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "scheduler/engine/engine.h"
#include "scheduler/framework/default_profiles.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/plugins/registry.h"

namespace fairlead::engine::testing {

// Pods of scheduler name "fairlead" are ours.
inline state::StateOptions OurPods(const state::JobOrder& job_order = {}) {
  state::StateOptions options;
  options.job_order = job_order;
  options.scheduler_names = {"fairlead"};
  return options;
}

inline state::StateOptions OurUpstreamPods() {
  state::StateOptions options = OurPods();
  options.keep_images = true;
  options.sum_scoring_requests = true;
  options.priority_rules = {state::PriorityRules::kKubernetes};
  return options;
}

// With the default profile of that base.
inline std::unique_ptr<Engine> MakeEngine(
    const EngineOptions& options, state::ClusterState& state, queues::QueueTree& tree,
    framework::ProfileBase base = framework::ProfileBase::kFairlead) {
  framework::Registry registry;
  EXPECT_TRUE(plugins::RegisterAll(registry).ok());
  auto framework = framework::Framework::Make(framework::DefaultProfile(base), registry);
  EXPECT_TRUE(framework.ok()) << framework.status();
  return std::make_unique<Engine>(options, &state, &tree, *std::move(framework));
}

// Pod -> node.
inline std::map<std::string, std::string> BoundBy(const state::ClusterState& state,
                                                  const CycleResult& result) {
  std::map<std::string, std::string> bound;
  for (const Binding& binding : result.bindings) {
    bound[state.pod(binding.pod).name] = state.node(binding.node).name();
  }
  return bound;
}

// Null if the workload does not wait.
inline const Waiting* FindWaiting(const state::ClusterState& state, const CycleResult& result,
                                  absl::string_view workload) {
  for (const Waiting& waiting : result.waiting) {
    if (state.workload(waiting.workload).name == workload) return &waiting;
  }
  return nullptr;
}

inline verdict::Code CodeOf(const Waiting* waiting) {
  return waiting == nullptr ? verdict::Code::kNone : waiting->verdict.code;
}

// A preemptible pod of namespace "ns".
inline model::testing::PodBuilder Job(absl::string_view name, absl::string_view queue, int64_t gpus,
                                      int64_t created = 0) {
  model::testing::PodBuilder pod("ns", name);
  pod.Queue(queue).Gpus(gpus).Preemptible(true).Created(created);
  return pod;
}

// A pod of one GPU in a group of namespace "ns".
inline model::testing::PodBuilder Member(absl::string_view name, absl::string_view group) {
  model::testing::PodBuilder pod("ns", name);
  pod.Group(group).Gpus(1);
  return pod;
}

// Of namespace "ns".
inline model::PodGroup PreemptibleGroup(absl::string_view name, absl::string_view queue,
                                        int32_t min_member, int64_t created = 0) {
  model::PodGroup group = model::testing::MakeGroup("ns", name, queue, min_member);
  group.preemptibility = model::Preemptibility::kPreemptible;
  group.meta.creation = model::testing::At(created);
  return group;
}

class Cluster {
 public:
  explicit Cluster(const EngineOptions& options = {}, const state::JobOrder& job_order = {})
      : state_(OurPods(job_order)),
        tree_(state_.resource_names()),
        engine_(MakeEngine(options, state_, tree_)) {}
  // Its pods are placed by the default profile of kube-scheduler's.
  struct Upstream {};
  explicit Cluster(Upstream, const EngineOptions& options = {})
      : state_(OurUpstreamPods()),
        tree_(state_.resource_names()),
        engine_(MakeEngine(options, state_, tree_, framework::ProfileBase::kUpstream)) {}

  state::ClusterState& state() { return state_; }
  [[nodiscard]] const state::ClusterState& state() const { return state_; }
  Engine& engine() { return *engine_; }

  void Queue(absl::string_view name, int64_t quota, int64_t limit = model::kUnlimited,
             absl::string_view parent = "") {
    Queue(model::testing::MakeQueue(name, parent, quota, limit));
  }
  // Younger than those before it.
  void Queue(model::Queue queue) {
    queue.meta.creation = model::testing::At(static_cast<int64_t>(tree_.size()));
    tree_.Upsert(queue);
  }
  void Node(absl::string_view name, int64_t gpus) {
    state_.UpsertNode(model::testing::MakeNode(name, gpus));
  }
  void Group(const model::PodGroup& group) { state_.UpsertPodGroup(group); }
  void Pod(const model::Pod& pod) { state_.UpsertPod(pod); }
  void Budget(const model::PodDisruptionBudget& budget) { state_.UpsertDisruptionBudget(budget); }

  const CycleResult& Run(int64_t at = 100) {
    result_ = engine_->RunCycle(model::testing::At(at));
    result_.waiting = engine_->ExpandEquivalents(std::move(result_.waiting));
    EXPECT_EQ(engine_->CheckConsistency(), "");
    return result_;
  }

  // Of the last cycle.
  [[nodiscard]] const CycleResult& Result() const { return result_; }
  // "pod>node" of the bindings of the last cycle, sorted.
  std::vector<std::string> Bound() const {
    std::vector<std::string> names;
    for (const auto& [pod, node] : BoundBy(state_, result_)) {
      names.push_back(absl::StrCat(pod, ">", node));
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  // "action:pod", with ">node" for a pod that has another place, sorted.
  std::vector<std::string> Evicted() const {
    std::vector<std::string> names;
    for (const Eviction& eviction : result_.evictions) {
      std::string text = absl::StrCat(eviction.action, ":", state_.pod(eviction.pod).name);
      if (eviction.moves_to != state::kNoId) {
        absl::StrAppend(&text, ">", state_.node(eviction.moves_to).name());
      }
      names.push_back(std::move(text));
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  // "pod>node" of the promises of the last cycle, sorted.
  std::vector<std::string> Promised() const {
    std::vector<std::string> names;
    for (const Waiting& waiting : result_.waiting) {
      for (const Waiting::PodPromise& promise : waiting.pods) {
        if (promise.node == state::kNoId) continue;
        names.push_back(
            absl::StrCat(state_.pod(promise.pod).name, ">", state_.node(promise.node).name()));
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  // Null if the workload does not wait.
  const verdict::Verdict* VerdictOf(absl::string_view workload) const {
    const Waiting* waiting = FindWaiting(state_, result_, workload);
    return waiting == nullptr ? nullptr : &waiting->verdict;
  }
  verdict::Code CodeOf(absl::string_view workload) const {
    return testing::CodeOf(FindWaiting(state_, result_, workload));
  }
  // All details of the workload's verdict in one text.
  std::string DetailsOf(absl::string_view workload) const {
    std::string text;
    const verdict::Verdict* found = VerdictOf(workload);
    if (found != nullptr) {
      for (const std::string& detail : found->details) absl::StrAppend(&text, detail, "; ");
    }
    return text;
  }

 private:
  state::ClusterState state_;
  queues::QueueTree tree_;
  std::unique_ptr<Engine> engine_;
  CycleResult result_;
};

// For tests that look closer than a Cluster lets them: its parts are at hand, and the engine can be
// made anew with other options.
class EngineFixture : public ::testing::Test {
 protected:
  EngineFixture() : state_(OurPods()), tree_(state_.resource_names()) { Start({}); }
  void Start(const EngineOptions& options) {
    engine_.reset();
    engine_ = MakeEngine(options, state_, tree_);
  }
  void TearDown() override { EXPECT_EQ(engine_->CheckConsistency(), ""); }

  CycleResult Cycle(int64_t at = 100) {
    CycleResult result = engine_->RunCycle(model::testing::At(at));
    result.waiting = engine_->ExpandEquivalents(std::move(result.waiting));
    EXPECT_EQ(engine_->CheckConsistency(), "");
    return result;
  }
  std::map<std::string, std::string> Bound(const CycleResult& result) const {
    return BoundBy(state_, result);
  }
  const Waiting* Find(const CycleResult& result, absl::string_view workload) const {
    return FindWaiting(state_, result, workload);
  }
  verdict::Code CodeOf(const CycleResult& result, absl::string_view workload) const {
    return testing::CodeOf(Find(result, workload));
  }

  state::ClusterState state_;
  queues::QueueTree tree_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace fairlead::engine::testing
