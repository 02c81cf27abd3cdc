// Pods with PersistentVolumeClaims in the decision loop: from the pod to its binding, with time,
// restarts, and several pods of a claim. What fails is in volume_failures_test.cc.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/configuration.h"
#include "core/volumes_testing.h"

namespace fairlead::core::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// ---- what keeps a pod from every node

TEST_F(VolumesTest, WithoutTheRightToReadVolumesThePodWaitsWithThatReason) {
  Begin();
  for (const model::Kind kind : {model::Kind::kPersistentVolumeClaim,
                                 model::Kind::kPersistentVolume, model::Kind::kStorageClass}) {
    loop_->Apply(model::Synced{kind, /*missing=*/true});
  }
  Put(MakeVolumeClaim("c", "cloud"));
  Put(Pod("p", {"c"}));
  EXPECT_THAT(ToldAt(1), AllOf(HasSubstr("InvalidRequest"), HasSubstr("may not read")));
  loop_->Apply(model::Synced{model::Kind::kPersistentVolumeClaim});
  loop_->Apply(model::Synced{model::Kind::kPersistentVolume});
  EXPECT_EQ(WritesIn(Step(50)), 0u) << "storage classes are still unknown";
  // Of the kinds that say where there is room, none has to be readable.
  loop_->Apply(model::Synced{model::Kind::kCsiNode, /*missing=*/true});
  loop_->Apply(model::Synced{model::Kind::kStorageClass});
  EXPECT_EQ(WritesIn(Step(100)), 1u);
}

TEST_F(VolumesTest, AVerdictSaysWhichObjectAPodWaitsForAndWhatIsWrongWithIt) {
  Begin();
  Put(Pod("p", {"c"}));
  EXPECT_THAT(ToldAt(1), AllOf(HasSubstr("MissingObject"), HasSubstr("PersistentVolumeClaim c")));
  PersistentVolumeClaim claim = MakeVolumeClaim("c", "cloud");
  claim.meta.deletion = At(50);
  Put(claim);
  EXPECT_THAT(ToldAt(100), AllOf(HasSubstr("InvalidRequest"), HasSubstr("spec.volumes: "),
                                 HasSubstr("is being deleted")));
  claim.meta.deletion.reset();
  Put(claim);
  EXPECT_EQ(WritesIn(Step(200)), 1u);
}

// No node helps such a gang: with the hook on, one would be requested for it again and again.
TEST_F(VolumesTest, AGangWhosePodsShareAClaimOfOnePodIsInvalid) {
  options_.hook.enabled = true;
  Restart();
  Begin(/*nodes=*/0);
  PersistentVolumeClaim claim = MakeVolumeClaim("c", "cloud");
  claim.access_modes = model::kReadWriteOncePod;
  Put(claim);
  Put(MakeGroup("ns", "gang", "team", 2));
  for (const char* name : {"a", "b"}) {
    Put(WithClaims(PodBuilder("ns", name).Group("gang").Build(), {"c"}));
  }
  const StepResult step = Step(1);
  EXPECT_THAT(Of<model::CreateNodeRequest>(step), IsEmpty());
  ASSERT_THAT(loop_->MakeView(At(1)).waiting, SizeIs(1));
  const verdict::Verdict invalid = loop_->MakeView(At(1)).waiting[0].verdict;
  EXPECT_EQ(invalid.code, verdict::Code::kInvalidRequest);
  EXPECT_THAT(invalid.subject, HasSubstr("claim ns/c, which is ReadWriteOncePod"));
  // One pod after the other may use it.
  Put(MakeGroup("ns", "gang", "team", 1));
  EXPECT_THAT(Of<model::CreateNodeRequest>(Step(2)), SizeIs(1));
  // And with another mode all of them at once.
  claim.access_modes = model::kReadWriteMany;
  Put(Version(9, claim));
  Put(MakeGroup("ns", "gang", "team", 2));
  Step(3);
  EXPECT_EQ(loop_->MakeView(At(3)).waiting[0].verdict.code, verdict::Code::kNodesRequested);
}

// ---- the order of writes

TEST_F(VolumesTest, TheBindingOfAPodFollowsTheBindingOfItsClaimToAVolume) {
  Begin(2);
  Put(Version(7, OnHost("v", "n2")));
  const PersistentVolumeClaim claim = Version(5, MakeVolumeClaim("c", "local"));
  Put(claim);
  Put(Pod("p", {"c"}));
  const StepResult first = Step(1);
  EXPECT_THAT(BoundIn(first), IsEmpty());
  const auto writes = Of<BindVolume>(first);
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].volume, "v");
  EXPECT_EQ(writes[0].uid, "uid-v");
  EXPECT_EQ(writes[0].resource_version, "7");
  EXPECT_EQ(writes[0].claim_ns, "ns");
  EXPECT_EQ(writes[0].claim_name, "c");
  EXPECT_EQ(writes[0].claim_uid, "uid-c");
  AnswerAll(first);
  StepResult step = Step(2);
  EXPECT_EQ(WritesIn(step), 0u);
  EXPECT_THAT(BoundIn(step), IsEmpty()) << "the controller has not bound the claim";
  Put(Version(8, OfClaim(OnHost("v", "n2"), claim)));
  PersistentVolumeClaim named = Version(9, claim);
  named.volume_name = "v";
  Put(named);
  step = Step(3);
  EXPECT_EQ(WritesIn(step), 0u);
  EXPECT_THAT(BoundIn(step), IsEmpty()) << "it has bound one side";
  Put(Version(10, BoundTo(claim, "v")));
  step = Step(4);
  ASSERT_THAT(Of<model::BindPod>(step), SizeIs(1));
  EXPECT_EQ(Of<model::BindPod>(step)[0].node, "n2");
  EXPECT_EQ(WritesIn(step), 0u);
}

// What a configuration file says of other plugins leaves these as they are.
TEST_F(VolumesTest, ProfilesOfAFileBindVolumes) {
  for (const char* profile :
       {R"({"schedulerName":"fairlead"})",
        R"({"schedulerName":"fairlead","plugins":{"score":{"disabled":[{"name":"*"}]}}})",
        R"({"schedulerName":"fairlead","plugins":{"multiPoint":{"disabled":[{"name":"*"}],)"
        R"("enabled":[{"name":"PrioritySort"},{"name":"SchedulingGates"},{"name":"DefaultBinder"},)"
        R"({"name":"NodeResourcesFit"},{"name":"VolumeBinding"}]}}})"}) {
    const auto read = ReadConfiguration(
        {absl::StrCat(R"({"apiVersion":"kubescheduler.config.k8s.io/v1",)",
                      R"("kind":"KubeSchedulerConfiguration","profiles":[)", profile, "]}")});
    ASSERT_TRUE(read.ok()) << read.status();
    options_.profiles = read->options.profiles;
    BeginAgain();
    Put(Version(5, MakeVolumeClaim("c", "cloud")));
    Put(Pod("p", {"c"}));
    const StepResult step = Step(1);
    EXPECT_EQ(WritesIn(step), 1u) << profile;
    EXPECT_THAT(Of<model::BindPod>(step), IsEmpty()) << profile;
  }
}

// As in kube-scheduler: nothing is written for the claims, and the pod does not wait for them.
TEST_F(VolumesTest, AProfileWithoutReserveOrPreBindOfVolumeBindingBindsThePodAlone) {
  for (const bool reserve : {true, false}) {
    for (framework::ProfilePlugin& plugin : options_.profiles[0].plugins) {
      if (plugin.name != "VolumeBinding") continue;
      plugin.reserve = reserve;
      plugin.pre_bind = !reserve;
    }
    BeginAgain();
    Put(Version(5, MakeVolumeClaim("c", "cloud")));
    Put(Pod("p", {"c"}));
    const StepResult step = Step(1);
    EXPECT_EQ(WritesIn(step), 0u);
    EXPECT_THAT(Of<model::BindPod>(step), SizeIs(1));
  }
}

TEST_F(VolumesTest, TheBindingOfAPodFollowsItsVolumeThatIsProvisioned) {
  Begin();
  const StepResult first = AskForCloud();
  const SelectVolumeNode write = Of<SelectVolumeNode>(first)[0];
  EXPECT_EQ(write.ns, "ns");
  EXPECT_EQ(write.name, "c");
  EXPECT_EQ(write.uid, "uid-c");
  EXPECT_EQ(write.resource_version, "5");
  EXPECT_EQ(write.node, "n1");
  AnswerAll(first);
  const PersistentVolumeClaim claim = Selected(MakeVolumeClaim("c", "cloud"), "n1");
  Put(Version(6, claim));
  EXPECT_THAT(BoundIn(Step(2)), IsEmpty());
  // The watch of volumes is behind that of claims.
  Put(Version(8, BoundTo(claim, "pvc-1")));
  EXPECT_THAT(BoundIn(Step(3)), IsEmpty());
  Put(Version(7,
              OfClaim(Where(MakeVolume("pvc-1", "cloud"), model::kHostnameLabel, {"n1"}), claim)));
  const StepResult step = Step(4);
  EXPECT_THAT(BoundIn(step), ElementsAre("p"));
  EXPECT_EQ(WritesIn(step), 0u);
}

TEST_F(VolumesTest, TheWatchDecidesBeforeTheAnswer) {
  for (const absl::Status& answer :
       {absl::OkStatus(), absl::FailedPreconditionError("409"), absl::UnavailableError("lost")}) {
    SCOPED_TRACE(answer.ToString());
    BeginAgain();
    const StepResult first = AskForCloud();
    Put(Version(6, Selected(MakeVolumeClaim("c", "cloud"), "n1")));
    EXPECT_EQ(WritesIn(Step(2)), 0u);
    AnswerThe<SelectVolumeNode>(first, answer);
    StepResult step = Step(3);
    EXPECT_THAT(FailuresIn(step), IsEmpty());
    EXPECT_EQ(WritesIn(step), 0u);
    Put(MakeVolume("v", "cloud"));
    Put(Version(8, BoundTo(Selected(MakeVolumeClaim("c", "cloud"), "n1"), "v")));
    step = Step(100);
    EXPECT_EQ(WritesIn(step), 0u);
    EXPECT_THAT(BoundIn(step), ElementsAre("p"));
  }
}

TEST_F(VolumesTest, AVolumeThatItsAdministratorMadeForTheClaimGetsItsUid) {
  Begin();
  const PersistentVolumeClaim claim = MakeVolumeClaim("c", "local");
  PersistentVolume volume = OfClaim(OnHost("v", "n1"), claim);
  volume.claim->uid.clear();
  Put(volume);
  Put(OnHost("a-free-one", "n1"));
  Put(claim);
  Put(Pod("p", {"c"}));
  const auto writes = Of<BindVolume>(Step(1));
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].volume, "v");
  EXPECT_EQ(writes[0].claim_uid, "uid-c");
}

TEST_F(VolumesTest, OfAGangAllPodsAreBoundOrNone) {
  Begin();
  Put(MakeGroup("ns", "gang", "team", 3));
  Put(MakeVolumeClaim("a", "cloud"));
  Put(MakeVolumeClaim("b", "cloud"));
  const std::map<std::string, std::vector<std::string>> members = {
      {"g0", {"a"}}, {"g1", {"b"}}, {"g2", {}}};
  for (const auto& [name, claims] : members) {
    Put(WithClaims(PodBuilder("ns", name).Queue("team").Group("gang").Build(), claims));
  }
  StepResult step = Step(1);
  EXPECT_EQ(WritesIn(step), 2u);
  EXPECT_THAT(BoundIn(step), IsEmpty());
  AnswerAll(step);
  Put(MakeVolume("va", "cloud"));
  Put(MakeVolume("vb", "cloud"));
  Put(Version(3, BoundTo(MakeVolumeClaim("a", "cloud"), "va")));
  EXPECT_THAT(BoundIn(Step(2)), IsEmpty()) << "one claim is not bound";
  Put(Version(3, BoundTo(MakeVolumeClaim("b", "cloud"), "vb")));
  EXPECT_THAT(BoundIn(Step(3)), UnorderedElementsAre("g0", "g1", "g2"));
}

TEST_F(VolumesTest, AGangWaitsAgainIfOneClaimFails) {
  Begin();
  Put(MakeGroup("ns", "gang", "team", 2));
  Put(MakeVolumeClaim("a", "cloud"));
  Put(MakeVolumeClaim("b", "cloud"));
  for (const auto& [name, claim] : {std::pair("g0", "a"), std::pair("g1", "b")}) {
    Put(WithClaims(PodBuilder("ns", name).Queue("team").Group("gang").Build(), {claim}));
  }
  StepResult step = Step(1);
  AnswerAll(step);
  Put(MakeVolume("va", "cloud"));
  Put(Version(3, BoundTo(MakeVolumeClaim("a", "cloud"), "va")));
  Delete(model::Kind::kPersistentVolumeClaim, "ns", "b");
  step = Step(2);
  EXPECT_THAT(BoundIn(step), IsEmpty());
  EXPECT_THAT(FailuresIn(step), ElementsAre("PersistentVolumeClaim ns/b is gone"));
  Put(Version(9, BoundTo(MakeVolumeClaim("b", "cloud"), "va")));
  // It was refused, so it goes first.
  step = Step(10);
  EXPECT_THAT(BoundIn(step), ElementsAre("g1"));
  AnswerAll(step);
  EXPECT_THAT(BoundIn(Step(11)), ElementsAre("g0"));
}

// ---- time

TEST_F(VolumesTest, APodWaitsForItsVolumesNoLongerThanTheTimeOut) {
  for (const int64_t seconds : {0, 30}) {
    SCOPED_TRACE(seconds);
    if (seconds > 0) {
      for (auto& plugin : options_.profiles[0].plugins) {
        if (plugin.name == "VolumeBinding") {
          plugin.args_json = absl::StrCat(R"({"bindTimeoutSeconds":)", seconds, "}");
        }
      }
    }
    const int64_t end = 1 + (seconds > 0 ? seconds : 600);
    BeginAgain();
    StepResult step = AskForCloud();
    AnswerAll(step);
    Put(Version(6, Selected(MakeVolumeClaim("c", "cloud"), "n1")));
    step = Step(2);
    EXPECT_EQ(step.wake_at, At(end));
    EXPECT_THAT(FailuresIn(Step(end - 1)), IsEmpty());
    step = Step(end);
    ASSERT_THAT(FailuresIn(step), SizeIs(1));
    EXPECT_THAT(FailuresIn(step)[0], AllOf(HasSubstr("binding volumes: timed out after "),
                                           HasSubstr("PersistentVolumeClaim ns/c is not bound")));
    // The claim says for which node its volume is made: the pod goes on waiting there.
    step = Step(end + 10);
    EXPECT_EQ(WritesIn(step), 0u);
    Put(MakeVolume("v", "cloud"));
    Put(Version(9, BoundTo(Selected(MakeVolumeClaim("c", "cloud"), "n1"), "v")));
    EXPECT_THAT(BoundIn(Step(end + 11)), ElementsAre("p"));
  }
}

// ---- restarts

TEST_F(VolumesTest, AfterARestartWhatWasWrittenIsNotWrittenAgain) {
  Begin(2);
  // By a former process, which chose another node than this one would.
  const PersistentVolumeClaim cloud = Version(6, Selected(MakeVolumeClaim("c", "cloud"), "n2"));
  const PersistentVolumeClaim local = MakeVolumeClaim("d", "local");
  Put(cloud);
  Put(local);
  Put(Version(7, OfClaim(OnHost("v", "n2"), local)));
  Put(Pod("p", {"c"}));
  Put(Pod("q", {"d"}));
  StepResult step = Step(1);
  EXPECT_EQ(WritesIn(step), 0u);
  EXPECT_THAT(BoundIn(step), IsEmpty());
  Put(MakeVolume("w", "cloud"));
  Put(Version(9, BoundTo(cloud, "w")));
  Put(Version(10, BoundTo(local, "v")));
  step = Step(2);
  const auto binds = Of<model::BindPod>(step);
  ASSERT_THAT(binds, SizeIs(2));
  for (const model::BindPod& bind : binds) EXPECT_EQ(bind.node, "n2");
}

TEST_F(VolumesTest, AProvisionerThatGivesUpAfterARestartSendsThePodBack) {
  Begin();
  Put(Version(6, Selected(MakeVolumeClaim("c", "cloud"), "n1")));
  Put(Pod("p", {"c"}));
  EXPECT_EQ(WritesIn(Step(1)), 0u);
  Put(Version(7, MakeVolumeClaim("c", "cloud")));
  EXPECT_THAT(FailuresIn(Step(2)), SizeIs(1));
  EXPECT_EQ(WritesIn(Step(20)), 1u);
}

// ---- several pods of a claim

TEST_F(VolumesTest, PodsThatShareAClaimWaitForOneWriteAndRunWhereItIs) {
  Begin(3);
  Put(Version(5, MakeVolumeClaim("c", "cloud")));
  Put(Pod("p", {"c"}));
  Put(Pod("q", {"c"}));
  StepResult step = Step(1);
  ASSERT_EQ(WritesIn(step), 1u);
  const std::string node = Of<SelectVolumeNode>(step)[0].node;
  Put(Pod("late", {"c"}));
  EXPECT_EQ(WritesIn(Step(2)), 0u);
  AnswerAll(step);
  EXPECT_EQ(WritesIn(Step(3)), 0u);
  // One of them goes: the others wait on.
  Delete(model::Kind::kPod, "ns", "p", "uid-ns-p");
  EXPECT_THAT(FailuresIn(Step(4)), IsEmpty());
  Put(MakeVolume("v", "cloud"));
  Put(Version(9, BoundTo(Selected(MakeVolumeClaim("c", "cloud"), node), "v")));
  step = Step(5);
  EXPECT_THAT(BoundIn(step), UnorderedElementsAre("q", "late"));
  for (const model::BindPod& bind : Of<model::BindPod>(step)) EXPECT_EQ(bind.node, node);
}

TEST_F(VolumesTest, ARefusalFailsAllPodsOfTheClaim) {
  Begin();
  Put(Version(5, MakeVolumeClaim("c", "cloud")));
  Put(Pod("p", {"c"}));
  Put(Pod("q", {"c"}));
  StepResult step = Step(1);
  AnswerThe<SelectVolumeNode>(step, absl::FailedPreconditionError("409"));
  EXPECT_THAT(FailuresIn(Step(2)), ElementsAre("409", "409"));
  EXPECT_EQ(WritesIn(Step(20)), 1u);
}

TEST_F(VolumesTest, AWriteOfAPodThatIsGoneIsKnownToTheNextPod) {
  for (const bool answered_before : {false, true}) {
    SCOPED_TRACE(answered_before);
    BeginAgain();
    const StepResult first = AskForCloud();
    if (answered_before) AnswerAll(first);
    Step(2);
    Delete(model::Kind::kPod, "ns", "p", "uid-ns-p");
    StepResult step = Step(3);
    EXPECT_EQ(WritesIn(step), 0u) << "nothing is taken back";
    Put(Pod("q", {"c"}));
    step = Step(4);
    EXPECT_EQ(WritesIn(step), 0u) << "the watch has not shown our write yet";
    if (!answered_before) AnswerAll(first);
    Put(Version(6, Selected(MakeVolumeClaim("c", "cloud"), "n1")));
    step = Step(5);
    EXPECT_EQ(WritesIn(step), 0u);
    EXPECT_THAT(FailuresIn(step), IsEmpty());
    Put(MakeVolume("v", "cloud"));
    Put(Version(9, BoundTo(Selected(MakeVolumeClaim("c", "cloud"), "n1"), "v")));
    EXPECT_THAT(BoundIn(Step(6)), ElementsAre("q"));
  }
}

TEST_F(VolumesTest, APodWaitsForAllOfItsClaims) {
  Begin();
  Put(Version(4, OnHost("v", "n1")));
  Put(MakeVolumeClaim("c", "local"));
  Put(MakeVolumeClaim("d", "cloud"));
  Put(OfClaim(MakeVolume("w", "cloud"), MakeVolumeClaim("e", "cloud")));
  Put(BoundTo(MakeVolumeClaim("e", "cloud"), "w"));
  Put(Pod("p", {"c", "d", "e"}));
  StepResult step = Step(1);
  EXPECT_THAT(Of<BindVolume>(step), SizeIs(1));
  EXPECT_THAT(Of<SelectVolumeNode>(step), SizeIs(1));
  AnswerAll(step);
  Put(Version(8, BoundTo(MakeVolumeClaim("c", "local"), "v")));
  EXPECT_THAT(BoundIn(Step(2)), IsEmpty());
  Put(MakeVolume("x", "cloud"));
  Put(Version(9, BoundTo(MakeVolumeClaim("d", "cloud"), "x")));
  EXPECT_THAT(BoundIn(Step(3)), ElementsAre("p"));
}

}  // namespace
}  // namespace fairlead::core::testing
