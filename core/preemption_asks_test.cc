// Victims about which scheduler extenders are asked before they go (preemptVerb), in the decision
// loop: every answer that may come, and what else may happen meanwhile.
#include "core/preemption_asks.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/extenders_testing.h"
#include "gmock/gmock.h"

namespace fairlead::core::testing {
namespace {

using model::AskExtenders;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Nodes a and b are full of low pods, of one GPU each. The last by uid goes first.
class PreemptionAsksTest : public ExtenderLoopTest {
 protected:
  PreemptionAsksTest() { WithVictims({Extender()}); }

  static model::ExtenderConfig Extender() {
    model::ExtenderConfig extender;
    extender.url_prefix = "http://x";
    extender.preempt_verb = "preempt";
    return extender;
  }
  void WithVictims(std::vector<model::ExtenderConfig> extenders) {
    With(std::move(extenders));
    Class("low", 40);
    Class("high", 60);
    for (const char* node : {"a", "b"}) {
      Put(MakeNode(node, 1));
      Put(Pod(absl::StrCat("low-", node)).Priority("low", 40).On(node).Build());
    }
  }
  void Class(const std::string& name, int32_t value) {
    model::PriorityClass priority_class;
    priority_class.meta.name = name;
    priority_class.meta.uid = "uid-" + name;
    priority_class.value = value;
    Put(priority_class);
  }
  void Want(const std::string& name) { Put(Pod(name).Priority("high", 60).Build()); }
  // The victims go, and a pod is asked about, as "p: a low-a b low-b".
  static std::string Asked(const AskExtenders& ask) {
    std::string text = absl::StrCat(ask.name, ":");
    for (size_t i = 0; i < ask.victims.size(); ++i) {
      absl::StrAppend(&text, " ", ask.nodes[i]);
      for (const auto& pod : ask.victims[i].pods) absl::StrAppend(&text, " ", pod.name);
    }
    return text;
  }
  static std::vector<std::string> Asks(const StepResult& step) {
    std::vector<std::string> asks;
    for (const AskExtenders& ask : Of<AskExtenders>(step)) asks.push_back(Asked(ask));
    return asks;
  }
  static std::vector<std::string> Evicted(const StepResult& step) {
    std::vector<std::string> names;
    for (const model::EvictPod& evict : Of<model::EvictPod>(step)) names.push_back(evict.name);
    return names;
  }
  // The extender admits these nodes, and refuses the others.
  void Admit(const StepResult& step, const std::vector<std::string>& admitted) {
    Say(step, [&](const AskExtenders&, const std::string& node) {
      const bool admits = std::find(admitted.begin(), admitted.end(), node) != admitted.end();
      return admits ? Yes() : No("no");
    });
  }
  void Fail(const StepResult& step) { FailAll(step, 0, "extender http://x: preempt: status 500"); }
  static std::string Told(const StepResult& step) {
    std::string told;
    for (const auto& write : Of<model::SetPodUnschedulable>(step)) {
      told = absl::StrCat(write.reason, ": ", write.message, write.verdict_json);
    }
    return told;
  }
};

TEST_F(PreemptionAsksTest, NoPodGoesBeforeTheyHaveAgreed) {
  Want("p");
  const StepResult asked = Step(1);
  EXPECT_THAT(Asks(asked), ElementsAre("p: b low-b"));
  EXPECT_THAT(Evicted(asked), IsEmpty());
  const StepResult later = Step(2);
  EXPECT_THAT(Asks(later), IsEmpty()) << "once";
  EXPECT_THAT(Evicted(later), IsEmpty()) << "not answered yet";
  Admit(asked, {"b"});
  EXPECT_THAT(Evicted(Step(3)), ElementsAre("low-b"));
}

TEST_F(PreemptionAsksTest, ANodeThatTheyRefuseIsLeftAlone) {
  Want("p");
  const StepResult asked = Step(1);
  ASSERT_THAT(Asks(asked), ElementsAre("p: b low-b"));
  Admit(asked, {});
  const StepResult other = Step(2);
  EXPECT_THAT(Evicted(other), IsEmpty());
  ASSERT_THAT(Asks(other), ElementsAre("p: a low-a"));
  Admit(other, {"a"});
  EXPECT_THAT(Evicted(Step(3)), ElementsAre("low-a"));
}

TEST_F(PreemptionAsksTest, TheyAreAskedAgainAfterAWhile) {
  Want("p");
  Admit(Step(1), {});
  const StepResult other = Step(2);
  Admit(other, {});
  const StepResult refused = Step(3);
  EXPECT_THAT(Asks(refused), IsEmpty());
  EXPECT_THAT(Evicted(refused), IsEmpty());
  EXPECT_THAT(Told(refused), HasSubstr("refused by a scheduler extender"));
  EXPECT_THAT(Asks(Step(10)), IsEmpty());
  EXPECT_THAT(Asks(Step(12)), ElementsAre("p: b low-b"));
}

TEST_F(PreemptionAsksTest, WhatTheyRefuseToOneKindOfPodsIsNotRefusedToAnother) {
  model::ExtenderConfig extender = Extender();
  extender.managed_resources = {{"example.com/fpga", true}};
  WithVictims({extender});
  Want("p");
  const StepResult step = Step(1);
  EXPECT_THAT(Asks(step), IsEmpty()) << "it has no interest in this one";
  EXPECT_THAT(Evicted(step), ElementsAre("low-b"));
}

TEST_F(PreemptionAsksTest, AnExtenderThatFailsHoldsThePodsThatNeedIt) {
  Want("p");
  StepResult step = Step(1);
  Fail(step);
  step = Step(2);
  EXPECT_THAT(Evicted(step), IsEmpty());
  EXPECT_THAT(Asks(step), ElementsAre("p: a low-a")) << "it is tried again";
}

TEST_F(PreemptionAsksTest, OneThatFailsAgainAndAgainIsPaused) {
  Want("p");
  for (const int64_t second : {1, 2, 12}) {
    const StepResult step = Step(second);
    ASSERT_THAT(Asks(step), SizeIs(1)) << second;
    Fail(step);
  }
  const StepResult paused = Step(12);
  EXPECT_THAT(Asks(paused), IsEmpty());
  EXPECT_THAT(Evicted(paused), IsEmpty());
}

TEST_F(PreemptionAsksTest, OneThatIsIgnorableAndPausedIsPassedOver) {
  model::ExtenderConfig extender = Extender();
  extender.ignorable = true;
  WithVictims({extender});
  Want("p");
  for (const int64_t second : {1, 2, 12}) Fail(Step(second));
  EXPECT_THAT(Evicted(Step(22)), SizeIs(1));
}

TEST_F(PreemptionAsksTest, AnAnswerForAPodThatHasGoneEvictsNone) {
  Want("p");
  const StepResult asked = Step(1);
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "p", "uid-ns-p"});
  EXPECT_THAT(Evicted(Step(2)), IsEmpty());
  Admit(asked, {"b"});
  EXPECT_THAT(Evicted(Step(3)), IsEmpty());
}

TEST_F(PreemptionAsksTest, AVictimThatHasGoneMeanwhileIsNotEvicted) {
  Want("p");
  const StepResult asked = Step(1);
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "low-b", "uid-ns-low-b"});
  EXPECT_THAT(Of<model::BindPod>(Step(2)), SizeIs(1)) << "its place is free";
  Admit(asked, {"b"});
  EXPECT_THAT(Evicted(Step(3)), IsEmpty());
}

TEST_F(PreemptionAsksTest, AGangIsAskedAboutAtOnceAndGoesWholeOrNotAtAll) {
  model::PodGroup group = MakeGroup("ns", "g", "q", 2);
  group.priority_class_name = "high";
  Put(group);
  for (const char* name : {"g-0", "g-1"}) {
    Put(Pod(name).Group("g").Priority("high", 60).Build());
  }
  const StepResult asked = Step(1);
  ASSERT_THAT(Asks(asked), ElementsAre("g-0: a low-a b low-b"));
  Admit(asked, {"a"});
  const StepResult refused = Step(2);
  EXPECT_THAT(Evicted(refused), IsEmpty()) << "half of the room is of no use to it";
}

}  // namespace
}  // namespace fairlead::core::testing
