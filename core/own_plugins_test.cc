// Plugins that a program brings: from the configuration that names them to decisions and verdicts.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/configuration.h"
#include "core/decision_loop_testing.h"
#include "gmock/gmock.h"
#include "scheduler/framework/default_profiles.h"

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
              HasSubstr("profiles[0].pluginConfig: profile fairlead: plugin Colour: args.shade: is "
                        "not a field"));
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

}  // namespace
}  // namespace fairlead::core::testing
