// Objects as tenants write them: amounts at the ends of what can be said, annotations and labels
// that come when the pod runs, groups and queues that disagree, names without end. Nothing of it
// ends the process, and every account is right again when its author has gone.
#include <algorithm>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/model/testing/device_builders.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using model::Set;
using model::testing::At;
using model::testing::kGiB;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::PodBuilder;
using testing::OurPods;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

class HostileTest : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(state_.CheckConsistency(), ""); }
  const PodRecord& Pod(absl::string_view name) { return state_.pod(state_.FindPod("ns", name)); }
  const NodeInfo& Node(absl::string_view name) { return state_.node(state_.FindNode(name)); }
  const Workload& WorkloadOf(absl::string_view pod) { return state_.workload(Pod(pod).workload); }
  // Every queue but "ghost" exists.
  void Settle(absl::string_view pod) {
    state_.SettleStarts(Pod(pod).workload,
                        [](const std::string& queue) { return queue != "ghost"; });
  }

  ClusterState state_{OurPods()};
};

TEST_F(HostileTest, AShareThatRunsMovesIntoAGroup) {
  state_.UpsertNode(MakeNode("n1", 2));
  state_.UpsertPod(PodBuilder("ns", "a").GpuFraction(500).On("n1"));
  const GpuPick groups = Pod("a").gpu_groups;
  state_.UpsertPod(PodBuilder("ns", "a").GpuFraction(500).On("n1").Group("pg"));
  EXPECT_EQ(WorkloadOf("a").name, "pg");
  EXPECT_EQ(Pod("a").gpu_groups, groups);
  EXPECT_EQ(Node("n1").used[model::kGpu], 1000);
  EXPECT_EQ(WorkloadOf("a").active[0], 1);
}

// A tenant may edit a large object as often as he likes: former versions are not kept.
TEST_F(HostileTest, FormerTextsAreNotKept) {
  state_.UpsertNode(MakeNode("n1", 2));
  const auto edit = [&](int version) {
    const std::string text = absl::StrCat("v", version);
    model::PodGroup group = MakeGroup("ns", "pg", "q", 1);
    group.queue = text;
    state_.UpsertPodGroup(group);
    for (const bool runs : {false, true}) {
      PodBuilder pod("ns", runs ? "runs" : "waits");
      pod.Group("pg").Label("version", text);
      if (runs) pod.On("n1");
      model::Pod built = pod.Build();
      built.meta.annotations.Set(model::kStalenessGraceAnnotation, absl::StrCat(version + 1, "s"));
      state_.UpsertPod(built);
    }
  };
  edit(0);
  const size_t once = state_.shared_values();
  for (int version = 1; version < 50; ++version) edit(version);
  EXPECT_EQ(state_.shared_values(), once);
  state_.RemovePod("ns", "runs", "");
  state_.RemovePod("ns", "waits", "");
  state_.RemovePodGroup("ns", "pg", "");
  EXPECT_EQ(state_.shared_values(), 0u);
}

TEST_F(HostileTest, AForeignPodOfAnyAmountTakesNothingWithIt) {
  state_.UpsertNode(MakeNode("n1", 8, 64, 512));
  state_.UpsertNode(MakeNode("n2", 8, 64, 512));
  model::Pod own = PodBuilder("ns", "own").On("n1");
  Set(own.spec.requests, "memory", 400 * kGiB);
  state_.UpsertPod(own);
  const std::string before = state_.Dump();
  for (int i = 0; i < 3; ++i) {
    model::Pod pod = PodBuilder("ns", absl::StrCat("x", i)).Scheduler("other").On("n1");
    for (const char* name : {"memory", "cpu", model::kGpuName, model::kAmdGpuName}) {
      Set(pod.spec.requests, name, kMost);
    }
    Set(pod.spec.requests, "nvidia.com/mig-9223372036854775807g.20gb", kMost);
    state_.UpsertPod(pod);
    ASSERT_EQ(state_.CheckConsistency(), "");
    EXPECT_EQ(Node("n1").used[model::kMemory], kMost);
    EXPECT_LT(Node("n1").Idle()[model::kMemory], 0);
    // What it asks for is nothing that another node lacks.
    EXPECT_EQ(state_.total_for_queues()[model::kMemory], 512 * kGiB);
    EXPECT_EQ(state_.total_for_queues()[model::kGpu], 8000);
  }
  for (int i = 0; i < 3; ++i) {
    state_.UpsertPod(PodBuilder("ns", absl::StrCat("x", i)).On("n1", model::PodPhase::kFailed));
    ASSERT_EQ(state_.CheckConsistency(), "");
  }
  EXPECT_EQ(Node("n1").used[model::kMemory], 400 * kGiB);
  EXPECT_EQ(state_.total_for_queues()[model::kMemory], 1024 * kGiB);
  for (int i = 0; i < 3; ++i) state_.RemovePod("ns", absl::StrCat("x", i), "");
  EXPECT_EQ(state_.Dump(), before);
}

TEST_F(HostileTest, AmountsBelowZeroCountAsNone) {
  model::Node node = MakeNode("n1", 8);
  Set(node.allocatable, "memory", -5);
  Set(node.allocatable, model::kAmdGpuName, -5000);
  state_.UpsertNode(node);
  EXPECT_EQ(state_.total_for_queues()[model::kMemory], 0);
  model::Pod pod = PodBuilder("ns", "a").On("n1");
  for (const char* name : {"memory", "cpu", model::kGpuName, model::kAmdGpuName}) {
    Set(pod.spec.requests, name, std::numeric_limits<int64_t>::min());
  }
  state_.UpsertPod(pod);
  EXPECT_EQ(Node("n1").used[model::kGpu], 0);
  EXPECT_EQ(state_.ChargeOf(Pod("a"))[model::kGpu], 0);
}

TEST_F(HostileTest, SharesOfAnySizeKeepToTheirBounds) {
  model::Node node = MakeNode("n1", 8);
  node.meta.labels.Set(model::kGpuMemoryLabel, "9223372036854775807");
  state_.UpsertNode(node);
  for (int i = 0; i < 3; ++i) {
    state_.UpsertPod(PodBuilder("ns", absl::StrCat("m", i)).GpuMemory(kMost, kMost).On("n1"));
    state_.UpsertPod(PodBuilder("ns", absl::StrCat("f", i)).GpuFraction(kMost, kMost).On("n1"));
    state_.UpsertPod(PodBuilder("ns", absl::StrCat("g", i))
                         .GpuFraction(-1, -1)
                         .On("n1")
                         .Label(model::kGpuGroupLabel, "shared"));
  }
  EXPECT_EQ(state_.CheckConsistency(), "");
  EXPECT_EQ(static_cast<int64_t>(Pod("m0").gpu_groups.size()), kMaxSharedDevices);
}

TEST_F(HostileTest, ResourceNamesWithoutEndAreFoldedAndForgotten) {
  model::Node node = MakeNode("n1", 1);
  Set(node.allocatable, "example.com/first", 5);
  state_.UpsertNode(node);
  for (size_t i = 0; i < 3 * model::ResourceNames::kMaxRequested; ++i) {
    model::Pod pod = PodBuilder("ns", "p");
    pod.meta.uid = absl::StrCat("u", i);
    Set(pod.spec.requests, absl::StrCat("example.com/r", i), 1);
    state_.UpsertPod(pod);
  }
  EXPECT_LE(state_.resource_names().size(), model::ResourceNames::kMaxRequested + 2);
  // A name that is brought up now is told apart again.
  model::Pod pod = PodBuilder("ns", "p");
  pod.meta.uid = "last";
  pod.spec.requests = {{"example.com/last", 5}};
  state_.UpsertPod(pod);
  const model::Resources& requests = state_.class_of(state_.FindPod("ns", "p")).requests;
  EXPECT_EQ(requests[*state_.resource_names().Find("example.com/last")], 5);
  EXPECT_EQ(requests[model::kCpu], 0);
  EXPECT_EQ(Node("n1").allocatable[*state_.resource_names().Find("example.com/first")], 5);
}

TEST_F(HostileTest, NamesBeyondTheBoundWait) {
  state_.UpsertNode(MakeNode("n1", 1));
  for (size_t i = 0; i < model::ResourceNames::kMaxRequested + 5; ++i) {
    model::Pod pod = PodBuilder("ns", absl::StrCat("p", i));
    Set(pod.spec.requests, absl::StrCat("example.com/r", i), 1);
    state_.UpsertPod(pod);
  }
  const model::ResourceIndex folded = state_.resource_names().folded().value();
  const auto last = absl::StrCat("p", model::ResourceNames::kMaxRequested + 4);
  EXPECT_EQ(state_.class_of(state_.FindPod("ns", last)).requests[folded], 1);
  // A node that offers such a name is no place for another one.
  model::Node node = MakeNode("n1", 1);
  for (size_t i = 0; i < model::ResourceNames::kMax; ++i) {
    Set(node.allocatable, absl::StrCat("example.com/n", i), 7);
  }
  state_.UpsertNode(node);
  EXPECT_EQ(Node("n1").allocatable[folded], 0);
  EXPECT_LE(state_.resource_names().size(), model::ResourceNames::kMax + 1);
}

model::ResourceClaim IndexClaim(int i) {
  model::ResourceClaim claim;
  claim.meta.ns = "ns";
  claim.meta.name = absl::StrCat("c", i);
  claim.meta.uid = absl::StrCat("uid-c", i);
  model::DeviceRequest request;
  request.name = "r";
  request.device_class = "gpu.example.com";
  request.selectors = {absl::StrCat("device.attributes['gpu.example.com'].index == ", i)};
  claim.requests = {request};
  return claim;
}

class DeviceSelectorsTest : public HostileTest {
 protected:
  DeviceSelectorsTest() {
    model::DeviceClass device_class;
    device_class.meta.name = "gpu.example.com";
    state_.UpsertDeviceObject(device_class);
  }
  void Add(int i) {
    state_.UpsertDeviceObject(IndexClaim(i));
    model::Pod pod = PodBuilder("ns", absl::StrCat("p", i));
    pod.spec.resource_claims = {absl::StrCat("c", i)};
    state_.UpsertPod(pod);
  }
  void Remove(int i) {
    state_.RemovePod("ns", absl::StrCat("p", i), "");
    state_.RemoveResourceClaim("ns", absl::StrCat("c", i));
  }
  std::string ProblemOf(int i) {
    return state_.class_of(state_.FindPod("ns", absl::StrCat("p", i))).spec->claim_problem;
  }
};

TEST_F(DeviceSelectorsTest, AreForgottenWithTheirClaims) {
  for (int i = 0; i < 600; ++i) {
    Add(i);
    ASSERT_EQ(ProblemOf(i), "") << i;
    Remove(i);
  }
}

TEST_F(DeviceSelectorsTest, WhatIsRefusedForTooManyIsLookedAtAgain) {
  const int most = static_cast<int>(kMaxDemands);
  for (int i = 0; i <= most; ++i) Add(i);
  EXPECT_NE(ProblemOf(most), "");
  EXPECT_EQ(ProblemOf(most - 1), "");
  Remove(7);
  EXPECT_EQ(ProblemOf(most), "");
  EXPECT_EQ(ProblemOf(8), "");
}

// ---- one queue, whatever the order of events

TEST_F(HostileTest, TheFirstPodInTaskOrderNamesTheQueue) {
  state_.UpsertPodGroup(MakeGroup("ns", "g", "", 3));
  state_.UpsertPod(PodBuilder("ns", "a").Queue("q1").Group("g").Created(1));
  state_.UpsertPod(PodBuilder("ns", "b").Queue("q2").Group("g").Created(2));
  EXPECT_EQ(WorkloadOf("a").queue, "q1");
  state_.UpsertPod(PodBuilder("ns", "b").Queue("q2").Group("g").Created(2).Label(
      model::kTaskPriorityLabel, "5"));
  EXPECT_EQ(WorkloadOf("a").queue, "q2");
}

TEST(HostileProperty, AGroupIsTheSameInWhateverOrderItsObjectsCome) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t bound) { return static_cast<int>(random() % bound); };
    std::vector<model::Pod> pods;
    for (int i = 0; i < 4; ++i) {
      PodBuilder pod("ns", absl::StrCat("p", i));
      pod.Group("g").Created(below(3));
      if (below(3) > 0) pod.Queue(absl::StrCat("q", below(3)));
      if (below(2) == 0) pod.Label(model::kTaskPriorityLabel, absl::StrCat(below(3)));
      if (below(3) == 0) pod.Priority("pc", below(200));
      if (below(2) == 0) pod.Preemptible(below(2) == 0);
      if (below(2) == 0) pod.On("n1");
      pods.push_back(pod);
    }
    const bool group = below(2) == 0;
    const bool group_goes = below(2) == 0;
    const char* const queue_of_group = below(2) == 0 ? "" : "team";
    std::vector<std::string> seen;
    for (int order = 0; order < 4; ++order) {
      ClusterState state(OurPods());
      state.UpsertNode(MakeNode("n1", 8));
      std::vector<int> steps = {0, 1, 2, 3, 4};
      std::shuffle(steps.begin(), steps.end(), random);
      for (const int step : steps) {
        if (step < 4) {
          // Some come first as they were before they were labelled.
          if (below(3) == 0) {
            model::Pod plain = pods[static_cast<size_t>(step)];
            plain.meta.labels = {};
            if (below(2) == 0) plain.meta.annotations = {};
            state.UpsertPod(plain);
          }
          state.UpsertPod(pods[static_cast<size_t>(step)]);
        } else if (group || group_goes) {
          state.UpsertPodGroup(MakeGroup("ns", "g", queue_of_group, 2));
        }
      }
      if (group_goes) state.RemovePodGroup("ns", "g", "");
      ASSERT_EQ(state.CheckConsistency(), "");
      const Workload& workload = state.workload(state.FindGroup("ns", "g"));
      std::string names;
      for (const PodId pod : workload.pods) absl::StrAppend(&names, state.pod(pod).name, " ");
      seen.push_back(absl::StrCat(names, workload.queue, " ", workload.queue_named, " ",
                                  workload.priority, " ", workload.preemptible, " ",
                                  absl::FormatTime(workload.creation)));
    }
    for (const std::string& text : seen) ASSERT_EQ(text, seen.front());
  }
}

// ---- what runs stays with the queue that it was started under

TEST_F(HostileTest, APodGroupThatIsDeletedTakesNoChargeAway) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPodGroup(MakeGroup("ns", "g", "team", 1));
  state_.UpsertPod(PodBuilder("ns", "a").Group("g").Gpus(4).On("n1"));
  state_.UpsertPod(PodBuilder("ns", "b").Group("g").Gpus(4));
  Settle("a");
  state_.RemovePodGroup("ns", "g", "");
  EXPECT_EQ(WorkloadOf("a").queue, "default-queue");
  EXPECT_EQ(state_.QueueOf(Pod("a")), "team");
  EXPECT_EQ(state_.QueueOf(Pod("b")), "default-queue");
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(4).On("n1").Queue("elsewhere"));
  EXPECT_EQ(state_.QueueOf(Pod("a")), "team");
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(4).On("n1", model::PodPhase::kSucceeded));
  EXPECT_EQ(state_.FindPod("ns", "a"), kNoId);
}

TEST_F(HostileTest, WhatTheBindingWroteHoldsAfterARestart) {
  state_.UpsertNode(MakeNode("n1", 8));
  const auto pod = [](absl::string_view queue, absl::string_view started_under) {
    return PodBuilder("ns", "a").Gpus(4).Queue(queue).Annotation(model::kStartedUnderAnnotation,
                                                                 started_under);
  };
  state_.UpsertPod(pod("elsewhere", "dept/team").On("n1"));
  EXPECT_EQ(state_.QueueOf(Pod("a")), "team");
  EXPECT_EQ(state_.RecordedParentOf("team"), "dept");
  Settle("a");
  state_.UpsertPod(pod("elsewhere", "other").On("n1"));
  EXPECT_EQ(state_.QueueOf(Pod("a")), "team") << "a tenant's word, after the pod came";
}

TEST_F(HostileTest, APodThatAnotherSchedulerBindsGainsNothingByTheAnnotation) {
  state_.UpsertNode(MakeNode("n1", 8));
  const auto pod = [](absl::string_view name) {
    return PodBuilder("ns", name).Queue("team").Annotation(model::kStartedUnderAnnotation, "other");
  };
  state_.UpsertPod(pod("waited"));
  state_.SetDeciding();
  state_.UpsertPod(pod("waited").On("n1"));
  state_.UpsertPod(pod("made-there").On("n1"));
  for (const char* name : {"waited", "made-there"}) {
    EXPECT_EQ(state_.QueueOf(Pod(name)), "team") << name;
    Settle(name);
    EXPECT_EQ(state_.QueueOf(Pod(name)), "team") << name;
  }
}

TEST_F(HostileTest, AnAnnotationThatNamesNoQueueIsIgnored) {
  state_.UpsertNode(MakeNode("n1", 8));
  const std::string longer(300, 'q');
  for (const std::string& text :
       {std::string("/"), std::string("dept/"), longer, longer + "/team", "dept/" + longer}) {
    state_.UpsertPod(PodBuilder("ns", "a").Queue("team").On("n1").Annotation(
        model::kStartedUnderAnnotation, text));
    EXPECT_EQ(Pod("a").started_under, nullptr) << text;
    state_.RemovePod("ns", "a", "");
  }
}

TEST_F(HostileTest, ATenantsWordForAQueueOfAPodThatWaitsIsOverwritten) {
  state_.UpsertNode(MakeNode("n1", 8));
  const auto pod = [](absl::string_view started_under) {
    return PodBuilder("ns", "a").Gpus(4).Queue("team").Annotation(model::kStartedUnderAnnotation,
                                                                  started_under);
  };
  state_.UpsertPod(pod("other"));
  EXPECT_EQ(Pod("a").started_under, nullptr);
  EXPECT_EQ(state_.QueueOf(Pod("a")), "team");
  {
    Transaction txn(state_);
    txn.Allocate(Pod("a").id, Node("n1").id);
    txn.Commit();
  }
  Settle("a");
  state_.UpsertPod(pod("team").On("n1"));
  EXPECT_EQ(state_.QueueOf(Pod("a")), "team");
}

TEST_F(HostileTest, AQueueThatTheBindingWroteAndThatIsNoMoreDoesNotHold) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(4).Queue("team").On("n1").Annotation(
      model::kStartedUnderAnnotation, "ghost"));
  Settle("a");
  EXPECT_EQ(state_.QueueOf(Pod("a")), "team");
}

TEST_F(HostileTest, APodThatNothingNamesAQueueForFollowsItsObjects) {
  state_.UpsertNode(MakeNode("n1", 8));
  state_.UpsertPod(PodBuilder("ns", "a").Gpus(4).On("n1").Group("g"));
  Settle("a");
  EXPECT_EQ(state_.QueueOf(Pod("a")), "default-queue");
  state_.UpsertPodGroup(MakeGroup("ns", "g", "team", 1));
  EXPECT_EQ(state_.QueueOf(Pod("a")), "team");
}

// ---- nodes

TEST_F(HostileTest, HeartbeatsOfAgentsAreNoChange) {
  state_.UpsertNode(MakeNode("n1", 2));
  model::Node bought = MakeNode("n2", 2);
  bought.meta.labels.Set(model::kNodeRequestLabel, "r");
  state_.UpsertNode(bought);
  for (int i = 0; i < 3; ++i) {
    for (model::Node node : {MakeNode("n1", 2), bought}) {
      node.meta.annotations.Set("csi.example/heartbeat", absl::StrCat(i));
      EXPECT_FALSE(state_.UpsertNode(node).Any());
      EXPECT_EQ(Node("n1").object.meta.annotations.Get("csi.example/heartbeat"), absl::StrCat(i));
    }
  }
  model::Node kept = MakeNode("n1", 2);
  kept.meta.annotations.Set(model::kDoNotRemoveAnnotation, "true");
  EXPECT_TRUE(state_.UpsertNode(kept).capacity);
}

}  // namespace
}  // namespace fairlead::state
