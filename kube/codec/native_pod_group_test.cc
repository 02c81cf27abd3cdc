// PodGroups of scheduling.k8s.io. The objects are as kube-apiserver 1.36 shows them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "kube/codec/codec.h"
#include "kube/transport/http.h"
#include "scheduler/model/api_names.h"

namespace fairlead::kube {
namespace {

using ::testing::HasSubstr;

model::NativePodGroup DecodeNative(const std::string& fields) {
  const std::string text = absl::StrCat(
      R"({"kind":"PodGroup","apiVersion":"scheduling.k8s.io/v1alpha2","metadata":{"name":"g",)",
      R"("namespace":"ns","uid":"u","generation":3,"labels":{"kai.scheduler/queue":"team"},)",
      R"("finalizers":["scheduling.k8s.io/podgroup-protection"]})", fields, "}");
  const auto object = DecodeObject(model::Kind::kNativePodGroup, kJson, text);
  EXPECT_TRUE(object.ok()) << object.status();
  return object.ok() ? std::get<model::NativePodGroup>(*object) : model::NativePodGroup();
}
model::NativePodGroup DecodeSpec(const std::string& spec) {
  return DecodeNative(absl::StrCat(R"(,"spec":)", spec));
}

TEST(NativePodGroupCodecTest, AGang) {
  const model::NativePodGroup group = DecodeNative(
      R"(,"spec":{"podGroupTemplateRef":{"workload":{"workloadName":"w","podGroupTemplateName":
      "t"}},"schedulingPolicy":{"gang":{"minCount":2}},"disruptionMode":"Pod",
      "priorityClassName":"high","priority":100},"status":{})");
  EXPECT_EQ(group.invalid, "");
  EXPECT_TRUE(group.native);
  EXPECT_EQ(group.min_member, 2);
  EXPECT_EQ(group.queue, "team");
  EXPECT_EQ(group.priority_class_name, "high");
  EXPECT_FALSE(group.disrupted_whole);
  EXPECT_EQ(group.topology.topology, "");
  EXPECT_EQ(group.meta.generation, 3);
  EXPECT_EQ(group.scheduled_status, "");
}

TEST(NativePodGroupCodecTest, WithoutAGangItsPodsStartOneByOne) {
  const model::NativePodGroup group = DecodeSpec(R"({"schedulingPolicy":{"basic":{}}})");
  EXPECT_EQ(group.invalid, "");
  EXPECT_EQ(group.min_member, std::nullopt);
}

TEST(NativePodGroupCodecTest, ATopologyIsTheLabel) {
  const model::NativePodGroup group = DecodeSpec(
      R"({"schedulingPolicy":{"gang":{"minCount":2}},"disruptionMode":"PodGroup",
          "schedulingConstraints":{"topology":[{"key":"example.com/rack"}]}})");
  EXPECT_EQ(group.invalid, "");
  EXPECT_TRUE(group.disrupted_whole);
  EXPECT_EQ(group.topology.topology, "label/example.com/rack");
  EXPECT_EQ(group.topology.required_level, "example.com/rack");
}

TEST(NativePodGroupCodecTest, WhatCannotBeObeyedIsNamed) {
  struct Case {
    const char* spec;
    const char* problem;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"{}", "spec.schedulingPolicy: must be specified"},
           {R"({"schedulingPolicy":{}})",
            "spec.schedulingPolicy: must have exactly one of basic, gang"},
           {R"({"schedulingPolicy":{"basic":{},"gang":{"minCount":1}}})",
            "spec.schedulingPolicy: must have exactly one of basic, gang"},
           {R"({"schedulingPolicy":{"gang":{}}})",
            "spec.schedulingPolicy.gang.minCount: must be specified"},
           {R"({"schedulingPolicy":{"gang":{"minCount":0}}})",
            "spec.schedulingPolicy.gang.minCount: 0 must be greater than zero"},
           {R"({"schedulingPolicy":{"gang":{"minCount":"2"}}})",
            "spec.schedulingPolicy.gang.minCount"},
           {R"({"schedulingPolicy":{"basic":{}},"resourceClaims":[{"name":"c"}]})",
            "spec.resourceClaims: claims of a pod group are not supported"},
           {R"({"schedulingPolicy":{"basic":{}},"schedulingConstraints":{"topology":[{}]}})",
            "spec.schedulingConstraints.topology[0].key: must be specified"},
           {R"({"schedulingPolicy":{"basic":{}},
                "schedulingConstraints":{"topology":[{"key":"a"},{"key":"b"}]}})",
            "spec.schedulingConstraints.topology[1]: a second topology is not supported"},
           {R"({"schedulingPolicy":{"basic":{}},"disruptionMode":"Sometimes"})",
            "spec.disruptionMode: \"Sometimes\" is none of Pod, PodGroup"}}) {
    EXPECT_THAT(DecodeSpec(c.spec).invalid, HasSubstr(c.problem)) << c.spec;
  }
  EXPECT_THAT(DecodeNative("").invalid, HasSubstr("spec: must be specified"));
}

TEST(NativePodGroupCodecTest, TheConditionIsReadAndItsFaultsRefuseNothing) {
  const std::string spec = R"(,"spec":{"schedulingPolicy":{"basic":{}}},"status":{"conditions":)";
  const model::NativePodGroup group =
      DecodeNative(absl::StrCat(spec, R"([{"type":"DisruptionTarget","status":"True"},
                {"type":"PodGroupScheduled","status":"False","reason":"Unschedulable",
                 "message":"InsufficientCapacity: no room","lastTransitionTime":null}]})"));
  EXPECT_EQ(group.scheduled_status, "False");
  EXPECT_EQ(group.scheduled_reason, "Unschedulable");
  EXPECT_EQ(group.scheduled_message, "InsufficientCapacity: no room");
  for (const char* conditions : {"7}", "[7]}", R"([{"type":7,"status":[]}]})"}) {
    EXPECT_EQ(DecodeNative(spec + conditions).invalid, "") << conditions;
  }
}

TEST(NativePodGroupCodecTest, GroupsOfTheOtherApiAreNotTaken) {
  const std::string of_kai =
      R"({"kind":"PodGroup","apiVersion":"scheduling.run.ai/v2alpha2","metadata":{"name":"g"}})";
  EXPECT_FALSE(DecodeObject(model::Kind::kNativePodGroup, kJson, of_kai).ok());
  EXPECT_TRUE(DecodeObject(model::Kind::kPodGroup, kJson, of_kai).ok());
}

TEST(NativePodGroupCodecTest, WritesTheCondition) {
  model::SetPodGroupScheduled action;
  action.ns = "ns";
  action.name = "g";
  action.uid = "u";
  action.message = "InsufficientCapacity: no room";
  action.observed_generation = 3;
  const absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  EncodedWrite write = EncodePodGroupScheduled(action, now);
  EXPECT_EQ(write.method, "PATCH");
  EXPECT_EQ(write.path, "/apis/scheduling.k8s.io/v1alpha2/namespaces/ns/podgroups/g/status");
  EXPECT_EQ(write.content_type, kStrategicMergePatch);
  EXPECT_EQ(write.body,
            R"({"metadata":{"uid":"u"},"status":{"conditions":[{"type":"PodGroupScheduled",)"
            R"("status":"False","reason":"Unschedulable",)"
            R"("message":"InsufficientCapacity: no room","observedGeneration":3,)"
            R"("lastTransitionTime":"2023-11-14T22:13:20Z"}]}})");
  action.scheduled = true;
  action.turns = false;
  action.message = "";
  write = EncodePodGroupScheduled(action, now);
  EXPECT_THAT(write.body, HasSubstr(R"("status":"True","reason":"Scheduled","message":"")"));
  EXPECT_EQ(write.body.find("lastTransitionTime"), std::string::npos);
}

TEST(NativePodGroupCodecTest, WritesAnnotationsToItsOwnApi) {
  const model::SetPodGroupAnnotations action{"ns", "g", "u", {{"a", "1"}}, true};
  EXPECT_EQ(EncodePodGroupAnnotations(action).path,
            "/apis/scheduling.k8s.io/v1alpha2/namespaces/ns/podgroups/g");
}

}  // namespace
}  // namespace fairlead::kube
