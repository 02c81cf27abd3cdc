#include "scheduler/engine/eviction_backoff.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using model::testing::At;
using testing::Cluster;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Job;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// Queue a lends both GPUs of the node from queue b. A pod that is evicted comes back at once.
class EvictionBackoffTest : public ::testing::Test {
 protected:
  EvictionBackoffTest() {
    c_.Queue("a", 0);
    c_.Queue("b", 2);
    c_.Node("n", 2);
    StartOfA();
    StartOfA();
  }
  void StartOfA() {
    const std::string name = absl::StrCat("a", ++started_);
    c_.Pod(Job(name, "a", 1, started_).On("n"));
  }
  // The victims of the last cycle go.
  void EndVictims() {
    for (const std::string& victim : c_.Evicted()) {
      const std::string name = victim.substr(victim.find(':') + 1);
      c_.state().RemovePod("ns", name, absl::StrCat("uid-ns-", name));
    }
  }
  void RefuseBinding(absl::string_view pod, int64_t at) {
    const state::PodId id = c_.state().FindPod("ns", pod);
    c_.engine().OnBindFailed(id, At(at));
    c_.state().ForgetBinding(id);
  }
  void RefuseEviction(absl::string_view name, int64_t at) {
    const state::PodId pod = c_.state().FindPod("ns", name);
    c_.state().ForgetEviction(pod);
    c_.engine().OnEvictionRefused(pod, At(at + 5), /*by_budget=*/false, At(at));
  }
  // Pods are evicted for b1, its binding is refused, and their successors start.
  void EvictInVain(int64_t at) {
    c_.Run(at);
    ASSERT_THAT(c_.Evicted(), Not(IsEmpty())) << at;
    const size_t victims = c_.Evicted().size();
    EndVictims();
    c_.Run(at);
    ASSERT_THAT(c_.Bound(), Contains("b1>n"));
    RefuseBinding("b1", at);
    for (size_t i = 0; i < victims; ++i) StartOfA();
  }
  std::vector<std::string> EvictedFor() {
    std::vector<std::string> workloads;
    for (const Eviction& eviction : c_.Result().evictions) {
      workloads.push_back(eviction.for_workload);
    }
    return workloads;
  }

  Cluster c_;
  int started_ = 0;
};

TEST_F(EvictionBackoffTest, EachRefusedBindingDoublesThePauseOfEvictions) {
  c_.Pod(Job("b1", "b", 1, 10));
  int64_t at = 100;
  for (const int64_t pause : {10, 20, 40}) {
    EvictInVain(at);
    c_.Run(at + pause - 1);
    EXPECT_THAT(c_.Evicted(), IsEmpty());
    EXPECT_THAT(c_.DetailsOf("b1"), HasSubstr("no eviction for now"));
    EXPECT_EQ(c_.Result().wake_at, At(at + pause));
    at += pause;
  }
  c_.Run(at);
  EXPECT_THAT(EvictedFor(), ElementsAre("ns/b1"));
}

TEST_F(EvictionBackoffTest, EqualWorkloadsHaveEvictionsStill) {
  c_.Pod(Job("b1", "b", 1, 10));
  EvictInVain(100);
  for (const char* name : {"b2", "b3", "b4"}) c_.Pod(Job(name, "b", 1, 11));
  c_.Run(105);
  EXPECT_THAT(EvictedFor(), Contains("ns/b2"));
  EXPECT_THAT(EvictedFor(), Not(Contains("ns/b1")));
}

TEST_F(EvictionBackoffTest, CapacityThatBecomesFreeIsTakenAllTheSame) {
  c_.Pod(Job("b1", "b", 1, 10));
  EvictInVain(100);
  c_.Node("n2", 1);
  c_.Run(105);
  EXPECT_THAT(c_.Bound(), ElementsAre("b1>n2"));
}

// One of two pods that had to go stays, and so does the one that was to go in its stead.
TEST_F(EvictionBackoffTest, WhatGoesBesideRefusedEvictionsGoesInVain) {
  c_.Pod(Job("b1", "b", 1, 10));
  StartOfA();
  state::ClusterState& state = c_.state();
  const auto pod = [&state](const char* name) { return state.FindPod("ns", name); };
  const state::Workload& b1 = state.workload(state.pod(pod("b1")).workload);
  EvictionBackoff backoff(state);
  const auto holds = [&](int64_t at) {
    backoff.Begin(At(at));
    return backoff.Holds(b1);
  };
  state.AssumeEvicted(pod("a1"));
  int64_t at = 100;
  for (const int64_t pause : {10, 20, 40}) {
    backoff.OnEvicted(b1, {pod("a1"), pod("a2")});
    backoff.OnEvictionRefused(state.pod(pod("a2")), At(at));
    EXPECT_FALSE(holds(at)) << "another one may go in its stead";
    backoff.OnEvicted(b1, {pod("a3")});
    backoff.OnEvictionRefused(state.pod(pod("a3")), At(at));
    EXPECT_TRUE(holds(at + pause - 1));
    EXPECT_EQ(backoff.wake_at(), At(at + pause));
    at += pause;
    EXPECT_FALSE(holds(at));
  }
  // Between two refusals nothing was refused.
  backoff.OnEvicted(b1, {pod("a1"), pod("a2")});
  backoff.OnEvictionRefused(state.pod(pod("a2")), At(at));
  backoff.OnEvicted(b1, {pod("a3")});
  backoff.OnEvicted(b1, {pod("a1"), pod("a2")});
  backoff.OnEvictionRefused(state.pod(pod("a2")), At(at));
  EXPECT_FALSE(holds(at));
}

TEST_F(EvictionBackoffTest, ARefusedEvictionAloneCostsNothing) {
  c_.Pod(Job("b1", "b", 1, 10));
  c_.Run(100);
  ASSERT_THAT(c_.Evicted(), ElementsAre("reclaim:a2"));
  RefuseEviction("a2", 100);
  c_.Run(100);
  EXPECT_THAT(c_.Evicted(), ElementsAre("reclaim:a1"));
}

// A binding that failed without evictions costs others nothing.
TEST_F(EvictionBackoffTest, FailuresWithoutEvictionsDoNotCount) {
  c_.Node("n2", 1);
  c_.Pod(Job("b1", "b", 1, 10));
  int64_t at = 100;
  for (int failure = 0; failure < 5; ++failure, at += 60) {
    c_.Run(at);
    ASSERT_THAT(c_.Bound(), ElementsAre("b1>n2"));
    RefuseBinding("b1", at);
  }
  c_.Pod(Job("a9", "a", 1, 99).On("n2"));
  c_.Run(at);
  EXPECT_THAT(EvictedFor(), ElementsAre("ns/b1"));
}

// a2 is evicted for h, and b1, which has a right to the GPU, comes before h is bound. Without a
// pause a3 would follow, and so on with every pod that comes.
TEST_F(EvictionBackoffTest, APlaceThatGoesToAnotherWorkloadBeforeTheBindingCounts) {
  c_.Pod(Job("h", "a", 1, 10).Priority("high", 90));
  c_.Run(100);
  ASSERT_THAT(c_.Evicted(), ElementsAre("preempt:a2"));
  EndVictims();
  c_.state().RemovePod("ns", "a1", "uid-ns-a1");
  c_.Pod(Job("b0", "b", 1, 11).On("n"));
  c_.Pod(Job("b1", "b", 1, 12));
  c_.Run(101);
  ASSERT_EQ(c_.Result().withdrawn.size(), 1u);
  ASSERT_THAT(c_.DetailsOf("h"), HasSubstr("its place went to workload ns/b1"));
  c_.Run(101);
  ASSERT_THAT(c_.Bound(), ElementsAre("b1>n"));
  EXPECT_EQ(c_.Result().wake_at, At(111));
  c_.Node("n2", 1);
  c_.Pod(Job("a3", "a", 1, 13).On("n2"));
  c_.Run(110);
  EXPECT_THAT(c_.Evicted(), IsEmpty());
  EXPECT_THAT(c_.DetailsOf("h"), HasSubstr("no eviction for now"));
  c_.Run(111);
  EXPECT_THAT(c_.Evicted(), ElementsAre("preempt:a3"));
}

TEST_F(EvictionBackoffTest, AWorkloadThatStartedIsForgotten) {
  c_.Pod(Job("b1", "b", 1, 10));
  EvictInVain(100);
  EvictInVain(110);
  c_.Node("n2", 1);
  c_.Run(112);
  ASSERT_THAT(c_.Bound(), ElementsAre("b1>n2"));
  c_.Pod(Job("b1", "b", 1, 10).On("n2"));
  c_.Run(113);
  EXPECT_EQ(c_.Result().wake_at, absl::InfiniteFuture());
}

}  // namespace
}  // namespace fairlead::engine
