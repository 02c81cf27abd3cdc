#include "scheduler/engine/reservation.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using model::testing::At;
using model::testing::MakeGroup;
using model::testing::PodBuilder;
using testing::Cluster;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using verdict::Code;

EngineOptions WithReservations(bool on = true) {
  EngineOptions options;
  options.hook_on = false;
  options.consolidation = false;
  options.reservations.on = on;
  options.reservations.reserve_after = absl::Seconds(60);
  options.reservations.reserve_min_devices = 2;
  return options;
}

// Two nodes of four GPUs in a world where pods end when the test says so.
class ReservationWorld {
 public:
  explicit ReservationWorld(const EngineOptions& options = WithReservations(),
                            const state::JobOrder& job_order = {})
      : cluster_(options, job_order) {
    cluster_.Node("n1", 4);
    cluster_.Node("n2", 4);
  }
  Cluster& operator*() { return cluster_; }
  Cluster* operator->() { return &cluster_; }

  static PodBuilder Small(absl::string_view name, absl::string_view queue, int64_t created = 0) {
    PodBuilder pod("team", name);
    pod.Gpus(1).Queue(queue).Created(created);
    return pod;
  }
  void Ask(const model::Pod& pod) {
    pods_[pod.meta.name] = pod;
    cluster_.Pod(pod);
  }
  // Runs on the node since then.
  void Running(PodBuilder pod, absl::string_view node, int64_t since) {
    pod.On(node).Annotation(model::kLastStartAnnotation,
                            absl::FormatTime(absl::RFC3339_full, At(since), absl::UTCTimeZone()));
    Ask(pod);
  }
  // A gang of pods that take a whole node each.
  void Gang(absl::string_view name, absl::string_view queue, int32_t pods, int64_t gpus,
            int64_t created) {
    model::PodGroup group = MakeGroup("team", name, queue, pods);
    group.meta.creation = At(created);
    cluster_.Group(group);
    for (int32_t i = 0; i < pods; ++i) {
      PodBuilder pod("team", absl::StrCat(name, "-", i));
      Ask(pod.Gpus(gpus).Group(name).Created(created));
    }
  }
  void End(const std::string& name) {
    const model::Pod& pod = pods_.at(name);
    cluster_.state().RemovePod(pod.meta.ns, name, pod.meta.uid);
    pods_.erase(name);
  }
  // Runs a cycle, and what it binds runs from then on.
  std::vector<std::string> Run(int64_t at) {
    const CycleResult result = cluster_.Run(at);
    for (const auto& [name, node] : testing::BoundBy(cluster_.state(), result)) {
      model::Pod pod = pods_.at(name);
      pod.node_name = node;
      pod.phase = model::PodPhase::kRunning;
      pod.meta.annotations.Set(model::kLastStartAnnotation,
                               absl::FormatTime(absl::RFC3339_full, At(at), absl::UTCTimeZone()));
      Ask(pod);
    }
    wake_at_ = result.wake_at;
    return cluster_.Bound();
  }
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }
  [[nodiscard]] const std::map<std::string, model::Pod>& pods() const { return pods_; }

 private:
  Cluster cluster_;
  std::map<std::string, model::Pod> pods_;
  absl::Time wake_at_ = absl::InfiniteFuture();
};

// n1 and n2 are full of single GPUs; those of n1 are younger.
void Fill(ReservationWorld& world, absl::string_view queue) {
  for (int i = 0; i < 4; ++i) {
    world.Running(ReservationWorld::Small(absl::StrCat("young-", i), queue), "n1", 900);
    world.Running(ReservationWorld::Small(absl::StrCat("old-", i), queue), "n2", 0);
  }
}

TEST(ReservationTest, OffSmallJobsTakeWhatBecomesFree) {
  ReservationWorld world(WithReservations(false));
  world->Queue("q", 8);
  Fill(world, "q");
  world.Gang("big", "q", 1, 4, 100);
  world.Run(1000);
  world.End("young-0");
  world.Ask(ReservationWorld::Small("small", "q", 200));
  EXPECT_THAT(world.Run(1001), ElementsAre("small>n1"));
  EXPECT_THAT(world->DetailsOf("big"), Not(HasSubstr("kept")));
}

TEST(ReservationTest, RoomOnTheNodeThatIsSoonestFreeIsKeptAndBothAreTold) {
  ReservationWorld world;
  world->Queue("q", 8);
  Fill(world, "q");
  world.Gang("big", "q", 1, 4, 100);
  world.Run(1000);
  EXPECT_THAT(world->DetailsOf("big"), HasSubstr("room is being kept: 0 of 4 GPUs on 1 node"));
  EXPECT_THAT(world->engine().ReservedNodes(), ElementsAre(world->state().FindNode("n1")))
      << "so that the node is not given back while it empties";
  world.End("young-0");
  world.End("old-0");
  world.Ask(ReservationWorld::Small("first", "q", 200));
  world.Ask(ReservationWorld::Small("second", "q", 201));
  // 6 run, 4 are the gang's: its queue has no share left for those behind it.
  EXPECT_THAT(world.Run(1001), IsEmpty());
  EXPECT_THAT(world->DetailsOf("first"), HasSubstr("held: kept for gang team/big"));
  EXPECT_THAT(world->DetailsOf("big"), HasSubstr("room is being kept: 1 of 4 GPUs on 1 node"));
  for (const char* name : {"young-1", "young-2", "young-3"}) world.End(name);
  EXPECT_THAT(world.Run(1002), ElementsAre("big-0>n1", "first>n2"));
  EXPECT_THAT(world->engine().ReservedNodes(), IsEmpty());
  EXPECT_THAT(world->DetailsOf("second"), Not(HasSubstr("held")));
}

TEST(ReservationTest, NoPodWaitsForAGangThatIsYoungOrSmall) {
  ReservationWorld world;
  world->Queue("q", 8);
  Fill(world, "q");
  world.Gang("big", "q", 1, 4, 980);
  world.Run(1000);
  EXPECT_EQ(world.wake_at(), At(1040)) << "when it is old enough";
  world.End("young-0");
  world.Ask(ReservationWorld::Small("one", "q", 985));
  EXPECT_THAT(world.Run(1001), ElementsAre("one>n1"));
  EXPECT_THAT(world->DetailsOf("big"), Not(HasSubstr("kept")));

  ReservationWorld other;
  other->Queue("q", 8);
  Fill(other, "q");
  other.Ask(ReservationWorld::Small("single", "q", 0));
  other.Run(1000);
  EXPECT_THAT(other->DetailsOf("single"), Not(HasSubstr("kept")));
}

TEST(ReservationTest, WhereShortJobsComeFirstALongOneHasToWaitForItsTurn) {
  ReservationWorld world(WithReservations(), {.duration_weight = 2});
  world->Queue("q", 8);
  Fill(world, "q");
  // Each turn comes 200 s after its creation.
  model::PodGroup group = MakeGroup("team", "big", "q", 1);
  group.meta.creation = At(100);
  world->Group(group);
  world.Ask(PodBuilder("team", "big-0")
                .Gpus(4)
                .Group("big")
                .Annotation(model::kExpectedDurationAnnotation, "100s"));
  world.Run(359);
  EXPECT_THAT(world->DetailsOf("big"), Not(HasSubstr("kept")));
  EXPECT_EQ(world.wake_at(), At(360));
  world.Run(360);
  EXPECT_THAT(world->DetailsOf("big"), HasSubstr("room is being kept"));
}

// The gang's queue is entitled to 2 GPUs and asks for 4: what others hold is not kept for it.
TEST(ReservationTest, AQueueReservesNoMoreThanItsShare) {
  ReservationWorld world;
  world->Queue("q", 2);
  world->Queue("others", 6);
  Fill(world, "others");
  for (int i = 0; i < 8; ++i)
    world.Ask(ReservationWorld::Small(absl::StrCat("more-", i), "others", 50));
  world.Gang("big", "q", 1, 4, 100);
  world.Run(1000);
  EXPECT_THAT(world->DetailsOf("big"), Not(HasSubstr("kept")));
  world.End("young-0");
  EXPECT_EQ(world.Run(1001).size(), 1U);
}

// Its share is 4 of 8; its own two small jobs are part of it, so only two may be kept until they
// have ended.
TEST(ReservationTest, WhatItsQueueHoldsCountsAgainstWhatIsKept) {
  EngineOptions options = WithReservations();
  options.reclaim = false;
  ReservationWorld world(options);
  world->Queue("q", 4);
  world->Queue("others", 4);
  for (int i = 0; i < 4; ++i) {
    world.Running(ReservationWorld::Small(absl::StrCat("a-", i), "others"), "n1", 900);
  }
  for (int i = 0; i < 2; ++i) {
    world.Running(ReservationWorld::Small(absl::StrCat("b-", i), "others"), "n2", 0);
    world.Running(ReservationWorld::Small(absl::StrCat("own-", i), "q"), "n2", 0);
  }
  world.Gang("big", "q", 1, 4, 100);
  world.Run(1000);
  for (int i = 0; i < 8; ++i)
    world.Ask(ReservationWorld::Small(absl::StrCat("more-", i), "others", 200));
  for (const char* name : {"a-0", "a-1"}) world.End(name);
  world.Run(1001);
  EXPECT_THAT(world->DetailsOf("big"), HasSubstr("room is being kept: 2 of 4 GPUs"));
  EXPECT_THAT(world->Bound(), IsEmpty());
  world.End("a-2");
  EXPECT_EQ(world.Run(1002).size(), 3U) << "with three it would be above its share";
  EXPECT_THAT(world->DetailsOf("big"), HasSubstr("room will be kept for it as soon as"));
}

TEST(ReservationTest, AJobThatSaysThatItEndsBeforeMayUseTheRoom) {
  ReservationWorld world;
  world->Queue("q", 8);
  for (int i = 0; i < 4; ++i) {
    PodBuilder pod = ReservationWorld::Small(absl::StrCat("young-", i), "q");
    world.Running(pod.Annotation(model::kExpectedDurationAnnotation, "1h"), "n1", 1000);
    world.Running(ReservationWorld::Small(absl::StrCat("old-", i), "q"), "n2", -100'000);
  }
  world.Gang("big", "q", 1, 4, 100);
  world.Run(1000);
  world.End("young-0");
  PodBuilder longer = ReservationWorld::Small("longer", "q", 200);
  world.Ask(longer.Annotation(model::kExpectedDurationAnnotation, "61m"));
  world.Ask(ReservationWorld::Small("silent", "q", 201));
  PodBuilder shorter = ReservationWorld::Small("shorter", "q", 202);
  world.Ask(shorter.Annotation(model::kExpectedDurationAnnotation, "59m"));
  EXPECT_THAT(world.Run(1001), ElementsAre("shorter>n1"));
  EXPECT_THAT(world->DetailsOf("longer"), HasSubstr("held: kept for gang team/big"));
  // It has outlived what it said: it may end at any moment, so no workload is let in before the
  // gang.
  for (const char* name : {"young-1", "young-2", "young-3"}) world.End(name);
  PodBuilder late = ReservationWorld::Small("late", "q", 203);
  world.Ask(late.Annotation(model::kExpectedDurationAnnotation, "59m"));
  EXPECT_THAT(world.Run(4700), IsEmpty());
}

TEST(ReservationTest, AHigherPriorityOfItsQueueIsNotHeld) {
  ReservationWorld world;
  world->Queue("q", 8);
  Fill(world, "q");
  world.Gang("big", "q", 1, 4, 100);
  world.Run(1000);
  world.End("young-0");
  PodBuilder urgent = ReservationWorld::Small("urgent", "q", 900);
  world.Ask(urgent.Priority("high", 80));
  world.Ask(ReservationWorld::Small("small", "q", 200));
  EXPECT_THAT(world.Run(1001), ElementsAre("urgent>n1"));
}

TEST(ReservationTest, EndsWithTheGang) {
  ReservationWorld world;
  world->Queue("q", 8);
  Fill(world, "q");
  world.Gang("big", "q", 1, 4, 100);
  world.Run(1000);
  world.End("young-0");
  world.Ask(ReservationWorld::Small("small", "q", 200));
  EXPECT_THAT(world.Run(1001), IsEmpty());
  world.End("big-0");
  EXPECT_THAT(world.Run(1002), ElementsAre("small>n1"));
}

TEST(ReservationTest, ANodeThatGoesIsReplaced) {
  ReservationWorld world;
  world->Queue("q", 8);
  Fill(world, "q");
  world.Gang("big", "q", 1, 4, 100);
  world.Run(1000);
  for (int i = 0; i < 4; ++i) world.End(absl::StrCat("young-", i));
  world->state().RemoveNode("n1", "uid-n1");
  world.Run(1001);
  EXPECT_THAT(world->DetailsOf("big"), HasSubstr("room is being kept: 0 of 4 GPUs on 1 node"));
  world.End("old-0");
  world.Ask(ReservationWorld::Small("small", "q", 200));
  EXPECT_THAT(world.Run(1002), IsEmpty());
}

TEST(ReservationTest, AtMostSoManyAndTheFirstInTheOrderOfService) {
  EngineOptions options = WithReservations();
  options.reservations.max_reservations = 1;
  options.reclaim = false;
  ReservationWorld world(options);
  world->Queue("a", 4);
  world->Queue("b", 4);
  Fill(world, "a");
  world.Gang("for-a", "a", 1, 4, 50);
  world.Gang("for-b", "b", 1, 4, 100);
  world.Run(1000);
  EXPECT_THAT(world->DetailsOf("for-b"), HasSubstr("room is being kept"));
  EXPECT_THAT(world->DetailsOf("for-a"), Not(HasSubstr("kept")));
}

// A stream of small jobs fills whatever becomes free: one ends and one arrives in every step. The
// gang of both nodes starts after a bounded number of steps with a reservation, and never without.
class StreamTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  // The step in which the gang started; -1: never.
  static int Steps(bool reservations, uint32_t seed) {
    EngineOptions options = WithReservations(reservations);
    ReservationWorld world(options);
    world->Queue("q", 8);
    uint32_t random = seed;
    const auto next = [&random] { return random = random * 1664525 + 1013904223; };
    int number = 0;
    const auto arrive = [&](int64_t at) {
      world.Ask(ReservationWorld::Small(absl::StrCat("s-", number++), "q", at));
    };
    for (int i = 0; i < 12; ++i) arrive(0);
    world.Run(1);
    world.Gang("big", "q", 2, 4, 1);
    for (int step = 0; step < 400; ++step) {
      const int64_t at = 100 + step * 30;
      std::vector<std::string> running;
      for (const auto& [name, pod] : world.pods()) {
        if (!pod.node_name.empty()) running.push_back(name);
      }
      if (!running.empty()) world.End(running[(next() >> 8) % running.size()]);
      arrive(at);
      for (const std::string& bound : world.Run(at)) {
        if (bound.rfind("big", 0) == 0) return step;
      }
    }
    return -1;
  }
};

TEST_P(StreamTest, TheGangStartsWithAReservationAndNeverWithout) {
  SCOPED_TRACE(absl::StrCat("seed ", GetParam()));
  EXPECT_EQ(Steps(false, GetParam()), -1);
  const int steps = Steps(true, GetParam());
  EXPECT_GE(steps, 0);
  // Four are older; then eight end, one in each step.
  EXPECT_LE(steps, 4 + 8);
}

INSTANTIATE_TEST_SUITE_P(Seeds, StreamTest, ::testing::Range(1U, 9U));

}  // namespace
}  // namespace fairlead::engine
