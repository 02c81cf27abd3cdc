#include "scheduler/state/cluster_state.h"

#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using model::testing::At;
using model::testing::kGiB;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::PodBuilder;

class AllocationTracker final : public StateSubscriber {
 public:
  using Place = std::pair<PodStatus, NodeId>;
  explicit AllocationTracker(const ClusterState& state) : state_(state) {}
  void OnChange(const StateChange& change) override {
    using Kind = StateChange::Kind;
    const auto queue = [&] { return state_.workload(change.workload).queue; };
    if (change.kind == Kind::kPodCharged) ++allocated[queue()];
    if (change.kind == Kind::kPodReleased) --allocated[queue()];
    if (change.kind == Kind::kWorkloadGone) ++removals;
    if (change.kind == Kind::kPodMoved) {
      const auto [it, added] = places.try_emplace(change.pod, PodStatus::kPending, kNoId);
      EXPECT_EQ(it->second, Place(change.from_status, change.from_node));
      it->second = {change.to_status, change.to_node};
      if (change.to_status == PodStatus::kPending) places.erase(it);
    }
  }
  std::map<std::string, int> allocated;
  std::map<PodId, Place> places;  // of pods that are anything but pending
  int removals = 0;

 private:
  const ClusterState& state_;
};

class ClusterStateTest : public ::testing::Test {
 protected:
  ClusterStateTest() : state_(Options()), books_(state_) { state_.Subscribe(&books_); }
  static StateOptions Options() {
    StateOptions options;
    options.scheduler_names = {"fairlead", "kai-scheduler"};
    return options;
  }
  void TearDown() override {
    EXPECT_EQ(state_.CheckConsistency(), "");
    // The log alone tells where every pod is.
    std::map<PodId, AllocationTracker::Place> places;
    state_.ForEachPod([&](const PodRecord& pod) {
      if (pod.status != PodStatus::kPending) places[pod.id] = {pod.status, pod.node};
    });
    EXPECT_EQ(books_.places, places);
  }
  const PodRecord& Pod(absl::string_view name) { return state_.pod(state_.FindPod("ns", name)); }
  const NodeInfo& Node(absl::string_view name) { return state_.node(state_.FindNode(name)); }
  const Workload& WorkloadOf(absl::string_view pod) { return state_.workload(Pod(pod).workload); }

  ClusterState state_;
  AllocationTracker books_;
};

TEST_F(ClusterStateTest, PodOnANodeThatIsNotSeenYetIsParkedThere) {
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(2).On("n1"));
  EXPECT_FALSE(Node("n1").exists);
  EXPECT_TRUE(state_.total_for_queues().IsZero());
  state_.UpsertNode(MakeNode("n1", 8));
  EXPECT_TRUE(Node("n1").exists);
  EXPECT_EQ(Node("n1").Available()[model::kGpu], 6000);
  EXPECT_EQ(state_.total_for_queues()[model::kGpu], 8000);
}

TEST_F(ClusterStateTest, NodeThatVanishesKeepsItsPodsUntilTheyGo) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(2).On("n1"));
  state_.RemoveNode("n1", "uid-n1");
  EXPECT_FALSE(Node("n1").exists);
  EXPECT_EQ(Pod("a").status, PodStatus::kRunning);
  EXPECT_TRUE(state_.total_for_queues().IsZero());
  state_.RemovePod("ns", "a", "");
  EXPECT_EQ(state_.FindNode("n1"), kNoId);
}

TEST_F(ClusterStateTest, OtherSchedulersPodsTakeRoomAndLowerTheTotal) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPod(PodBuilder("ns", "x").Gpus(3).Scheduler("default-scheduler").On("n1"));
  EXPECT_EQ(Node("n1").Available()[model::kGpu], 5000);
  EXPECT_EQ(state_.total_for_queues()[model::kGpu], 5000);
  EXPECT_EQ(Pod("x").workload, kNoId);
  // Not bound: not our business.
  state_.UpsertPod(PodBuilder("ns", "y").Gpus(3).Scheduler("default-scheduler"));
  EXPECT_EQ(state_.FindPod("ns", "y"), kNoId);
}

TEST_F(ClusterStateTest, CordonedAndNotReadyNodesGiveNoShare) {
  model::Node node = MakeNode("n1", 8);
  state_.UpsertNode(node);
  node.unschedulable = true;
  EXPECT_TRUE(state_.UpsertNode(node).capacity);
  EXPECT_TRUE(state_.total_for_queues().IsZero());
  node.unschedulable = false;
  node.ready = false;
  state_.UpsertNode(node);
  EXPECT_TRUE(state_.total_for_queues().IsZero());
  node.ready = true;
  state_.UpsertNode(node);
  EXPECT_EQ(state_.total_for_queues()[model::kGpu], 8000);
}

TEST_F(ClusterStateTest, EchoOfAnUnchangedObjectChangesNothing) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(1));
  const uint64_t version = state_.version();
  EXPECT_FALSE(state_.UpsertNode(MakeNode("n1", 8)).Any());
  EXPECT_FALSE(state_.UpsertPod(PodBuilder("ns", "a").Gpus(1)).Any());
  EXPECT_EQ(state_.version(), version);
}

TEST_F(ClusterStateTest, AssumedBindingSurvivesStaleUpdatesAndItsEchoIsNoChange) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(1).Queue("q"));
  {
    Transaction txn(state_);
    txn.Allocate(state_.FindPod("ns", "a"), state_.FindNode("n1"));
    txn.Commit();
  }
  EXPECT_EQ(books_.allocated["q"], 1);
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(1).Queue("q"));  // from before the binding
  EXPECT_EQ(Pod("a").status, PodStatus::kBinding);
  const Change echo = state_.UpsertPod(
      PodBuilder("ns", "a").Gpus(1).Queue("q").On("n1", model::PodPhase::kPending));
  EXPECT_FALSE(echo.Any());
  EXPECT_EQ(Pod("a").status, PodStatus::kBound);
  EXPECT_FALSE(state_.UpsertPod(PodBuilder("ns", "a").Gpus(1).Queue("q").On("n1")).Any());
  EXPECT_EQ(books_.allocated["q"], 1);
}

TEST_F(ClusterStateTest, FailedBindingGivesTheRoomBack) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(1).Queue("q"));
  Transaction txn(state_);
  txn.Allocate(state_.FindPod("ns", "a"), state_.FindNode("n1"));
  txn.Commit();
  EXPECT_TRUE(state_.ForgetBinding(state_.FindPod("ns", "a")).capacity);
  EXPECT_EQ(Node("n1").Available()[model::kGpu], 8000);
  EXPECT_EQ(books_.allocated["q"], 0);
}

TEST_F(ClusterStateTest, SameNameWithANewUidIsAnotherPod) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(4).On("n1"));
  model::Pod again = PodBuilder("ns", "a").Gpus(1);
  again.meta.uid = "second";
  state_.UpsertPod(again);
  EXPECT_EQ(Node("n1").Available()[model::kGpu], 8000);
  EXPECT_EQ(Pod("a").status, PodStatus::kPending);
  // A late delete of the first does not touch the second.
  EXPECT_FALSE(state_.RemovePod("ns", "a", "uid-ns-a").Any());
  EXPECT_NE(state_.FindPod("ns", "a"), kNoId);
}

TEST_F(ClusterStateTest, TerminatingPodsHoldTheirRoomButNotTheirQueue) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(3).Queue("q").On("n1"));
  EXPECT_EQ(books_.allocated["q"], 1);
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(3).Queue("q").On("n1").Deleting());
  EXPECT_EQ(Pod("a").status, PodStatus::kReleasing);
  EXPECT_EQ(books_.allocated["q"], 0);
  EXPECT_EQ(Node("n1").Available()[model::kGpu], 5000);
  EXPECT_EQ(Node("n1").Future()[model::kGpu], 8000);
}

TEST_F(ClusterStateTest, FinishedPodsHoldNothing) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(3).Queue("q").On("n1"));
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(3).Queue("q").On("n1", model::PodPhase::kSucceeded));
  EXPECT_EQ(Node("n1").Available()[model::kGpu], 8000);
  EXPECT_EQ(books_.allocated["q"], 0);
}

TEST_F(ClusterStateTest, ResizedPodMovesClassAndCharges) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(3).On("n1"));
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(5).On("n1"));
  EXPECT_EQ(Node("n1").Available()[model::kGpu], 3000);
}

TEST_F(ClusterStateTest, ChangeOfQueueMovesTheCharge) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPodGroup(MakeGroup("ns", "g", "q1", 1));
  state_.UpsertPod(PodBuilder("ns", "a").Group("g").Gpus(1).On("n1"));
  EXPECT_EQ(books_.allocated["q1"], 1);
  state_.UpsertPodGroup(MakeGroup("ns", "g", "q2", 1));
  EXPECT_EQ(books_.allocated["q1"], 0);
  EXPECT_EQ(books_.allocated["q2"], 1);
}

TEST_F(ClusterStateTest, PodMovesBetweenGroups) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPodGroup(MakeGroup("ns", "g1", "q1", 1));
  state_.UpsertPodGroup(MakeGroup("ns", "g2", "q2", 1));
  state_.UpsertPod(PodBuilder("ns", "a").Group("g1").Gpus(1).On("n1"));
  state_.UpsertPod(PodBuilder("ns", "a").Group("g2").Gpus(1).On("n1"));
  EXPECT_EQ(books_.allocated["q1"], 0);
  EXPECT_EQ(books_.allocated["q2"], 1);
  EXPECT_EQ(WorkloadOf("a").name, "g2");
}

TEST_F(ClusterStateTest, GroupMayComeAfterItsPodsAndGoBefore) {
  state_.UpsertPod(PodBuilder("ns", "a").Group("g"));
  EXPECT_EQ(WorkloadOf("a").group, nullptr);
  state_.UpsertPodGroup(MakeGroup("ns", "g", "q", 3));
  EXPECT_EQ(WorkloadOf("a").details->min_member, 3);
  state_.RemovePodGroup("ns", "g", "");
  EXPECT_EQ(WorkloadOf("a").group, nullptr);
  EXPECT_EQ(WorkloadOf("a").details->min_member, 1);
  state_.RemovePod("ns", "a", "");
  EXPECT_EQ(state_.workload_count(), 0u);
  EXPECT_EQ(books_.removals, 1);
}

// With a PodGroup for every pod, what groups have in common must not be kept once for each.
TEST_F(ClusterStateTest, GroupsThatSayTheSameShareIt) {
  model::PodGroup first = MakeGroup("ns", "g1", "q", 1);
  first.meta.annotations.Set("kai.scheduler/top-owner-metadata", "job-1");
  first.meta.labels.Set("app", "one");
  state_.UpsertPodGroup(first);
  state_.UpsertPodGroup(MakeGroup("other", "g2", "q", 1));
  state_.UpsertPodGroup(MakeGroup("ns", "g3", "q", 2));
  model::PodGroup elsewhere = MakeGroup("ns", "g4", "q", 1);
  elsewhere.meta.labels.Set(model::kNodePoolLabel, "a100");
  state_.UpsertPodGroup(elsewhere);
  const auto spec = [&](absl::string_view ns, absl::string_view name) {
    return state_.workload(state_.FindGroup(ns, name)).group;
  };
  EXPECT_TRUE(spec("ns", "g1").IsSameAs(spec("other", "g2")));
  EXPECT_FALSE(spec("ns", "g1").IsSameAs(spec("ns", "g3")));
  EXPECT_FALSE(spec("ns", "g1").IsSameAs(spec("ns", "g4")));
  EXPECT_EQ(spec("ns", "g1")->node_pool, model::kDefaultNodePool);
  EXPECT_EQ(spec("ns", "g4")->node_pool, "a100");
  // One of them says something else from now on.
  state_.UpsertPodGroup(MakeGroup("other", "g2", "q2", 1));
  EXPECT_EQ(spec("ns", "g1")->queue, "q");
  EXPECT_EQ(spec("other", "g2")->queue, "q2");
  state_.UpsertPodGroup(MakeGroup("other", "g2", "q", 1));
  EXPECT_TRUE(spec("ns", "g1").IsSameAs(spec("other", "g2")));
}

TEST_F(ClusterStateTest, AGroupIsFoundByItsNamesAsLongAsItExists) {
  state_.UpsertPodGroup(MakeGroup("a", "g", "q", 1));
  state_.UpsertPodGroup(MakeGroup("b", "g", "q", 1));
  const WorkloadId first = state_.FindGroup("a", "g");
  ASSERT_NE(first, kNoId);
  EXPECT_NE(first, state_.FindGroup("b", "g"));
  EXPECT_EQ(state_.FindGroup("a", "other"), kNoId);
  EXPECT_EQ(state_.FindGroup("", "a/g"), kNoId);
  state_.RemovePodGroup("a", "g", "");
  EXPECT_EQ(state_.FindGroup("a", "g"), kNoId);
  // The row is another group's now.
  state_.UpsertPodGroup(MakeGroup("c", "h", "q", 1));
  EXPECT_EQ(state_.FindGroup("c", "h"), first);
  EXPECT_EQ(state_.FindGroup("a", "g"), kNoId);
  EXPECT_NE(state_.FindGroup("b", "g"), kNoId);
}

TEST_F(ClusterStateTest, WhatAGroupHasOfItsOwnFollowsTheObject) {
  model::PodGroup group = MakeGroup("ns", "g", "q", 1);
  group.meta.generation = 1;
  state_.UpsertPodGroup(group);
  state_.UpsertPod(PodBuilder("ns", "a").Group("g"));
  const auto version = [&] { return WorkloadOf("a").version; };
  uint64_t before = version();
  EXPECT_FALSE(state_.UpsertPodGroup(group).Any());
  EXPECT_EQ(version(), before);
  group.meta.generation = 2;
  EXPECT_TRUE(state_.UpsertPodGroup(group).workloads);
  EXPECT_GT(version(), before);
  EXPECT_EQ(WorkloadOf("a").generation, 2);
  // A start that is no time counts as none.
  before = version();
  group.meta.annotations.Set(model::kLastStartAnnotation, "soon");
  state_.UpsertPodGroup(group);
  EXPECT_EQ(version(), before);
  group.meta.annotations.Set(model::kLastStartAnnotation, "2026-11-01T00:00:00Z");
  state_.UpsertPodGroup(group);
  EXPECT_GT(version(), before);
  EXPECT_EQ(WorkloadOf("a").group_start, absl::FromUnixSeconds(1'793'491'200));
  // What schedulers wrote calls for no cycle, and is gone with the object.
  group.schedulability_hash = "h";
  EXPECT_FALSE(state_.UpsertPodGroup(group).Any());
  EXPECT_EQ(WorkloadOf("a").group_status->schedulability_hash, "h");
  state_.RemovePodGroup("ns", "g", "");
  EXPECT_EQ(WorkloadOf("a").group_status->schedulability_hash, "");
  EXPECT_EQ(WorkloadOf("a").generation, 0);
  EXPECT_EQ(WorkloadOf("a").group_start, absl::InfinitePast());
}

// A million groups of one pod each have to fit into the memory that scale_100k is given: what few
// of them have belongs behind a pointer.
TEST_F(ClusterStateTest, RowsStaySmall) {
  EXPECT_LE(sizeof(Workload), 328u);
  EXPECT_LE(sizeof(PodRecord), 224u);
}

TEST_F(ClusterStateTest, PriorityAndPreemptibilityFollowKaisRules) {
  // No classes in the cluster: 50, preemptible.
  state_.UpsertPod(PodBuilder("ns", "a"));
  EXPECT_EQ(WorkloadOf("a").priority, 50);
  EXPECT_TRUE(WorkloadOf("a").preemptible);
  model::PriorityClass build;
  build.meta.name = "build";
  build.value = 100;
  state_.UpsertPriorityClass(build);
  state_.UpsertPod(PodBuilder("ns", "b").Label(model::kPriorityClassLabel, "build"));
  EXPECT_EQ(WorkloadOf("b").priority, 100);
  EXPECT_FALSE(WorkloadOf("b").preemptible);
  // A label that names no class is ignored; explicit preemptibility wins over the number.
  state_.UpsertPod(
      PodBuilder("ns", "c").Label(model::kPriorityClassLabel, "nope").Preemptible(false));
  EXPECT_EQ(WorkloadOf("c").priority, 50);
  EXPECT_FALSE(WorkloadOf("c").preemptible);
  // A changed class reaches what uses it.
  build.value = 90;
  EXPECT_TRUE(state_.UpsertPriorityClass(build).policy);
  EXPECT_TRUE(WorkloadOf("b").preemptible);
}

// As the API server's admission chooses, in whatever order they come.
TEST_F(ClusterStateTest, OfSeveralDefaultPriorityClassesTheLowestCounts) {
  state_.UpsertPod(PodBuilder("ns", "a"));
  const auto upsert = [&](absl::string_view name, int32_t value, bool is_default = true) {
    model::PriorityClass priority_class;
    priority_class.meta.name = std::string(name);
    priority_class.value = value;
    priority_class.global_default = is_default;
    state_.UpsertPriorityClass(priority_class);
  };
  upsert("low", 60);
  upsert("high", 70);
  EXPECT_EQ(WorkloadOf("a").priority, 60);
  state_.RemovePriorityClass("high");
  EXPECT_EQ(WorkloadOf("a").priority, 60);
  upsert("high", 70);
  state_.RemovePriorityClass("low");
  EXPECT_EQ(WorkloadOf("a").priority, 70);
  upsert("high", 70, /*is_default=*/false);
  EXPECT_EQ(WorkloadOf("a").priority, 50);
}

TEST_F(ClusterStateTest, TaskOrderIsLabelThenAgeThenUid) {
  state_.UpsertPodGroup(MakeGroup("ns", "g", "q", 1));
  state_.UpsertPod(PodBuilder("ns", "p2").Group("g"));
  state_.UpsertPod(PodBuilder("ns", "p10").Group("g"));
  state_.UpsertPod(PodBuilder("ns", "old").Group("g").Created(-5));
  state_.UpsertPod(PodBuilder("ns", "first").Group("g").Label(model::kTaskPriorityLabel, "3"));
  std::vector<std::string> names;
  for (PodId pod : WorkloadOf("p2").pods) names.push_back(state_.pod(pod).name);
  EXPECT_EQ(names, (std::vector<std::string>{"first", "old", "p10", "p2"}));
}

TEST_F(ClusterStateTest, OrderedNodeIsReplacedByTheRealOneAndUsableOnlyWhenSaid) {
  model::Node expected = MakeNode("fl-1", 8);
  EXPECT_TRUE(state_.UpsertOrderedNode(expected, "fl-1").capacity);
  EXPECT_FALSE(state_.UpsertOrderedNode(expected, "fl-1").Any());
  EXPECT_TRUE(state_.total_for_queues().IsZero());
  // It registers without its devices and not ready: the promise stands.
  model::Node real = MakeNode("fl-1", 0);
  real.ready = false;
  real.meta.labels.Set(model::kNodeRequestLabel, "fl-1");
  state_.UpsertNode(real);
  EXPECT_EQ(Node("fl-1").kind, NodeKind::kReal);
  EXPECT_FALSE(Node("fl-1").usable);
  EXPECT_EQ(Node("fl-1").allocatable[model::kGpu], 8000);
  EXPECT_TRUE(state_.total_for_queues().IsZero());
  real = MakeNode("fl-1", 8);
  real.meta.labels.Set(model::kNodeRequestLabel, "fl-1");
  state_.UpsertNode(real);
  state_.SetNodeUsable(state_.FindNode("fl-1"), true);
  EXPECT_EQ(state_.total_for_queues()[model::kGpu], 8000);
  // A late repetition of the order does not take it back.
  EXPECT_FALSE(state_.UpsertOrderedNode(expected, "fl-1").Any());
  EXPECT_FALSE(state_.RemoveOrderedNode("fl-1").Any());
}

TEST_F(ClusterStateTest, NodeFromARequestSeenBeforeTheRequestWaitsForIt) {
  model::Node real = MakeNode("fl-1", 0);
  real.meta.labels.Set(model::kNodeRequestLabel, "fl-1");
  state_.UpsertNode(real);
  EXPECT_FALSE(Node("fl-1").usable);
  state_.UpsertOrderedNode(MakeNode("fl-1", 8), "fl-1");
  EXPECT_EQ(Node("fl-1").allocatable[model::kGpu], 8000);
}

TEST_F(ClusterStateTest, RemovedOrderTakesItsPromisesBack) {
  state_.UpsertOrderedNode(MakeNode("fl-1", 8), "fl-1");
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(1).Queue("q"));
  Transaction txn(state_);
  txn.Pipeline(state_.FindPod("ns", "a"), state_.FindNode("fl-1"));
  txn.Commit();
  EXPECT_EQ(books_.allocated["q"], 1);
  state_.RemoveOrderedNode("fl-1");
  EXPECT_EQ(Pod("a").status, PodStatus::kPending);
  EXPECT_EQ(books_.allocated["q"], 0);
  EXPECT_EQ(state_.FindNode("fl-1"), kNoId);
}

TEST_F(ClusterStateTest, EvictionIsAssumedUntilTheApiSaysOtherwise) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(1).Queue("q").On("n1"));
  EXPECT_TRUE(state_.AssumeEvicted(state_.FindPod("ns", "a")).capacity);
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(1).Queue("q").On("n1"));  // not yet terminating
  EXPECT_EQ(Pod("a").status, PodStatus::kReleasing);
  state_.ForgetEviction(state_.FindPod("ns", "a"));
  EXPECT_EQ(Pod("a").status, PodStatus::kRunning);
  EXPECT_EQ(books_.allocated["q"], 1);
}

TEST_F(ClusterStateTest, NameRanksFollowNamesWhateverTheOrderOfArrival) {
  for (const char* name : {"m", "a", "z", "b", "aa", "y", "n"})
    state_.UpsertNode(MakeNode(name, 1));
  for (int i = 0; i < 200; ++i)
    state_.UpsertNode(MakeNode(absl::StrCat("m", std::string(i, '0')), 1));
  uint64_t last = 0;
  for (const auto& [name, id] : state_.nodes_by_name()) {
    EXPECT_GT(state_.node(id).name_rank, last) << name;
    last = state_.node(id).name_rank;
  }
}

TEST_F(ClusterStateTest, EqualSpecsShareAClassAndItsIdIsFreedWithTheLast) {
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(1));
  state_.UpsertPod(PodBuilder("ns", "b").Gpus(1));
  state_.UpsertPod(PodBuilder("ns", "c").Gpus(2));
  EXPECT_EQ(Pod("a").pod_class, Pod("b").pod_class);
  EXPECT_NE(Pod("a").pod_class, Pod("c").pod_class);
  const PodClassId freed = Pod("c").pod_class;
  state_.RemovePod("ns", "c", "");
  state_.UpsertPod(PodBuilder("ns", "d").Gpus(3));
  EXPECT_EQ(Pod("d").pod_class, freed);
}

// A gate of its own stays, whatever else holds it back.
TEST_F(ClusterStateTest, AWaitingPodIsHeldBackAndLetInAgain) {
  state_.UpsertPod(PodBuilder("ns", "waits").Queue("q").Build());
  state_.UpsertPod(PodBuilder("ns", "gated").Queue("q").Gate("own").Build());
  state_.UpsertNode(MakeNode("n", 1));
  state_.UpsertPod(PodBuilder("ns", "runs").Queue("q").On("n").Build());
  const auto hold = [&](absl::string_view pod, const std::string& why, bool held) {
    return state_.HoldBack(state_.FindPod("ns", pod), why, held).Any();
  };
  EXPECT_TRUE(hold("waits", "why", true));
  EXPECT_EQ(Pod("waits").status, PodStatus::kGated);
  EXPECT_EQ(Pod("waits").details->gate, "why");
  EXPECT_FALSE(hold("waits", "why", true)) << "it is";
  EXPECT_FALSE(hold("waits", "another", false)) << "that does not hold it";
  EXPECT_TRUE(hold("waits", "why", false));
  EXPECT_EQ(Pod("waits").status, PodStatus::kPending);
  EXPECT_EQ(Pod("waits").details->gate, "");
  EXPECT_FALSE(hold("gated", "why", true));
  EXPECT_FALSE(hold("gated", "why", false));
  EXPECT_EQ(Pod("gated").details->gate, "own");
  EXPECT_FALSE(hold("runs", "why", true));
  EXPECT_EQ(Pod("runs").status, PodStatus::kRunning);
}

TEST_F(ClusterStateTest, PodOfNoNodeThatIsDeletedIsAsGoodAsGone) {
  state_.UpsertPod(PodBuilder("ns", "a").Deleting());
  EXPECT_EQ(Pod("a").status, PodStatus::kFailed);
}

}  // namespace
}  // namespace fairlead::state
