// Plugins that a program brings: from the configuration that names them to decisions and verdicts.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/configuration.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/framework/binding_points.h"
#include "scheduler/framework/default_profiles.h"
#include "scheduler/framework/scheduling_points.h"

namespace fairlead::core::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Label "colour" of pod and node have to be equal; the node's name decides the score. Its args are
// the colour of pods without the label.
class Colour final : public framework::FilterPlugin, public framework::ScorePlugin {
 public:
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args) {
    if (args == R"({"shade":1})") return absl::InvalidArgumentError("args.shade: is not a field");
    return std::make_unique<Colour>();
  }
  [[nodiscard]] absl::string_view Name() const override { return "Colour"; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] std::vector<std::string> PodLabels() const override { return {"colour"}; }
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override {
    const auto wanted = context.pod_class.spec->labels_for_plugins.Get("colour");
    if (wanted.empty() || wanted == node.object.meta.labels.Get("colour")) return true;
    if (why != nullptr) {
      why->code = framework::Code::kUnschedulableAndUnresolvable;
      why->reason = "node(s) have another colour";
    }
    return false;
  }
  [[nodiscard]] int64_t Score(const framework::Context&,
                              const state::NodeInfo& node) const override {
    return node.object.meta.name == "liked" ? 100 : 0;
  }
};

framework::RegistryPtr Own() {
  const auto made = plugins::WithBuiltIn({{"Colour", Colour::Make}});
  EXPECT_TRUE(made.ok()) << made.status();
  return *made;
}

// What one profile with this content is read as.
absl::StatusOr<Configuration> Read(absl::string_view fields,
                                   const framework::RegistryPtr& plugins = Own()) {
  return ReadConfiguration({absl::StrCat(R"({"apiVersion":"kubescheduler.config.k8s.io/v1",)"
                                         R"("kind":"KubeSchedulerConfiguration","profiles":[{)"
                                         R"("schedulerName":"fairlead",)",
                                         fields, "}]}")},
                           plugins);
}

TEST(OwnPluginsTest, APointRunsWhatTheConfigurationSays) {
  struct Case {
    const char* point;
    bool filter, score;
  };
  for (const Case& c :
       {Case{"filter", true, false}, Case{"score", false, true}, Case{"multiPoint", true, true}}) {
    const auto read =
        Read(absl::StrCat(R"("plugins":{")", c.point, R"(":{"enabled":[{"name":"Colour"}]}})"));
    ASSERT_TRUE(read.ok()) << read.status();
    const std::vector<framework::ProfilePlugin>& plugins = read->options.profiles[0].plugins;
    int found = 0;
    for (const framework::ProfilePlugin& plugin : plugins) {
      if (plugin.name != "Colour") continue;
      ++found;
      EXPECT_EQ(plugin.filter, c.filter) << c.point;
      EXPECT_EQ(plugin.score, c.score) << c.point;
    }
    EXPECT_EQ(found, 1) << c.point;
  }
}

TEST(OwnPluginsTest, Refusals) {
  constexpr char kEnabled[] = R"("plugins":{"multiPoint":{"enabled":[{"name":"Colour"}]}})";
  const auto error = [](const auto& read) { return std::string(read.status().message()); };
  EXPECT_THAT(error(Read(kEnabled, plugins::BuiltIn())),
              HasSubstr("multiPoint.enabled[0].name: \"Colour\" is not a plugin of Fairlead; "
                        "known: DefaultBinder, DefaultPreemption, DynamicResources"));
  EXPECT_THAT(error(Read(R"("plugins":{"filter":{"enabled":[{"name":"Color"}]}})")),
              AllOf(HasSubstr("\"Color\" is not a plugin"), HasSubstr("Colour, DefaultBinder")));
  EXPECT_THAT(error(Read(R"("plugins":{"reserve":{"enabled":[{"name":"Colour"}]}})")),
              HasSubstr("plugin \"Colour\" does not extend reserve"));
  EXPECT_THAT(error(Read(absl::StrCat(
                  kEnabled, R"(,"pluginConfig":[{"name":"Colour","args":{"shade":1}}])"))),
              HasSubstr("profiles[0].pluginConfig[0].args.shade: is not a field"));
}

class OwnPluginsLoopTest : public DecisionLoopTest {
 protected:
  OwnPluginsLoopTest() {
    options_.plugins = Own();
    options_.profiles[0].plugins.push_back({"Colour"});
    options_.hook.enabled = false;
  }
  void Begin() {
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    for (const auto& [name, colour] :
         {std::pair{"plain", "red"}, {"liked", "red"}, {"sea", "blue"}}) {
      model::Node node = MakeNode(name, 0, 8, 64);
      node.meta.labels.Set("colour", colour);
      Put(node);
    }
  }
  static model::Pod Of(const std::string& name, const char* colour) {
    return PodBuilder("ns", name).Queue("q").Cpu(1000).Label("colour", colour);
  }
};

TEST_F(OwnPluginsLoopTest, TheyDecideByTheLabelsThatTheyRead) {
  Begin();
  Put(Of("r", "red"));
  Put(Of("b", "blue"));
  std::map<std::string, std::string> nodes;
  for (const model::BindPod& bind : testing::Of<model::BindPod>(Step(0))) {
    nodes[bind.name] = bind.node;
  }
  EXPECT_THAT(nodes, ElementsAre(std::pair("b", "sea"), std::pair("r", "liked")));
}

TEST_F(OwnPluginsLoopTest, TheirRefusalIsInTheVerdict) {
  Begin();
  Put(Of("g", "green"));
  EXPECT_THAT(BoundIn(Step(0)), IsEmpty());
  const auto& waiting = loop_->MakeView(At(0)).waiting;
  ASSERT_EQ(waiting.size(), 1u);
  EXPECT_THAT(waiting[0].message,
              HasSubstr("0/3 nodes are available: 3 node(s) have another colour"));
  // Another label is another class, and is decided on at once.
  Put(Of("g", "red"));
  EXPECT_THAT(BoundIn(Step(1)), ElementsAre("g"));
}

TEST_F(OwnPluginsLoopTest, AProfileThatNamesWhatTheProgramLacksIsRefused) {
  options_.plugins = plugins::BuiltIn();
  EXPECT_THAT(std::string(DecisionLoop::Make(options_, &catalog_).status().message()),
              HasSubstr("there is no plugin \"Colour\"; known: DynamicResources"));
}

// ---- QueueSort and Bind

// The shortest name first.
class ByName final : public framework::QueueSortPlugin {
 public:
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view) {
    return std::make_unique<ByName>();
  }
  [[nodiscard]] absl::string_view Name() const override { return "ByName"; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] int64_t SortKey(const state::ClusterState& state,
                                const state::Workload& workload) const override {
    const absl::string_view rank = state.pod(workload.pods.front()).name;
    return static_cast<int64_t>(rank.size());
  }
};

// Binds pods whose name begins with "own", and says what the test says.
class OwnBinder final : public framework::BindPlugin {
 public:
  static inline framework::Progress says = framework::Progress::Done();
  static inline std::vector<std::string> asked = {};
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view) {
    return std::make_unique<OwnBinder>();
  }
  [[nodiscard]] absl::string_view Name() const override { return "OwnBinder"; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  std::optional<framework::Progress> Bind(const framework::Placement& placement) override {
    if (!absl::StartsWith(placement.pod.name, "own")) return std::nullopt;
    asked.push_back(absl::StrCat(placement.pod.name, " to ", placement.node.name()));
    return says;
  }
};

framework::RegistryPtr WithPoints() {
  const auto made =
      plugins::WithBuiltIn({{"ByName", ByName::Make}, {"OwnBinder", OwnBinder::Make}});
  EXPECT_TRUE(made.ok()) << made.status();
  return *made;
}

std::string ErrorOf(absl::string_view fields) {
  const auto read = Read(fields, WithPoints());
  if (!read.ok()) return std::string(read.status().message());
  const auto made = framework::Framework::MakeAll(read->options.profiles, *read->options.plugins);
  return std::string(made.status().message());
}

TEST(OwnPointsTest, OnePluginSortsTheQueues) {
  EXPECT_EQ(ErrorOf(R"("plugins":{"queueSort":{"enabled":[{"name":"ByName"}],)"
                    R"("disabled":[{"name":"*"}]}})"),
            "");
  EXPECT_THAT(
      ErrorOf(R"("plugins":{"queueSort":{"enabled":[{"name":"ByName"}]}})"),
      HasSubstr("queueSort: one plugin is needed, but 2 are enabled; disable PrioritySort"));
  EXPECT_THAT(ErrorOf(R"("plugins":{"multiPoint":{"enabled":[{"name":"ByName"}]}})"),
              HasSubstr("2 are enabled"));
  EXPECT_THAT(ErrorOf(R"("plugins":{"queueSort":{"disabled":[{"name":"*"}]}})"),
              HasSubstr("queueSort: one plugin is needed: PrioritySort"));
}

TEST(OwnPointsTest, SomePluginBinds) {
  EXPECT_EQ(ErrorOf(R"("plugins":{"bind":{"enabled":[{"name":"OwnBinder"}],)"
                    R"("disabled":[{"name":"DefaultBinder"}]}})"),
            "");
  EXPECT_THAT(ErrorOf(R"("plugins":{"bind":{"enabled":[{"name":"ByName"}],)"
                      R"("disabled":[{"name":"DefaultBinder"}]}})"),
              HasSubstr("bind"));
  EXPECT_THAT(ErrorOf(R"("plugins":{"bind":{"disabled":[{"name":"*"}]}})"),
              HasSubstr("bind: at least one plugin is needed: DefaultBinder"));
}

TEST(OwnPointsTest, AllProfilesSortAlike) {
  const auto own = WithPoints();
  framework::Profile first = framework::DefaultProfile();
  framework::Profile second = first;
  second.scheduler_name = "second";
  second.priority_sort = false;
  second.plugins.push_back({"ByName"});
  EXPECT_THAT(std::string(framework::Framework::MakeAll({first, second}, *own).status().message()),
              HasSubstr("profile second: queueSort: all profiles need the same plugin"));
}

class OwnPointsLoopTest : public DecisionLoopTest {
 protected:
  void Begin(const char* plugin, int64_t cpus,
             const std::function<void(framework::Profile&)>& with) {
    options_.plugins = WithPoints();
    options_.hook.enabled = false;
    options_.emit_events = true;
    options_.profiles[0].plugins.push_back({plugin});
    with(options_.profiles[0]);
    Restart();
    SyncAll();
    Put(MakeQueue("q", "", kUnlimited, kUnlimited));
    Put(MakeNode("n", 0, cpus, 64));
  }
  static model::Pod Pod(const std::string& name, int32_t priority = 50) {
    return PodBuilder("ns", name).Queue("q").Cpu(1000).Priority("c", priority);
  }
};

TEST_F(OwnPointsLoopTest, TheSortKeyComesBeforePriority) {
  Begin("ByName", 2, [](framework::Profile& profile) { profile.priority_sort = false; });
  for (const char* name : {"ccc", "a", "bb"}) Put(Pod(name, name[0] == 'c' ? 90 : 50));
  EXPECT_THAT(BoundIn(Step(0)), ElementsAre("a", "bb"));
}

TEST_F(OwnPointsLoopTest, APluginBindsInThePlaceOfTheWrite) {
  OwnBinder::asked.clear();
  OwnBinder::says = framework::Progress::WaitUntil(At(5));
  Begin("OwnBinder", 8, [](framework::Profile&) {});
  Put(Pod("own"));
  Put(Pod("plain"));
  StepResult step = Step(0);
  EXPECT_THAT(BoundIn(step), ElementsAre("plain")) << "it skips this one";
  EXPECT_LE(step.wake_at, At(5));
  EXPECT_THAT(OwnBinder::asked, ::testing::Each("own to n"));
  OwnBinder::says = framework::Progress::Done();
  step = Step(5);
  EXPECT_THAT(BoundIn(step), IsEmpty());
  const auto said = testing::Of<model::EmitEvent>(step);
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said[0].reason, "Scheduled");
  OwnBinder::asked.clear();
  Step(6);
  EXPECT_THAT(OwnBinder::asked, IsEmpty());
}

TEST_F(OwnPointsLoopTest, WhatItCannotBindIsTriedAgain) {
  OwnBinder::says = framework::Progress::Failed("no fabric");
  Begin("OwnBinder", 8, [](framework::Profile&) {});
  Put(Pod("own"));
  const StepResult failed = StepsTo<model::SetPodUnschedulable>(Step(0), At(5));
  const auto told = testing::Of<model::SetPodUnschedulable>(failed);
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told[0].reason, "BindingRefused");
  EXPECT_THAT(told[0].message, HasSubstr("OwnBinder: no fabric"));
  OwnBinder::says = framework::Progress::Done();
  OwnBinder::asked.clear();
  StepsTo<model::EmitEvent>(failed, At(60));
  EXPECT_THAT(OwnBinder::asked, ElementsAre("own to n"));
}

TEST_F(OwnPointsLoopTest, WithoutDefaultBinderSomePluginHasToTakeThePod) {
  OwnBinder::says = framework::Progress::Done();
  Begin("OwnBinder", 8, [](framework::Profile& profile) { profile.default_binder = false; });
  Put(Pod("plain"));
  const StepResult failed = StepsTo<model::SetPodUnschedulable>(Step(0), At(5));
  const auto told = testing::Of<model::SetPodUnschedulable>(failed);
  ASSERT_FALSE(told.empty());
  EXPECT_THAT(told[0].message, HasSubstr("bind: no plugin of the profile binds it"));
}

TEST_F(OwnPointsLoopTest, APodThatGoesMeanwhileIsForgotten) {
  OwnBinder::says = framework::Progress::WaitUntil(At(5));
  Begin("OwnBinder", 8, [](framework::Profile&) {});
  Put(Pod("own"));
  Step(0);
  loop_->Apply(model::Delete{model::Kind::kPod, "ns", "own", "uid-ns-own"});
  Step(1);
  OwnBinder::asked.clear();
  EXPECT_EQ(Step(6).wake_at > At(6), true);
  EXPECT_THAT(OwnBinder::asked, IsEmpty());
}

}  // namespace
}  // namespace fairlead::core::testing
