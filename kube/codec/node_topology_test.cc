#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "kube/codec/codec.h"
#include "kube/codec/node_topology_json.h"
#include "kube/transport/http.h"
#include "scheduler/model/api_names.h"

namespace fairlead::kube {
namespace {

using model::NodeResourceTopology;
using model::NumaPolicy;
using model::NumaScope;
using model::ResourceList;
using ::testing::IsEmpty;

NodeResourceTopology Decode(const std::string& fields) {
  const std::string text = absl::StrCat(R"({"metadata":{"name":"n"},)", fields, "}");
  auto object = DecodeObject(model::Kind::kNodeResourceTopology, kJson, text);
  EXPECT_TRUE(object.ok()) << object.status();
  return object.ok() ? std::get<NodeResourceTopology>(*object) : NodeResourceTopology();
}

std::string Zone(const std::string& name, const std::string& allocatable = "4",
                 const std::string& type = "Node") {
  return absl::StrCat(R"({"name":")", name, R"(","type":")", type,
                      R"(","resources":[{"name":"cpu","capacity":"4","allocatable":)", "\"",
                      allocatable, R"(","available":1}]})");
}

TEST(NodeTopologyTest, ZonesOfTypeNodeInTheOrderOfTheirNumbers) {
  const NodeResourceTopology topology =
      Decode(absl::StrCat(R"("zones":[)", Zone("node-10"), ",", Zone("odd"), ",", Zone("node-2"),
                          ",", Zone("socket-0", "8", "Socket"), "]"));
  EXPECT_EQ(topology.invalid, "");
  ASSERT_EQ(topology.zones.size(), 3u);
  EXPECT_EQ(topology.zones[0].name, "node-2");
  EXPECT_EQ(topology.zones[1].name, "node-10");
  EXPECT_EQ(topology.zones[2].name, "odd");
  EXPECT_EQ(topology.zones[0].allocatable, (ResourceList{{"cpu", 4000}}));
  EXPECT_EQ(topology.zones[0].available, (ResourceList{{"cpu", 1000}}));
}

TEST(NodeTopologyTest, PolicyAndScope) {
  struct Case {
    const char* fields;
    NumaPolicy policy;
    NumaScope scope;
  };
  const auto attributes = [](const char* policy, const char* scope) {
    return absl::StrCat(R"("attributes":[{"name":"topologyManagerPolicy","value":")", policy,
                        R"("},{"name":"topologyManagerScope","value":")", scope, R"("}])");
  };
  const std::pair<std::string, std::pair<NumaPolicy, NumaScope>> cases[] = {
      {attributes("single-numa-node", "pod"), {NumaPolicy::kSingleNumaNode, NumaScope::kPod}},
      {attributes("restricted", "container"), {NumaPolicy::kRestricted, NumaScope::kContainer}},
      {attributes("best-effort", "strange"), {NumaPolicy::kBestEffort, NumaScope::kContainer}},
      {attributes("none", "pod"), {NumaPolicy::kNone, NumaScope::kPod}},
      {attributes("of-tomorrow", "pod"), {NumaPolicy::kNone, NumaScope::kPod}},
      {R"("topologyPolicies":["SingleNUMANodePodLevel"])",
       {NumaPolicy::kSingleNumaNode, NumaScope::kPod}},
      {R"("topologyPolicies":["Restricted"])", {NumaPolicy::kRestricted, NumaScope::kContainer}},
      {R"("topologyPolicies":["None"])", {NumaPolicy::kNone, NumaScope::kContainer}},
      // What is written both ways counts as attributes.
      {absl::StrCat(attributes("restricted", "pod"), R"(,"topologyPolicies":["BestEffort"])"),
       {NumaPolicy::kRestricted, NumaScope::kPod}},
  };
  for (const auto& [fields, want] : cases) {
    const NodeResourceTopology topology = Decode(fields);
    EXPECT_EQ(topology.policy, want.first) << fields;
    EXPECT_EQ(topology.scope, want.second) << fields;
  }
}

TEST(NodeTopologyTest, WhatMakesItInvalid) {
  EXPECT_EQ(Decode(absl::StrCat(R"("zones":[)", Zone("a", "-1"), "]")).invalid,
            "zones[0].resources[0].allocatable: \"-1\" must be a quantity, at least 0");
  EXPECT_EQ(Decode(absl::StrCat(R"("zones":[)", Zone("a", "many"), "]")).invalid,
            "zones[0].resources[0].allocatable: \"many\" must be a quantity, at least 0");
  EXPECT_EQ(Decode(absl::StrCat(R"("zones":[)", Zone("a"), ",", Zone("a"), "]")).invalid,
            "zones: \"a\" is there twice");
  std::string many = Zone("node-0");
  for (int i = 1; i <= 64; ++i) absl::StrAppend(&many, ",", Zone(absl::StrCat("node-", i)));
  EXPECT_EQ(Decode(absl::StrCat(R"("zones":[)", many, "]")).invalid,
            "zones: has more than 64 NUMA nodes");
}

TEST(NumaZonesTest, ObservedBeforePredicted) {
  model::StringMap annotations = {
      {model::kNumaPredictedAnnotation, R"([{"zone":"node-0","amount":{"cpu":"2"}}])"}};
  EXPECT_EQ(ReadNumaZones(annotations),
            (std::vector<model::ZoneAmounts>{{"node-0", {{"cpu", 2000}}}}));
  annotations.Set(model::kNumaObservedAnnotation,
                  R"([{"zone":"node-1","amount":{"cpu":1,"nvidia.com/gpu":"1"}}])");
  EXPECT_EQ(
      ReadNumaZones(annotations),
      (std::vector<model::ZoneAmounts>{{"node-1", {{"cpu", 1000}, {"nvidia.com/gpu", 1000}}}}));
  // What cannot be read is as if it were not there.
  annotations.Set(model::kNumaObservedAnnotation, "gibberish");
  EXPECT_EQ(ReadNumaZones(annotations).front().zone, "node-0");
}

TEST(NumaZonesTest, WhatCannotBeReadIsNone) {
  for (const char* text :
       {"", "null", "{}", "[", "[]", "[1]", R"([{"zone":"a"}])", R"([{"amount":{"cpu":"1"}}])",
        R"([{"zone":"a","amount":{"cpu":"-1"}}])", R"([{"zone":"a","amount":{"cpu":"x"}}])",
        R"([{"zone":1,"amount":{"cpu":"1"}}])", R"([]},{"zones":[])"}) {
    EXPECT_THAT(ReadNumaZones({{model::kNumaPredictedAnnotation, text}}), IsEmpty()) << text;
  }
}

TEST(AlignedContainersTest, OnlyWhereTheySayMoreThanTheSum) {
  const auto decode = [](const char* spec, const char* qos) {
    auto object = DecodeObject(model::Kind::kPod, kJson,
                               absl::StrCat(R"({"metadata":{"name":"p"},"spec":)", spec,
                                            R"(,"status":{"qosClass":")", qos, R"("}})"));
    EXPECT_TRUE(object.ok()) << object.status();
    return std::get<model::Pod>(*object).spec;
  };
  const char* one = R"({"containers":[{"resources":{"requests":{"cpu":"2"}}}]})";
  EXPECT_TRUE(decode(one, "Guaranteed").guaranteed);
  EXPECT_FALSE(decode(one, "Burstable").guaranteed);
  EXPECT_THAT(decode(one, "Guaranteed").containers, IsEmpty());
  const char* two = R"({"initContainers":[{"resources":{"requests":{"cpu":"3"}}},
      {"restartPolicy":"Always","resources":{"limits":{"cpu":"1"}}}],
      "containers":[{"resources":{"requests":{"cpu":"2"}}}]})";
  EXPECT_THAT(decode(two, "Burstable").containers, IsEmpty());
  const model::PodSpec spec = decode(two, "Guaranteed");
  ASSERT_EQ(spec.containers.size(), 3u);
  using Role = model::ContainerRequests::Role;
  EXPECT_EQ(spec.containers[0], (model::ContainerRequests{Role::kInit, {{"cpu", 3000}}}));
  EXPECT_EQ(spec.containers[1], (model::ContainerRequests{Role::kSidecar, {{"cpu", 1000}}}));
  EXPECT_EQ(spec.containers[2], (model::ContainerRequests{Role::kMain, {{"cpu", 2000}}}));
  // The kubelet aligns devices whatever the QoS class.
  EXPECT_EQ(
      decode(R"({"containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}},{}]})", "Burstable")
          .containers.size(),
      2u);
}

}  // namespace
}  // namespace fairlead::kube
