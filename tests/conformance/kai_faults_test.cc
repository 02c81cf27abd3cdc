// Rules for KAI's faults: a case's own data must show the fault, and our own placement is checked.
#include "tests/conformance/kai_faults.h"

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two nodes of one zone, each a rack of its own, 2 CPUs each; a gang of two pods of one CPU that
// requires one rack.
constexpr char kCase[] = R"({"mode": "single", "objects": [
  {"kind": "Topology", "metadata": {"name": "t"},
   "spec": {"levels": [{"nodeLabel": "zone"}, {"nodeLabel": "rack"}]}},
  {"kind": "Node", "metadata": {"name": "n0", "labels": {"zone": "z0", "rack": "r0"}},
   "status": {"allocatable": {"cpu": "2"}}},
  {"kind": "Node", "metadata": {"name": "n1", "labels": {"zone": "z0", "rack": "r1"}},
   "status": {"allocatable": {"cpu": "2"}}},
  {"kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 2,
   "topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rack"}}},
  {"kind": "Pod", "metadata": {"name": "a", "annotations": {"pod-group-name": "g"}},
   "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}, "status": {}},
  {"kind": "Pod", "metadata": {"name": "b", "annotations": {"pod-group-name": "g"}},
   "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}, "status": {}}],
  "observed": {"jobFitErrors": {"g": "ERROR"}, "pods": {
    "a": {"status": "STATUS", "node": NODE_A}, "b": {"status": "STATUS", "node": NODE_B}}}})";

Json Case(absl::string_view error, absl::string_view status, absl::string_view node_a,
          absl::string_view node_b) {
  const auto test = ParseJson(absl::StrReplaceAll(
      kCase, {{"ERROR", error}, {"STATUS", status}, {"NODE_A", node_a}, {"NODE_B", node_b}}));
  EXPECT_TRUE(test.ok()) << test.status();
  return *test;
}

constexpr char kNoCpu[] =
    "<z0>: z0 didn't have enough resources: CPU cores, requested: 2, available: 0, z0 didn't have";

TEST(KaiFaultsTest, ADomainWithFreeCpuThatIsSaidToHaveNone) {
  EXPECT_THAT(KaiFaultIn(Case(kNoCpu, "Pending", "null", "null")), HasSubstr("domain z0"));
  EXPECT_EQ(KaiFaultIn(Case("not enough GPUs", "Pending", "null", "null")), "");
  const std::string some = absl::StrReplaceAll(kNoCpu, {{"available: 0", "available: 1"}});
  EXPECT_EQ(KaiFaultIn(Case(some, "Pending", "null", "null")), "");
  const std::string other = absl::StrReplaceAll(kNoCpu, {{"z0 ", "z1 "}});
  EXPECT_EQ(KaiFaultIn(Case(other, "Pending", "null", "null")), "");
}

TEST(KaiFaultsTest, AGroupInSeveralDomainsOfItsRequiredLevel) {
  EXPECT_THAT(KaiFaultIn(Case("", "Binding", "\"n0\"", "\"n1\"")), HasSubstr("z0.r0, z0.r1"));
  EXPECT_EQ(KaiFaultIn(Case("", "Binding", "\"n0\"", "\"n0\"")), "");
}

TEST(KaiFaultsTest, WhatWeDecidedIsCheckedByItself) {
  const Json test = Case(kNoCpu, "Pending", "null", "null");
  const auto problems = [&](const std::string& a, const std::string& b) {
    const auto outcome = [](const std::string& node) {
      PodOutcome pod;
      pod.status = node.empty() ? "Pending" : "Binding";
      pod.node = node;
      return pod;
    };
    return PlacementProblems(test, {{"ns/a", outcome(a)}, {"ns/b", outcome(b)}});
  };
  EXPECT_THAT(problems("n0", "n0"), IsEmpty());
  EXPECT_THAT(problems("", ""), IsEmpty());
  EXPECT_THAT(problems("n0", ""), ElementsAre("gang g is placed in part"));
  EXPECT_THAT(problems("n0", "n1"), ElementsAre(HasSubstr("several domains")));
}

}  // namespace
}  // namespace fairlead::conformance
