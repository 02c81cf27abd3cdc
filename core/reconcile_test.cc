// Desired, sent, observed: writes that are refused, lost or late, gangs with failing bindings,
// evictions that outlive their reason, and what users see of it.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/model/api_names.h"

namespace fairlead::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class ReconcileTest : public NoHookTest {
 protected:
  // The watch shows the gang "g" with the verdict that was written.
  void ShowGroupWith(const std::string& verdict_json) {
    const size_t hash = verdict_json.find("\"hash\":\"") + 8;
    model::PodGroup shown = MakeGroup("ns", "g", "q", 2);
    shown.schedulability_hash = verdict_json.substr(hash, verdict_json.find('"', hash) - hash);
    Put(shown);
  }
  // The world obeys: pods are bound, evicted pods go. `refuse` names pods with refused bindings.
  void Obey(const StepResult& result, const std::set<std::string>& refuse = {}) {
    for (const model::Action& action : result.actions) {
      absl::Status status;
      if (const auto* bind = std::get_if<model::BindPod>(&action.what)) {
        if (refuse.contains(bind->name)) {
          status = absl::PermissionDeniedError("webhook says no");
        } else {
          loop_->Apply(model::ActionResult{action.id, status});
          running_.insert(bind->name);
          model::Pod pod = pods_.at(bind->name);
          pod.node_name = bind->node;
          pod.phase = model::PodPhase::kRunning;
          Put(pod);
          continue;
        }
      } else if (const auto* evict = std::get_if<model::EvictPod>(&action.what)) {
        loop_->Apply(model::ActionResult{action.id, status});
        running_.erase(evict->name);
        loop_->Apply(model::Delete{model::Kind::kPod, evict->ns, evict->name, evict->uid});
        // Its controller makes another pod.
        model::Pod pod = pods_.at(evict->name);
        pod.meta.uid = absl::StrCat("uid-", evict->name, "-", ++made_);
        Make(pod);
        continue;
      }
      loop_->Apply(model::ActionResult{action.id, status});
    }
  }
  void Make(const model::Pod& pod) {
    pods_[pod.meta.name] = pod;
    Put(pod);
  }
  void MakeGang(int size) {
    Put(MakeGroup("ns", "g", "q", size));
    for (int i = 0; i < size; ++i) {
      Make(PodBuilder("ns", absl::StrCat("g", i)).Group("g").Gpus(1).Created(1).Build());
    }
  }
  std::map<std::string, model::Pod> pods_;
  std::set<std::string> running_;
  int made_ = 0;
};

// ---- bindings

TEST_F(ReconcileTest, AfterAnUnknownOutcomeNoRefusalFreesTheRoom) {
  Put(MakeNode("n", 1));
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Created(1).Build());
  Put(PodBuilder("ns", "other").Queue("q").Gpus(1).Created(2).Build());
  StepResult result = Step(1);
  ASSERT_THAT(BoundIn(result), ElementsAre("p"));
  AnswerThe<model::BindPod>(result, absl::UnavailableError("lost"));
  for (int at = 2; at < 90; ++at) {
    result = Step(at);
    for (const std::string& name : BoundIn(result)) EXPECT_EQ(name, "p") << at;
    // A webhook's refusal says nothing about the first attempt.
    AnswerThe<model::BindPod>(result, absl::PermissionDeniedError("webhook says no"));
  }
}

// By then the watch would show what the first attempt did, unless the watch is stale.
TEST_F(ReconcileTest, ARefusalIsBelievedLongAfterTheLastUnknownOutcome) {
  for (const bool stale : {false, true}) {
    SCOPED_TRACE(stale);
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    Put(MakeNode("n", 1));
    Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Created(1).Build());
    Put(PodBuilder("ns", "other").Queue("q").Gpus(1).Created(2).Build());
    StepResult result = Step(1);
    ASSERT_THAT(BoundIn(result), ElementsAre("p"));
    AnswerThe<model::BindPod>(result, absl::UnavailableError("lost"));
    if (stale) loop_->SetStale({model::Kind::kPod});
    std::set<std::string> bound;
    for (int at = 2; at < 300; ++at) {
      result = Step(at);
      for (const std::string& name : BoundIn(result)) bound.insert(name);
      AnswerThe<model::BindPod>(result, absl::PermissionDeniedError("webhook says no"));
    }
    EXPECT_EQ(bound.contains("other"), !stale);
  }
}

// g0 was evicted, and its successor would be bound beside a pod that perhaps never is.
TEST_F(ReconcileTest, NoPodOfAGangIsBoundBesideABindingInDoubt) {
  Put(MakeNode("n", 8));
  MakeGang(2);
  StepResult result = Step(1);
  ASSERT_THAT(BoundIn(result), UnorderedElementsAre("g0", "g1"));
  for (const model::Action& action : result.actions) {
    const auto* bind = std::get_if<model::BindPod>(&action.what);
    if (bind == nullptr) continue;
    loop_->Apply(model::ActionResult{
        action.id, bind->name == "g1" ? absl::UnavailableError("lost") : absl::OkStatus()});
  }
  const model::Pod gone = pods_.at("g0");
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "g0", gone.meta.uid});
  Make(PodBuilder("ns", "g2").Group("g").Gpus(1).Created(2).Build());
  for (int at = 2; at < 60; ++at) {
    result = Step(at);
    for (const std::string& name : BoundIn(result)) EXPECT_EQ(name, "g1") << at;
    AnswerThe<model::BindPod>(result, absl::UnavailableError("lost"));
  }
  model::Pod bound = pods_.at("g1");
  bound.node_name = "n";
  Put(bound);
  EXPECT_THAT(BoundIn(Step(60)), ElementsAre("g2"));
}

TEST_F(ReconcileTest, AGangIsNotBegunUntilAllThatItNeedsIsReserved) {
  model::Node node = MakeNode("n", 4);
  node.meta.labels.Set("nvidia.com/gpu.memory", "40000");
  Put(node);
  Put(MakeGroup("ns", "g", "q", 2));
  Make(PodBuilder("ns", "whole").Group("g").Gpus(1).Created(1).Build());
  Make(PodBuilder("ns", "share").Group("g").GpuFraction(500).Created(1).Build());
  StepResult result = Step(1);
  EXPECT_THAT(BoundIn(result), IsEmpty()) << "the share's GPU is not reserved yet";
  ASSERT_THAT(Of<model::CreateGpuReservation>(result), SizeIs(1));
  AnswerThe<model::CreateGpuReservation>(result, absl::PermissionDeniedError("no quota"));
  for (int at = 2; at < 200; at += 3) {
    result = Step(at);
    EXPECT_THAT(BoundIn(result), IsEmpty()) << "at " << at;
    AnswerThe<model::CreateGpuReservation>(result, absl::PermissionDeniedError("no quota"));
  }
  bool named = false;
  for (const WaitingRow& row : loop_->MakeView(At(200)).waiting) {
    named = named || row.message.find("no quota") != std::string::npos;
  }
  EXPECT_TRUE(named) << "the verdict names the refusal";
}

TEST_F(ReconcileTest, AGangOfWhichOneBindingIsAlwaysRefusedDoesNotStayHalfBound) {
  Put(MakeNode("n", 8));
  MakeGang(4);
  absl::Time now = At(1);
  absl::Time half_since = absl::InfiniteFuture();
  absl::Duration longest = absl::ZeroDuration();
  int evictions = 0;
  std::string reason;
  while (now < At(900)) {
    StepResult result = StepAt(now);
    evictions += static_cast<int>(EvictedIn(result).size());
    for (const auto& write : Of<model::SetPodGroupSchedulability>(result)) {
      if (write.reason == "BindingRefused") reason = write.message;
    }
    Obey(result, {"g2"});
    if (running_.empty()) {
      half_since = absl::InfiniteFuture();
    } else {
      half_since = std::min(half_since, now);
      longest = std::max(longest, now - half_since);
    }
    now += absl::Milliseconds(500);
  }
  EXPECT_LE(longest, absl::Seconds(70));
  EXPECT_EQ(evictions, 3) << "a second attempt begins with the pod that was refused";
  EXPECT_THAT(running_, IsEmpty());
  EXPECT_THAT(reason, HasSubstr("webhook says no"));
}

TEST_F(ReconcileTest, EvictionsOfABrokenGangThatAreRefusedAreRepeatedEverLater) {
  Put(MakeNode("n", 8));
  MakeGang(4);
  std::map<std::string, int> asked;
  for (absl::Time now = At(1); now < At(600); now += absl::Milliseconds(500)) {
    StepResult others;
    for (const Action& action : StepAt(now).actions) {
      if (const auto* evict = std::get_if<model::EvictPod>(&action.what)) {
        ++asked[evict->name];
        loop_->Apply(model::ActionResult{action.id, absl::PermissionDeniedError("403")});
      } else {
        others.actions.push_back(action);
      }
    }
    Obey(others, {"g2"});
  }
  ASSERT_EQ(asked.size(), 3u);
  for (const auto& [name, times] : asked) {
    EXPECT_GE(times, 4) << name;
    EXPECT_LE(times, 16) << name;
  }
}

TEST_F(ReconcileTest, ABrokenGangStartsWhenNothingRefusesItAnyMore) {
  Put(MakeNode("n", 8));
  MakeGang(4);
  absl::Time now = At(1);
  for (; now < At(200); now += absl::Milliseconds(500)) Obey(StepAt(now), {"g2"});
  EXPECT_THAT(running_, IsEmpty());
  for (; now < At(600); now += absl::Milliseconds(500)) Obey(StepAt(now));
  EXPECT_THAT(running_, UnorderedElementsAre("g0", "g1", "g2", "g3"));
}

TEST_F(ReconcileTest, APodThatWentFirstWithAllOthersAndIsRefusedWaitsAgain) {
  Put(MakeNode("n", 8));
  MakeGang(2);
  absl::Time now = At(1);
  const auto run = [&](absl::Time until, const std::set<std::string>& refused) {
    for (; now < until; now += absl::Milliseconds(500)) Obey(StepAt(now), refused);
  };
  run(At(2), {"g0", "g1"});
  // Both go first now; the binding of one is refused once more.
  run(At(20), {"g1"});
  run(At(120), {});
  EXPECT_THAT(running_, UnorderedElementsAre("g0", "g1"));
}

TEST_F(ReconcileTest, AnExtraPodThatIsRefusedLeavesItsGangAlone) {
  Put(MakeNode("n", 8));
  MakeGang(2);
  Make(PodBuilder("ns", "extra").Group("g").Gpus(1).Created(2).Build());
  for (absl::Time now = At(1); now < At(300); now += absl::Milliseconds(500)) {
    StepResult result = StepAt(now);
    EXPECT_THAT(EvictedIn(result), IsEmpty());
    Obey(result, {"extra"});
  }
  EXPECT_THAT(running_, UnorderedElementsAre("g0", "g1"));
}

TEST_F(ReconcileTest, APodOfAStepThatIsHeldGoesAndTheOthersAreDecidedAgain) {
  model::Node node = MakeNode("n", 4);
  node.meta.labels.Set("nvidia.com/gpu.memory", "40000");
  Put(node);
  Put(MakeGroup("ns", "g", "q", 2));
  Make(PodBuilder("ns", "whole").Group("g").Gpus(1).Created(1).Build());
  Make(PodBuilder("ns", "share").Group("g").GpuFraction(500).Created(1).Build());
  AnswerAll(Step(1));
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "share", pods_["share"].meta.uid});
  for (int at = 2; at < 100; ++at) EXPECT_THAT(BoundIn(Step(at)), IsEmpty());
}

// ---- evictions

class PacedEvictionsTest : public ReconcileTest {
 protected:
  // A node of eight GPUs with eight pods of low priority, numbered from `first`.
  void FillNode(const std::string& node, int first) {
    Put(MakeNode(node, 8));
    for (int i = first; i < first + 8; ++i) {
      Make(PodBuilder("ns", absl::StrCat("low", i))
               .Queue("q")
               .Gpus(1)
               .Priority("lo", 10)
               .On(node)
               .Build());
    }
  }
  // Eight pods of low priority hold the node that a pod of high priority needs whole; one eviction
  // per second is allowed.
  void Begin() {
    options_.evictions.per_second = 1;
    options_.evictions.burst = 1;
    options_.engine.consolidation = false;
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    for (const auto& [name, value] : {std::pair("hi", 90), std::pair("lo", 10)}) {
      model::PriorityClass c;
      c.meta.name = name;
      c.value = value;
      Put(c);
    }
    FillNode("n1", 0);
    Make(PodBuilder("ns", "big").Queue("q").Gpus(8).Priority("hi", 90).Created(5).Build());
  }
};

TEST_F(PacedEvictionsTest, EvictionsThatWaitForTheirPaceDoNotOutliveTheirReason) {
  Begin();
  StepResult result = Step(1);
  ASSERT_THAT(EvictedIn(result), SizeIs(1));
  AnswerAll(result);
  Put(MakeNode("n2", 8));
  result = StepAt(At(1) + absl::Milliseconds(500));
  ASSERT_THAT(BoundIn(result), ElementsAre("big"));
  AnswerAll(result);
  for (int at = 2; at < 20; ++at) {
    result = Step(at);
    EXPECT_THAT(EvictedIn(result), IsEmpty()) << "at " << at;
    AnswerAll(result);
  }
  int running = 0;
  for (const RunningRow& row : loop_->MakeView(At(20)).running) running += row.status == "Running";
  EXPECT_EQ(running, 7) << "they run on";
}

TEST_F(PacedEvictionsTest, EvictionsThatStillServeGoOut) {
  Begin();
  std::set<std::string> evicted;
  for (int at = 1; at < 20; ++at) {
    StepResult result = Step(at);
    for (const std::string& name : EvictedIn(result)) evicted.insert(name);
    AnswerAll(result);
  }
  EXPECT_THAT(evicted, SizeIs(8));
}

TEST_F(PacedEvictionsTest, AnEvictionOfUnknownOutcomeIsNotRepeatedWithoutItsReason) {
  Begin();
  StepResult result = Step(1);
  ASSERT_THAT(EvictedIn(result), SizeIs(1));
  AnswerThe<model::EvictPod>(result, absl::UnavailableError("lost"));
  Put(MakeNode("n2", 8));
  result = StepAt(At(1) + absl::Milliseconds(500));
  ASSERT_THAT(BoundIn(result), ElementsAre("big"));
  AnswerAll(result);
  for (int at = 2; at < 20; ++at) EXPECT_THAT(EvictedIn(Step(at)), IsEmpty());
}

// The owner lowers the minimum while the eviction waits for its pace.
TEST_F(PacedEvictionsTest, AGangThatHasItsMinimumAgainIsNotEvictedForItself) {
  options_.engine.staleness_grace = absl::Seconds(5);
  options_.evictions.max_in_flight = 1;
  Begin();
  Put(MakeNode("n2", 0));
  Put(MakeGroup("ns", "g", "q", 4));
  for (int i = 0; i < 3; ++i) {
    Make(PodBuilder("ns", absl::StrCat("g", i)).Group("g").Priority("hi", 90).On("n2").Build());
  }
  const StepResult first = Step(1);
  ASSERT_THAT(EvictedIn(first), SizeIs(1));
  for (int at = 2; at < 10; ++at) ASSERT_THAT(EvictedIn(Step(at)), IsEmpty()) << "no answer yet";
  Put(MakeGroup("ns", "g", "q", 2));
  AnswerAll(first);
  std::set<std::string> evicted;
  for (int at = 10; at < 40; ++at) {
    const StepResult result = Step(at);
    for (const std::string& name : EvictedIn(result)) evicted.insert(name);
    AnswerAll(result);
  }
  EXPECT_THAT(evicted, SizeIs(7)) << "the others go";
  for (const std::string& name : evicted) EXPECT_THAT(name, HasSubstr("low"));
}

// A node that joins takes one of two pods: the victims on one of two nodes run on.
TEST_F(PacedEvictionsTest, VictimsOnANodeThatIsNoLongerNeededRunOn) {
  Begin();
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "big", pods_.at("big").meta.uid});
  FillNode("n0", 8);
  Put(MakeGroup("ns", "g", "q", 2));
  for (int i = 0; i < 2; ++i) {
    Make(PodBuilder("ns", absl::StrCat("g", i)).Group("g").Gpus(8).Priority("hi", 90).Build());
  }
  std::set<std::string> evicted;
  for (int at = 1; at < 40; ++at) {
    if (at == 3) Put(MakeNode("n2", 8));
    const StepResult result = Step(at);
    for (const std::string& name : EvictedIn(result)) evicted.insert(name);
    AnswerAll(result);
  }
  EXPECT_GE(evicted.size(), 8u);
  EXPECT_LE(evicted.size(), 10u);
}

// ---- verdicts

// Its verdict is cleared when its bindings are late. They are refused, and it waits again, before
// the watch shows that.
TEST_F(ReconcileTest, AGroupWhoseClearedVerdictIsStillSeenIsToldAgain) {
  const auto groups = [](const StepResult& result) {
    return Of<model::SetPodGroupSchedulability>(result);
  };
  MakeGang(2);
  StepResult result = Step(1);
  ASSERT_THAT(groups(result), SizeIs(1));
  const std::string json = groups(result)[0].schedulability_json;
  AnswerAll(result);
  ShowGroupWith(json);
  Put(MakeNode("n", 2));
  const StepResult bound = Step(2);
  ASSERT_THAT(BoundIn(bound), SizeIs(2));
  EXPECT_THAT(groups(bound), IsEmpty()) << "bindings may be refused";
  result = Step(13);
  ASSERT_THAT(groups(result), SizeIs(1));
  EXPECT_EQ(groups(result)[0].schedulability_json, "");
  AnswerAll(result);
  loop_->Apply(model::Delete{model::Kind::kNode, "", "n", "uid-n"});
  AnswerThe<model::BindPod>(bound, absl::PermissionDeniedError("no"));
  std::string told;
  for (int at = 14; at < 30; ++at) {
    result = Step(at);
    for (const auto& write : groups(result)) told = write.schedulability_json;
    AnswerAll(result);
  }
  EXPECT_NE(told, "");
}

// Its bindings are late, so its verdict is cleared; they are refused, and it waits as before. Both
// writes are in flight then.
class LateClearTest : public ReconcileTest {
 protected:
  void ClearAndTellAgain() {
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    MakeGang(2);
    StepResult result = Step(1);
    const std::string json = Groups(result).at(0).schedulability_json;
    AnswerAll(result);
    ShowGroupWith(json);
    Put(MakeNode("n", 2));
    const StepResult bound = Step(2);
    clear_ = Step(13);
    ASSERT_THAT(Groups(clear_), SizeIs(1));
    EXPECT_EQ(Groups(clear_)[0].schedulability_json, "");
    loop_->Apply(model::Delete{model::Kind::kNode, "", "n", "uid-n"});
    AnswerThe<model::BindPod>(bound, absl::CancelledError("not sent in time"));
    again_ = Step(14);
    ASSERT_THAT(Groups(again_), SizeIs(1));
    EXPECT_EQ(Groups(again_)[0].schedulability_json, json);
  }
  static std::vector<model::SetPodGroupSchedulability> Groups(const StepResult& result) {
    return Of<model::SetPodGroupSchedulability>(result);
  }
  // Writes about the group from now on, all of which are answered.
  int Writes() {
    int writes = 0;
    for (int at = 15; at < 120; ++at) {
      const StepResult result = Step(at);
      writes += static_cast<int>(Groups(result).size());
      AnswerAll(result);
    }
    return writes;
  }
  StepResult clear_, again_;
};

TEST_F(LateClearTest, IfNeitherWasDoneTheGroupHasItsVerdictStill) {
  for (const bool clear_first : {true, false}) {
    SCOPED_TRACE(clear_first);
    ClearAndTellAgain();
    for (const bool clear : {clear_first, !clear_first}) {
      AnswerThe<model::SetPodGroupSchedulability>(clear ? clear_ : again_,
                                                  absl::CancelledError("not sent in time"));
      Step(14);
    }
    EXPECT_EQ(Writes(), 0);
  }
}

TEST_F(LateClearTest, IfTheClearMayBeDoneTheVerdictIsWrittenAgain) {
  for (const absl::Status& answer : {absl::OkStatus(), absl::UnavailableError("lost")}) {
    SCOPED_TRACE(answer.ToString());
    ClearAndTellAgain();
    AnswerThe<model::SetPodGroupSchedulability>(clear_, answer);
    Step(14);
    AnswerThe<model::SetPodGroupSchedulability>(again_, absl::CancelledError("not sent in time"));
    EXPECT_EQ(Writes(), 1);
  }
}

TEST_F(LateClearTest, IfOnlyTheVerdictIsDoneNothingIsWrittenAgain) {
  ClearAndTellAgain();
  AnswerThe<model::SetPodGroupSchedulability>(again_, absl::OkStatus());
  Step(14);
  AnswerThe<model::SetPodGroupSchedulability>(clear_, absl::CancelledError("not sent in time"));
  EXPECT_EQ(Writes(), 0);
}

TEST_F(ReconcileTest, AGroupThatIsRefusedAgainAndAgainIsToldOnce) {
  Put(MakeNode("n", 8));
  MakeGang(2);
  int writes = 0;
  for (absl::Time now = At(1); now < At(50); now += absl::Milliseconds(500)) {
    StepResult result = StepAt(now);
    for (const auto& write : Of<model::SetPodGroupSchedulability>(result)) {
      EXPECT_NE(write.schedulability_json, "") << now;
      ++writes;
    }
    Obey(result, {"g0", "g1"});
  }
  EXPECT_GE(writes, 1);
  EXPECT_LE(writes, 3);
}

TEST_F(ReconcileTest, EveryWaitingPodOfAGangHasACondition) {
  for (const bool pod_first : {false, true}) {
    SCOPED_TRACE(pod_first);
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, 1));
    model::PodGroup group = MakeGroup("ns", "g", "q", 3);
    if (!pod_first) Put(group);
    for (int i = 0; i < 3; ++i) {
      Put(PodBuilder("ns", absl::StrCat("g", i)).Group("g").Gpus(1).Build());
    }
    std::map<std::string, std::string> reasons;
    std::map<std::string, std::string> annotations;
    for (absl::Time now = At(1); now < At(4); now += absl::Milliseconds(20)) {
      StepResult result = StepAt(now);
      for (const auto& write : Of<model::SetPodUnschedulable>(result)) {
        reasons[write.name] = write.reason;
        annotations[write.name] = write.verdict_json;
        EXPECT_THAT(write.message, HasSubstr(write.reason == "MissingObject" ? "g" : "limit"));
      }
      AnswerAll(result);
      if (now == At(2) && pod_first) Put(group);
    }
    EXPECT_THAT(reasons, ElementsAre(std::pair("g0", "QueueLimitReached"),
                                     std::pair("g1", "QueueLimitReached"),
                                     std::pair("g2", "QueueLimitReached")));
    for (const auto& [name, json] : annotations) EXPECT_EQ(json, "") << "the group has it";
  }
}

// Its verdict is from before it had a group, and its condition happens to be equal.
TEST_F(ReconcileTest, APodThatCameToAGroupLosesItsOwnVerdict) {
  Put(MakeQueue("q", "", kUnlimited, 1));
  Put(MakeGroup("ns", "g", "q", 1));
  model::Pod pod = PodBuilder("ns", "p").Group("g").Gpus(2).Build();
  pod.meta.annotations.Set(model::kVerdictAnnotation, "{\"code\":\"QueueLimitReached\"}");
  pod.scheduled = {"False", "QueueLimitReached"};
  Put(pod);
  const auto writes = Of<model::SetPodUnschedulable>(Step(1));
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].reason, "QueueLimitReached");
  EXPECT_EQ(writes[0].verdict_json, "");
}

TEST_F(ReconcileTest, PassingNumbersAreNeverWritten) {
  Put(MakeQueue("q", "", kUnlimited, 1));
  for (int i = 0; i < 30; ++i) {
    Put(MakeGroup("ns", absl::StrCat("g", i), "q", 1));
    Put(PodBuilder("ns", absl::StrCat("p", i))
            .Group(absl::StrCat("g", i))
            .Gpus(2)
            .Created(100 - i)
            .Build());
  }
  absl::Time now = At(1);
  for (; now < At(10); now += absl::Milliseconds(50)) AnswerAll(StepAt(now));
  // The first of the queue goes; every other pod moves up one place.
  for (int i = 29; i > 20; --i) {
    loop_->Apply(
        model::Delete{model::Kind::kPod, "ns", absl::StrCat("p", i), absl::StrCat("uid-ns-p", i)});
    for (const absl::Time end = now + absl::Minutes(2); now < end; now += absl::Seconds(10)) {
      StepResult result = StepAt(now);
      for (const auto& write : Of<model::SetPodGroupSchedulability>(result)) {
        EXPECT_EQ(write.name, absl::StrCat("g", i)) << write.message;
      }
      EXPECT_THAT(Of<model::SetPodUnschedulable>(result), IsEmpty());
      AnswerAll(result);
    }
  }
}

TEST_F(ReconcileTest, RefreshesAreFewerThanFiveASecond) {
  Put(MakeQueue("q", "", kUnlimited, 1));
  for (int i = 0; i < 50; ++i) {
    Put(PodBuilder("ns", absl::StrCat("p", i)).Queue("q").Gpus(2).Created(i).Build());
  }
  AnswerAll(Step(100));
  // The code stays, the limit in the message does not.
  model::Queue queue = MakeQueue("q", "", kUnlimited, 1);
  queue.gpu.limit = 1500;
  Put(queue);
  std::map<int64_t, int> in_second;
  int all = 0;
  absl::Time now = At(200);
  for (StepResult result = StepAt(now); now < At(300);) {
    const auto writes = Of<model::SetPodUnschedulable>(result);
    in_second[absl::ToUnixSeconds(now)] += static_cast<int>(writes.size());
    all += static_cast<int>(writes.size());
    AnswerAll(result);
    if (result.wake_at == absl::InfiniteFuture()) break;
    now = std::max(now + absl::Milliseconds(1), result.wake_at);
    result = StepAt(now);
  }
  EXPECT_EQ(all, 50);
  for (const auto& [second, writes] : in_second) EXPECT_LT(writes, 5) << second;
}

TEST_F(ReconcileTest, APodThatWasBoundBeforeItsVerdictWasSeenLosesIt) {
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Build());
  AnswerAll(Step(1));
  Put(MakeNode("n", 8));
  StepResult result = Step(2);
  ASSERT_THAT(BoundIn(result), ElementsAre("p"));
  AnswerAll(result);
  model::Pod pod = PodBuilder("ns", "p").Queue("q").Gpus(1).On("n").Build();
  pod.meta.annotations.Set(model::kVerdictAnnotation, "{\"code\":\"NodesRequested\"}");
  pod.scheduled = {"False", "NodesRequested"};
  Put(pod);
  result = Step(3);
  const auto writes = Of<model::SetPodUnschedulable>(result);
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].reason, "");
  EXPECT_EQ(writes[0].verdict_json, "");
  AnswerThe<model::SetPodUnschedulable>(result, absl::UnavailableError("lost"));
  int again = 0;
  for (int at = 3; at < 10; ++at) {
    again += static_cast<int>(Of<model::SetPodUnschedulable>(Step(at)).size());
  }
  EXPECT_EQ(again, 1);
}

TEST_F(ReconcileTest, AContradictoryQueueIsFlagged) {
  options_.emit_events = true;
  Restart();
  SyncAll();
  Put(MakeQueue("dept", "", 8, 4));
  Put(MakeQueue("team", "dept", 0, kUnlimited));
  Put(PodBuilder("ns", "p").Queue("team").Gpus(9).Build());
  StepResult result = Step(1);
  int flagged = 0;
  for (const auto& event : Of<model::EmitEvent>(result)) {
    if (event.about != model::Kind::kQueue) continue;
    ++flagged;
    EXPECT_EQ(event.name, "dept");
    EXPECT_THAT(event.note, HasSubstr("GPU quota 8 is above its limit 4"));
  }
  EXPECT_EQ(flagged, 1);
  const View view = loop_->MakeView(At(1));
  for (const QueueRow& row : view.queues) {
    EXPECT_EQ(row.problem.empty(), row.name != "dept") << row.name << ": " << row.problem;
  }
  ASSERT_THAT(view.waiting, SizeIs(1));
  EXPECT_THAT(view.waiting[0].message, HasSubstr("queue dept: GPU quota 8 is above its limit 4"));
}

TEST_F(ReconcileTest, AQueueBelowAMissingOneReadsRight) {
  Put(MakeQueue("team", "dept", kUnlimited, kUnlimited));
  Put(PodBuilder("ns", "p").Queue("team").Gpus(1).Build());
  const auto writes = Of<model::SetPodUnschedulable>(Step(1));
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].message, "Queue team cannot be used: parent queue 'dept' does not exist.");
}

// ---- leadership

TEST_F(ReconcileTest, ANewLeaderReadsBeforeItDecides) {
  Put(MakeNode("n", 1));
  Put(PodBuilder("ns", "p").Queue("q").Gpus(1).Created(1).Build());
  loop_->BecomeLeader();
  EXPECT_FALSE(Step(1).decided);
  // The former leader had bound another pod to the node.
  Put(PodBuilder("ns", "other").Queue("q").Gpus(1).On("n").Build());
  SyncAll();
  EXPECT_THAT(BoundIn(Step(2)), IsEmpty());
}

}  // namespace
}  // namespace fairlead::core::testing
