// The statuses of KAI's controllers, with Options::kai_status: what is counted, and what becomes of
// writes that fail. That the counts are KAI's own on a cluster of KAI's is in takeover_test.cc.
#include <gmock/gmock.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "core/reconcile/kai_statuses.h"

namespace fairlead::core::testing {
namespace {

using model::KaiCounts;
using model::SetKaiStatus;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Amounts = model::ResourceList;

class KaiStatusTest : public DecisionLoopTest {
 protected:
  KaiStatusTest() {
    options_.hook.enabled = false;
    options_.kai_status = true;
    Begin();
  }
  void Begin() {
    Restart();
    SyncAll();
    at_ = At(0);
    written_.clear();
    queues_.clear();
    groups_.clear();
  }
  void PutQueue(const model::Queue& queue) {
    queues_[queue.meta.name] = queue;
    Put(queue);
  }
  void PutGroup(const model::PodGroup& group) {
    groups_[model::Key(group.meta)] = group;
    Put(group);
  }
  static PodBuilder Member(absl::string_view name, absl::string_view group) {
    return PodBuilder("ns", name).Gpus(1).Group(group);
  }
  // The API server's object after the write.
  void ShowWritten(const SetKaiStatus& write) {
    if (write.kind == model::Kind::kQueue) {
      model::Queue& queue = queues_.at(write.name);
      queue.status = write.counts;
      queue.child_queues = write.child_queues;
      Put(queue);
    } else {
      model::PodGroup& group = groups_.at(model::Key(write.ns, write.name));
      group.resources_status = write.counts;
      Put(group);
    }
  }
  // Answers all, and shows what is written.
  bool Take(const StepResult& result) {
    AnswerAll(result);
    for (const SetKaiStatus& write : Of<SetKaiStatus>(result)) {
      written_[model::Key(write.ns, write.name)] = write;
      ++writes_;
      ShowWritten(write);
    }
    return !Of<SetKaiStatus>(result).empty();
  }
  // Steps as they are asked for, every write answered and shown, until nothing has been written for
  // three seconds. What was written last by name.
  void Settle() {
    for (absl::Time quiet = at_ + absl::Seconds(3); at_ < quiet;) {
      const StepResult result = StepAt(at_);
      if (Take(result)) quiet = at_ + absl::Seconds(3);
      at_ = std::min(std::max(result.wake_at, at_ + absl::Milliseconds(1)), quiet);
    }
  }
  const SetKaiStatus& Written(const std::string& name) {
    EXPECT_TRUE(written_.contains(name)) << name;
    return written_[name];
  }

  absl::Time at_ = At(0);
  std::map<std::string, SetKaiStatus> written_;
  std::map<std::string, model::Queue> queues_;
  std::map<std::string, model::PodGroup> groups_;
  int writes_ = 0;
};

TEST_F(KaiStatusTest, CountsPodsByWhatTheApiServerShows) {
  PutQueue(MakeQueue("q", "", kUnlimited, kUnlimited));
  PutGroup(MakeGroup("ns", "g", "q", 1));
  Put(MakeNode("n", 4));
  Put(Member("runs", "g").On("n").Build());
  Put(Member("starts", "g").On("n", model::PodPhase::kPending).Build());
  Put(Member("terminates", "g").On("n").Deleting().Build());
  Put(Member("gated", "g").Gate("wait").Build());
  Put(Member("done", "g").On("n", model::PodPhase::kSucceeded).Build());
  Put(Member("failed", "g").On("n", model::PodPhase::kFailed).Build());
  Settle();
  const KaiCounts& group = Written("ns/g").counts;
  EXPECT_EQ(
      group.allocated,
      (Amounts{{"cpu", 3000}, {"memory", 3 * model::testing::kGiB}, {"nvidia.com/gpu", 3000}}));
  EXPECT_EQ(
      group.requested,
      (Amounts{{"cpu", 4000}, {"memory", 4 * model::testing::kGiB}, {"nvidia.com/gpu", 4000}}));
  EXPECT_THAT(group.allocated_non_preemptible, IsEmpty());
  EXPECT_EQ(Written("q").counts, group);
  EXPECT_THAT(Written("q").child_queues, IsEmpty());
  EXPECT_EQ(Written("q").uid, "uid-q");
  EXPECT_EQ(Written("ns/g").uid, "uid-group-ns-g");
  EXPECT_EQ(writes_, 2) << "each once";
}

TEST_F(KaiStatusTest, WhatWasOnlyDecidedIsNotAllocated) {
  PutQueue(MakeQueue("q", "", kUnlimited, kUnlimited));
  PutGroup(MakeGroup("ns", "g", "q", 1));
  Put(MakeNode("n", 4));
  Put(Member("p", "g").Build());
  const StepResult result = StepAt(at_);
  ASSERT_THAT(BoundIn(result), ElementsAre("p"));
  Take(result);
  Settle();  // the watch does not show the pod on its node
  EXPECT_THAT(Written("ns/g").counts.allocated, IsEmpty());
  EXPECT_EQ(model::Get(Written("ns/g").counts.requested, model::kGpuName), 1000);
  Put(Member("p", "g").On("n", model::PodPhase::kPending).Build());
  Settle();
  EXPECT_EQ(model::Get(Written("ns/g").counts.allocated, model::kGpuName), 1000);
}

TEST_F(KaiStatusTest, QueuesSumTheirChildrenAndNameThem) {
  PutQueue(MakeQueue("top", "", kUnlimited, kUnlimited));
  PutQueue(MakeQueue("b", "top", kUnlimited, kUnlimited));
  PutQueue(MakeQueue("a", "top", kUnlimited, kUnlimited));
  Put(MakeNode("n", 8));
  PutGroup(MakeGroup("ns", "ga", "a", 1));
  PutGroup(MakeGroup("ns", "gb", "b", 1));
  Put(Member("p0", "ga").On("n").Build());
  Put(Member("p1", "gb").On("n").Preemptible(false).Build());
  Put(PodBuilder("ns", "lone").Queue("b").Gpus(2).On("n").Build());
  Settle();
  EXPECT_THAT(Written("top").child_queues, ElementsAre("a", "b"));
  const auto gpus = [&](const char* queue) {
    return model::Get(Written(queue).counts.allocated, model::kGpuName);
  };
  EXPECT_EQ(gpus("a"), 1000);
  EXPECT_EQ(gpus("b"), 3000) << "a pod without a PodGroup counts for its queue";
  EXPECT_EQ(gpus("top"), 4000);

  model::Queue moved = queues_.at("b");
  moved.parent = "a";
  PutQueue(moved);
  Settle();
  EXPECT_THAT(Written("top").child_queues, ElementsAre("a"));
  EXPECT_THAT(Written("a").child_queues, ElementsAre("b"));
  EXPECT_EQ(gpus("a"), 4000);
  EXPECT_EQ(gpus("top"), 4000);

  model::PodGroup other = groups_.at("ns/gb");
  other.queue = "top";
  PutGroup(other);
  Settle();
  EXPECT_EQ(gpus("b"), 2000);
  EXPECT_EQ(gpus("top"), 4000);

  loop_->Apply(model::Delete{model::Kind::kQueue, "", "b", "uid-b"});
  queues_.erase("b");
  Settle();
  EXPECT_THAT(Written("a").child_queues, IsEmpty());
  EXPECT_EQ(gpus("a"), 1000);
  EXPECT_EQ(gpus("top"), 2000);
}

TEST_F(KaiStatusTest, QueuesOnACycleEnd) {
  PutQueue(MakeQueue("a", "b", kUnlimited, kUnlimited));
  PutQueue(MakeQueue("b", "a", kUnlimited, kUnlimited));
  Put(MakeNode("n", 1));
  Put(PodBuilder("ns", "p").Queue("a").Gpus(1).On("n").Build());
  Settle();
  for (const char* queue : {"a", "b"}) {
    EXPECT_EQ(model::Get(Written(queue).counts.allocated, model::kGpuName), 1000) << queue;
  }
}

TEST_F(KaiStatusTest, SharesCountAsByKai) {
  PutQueue(MakeQueue("q", "", kUnlimited, kUnlimited));
  model::Node node = MakeNode("n", 8);
  node.meta.labels.Set(model::kGpuMemoryLabel, "81559");
  Put(node);
  PutGroup(MakeGroup("ns", "fraction", "q", 1));
  PutGroup(MakeGroup("ns", "memory", "q", 1));
  for (const char* group : {"a", "b"}) {
    Put(PodBuilder(model::kReservationNamespace, absl::StrCat("reservation-", group))
            .Gpus(1)
            .Label(model::kGpuGroupLabel, group)
            .On("n")
            .Build());
  }
  Put(PodBuilder("ns", "f").GpuFraction(400, 2).Group("fraction").On("n").Build());
  Put(PodBuilder("ns", "m")
          .GpuMemory(20000)
          .Group("memory")
          .Label(model::kGpuGroupLabel, "a")
          .On("n")
          .Build());
  Settle();
  const auto amounts = [&](const char* group, const char* resource) {
    const KaiCounts& counts = Written(group).counts;
    return std::pair(model::Get(counts.allocated, resource),
                     model::Get(counts.requested, resource));
  };
  EXPECT_EQ(amounts("ns/fraction", model::kGpuName), std::pair(int64_t{400}, int64_t{800}));
  // 20000 / 81559 = 0.24522, rounded up.
  EXPECT_EQ(amounts("ns/memory", model::kGpuName), std::pair(int64_t{246}, int64_t{0}));
  EXPECT_EQ(amounts("ns/memory", "run.ai/gpu.memory"), std::pair(int64_t{0}, int64_t{20000}));
}

TEST_F(KaiStatusTest, ThePriorityClassDecidesWhatIsNonPreemptible) {
  PutQueue(MakeQueue("q", "", kUnlimited, kUnlimited));
  model::PodGroup group = MakeGroup("ns", "g", "q", 1);
  group.priority_class_name = "important";
  PutGroup(group);
  Put(MakeNode("n", 1));
  Put(Member("p", "g").On("n").Build());
  model::PriorityClass priority;
  priority.meta.name = "important";
  priority.value = 100;
  Put(priority);
  Settle();
  EXPECT_EQ(Written("ns/g").counts.allocated_non_preemptible, Written("ns/g").counts.allocated);
  EXPECT_EQ(Written("q").counts.allocated_non_preemptible, Written("q").counts.allocated);
  priority.value = 99;
  Put(priority);
  Settle();
  EXPECT_THAT(Written("ns/g").counts.allocated_non_preemptible, IsEmpty());
  EXPECT_THAT(Written("q").counts.allocated_non_preemptible, IsEmpty());
}

TEST_F(KaiStatusTest, NothingIsWrittenUnlessItIsOn) {
  options_.kai_status = false;
  Begin();
  PutQueue(MakeQueue("q", "", kUnlimited, kUnlimited));
  PutGroup(MakeGroup("ns", "g", "q", 1));
  Put(Member("p", "g").Build());
  Settle();
  EXPECT_THAT(written_, IsEmpty());
}

TEST_F(KaiStatusTest, ASuccessorWritesNothingThatIsThere) {
  model::Queue queue = MakeQueue("q", "", kUnlimited, kUnlimited);
  // In another order, and with a zero, as another writer may have it.
  queue.status = KaiCounts{{}, {{"cpu", 0}}, {{"memory", model::testing::kGiB}, {"cpu", 1000}}};
  queue.child_queues = {"z", "c"};
  PutQueue(queue);
  for (const char* child : {"c", "z"}) {
    PutQueue(MakeQueue(child, "q", kUnlimited, kUnlimited));
  }
  Put(PodBuilder("ns", "p").Queue("q").Build());
  Settle();
  EXPECT_THAT(written_, IsEmpty());
}

TEST_F(KaiStatusTest, AllWritesTogetherHaveAPace) {
  constexpr int kObjects = 12;
  for (int i = 0; i < kObjects; ++i) {
    PutQueue(MakeQueue(absl::StrCat("q", i), "", kUnlimited, kUnlimited));
    PutGroup(MakeGroup("ns", absl::StrCat("g", i), absl::StrCat("q", i), 1));
    Put(Member(absl::StrCat("p", i), absl::StrCat("g", i)).Build());
  }
  std::vector<absl::Time> times;
  std::set<std::string> first;  // of the first four writes: kinds
  for (absl::Time at = At(0); at < At(8); at += absl::Milliseconds(10)) {
    const StepResult result = StepAt(at);
    AnswerAll(result);
    for (const SetKaiStatus& write : Of<SetKaiStatus>(result)) {
      times.push_back(at);
      if (times.size() <= 2) first.insert(model::KindTitle(write.kind));
      ShowWritten(write);
    }
  }
  ASSERT_THAT(times, SizeIs(2 * kObjects));
  EXPECT_THAT(first, SizeIs(2)) << "queues and groups take turns";
  for (size_t i = 5; i < times.size(); ++i) {
    EXPECT_GE(times[i] - times[i - 5], absl::Seconds(1)) << i;
  }
  EXPECT_LE(times.back(), At(5)) << "and none waits for longer than that";
}

TEST_F(KaiStatusTest, NumbersThatPassAreNotWritten) {
  PutQueue(MakeQueue("q", "", kUnlimited, kUnlimited));
  PutGroup(MakeGroup("ns", "g", "q", 1));
  Settle();
  EXPECT_EQ(writes_, 0);
  for (int i = 0; i < 20; ++i) {
    Put(Member(absl::StrCat("p", i), "g").Build());
    Take(StepAt(at_));
    at_ += absl::Milliseconds(5);
  }
  Settle();
  EXPECT_LE(writes_, 4) << "the first numbers and the last ones, of two objects";
  EXPECT_EQ(model::Get(Written("ns/g").counts.requested, model::kGpuName), 20'000);
}

TEST_F(KaiStatusTest, AFailedWriteIsRepeatedAfterAPause) {
  for (const absl::Status& answer :
       {absl::PermissionDeniedError("403"), absl::UnavailableError("no answer"),
        absl::AbortedError("429"), absl::FailedPreconditionError("409")}) {
    SCOPED_TRACE(answer.ToString());
    Begin();
    PutQueue(MakeQueue("q", "", kUnlimited, kUnlimited));
    Put(PodBuilder("ns", "p").Queue("q").Build());
    StepResult result = Step(10);
    ASSERT_THAT(Of<SetKaiStatus>(result), SizeIs(1));
    const SetKaiStatus first = Of<SetKaiStatus>(result)[0];
    AnswerThe<SetKaiStatus>(result, answer);
    result = Step(10);
    EXPECT_THAT(Of<SetKaiStatus>(result), IsEmpty());
    ASSERT_GT(result.wake_at, At(10));
    ASSERT_LE(result.wake_at, At(15));
    result = StepsTo<SetKaiStatus>(result, At(20));
    ASSERT_THAT(Of<SetKaiStatus>(result), SizeIs(1));
    EXPECT_EQ(Of<SetKaiStatus>(result)[0].counts, first.counts);
    AnswerAll(result);
    ShowWritten(Of<SetKaiStatus>(result)[0]);
    for (int at = 21; at < 40; ++at) EXPECT_THAT(Of<SetKaiStatus>(Step(at)), IsEmpty());
  }
}

TEST_F(KaiStatusTest, OneAttemptIsInFlight) {
  PutQueue(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(PodBuilder("ns", "p0").Queue("q").Build());
  StepResult result = Step(10);
  ASSERT_THAT(Of<SetKaiStatus>(result), SizeIs(1));
  for (int i = 1; i < 10; ++i) {
    Put(PodBuilder("ns", absl::StrCat("p", i)).Queue("q").Build());
    const StepResult next = Step(10 + 2 * i);
    EXPECT_THAT(Of<SetKaiStatus>(next), IsEmpty()) << "the first has no answer";
    AnswerAll(next);
  }
  AnswerAll(result);
  result = Step(30);
  ASSERT_THAT(Of<SetKaiStatus>(result), SizeIs(1));
  EXPECT_EQ(model::Get(Of<SetKaiStatus>(result)[0].counts.requested, "cpu"), 10'000);
}

TEST_F(KaiStatusTest, ALostAnswerWhoseEffectIsSeenEndsTheWrite) {
  PutQueue(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(PodBuilder("ns", "p").Queue("q").Build());
  const StepResult result = Step(10);
  ASSERT_THAT(Of<SetKaiStatus>(result), SizeIs(1));
  AnswerThe<SetKaiStatus>(result, absl::UnavailableError("lost"));
  Step(10);
  ShowWritten(Of<SetKaiStatus>(result)[0]);
  for (int at = 11; at < 60; ++at) EXPECT_THAT(Of<SetKaiStatus>(Step(at)), IsEmpty());
}

TEST_F(KaiStatusTest, WhatTheServerCallsInvalidWaitsForAnotherStatus) {
  for (const absl::Status& answer :
       {absl::InvalidArgumentError("422"), absl::NotFoundError("404")}) {
    SCOPED_TRACE(answer.ToString());
    Begin();
    PutQueue(MakeQueue("q", "", kUnlimited, kUnlimited));
    Put(PodBuilder("ns", "p").Queue("q").Build());
    StepResult result = Step(10);
    ASSERT_THAT(Of<SetKaiStatus>(result), SizeIs(1));
    AnswerThe<SetKaiStatus>(result, answer);
    for (int at = 11; at < 60; ++at) EXPECT_THAT(Of<SetKaiStatus>(Step(at)), IsEmpty());
    Put(PodBuilder("ns", "other").Queue("q").Build());
    result = Step(60);
    ASSERT_THAT(Of<SetKaiStatus>(result), SizeIs(1));
    EXPECT_EQ(model::Get(Of<SetKaiStatus>(result)[0].counts.requested, "cpu"), 2000);
  }
}

TEST_F(KaiStatusTest, AnotherObjectOfTheNameIsWrittenAnew) {
  PutQueue(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(PodBuilder("ns", "p").Queue("q").Build());
  const StepResult result = Step(10);
  ASSERT_THAT(Of<SetKaiStatus>(result), SizeIs(1));
  model::Queue other = MakeQueue("q", "", kUnlimited, kUnlimited);
  other.meta.uid = "another";
  PutQueue(other);
  const StepResult next = Step(11);
  ASSERT_THAT(Of<SetKaiStatus>(next), SizeIs(1));
  EXPECT_EQ(Of<SetKaiStatus>(next)[0].uid, "another");
  // The answer about the former one says nothing.
  AnswerThe<SetKaiStatus>(result, absl::PermissionDeniedError("403"));
  AnswerAll(next);
  ShowWritten(Of<SetKaiStatus>(next)[0]);
  for (int at = 15; at < 30; ++at) EXPECT_THAT(Of<SetKaiStatus>(Step(at)), IsEmpty());
}

TEST_F(KaiStatusTest, AnOverwrittenStatusIsWrittenAgain) {
  PutQueue(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(PodBuilder("ns", "p").Queue("q").Build());
  Settle();
  const KaiCounts ours = Written("q").counts;
  model::Queue other = queues_.at("q");
  other.status = KaiCounts{{{"cpu", 5}}, {}, {}};
  PutQueue(other);
  written_.clear();
  Settle();
  EXPECT_EQ(Written("q").counts, ours);
}

// Sums by whatever way the objects came are those of the objects that there are.
TEST_F(KaiStatusTest, SumsAreThoseOfARecount) {
  std::mt19937_64 random(20261129);
  const auto below = [&](size_t n) { return random() % n; };
  Put(MakeNode("n", 1000, 100'000, 100'000));
  std::map<std::string, std::string> parents;
  for (int i = 0; i < 6; ++i) {
    parents[absl::StrCat("q", i)] = i == 0 ? "" : absl::StrCat("q", below(static_cast<size_t>(i)));
    PutQueue(
        MakeQueue(absl::StrCat("q", i), parents[absl::StrCat("q", i)], kUnlimited, kUnlimited));
  }
  std::map<std::string, std::string> groups;                 // their queues
  std::map<std::string, std::pair<std::string, bool>> pods;  // group, on its node
  for (int round = 0; round < 300; ++round) {
    const std::string group = absl::StrCat("g", below(8)), pod = absl::StrCat("p", below(30));
    switch (below(5)) {
      case 0:
        groups[group] = absl::StrCat("q", below(6));
        PutGroup(MakeGroup("ns", group, groups[group], 1));
        break;
      case 1:
      case 2:
        if (groups.contains(group)) {
          loop_->Apply(model::Delete{model::Kind::kPod, "ns", pod, ""});
          pods[pod] = {group, below(2) == 0};
          PodBuilder made = Member(pod, group).Gate("hold");
          if (pods[pod].second) made = Member(pod, group).On("n");
          Put(made.Build());
        }
        break;
      case 3:
        loop_->Apply(model::Delete{model::Kind::kPod, "ns", pod, ""});
        pods.erase(pod);
        break;
      default: {
        const size_t child = 1 + below(5);
        const std::string name = absl::StrCat("q", child);
        parents[name] = absl::StrCat("q", below(child));
        model::Queue queue = queues_.at(name);
        queue.parent = parents[name];
        PutQueue(queue);
      }
    }
    if (round % 30 != 29) continue;
    Settle();
    std::map<std::string, std::pair<int64_t, int64_t>> expected;  // allocated, requested
    for (const auto& [name, where] : pods) {
      for (std::string queue = groups.at(where.first); !queue.empty(); queue = parents[queue]) {
        expected[queue].first += where.second ? 1000 : 0;
        expected[queue].second += 1000;
      }
    }
    for (const auto& [name, queue] : queues_) {
      const KaiCounts counts = queue.status.value_or(KaiCounts());
      EXPECT_EQ(model::Get(counts.allocated, model::kGpuName), expected[name].first) << name;
      EXPECT_EQ(model::Get(counts.requested, model::kGpuName), expected[name].second) << name;
    }
  }
}

}  // namespace
}  // namespace fairlead::core::testing
