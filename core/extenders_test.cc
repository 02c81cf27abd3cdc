// Pods about which scheduler extenders are asked, in the decision loop: from the pod to its
// binding, and every answer that may come.
#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "core/extender_plugin.h"
#include "core/extenders_testing.h"
#include "gmock/gmock.h"

namespace fairlead::core::testing {
namespace {

using model::AskExtenders;
using model::BindPod;
using model::NodeAnswer;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kFpga[] = "example.com/fpga";

class ExtendersTest : public ExtenderLoopTest {
 protected:
  ExtendersTest() { With({Filter("http://x")}); }

  static model::ExtenderConfig Filter(const std::string& url) {
    model::ExtenderConfig extender;
    extender.url_prefix = url;
    extender.filter_verb = "filter";
    return extender;
  }
  void Nodes(std::initializer_list<const char*> names, int64_t gpus = 1) {
    for (const char* name : names) Put(MakeNode(name, gpus));
  }
  static Judge All(const NodeAnswer& answer) {
    return [answer](const AskExtenders&, const std::string&) { return answer; };
  }
  static Judge Only(const std::string& node) {
    return [node](const AskExtenders&, const std::string& asked) {
      return asked == node ? Yes() : No("no port");
    };
  }
  static std::string Told(const StepResult& step) {
    std::string told;
    for (const auto& write : Of<model::SetPodUnschedulable>(step)) {
      told = absl::StrCat(write.reason, ": ", write.message);
    }
    return told;
  }
  // "p to n" of each binding.
  static std::vector<std::string> Bindings(const StepResult& step) {
    std::vector<std::string> bindings;
    for (const BindPod& bind : Of<BindPod>(step)) {
      bindings.push_back(absl::StrCat(bind.name, " to ", bind.node));
    }
    return bindings;
  }
};

TEST_F(ExtendersTest, APodIsBoundOnceItsNodeIsAdmitted) {
  Nodes({"a", "b", "none"});
  Put(Pod("there").On("none").Build());
  Put(Pod("p").Build());
  const StepResult asked = Step(1);
  const auto asks = Of<AskExtenders>(asked);
  ASSERT_THAT(asks, SizeIs(1));
  EXPECT_EQ(asks[0].name, "p");
  EXPECT_THAT(asks[0].extenders, ElementsAre(0));
  EXPECT_THAT(asks[0].nodes, ElementsAre("a", "b")) << "those that would take it, its own included";
  EXPECT_THAT(Bindings(asked), IsEmpty());
  EXPECT_THAT(Bindings(Step(2)), IsEmpty()) << "not answered yet";
  Say(asked, All(Yes()));
  const StepResult bound = Step(3);
  EXPECT_THAT(Bindings(bound), ElementsAre("p to a"));
  EXPECT_EQ(Of<BindPod>(bound)[0].extender, -1);
  EXPECT_THAT(Of<AskExtenders>(bound), IsEmpty());
}

TEST_F(ExtendersTest, ItsPlaceIsItsOwnWhileTheyAreAsked) {
  Nodes({"a"});
  Put(Pod("p").Created(1).Build());
  Put(Pod("later").Created(2).Build());
  const StepResult asked = Step(1);
  ASSERT_THAT(Of<AskExtenders>(asked), SizeIs(1));
  EXPECT_EQ(Of<AskExtenders>(asked)[0].name, "p");
  Say(asked, All(Yes()));
  EXPECT_THAT(Bindings(Step(2)), ElementsAre("p to a"));
}

TEST_F(ExtendersTest, APodGoesWhereItIsAdmitted) {
  Nodes({"a", "b", "c"});
  Put(Pod("p").Build());
  Say(Step(1), Only("c"));
  StepResult step = Step(2);
  EXPECT_THAT(Of<AskExtenders>(step), IsEmpty()) << "the answer is fresh";
  if (Bindings(step).empty()) step = Step(2);
  EXPECT_THAT(Bindings(step), ElementsAre("p to c"));
}

TEST_F(ExtendersTest, ScoresDecideAmongAdmittedNodes) {
  Nodes({"a", "b", "c"});
  Put(Pod("p").Build());
  Say(Step(1), [](const AskExtenders&, const std::string& node) {
    return node == "c" ? No("no port") : Yes(node == "b" ? 50 : 10);
  });
  StepResult step = Step(2);
  if (Bindings(step).empty()) step = Step(2);
  EXPECT_THAT(Bindings(step), ElementsAre("p to b"));
}

TEST_F(ExtendersTest, APodThatNoNodeIsAdmittedForIsAskedAboutAgain) {
  Nodes({"a", "b"});
  Put(Pod("p").Build());
  const StepResult asked = Step(1);
  Say(asked, All(No("no port")));
  std::string told = Told(Step(1));
  if (told.empty()) told = Told(Step(1));
  EXPECT_THAT(told, HasSubstr("BindingRefused"));
  EXPECT_THAT(told, HasSubstr("the scheduler extenders admit it to no node (2 nodes: no port)"));
  // After 1 s, then 2 s more, and so on.
  int64_t now = 1;
  for (const int64_t pause : {1, 2, 4, 8, 10, 10}) {
    EXPECT_THAT(Of<AskExtenders>(Step(now + pause - 1)), IsEmpty()) << now << " " << pause;
    now += pause;
    StepResult again = Step(now);
    if (Of<AskExtenders>(again).empty()) again = Step(now);
    ASSERT_THAT(Of<AskExtenders>(again), SizeIs(1)) << now;
    EXPECT_THAT(Of<AskExtenders>(again)[0].nodes, ElementsAre("a", "b"));
    Say(again, All(No("no port")));
    Step(now);
    Step(now);
  }
  now += 10;
  StepResult again = Step(now);
  if (Of<AskExtenders>(again).empty()) again = Step(now);
  Say(again, Only("b"));
  StepResult step = Step(now);
  if (Bindings(step).empty()) step = Step(now);
  EXPECT_THAT(Bindings(step), ElementsAre("p to b"));
}

TEST_F(ExtendersTest, OnlyPodsWithAManagedResourceAreAskedAbout) {
  model::ExtenderConfig extender = Filter("http://x");
  extender.managed_resources = {{kFpga, true}};
  for (framework::ProfilePlugin& plugin : options_.profiles[0].plugins) {
    if (plugin.name == "NodeResourcesFit") {
      plugin.args_json = absl::StrCat(R"({"ignoredResources":[")", kFpga, R"("]})");
    }
  }
  With({extender});
  Nodes({"a", "b"});
  model::Pod special = Pod("special").Created(1);
  special.spec.requests.emplace_back(kFpga, 1);
  Put(special);
  Put(Pod("plain").Created(2).Build());
  const StepResult step = Step(1);
  ASSERT_THAT(Of<AskExtenders>(step), SizeIs(1));
  EXPECT_EQ(Of<AskExtenders>(step)[0].name, "special");
  EXPECT_THAT(BoundIn(step), ElementsAre("plain"));
}

TEST_F(ExtendersTest, AnExtenderThatFailsFailsTheBinding) {
  Nodes({"a"});
  Put(Pod("p").Build());
  FailAll(Step(1), 0, "extender http://x: filter: connection refused");
  std::string told = Told(Step(1));
  if (told.empty()) told = Told(Step(1));
  EXPECT_THAT(told, HasSubstr("BindingRefused"));
  EXPECT_THAT(told, HasSubstr("extender http://x: filter: connection refused"));
  StepResult again = Step(3);
  ASSERT_THAT(Of<AskExtenders>(again), SizeIs(1)) << "after the back-off of a refused binding";
  Say(again, All(Yes()));
  EXPECT_THAT(Bindings(Step(3)), ElementsAre("p to a"));
}

TEST_F(ExtendersTest, AnExtenderThatGoesOnFailingIsPaused) {
  Nodes({"a", "b", "c", "d"});
  for (const char* name : {"p", "q", "r"}) Put(Pod(name).Build());
  const StepResult asked = Step(1);
  ASSERT_THAT(Of<AskExtenders>(asked), SizeIs(3));
  FailAll(asked, 0, "extender http://x: filter: time-out");
  Step(1);
  Put(Pod("late").Build());
  StepResult step = Step(1);
  EXPECT_THAT(Of<AskExtenders>(step), IsEmpty()) << "it is not asked now";
  EXPECT_THAT(Told(Step(1)), AnyOf(HasSubstr("time-out"), ""));
  // All of them come again, and the extender is asked again.
  size_t asks = 0;
  for (int64_t now = 2; now < 8 && asks == 0; ++now) asks = Of<AskExtenders>(Step(now)).size();
  EXPECT_GT(asks, 0u);
}

TEST_F(ExtendersTest, APausedExtenderThatIsIgnorableIsLeftOut) {
  model::ExtenderConfig other = Filter("http://y");
  other.ignorable = true;
  With({Filter("http://x"), other});
  Nodes({"a", "b", "c", "d"});
  for (const char* name : {"p", "q", "r"}) Put(Pod(name).Build());
  const StepResult asked = Step(1);
  for (const AskExtenders& ask : Of<AskExtenders>(asked)) {
    EXPECT_THAT(ask.extenders, ElementsAre(0, 1));
  }
  FailAll(asked, 1, "extender http://y: filter: time-out");
  Step(1);
  Put(Pod("late").Build());
  const StepResult step = Step(1);
  ASSERT_THAT(Of<AskExtenders>(step), SizeIs(1));
  EXPECT_THAT(Of<AskExtenders>(step)[0].extenders, ElementsAre(0));
}

TEST_F(ExtendersTest, OfAGangAllPodsAreAskedAboutAtOnceAndAllOrNoneAreBound) {
  Nodes({"a", "b", "c"});
  Put(MakeGroup("ns", "g", "q", 2));
  for (const char* name : {"p", "q"}) Put(Pod(name).Group("g").Build());
  const StepResult asked = Step(1);
  const auto asks = Of<AskExtenders>(asked);
  ASSERT_THAT(asks, SizeIs(2));
  EXPECT_THAT(asks[0].nodes, SizeIs(2)) << "the other pod has its place";
  Say(asked, [](const AskExtenders&, const std::string& node) {
    return node == "a" ? No("no port") : Yes();
  });
  std::vector<std::string> bound;
  for (int round = 0; round < 6 && bound.empty(); ++round) {
    const StepResult step = Step(2);
    bound = Bindings(step);
    Say(step, [](const AskExtenders&, const std::string& node) {
      return node == "a" ? No("no port") : Yes();
    });
  }
  ASSERT_THAT(bound, SizeIs(2));
  for (const std::string& each : bound) EXPECT_THAT(each, Not(HasSubstr(" to a")));
}

TEST_F(ExtendersTest, AnswersOfNoUseAreLeftAlone) {
  Nodes({"a"});
  Put(Pod("p").Build());
  const StepResult asked = Step(1);
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "p", "uid-ns-p"});
  Step(1);
  Say(asked, All(Yes()));
  Say(asked, All(Yes()));  // twice
  EXPECT_THAT(Bindings(Step(2)), IsEmpty());
  Put(Pod("q").Build());
  const StepResult second = Step(3);
  ASSERT_THAT(Of<AskExtenders>(second), SizeIs(1));
  // About nodes that do not exist, and not about its own.
  for (const Action& action : second.actions) {
    model::ActionResult result{action.id, absl::OkStatus()};
    if (std::holds_alternative<AskExtenders>(action.what)) {
      result.node_answers = model::NodeAnswers({{"zz", true}});
    }
    loop_->Apply(result);
  }
  const StepResult third = Step(4);
  EXPECT_THAT(Bindings(third), IsEmpty()) << "its own node was not admitted";
}

TEST_F(ExtendersTest, SoManyAreAskedAboutAtOnce) {
  Put(MakeNode("a", 100));
  for (int i = 0; i < 40; ++i) Put(Pod(absl::StrCat("p", i)).Build());
  const StepResult first = Step(1);
  EXPECT_THAT(Of<AskExtenders>(first), SizeIs(ExtenderPlugin::kMaxAsks));
  Say(first, All(Yes()));
  const StepResult second = Step(1);
  EXPECT_THAT(Bindings(second), SizeIs(ExtenderPlugin::kMaxAsks));
  EXPECT_THAT(Of<AskExtenders>(second), SizeIs(40 - ExtenderPlugin::kMaxAsks));
}

TEST_F(ExtendersTest, AnExtenderBindsThePodsThatItIsInterestedIn) {
  model::ExtenderConfig binder;
  binder.url_prefix = "http://b";
  binder.bind_verb = "bind";
  With({Filter("http://x"), binder});
  Nodes({"a"});
  Put(Pod("p").Build());
  Say(Step(1), All(Yes()));
  const StepResult step = Step(1);
  ASSERT_THAT(Of<BindPod>(step), SizeIs(1));
  EXPECT_EQ(Of<BindPod>(step)[0].extender, 1);
}

TEST_F(ExtendersTest, APodThatIsMovedByAnAnswerIsAskedAboutOnce) {
  Nodes({"a", "b"});
  Put(Pod("p").Build());
  size_t asks = 0;
  StepResult step = Step(1);
  for (int round = 0; round < 10; ++round) {
    asks += Of<AskExtenders>(step).size();
    Say(step, Only("b"));
    step = Step(1);
  }
  EXPECT_EQ(asks, 1u);
}

TEST(ExtenderPluginTest, PodsThatDoNotComeAgainAreForgotten) {
  state::StateOptions options;
  options.scheduler_names = {"fairlead"};
  state::ClusterState state(options);
  state.UpsertNode(MakeNode("a", 1));
  state.UpsertPod(PodBuilder("ns", "p"));
  const state::PodRecord& pod = state.pod(state.FindPod("ns", "p"));
  model::ExtenderConfig extender;
  extender.url_prefix = "http://x";
  extender.filter_verb = "filter";
  ExtenderPlugin plugin(state, {extender},
                        [](state::PodId) { return std::vector<std::string>{"a"}; });
  const BindPod bind{"ns", "p", pod.uid, "a", {}};
  ASSERT_TRUE(plugin.Reserve(pod, bind).ok());
  const auto asked = plugin.Advance(At(1));
  ASSERT_THAT(asked.actions, SizeIs(1));
  model::ActionResult refused{1, absl::OkStatus()};
  refused.node_answers = model::NodeAnswers({{"a", false, false, "no port", 0}});
  plugin.Answered(std::get<AskExtenders>(asked.actions[0].what).number, refused, At(1));
  EXPECT_THAT(plugin.TakeChanges(), SizeIs(1));
  ASSERT_TRUE(plugin.Reserve(pod, bind).ok());
  plugin.Unreserve("ns", "p");
  EXPECT_EQ(plugin.known(), 1u) << "the next pause is longer";
  plugin.Advance(At(1) + absl::Minutes(6));
  EXPECT_EQ(plugin.known(), 0u);
}

}  // namespace
}  // namespace fairlead::core::testing
