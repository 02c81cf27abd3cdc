// Where what runs is charged when its group or its queue is deleted, made again or renamed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using model::Set;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::MakeQueue;
using model::testing::PodBuilder;
using testing::Job;
using verdict::Code;

class StartedUnderTest : public testing::EngineFixture {
 protected:
  StartedUnderTest() {
    state_.UpsertNode(MakeNode("n1", 8));
    for (const char* queue : {"q", "other", "default-queue"}) Queue(queue);
  }
  void Queue(absl::string_view name, int64_t limit = model::kUnlimited,
             absl::string_view parent = "") {
    tree_.Upsert(MakeQueue(name, parent, model::kUnlimited, limit));
    engine_->OnQueuesChanged();
  }
  void RemoveQueue(absl::string_view name) {
    tree_.Remove(name);
    engine_->OnQueuesChanged();
  }
  // GPUs that the queue is shown with; -1: it is not shown.
  int64_t Gpus(absl::string_view queue) {
    for (const QueueNumbers& row : engine_->Numbers()) {
      if (tree_.Name(row.queue) == queue) return row.allocated[model::kGpu] / 1000;
    }
    return -1;
  }
};

TEST_F(StartedUnderTest, APodGroupThatIsDeletedFreesNoQuota) {
  state_.UpsertPodGroup(MakeGroup("ns", "g", "q", 1));
  state_.UpsertPod(PodBuilder("ns", "a").Group("g").Gpus(4).On("n1"));
  Cycle();
  state_.RemovePodGroup("ns", "g", "");
  Queue("q", 4);
  state_.UpsertPod(Job("b", "q", 1));
  EXPECT_EQ(CodeOf(Cycle(), "b"), Code::kQueueLimitReached);
  EXPECT_EQ(Gpus("q"), 4);
  EXPECT_EQ(Gpus("default-queue"), 0);
  state_.RemovePod("ns", "a", "");
  EXPECT_EQ(Bound(Cycle(200)).count("b"), 1u);
}

// Its pods would turn each other round for ever.
TEST_F(StartedUnderTest, AGroupThatIsMovedReclaimsNothingFromItself) {
  tree_.Upsert(MakeQueue("q", "", 0, model::kUnlimited));
  tree_.Upsert(MakeQueue("other", "", 8, model::kUnlimited));
  engine_->OnQueuesChanged();
  state_.UpsertPodGroup(MakeGroup("ns", "g", "q", 1));
  for (const char* name : {"a", "b"}) {
    PodBuilder pod("ns", name);
    state_.UpsertPod(pod.Group("g").Gpus(4));
    EXPECT_EQ(Bound(Cycle()).count(name), 1u);
    state_.UpsertPod(pod.On("n1"));
  }
  state_.UpsertPodGroup(MakeGroup("ns", "g", "other", 1));
  state_.UpsertPod(PodBuilder("ns", "c").Group("g").Gpus(4));
  const CycleResult result = Cycle(200);
  EXPECT_TRUE(result.evictions.empty());
  EXPECT_TRUE(result.bindings.empty());
  // Another workload of that queue may.
  state_.UpsertPod(Job("d", "other", 4));
  EXPECT_EQ(Cycle(300).evictions.size(), 1u);
}

// ---- whether it is preemptible

class DeletedGroupTest : public StartedUnderTest {
 protected:
  DeletedGroupTest() { tree_.Upsert(MakeQueue("q", "", 4, model::kUnlimited)); }
  // Runs a pod of the group on 4 of 8 GPUs, and deletes the group.
  void RunWithoutGroup(model::Preemptibility of_group, bool of_pod) {
    engine_->OnQueuesChanged();
    model::PodGroup group = MakeGroup("ns", "g", "q", 1);
    group.preemptibility = of_group;
    state_.UpsertPodGroup(group);
    PodBuilder pod("ns", "a");
    state_.UpsertPod(pod.Group("g").Queue("q").Gpus(4).Preemptible(of_pod));
    EXPECT_EQ(Bound(Cycle()).count("a"), 1u);
    state_.UpsertPod(pod.On("n1"));
    state_.RemovePodGroup("ns", "g", "");
    Cycle(110);
  }
  int64_t ForGood() {
    for (const QueueNumbers& row : engine_->Numbers()) {
      if (tree_.Name(row.queue) == "q") {
        return row.allocated_non_preemptible[model::kGpu] / 1000;
      }
    }
    return -1;
  }
  // Of a pod of the highest preemptible priority that needs all GPUs.
  std::vector<std::string> VictimsOfAll(int64_t at) {
    state_.UpsertPod(Job("all", "q", 8).Priority("high", 99).Preemptible(true));
    std::vector<std::string> victims;
    for (const Eviction& eviction : Cycle(at).evictions) {
      victims.push_back(state_.pod(eviction.pod).name);
    }
    return victims;
  }
};

TEST_F(DeletedGroupTest, FreesNoQuotaAndMakesNoVictims) {
  RunWithoutGroup(model::Preemptibility::kNonPreemptible, /*of_pod=*/true);
  EXPECT_EQ(ForGood(), 4);
  state_.UpsertPod(Job("b", "q", 1).Preemptible(false));
  EXPECT_EQ(CodeOf(Cycle(120), "b"), Code::kNonPreemptibleOverQuota);
  EXPECT_TRUE(VictimsOfAll(130).empty());
  state_.RemovePod("ns", "a", "");
  EXPECT_EQ(ForGood(), 0);
  state_.RemovePod("ns", "all", "");
  EXPECT_EQ(Bound(Cycle(140)).count("b"), 1u);
}

TEST_F(DeletedGroupTest, ProtectsNoVictims) {
  RunWithoutGroup(model::Preemptibility::kPreemptible, /*of_pod=*/false);
  EXPECT_EQ(ForGood(), 0);
  EXPECT_EQ(VictimsOfAll(120), std::vector<std::string>{"a"});
}

TEST_F(StartedUnderTest, WhatWeStartedStaysWhateverItsLabelsSay) {
  state_.UpsertPod(Job("a", "q", 4));
  state_.UpsertPod(PodBuilder("ns", "lone").Gpus(1));
  EXPECT_EQ(Bound(Cycle()).size(), 2u);
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(4).Queue("ghost").On("n1"));
  state_.UpsertPod(PodBuilder("ns", "lone").Gpus(1).Queue("ghost").On("n1"));
  Cycle(200);
  EXPECT_EQ(Gpus("q"), 4);
  EXPECT_EQ(Gpus("default-queue"), 1);
}

TEST_F(StartedUnderTest, ANewProcessChargesTheQueueThatTheBindingWrote) {
  const auto pod = [](absl::string_view name, absl::string_view started_under) {
    return Job(name, "other", 1).On("n1").Annotation(model::kStartedUnderAnnotation, started_under);
  };
  state_.UpsertPod(pod("a", "q"));
  state_.UpsertPod(pod("b", "never-seen"));
  Cycle();
  EXPECT_EQ(Gpus("q"), 1);
  EXPECT_EQ(Gpus("other"), 1) << "no such queue: what its objects name";
  state_.UpsertPod(pod("a", "other"));
  Cycle(200);
  EXPECT_EQ(Gpus("q"), 1);
}

// The Queue was deleted before this process began, so the object was never seen.
TEST_F(StartedUnderTest, ANewProcessChargesAndShowsAQueueThatIsGone) {
  Queue("dept", 4);
  Queue("sister", model::kUnlimited, "dept");
  const auto a = [] {
    return Job("a", "team", 4).Annotation(model::kStartedUnderAnnotation, "dept/team");
  };
  state_.UpsertPod(a().On("n1"));
  state_.UpsertPod(Job("b", "sister", 1));
  EXPECT_EQ(CodeOf(Cycle(), "b"), Code::kQueueLimitReached) << "what dept holds is still held";
  EXPECT_EQ(Gpus("team"), 4);
  EXPECT_EQ(Gpus("dept"), 4);
  EXPECT_EQ(engine_->CheckConsistency(), "");
  state_.UpsertPod(Job("c", "team", 1));
  EXPECT_EQ(CodeOf(Cycle(150), "c"), Code::kQueueNotFound);
  state_.UpsertPod(a().On("n1", model::PodPhase::kSucceeded));
  EXPECT_EQ(Bound(Cycle(200)).count("b"), 1u);
  EXPECT_EQ(Gpus("team"), -1);
  Queue("team", model::kUnlimited, "other");
  EXPECT_EQ(Bound(Cycle(300)).count("c"), 1u);
  EXPECT_EQ(Gpus("other"), 1);
  EXPECT_EQ(engine_->CheckConsistency(), "");
}

TEST_F(StartedUnderTest, NamesThatComeToWhatRunsElsewhereAreNotRemembered) {
  state_.UpsertPod(Job("a", "q", 4).On("n1"));
  Cycle();
  const size_t queues = tree_.size();
  for (int i = 0; i < 3; ++i) {
    state_.UpsertPod(Job("a", absl::StrCat("x", i), 4).On("n1"));
    Cycle(200 + i);
  }
  EXPECT_EQ(tree_.size(), queues);
  EXPECT_EQ(Gpus("q"), 4);
}

// Tenants write labels: each name would be kept as long as the process lives.
TEST_F(StartedUnderTest, NamesOfQueuesThatNeverWereAreBounded) {
  const size_t queues = tree_.size();
  for (size_t i = 0; i < queues::QueueTree::kMostRemembered + 10; ++i) {
    state_.UpsertPod(PodBuilder("ns", absl::StrCat("p", i)).Queue(absl::StrCat("x", i)).On("n1"));
  }
  Cycle();
  EXPECT_EQ(tree_.size(), queues + queues::QueueTree::kMostRemembered);
  EXPECT_EQ(engine_->CheckConsistency(), "");
}

TEST_F(StartedUnderTest, ADeletedQueueIsChargedAndShownUntilItsPodsEnd) {
  Queue("dept", 4);
  Queue("team", model::kUnlimited, "dept");
  Queue("sister", model::kUnlimited, "dept");
  state_.UpsertPod(Job("a", "team", 4).On("n1"));
  Cycle();
  RemoveQueue("team");
  state_.UpsertPod(Job("b", "sister", 1));
  EXPECT_EQ(CodeOf(Cycle(), "b"), Code::kQueueLimitReached) << "what dept holds is still held";
  EXPECT_EQ(Gpus("team"), 4);
  EXPECT_EQ(Gpus("dept"), 4);
  state_.UpsertPod(Job("a", "team", 4).On("n1", model::PodPhase::kSucceeded));
  EXPECT_EQ(Bound(Cycle(200)).count("b"), 1u);
  EXPECT_EQ(Gpus("team"), -1);
}

TEST_F(StartedUnderTest, ADeletedQueueInTheMiddleFreesNothingAboveIt) {
  for (const bool leaf_too : {false, true}) {
    SCOPED_TRACE(leaf_too ? "and its leaf" : "alone");
    Queue("org", 4);
    Queue("dept", model::kUnlimited, "org");
    Queue("team", model::kUnlimited, "dept");
    Queue("sister", model::kUnlimited, "org");
    state_.UpsertPod(Job("a", "team", 4).On("n1"));
    Cycle();
    RemoveQueue("dept");
    if (leaf_too) RemoveQueue("team");
    state_.UpsertPod(Job("b", "sister", 1));
    EXPECT_EQ(CodeOf(Cycle(), "b"), Code::kQueueLimitReached) << "what org holds is still held";
    EXPECT_EQ(Gpus("org"), 4);
    state_.RemovePod("ns", "a", "");
    state_.RemovePod("ns", "b", "");
    Cycle();
    EXPECT_EQ(Gpus("org"), 0);
  }
}

TEST_F(StartedUnderTest, ARootLeafThatIsMadeAgainHasItsPods) {
  RemoveQueue("q");
  state_.UpsertPod(Job("waits", "q", 1));
  state_.UpsertPod(Job("runs", "q", 4).On("n1"));
  EXPECT_EQ(CodeOf(Cycle(), "waits"), Code::kQueueNotFound);
  model::Queue again = MakeQueue("q", "", model::kUnlimited, 4);
  again.meta.uid = "uid-q2";
  tree_.Upsert(again);
  engine_->OnQueuesChanged();
  EXPECT_EQ(CodeOf(Cycle(), "waits"), Code::kQueueLimitReached);
  EXPECT_EQ(Gpus("q"), 4);
}

TEST_F(StartedUnderTest, AQueueOfAnyAmountsIsEmptyWhenItsPodsHaveGone) {
  state_.UpsertPod(Job("a", "q", 8).On("n1"));
  Cycle();
  for (int i = 0; i < 3; ++i) {
    model::Pod huge = Job(absl::StrCat("x", i), "q", 1).On("n1", model::PodPhase::kPending);
    Set(huge.spec.requests, model::kGpuName, INT64_MAX);
    state_.UpsertPod(huge);
    Cycle();
  }
  for (int i = 0; i < 3; ++i) state_.RemovePod("ns", absl::StrCat("x", i), "");
  state_.UpsertPod(Job("b", "q", 8));
  EXPECT_TRUE(Bound(Cycle(200)).empty());
  EXPECT_EQ(Gpus("q"), 8);
}

// ---- an idle node with a soft taint, and one without that is being released

TEST_F(StartedUnderTest, OrderAndScanChooseAlike) {
  for (const bool scan : {false, true}) {
    SCOPED_TRACE(scan ? "scan" : "order");
    state::ClusterState state(testing::OurPods());
    queues::QueueTree tree(state.resource_names());
    const auto engine = testing::MakeEngine({}, state, tree);
    tree.Upsert(MakeQueue("q", "", model::kUnlimited, model::kUnlimited));
    model::Node a = MakeNode("a", 1);
    a.taints.push_back({"soft", "", model::TaintEffect::kPreferNoSchedule});
    state.UpsertNode(a);
    state.UpsertNode(MakeNode("b", 1));
    state.UpsertPod(Job("leaving", "q", 1).On("b").Deleting());
    model::Pod pod = Job("p", "q", 1);
    if (scan) {
      model::PodAffinityTerm term;
      term.weight = 1;
      term.topology_key = "zone";
      pod.spec.pod_affinity.push_back(term);
    }
    state.UpsertPod(pod);
    const CycleResult result = engine->RunCycle(model::testing::At(100));
    ASSERT_TRUE(result.bindings.empty());
    ASSERT_EQ(result.waiting.size(), 1u);
    EXPECT_EQ(state.node(result.waiting[0].pods[0].node).name(), "b");
  }
}

TEST(ProfileTest, WithoutGpuSharingSharesOfGpusWait) {
  framework::Registry registry;
  ASSERT_TRUE(plugins::RegisterAll(registry).ok());
  framework::Profile profile = framework::DefaultProfile();
  std::erase_if(profile.plugins, [](const auto& plugin) { return plugin.name == "GpuSharing"; });
  state::ClusterState state(testing::OurPods());
  queues::QueueTree tree(state.resource_names());
  Engine engine({}, &state, &tree, *framework::Framework::Make(profile, registry));
  tree.Upsert(MakeQueue("q", "", model::kUnlimited, model::kUnlimited));
  state.UpsertNode(MakeNode("n1", 1));
  state.UpsertPod(Job("w", "q", 1).On("n1"));
  state.UpsertPod(PodBuilder("ns", "a").Queue("q").GpuFraction(500));
  const CycleResult result = engine.RunCycle(model::testing::At(100));
  EXPECT_TRUE(result.bindings.empty());
  const Waiting* waiting = testing::FindWaiting(state, result, "a");
  ASSERT_NE(waiting, nullptr);
  EXPECT_EQ(waiting->verdict.code, Code::kInvalidRequest) << "no node helps";
  EXPECT_THAT(waiting->verdict.subject, ::testing::HasSubstr("need plugin GpuSharing"));
}

}  // namespace
}  // namespace fairlead::engine
