// PodGrouper by itself: what it reads and writes, and which pods it lets through. With the decision
// loop: grouping_loop_test.cc.
#include "core/pod_grouper.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::core::testing {
namespace {

using model::testing::At;
using model::testing::MakeGroup;
using model::testing::PodBuilder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kGangKey[] = "ns/pg-j-u-j";

// A Job whose pods are a gang of so many, or one pod that is alone.
std::string JobOf(int pods, const std::string& more = "") {
  return absl::StrCat(
      R"({"metadata":{"name":"j","uid":"u-j","resourceVersion":"v)", pods, more.size(),
      R"(","labels":{)", more, "}",
      pods > 1 ? absl::StrCat(R"(,"annotations":{"kai.scheduler/batch-min-member":")", pods, "\"}")
               : "",
      R"(},"spec":{"parallelism":)", pods, "}}");
}

class PodGrouperTest : public ::testing::Test {
 protected:
  static state::StateOptions Ours() {
    state::StateOptions options;
    options.scheduler_names = {"fairlead"};
    return options;
  }
  static GroupingOptions On() {
    return {true, std::make_shared<const grouping::KindTable>(grouping::KindTable::BuiltIn())};
  }
  static model::Pod OfJob(const std::string& name, int64_t created = 10) {
    model::Pod pod = PodBuilder("ns", name).Created(created).Build();
    pod.scheduler_name = "fairlead";
    pod.meta.owners = {{"batch/v1", "Job", "j", "u-j", true}};
    return pod;
  }
  static model::Pod Named(model::Pod pod) {
    pod.meta.annotations.Set(model::kPodGroupAnnotation, "pg-j-u-j");
    return pod;
  }
  // As the API server has the group that we made.
  static model::PodGroup Ours(int32_t minimum) {
    model::PodGroup group = Foreign(minimum);
    group.meta.annotations.Set(model::kFollowsOwnerAnnotation, "true");
    return group;
  }
  static model::PodGroup Foreign(int32_t minimum) {
    model::PodGroup group = MakeGroup("ns", "pg-j-u-j", "q", minimum);
    group.meta.uid = "u-group";
    group.meta.resource_version = "7";
    group.meta.owners = {{"batch/v1", "Job", "j", "u-j", true}};
    return group;
  }

  // The actions of a step; reads are kept until they are answered.
  std::vector<model::Action> Step(int64_t at) {
    std::vector<model::Action> actions;
    decided_ = grouper_.Step(At(at), actions);
    for (const auto& read : Of<model::ReadObject>(actions)) read_ = read;
    return actions;
  }
  template <typename T>
  static std::vector<T> Of(const std::vector<model::Action>& actions) {
    std::vector<T> found;
    for (const model::Action& action : actions) {
      if (const T* what = std::get_if<T>(&action.what)) found.push_back(*what);
    }
    return found;
  }
  void Answer(const std::string& json, int64_t at) {
    ASSERT_TRUE(read_.has_value());
    model::ActionResult result{1, absl::OkStatus()};
    result.object = std::make_shared<const std::string>(json);
    grouper_.ObjectRead(*std::exchange(read_, std::nullopt), result, At(at));
  }
  void Fail(absl::Status status, int64_t at) {
    ASSERT_TRUE(read_.has_value());
    grouper_.ObjectRead(*std::exchange(read_, std::nullopt), {1, std::move(status)}, At(at));
  }
  // Steps until the owner is to be read again; the time of that.
  int64_t NextReadAfter(int64_t at, int64_t at_most) {
    while (at < at_most && !read_.has_value()) Step(++at);
    EXPECT_TRUE(read_.has_value()) << "not read again until " << at_most;
    return at;
  }
  // Pods a and b of a gang of two have come, their owner is read, and their group is there.
  void MakeGang() {
    grouper_.PodSeen(OfJob("a"));
    grouper_.PodSeen(OfJob("b"));
    Step(10);
    Answer(JobOf(2), 10);
    Step(10);
    grouper_.GroupWritten(kGangKey, absl::OkStatus(), At(10));
    grouper_.GroupSeen(Ours(2));
    Step(10);
    grouper_.PodSeen(Named(OfJob("a")));
    grouper_.PodSeen(Named(OfJob("b")));
    EXPECT_THAT(Step(10), IsEmpty());
    EXPECT_EQ(grouper_.waiting(), 0U);
  }
  // What the state is told of a pod after kQuiet.
  std::string ShownWhenHeld(int64_t at) {
    std::string held;
    for (int64_t end = at + 4; at < end; ++at) {
      Step(at);
      for (const PodGrouper::Decided& decided : decided_) held = decided.answer.held_by;
    }
    return held;
  }

  state::ClusterState state_{Ours()};
  PodGrouper grouper_{state_, On(), std::nullopt, {absl::Seconds(1), absl::Seconds(60)}};
  std::vector<PodGrouper::Decided> decided_;
  std::optional<model::ReadObject> read_;
};

TEST_F(PodGrouperTest, AGangIsReadMadeNamedAndThenLetThrough) {
  EXPECT_TRUE(grouper_.PodSeen(OfJob("a")).withheld);
  EXPECT_TRUE(grouper_.PodSeen(OfJob("b")).withheld);
  EXPECT_THAT(Of<model::ReadObject>(Step(10)), SizeIs(1)) << "both have one owner";
  EXPECT_EQ(read_->uid, "u-j");
  Answer(JobOf(2), 10);
  std::vector<model::Action> actions = Step(10);
  const auto made = Of<model::WritePodGroup>(actions);
  ASSERT_THAT(made, SizeIs(1));
  EXPECT_EQ(model::Key(made[0].group->meta), kGangKey);
  EXPECT_EQ(made[0].group->meta.uid, "");
  EXPECT_EQ(made[0].group->meta.annotations.Get(model::kFollowsOwnerAnnotation), "true");
  EXPECT_EQ(made[0].group->meta.owners[0].uid, "u-j");
  EXPECT_EQ(made[0].group->min_member, 2);
  EXPECT_THAT(Of<model::SetPodGroup>(actions), IsEmpty()) << "it is not there yet";
  EXPECT_THAT(decided_, IsEmpty());
  grouper_.GroupWritten(kGangKey, absl::OkStatus(), At(10));
  EXPECT_THAT(Step(10), IsEmpty());
  grouper_.GroupSeen(Ours(2));
  const auto named = Of<model::SetPodGroup>(Step(11));
  ASSERT_THAT(named, SizeIs(2));
  EXPECT_EQ(named[0].name, "a");
  EXPECT_EQ(named[0].group, "pg-j-u-j");
  EXPECT_EQ(named[1].name, "b");
  const PodGrouper::Answer answer = grouper_.PodSeen(Named(OfJob("a")));
  EXPECT_FALSE(answer.withheld);
  EXPECT_EQ(answer.held_by, "");
  EXPECT_EQ(grouper_.waiting(), 1U);
}

TEST_F(PodGrouperTest, ALonePodIsLetThroughWhenItsOwnerIsKnownAndStaysSo) {
  EXPECT_TRUE(grouper_.PodSeen(OfJob("a")).withheld);
  Step(10);
  Answer(JobOf(1), 10);
  EXPECT_THAT(Of<model::WritePodGroup>(Step(10)), IsEmpty());
  ASSERT_THAT(decided_, SizeIs(1));
  EXPECT_TRUE(decided_[0].answer.lone);
  EXPECT_EQ(decided_[0].answer.held_by, "");
  EXPECT_EQ(grouper_.waiting(), 0U);
  // Its verdict is written, and the watch shows the pod again.
  model::Pod told = OfJob("a");
  told.meta.resource_version = "9";
  EXPECT_TRUE(grouper_.PodSeen(told).lone);
  for (int at = 10; at < 100; ++at) EXPECT_THAT(Step(at), IsEmpty()) << at;
  // A pod of the name and of another uid is another pod.
  told.meta.uid = "u-other";
  EXPECT_TRUE(grouper_.PodSeen(told).withheld);
}

TEST_F(PodGrouperTest, APodWithoutOwnersAPodWithAGroupAndAForeignPodAreLetThrough) {
  model::Pod lone = OfJob("a");
  lone.meta.owners.clear();
  EXPECT_TRUE(grouper_.PodSeen(lone).lone);
  model::Pod named = OfJob("b");
  named.meta.annotations.Set(model::kPodGroupAnnotation, "mine");
  model::Pod foreign = OfJob("c");
  foreign.meta.annotations.Set("kai.scheduler/skip-podgrouper", "true");
  model::Pod others = OfJob("d");
  others.scheduler_name = "default-scheduler";
  for (const model::Pod& pod : {named, foreign, others}) {
    const PodGrouper::Answer answer = grouper_.PodSeen(pod);
    EXPECT_FALSE(answer.withheld) << pod.meta.name;
    EXPECT_EQ(answer.held_by, "") << pod.meta.name;
    EXPECT_FALSE(answer.lone) << pod.meta.name;
  }
  EXPECT_THAT(Step(10), IsEmpty());
}

TEST_F(PodGrouperTest, AnOwnerThatMayNotBeReadIsShownOnceWithWhatHelps) {
  grouper_.PodSeen(OfJob("a"));
  Step(10);
  Fail(absl::PermissionDeniedError("batch/v1 Job ns/j: may not be read\nadd a rule"), 10);
  size_t reads = 0, shown = 0;
  for (int at = 11; at < 60; ++at) {
    if (!Of<model::ReadObject>(Step(at)).empty()) {
      ++reads;
      Fail(absl::PermissionDeniedError("batch/v1 Job ns/j: may not be read\nadd a rule"), at);
    }
    if (at == 11) {
      EXPECT_LE(grouper_.wake_at(), At(12));
    }
    for (const PodGrouper::Decided& decided : decided_) {
      ++shown;
      EXPECT_EQ(at, 12) << "quiet before that, and nothing else is to be shown after it";
      EXPECT_EQ(decided.answer.held_by,
                "plugin Grouping: batch/v1 Job ns/j: may not be read\nadd a rule");
      EXPECT_EQ(grouper_.PodSeen(decided.pod).held_by, decided.answer.held_by);
    }
  }
  EXPECT_EQ(shown, 1U);
  EXPECT_GE(reads, 3U);
  EXPECT_LE(reads, 8U) << "with growing pauses";
}

TEST_F(PodGrouperTest, AnOwnerThatIsGoneASlowServerAndACircleSayWhatToDo) {
  grouper_.PodSeen(OfJob("a"));
  Step(10);
  Fail(absl::NotFoundError("batch/v1 Job ns/j is gone"), 10);
  EXPECT_THAT(ShownWhenHeld(10), AllOf(HasSubstr("Job ns/j is gone\ndelete the pod")));
  grouper_.PodGone("ns", "a", "");

  model::Pod slow = OfJob("b");
  slow.meta.owners[0].name = "k";
  grouper_.PodSeen(slow);
  Step(20);
  EXPECT_THAT(ShownWhenHeld(20), HasSubstr("Job ns/k, by which it is grouped, has not been read"));
  Fail(absl::UnavailableError("time-out"), 24);
  EXPECT_THAT(ShownWhenHeld(24), HasSubstr("cannot be read: time-out\nwait until the API server"));
  grouper_.PodGone("ns", "b", "");
  read_.reset();

  model::Pod circle = OfJob("c");
  circle.meta.owners[0].uid = "u-c";
  circle.meta.uid = "u-c";
  grouper_.PodSeen(circle);
  EXPECT_THAT(ShownWhenHeld(40), HasSubstr("the owners are a circle\ncorrect that"));
}

TEST_F(PodGrouperTest, AnOwnerThatGivesNoGroupHoldsItsPodsUntilItDoes) {
  grouper_.PodSeen(OfJob("a"));
  Step(10);
  Answer(R"({"metadata":{"name":"j","uid":"u-j"},"spec":{"parallelism":-1}})", 10);
  EXPECT_THAT(ShownWhenHeld(10), HasSubstr("spec.parallelism: -1 must not be negative"));
  const int64_t at = NextReadAfter(13, 16);
  Answer(JobOf(1), at);
  Step(at);
  ASSERT_THAT(decided_, SizeIs(1));
  EXPECT_TRUE(decided_[0].answer.lone);
}

TEST_F(PodGrouperTest, APodCountsOnOwnersAsTheyAreAfterItCame) {
  grouper_.PodSeen(OfJob("a"));
  Step(10);
  Answer(JobOf(2), 10);
  Step(10);
  // The Job is scaled up; its new pod does not go by what was read before.
  grouper_.PodSeen(OfJob("c"));
  EXPECT_THAT(Of<model::ReadObject>(Step(20)), SizeIs(1));
  EXPECT_THAT(Of<model::SetPodGroup>(Step(20)), IsEmpty());
  Answer(JobOf(5), 20);
  grouper_.GroupWritten(kGangKey, absl::OkStatus(), At(20));
  grouper_.GroupSeen(Ours(2));
  const auto writes = Of<model::WritePodGroup>(Step(20));
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].group->min_member, 5);
}

TEST_F(PodGrouperTest, AnOwnerThatChangedRightBeforeItsPodCameIsReadOnceMore) {
  MakeGang();
  grouper_.PodSeen(OfJob("c"));
  std::vector<model::Action> actions;
  grouper_.Step(At(10) + absl::Milliseconds(400), actions);
  EXPECT_THAT(Of<model::SetPodGroup>(actions), SizeIs(1)) << "it does not wait";
  EXPECT_THAT(Of<model::ReadObject>(actions), IsEmpty());
  EXPECT_THAT(Of<model::ReadObject>(Step(11)), SizeIs(1));
  Answer(JobOf(3), 11);
  const auto writes = Of<model::WritePodGroup>(Step(11));
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].group->min_member, 3);
}

// ---- groups that are there ----------------------------------------------------------------------

TEST_F(PodGrouperTest, AGroupFollowsItsOwnerAndKeepsWhatIsItsUsers) {
  MakeGang();
  const int64_t at = NextReadAfter(10, 41);
  Answer(JobOf(5, R"("kai.scheduler/queue":"other")"), at);
  model::PodGroup group = Ours(2);
  group.queue = "moved by a user";
  grouper_.GroupSeen(group);
  const auto writes = Of<model::WritePodGroup>(Step(at));
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].group->meta.uid, "u-group");
  EXPECT_EQ(writes[0].group->meta.resource_version, "7");
  EXPECT_EQ(writes[0].group->min_member, 5);
  grouper_.GroupWritten(kGangKey, absl::OkStatus(), At(at));
  group.min_member = 5;
  grouper_.GroupSeen(group);
  EXPECT_THAT(Of<model::WritePodGroup>(Step(at + 1)), IsEmpty()) << "a queue is no difference";
}

TEST_F(PodGrouperTest, APodThatGoesHasTheOwnerReadAtOnce) {
  MakeGang();
  model::Pod leaving = Named(OfJob("b"));
  leaving.node_name = "n";
  leaving.meta.deletion = At(50);
  grouper_.PodSeen(leaving);
  EXPECT_THAT(Of<model::ReadObject>(Step(12)), SizeIs(1));
  Answer(JobOf(1), 12);
  const auto writes = Of<model::WritePodGroup>(Step(12));
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].group->min_member, 1) << "one pod alone would need no group";
}

TEST_F(PodGrouperTest, AfterARestartTheGroupsOfRunningPodsFollowTheirOwners) {
  grouper_.GroupSeen(Ours(2));
  model::Pod running = Named(OfJob("a"));
  running.node_name = "n";
  running.phase = model::PodPhase::kRunning;
  EXPECT_FALSE(grouper_.PodSeen(running).withheld);
  EXPECT_THAT(Of<model::ReadObject>(Step(10)), SizeIs(1));
  Answer(JobOf(3), 10);
  const auto writes = Of<model::WritePodGroup>(Step(10));
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].group->min_member, 3);
}

TEST_F(PodGrouperTest, AfterARestartAGroupOfOnePodIsSoToo) {
  grouper_.GroupSeen(Ours(2));
  grouper_.PodSeen(Named(OfJob("a")));
  Step(10);
  Answer(JobOf(1), 10);
  const auto writes = Of<model::WritePodGroup>(Step(10));
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].group->min_member, 1);
  EXPECT_EQ(writes[0].group->meta.name, "pg-j-u-j");
}

TEST_F(PodGrouperTest, AGroupIsNotShrunkByAPodOfAnotherOwner) {
  grouper_.GroupSeen(Ours(2));
  model::Pod stranger = Named(OfJob("z", 500));
  stranger.meta.owners = {{"batch/v1", "Job", "evil", "u-evil", true}};
  grouper_.PodSeen(stranger);
  Step(10);
  Answer(R"({"metadata":{"name":"evil","uid":"u-evil"},"spec":{"parallelism":1}})", 10);
  EXPECT_THAT(Of<model::WritePodGroup>(Step(10)), IsEmpty());
}

TEST_F(PodGrouperTest, AGroupThatDoesNotFollowItsOwnerIsUsedAndNeverWritten) {
  grouper_.GroupSeen(Foreign(1));
  grouper_.PodSeen(OfJob("a"));
  Step(10);
  Answer(JobOf(2), 10);
  std::vector<model::Action> actions = Step(10);
  EXPECT_THAT(Of<model::WritePodGroup>(actions), IsEmpty());
  EXPECT_THAT(Of<model::SetPodGroup>(actions), SizeIs(1));
  grouper_.PodSeen(Named(OfJob("a")));
  for (int at = 11; at < 100; ++at) {
    actions = Step(at);
    EXPECT_THAT(Of<model::WritePodGroup>(actions), IsEmpty()) << at;
    EXPECT_FALSE(read_.has_value()) << at;
  }
  // It is handed over.
  EXPECT_FALSE(read_.has_value());
  grouper_.GroupSeen(Ours(1));
  Step(100);
  Answer(JobOf(2), 100);
  EXPECT_THAT(Of<model::WritePodGroup>(Step(100)), SizeIs(1));
}

TEST_F(PodGrouperTest, AGroupThatDoesNotFollowItsOwnerAndLacksASubGroupIsNamed) {
  model::PodGroup theirs = MakeGroup("ns", "pg-j-u-j", "q", 1);
  theirs.meta.uid = "u-group";
  grouper_.GroupSeen(theirs);
  model::Pod pod = OfJob("a");
  pod.meta.owners = {{"kubeflow.org/v1", "PyTorchJob", "j", "u-j", true}};
  pod.meta.labels.Set("training.kubeflow.org/replica-type", "worker");
  grouper_.PodSeen(pod);
  Step(10);
  Answer(R"({"metadata":{"name":"j","uid":"u-j"},"spec":{"pytorchReplicaSpecs":{)"
         R"("Master":{"replicas":1},"Worker":{"replicas":2}}}})",
         10);
  EXPECT_THAT(ShownWhenHeld(10),
              HasSubstr("PodGroup ns/pg-j-u-j, which does not follow its owner, has no sub-group "
                        "worker\nadd that sub-group to it, or delete it"));
  theirs.sub_groups = {{"worker", "", 1, std::nullopt, {}}};
  grouper_.GroupSeen(theirs);
  const auto named = Of<model::SetPodGroup>(Step(20));
  ASSERT_THAT(named, SizeIs(1));
  EXPECT_EQ(named[0].sub_group, "worker");
}

TEST_F(PodGrouperTest, TopologiesOfSubGroupsThatAreThereStay) {
  model::Pod pod = OfJob("a");
  pod.meta.owners = {{"kubeflow.org/v1", "PyTorchJob", "j", "u-j", true}};
  pod.meta.labels.Set("training.kubeflow.org/replica-type", "worker");
  model::PodGroup ours = Ours(1);
  ours.sub_groups = {{"worker", "", 1, std::nullopt, {"t", "rack", ""}}};
  grouper_.GroupSeen(ours);
  grouper_.PodSeen(pod);
  Step(10);
  Answer(R"({"metadata":{"name":"j","uid":"u-j"},"spec":{"pytorchReplicaSpecs":{)"
         R"("Master":{"replicas":1},"Worker":{"replicas":2}}}})",
         10);
  const auto writes = Of<model::WritePodGroup>(Step(10));
  ASSERT_THAT(writes, SizeIs(1));
  bool found = false;
  for (const model::SubGroup& sub : writes[0].group->sub_groups) {
    if (sub.name != "worker") continue;
    found = true;
    EXPECT_EQ(sub.min_member, 2);
    EXPECT_EQ(sub.topology.required_level, "rack");
  }
  EXPECT_TRUE(found);
}

TEST_F(PodGrouperTest, APodOfAnotherOwnerThatNamesTheGroupChangesNothing) {
  MakeGang();
  model::Pod stranger = Named(OfJob("z", 500));
  stranger.meta.owners = {{"batch/v1", "Job", "evil", "u-evil", true}};
  grouper_.PodSeen(stranger);
  ASSERT_THAT(Of<model::ReadObject>(Step(500)), Not(IsEmpty()));
  for (int at = 500; at < 600; ++at) {
    if (read_.has_value()) {
      Answer(read_->name == "evil"
                 ? R"({"metadata":{"name":"evil","uid":"u-evil","annotations":)"
                   R"({"kai.scheduler/batch-min-member":"50"}},"spec":{"parallelism":50}})"
                 : JobOf(2),
             at);
    }
    EXPECT_THAT(Of<model::WritePodGroup>(Step(at)), IsEmpty()) << at;
  }
  int64_t at = NextReadAfter(600, 640);
  EXPECT_EQ(read_->name, "j");
  Answer(JobOf(4), at);
  EXPECT_THAT(Of<model::WritePodGroup>(Step(at)), SizeIs(1)) << "it still follows its owner";
}

// ---- what fails ---------------------------------------------------------------------------------

TEST_F(PodGrouperTest, ARefusedGroupIsShownAndMadeAgain) {
  grouper_.PodSeen(OfJob("a"));
  Step(10);
  Answer(JobOf(2), 10);
  ASSERT_THAT(Of<model::WritePodGroup>(Step(10)), SizeIs(1));
  grouper_.GroupWritten(kGangKey, absl::PermissionDeniedError("podgroups: create"), At(10));
  EXPECT_THAT(Of<model::WritePodGroup>(Step(10)), IsEmpty()) << "after a pause";
  ASSERT_THAT(Of<model::WritePodGroup>(Step(12)), SizeIs(1));
  ASSERT_THAT(decided_, SizeIs(1));
  EXPECT_THAT(decided_[0].answer.held_by,
              HasSubstr("PodGroup ns/pg-j-u-j cannot be written: podgroups: create\n"
                        "grant the rights of manifests/grouping"));
  grouper_.GroupWritten(kGangKey, absl::AlreadyExistsError("it is there"), At(12));
  EXPECT_THAT(Of<model::WritePodGroup>(Step(12)), IsEmpty());
  grouper_.GroupSeen(Foreign(2));
  EXPECT_THAT(Of<model::SetPodGroup>(Step(12)), SizeIs(1));
}

TEST_F(PodGrouperTest, ANameThatWasRefusedOrLostIsWrittenAgain) {
  grouper_.GroupSeen(Ours(2));
  grouper_.PodSeen(OfJob("a"));
  Step(10);
  Answer(JobOf(2), 10);
  ASSERT_THAT(Of<model::SetPodGroup>(Step(10)), SizeIs(1));
  grouper_.PodWritten("ns/a", OfJob("a").meta.uid, absl::UnavailableError("lost"), At(10));
  EXPECT_THAT(Step(10), IsEmpty());
  EXPECT_EQ(grouper_.wake_at(), At(11));
  ASSERT_THAT(Of<model::SetPodGroup>(Step(11)), SizeIs(1));
  grouper_.PodWritten("ns/a", OfJob("a").meta.uid, absl::OkStatus(), At(11));
  EXPECT_THAT(Of<model::SetPodGroup>(Step(11)), IsEmpty());
  EXPECT_THAT(Of<model::SetPodGroup>(Step(13)), SizeIs(1)) << "the watch did not show it";
}

TEST_F(PodGrouperTest, AConflictIsRepeatedAndNotTold) {
  grouper_.GroupSeen(Ours(1));
  grouper_.PodSeen(OfJob("a"));
  Step(10);
  Answer(JobOf(2), 10);
  ASSERT_THAT(Of<model::WritePodGroup>(Step(10)), SizeIs(1));
  const std::string held = ShownWhenHeld(11);
  EXPECT_THAT(held, HasSubstr("is being written for it"));
  grouper_.GroupWritten(kGangKey, absl::FailedPreconditionError("409"), At(14));
  model::PodGroup newer = Ours(1);
  newer.meta.resource_version = "8";
  grouper_.GroupSeen(newer);
  Step(14);
  EXPECT_THAT(decided_, IsEmpty()) << "nothing else is to be shown";
  const auto writes = Of<model::WritePodGroup>(Step(16));
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].group->meta.resource_version, "8");
}

TEST_F(PodGrouperTest, NothingIsMadeForPodsThatAreGone) {
  grouper_.PodSeen(OfJob("a"));
  Step(10);
  Answer(JobOf(2), 10);
  grouper_.PodGone("ns", "a", OfJob("a").meta.uid);
  for (int at = 10; at < 100; ++at) EXPECT_THAT(Step(at), IsEmpty()) << at;
  EXPECT_EQ(grouper_.waiting(), 0U);
}

TEST_F(PodGrouperTest, AGroupThatIsDeletedIsMadeAgainOnlyIfItsOwnerIsStillThere) {
  for (const bool owner_is_there : {true, false}) {
    SCOPED_TRACE(owner_is_there);
    grouper_.GroupSeen(Ours(2));
    grouper_.PodSeen(OfJob("a"));
    const int64_t begin = owner_is_there ? 10 : 100;
    Step(begin);
    Answer(JobOf(2), begin);
    ASSERT_THAT(Of<model::SetPodGroup>(Step(begin)), SizeIs(1));
    grouper_.GroupGone("ns", "pg-j-u-j", "u-group");
    EXPECT_THAT(Of<model::WritePodGroup>(Step(begin + 5)), IsEmpty());
    if (owner_is_there) {
      Answer(JobOf(2), begin + 5);
      EXPECT_THAT(Of<model::WritePodGroup>(Step(begin + 5)), SizeIs(1));
    } else {
      Fail(absl::NotFoundError("gone"), begin + 5);
      for (int64_t at = begin + 5; at < begin + 20; ++at) {
        EXPECT_THAT(Of<model::WritePodGroup>(Step(at)), IsEmpty());
      }
    }
    grouper_.PodGone("ns", "a", "");
    Step(begin + 30);
    read_.reset();
  }
}

TEST_F(PodGrouperTest, PodsOfAnOwnerThatCannotBeReadHarmNoOthers) {
  model::Pod bad = OfJob("bad");
  bad.meta.owners[0] = {"example.com/v1", "Secretive", "s", "u-s", true};
  grouper_.PodSeen(bad);
  Step(10);
  Fail(absl::PermissionDeniedError("no"), 10);
  grouper_.PodSeen(OfJob("good"));
  Step(10);
  ASSERT_TRUE(read_.has_value());
  Answer(JobOf(1), 10);
  Step(10);
  ASSERT_THAT(decided_, SizeIs(1));
  EXPECT_EQ(decided_[0].pod.meta.name, "good");
}

}  // namespace
}  // namespace fairlead::core::testing
