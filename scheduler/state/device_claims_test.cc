// Claims to devices in ClusterState: which pod carries them, what they count, and which devices
// they get.
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/model/testing/device_builders.h"
#include "scheduler/state/state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using model::testing::Allocated;
using model::testing::MakeClaim;
using model::testing::MakeDeviceClass;
using model::testing::MakeNode;
using model::testing::MakeSlice;
using model::testing::PodBuilder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OurPods;

constexpr char kClass[] = "gpu.nvidia.com";

model::Pod Uses(model::Pod pod, std::vector<std::string> claims) {
  pod.spec.resource_claims = std::move(claims);
  return pod;
}

class DeviceClaimsTest : public ::testing::Test {
 protected:
  DeviceClaimsTest() : state_(OurPods()) {
    for (const char* name : {"n0", "n1"}) {
      state_.UpsertNode(MakeNode(name, 0));
      state_.UpsertDeviceObject(MakeSlice(name, 2));
    }
    state_.UpsertDeviceObject(MakeDeviceClass(kClass));
  }
  ~DeviceClaimsTest() override { EXPECT_EQ(state_.CheckConsistency(), ""); }
  PodId Add(const std::string& name, std::vector<std::string> claims, int64_t created = 0) {
    state_.UpsertPod(Uses(PodBuilder("ns", name).Queue("q").Created(created), std::move(claims)));
    return state_.FindPod("ns", name);
  }
  const model::PodSpec& Spec(PodId pod) { return *state_.class_of(pod).spec; }
  int64_t Charge(PodId pod) { return state_.class_of(pod).charge[model::kGpu]; }
  const std::vector<std::string>& Held(const char* claim) {
    return state_.devices().Find(claim)->devices;
  }
  int64_t Used(const char* node) {
    const auto index = state_.resource_names().Find("deviceclass:gpu.nvidia.com");
    return index.has_value() ? state_.node(state_.FindNode(node)).used[*index] : 0;
  }

  ClusterState state_;
};

TEST_F(DeviceClaimsTest, WhatIsWrongWithAClaimIsThePodsProblem) {
  const auto claim = [](auto change) {
    model::ResourceClaim out = MakeClaim("c", 1, kClass, "q");
    change(out);
    return out;
  };
  struct Case {
    model::ResourceClaim claim;
    const char* problem;
  };
  const Case cases[] = {
      {claim([](auto&) {}), ""},
      {claim([](auto& c) { c.meta.name = "other"; }), "ResourceClaim ns/c does not exist"},
      {claim([](auto& c) { c.invalid = "firstAvailable"; }), "ns/c: firstAvailable"},
      {claim([](auto& c) { c.meta.deletion = model::testing::At(1); }), "is being deleted"},
      {claim([](auto& c) { c.requests[0].device_class = "x"; }), "device class x does not exist"},
      {claim([](auto& c) { c.requests[0].all = true; }), ""},
      {claim([](auto& c) { c.requests[0].selectors = {"device.x"}; }), "not understood: device.x"},
      {claim([](auto& c) { c.meta.labels = {}; }), "without the queue label kai.scheduler/queue"},
      {claim([](auto& c) { c.meta.labels.Set(model::kQueueLabel, "z"); }), "claim of queue z"},
      {claim([](auto& c) { c.reserved_for.resize(255, "x"); }), ""},
      {claim([](auto& c) { c.reserved_for.resize(256, "x"); }), "maximum number of consumers"},
      {claim([](auto& c) {
         c.reserved_for.resize(256, "x");
         c.reserved_for[7] = "uid-ns-p";
       }),
       ""},
  };
  const PodId pod = Add("p", {"c"});
  for (const Case& c : cases) {
    state_.UpsertDeviceObject(c.claim);
    const std::string& problem = Spec(pod).claim_problem;
    if (*c.problem == '\0') {
      EXPECT_EQ(problem, "");
    } else {
      EXPECT_THAT(problem, HasSubstr(c.problem));
    }
    EXPECT_EQ(state_.CheckConsistency(), "") << c.problem;
    state_.RemoveResourceClaim("ns", c.claim.meta.name);
    EXPECT_THAT(Spec(pod).claim_problem, HasSubstr("does not exist"));
    EXPECT_EQ(Charge(pod), 0);
  }
}

TEST_F(DeviceClaimsTest, WhatDoesNotExistIsToldApartFromWhatIsWrong) {
  const PodId pod = Add("p", {"c"});
  EXPECT_EQ(Spec(pod).missing_claim, "ResourceClaim ns/c");
  state_.UpsertDeviceObject(MakeClaim("c", 1, "absent", "q"));
  EXPECT_EQ(Spec(pod).missing_claim, "device class absent");
  EXPECT_EQ(Spec(pod).claim_problem, "ResourceClaim ns/c: device class absent does not exist");
  state_.UpsertDeviceObject(MakeClaim("c", 1, kClass));
  EXPECT_EQ(Spec(pod).missing_claim, "");
  EXPECT_THAT(Spec(pod).claim_problem, HasSubstr("queue label"));
}

TEST_F(DeviceClaimsTest, WithoutTheApiThatIsTheProblem) {
  state_.UpsertDeviceObject(MakeClaim("c", 1, kClass, "q"));
  const PodId pod = Add("p", {"c"});
  EXPECT_TRUE(state_.SetClaimsReadable(false).Any());
  EXPECT_FALSE(state_.SetClaimsReadable(false).Any());
  EXPECT_THAT(Spec(pod).claim_problem, HasSubstr("does not have resource.k8s.io/v1"));
  EXPECT_EQ(Spec(pod).missing_claim, "");
  EXPECT_TRUE(state_.SetClaimsReadable(true).Any());
  EXPECT_EQ(Spec(pod).claim_problem, "");
}

TEST_F(DeviceClaimsTest, AClaimOfAnotherPodIsRefusedWhereItComesFromATemplate) {
  model::Pod pod = PodBuilder("ns", "p").Queue("q");
  pod.spec.claim_templates = {"t"};
  pod.generated_claims = {"c"};
  state_.UpsertPod(pod);
  const PodId id = state_.FindPod("ns", "p");
  model::ResourceClaim claim = MakeClaim("c", 1);
  claim.meta.owners = {{"v1", "Pod", "p", "former-uid", true}};
  state_.UpsertDeviceObject(claim);
  EXPECT_EQ(Spec(id).claim_problem, "ResourceClaim ns/c was made for another pod");
  claim.meta.owners[0].uid = pod.meta.uid;
  state_.UpsertDeviceObject(claim);
  EXPECT_EQ(Spec(id).claim_problem, "");
  // A pod that names it explicitly may use it.
  claim.meta.owners[0].uid = "former-uid";
  claim.meta.labels.Set(model::kQueueLabel, "q");
  state_.UpsertDeviceObject(claim);
  EXPECT_EQ(Spec(Add("named", {"c"})).claim_problem, "");
}

TEST_F(DeviceClaimsTest, AWriteThatChangesNothingThatMattersIsNoChange) {
  model::ResourceClaim claim = MakeClaim("c", 1, kClass, "q");
  EXPECT_TRUE(state_.UpsertDeviceObject(claim).Any());
  claim.meta.resource_version = "7";
  claim.finalizers = {model::kClaimFinalizer};
  EXPECT_FALSE(state_.UpsertDeviceObject(claim).Any());
  EXPECT_EQ(state_.devices().Find("ns/c")->object.meta.resource_version, "7");
  claim.reserved_for = {"a", "b"};
  EXPECT_TRUE(state_.UpsertDeviceObject(claim).Any());
  claim.reserved_for = {"b", "a"};
  EXPECT_FALSE(state_.UpsertDeviceObject(claim).Any());
  EXPECT_TRUE(state_.UpsertDeviceObject(Allocated(claim, "n0", {"0"})).Any());
}

TEST_F(DeviceClaimsTest, AClaimIsIdleOnlyIfAllPodsThatUseItWait) {
  model::ResourceClaim claim = Allocated(MakeClaim("c", 1, kClass, "q"), "n0", {"0"});
  state_.UpsertDeviceObject(claim);
  EXPECT_THAT(state_.IdleClaims(), IsEmpty()) << "no pod needs its devices back";
  const PodId waits = Add("p", {"c"});
  EXPECT_THAT(state_.IdleClaims(), ElementsAre("ns/c"));
  claim.reserved_for = {"uid-ns-p"};
  state_.UpsertDeviceObject(claim);
  EXPECT_THAT(state_.IdleClaims(), ElementsAre("ns/c"));
  {
    Transaction txn(state_);
    txn.Allocate(waits, state_.FindNode("n0"));
    EXPECT_THAT(state_.IdleClaims(), IsEmpty()) << "it is being bound";
  }
  claim.reserved_for.push_back("unseen");
  state_.UpsertDeviceObject(claim);
  EXPECT_THAT(state_.IdleClaims(), IsEmpty());
  claim.reserved_for.pop_back();
  state_.UpsertDeviceObject(claim);
  state_.UpsertPod(Uses(PodBuilder("ns", "foreign").Scheduler("other").On("n0"), {"c"}));
  EXPECT_THAT(state_.IdleClaims(), IsEmpty()) << "it runs with it";
}

// The claim controller frees it for pods that have ended alone.
TEST_F(DeviceClaimsTest, AClaimThatIsDeletedUnderAPodThatWaitsIsIdle) {
  model::ResourceClaim claim = Allocated(MakeClaim("c", 1, kClass, "q"), "n0", {"0"});
  claim.reserved_for = {"uid-ns-p"};
  claim.meta.deletion = absl::UnixEpoch();
  state_.UpsertDeviceObject(claim);
  Add("p", {"c"});
  EXPECT_THAT(state_.IdleClaims(), ElementsAre("ns/c"));
}

TEST_F(DeviceClaimsTest, APodThatRunsCannotLeaveAClaimThatOthersUse) {
  state_.UpsertDeviceObject(Allocated(MakeClaim("c", 1, kClass, "q"), "n1", {"0"}));
  state_.UpsertPod(Uses(PodBuilder("ns", "p").Queue("q").On("n1"), {"c"}));
  const PodId runs = state_.FindPod("ns", "p");
  EXPECT_THAT(Spec(runs).claims_to_join, IsEmpty()) << "the claim goes with the pod";
  state_.UpsertPod(Uses(PodBuilder("ns", "other").Queue("q").On("n1"), {"c"}));
  EXPECT_THAT(Spec(runs).claims_to_join, ElementsAre("ns/c"));
  state_.RemovePod("ns", "other", "");
  EXPECT_THAT(Spec(runs).claims_to_join, IsEmpty());
}

TEST_F(DeviceClaimsTest, WhatCannotBeGivenAwayAloneIsNotCounted) {
  model::ResourceSlice slice = MakeSlice("n0", 3);
  slice.devices[1].unusable = "it is a partition of another";
  state_.UpsertDeviceObject(slice);
  EXPECT_EQ(state_.devices().inventory().CountGpus("n0"), 2);
  state_.UpsertDeviceObject(MakeClaim("c", 2, kClass, "q"));
  const PodId pod = Add("p", {"c"});
  Transaction txn(state_);
  txn.Allocate(pod, state_.FindNode("n0"));
  EXPECT_THAT(Held("ns/c"), ElementsAre("gpu.nvidia.com/n0/0", "gpu.nvidia.com/n0/2"));
}

TEST_F(DeviceClaimsTest, APoolOfSeveralNodesHasOneGeneration) {
  model::ResourceSlice here = MakeSlice("n0", 1);
  model::ResourceSlice there = MakeSlice("n1", 1);
  here.pool = there.pool = "rack";
  there.devices[0].name = "1";
  state_.UpsertDeviceObject(here);
  state_.UpsertDeviceObject(there);
  EXPECT_EQ(state_.devices().inventory().CountGpus("n0"), 1);
  there.generation = 1;
  state_.UpsertDeviceObject(there);
  EXPECT_EQ(state_.devices().inventory().CountGpus("n0"), 0);
  EXPECT_EQ(state_.devices().inventory().CountGpus("n1"), 1);
  state_.RemoveResourceSlice(there.meta.name);
  EXPECT_EQ(state_.devices().inventory().CountGpus("n0"), 1);
}

TEST_F(DeviceClaimsTest, TemplatesWaitForTheirClaim) {
  model::Pod pod = PodBuilder("ns", "p").Queue("q");
  pod.spec.claim_templates = {"t"};
  state_.UpsertPod(pod);
  const PodId id = state_.FindPod("ns", "p");
  EXPECT_EQ(Spec(id).claim_problem, "ResourceClaim of a template does not exist");
  pod.awaited_claims = {"gpu of template t"};
  state_.UpsertPod(pod);
  EXPECT_EQ(Spec(id).missing_claim, "ResourceClaim gpu of template t");
  pod.awaited_claims.clear();
  pod.generated_claims = {"p-t-x"};
  state_.UpsertPod(pod);
  EXPECT_THAT(Spec(id).claim_problem, HasSubstr("ns/p-t-x does not exist"));
  state_.UpsertDeviceObject(MakeClaim("p-t-x", 2));  // of the pod alone: no queue label needed
  EXPECT_EQ(Spec(id).claim_problem, "");
  EXPECT_EQ(Charge(id), 2000);
}

TEST_F(DeviceClaimsTest, GpusCountForQueuesAndOtherDevicesDoNot) {
  EXPECT_EQ(state_.total_for_queues()[model::kGpu], 4000);
  state_.UpsertDeviceObject(MakeDeviceClass("other"));
  state_.UpsertDeviceObject(MakeClaim("c", 2, "other"));
  EXPECT_EQ(Charge(Add("p", {"c"})), 0);
  state_.UpsertDeviceObject(MakeSlice("n1", 5, "nic.io"));
  EXPECT_EQ(state_.total_for_queues()[model::kGpu], 4000);
  state_.RemoveResourceSlice("n0-gpu.nvidia.com");
  EXPECT_EQ(state_.total_for_queues()[model::kGpu], 2000);
  state_.RemoveNode("n1", "");
  EXPECT_EQ(state_.total_for_queues()[model::kGpu], 0);
  state_.UpsertNode(MakeNode("n1", 0));
  EXPECT_EQ(state_.total_for_queues()[model::kGpu], 2000);
}

TEST_F(DeviceClaimsTest, OnlyTheNewestGenerationOfAPoolCounts) {
  model::ResourceSlice old = MakeSlice("n0", 8);
  old.meta.name = "old";
  old.generation = -1;
  state_.UpsertDeviceObject(old);
  EXPECT_EQ(state_.devices().inventory().CountGpus("n0"), 2);
  old.generation = 1;
  state_.UpsertDeviceObject(old);
  EXPECT_EQ(state_.devices().inventory().CountGpus("n0"), 8);
}

TEST_F(DeviceClaimsTest, ASharedClaimIsCarriedOnceAndFollowed) {
  state_.UpsertDeviceObject(MakeClaim("c", 1, kClass, "q"));
  const PodId second = Add("a", {"c"}, 5);
  EXPECT_EQ(Charge(second), 1000);
  const PodId first = Add("b", {"c"}, 1);  // before it in task order
  EXPECT_EQ(Charge(first), 1000);
  EXPECT_EQ(Charge(second), 0);
  EXPECT_THAT(Spec(first).claims_to_join, IsEmpty());
  EXPECT_THAT(Spec(second).claims_to_join, ElementsAre("ns/c"));
  // It ends: the other carries the claim.
  state_.RemovePod("ns", "b", "");
  EXPECT_EQ(Charge(second), 1000);
  EXPECT_THAT(Spec(second).claims_to_join, IsEmpty());
}

TEST_F(DeviceClaimsTest, PlacingTakesTheFirstFreeDevicesAndUndoGivesThemBack) {
  state_.UpsertDeviceObject(MakeClaim("c", 1, kClass, "q"));
  state_.UpsertDeviceObject(MakeClaim("d", 1, kClass, "q"));
  state_.UpsertDeviceObject(Allocated(MakeClaim("e", 1, kClass, "q"), "n0", {"0"}));
  const PodId c = Add("c", {"c"});
  const PodId d = Add("d", {"d"});
  const NodeId n0 = state_.FindNode("n0");
  const std::string before = state_.Dump();
  {
    Transaction txn(state_);
    txn.Allocate(c, n0);
    EXPECT_THAT(Held("ns/c"), ElementsAre("gpu.nvidia.com/n0/1"));
    EXPECT_EQ(Used("n0"), 1);
    txn.Pipeline(d, n0);
    EXPECT_THAT(Held("ns/d"), IsEmpty());
    EXPECT_EQ(state_.CheckConsistency(), "");
  }
  EXPECT_EQ(state_.Dump(), before);
  Transaction txn(state_);
  txn.Allocate(c, state_.FindNode("n1"));
  txn.Commit();
  const auto claims = state_.ClaimsOf(c);
  ASSERT_EQ(claims.size(), 1);
  EXPECT_TRUE(claims[0].allocated);
  EXPECT_THAT(claims[0].devices,
              ElementsAre(model::AllocatedDevice{"r", "gpu.nvidia.com", "n1", "0"}));
  state_.ForgetBinding(c);  // the binding failed: the devices are free again
  EXPECT_THAT(Held("ns/c"), IsEmpty());
  EXPECT_EQ(Used("n1"), 0);
}

TEST_F(DeviceClaimsTest, APodWhoseBindingFailsHasToGoWhereItsClaimIsByNow) {
  state_.UpsertDeviceObject(MakeClaim("c", 1, kClass, "q"));
  const PodId pod = Add("p", {"c"});
  Transaction txn(state_);
  txn.Allocate(pod, state_.FindNode("n1"));
  txn.Commit();
  state_.UpsertDeviceObject(Allocated(MakeClaim("c", 1, kClass, "q"), "n1", {"0"}));
  EXPECT_THAT(Spec(pod).claims_to_join, IsEmpty());
  state_.ForgetBinding(pod);
  EXPECT_THAT(Spec(pod).claims_to_join, ElementsAre("ns/c"));
  EXPECT_THAT(Held("ns/c"), ElementsAre("gpu.nvidia.com/n1/0"));
}

TEST_F(DeviceClaimsTest, AllocatedClaimsHoldTheirDevices) {
  state_.UpsertDeviceObject(Allocated(MakeClaim("c", 2, kClass, "q"), "n1", {"0", "1"}));
  state_.UpsertPod(Uses(PodBuilder("ns", "p").Queue("q").On("n1"), {"c"}));
  EXPECT_EQ(Used("n1"), 2);
  EXPECT_EQ(*state_.devices().HolderOf("gpu.nvidia.com/n1/0"), "ns/c");
  state_.UpsertDeviceObject(MakeClaim("c", 2, kClass, "q"));  // deallocated below a running pod
  EXPECT_EQ(state_.CheckConsistency(), "");
  state_.RemovePod("ns", "p", "");
  EXPECT_EQ(Used("n1"), 0);
  EXPECT_THAT(Held("ns/c"), IsEmpty());
  // Allocated, and its pod has no node: it can only go where the devices are.
  state_.UpsertDeviceObject(Allocated(MakeClaim("c", 2, kClass, "q"), "n1", {"0", "1"}));
  const PodId late = Add("late", {"c"});
  EXPECT_THAT(Spec(late).claims_to_join, ElementsAre("ns/c"));
  EXPECT_EQ(Charge(late), 2000);
}

TEST_F(DeviceClaimsTest, AQueueThatChangesIsComparedAnew) {
  state_.UpsertDeviceObject(MakeClaim("c", 1, kClass, "q"));
  state_.UpsertPodGroup(model::testing::MakeGroup("ns", "g", "q", 1));
  state_.UpsertPod(Uses(PodBuilder("ns", "p").Group("g"), {"c"}));
  const PodId pod = state_.FindPod("ns", "p");
  EXPECT_EQ(Spec(pod).claim_problem, "");
  state_.UpsertPodGroup(model::testing::MakeGroup("ns", "g", "z", 1));
  EXPECT_THAT(Spec(pod).claim_problem, HasSubstr("claim of queue q"));
  state_.UpsertPodGroup(model::testing::MakeGroup("ns", "g", "q", 1));
  EXPECT_EQ(Spec(pod).claim_problem, "");
  // Without the group its pods are of the default queue.
  state_.RemovePodGroup("ns", "g", "");
  EXPECT_THAT(Spec(pod).claim_problem, HasSubstr("claim of queue q"));
}

TEST_F(DeviceClaimsTest, RollbackRestoresTheExactState) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    ClusterState state(OurPods());
    state.UpsertDeviceObject(MakeDeviceClass(kClass));
    for (int i = 0; i < 3; ++i) {
      const std::string node = absl::StrCat("n", i);
      state.UpsertNode(MakeNode(node, 0));
      state.UpsertDeviceObject(MakeSlice(node, 4));
    }
    for (int i = 0; i < 6; ++i) {
      state.UpsertDeviceObject(
          MakeClaim(absl::StrCat("c", i), 1 + int64_t(random() % 3), kClass, "q"));
    }
    constexpr int kPods = 8;
    for (int i = 0; i < kPods; ++i) {
      std::vector<std::string> claims = {absl::StrCat("c", random() % 6)};
      if (random() % 3 == 0 && claims[0] != "c0") claims.insert(claims.begin(), "c0");
      PodBuilder pod("ns", absl::StrCat("p", i));
      pod.Queue("q");
      if (random() % 2 == 0) pod.On(absl::StrCat("n", random() % 3));
      state.UpsertPod(Uses(pod, claims));
      ASSERT_EQ(state.CheckConsistency(), "");
    }
    const std::string before = state.Dump();
    {
      Transaction txn(state);
      std::vector<std::pair<Transaction::Checkpoint, std::string>> marks;
      for (int step = 0; step < 40; ++step) {
        if (random() % 4 == 0) marks.emplace_back(txn.Mark(), state.Dump());
        const PodId pod = state.FindPod("ns", absl::StrCat("p", random() % kPods));
        const NodeId node = state.FindNode(absl::StrCat("n", random() % 3));
        const PodStatus status = state.pod(pod).status;
        if (status == PodStatus::kPending && random() % 2 == 0) {
          txn.Allocate(pod, node);
        } else if (status == PodStatus::kPending || status == PodStatus::kReleasing) {
          txn.Pipeline(pod, node);
        } else if (status != PodStatus::kPipelined) {
          txn.Evict(pod);
        }
        ASSERT_EQ(state.CheckConsistency(), "");
        if (!marks.empty() && random() % 6 == 0) {
          const size_t to = random() % marks.size();
          txn.RollbackTo(marks[to].first);
          ASSERT_EQ(state.Dump(), marks[to].second);
          marks.resize(to);
        }
      }
    }
    ASSERT_EQ(state.Dump(), before);
  }
}

}  // namespace
}  // namespace fairlead::state
