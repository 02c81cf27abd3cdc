#include "scheduler/framework/config.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/framework/config_testing.h"

namespace fairlead::framework {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The default plugins and one more.
Registry TestRegistry() {
  Registry registry = testing::DefaultPlugins();
  EXPECT_TRUE(registry.Register("Extra", testing::NotMadeHere).ok());
  return registry;
}

absl::StatusOr<SchedulerConfiguration> Read(absl::string_view fields) {
  static const auto& registry = *new Registry(TestRegistry());
  return ReadSchedulerConfiguration(
      absl::StrCat(R"({"apiVersion":"kubescheduler.config.k8s.io/v1",)"
                   R"("kind":"KubeSchedulerConfiguration")",
                   fields.empty() ? "" : ",", fields, "}"),
      registry);
}

absl::StatusOr<SchedulerConfiguration> ReadPlugins(absl::string_view plugins) {
  return Read(absl::StrCat(R"("profiles":[{"plugins":)", plugins, "}]"));
}

// "NodeAffinity/2 Extra/1/f": name, weight, and the points if not both.
std::string Text(const Profile& profile) {
  std::vector<std::string> out;
  for (const ProfilePlugin& p : profile.plugins) {
    out.push_back(absl::StrCat(p.name, "/", p.weight, p.filter && p.score ? "" : "/",
                               p.filter && p.score ? ""
                               : p.filter          ? "f"
                                                   : "s"));
  }
  return absl::StrJoin(out, " ");
}

// What no profile goes without.
#define kBuiltIns                                                                      \
  R"({"name":"SchedulingGates"},{"name":"PrioritySort"},{"name":"DefaultPreemption"})" \
  R"(,{"name":"DefaultBinder"})"

constexpr char kDefaults[] =
    "GpuKind/1 NodeReady/1 NodeUnschedulable/1/f NodeDeclaredFeatures/1/f InstanceWishes/1 "
    "NodeAffinity/2 TaintToleration/3 NodeResourcesFit/1/f GpuSharing/1 DynamicResources/1 "
    "NodePorts/1/f VolumeRestrictions/1/f "
    "NodeVolumeLimits/1/f VolumeBinding/1 VolumeZone/1/f PodTopologySpread/2 InterPodAffinity/2 "
    "ResourceType/1 NodePlacement/1";

TEST(ConfigTest, NothingSaid) {
  for (const char* fields :
       {"", R"("profiles":[])", R"("profiles":null)", R"("profiles":[{}])",
        R"("extenders":[],"profiles":[{"plugins":{"preFilter":{"enabled":[]}}}])"}) {
    const auto config = Read(fields);
    ASSERT_TRUE(config.ok()) << config.status();
    ASSERT_EQ(config->profiles.size(), 1u);
    EXPECT_EQ(config->profiles[0].scheduler_name, "fairlead");
    EXPECT_EQ(Text(config->profiles[0]), kDefaults);
  }
}

TEST(ConfigTest, Merge) {
  struct Case {
    const char* plugins;
    std::string expected;
  };
  const std::string defaults = kDefaults;
  const Case cases[] = {
      // A new plugin comes last, with weight 1 or its own.
      {R"({"multiPoint":{"enabled":[{"name":"Extra"}]}})", defaults + " Extra/1"},
      {R"({"multiPoint":{"enabled":[{"name":"Extra","weight":9}]}})", defaults + " Extra/9"},
      // Everything disabled, some of it named again: theirs is the order, and a weight that is not
      // given is 1.
      {R"({"multiPoint":{"disabled":[{"name":"*"}],
           "enabled":[{"name":"Extra"},{"name":"NodeAffinity"},)" kBuiltIns R"(]}})",
       "Extra/1 NodeAffinity/1"},
      {R"({"multiPoint":{"disabled":[{"name":"*"}],"enabled":[)" kBuiltIns R"(]}})", ""},
      // A default with another weight keeps its place.
      {R"({"multiPoint":{"disabled":[{"name":"*"}],"enabled":[{"name":"NodeAffinity","weight":7},)" kBuiltIns
       R"(]}})",
       "NodeAffinity/7"},
      // Upstream's plugins that are not ours can be disabled.
      {R"({"multiPoint":{"disabled":[{"name":"ImageLocality"}]}})", defaults},
      {R"({"multiPoint":{"disabled":[{"name":"NodeVolumeLimits"},{"name":"VolumeBinding"}]}})",
       absl::StrReplaceAll(defaults, {{"NodeVolumeLimits/1/f VolumeBinding/1 ", ""}})},
      // One point only.
      {R"({"multiPoint":{"disabled":[{"name":"*"}],"enabled":[{"name":"NodeAffinity"},{"name":"Extra"},)" kBuiltIns
       R"(]},
           "score":{"disabled":[{"name":"*"}]}})",
       "NodeAffinity/1/f Extra/1/f"},
      {R"({"multiPoint":{"disabled":[{"name":"*"}],"enabled":[{"name":"NodeAffinity"},{"name":"Extra"},)" kBuiltIns
       R"(]},
           "filter":{"disabled":[{"name":"NodeAffinity"}]}})",
       "Extra/1 NodeAffinity/1/s"},
      // Enabled at its point beats disabled there, and the weight of the point beats multiPoint's.
      {R"({"multiPoint":{"disabled":[{"name":"*"}],"enabled":[{"name":"NodeAffinity","weight":4},)" kBuiltIns
       R"(]},
           "score":{"disabled":[{"name":"*"}],"enabled":[{"name":"NodeAffinity","weight":5}]}})",
       "NodeAffinity/5"},
      // Enabled at a point alone.
      {R"({"multiPoint":{"disabled":[{"name":"*"}],"enabled":[{"name":"NodeAffinity"},)" kBuiltIns
       R"(]},
           "score":{"enabled":[{"name":"Extra","weight":3}]}})",
       "NodeAffinity/1 Extra/3/s"},
      // Filters: enabled at both first, then those of multiPoint, then those of the point.
      {R"({"multiPoint":{"disabled":[{"name":"*"}],
           "enabled":[{"name":"NodeAffinity"},{"name":"NodePorts"},{"name":"NodeReady"},)" kBuiltIns
       R"(]},
           "filter":{"enabled":[{"name":"Extra"},{"name":"NodeReady"}]}})",
       "NodeReady/1 NodeAffinity/1 NodePorts/1/f Extra/1/f"},
  };
  for (const Case& c : cases) {
    const auto config = ReadPlugins(c.plugins);
    ASSERT_TRUE(config.ok()) << c.plugins << config.status();
    EXPECT_EQ(Text(config->profiles[0]), c.expected) << c.plugins;
  }
}

TEST(ConfigTest, DefaultKeepsItsPlaceWithANewWeight) {
  const auto config =
      ReadPlugins(R"({"multiPoint":{"enabled":[{"name":"TaintToleration","weight":50}]}})");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(Text(config->profiles[0]),
              HasSubstr("NodeAffinity/2 TaintToleration/50 NodeResourcesFit/1"));
}

TEST(ConfigTest, ProfilesArgsAndTheRest) {
  const auto config = Read(R"("profiles":[
      {"schedulerName":"fairlead","pluginConfig":[{"name":"NodePlacement","args":{"strategy": "spread"}}]},
      {"schedulerName":"kai-scheduler","percentageOfNodesToScore":10}],
      "parallelism":16,"leaderElection":{"leaderElect": true},"clientConnection":{"qps":50})");
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->profiles.size(), 2u);
  EXPECT_EQ(config->profiles[0].scheduler_name, "fairlead");
  EXPECT_EQ(config->profiles[1].scheduler_name, "kai-scheduler");
  for (const ProfilePlugin& plugin : config->profiles[0].plugins) {
    EXPECT_EQ(plugin.args_json, plugin.name == "NodePlacement" ? R"({"strategy":"spread"})" : "");
  }
  for (const ProfilePlugin& plugin : config->profiles[1].plugins) EXPECT_EQ(plugin.args_json, "");
  EXPECT_EQ(config->leader_election_json, R"({"leaderElect":true})");
  EXPECT_EQ(config->client_connection_json, R"({"qps":50})");
  EXPECT_THAT(config->ignored, ElementsAre("profiles[1].percentageOfNodesToScore", "parallelism"));
}

TEST(ConfigTest, Refusals) {
  struct Case {
    const char* fields;
    absl::StatusCode code;
    const char* text;
  };
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  constexpr auto kNot = absl::StatusCode::kUnimplemented;
  const Case cases[] = {
      {R"("profile":[])", kBad, "profile: is not a known field"},
      {R"("profiles":{})", kBad, "profiles: must be a list"},
      {R"("profiles":[1])", kBad, "profiles[0]: must be an object"},
      {R"("profiles":[],"profiles":[])", kBad, "profiles: is given twice"},
      {R"("profiles":[{"name":"x"}])", kBad, "profiles[0].name: is not a known field"},
      {R"("profiles":[{"schedulerName":1}])", kBad, "profiles[0].schedulerName: must be a string"},
      {R"("profiles":[{"schedulerName":""}])", kBad,
       "profiles[0].schedulerName: must not be empty"},
      {R"("profiles":[{"schedulerName":"a"},{"schedulerName":"a"}])", kBad,
       "profiles[1].schedulerName: \"a\" is the name of another profile"},
      {R"("profiles":[{"plugins":{"sort":{}}}])", kBad,
       "profiles[0].plugins.sort: is not a known field"},
      {R"("profiles":[{"plugins":{"score":{"enabled":[{"name":"X"}]}}}])", kBad,
       "profiles[0].plugins.score.enabled[0].name: \"X\" is not a plugin of Fairlead; known: "
       "DefaultBinder, DefaultPreemption, DynamicResources, Extra,"},
      {R"("profiles":[{"plugins":{"score":{"enabled":[{"name":"*"}]}}}])", kBad,
       "\"*\" is not a plugin"},
      {R"("profiles":[{"plugins":{"score":{"disabled":[{"name":"X"}]}}}])", kBad,
       "profiles[0].plugins.score.disabled[0].name: \"X\" is not a plugin"},
      {R"("profiles":[{"plugins":{"score":{"enabled":[{"name":"Extra"},{"name":"Extra"}]}}}])",
       kBad, "enabled[1].name: \"Extra\" is enabled twice"},
      {R"("profiles":[{"plugins":{"score":{"enabled":[{"weight":2}]}}}])", kBad,
       "enabled[0].name: must not be empty"},
      {R"("profiles":[{"plugins":{"score":{"enabled":[{"name":"Extra","weight":-1}]}}}])", kBad,
       "enabled[0].weight: must be a whole number from 0 to 100000"},
      {R"("profiles":[{"plugins":{"score":{"enabled":[{"name":"Extra","weight":1.5}]}}}])", kBad,
       "enabled[0].weight: must be a whole number"},
      {R"("profiles":[{"plugins":{"filter":{"enabled":[{"name":"ImageLocality"}]}}}])", kBad,
       "profiles[0].plugins.filter.enabled: plugin \"ImageLocality\" does not extend filter"},
      {R"("profiles":[{"plugins":{"queueSort":{"disabled":[{"name":"*"}]}}}])", kBad,
       "profiles[0].plugins.queueSort: one plugin is needed"},
      {R"("profiles":[{"plugins":{"multiPoint":{"disabled":[{"name":"DefaultBinder"}]}}}])", kBad,
       "profiles[0].plugins.bind: at least one plugin is needed"},
      {R"("profiles":[{"plugins":{"preEnqueue":{"disabled":[{"name":"SchedulingGates"}]}}}])", kBad,
       "profiles[0].plugins.preEnqueue: SchedulingGates cannot be left out"},
      {R"("profiles":[{"plugins":{"preBind":{"disabled":[{"name":"VolumeBinding"}]}}}])", kNot,
       "profiles[0].plugins.preBind: VolumeBinding filters, and needs its preBind"},
      {R"("profiles":[{"plugins":{"multiPoint":{"enabled":[{"name":"PodGroupPodsCount"}]}}}])",
       kNot, "multiPoint.enabled: Fairlead has no plugin PodGroupPodsCount"},
      {R"("profiles":[{"plugins":{"placementScore":{"enabled":[{"name":"Extra"}]}}}])", kNot,
       "profiles[0].plugins.placementScore: Fairlead has no plugins of this point"},
      {R"("profiles":[{"pluginConfig":[{"name":"X","args":{}}]}])", kBad,
       "profiles[0].pluginConfig[0].name: \"X\" is not a plugin"},
      {R"("profiles":[{"pluginConfig":[{"name":"Extra","args":[]}]}])", kBad,
       "profiles[0].pluginConfig[0].args: must be an object"},
      {R"("profiles":[{"pluginConfig":[{"name":"Extra"},{"name":"Extra"}]}])", kBad,
       "pluginConfig[1].name: \"Extra\" is configured twice"},
      {R"("extenders":{})", kBad, "extenders: must be a list"},
      {R"("parallelism":0)", kBad, "parallelism: must be a whole number greater than zero"},
      {R"("parallelism":"16")", kBad, "parallelism: must be a whole number"},
      {R"("percentageOfNodesToScore":101)", kBad, "percentageOfNodesToScore: must be between"},
      {R"("profiles":[{"percentageOfNodesToScore":-1}])", kBad,
       "profiles[0].percentageOfNodesToScore: must be between 0 and 100"},
      {R"("podInitialBackoffSeconds":0)", kBad, "podInitialBackoffSeconds: must be greater than 0"},
      {R"("podInitialBackoffSeconds":11)", kBad,
       "podMaxBackoffSeconds: must not be less than podInitialBackoffSeconds"},
      {R"("enableProfiling":1)", kBad, "enableProfiling: must be true or false"},
      {R"("profiles":[{"pluginConfig":[{"name":"DefaultPreemption",
           "args":{"minCandidateNodesPercentage":101}}]}])",
       kBad, "pluginConfig[0].args.minCandidateNodesPercentage: must be between 0 and 100"},
      {R"("profiles":[{"pluginConfig":[{"name":"DefaultPreemption",
           "args":{"minCandidateNodesPercentage":0,"minCandidateNodesAbsolute":0}}]}])",
       kBad, "minCandidateNodesAbsolute: cannot be zero at the same time"},
      {R"("profiles":[{"pluginConfig":[{"name":"PrioritySort","args":{"by":"age"}}]}])", kBad,
       "pluginConfig[0].args.by: is not a known field"},
      {R"("profiles":[{"pluginConfig":[{"name":"DefaultPreemption",
           "args":{"kind":"NodeAffinityArgs"}}]}])",
       kBad, "pluginConfig[0].args.kind: must be DefaultPreemptionArgs"},
      {R"("profiles":[{"pluginConfig":[{"name":"DefaultPreemption",
           "args":{"apiVersion":"kubescheduler.config.k8s.io/v1beta3"}}]}])",
       kBad, "pluginConfig[0].args.apiVersion: must be kubescheduler.config.k8s.io/v1"},
      {R"("leaderElection":true)", kBad, "leaderElection: must be an object"},
  };
  for (const Case& c : cases) {
    const auto config = Read(c.fields);
    EXPECT_EQ(config.status().code(), c.code) << c.fields << config.status();
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(c.text)) << c.fields;
  }
}

// Files of kube-scheduler's mean what they mean there.
TEST(ConfigTest, OtherSchedulersHaveTheDefaultsOfKubeScheduler) {
  constexpr char kUpstream[] =
      "GpuKind/1/f NodeReady/1/f NodeUnschedulable/1/f NodeName/1/f InstanceWishes/1 "
      "TaintToleration/3 "
      "NodeAffinity/2 NodePorts/1/f NodeResourcesFit/1 GpuSharing/1 VolumeRestrictions/1/f "
      "NodeVolumeLimits/1/f VolumeBinding/1 VolumeZone/1/f PodTopologySpread/2 InterPodAffinity/2 "
      "DynamicResources/2 NodeDeclaredFeatures/1/f ResourceType/1 NodePlacement/1 "
      "NodeResourcesBalancedAllocation/1/s "
      "ImageLocality/1/s";
  const auto config = Read(R"("profiles":[{"schedulerName":"default-scheduler"},{}])");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(Text(config->profiles[0]), kUpstream);
  EXPECT_TRUE(config->profiles[0].idle_first);
  EXPECT_EQ(Text(config->profiles[1]), kDefaults);
  EXPECT_FALSE(config->profiles[1].idle_first);
}

TEST(ConfigTest, TheBaseOfAProfileCanBeSaid) {
  static const auto& registry = *new Registry(TestRegistry());
  const auto config = ReadSchedulerConfiguration(
      R"({"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration",
          "profiles":[{"schedulerName":"gpus"},{"schedulerName":"fairlead"}]})",
      registry, {{"gpus", ProfileBase::kFairlead}, {"fairlead", ProfileBase::kUpstream}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(Text(config->profiles[0]), kDefaults);
  EXPECT_TRUE(config->profiles[1].idle_first);
}

// As kube-scheduler's own examples have it.
TEST(ConfigTest, ArgumentsOfWhatIsBuiltInAreAccepted) {
  const auto config = Read(R"("profiles":[{"pluginConfig":[{"name":"DefaultPreemption","args":{
      "apiVersion":"kubescheduler.config.k8s.io/v1","kind":"DefaultPreemptionArgs",
      "minCandidateNodesPercentage":10,"minCandidateNodesAbsolute":100}}]}],
      "podInitialBackoffSeconds":1,"podMaxBackoffSeconds":10,"enableProfiling":true)");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->pod_backoff_initial, absl::Seconds(1));
  EXPECT_EQ(config->pod_backoff_max, absl::Seconds(10));
  EXPECT_EQ(config->ignored, std::vector<std::string>{"enableProfiling"});
}

TEST(ConfigTest, WithoutDefaultPreemptionNothingIsEvicted) {
  struct Case {
    const char* plugins;
    bool evicts;
  };
  for (const Case& c : {Case{"{}", true},
                        {R"({"postFilter":{"disabled":[{"name":"DefaultPreemption"}]}})", false},
                        {R"({"postFilter":{"disabled":[{"name":"*"}]}})", false},
                        {R"({"multiPoint":{"disabled":[{"name":"DefaultPreemption"}]}})", false},
                        {R"({"multiPoint":{"disabled":[{"name":"DefaultPreemption"}]},
             "postFilter":{"enabled":[{"name":"DefaultPreemption"}]}})",
                         true}}) {
    const auto config = ReadPlugins(c.plugins);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(config->profiles[0].default_preemption, c.evicts) << c.plugins;
  }
}

TEST(ConfigTest, DocumentsOfAnotherKind) {
  const Registry registry;
  for (const char* json : {"", "{", "[]", "1", "{}", R"({"apiVersion":"v1","kind":"ConfigMap"})",
                           R"({"apiVersion":"kubescheduler.config.k8s.io/v1beta3",
                               "kind":"KubeSchedulerConfiguration"})",
                           R"({"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"Other"})"}) {
    EXPECT_EQ(ReadSchedulerConfiguration(json, registry).status().code(),
              absl::StatusCode::kInvalidArgument)
        << json;
  }
}

}  // namespace
}  // namespace fairlead::framework
