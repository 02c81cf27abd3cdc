#include "scheduler/plugins/registry.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "scheduler/plugins/plugin_test_util.h"

namespace fairlead::plugins {
namespace {

using ::testing::HasSubstr;

TEST_F(PluginTest, RegisteringTwiceIsRefused) {
  EXPECT_EQ(RegisterAll(registry_).code(), absl::StatusCode::kAlreadyExists);
}

framework::PluginFactory Factory() {
  return [](absl::string_view args) { return BuiltIn()->Make("NodeName", args); };
}

TEST_F(PluginTest, AProgramBringsPluginsOfItsOwn) {
  const auto made = WithBuiltIn({{"Own", Factory()}});
  ASSERT_TRUE(made.ok()) << made.status();
  std::vector<std::string> names = BuiltIn()->Names();
  EXPECT_EQ(names, registry_.Names());
  names.emplace_back("Own");
  std::sort(names.begin(), names.end());
  EXPECT_EQ((*made)->Names(), names);
}

TEST_F(PluginTest, ANameThatIsTakenIsRefused) {
  struct Case {
    std::vector<framework::NamedPlugin> own;
    absl::StatusCode code;
    const char* text;
  };
  constexpr auto kTaken = absl::StatusCode::kAlreadyExists;
  const Case cases[] = {
      {{{"GpuKind", Factory()}}, kTaken, "plugin GpuKind is registered twice"},
      {{{"Own", Factory()}, {"Own", Factory()}}, kTaken, "plugin Own is registered twice"},
      // Also those that no registry has.
      {{{"NodeName", Factory()}}, kTaken, "plugin NodeName: kube-scheduler has a plugin"},
      {{{"DefaultBinder", Factory()}}, kTaken, "plugin DefaultBinder: kube-scheduler has"},
      {{{"GangScheduling", Factory()}}, kTaken, "plugin GangScheduling: kube-scheduler has"},
      {{{"*", Factory()}}, absl::StatusCode::kInvalidArgument, "no name of a plugin"},
      {{{"Own", nullptr}}, absl::StatusCode::kInvalidArgument, "the factory is missing"},
  };
  for (const Case& c : cases) {
    const absl::Status status = WithBuiltIn(c.own).status();
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.text));
  }
}

TEST_F(PluginTest, TheDefaultProfileIsMadeOfRegisteredPlugins) {
  const framework::Profile profile = framework::DefaultProfile();
  const auto made = framework::Framework::Make(profile, registry_);
  EXPECT_TRUE(made.ok()) << made.status();
  // Only if a profile names them, or the configuration has extenders.
  std::set<std::string> names = {"Extender",
                                 "GpuFragmentation",
                                 "ImageLocality",
                                 "NodeName",
                                 "NodeResourcesBalancedAllocation",
                                 "Numa"};
  for (const framework::ProfilePlugin& plugin : profile.plugins) {
    EXPECT_TRUE(names.insert(plugin.name).second) << plugin.name;
  }
  const std::vector<std::string> registered = registry_.Names();
  EXPECT_EQ(names, std::set<std::string>(registered.begin(), registered.end()));
}

TEST_F(PluginTest, PluginsKnowTheirNames) {
  for (const std::string& name : registry_.Names()) {
    const auto plugin = registry_.Make(name, "");
    ASSERT_TRUE(plugin.ok()) << name;
    EXPECT_EQ((*plugin)->Name(), name);
  }
}

TEST_F(PluginTest, ArgumentsOfEveryPluginAreStrict) {
  for (const std::string& name : registry_.Names()) {
    const auto ok = registry_.Make(
        name, R"({"apiVersion":"kubescheduler.config.k8s.io/v1","kind":")" + name + R"(Args"})");
    EXPECT_TRUE(ok.ok()) << name << ok.status();
    for (const char* bad : {"[]", "{", R"({"colour":1})", R"({"kind":"OtherArgs"})",
                            R"({"kind":1})", R"({"apiVersion":"a","apiVersion":"a"})"}) {
      EXPECT_EQ(registry_.Make(name, bad).status().code(), absl::StatusCode::kInvalidArgument)
          << name << bad;
    }
  }
}

TEST_F(PluginTest, ArgumentsThatAreRefused) {
  struct Case {
    const char* plugin;
    const char* args;
    const char* text;
  };
  const Case cases[] = {
      {"NodePlacement", R"({"gpu":"tight"})", "args.gpu: must be one of binpack, spread"},
      {"NodePlacement", R"({"cpu":1})", "args.cpu: must be a string"},
      {"NodeUnschedulable", R"({"honorToleration":"yes"})", "must be true or false"},
      {"InterPodAffinity", R"({"hardPodAffinityWeight":101})", "a whole number from 0 to 100"},
      {"InterPodAffinity", R"({"hardPodAffinityWeight":-1})", "a whole number from 0 to 100"},
      {"NodeResourcesFit", R"({"ignoredResources":"x"})", "must be a list of strings"},
      {"NodeResourcesFit", R"({"ignoredResources":[1]})", "must be a list of strings"},
      {"NodeResourcesFit", R"({"ignoredResources":["a.com/x","no/such/name"]})",
       "args.ignoredResources[1]: \"no/such/name\" is no name of a resource"},
      {"NodeResourcesFit", R"({"ignoredResourceGroups":["a.com/x"]})",
       "args.ignoredResourceGroups[0]: resource group name can't contain '/'"},
      {"VolumeBinding", R"({"bindTimeoutSeconds":-1})",
       "args.bindTimeoutSeconds: must be a whole number from 0 to"},
      {"VolumeBinding", R"({"shape":[{"utilization":0,"score":0}]})",
       "args.shape: is not an argument of VolumeBinding"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(std::string(registry_.Make(c.plugin, c.args).status().message()),
                HasSubstr(c.text));
  }
}

// What arguments say, with whatever the reader of nested ones makes of hostile text.
TEST_F(PluginTest, ScoringArgumentsThatAreRefused) {
  constexpr char kFit[] = "NodeResourcesFit";
  constexpr char kBalanced[] = "NodeResourcesBalancedAllocation";
  struct Case {
    const char* plugin;
    const char* args;
    const char* text;
  };
  const Case cases[] = {
      {kFit, R"({"scoringStrategy":7})", "args.scoringStrategy: must be a JSON object"},
      {kFit, R"({"scoringStrategy":{}})",
       "args.scoringStrategy.type: must be one of LeastAllocated, MostAllocated, "
       "RequestedToCapacityRatio"},
      {kFit, R"({"scoringStrategy":{"type":"Best"}})",
       "args.scoringStrategy.type: must be one of LeastAllocated, MostAllocated, "
       "RequestedToCapacityRatio"},
      {kFit, R"({"scoringStrategy":{"type":3}})", "args.scoringStrategy.type: must be a string"},
      {kFit, R"({"scoringStrategy":{"type":"MostAllocated","type":"MostAllocated"}})",
       "args.scoringStrategy.type: is given twice"},
      {kFit, R"({"scoringStrategy":{"type":"MostAllocated","colour":1}})",
       "args.scoringStrategy.colour: is not a field of args.scoringStrategy"},
      {kFit, R"({"scoringStrategy":{"type":"MostAllocated","resources":{}}})",
       "args.scoringStrategy.resources: must be a list"},
      {kFit, R"({"scoringStrategy":{"type":"MostAllocated","resources":["cpu"]}})",
       "args.scoringStrategy.resources[0]: must be a JSON object"},
      {kFit, R"({"scoringStrategy":{"type":"MostAllocated","resources":[{"weight":1}]}})",
       "args.scoringStrategy.resources[0].name: must be specified"},
      {kFit,
       R"({"scoringStrategy":{"type":"MostAllocated","resources":[{"name":"cpu"},{"name":"memory","weight":-1}]}})",
       "args.scoringStrategy.resources[1].weight: must be a whole number from 0 to 100"},
      {kFit,
       R"({"scoringStrategy":{"type":"MostAllocated","resources":[{"name":"cpu","weight":101}]}})",
       "args.scoringStrategy.resources[0].weight: must be a whole number from 0 to 100"},
      {kFit,
       R"({"scoringStrategy":{"type":"MostAllocated","resources":[{"name":"cpu","weight":1e30}]}})",
       "args.scoringStrategy.resources[0].weight: must be a whole number from 0 to 100"},
      {kFit,
       R"({"scoringStrategy":{"type":"MostAllocated","resources":[{"name":"cpu","size":1}]}})",
       "args.scoringStrategy.resources[0].size: is not a field of "
       "args.scoringStrategy.resources[0]"},
      {kFit, R"({"scoringStrategy":{"type":"RequestedToCapacityRatio"}})",
       "args.scoringStrategy.requestedToCapacityRatio: must be specified if type is "
       "RequestedToCapacityRatio"},
      {kFit,
       R"({"scoringStrategy":{"type":"RequestedToCapacityRatio","requestedToCapacityRatio":null}})",
       "args.scoringStrategy.requestedToCapacityRatio: must be specified if type is "
       "RequestedToCapacityRatio"},
      {kFit,
       R"({"scoringStrategy":{"type":"RequestedToCapacityRatio","requestedToCapacityRatio":{}}})",
       "args.scoringStrategy.requestedToCapacityRatio.shape: must have at least one point"},
      {kFit,
       R"({"scoringStrategy":{"requestedToCapacityRatio":{"shape":[]},"type":"RequestedToCapacityRatio"}})",
       "args.scoringStrategy.requestedToCapacityRatio.shape: must have at least one point"},
      {kFit,
       R"({"scoringStrategy":{"type":"LeastAllocated","requestedToCapacityRatio":{"shape":[{}]}}})",
       "args.scoringStrategy.requestedToCapacityRatio: must not be specified unless type is "
       "RequestedToCapacityRatio"},
      {kFit,
       R"({"scoringStrategy":{"type":"RequestedToCapacityRatio","requestedToCapacityRatio":{"shape":[{"utilization":101}]}}})",
       "args.scoringStrategy.requestedToCapacityRatio.shape[0].utilization: must be a whole number "
       "from 0 to 100"},
      {kFit,
       R"({"scoringStrategy":{"type":"RequestedToCapacityRatio","requestedToCapacityRatio":{"shape":[{"score":11}]}}})",
       "args.scoringStrategy.requestedToCapacityRatio.shape[0].score: must be a whole number from "
       "0 to 10"},
      {kFit,
       R"({"scoringStrategy":{"type":"RequestedToCapacityRatio","requestedToCapacityRatio":{"shape":[{"score":-1}]}}})",
       "shape[0].score: must be a whole number from 0 to 10"},
      {kFit,
       R"({"scoringStrategy":{"type":"RequestedToCapacityRatio","requestedToCapacityRatio":{"shape":[{"utilization":5},{"utilization":5,"score":1}]}}})",
       "args.scoringStrategy.requestedToCapacityRatio.shape[1].utilization: must be above that of "
       "the point before"},
      {kBalanced, R"({"resources":3})", "args.resources: must be a list"},
      {kBalanced, R"({"resources":[{"name":"cpu","weight":2}]})",
       "args.resources[0].weight: must be a whole number from 0 to 1"},
      {kBalanced, R"({"resources":[{"name":"cpu"},{"name":"memory"},{"name":"cpu"}]})",
       "args.resources[2].name: is there twice"},
  };
  for (const Case& c : cases) {
    const absl::Status status = registry_.Make(c.plugin, c.args).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.args;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.text)) << c.args;
  }
}

TEST_F(PluginTest, NodeNameRefusesNone) {
  AddNode(MakeNode("n", 0));
  AddPod(PodBuilder("ns", "elsewhere").On("m"));
  Waiting({});
  EXPECT_EQ(Why(*Only("NodeName"), "n"), "");
}

}  // namespace
}  // namespace fairlead::plugins
