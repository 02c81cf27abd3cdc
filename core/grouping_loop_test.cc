// The decision loop groups pods by their owners (core/pod_grouper.h): what it reads and writes, in
// which order, and what it does not schedule meanwhile.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "core/pod_grouper.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kJob[] =
    R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","uid":"u-j",)"
    R"("annotations":{"kai.scheduler/batch-min-member":"2"}},)"
    R"("spec":{"parallelism":2}})";
constexpr char kSingle[] = R"({"metadata":{"name":"j","uid":"u-j"},"spec":{"parallelism":1}})";
constexpr char kGroup[] = "pg-j-u-j";

class GroupingLoopTest : public NoHookTest {
 protected:
  GroupingLoopTest() {
    options_.grouping.enabled = true;
    options_.grouping.table =
        std::make_shared<const grouping::KindTable>(grouping::KindTable::BuiltIn());
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    Put(MakeNode("n", 8));
  }
  static model::Pod OfJob(const std::string& name, int64_t created = 10) {
    model::Pod pod = PodBuilder("ns", name).Queue("q").Gpus(1).Created(created).Build();
    pod.meta.owners.push_back({"batch/v1", "Job", "j", "u-j", true});
    return pod;
  }
  static model::Pod Named(model::Pod pod) {
    pod.meta.annotations.Set(model::kPodGroupAnnotation, kGroup);
    return pod;
  }
  static model::PodGroup GroupOfJob(int32_t minimum) {
    model::PodGroup group = MakeGroup("ns", kGroup, "q", minimum);
    group.meta.uid = "u-group";
    group.meta.annotations.Set(model::kFollowsOwnerAnnotation, "true");
    return group;
  }
  template <typename T>
  uint64_t IdOf(const StepResult& result) {
    for (const Action& action : result.actions) {
      if (std::holds_alternative<T>(action.what)) return action.id;
    }
    ADD_FAILURE() << "no such action";
    return 0;
  }
  void AnswerRead(const StepResult& result, const std::string& object) {
    model::ActionResult answer{IdOf<model::ReadObject>(result), absl::OkStatus()};
    answer.object = std::make_shared<const std::string>(object);
    loop_->Apply(answer);
  }
  template <typename T>
  void AnswerOne(const StepResult& result, absl::Status status) {
    loop_->Apply(model::ActionResult{IdOf<T>(result), std::move(status)});
  }
};

TEST_F(GroupingLoopTest, APodIsNotScheduledBeforeItsGroupIsKnownAndNamed) {
  Put(OfJob("a"));
  Put(OfJob("b"));
  StepResult result = Step(10);
  const auto reads = Of<model::ReadObject>(result);
  ASSERT_THAT(reads, SizeIs(1)) << "both pods have one owner";
  EXPECT_EQ(reads[0].name, "j");
  EXPECT_THAT(BoundIn(result), IsEmpty());
  AnswerRead(result, kJob);
  result = Step(10);
  auto groups = Of<model::WritePodGroup>(result);
  ASSERT_THAT(groups, SizeIs(1));
  const model::PodGroup& made = groups[0].group;
  EXPECT_EQ(made.meta.name, kGroup);
  EXPECT_EQ(made.meta.ns, "ns");
  EXPECT_EQ(made.meta.uid, "") << "it is created";
  EXPECT_EQ(made.min_member, 2);
  EXPECT_EQ(made.queue, "q");
  EXPECT_THAT(Of<model::SetPodGroup>(result), IsEmpty()) << "the group is not there yet";
  AnswerOne<model::WritePodGroup>(result, absl::OkStatus());
  EXPECT_THAT(Of<model::WritePodGroup>(Step(10)), IsEmpty());
  Put(GroupOfJob(2));
  result = Step(11);
  const auto named = Of<model::SetPodGroup>(result);
  ASSERT_THAT(named, SizeIs(2));
  EXPECT_EQ(named[0].name, "a");
  EXPECT_EQ(named[0].uid, OfJob("a").meta.uid);
  EXPECT_EQ(named[0].group, kGroup);
  EXPECT_THAT(BoundIn(result), IsEmpty());
  EXPECT_THAT(Of<model::SetPodUnschedulable>(result), IsEmpty()) << "nothing is told yet";
  Put(Named(OfJob("a")));
  EXPECT_THAT(BoundIn(Step(11)), IsEmpty()) << "the gang needs two";
  Put(Named(OfJob("b")));
  EXPECT_THAT(BoundIn(Step(11)), SizeIs(2));
}

// The label stands on the owner alone, as KAI's users have it.
class GroupingShardTest : public GroupingLoopTest {
 protected:
  static constexpr char kJobOfA[] =
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","uid":"u-j",)"
      R"("labels":{"kai.scheduler/node-pool":"a"},)"
      R"("annotations":{"kai.scheduler/batch-min-member":"2"}},)"
      R"("spec":{"parallelism":2}})";
  void Start(const std::string& shard) {
    options_.shard = Shard{shard};
    Restart();
    SyncAll();
    for (const std::string pool : {"", "a"}) {
      Put(Labelled(MakeQueue(absl::StrCat("q", pool), "", kUnlimited, kUnlimited), pool));
      Put(Labelled(MakeNode(absl::StrCat("n", pool), 8), pool));
    }
  }
  template <typename T>
  static T Labelled(T object, const std::string& pool) {
    if (!pool.empty()) object.meta.labels.Set(model::kNodePoolLabel, pool);
    return object;
  }
  static model::Pod OfA(const std::string& name) {
    model::Pod pod = OfJob(name);
    pod.meta.labels.Set(model::kQueueLabel, "qa");
    return pod;
  }
};

TEST_F(GroupingShardTest, TheShardThatTheOwnerNamesMakesTheGroup) {
  for (const std::string shard : {"", "a"}) {
    SCOPED_TRACE(absl::StrCat("shard \"", shard, "\""));
    Start(shard);
    Put(OfA("a"));
    Put(OfA("b"));
    StepResult result = Step(10);
    AnswerRead(result, kJobOfA);
    result = Step(10);
    const auto groups = Of<model::WritePodGroup>(result);
    ASSERT_THAT(groups, SizeIs(shard == "a" ? 1 : 0));
    if (shard == "a") {
      EXPECT_EQ(groups[0].group->meta.labels.Get(model::kNodePoolLabel), "a");
      AnswerOne<model::WritePodGroup>(result, absl::OkStatus());
    }
    model::PodGroup group = Labelled(GroupOfJob(2), "a");
    group.queue = "qa";
    Put(group);
    EXPECT_THAT(Of<model::SetPodGroup>(Step(11)), SizeIs(shard == "a" ? 2 : 0));
    Put(Named(OfA("a")));
    Put(Named(OfA("b")));
    std::set<std::string> nodes;
    for (const auto& bind : Of<model::BindPod>(Step(12))) nodes.insert(bind.node);
    EXPECT_EQ(nodes, shard == "a" ? std::set<std::string>{"na"} : std::set<std::string>());
    for (int64_t at = 13; at < 40; ++at) {
      EXPECT_THAT(Of<model::SetPodUnschedulable>(Step(at)), IsEmpty());
    }
  }
}

// Only the shard that the pod's own label names tells of it meanwhile.
TEST_F(GroupingShardTest, UntilTheOwnerIsReadOneShardTellsOfThePod) {
  for (const std::string shard : {"", "a"}) {
    Start(shard);
    Put(OfA("a"));
    bool told = false;
    for (int64_t at = 10; at < 20; ++at) {
      const StepResult result = Step(at);
      for (size_t i = 0; i < result.actions.size(); ++i) {
        if (std::holds_alternative<model::ReadObject>(result.actions[i].what)) {
          Answer(result, i, absl::UnavailableError("no answer"));
        }
      }
      told |= !Of<model::SetPodUnschedulable>(result).empty();
    }
    EXPECT_EQ(told, shard.empty());
  }
}

TEST_F(GroupingShardTest, ALonePodIsOfTheShardOfItsOwnLabel) {
  for (const std::string shard : {"", "a"}) {
    Start(shard);
    Put(Labelled(OfA("p"), "a"));
    StepResult result = Step(10);
    AnswerRead(result, kSingle);
    EXPECT_THAT(BoundIn(Step(10)), SizeIs(shard == "a" ? 1 : 0));
    Put(Labelled(OfA("p"), "a"));  // another look changes nothing
    EXPECT_THAT(BoundIn(Step(11)), IsEmpty());
  }
}

// Its users have moved the group: the owner's shard puts the pods into it, and the group's has
// them.
TEST_F(GroupingShardTest, AGroupThatItsUsersHaveMovedKeepsItsShard) {
  Start("a");
  Put(Labelled(GroupOfJob(2), "b"));
  Put(OfA("a"));
  StepResult result = Step(10);
  AnswerRead(result, kJobOfA);
  result = Step(10);
  EXPECT_THAT(Of<model::WritePodGroup>(result), IsEmpty());
  EXPECT_THAT(Of<model::SetPodGroup>(result), SizeIs(1));
  Put(Named(OfA("a")));
  EXPECT_THAT(BoundIn(Step(12)), IsEmpty());
}

TEST_F(GroupingLoopTest, ALonePodIsBoundWithoutAGroupAndWithoutTimeToSettle) {
  Put(MakeGroup("ns", "elsewhere", "q", 1));  // a pod-grouper seems to be there
  Put(OfJob("a"));
  StepResult result = Step(10);
  AnswerRead(result, R"({"metadata":{"name":"j","uid":"u-j"},"spec":{"parallelism":1}})");
  result = Step(10);
  EXPECT_THAT(BoundIn(result), ElementsAre("a"));
  EXPECT_THAT(Of<model::WritePodGroup>(result), IsEmpty());
  EXPECT_THAT(Of<model::SetPodGroup>(result), IsEmpty());
}

TEST_F(GroupingLoopTest, APodWithoutOwnersIsBoundAtOnceAndNothingIsRead) {
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1));
  const StepResult result = Step(10);
  EXPECT_THAT(BoundIn(result), ElementsAre("p"));
  EXPECT_THAT(Of<model::ReadObject>(result), IsEmpty());
}

TEST_F(GroupingLoopTest, APodThatNamesAGroupIsLeftAlone) {
  Put(MakeGroup("ns", "mine", "q", 1));
  model::Pod pod = OfJob("a");
  pod.meta.annotations.Set(model::kPodGroupAnnotation, "mine");
  Put(pod);
  const StepResult result = Step(10);
  EXPECT_THAT(BoundIn(result), ElementsAre("a"));
  EXPECT_THAT(Of<model::ReadObject>(result), IsEmpty());
}

TEST_F(GroupingLoopTest, AnOwnerThatMayNotBeReadIsToldAndNotGuessed) {
  Put(OfJob("a"));
  StepResult result = Step(10);
  AnswerOne<model::ReadObject>(
      result, absl::PermissionDeniedError("Job ns/j: may not be read\nadd a rule: get jobs"));
  result = Step(10);
  EXPECT_THAT(BoundIn(result), IsEmpty());
  EXPECT_THAT(Of<model::SetPodUnschedulable>(result), IsEmpty()) << "it may be over soon";
  std::vector<model::SetPodUnschedulable> told;
  for (int at = 11; at < 60 && told.empty(); ++at) {
    result = Step(at);
    EXPECT_THAT(BoundIn(result), IsEmpty());
    told = Of<model::SetPodUnschedulable>(result);
    if (!Of<model::ReadObject>(result).empty()) {
      AnswerOne<model::ReadObject>(
          result, absl::PermissionDeniedError("Job ns/j: may not be read\nadd a rule: get jobs"));
    }
  }
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].reason, "Gated");
  EXPECT_THAT(told[0].message,
              HasSubstr("Held back by plugin Grouping: Job ns/j: may not be read"));
  EXPECT_THAT(told[0].message, HasSubstr("add a rule: get jobs"));
  // The rule is added.
  for (int at = 60; at < 200; ++at) {
    result = Step(at);
    if (Of<model::ReadObject>(result).empty()) continue;
    AnswerRead(result, R"({"metadata":{"name":"j","uid":"u-j"},"spec":{"parallelism":1}})");
    EXPECT_THAT(BoundIn(Step(at)), ElementsAre("a"));
    return;
  }
  FAIL() << "it was not read again";
}

TEST_F(GroupingLoopTest, ARefusedGroupIsToldAndMadeAgain) {
  Put(OfJob("a"));
  StepResult result = Step(10);
  AnswerRead(result, kJob);
  result = Step(10);
  AnswerOne<model::WritePodGroup>(result, absl::PermissionDeniedError("podgroups: create"));
  std::string message;
  size_t writes = 0;
  for (int at = 11; at < 40; ++at) {
    result = Step(at);
    for (const auto& told : Of<model::SetPodUnschedulable>(result)) message = told.message;
    if (Of<model::WritePodGroup>(result).empty()) continue;
    ++writes;
    AnswerOne<model::WritePodGroup>(result, absl::PermissionDeniedError("podgroups: create"));
  }
  EXPECT_THAT(message, HasSubstr("PodGroup ns/pg-j-u-j cannot be written: podgroups: create"));
  EXPECT_GT(writes, 1U);
  EXPECT_LT(writes, 10U) << "with growing pauses";
}

// A lone pod that waits for capacity has a verdict, and the watch shows the pod with it.
TEST_F(GroupingLoopTest, ALonePodThatWaitsIsNotGroupedOnceMore) {
  model::Pod pod = PodBuilder("ns", "a").Queue("q").Gpus(100).Created(10).Build();
  pod.meta.owners = OfJob("a").meta.owners;
  Put(pod);
  StepResult result = Step(10);
  AnswerRead(result, kSingle);
  std::string reason;
  for (int at = 10; at < 100; ++at) {
    result = Step(at);
    EXPECT_THAT(Of<model::ReadObject>(result), IsEmpty()) << at;
    for (const auto& told : Of<model::SetPodUnschedulable>(result)) {
      EXPECT_TRUE(reason.empty()) << "again: " << told.reason;
      reason = told.reason;
      AnswerOne<model::SetPodUnschedulable>(result, absl::OkStatus());
      pod.scheduled.status = "False";
      pod.scheduled.reason = told.reason;
      pod.meta.annotations.Set(model::kVerdictAnnotation, told.verdict_json);
      pod.meta.resource_version = "2";
      Put(pod);
    }
  }
  EXPECT_EQ(reason, "Unschedulable");
}

TEST_F(GroupingLoopTest, ANewPodOfTheNameWaitsForItsOwnGroup) {
  Put(PodBuilder("ns", "a").Queue("q").Gpus(100));
  Step(10);
  model::Pod next = OfJob("a");
  next.meta.uid = "u-next";
  Put(next);
  StepResult result = Step(10);
  EXPECT_THAT(BoundIn(result), IsEmpty());
  EXPECT_EQ(loop_->MakeView(At(10)).waiting.size(), 0U) << "the former one is gone";
  AnswerRead(result, kSingle);
  EXPECT_THAT(BoundIn(Step(10)), ElementsAre("a"));
}

TEST_F(GroupingLoopTest, APodThatLosesTheNameOfItsGroupIsHeldUntilItHasItAgain) {
  Put(GroupOfJob(2));
  Put(Named(OfJob("a")));
  const StepResult first = Step(10);
  Put(OfJob("a"));
  Step(11);
  Put(MakeNode("n2", 8));
  EXPECT_THAT(BoundIn(Step(11)), IsEmpty());
  AnswerRead(first, kJob);
  EXPECT_THAT(Of<model::SetPodGroup>(Step(12)), SizeIs(1));
}

class WithoutGroupingTest : public NoHookTest {};

TEST_F(WithoutGroupingTest, NothingIsReadOrWritten) {
  Put(MakeNode("n", 2));
  model::Pod pod = PodBuilder("ns", "a").Queue("q").Gpus(1).Build();
  pod.meta.owners.push_back({"batch/v1", "Job", "j", "u-j", true});
  Put(pod);
  const StepResult result = Step(10);
  EXPECT_THAT(BoundIn(result), ElementsAre("a"));
  EXPECT_THAT(Of<model::ReadObject>(result), IsEmpty());
}

}  // namespace
}  // namespace fairlead::core::testing
