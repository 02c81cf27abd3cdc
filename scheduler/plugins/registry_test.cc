#include "scheduler/plugins/registry.h"

#include <set>
#include <string>

#include "scheduler/plugins/plugin_test_util.h"

namespace fairlead::plugins {
namespace {

using ::testing::HasSubstr;

TEST_F(PluginTest, RegisteringTwiceIsRefused) {
  EXPECT_EQ(RegisterAll(registry_).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(PluginTest, TheDefaultProfileIsMadeOfRegisteredPlugins) {
  const framework::Profile profile = framework::DefaultProfile();
  const auto made = framework::Framework::Make(profile, registry_);
  EXPECT_TRUE(made.ok()) << made.status();
  std::set<std::string> names = {"GpuFragmentation", "Numa"};  // only if a profile names them
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
      {"NodeResourcesFit", R"({"scoringStrategy":{}})",
       "args.scoringStrategy: is not an argument of NodeResourcesFit"},
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

}  // namespace
}  // namespace fairlead::plugins
