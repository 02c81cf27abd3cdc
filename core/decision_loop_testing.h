// A decision loop and helpers for its tests: objects in, steps, answers. Header only; never part of
// the product.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/decision_loop.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::core::testing {

using model::Action;
using model::kUnlimited;
using model::testing::At;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::MakeQueue;
using model::testing::PodBuilder;

inline constexpr char kCatalog[] = R"(
as_of: "2026-11"
source: made for this test
types:
- name: gpu.small
  cpu: 8
  memory: 32Gi
  gpu: {model: Test-GPU, count: 1, memory_mib: 24576}
  zones: [z1]
  price: {on_demand: 1.00}
- name: gpu.large
  cpu: 32
  memory: 128Gi
  gpu: {model: Test-GPU, count: 4, memory_mib: 24576}
  zones: [z1]
  price: {on_demand: 4.50}
)";

template <typename T>
std::vector<T> Of(const StepResult& result) {
  std::vector<T> found;
  for (const Action& action : result.actions) {
    if (const T* what = std::get_if<T>(&action.what)) found.push_back(*what);
  }
  return found;
}

inline std::vector<std::string> BoundIn(const StepResult& result) {
  std::vector<std::string> names;
  for (const model::BindPod& bind : Of<model::BindPod>(result)) names.push_back(bind.name);
  return names;
}

inline std::vector<std::string> EvictedIn(const StepResult& result) {
  std::vector<std::string> names;
  for (const model::EvictPod& evict : Of<model::EvictPod>(result)) names.push_back(evict.name);
  return names;
}

class DecisionLoopTest : public ::testing::Test {
 protected:
  DecisionLoopTest() {
    auto catalog = hook::Catalog::Parse(kCatalog, "test.yaml");
    EXPECT_TRUE(catalog.ok()) << catalog.status();
    catalog_ = *std::move(catalog);
    options_ = KwokOptions();
    options_.emit_events = false;
    options_.hook.provider = "kwok";
    options_.hook.gathering_quiet = absl::ZeroDuration();  // tests of gathering set it
    Restart();
  }
  // A new process: it knows the API server's objects, and nothing else.
  void Restart() {
    auto loop = DecisionLoop::Make(options_, &catalog_);
    ASSERT_TRUE(loop.ok()) << loop.status();
    loop_ = *std::move(loop);
    last_list_ = 0;
  }
  void SyncAll() {
    for (model::Kind kind : model::kAllKinds) loop_->Apply(model::Synced{kind});
  }
  template <typename T>
  void Put(const T& object) {
    loop_->Apply(model::Upsert{object});
  }
  StepResult Step(int64_t at) { return StepAt(At(at)); }
  StepResult StepAt(absl::Time at) {
    StepResult result = loop_->Step(at);
    EXPECT_EQ(loop_->CheckConsistency(), "");
    ListNodes();
    return result;
  }
  // Steps whenever the step before asked for it, until one has such an action.
  template <typename T>
  StepResult StepsTo(StepResult step, absl::Time at_most) {
    do {
      step = StepAt(step.wake_at);
    } while (Of<T>(step).empty() && step.wake_at <= at_most);
    return step;
  }
  // Answers an awaited list of nodes: no node exists that the test has not put.
  virtual void ListNodes() {
    if (ListIsDue()) loop_->NodesListed(last_list_, std::vector<hook::ListedNode>());
  }
  // True once for each awaited list.
  bool ListIsDue() {
    const uint64_t number = loop_->AwaitedNodeList();
    if (number <= last_list_) return false;
    last_list_ = number;
    return true;
  }
  // The given answer to every action of that type, and OK to the others.
  template <typename T>
  void AnswerThe(const StepResult& result, const absl::Status& status) {
    for (size_t i = 0; i < result.actions.size(); ++i) {
      Answer(result, i,
             std::holds_alternative<T>(result.actions[i].what) ? status : absl::OkStatus());
    }
  }
  void Answer(const StepResult& result, size_t index, const absl::Status& status) {
    loop_->Apply(model::ActionResult{result.actions[index].id, status});
  }
  void AnswerAll(const StepResult& result) {
    for (size_t i = 0; i < result.actions.size(); ++i) Answer(result, i, absl::OkStatus());
  }

  hook::Catalog catalog_;
  Options options_;
  std::unique_ptr<DecisionLoop> loop_;
  uint64_t last_list_ = 0;  // of nodes, that was answered
};

// Without the hook, with the queue "q", which has no limit.
class NoHookTest : public DecisionLoopTest {
 protected:
  NoHookTest() {
    options_.hook.enabled = false;
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  }
};

// Without the hook, a node "n" full of pods of low priority, and the pod "high", which needs some
// of it.
class FullNodeTest : public DecisionLoopTest {
 protected:
  void Start(int victims, int wanted) {
    options_.hook.enabled = false;
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    Put(MakeNode("n", victims));
    for (int i = 0; i < victims; ++i) Put(Victim(i));
    Put(PodBuilder("ns", "high").Queue("q").Gpus(wanted).Priority("high", 60).Created(99).Build());
  }
  static PodBuilder Victim(int i) {
    PodBuilder pod("ns", absl::StrCat("v", i));
    pod.Queue("q").Gpus(1).Priority("low", 10).Created(i).On("n").Label("app",
                                                                        absl::StrCat("app", i));
    return pod;
  }
};

// Three pods of one GPU each in a queue that may have two, and no node.
class PurchaseTest : public DecisionLoopTest {
 protected:
  void Morning() {
    SyncAll();
    Put(MakeQueue("research", "", 4, 2));
    for (int i = 0; i < 3; ++i) {
      Put(PodBuilder("ns", absl::StrCat("p", i)).Queue("research").Gpus(1).Created(i).Build());
    }
  }
  // The API server's request after our writes.
  static model::NodeRequest Stored(model::NodeRequest request) {
    request.meta.uid = "uid-" + request.meta.name;
    request.meta.creation = At(1);
    return request;
  }
};

}  // namespace fairlead::core::testing
