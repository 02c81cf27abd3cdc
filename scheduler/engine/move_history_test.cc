#include "scheduler/engine/move_history.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/engine/victim_walk.h"
#include "scheduler/model/api_names.h"

namespace fairlead::engine {
namespace {

using model::testing::At;
using model::testing::PodBuilder;
using testing::Cluster;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Job;
using testing::Member;
using testing::PreemptibleGroup;

PodBuilder Started(PodBuilder pod, absl::string_view node, int64_t at) {
  pod.Annotation(model::kLastStartAnnotation,
                 absl::FormatTime(absl::RFC3339_full, At(at), absl::UTCTimeZone()));
  return pod.On(node);
}

// Two nodes of 4 GPUs. On n1 a pod runs that cannot be moved, on n2 pods of group `moved`, and
// workload `big` waits for all of n2.
class MoveHistoryTest : public ::testing::Test {
 protected:
  MoveHistoryTest() : MoveHistoryTest(EngineOptions()) {}
  explicit MoveHistoryTest(const EngineOptions& options) : c_(options) {
    c_.Queue("q", 8);
    c_.Node("n1", 4);
    c_.Node("n2", 4);
    c_.Pod(Job("fixed", "q", 1, 1).Preemptible(false).On("n1"));
    c_.Group(PreemptibleGroup("moved", "q", 1, 2));
    c_.Pod(Job("big", "q", 4, 3));
  }
  void Remove(absl::string_view pod) {
    c_.state().RemovePod("ns", pod, absl::StrCat("uid-ns-", pod));
  }
  // Consolidation moves the pod, and its controller creates `next`, which starts on n2 again.
  void Move(absl::string_view pod, absl::string_view next, int64_t at) {
    c_.Run(at);
    ASSERT_THAT(c_.Evicted(), ElementsAre(absl::StrCat("consolidation:", pod, ">n1")));
    Remove(pod);
    c_.Pod(Started(Member(next, "moved"), "n2", at));
  }

  Cluster c_;
};

// A young gang is one workload to look at, however many pods it has.
TEST_F(MoveHistoryTest, AYoungGangDoesNotProtectOlderPods) {
  c_.Pod(Started(Member("a", "moved"), "n2", 0));
  c_.Node("n3", 0);  // n1 has places for 110 pods
  c_.Group(PreemptibleGroup("young", "q", 1, 4));
  for (size_t i = 0; i <= LeafVictims::kMaxTooYoung; ++i) {
    c_.Pod(Started(Member(absl::StrCat("y", i), "young").Gpus(0), "n3", 100));
  }
  c_.Run(101);
  EXPECT_THAT(c_.Evicted(), ElementsAre("consolidation:a>n1"));
}

TEST_F(MoveHistoryTest, AYoungPodIsNotMoved) {
  c_.Pod(Started(Member("a", "moved"), "n2", 100));
  EXPECT_EQ(c_.Run(101).wake_at, At(160));
  EXPECT_THAT(c_.Evicted(), IsEmpty());
  c_.Run(159);
  EXPECT_THAT(c_.Evicted(), IsEmpty());
  c_.Run(160);
  EXPECT_THAT(c_.Evicted(), ElementsAre("consolidation:a>n1"));
}

TEST_F(MoveHistoryTest, ALonePodIsProtectedToo) {
  c_.Pod(Started(Job("lone", "q", 1, 3), "n2", 100));
  c_.Run(159);
  EXPECT_THAT(c_.Evicted(), IsEmpty());
  c_.Run(160);
  EXPECT_THAT(c_.Evicted(), ElementsAre("consolidation:lone>n1"));
}

TEST_F(MoveHistoryTest, AWorkloadThatWasMovedIsMovedLessAndLessOften) {
  c_.Pod(Started(Member("p0", "moved"), "n2", 0));
  int64_t now = 60;
  int64_t runtime = 60;
  for (int i = 0; i < 10; ++i) {
    SCOPED_TRACE(i);
    Move(absl::StrCat("p", i), absl::StrCat("p", i + 1), now);
    if (i < MoveHistory::kMostDoublings) runtime *= 2;
    EXPECT_EQ(c_.Run(now + 1).wake_at, At(now + runtime));
    EXPECT_THAT(c_.Evicted(), IsEmpty());
    now += runtime;
  }
}

TEST_F(MoveHistoryTest, MovesAreForgotten) {
  c_.Pod(Started(Member("p0", "moved"), "n2", 0));
  Move("p0", "p1", 60);
  Move("p1", "p2", 180);
  // Its removal is seen in the next cycle, at 420; from then on it counts for 128 minutes.
  Move("p2", "p3", 420);
  c_.Run(421);
  const int64_t later = 421 + 128 * 60;
  Remove("p3");
  c_.Pod(Started(Member("p4", "moved"), "n2", later));
  EXPECT_EQ(c_.Run(later + 1).wake_at, At(later + 60));
}

TEST_F(MoveHistoryTest, ADecisionThatIsTakenBackIsNoMove) {
  c_.Pod(Started(Member("a", "moved"), "n2", 100));
  for (int i = 0; i < 3; ++i) {
    c_.Run(160 + i);
    ASSERT_THAT(c_.Evicted(), ElementsAre("consolidation:a>n1"));
    c_.state().ForgetEviction(c_.state().FindPod("ns", "a"));
  }
}

TEST_F(MoveHistoryTest, AnotherGroupOfTheNameBeginsAnew) {
  c_.Pod(Started(Member("p0", "moved"), "n2", 0));
  Move("p0", "p1", 60);
  c_.Run(61);
  Remove("p1");
  c_.state().RemovePodGroup("ns", "moved", "");
  model::PodGroup group = PreemptibleGroup("moved", "q", 1, 2);
  group.meta.uid = "another";
  c_.Group(group);
  c_.Pod(Started(Member("p2", "moved"), "n2", 70));
  EXPECT_EQ(c_.Run(71).wake_at, At(130));
}

// Of an elastic gang pods that have run long enough may be moved; its minimum goes last.
TEST_F(MoveHistoryTest, EachPodAboveTheMinimumHasItsOwnStart) {
  c_.Queue("q", 12);
  c_.Pod(Started(Member("core", "moved"), "n2", 0));
  c_.Pod(Started(Member("young", "moved"), "n2", 100));
  c_.Run(120);
  EXPECT_THAT(c_.Evicted(), IsEmpty()) << "the minimum is not moved away from an extra pod";
  c_.Run(160);
  EXPECT_THAT(c_.Evicted(), ElementsAre("consolidation:core>n1", "consolidation:young>n1"));
}

TEST_F(MoveHistoryTest, AStartInTheFarFutureProtectsNothing) {
  c_.Pod(Started(Member("a", "moved"), "n2", 1'000'000));
  c_.Run(100);
  EXPECT_THAT(c_.Evicted(), ElementsAre("consolidation:a>n1"));
}

// A clock that was ahead has written one of them.
TEST_F(MoveHistoryTest, AStartInTheFarFutureProtectsOtherPodsNoLess) {
  c_.Group(PreemptibleGroup("moved", "q", 2, 2));
  c_.Pod(Started(Member("a", "moved"), "n2", 1'000'000));
  c_.Pod(Started(Member("b", "moved"), "n2", 100));
  c_.Run(101);
  EXPECT_THAT(c_.Evicted(), IsEmpty());
  c_.Run(161);
  EXPECT_THAT(c_.Evicted(), ElementsAre("consolidation:a>n1", "consolidation:b>n1"));
}

TEST_F(MoveHistoryTest, ReclaimDoesNotWait) {
  c_.Queue("q", 4);
  c_.Queue("other", 4);
  Remove("big");
  c_.Pod(Started(Member("a", "moved").Gpus(4), "n2", 100));
  c_.Pod(Job("entitled", "other", 4, 3));
  c_.Run(101);
  EXPECT_THAT(c_.Evicted(), ElementsAre("reclaim:a"));
}

class NoMinimumRuntimeTest : public MoveHistoryTest {
 protected:
  NoMinimumRuntimeTest() : MoveHistoryTest(Options()) {}
  static EngineOptions Options() {
    EngineOptions options;
    options.consolidation_min_runtime = absl::ZeroDuration();
    return options;
  }
};

TEST_F(NoMinimumRuntimeTest, PodsAreMovedAtAnyTime) {
  c_.Pod(Started(Member("p0", "moved"), "n2", 100));
  for (int i = 0; i < 3; ++i) Move(absl::StrCat("p", i), absl::StrCat("p", i + 1), 100 + i);
}

}  // namespace
}  // namespace fairlead::engine
