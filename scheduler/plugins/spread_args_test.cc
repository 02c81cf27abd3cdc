#include "scheduler/plugins/spread_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "scheduler/framework/default_profiles.h"
#include "scheduler/plugins/pod_topology_spread.h"

namespace fairlead::plugins {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The error of a list with this one constraint.
std::string Error(absl::string_view constraint) {
  const absl::StatusOr<state::SpreadDefaults> read = ReadSpreadDefaults(
      absl::StrCat(R"({"defaultingType":"List","defaultConstraints":[)", constraint, "]}"));
  EXPECT_TRUE(read.ok() || absl::IsInvalidArgument(read.status())) << read.status();
  return read.ok() ? "" : std::string(read.status().message());
}

TEST(SpreadArgsTest, NoArgsAreNoConstraints) {
  const absl::StatusOr<state::SpreadDefaults> none = ReadSpreadDefaults("");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(none->constraints, IsEmpty());
}

TEST(SpreadArgsTest, TheTypeIsSystemUnlessItSaysList) {
  for (const char* args : {"{}", R"({"defaultingType":"System"})", R"({"defaultConstraints":[]})",
                           R"({"kind":"PodTopologySpreadArgs","defaultingType":null})"}) {
    SCOPED_TRACE(args);
    const absl::StatusOr<state::SpreadDefaults> read = ReadSpreadDefaults(args);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->origin, model::SpreadOrigin::kSystem);
    ASSERT_THAT(read->constraints, SizeIs(2));
    EXPECT_EQ(read->constraints[0].topology_key, "kubernetes.io/hostname");
    EXPECT_EQ(read->constraints[0].max_skew, 3);
    EXPECT_EQ(read->constraints[1].topology_key, "topology.kubernetes.io/zone");
    EXPECT_EQ(read->constraints[1].max_skew, 5);
    for (const auto& each : read->constraints) {
      EXPECT_FALSE(each.do_not_schedule);
      EXPECT_TRUE(each.honor_node_affinity);
      EXPECT_FALSE(each.honor_node_taints);
      EXPECT_EQ(each.min_domains, 1);
    }
  }
}

TEST(SpreadArgsTest, AListIsRead) {
  const absl::StatusOr<state::SpreadDefaults> read = ReadSpreadDefaults(
      R"({"defaultingType":"List","defaultConstraints":[
          {"maxSkew":2,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","minDomains":3,
           "nodeAffinityPolicy":"Ignore","nodeTaintsPolicy":"Honor","matchLabelKeys":["a"],
           "labelSelector":null},
          {"maxSkew":7,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway"}]})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->origin, model::SpreadOrigin::kListed);
  ASSERT_THAT(read->constraints, SizeIs(2));
  model::TopologySpreadConstraint hard;
  hard.max_skew = 2;
  hard.topology_key = "zone";
  hard.min_domains = 3;
  hard.honor_node_affinity = false;
  hard.honor_node_taints = true;
  EXPECT_TRUE(read->constraints[0] == hard);
  EXPECT_EQ(read->constraints[1].max_skew, 7);
  EXPECT_FALSE(read->constraints[1].do_not_schedule);
}

TEST(SpreadArgsTest, WhatUpstreamRefusesIsRefused) {
  const std::string key = R"("topologyKey":"zone",)",
                    when = R"("whenUnsatisfiable":"DoNotSchedule")";
  EXPECT_EQ(Error(absl::StrCat("{", key, when, "}")),
            "args.defaultConstraints[0].maxSkew: must be given");
  EXPECT_THAT(Error(absl::StrCat(R"({"maxSkew":0,)", key, when, "}")), HasSubstr("[0].maxSkew"));
  EXPECT_THAT(Error(absl::StrCat(R"({"maxSkew":2147483648,)", key, when, "}")),
              HasSubstr("[0].maxSkew"));
  EXPECT_EQ(Error(R"({"maxSkew":1,"topologyKey":"zone"})"),
            "args.defaultConstraints[0].whenUnsatisfiable: must be given");
  EXPECT_THAT(Error(R"({"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"Now"})"),
              HasSubstr("[0].whenUnsatisfiable: must be one of"));
  EXPECT_THAT(Error(absl::StrCat(R"({"maxSkew":1,"labelSelector":{},)", key, when, "}")),
              HasSubstr("[0].labelSelector: may not be given"));
  EXPECT_THAT(Error(absl::StrCat(R"({"maxSkew":1,"nodeTaintsPolicy":"Some",)", key, when, "}")),
              HasSubstr("[0].nodeTaintsPolicy"));
  EXPECT_THAT(Error(absl::StrCat(R"({"maxSkew":1,"maxskew":1,)", key, when, "}")),
              HasSubstr("[0].maxskew"));
  const std::string one = absl::StrCat(R"({"maxSkew":1,)", key, when, "}");
  EXPECT_EQ(Error(one), "");
  EXPECT_EQ(Error(absl::StrCat(one, ",", one)),
            "args.defaultConstraints[1]: is the second one of zone, DoNotSchedule");
  EXPECT_EQ(
      ReadSpreadDefaults(absl::StrCat(R"({"defaultConstraints":[)", one, "]}")).status().message(),
      "args.defaultConstraints: must be empty with defaultingType System");
  EXPECT_THAT(std::string(ReadSpreadDefaults(R"({"defaultingType":"Some"})").status().message()),
              HasSubstr("args.defaultingType"));
}

TEST(SpreadArgsTest, KeysAreThoseOfLabels) {
  const auto error = [](const std::string& key) {
    return Error(absl::StrCat(
        R"({"maxSkew":1,"whenUnsatisfiable":"ScheduleAnyway","topologyKey":")", key, "\"}"));
  };
  for (const std::string& key :
       {std::string("zone"), std::string("a.b-c/X_y.z"), std::string(63, 'a')}) {
    EXPECT_EQ(error(key), "") << key;
  }
  for (const std::string& key :
       {std::string(), std::string("a b"), std::string("/zone"), std::string("a/"),
        std::string("a/b/c"), std::string("A.b/c"), std::string("a..b/c"), std::string("-a"),
        std::string("a_"), std::string(64, 'a'), std::string(254, 'a') + "/b"}) {
    EXPECT_EQ(error(key), "args.defaultConstraints[0].topologyKey: must be the key of a label")
        << key;
  }
}

// Upstream's base has the system's, Fairlead's none; both have what their configuration says.
TEST(SpreadArgsTest, ABaseSaysWhatItsProfilesHave) {
  using framework::DefaultProfile;
  using framework::ProfileBase;
  const framework::Profile fairlead = DefaultProfile(ProfileBase::kFairlead);
  framework::Profile upstream = DefaultProfile(ProfileBase::kUpstream);
  EXPECT_THAT(SpreadDefaultsOf({fairlead}), IsEmpty());
  const std::vector<state::SpreadDefaults> both = SpreadDefaultsOf({fairlead, upstream});
  ASSERT_THAT(both, SizeIs(2));
  EXPECT_THAT(both[0].constraints, IsEmpty());
  EXPECT_EQ(both[1].origin, model::SpreadOrigin::kSystem);
  EXPECT_THAT(both[1].constraints, SizeIs(2));
  for (framework::ProfilePlugin& plugin : upstream.plugins) {
    if (plugin.name == PodTopologySpread::kName) plugin.args_json = R"({"defaultingType":"List"})";
  }
  EXPECT_THAT(SpreadDefaultsOf({upstream}), IsEmpty());
}

TEST(SpreadArgsTest, WhatTheProfileDoesNotAskForIsLeftOut) {
  framework::ProfilePlugin plugin{PodTopologySpread::kName};
  plugin.args_json =
      R"({"defaultingType":"List","defaultConstraints":[
          {"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule"},
          {"maxSkew":1,"topologyKey":"b","whenUnsatisfiable":"ScheduleAnyway"}]})";
  const auto left = [&](bool filter, bool score) {
    plugin.filter = filter;
    plugin.score = score;
    std::string keys;
    for (const auto& profile : SpreadDefaultsOf({{"p", {plugin}}})) {
      for (const auto& each : profile.constraints) keys += each.topology_key;
    }
    return keys;
  };
  EXPECT_EQ(left(true, true), "ab");
  EXPECT_EQ(left(true, false), "a");
  EXPECT_EQ(left(false, true), "b");
  EXPECT_EQ(left(false, false), "");
  plugin.weight = 0;
  EXPECT_EQ(left(true, true), "a");
}

}  // namespace
}  // namespace fairlead::plugins
