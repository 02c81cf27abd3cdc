// markUnschedulable, schedulingBackoff and preemption delays through the whole decision loop: what
// is written, what is provisioned, and what a new process knows.
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "core/decision_loop_testing.h"

namespace fairlead::core::testing {
namespace {

using model::OwnCondition;
using Groups = std::vector<model::SetPodGroupSchedulability>;

class AttemptsTest : public DecisionLoopTest {
 protected:
  void Hook(bool on) {
    options_.hook.enabled = on;
    Restart();
    SyncAll();
  }
  void PutGang(const model::PodGroup& group, int pods) {
    Put(group);
    for (int i = 0; i < pods; ++i) {
      model::Pod pod =
          PodBuilder("ns", absl::StrCat(group.meta.name, i)).Group(group.meta.name).Gpus(1);
      if (!marked_.empty()) pod.scheduled = {"False", marked_};
      Put(pod);
    }
  }
  static model::PodGroup Once(int32_t members) {
    model::PodGroup group = MakeGroup("ns", "g", "q", members);
    group.scheduling_backoff = model::kTryOnce;
    return group;
  }
  // The API server's group after our write.
  static void Store(const model::SetPodGroupSchedulability& write, model::PodGroup& group) {
    group.schedulability_hash = model::VerdictHashOf(write.schedulability_json);
    if (write.own_condition == OwnCondition::kKeep) return;
    std::erase_if(group.scheduling_conditions,
                  [&](const auto& entry) { return entry.node_pool == write.node_pool; });
    if (write.own_condition == OwnCondition::kRemove || write.schedulability_json.empty()) return;
    const std::string id = absl::StrCat(group.scheduling_conditions.size() + 1);
    group.scheduling_conditions.push_back({write.node_pool, id, "{}", write.reason, write.message});
  }
  static bool HasCode(const model::SetPodGroupSchedulability& write, const std::string& code) {
    return absl::StrContains(write.schedulability_json, "\"code\":\"" + code + "\"");
  }
  verdict::Verdict VerdictOf(const std::string& workload, int64_t at) {
    for (const WaitingRow& row : loop_->MakeView(At(at)).waiting) {
      if (row.workload == workload) return row.verdict;
    }
    return {};
  }
  std::string marked_;  // reason of the condition that the pods already have
};

// ---- markUnschedulable

TEST_F(AttemptsTest, PodsOfAQuietGroupAreLeftAloneAndTheGroupIsTold) {
  Hook(false);
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  model::PodGroup group = MakeGroup("ns", "g", "q", 2);
  group.mark_unschedulable = false;
  PutGang(group, 2);
  StepResult result = Step(1);
  EXPECT_EQ(Of<model::SetPodUnschedulable>(result).size(), 0u);
  const Groups told = Of<model::SetPodGroupSchedulability>(result);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(HasCode(told[0], "InsufficientCapacity"));
  EXPECT_EQ(VerdictOf("ns/g", 1).code, verdict::Code::kInsufficientCapacity);
  AnswerAll(result);
  // Its owner sets the field, and clears it again.
  group.mark_unschedulable = true;
  Put(group);
  result = Step(2);
  ASSERT_EQ(Of<model::SetPodUnschedulable>(result).size(), 2u);
  EXPECT_EQ(Of<model::SetPodUnschedulable>(result)[0].reason, "Unschedulable");
  AnswerAll(result);
  group.mark_unschedulable = false;
  Put(group);
  result = Step(3);
  ASSERT_EQ(Of<model::SetPodUnschedulable>(result).size(), 2u);
  EXPECT_EQ(Of<model::SetPodUnschedulable>(result)[0].reason, "InsufficientCapacity");
  AnswerAll(result);
  EXPECT_TRUE(Step(200).actions.empty());
}

TEST_F(AttemptsTest, AMarkOfAnotherWriterOnAQuietGroupIsTakenBackOnce) {
  Hook(false);
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  model::PodGroup group = MakeGroup("ns", "g", "q", 1);
  group.mark_unschedulable = false;
  marked_ = "Unschedulable";
  PutGang(group, 1);
  StepResult result = Step(1);
  ASSERT_EQ(Of<model::SetPodUnschedulable>(result).size(), 1u);
  EXPECT_EQ(Of<model::SetPodUnschedulable>(result)[0].reason, "InsufficientCapacity");
  AnswerAll(result);
  marked_ = "InsufficientCapacity";
  Store(Of<model::SetPodGroupSchedulability>(result)[0], group);
  PutGang(group, 1);
  EXPECT_TRUE(Step(200).actions.empty());
  Restart();
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  PutGang(group, 1);
  EXPECT_TRUE(Step(201).actions.empty());
}

// ---- schedulingBackoff

TEST_F(AttemptsTest, OneFailedAttemptIsTheLastUntilTheGroupIsMoved) {
  Hook(false);
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  model::PodGroup group = Once(2);
  PutGang(group, 2);
  StepResult result = Step(1);
  Groups told = Of<model::SetPodGroupSchedulability>(result);
  ASSERT_EQ(told.size(), 1u) << "one write";
  EXPECT_TRUE(HasCode(told[0], "SchedulingBackoff"));
  EXPECT_EQ(told[0].own_condition, OwnCondition::kWrite);
  EXPECT_EQ(told[0].reason, "InsufficientCapacity");
  EXPECT_TRUE(told[0].names_pool);
  EXPECT_TRUE(absl::StrContains(VerdictOf("ns/g", 1).details.at(0), told[0].message));
  // Other autoscalers have no reason to provision nodes.
  for (const auto& write : Of<model::SetPodUnschedulable>(result)) {
    EXPECT_EQ(write.reason, "SchedulingBackoff");
  }
  AnswerAll(result);

  // Capacity comes before the mark has been seen, and after.
  Put(MakeNode("n1", 8));
  EXPECT_TRUE(Of<model::BindPod>(Step(2)).empty());
  Store(told[0], group);
  Put(group);
  Put(MakeNode("n2", 8));
  EXPECT_TRUE(Step(3).actions.empty());

  // A new process knows it, and writes nothing.
  Restart();
  SyncAll();
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(MakeNode("n1", 8));
  marked_ = "SchedulingBackoff";
  PutGang(group, 2);
  EXPECT_TRUE(Step(4).actions.empty());
  EXPECT_EQ(VerdictOf("ns/g", 4).code, verdict::Code::kSchedulingBackoff);

  group.meta.labels.Set(model::kNodePoolLabel, "b");
  Put(group);
  result = Step(5);
  EXPECT_EQ(Of<model::BindPod>(result).size(), 2u);
  AnswerAll(result);
  for (int i = 0; i < 2; ++i) {
    Put(PodBuilder("ns", absl::StrCat("g", i)).Group("g").Gpus(1).On("n1").Build());
  }
  // The entry of the former pool is not ours any more, and stays.
  told = Of<model::SetPodGroupSchedulability>(Step(6));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].schedulability_json, "");
  EXPECT_EQ(told[0].node_pool, "b");
}

// Groups that are equal in all but their names have one entry.
TEST_F(AttemptsTest, TheAttemptsOfEqualGroupsFailInOneStep) {
  Hook(false);
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  for (const char* name : {"a", "b", "c"}) {
    model::PodGroup group = Once(2);
    group.meta.name = name;
    group.meta.uid = absl::StrCat("uid-", name);
    PutGang(group, 2);
  }
  (void)Step(100);
  for (const char* name : {"ns/a", "ns/b", "ns/c"}) {
    EXPECT_EQ(VerdictOf(name, 100).code, verdict::Code::kSchedulingBackoff) << name;
  }
}

TEST_F(AttemptsTest, ALostMarkIsWrittenAgainWithTheReason) {
  Hook(false);
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  PutGang(Once(1), 1);
  StepResult result = Step(1);
  ASSERT_EQ(Of<model::SetPodGroupSchedulability>(result).size(), 1u);
  AnswerThe<model::SetPodGroupSchedulability>(result, absl::UnavailableError("lost"));
  result = Step(1);
  result = StepAt(result.wake_at);
  const Groups again = Of<model::SetPodGroupSchedulability>(result);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].own_condition, OwnCondition::kWrite);
  EXPECT_EQ(again[0].reason, "InsufficientCapacity");
}

TEST_F(AttemptsTest, WhatCouldNotBeTriedWasNoAttempt) {
  Hook(false);
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  model::PodGroup group = Once(2);
  PutGang(group, 1);
  const StepResult first = Step(1);
  const Groups told = Of<model::SetPodGroupSchedulability>(first);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(HasCode(told[0], "GangIncomplete"));
  EXPECT_EQ(told[0].own_condition, OwnCondition::kRemove);
  AnswerAll(first);
  Put(MakeNode("n", 8));
  PutGang(group, 2);
  EXPECT_EQ(Of<model::BindPod>(Step(2)).size(), 2u);
}

TEST_F(AttemptsTest, KaisMarkCountsAndTakingItAwayIsAnotherAttempt) {
  Hook(false);
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  Put(MakeNode("n", 8));
  model::PodGroup group = Once(1);
  group.scheduling_conditions = {
      {"default", "3", "{}", "PodSchedulingErrors", "Resources were not found"}};
  PutGang(group, 1);
  const StepResult result = Step(1);
  EXPECT_TRUE(Of<model::BindPod>(result).empty());
  const Groups told = Of<model::SetPodGroupSchedulability>(result);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].own_condition, OwnCondition::kKeep);
  AnswerAll(result);
  group.scheduling_conditions.clear();
  Put(group);
  EXPECT_EQ(Of<model::BindPod>(Step(2)).size(), 1u);
}

TEST_F(AttemptsTest, TheHookBuysForTheFirstAttemptWhichLastsAsLongAsTheNodes) {
  Hook(true);
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  model::PodGroup group = Once(2);
  PutGang(group, 2);
  StepResult result = Step(1);
  ASSERT_EQ(Of<model::CreateNodeRequest>(result).size(), 2u);
  Groups told = Of<model::SetPodGroupSchedulability>(result);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(HasCode(told[0], "NodesRequested"));
  EXPECT_EQ(told[0].own_condition, OwnCondition::kRemove);
  // One type after the other is refused; when no type is left the attempt is over.
  AnswerThe<model::CreateNodeRequest>(result, absl::PermissionDeniedError("no"));
  bool gave_up = false;
  absl::Time now = At(1);
  for (int i = 0; i < 30; ++i) {
    result = StepAt(now);
    const auto asked = Of<model::CreateNodeRequest>(result);
    for (const auto& create : asked) {
      EXPECT_FALSE(gave_up) << create.request->instance_type << " at " << now;
    }
    for (const auto& write : Of<model::SetPodGroupSchedulability>(result)) {
      gave_up = HasCode(write, "SchedulingBackoff");
    }
    AnswerThe<model::CreateNodeRequest>(result, absl::PermissionDeniedError("no"));
    now = std::max(now + absl::Seconds(1), std::min(result.wake_at, now + absl::Hours(1)));
  }
  EXPECT_TRUE(gave_up);
  Put(MakeNode("small", 1));
  EXPECT_TRUE(Of<model::CreateNodeRequest>(StepAt(now)).empty());
}

TEST_F(AttemptsTest, NothingIsBoughtForAWorkloadThatGaveUp) {
  Hook(true);
  Put(MakeQueue("q", "", kUnlimited, kUnlimited));
  model::PodGroup group = Once(1);
  group.scheduling_conditions = {{"default", "3", "{}", "R", "m"}};
  PutGang(group, 1);
  EXPECT_TRUE(Of<model::CreateNodeRequest>(Step(1)).empty());
  group.meta.labels.Set(model::kNodePoolLabel, "b");
  Put(group);
  EXPECT_EQ(Of<model::CreateNodeRequest>(Step(2)).size(), 1u);
}

// ---- preemption delay

// One node of one GPU, in a rack without offerings, with work that holds more than its share.
class DelaysTest : public AttemptsTest {
 protected:
  void World(bool hook_on, bool taken, const char* selector) {
    Hook(hook_on);
    Put(MakeQueue("low", "", 0, kUnlimited));
    Put(MakeQueue("high", "", 4, kUnlimited));
    model::Node node = MakeNode("n", 1);
    node.meta.labels.Set("rack", "r1");
    Put(node);
    Put(PodBuilder("ns", "holder").Queue(taken ? "low" : "high").Gpus(1).On("n").Build());
    PodBuilder pod("ns", "p");
    pod.Queue("high").Gpus(1).Annotation("kai.scheduler/preemption-delay", "100s");
    if (*selector != '\0') pod.NodeSelector("rack", selector);
    Put(pod.Build());
  }
};

struct DelayCase {
  const char* title;
  bool hook_on, taken;
  const char* selector;
  const char* reason;  // of the pod's condition
  const char* code;    // of its verdict
  bool until;
};

TEST_F(DelaysTest, TheCodeSaysWhoMayMendIt) {
  const DelayCase cases[] = {
      // The delay lets nodes come first: the hook's, or those of another autoscaler.
      {"a node is bought", true, true, "", "NodesRequested", "NodesRequested", false},
      {"others may buy", false, true, "", "Unschedulable", "InsufficientCapacity", true},
      {"others may, as far as we know", false, true, "r1", "Unschedulable", "InsufficientCapacity",
       true},
      {"no type has it", true, true, "r1", "PreemptionDelay", "PreemptionDelay", true},
      {"no victims either", true, false, "r1", "NoInstanceTypeFits", "NoInstanceTypeFits", false},
  };
  for (const DelayCase& c : cases) {
    SCOPED_TRACE(c.title);
    World(c.hook_on, c.taken, c.selector);
    const StepResult result = Step(50);
    const auto writes = Of<model::SetPodUnschedulable>(result);
    ASSERT_EQ(writes.size(), 1u);
    EXPECT_EQ(writes[0].reason, c.reason);
    const verdict::Verdict v = VerdictOf("ns/p", 50);
    EXPECT_EQ(verdict::CodeName(v.code), c.code);
    EXPECT_EQ(v.until.has_value(), c.until);
    EXPECT_TRUE(Of<model::EvictPod>(result).empty());
    if (!c.until) continue;
    EXPECT_EQ(v.until, At(100));
    EXPECT_EQ(result.wake_at, At(100));
    AnswerAll(result);
    EXPECT_EQ(Of<model::EvictPod>(Step(100)).size(), 1u);
  }
}

TEST_F(DelaysTest, WhereACapForbidsNodesTheDelayIsWhatIsLeft) {
  options_.hook.cluster_gpu_limit = 0;
  World(true, true, "");
  (void)Step(50);
  const verdict::Verdict v = VerdictOf("ns/p", 50);
  EXPECT_EQ(v.code, verdict::Code::kPreemptionDelay);
  EXPECT_EQ(v.until, At(100));
  ASSERT_FALSE(v.details.empty());
  EXPECT_TRUE(absl::StrContains(v.details.back(), "GpuCapReached"));
}

TEST_F(DelaysTest, AGroupThatIsEvictedWaitsForItsDelayAnew) {
  Hook(false);
  Put(MakeQueue("low", "", 0, kUnlimited));
  Put(MakeQueue("high", "", 2, kUnlimited));
  Put(MakeNode("n", 2));
  for (const bool delayed : {false, true}) {
    const std::string name = delayed ? "delayed" : "plain";
    model::PodGroup group = MakeGroup("ns", name, "low", 1);
    if (delayed) group.preemption_delay = absl::Seconds(60);
    Put(group);
    Put(PodBuilder("ns", name + "-0").Group(name).Gpus(1).Preemptible(true).On("n").Build());
  }
  for (const char* name : {"p0", "p1"}) Put(PodBuilder("ns", name).Queue("high").Gpus(1).Build());
  const StepResult result = Step(1000);
  EXPECT_EQ(Of<model::EvictPod>(result).size(), 2u);
  const auto written = Of<model::SetPodGroupAnnotations>(result);
  ASSERT_EQ(written.size(), 1u);
  EXPECT_EQ(written[0].name, "delayed");
  EXPECT_EQ(written[0].annotations.Get(model::kLastEvictionAnnotation), "2023-11-14T22:30:00Z");
}

// ---- annotations of groups, which keep times across a restart

class GroupAnnotationsTest : public DelaysTest {
 protected:
  // A gang of two, of which one pod is left.
  StepResult Stale() {
    Hook(false);
    Put(MakeQueue("q", "", 4, kUnlimited));
    Put(MakeNode("n", 4));
    Put(MakeGroup("ns", "gang", "q", 2));
    Put(PodBuilder("ns", "g0").Group("gang").Gpus(1).On("n").Build());
    return Step(10);
  }
  static std::string StaleSince(const StepResult& result) {
    const auto writes = Of<model::SetPodGroupAnnotations>(result);
    if (writes.empty()) return "nothing";
    return std::string(writes[0].annotations.Get(model::kStaleSinceAnnotation));
  }
};

TEST_F(GroupAnnotationsTest, AFailedWriteIsRepeatedAndNotWhenItSucceeded) {
  for (const absl::Status& answer :
       {absl::PermissionDeniedError("403"), absl::UnavailableError("no answer"),
        absl::AbortedError("429"), absl::ResourceExhaustedError("shed")}) {
    SCOPED_TRACE(answer.ToString());
    StepResult result = Stale();
    EXPECT_EQ(StaleSince(result), "2023-11-14T22:13:30Z");
    AnswerThe<model::SetPodGroupAnnotations>(result, answer);
    result = Step(10);
    EXPECT_EQ(StaleSince(result), "nothing");
    ASSERT_LE(result.wake_at, At(15));
    result = StepAt(result.wake_at);
    EXPECT_EQ(StaleSince(result), "2023-11-14T22:13:30Z");
    AnswerAll(result);
    for (int at = 16; at < 40; ++at) EXPECT_EQ(StaleSince(Step(at)), "nothing");
  }
}

TEST_F(GroupAnnotationsTest, WhatIsNoLongerTrueIsNotRepeated) {
  StepResult result = Stale();
  AnswerThe<model::SetPodGroupAnnotations>(result, absl::UnavailableError("no answer"));
  Put(PodBuilder("ns", "g1").Group("gang").Gpus(1).On("n").Build());
  // Complete again: after its pause the write says what is true then.
  std::vector<std::string> written;
  for (int at = 11; at < 40; ++at) {
    result = Step(at);
    if (const std::string since = StaleSince(result); since != "nothing") written.push_back(since);
    const bool first = written.size() == 1;
    AnswerThe<model::SetPodGroupAnnotations>(
        result, first ? absl::PermissionDeniedError("403") : absl::OkStatus());
  }
  EXPECT_EQ(written, (std::vector<std::string>{"", ""}));
}

TEST_F(GroupAnnotationsTest, NothingIsRepeatedForAGroupThatIsGoneOrReplaced) {
  for (const bool replaced : {false, true}) {
    StepResult result = Stale();
    AnswerThe<model::SetPodGroupAnnotations>(result, absl::UnavailableError("no answer"));
    if (replaced) {
      model::PodGroup other = MakeGroup("ns", "gang", "q", 1);
      other.meta.uid = "another";
      Put(other);
    } else {
      loop_->Apply(model::Delete{model::Kind::kPodGroup, "ns", "gang", ""});
    }
    for (int at = 11; at < 40; ++at) {
      for (const auto& write : Of<model::SetPodGroupAnnotations>(Step(at))) {
        EXPECT_EQ(write.uid, "another");
        EXPECT_EQ(write.annotations.Get(model::kStaleSinceAnnotation), "");
      }
    }
  }
}

}  // namespace
}  // namespace fairlead::core::testing
