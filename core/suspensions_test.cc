// Workloads are suspended instead of evicted (core/suspensions.h), through the decision loop, and
// beside it what an API server would have: objects with versions.
#include "core/suspensions.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/testing/budget_builders.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::core::testing {
namespace {

using model::testing::MakeBudget;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

// Objects of kinds that own pods, and what was asked of them.
class OwnersServer {
 public:
  void Put(const std::string& json) {
    Json object = *Json::Parse(json);
    const std::string key = KeyOf(object.TextAt({"kind"}), object.TextAt({"metadata", "name"}));
    object.At({"metadata"})->Set("resourceVersion", absl::StrCat(++version_));
    objects_[key] = std::move(object);
  }
  void Remove(const std::string& kind, const std::string& name) {
    objects_.erase(KeyOf(kind, name));
  }
  // Another program writes it, as status updates do.
  void Touch(const std::string& kind, const std::string& name) {
    objects_.at(KeyOf(kind, name))
        .At({"metadata"})
        ->Set("resourceVersion", absl::StrCat(++version_));
  }
  [[nodiscard]] const Json& Object(const std::string& kind, const std::string& name) const {
    return objects_.at(KeyOf(kind, name));
  }
  [[nodiscard]] bool IsSuspended(const std::string& kind, const std::string& name) const {
    return Object(kind, name).TextAt({"spec", "suspend"}) == "true";
  }
  [[nodiscard]] bool IsMarked(const std::string& kind, const std::string& name) const {
    return Object(kind, name).TextAt({"metadata", "labels", model::kSuspendedLabel}) == "true";
  }
  [[nodiscard]] model::ActionResult Read(uint64_t id, const model::ReadObject& read) const {
    const auto found = objects_.find(KeyOf(read.kind, read.name));
    if (found == objects_.end()) return {id, absl::NotFoundError("gone")};
    model::ActionResult result{id, absl::OkStatus()};
    result.object = std::make_shared<const std::string>(found->second.Compact());
    return result;
  }
  absl::Status Write(const model::SetSuspended& write) {
    const model::Suspendable& set = write.object;
    const auto found = objects_.find(KeyOf(set.kind, set.name));
    if (found == objects_.end()) return absl::NotFoundError("gone");
    Json& metadata = *found->second.At({"metadata"});
    if (metadata.TextAt({"resourceVersion"}) != set.resource_version ||
        metadata.TextAt({"uid"}) != set.uid) {
      return absl::AbortedError("409");
    }
    EXPECT_EQ(set.path, "spec.suspend");
    found->second.At({"spec"})->Set("suspend", Json::Bool(write.suspended));
    Json labels = Json::Object(), annotations = Json::Object();
    if (write.suspended) {
      labels.Set(model::kSuspendedLabel, "true");
      annotations.Set(model::kSuspendedByAnnotation, set.by);
      annotations.Set(model::kSuspendedForAnnotation, set.reason);
    }
    metadata.Set("labels", std::move(labels)).Set("annotations", std::move(annotations));
    metadata.Set("resourceVersion", absl::StrCat(++version_));
    return absl::OkStatus();
  }
  [[nodiscard]] model::ActionResult List(uint64_t id, const model::ListSuspended& list) const {
    Json found = Json::Array();
    for (const auto& [key, object] : objects_) {
      const bool marked = object.At({"metadata", "labels", model::kSuspendedLabel}) != nullptr;
      if (marked && object.TextAt({"kind"}) == list.kind) found.Add(object);
    }
    model::ActionResult result{id, absl::OkStatus()};
    result.object = std::make_shared<const std::string>(found.Compact());
    return result;
  }

 private:
  static std::string KeyOf(const std::string& kind, const std::string& name) {
    return absl::StrCat(kind, "/", name);
  }
  std::map<std::string, Json> objects_;
  int64_t version_ = 100;
};

constexpr char kJobOfTwo[] =
    R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","namespace":"ns","uid":"u-j",)"
    R"("annotations":{"kai.scheduler/batch-min-member":"2"}},"spec":{"parallelism":2}})";
constexpr char kGroupOfTwo[] = "pg-j-u-j";

class SuspensionsTest : public DecisionLoopTest {
 protected:
  SuspensionsTest() {
    options_.hook.enabled = false;
    options_.grouping.enabled = true;
    options_.grouping.table =
        std::make_shared<const grouping::KindTable>(grouping::KindTable::BuiltIn());
    Begin();
  }
  void Begin() {
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    Put(MakeNode("n", 8));
  }
  // A pod of Job "j" that runs on the node.
  model::Pod OfJob(const std::string& name, int64_t gpus) {
    model::Pod pod = PodBuilder("ns", name)
                         .Queue("q")
                         .Gpus(gpus)
                         .Priority("low", 10)
                         .Created(1)
                         .On("n")
                         .Label("job", "j")
                         .Build();
    pod.meta.owners.push_back({"batch/v1", "Job", "j", "u-j", true});
    pod.runs_to_end = true;
    server_.Put(absl::StrCat(
        R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")", name,
        R"(","namespace":"ns","uid":")", pod.meta.uid,
        R"(","ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"u-j",)"
        R"("controller":true}]},"spec":{}})"));
    return pod;
  }
  void PutGang(int32_t minimum = 2) {
    server_.Put(kJobOfTwo);
    model::PodGroup group = MakeGroup("ns", kGroupOfTwo, "q", minimum);
    group.meta.uid = "u-group";
    group.priority_class_name = "low";
    Put(group);
    for (const std::string name : {"a", "b"}) {
      model::Pod pod = OfJob(name, 4);
      pod.meta.annotations.Set(model::kPodGroupAnnotation, kGroupOfTwo);
      pods_[name] = pod;
      Put(pod);
    }
  }
  void PutHigh(int64_t gpus) {
    Put(PodBuilder("ns", "high").Queue("q").Gpus(gpus).Priority("high", 60).Created(99).Build());
  }
  // A gang that runs, and the pod that needs all of its node.
  void PutPreemptedGang() {
    PutGang();
    Run(10);
    PutHigh(8);
  }
  void PutGoing(const std::string& name) {
    pods_[name].meta.deletion = At(now_);
    Put(pods_[name]);
  }
  void PutGone(const std::string& name) {
    loop_->Apply(model::Delete{model::Kind::kPod, "ns", name, pods_[name].meta.uid});
  }

  void Answer(const Action& action) {
    if (const auto* read = std::get_if<model::ReadObject>(&action.what)) {
      ++reads_;
      loop_->Apply(refuse_reads_.ok() ? server_.Read(action.id, *read)
                                      : model::ActionResult{action.id, refuse_reads_});
    } else if (const auto* list = std::get_if<model::ListSuspended>(&action.what)) {
      listed_.insert(list->kind);
      loop_->Apply(server_.List(action.id, *list));
    } else if (const auto* set = std::get_if<model::SetSuspended>(&action.what)) {
      said_.push_back(set->suspended ? "suspend" : "release");
      if (before_write_) std::exchange(before_write_, nullptr)();
      absl::Status status = lose_writes_ ? absl::OkStatus() : server_.Write(*set);
      if (!answer_writes_.ok()) status = answer_writes_;
      loop_->Apply(model::ActionResult{action.id, status});
    } else {
      if (const auto* evict = std::get_if<model::EvictPod>(&action.what)) {
        said_.push_back(absl::StrCat("evict ", evict->name));
      }
      if (const auto* bind = std::get_if<model::BindPod>(&action.what)) {
        said_.push_back(absl::StrCat("bind ", bind->name));
      }
      loop_->Apply(model::ActionResult{action.id, absl::OkStatus()});
    }
  }
  // Steps until nothing is asked any more at that time. Returns what was said meanwhile.
  std::vector<std::string> Run(int64_t at) {
    now_ = at;
    for (int i = 0; i < 50; ++i) {
      last_ = Step(at);
      for (const Action& action : last_.actions) Answer(action);
      if (last_.actions.empty()) break;
    }
    return std::exchange(said_, {});
  }

  OwnersServer server_;
  std::map<std::string, model::Pod> pods_;
  std::vector<std::string> said_;
  std::set<std::string> listed_;
  absl::Status refuse_reads_, answer_writes_;
  bool lose_writes_ = false;
  std::function<void()> before_write_;
  int reads_ = 0;
  int64_t now_ = 0;
  StepResult last_;
};

TEST_F(SuspensionsTest, AGangIsSuspendedAndReleasedWhenItsPodsHaveEnded) {
  PutPreemptedGang();
  EXPECT_THAT(Run(100), ElementsAre("suspend"));
  EXPECT_TRUE(server_.IsSuspended("Job", "j"));
  const Json& job = server_.Object("Job", "j");
  EXPECT_EQ(job.TextAt({"metadata", "annotations", model::kSuspendedByAnnotation}), "fairlead");
  EXPECT_THAT(job.TextAt({"metadata", "annotations", model::kSuspendedForAnnotation}),
              HasSubstr("for workload ns/high"));
  EXPECT_EQ(loop_->Count().suspended_workloads, 1);
  PutGoing("a");
  PutGoing("b");
  EXPECT_THAT(Run(101), IsEmpty());
  PutGone("a");
  EXPECT_THAT(Run(102), IsEmpty()) << "one pod holds its room still";
  PutGone("b");
  EXPECT_THAT(Run(103), UnorderedElementsAre("release", "bind high"));
  EXPECT_FALSE(server_.IsSuspended("Job", "j"));
  EXPECT_FALSE(server_.IsMarked("Job", "j"));
  EXPECT_EQ(loop_->Count().suspended_workloads, 0);
}

TEST_F(SuspensionsTest, AJobOfOnePodIsSuspended) {
  server_.Put(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","namespace":"ns",)"
              R"("uid":"u-j"},"spec":{"parallelism":1}})");
  pods_["a"] = OfJob("a", 8);
  Put(pods_["a"]);
  Run(10);
  PutHigh(8);
  EXPECT_THAT(Run(100), ElementsAre("suspend"));
  PutGone("a");
  EXPECT_THAT(Run(101), UnorderedElementsAre("release", "bind high"));
}

// A Deployment's pods, and those of a bare ReplicaSet, restart for ever: their owners are not read.
TEST_F(SuspensionsTest, APodThatNeverEndsByItselfIsEvictedWithoutARead) {
  model::Pod pod = OfJob("a", 8);
  pod.runs_to_end = false;
  Put(pod);
  Run(10);
  reads_ = 0;
  PutHigh(8);
  EXPECT_THAT(Run(100), ElementsAre("evict a"));
  EXPECT_EQ(reads_, 0);
}

TEST_F(SuspensionsTest, APartOfAWorkloadIsEvicted) {
  PutGang(/*minimum=*/1);
  Run(10);
  PutHigh(4);
  const std::vector<std::string> said = Run(100);
  ASSERT_THAT(said, ::testing::SizeIs(1));
  EXPECT_THAT(said[0], ::testing::StartsWith("evict "));
}

TEST_F(SuspensionsTest, WhatABudgetSelectsIsEvicted) {
  PutGang();
  Put(MakeBudget("budget", "", /*allowed=*/2));
  Run(10);
  PutHigh(8);
  EXPECT_THAT(Run(100), ElementsAre("evict b", "evict a"));
}

TEST_F(SuspensionsTest, APodGroupThatOwnersDoNotMakeIsEvicted) {
  server_.Put(kJobOfTwo);
  model::PodGroup group = MakeGroup("ns", "mine", "q", 2);
  group.priority_class_name = "low";
  Put(group);
  for (const std::string name : {"a", "b"}) {
    model::Pod pod = OfJob(name, 4);
    pod.meta.annotations.Set(model::kPodGroupAnnotation, "mine");
    Put(pod);
  }
  Run(10);
  PutHigh(8);
  EXPECT_THAT(Run(100), ElementsAre("evict b", "evict a"));
}

TEST_F(SuspensionsTest, WhatAnotherProgramSuspendsIsEvicted) {
  for (const std::string job :
       {R"({"labels":{"kueue.x-k8s.io/queue-name":"x"},SPEC})", R"({SUSPENDED})",
        R"({"deletionTimestamp":"2026-01-01T00:00:00Z",SPEC})", R"({TEXT})"}) {
    Begin();
    PutGang();
    std::string text = absl::StrCat(R"({"apiVersion":"batch/v1","kind":"Job","metadata":)", job);
    const auto replace = [&text](const std::string& what, const std::string& by) {
      const size_t at = text.find(what);
      if (at != std::string::npos) text.replace(at, what.size(), by);
    };
    const std::string names =
        R"("name":"j","namespace":"ns","uid":"u-j",)"
        R"("annotations":{"kai.scheduler/batch-min-member":"2"}},"spec":{"parallelism":2)";
    replace("SPEC", names + "}");
    replace("SUSPENDED", names + R"(,"suspend":true})");
    replace("TEXT", names + R"(,"suspend":"no"})");
    server_.Put(text);
    Run(10);
    PutHigh(8);
    EXPECT_THAT(Run(100), ElementsAre("evict b", "evict a")) << text;
  }
}

TEST_F(SuspensionsTest, ARefusalLeadsToEvictions) {
  for (const absl::Status& refusal :
       {absl::PermissionDeniedError("403"), absl::InvalidArgumentError("422"),
        absl::NotFoundError("404")}) {
    Begin();
    PutGang();
    Run(10);
    PutHigh(8);
    answer_writes_ = refusal;
    lose_writes_ = true;
    EXPECT_THAT(Run(100), ElementsAre("suspend", "evict b", "evict a")) << refusal;
    EXPECT_EQ(loop_->Count().suspended_workloads, 0);
  }
}

TEST_F(SuspensionsTest, AnOwnerThatMayNotBeReadLeadsToEvictions) {
  PutPreemptedGang();
  refuse_reads_ = absl::PermissionDeniedError("403");
  EXPECT_THAT(Run(100), ElementsAre("evict b", "evict a"));
}

TEST_F(SuspensionsTest, AServerThatDoesNotAnswerLeadsToEvictionsInTheEnd) {
  PutPreemptedGang();
  refuse_reads_ = absl::UnavailableError("no answer");
  EXPECT_THAT(Run(100), IsEmpty());
  EXPECT_LE(last_.wake_at, At(101));
  EXPECT_THAT(Run(101), IsEmpty());
  EXPECT_THAT(Run(115), IsEmpty());
  EXPECT_EQ(last_.wake_at, At(116)) << "they are looked at once more";
  EXPECT_THAT(Run(116), UnorderedElementsAre("evict b", "evict a"));
}

TEST_F(SuspensionsTest, AnObjectThatAnotherProgramWroteMeanwhileIsReadAgain) {
  PutPreemptedGang();
  before_write_ = [this] { server_.Touch("Job", "j"); };
  EXPECT_THAT(Run(100), ElementsAre("suspend"));
  EXPECT_FALSE(server_.IsSuspended("Job", "j"));
  EXPECT_THAT(Run(101), ElementsAre("suspend"));
  EXPECT_TRUE(server_.IsSuspended("Job", "j"));
}

TEST_F(SuspensionsTest, AWriteOfUnknownOutcomeIsReadBeforeItIsSaidAgain) {
  PutPreemptedGang();
  answer_writes_ = absl::UnavailableError("no answer");
  EXPECT_THAT(Run(100), ElementsAre("suspend"));
  EXPECT_TRUE(server_.IsSuspended("Job", "j")) << "it was done";
  answer_writes_ = absl::OkStatus();
  EXPECT_THAT(Run(101), IsEmpty()) << "the object says so";
  PutGone("a");
  PutGone("b");
  answer_writes_ = absl::UnavailableError("no answer");
  EXPECT_THAT(Run(102), UnorderedElementsAre("release", "bind high"));
  EXPECT_FALSE(server_.IsSuspended("Job", "j"));
  EXPECT_EQ(loop_->Count().suspended_workloads, 1) << "no answer says that it is released";
  EXPECT_THAT(Run(103), IsEmpty());
  EXPECT_EQ(loop_->Count().suspended_workloads, 0);
}

// The write is lost for good, or late: the pods are evicted, and the object is looked at once more
// when nothing of it travels any longer.
TEST_F(SuspensionsTest, WhatWasPerhapsSuspendedIsReleasedAfterTheDoubt) {
  PutPreemptedGang();
  answer_writes_ = absl::UnavailableError("no answer");
  lose_writes_ = true;
  EXPECT_THAT(Run(100), ElementsAre("suspend"));
  for (int64_t at = 101; at <= 115; ++at) Run(at);
  EXPECT_THAT(Run(116), UnorderedElementsAre("evict b", "evict a"));
  EXPECT_EQ(loop_->Count().suspended_workloads, 1) << "perhaps";
  PutGone("a");
  PutGone("b");
  lose_writes_ = false;
  answer_writes_ = absl::OkStatus();
  EXPECT_THAT(Run(117), ElementsAre("bind high"));
  // What comes late.
  const Json& job = server_.Object("Job", "j");
  const model::Suspendable late{
      "batch/v1",     "Job",      "ns",  "j", "u-j", job.TextAt({"metadata", "resourceVersion"}),
      "spec.suspend", "fairlead", "late"};
  ASSERT_TRUE(server_.Write({0, true, late}).ok());
  EXPECT_THAT(Run(150), IsEmpty());
  EXPECT_THAT(Run(250), ElementsAre("release"));
  EXPECT_FALSE(server_.IsSuspended("Job", "j"));
}

TEST_F(SuspensionsTest, AControllerThatDoesNothingLeadsToEvictions) {
  PutPreemptedGang();
  EXPECT_THAT(Run(100), ElementsAre("suspend"));
  PutGoing("a");
  EXPECT_THAT(Run(115), IsEmpty());
  EXPECT_THAT(Run(116), ElementsAre("evict b"));
  EXPECT_TRUE(server_.IsSuspended("Job", "j"));
  PutGone("a");
  PutGone("b");
  EXPECT_THAT(Run(117), UnorderedElementsAre("release", "bind high"));
}

// What the pods were to make way for needs it no longer when the controller has done nothing.
TEST_F(SuspensionsTest, PodsThatServeNothingAnyMoreRunOnAndTheWorkloadIsReleased) {
  PutPreemptedGang();
  EXPECT_THAT(Run(100), ElementsAre("suspend"));
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "high", ""});
  Run(101);
  Run(115);
  EXPECT_THAT(Run(116), ElementsAre("release"));
  EXPECT_FALSE(server_.IsSuspended("Job", "j"));
  EXPECT_EQ(loop_->Count().suspended_workloads, 0);
}

TEST_F(SuspensionsTest, PodsThatNeverEndDoNotHoldUpTheReleaseForEver) {
  PutPreemptedGang();
  Run(100);
  PutGoing("a");
  PutGoing("b");
  EXPECT_THAT(Run(219), IsEmpty());
  EXPECT_THAT(Run(220), ElementsAre("release"));
}

TEST_F(SuspensionsTest, AUserKeepsItSuspendedByRemovingTheLabel) {
  PutPreemptedGang();
  Run(100);
  server_.Put(absl::StrCat(
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","namespace":"ns",)",
      R"("uid":"u-j"},"spec":{"parallelism":2,"suspend":true}})"));
  PutGone("a");
  PutGone("b");
  EXPECT_THAT(Run(101), ElementsAre("bind high"));
  EXPECT_TRUE(server_.IsSuspended("Job", "j"));
  EXPECT_EQ(loop_->Count().suspended_workloads, 0);
}

// A server that is asked in a bad moment says 404 of what is there.
TEST_F(SuspensionsTest, AWorkloadIsBelievedToBeGoneAfterTwoMinutes) {
  PutPreemptedGang();
  EXPECT_THAT(Run(100), ElementsAre("suspend"));
  const std::string job = server_.Object("Job", "j").Compact();
  server_.Remove("Job", "j");
  PutGone("a");
  PutGone("b");
  EXPECT_THAT(Run(101), ElementsAre("bind high"));
  EXPECT_EQ(loop_->Count().suspended_workloads, 1);
  server_.Put(job);
  EXPECT_THAT(Run(102), ElementsAre("release"));
  EXPECT_EQ(loop_->Count().suspended_workloads, 0);
}

TEST_F(SuspensionsTest, AWorkloadThatIsGoneIsForgotten) {
  PutPreemptedGang();
  Run(100);
  server_.Remove("Job", "j");
  PutGone("a");
  PutGone("b");
  for (int64_t at = 101; at <= 240; ++at) Run(at);
  EXPECT_EQ(loop_->Count().suspended_workloads, 0);
}

// So is the list of a kind: it is asked for twice.
TEST_F(SuspensionsTest, ANewLeaderListsOnceMore) {
  PutPreemptedGang();
  EXPECT_THAT(Run(100), ElementsAre("suspend"));
  const std::string job = server_.Object("Job", "j").Compact();
  server_.Remove("Job", "j");
  Begin();
  Run(110);
  EXPECT_EQ(loop_->Count().suspended_workloads, 0) << "the list was empty";
  server_.Put(job);
  listed_.clear();
  EXPECT_THAT(Run(229), IsEmpty());
  EXPECT_THAT(listed_, IsEmpty());
  Run(230);
  EXPECT_THAT(listed_, ::testing::Contains("Job"));
  EXPECT_THAT(Run(245), ElementsAre("release"));
  listed_.clear();
  Run(400);
  EXPECT_THAT(listed_, IsEmpty()) << "twice is enough";
}

TEST_F(SuspensionsTest, AnotherObjectOfTheNameIsNotReleased) {
  PutPreemptedGang();
  Run(100);
  server_.Put(
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","namespace":"ns",)"
      R"("uid":"u-other","labels":{"fairlead.dev/suspended":"true"},)"
      R"("annotations":{"fairlead.dev/suspended-by":"fairlead"}},"spec":{"suspend":true}})");
  PutGone("a");
  PutGone("b");
  EXPECT_THAT(Run(101), ElementsAre("bind high"));
  EXPECT_TRUE(server_.IsSuspended("Job", "j"));
}

TEST_F(SuspensionsTest, ANewLeaderReleasesWhatTheFormerOneSuspended) {
  PutPreemptedGang();
  EXPECT_THAT(Run(100), ElementsAre("suspend"));
  // Another shard's, and one that a user suspended.
  server_.Put(
      R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"other","namespace":"ns",)"
      R"("uid":"u-other","labels":{"fairlead.dev/suspended":"true"},)"
      R"("annotations":{"fairlead.dev/suspended-by":"fairlead/a"}},"spec":{"suspend":true}})");
  std::swap(options_.state.scheduler_names[0], options_.state.scheduler_names[1]);
  Begin();
  listed_.clear();
  EXPECT_THAT(Run(110), IsEmpty());
  EXPECT_THAT(listed_, AllOf(::testing::Contains("Job"), ::testing::Contains("JobSet"),
                             ::testing::Contains("RayJob"), Not(::testing::Contains("RayService")),
                             Not(::testing::Contains("Deployment"))));
  EXPECT_EQ(loop_->Count().suspended_workloads, 1);
  EXPECT_THAT(Run(124), IsEmpty()) << "its controller has time";
  EXPECT_EQ(last_.wake_at, At(125));
  EXPECT_THAT(Run(125), ElementsAre("release"));
  EXPECT_FALSE(server_.IsSuspended("Job", "j"));
  EXPECT_TRUE(server_.IsSuspended("Job", "other"));
}

TEST_F(SuspensionsTest, ItIsOffWithoutGroupingAndBySetting) {
  options_.grouping.suspend = false;
  Begin();
  PutGang();
  Run(10);
  EXPECT_THAT(listed_, IsEmpty());
  PutHigh(8);
  EXPECT_THAT(Run(100), ElementsAre("evict b", "evict a"));
}

// The controller would end them too. They are let in when the workload is released, also if the
// controller has left them.
TEST_F(SuspensionsTest, PodsThatWaitAreHeldBackUntilItIsReleased) {
  PutGang(/*minimum=*/1);
  model::Pod more = OfJob("c", 1);
  more.meta.annotations.Set(model::kPodGroupAnnotation, kGroupOfTwo);
  more.node_name.clear();
  more.phase = model::PodPhase::kPending;
  Put(more);
  Run(10);
  PutHigh(8);
  EXPECT_THAT(Run(100), ElementsAre("suspend"));
  Put(MakeNode("free", 1));
  EXPECT_THAT(Run(101), IsEmpty()) << "there is room for it";
  EXPECT_EQ(loop_->Count().waiting[verdict::Code::kGated].pods, 1);
  // Neither does an event of the pod let it in.
  more.meta.labels.Set("x", "y");
  Put(more);
  EXPECT_THAT(Run(102), IsEmpty());
  PutGone("a");
  PutGone("b");
  EXPECT_THAT(Run(103), UnorderedElementsAre("release", "bind high", "bind c"));
  EXPECT_EQ(loop_->Count().waiting[verdict::Code::kGated].pods, 0);
}

// What a stale watch shows is no reason to end work.
TEST_F(SuspensionsTest, NothingIsSuspendedWhileTheWatchIsStale) {
  PutPreemptedGang();
  StepResult result = Step(100);
  loop_->SetStale({model::Kind::kPod});
  for (int i = 0; i < 10; ++i) {
    for (const Action& action : result.actions) Answer(action);
    result = Step(100);
  }
  EXPECT_THAT(std::exchange(said_, {}), IsEmpty());
  loop_->SetStale({});
  EXPECT_THAT(Run(101), ElementsAre("suspend"));
}

}  // namespace
}  // namespace fairlead::core::testing
