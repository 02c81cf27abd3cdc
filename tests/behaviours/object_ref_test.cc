#include "tests/behaviours/object_ref.h"

#include <gtest/gtest.h>

namespace fairlead::behaviours {
namespace {

std::string TextOf(absl::string_view text) {
  const absl::StatusOr<ObjectRef> ref = ParseObjectRef(text);
  return ref.ok() ? ref->Text() : std::string(ref.status().message());
}

TEST(ObjectRefTest, HasTheDefaultNamespaceUnlessItIsWritten) {
  EXPECT_EQ(TextOf("Pod/web"), "Pod/default/web");
  EXPECT_EQ(TextOf("Pod/other/web"), "Pod/other/web");
  EXPECT_EQ(TextOf("Node/a"), "Node/a");
}

TEST(ObjectRefTest, RefusesWhatNamesNoObject) {
  EXPECT_EQ(TextOf("Deployment/web"), "unknown kind \"Deployment\"");
  EXPECT_EQ(TextOf("Node/default/a"), "\"Node/default/a\" is not Node/name");
  EXPECT_EQ(TextOf("Pod"), "\"Pod\" is not Pod/name or Pod/namespace/name");
  EXPECT_EQ(TextOf("Pod/"), "\"Pod/\" is not Pod/name or Pod/namespace/name");
  EXPECT_EQ(TextOf("Pod/a/b/c"), "\"Pod/a/b/c\" is not Pod/name or Pod/namespace/name");
}

TEST(ObjectRefTest, KnowsThePathsOfTheApiServer) {
  EXPECT_EQ(ParseObjectRef("Pod/web")->Path(), "/api/v1/namespaces/default/pods/web");
  EXPECT_EQ(ParseObjectRef("Node/a")->CollectionPath(), "/api/v1/nodes");
  EXPECT_EQ(ParseObjectRef("RuntimeClass/r")->Path(), "/apis/node.k8s.io/v1/runtimeclasses/r");
  EXPECT_EQ(ParseObjectRef("PodDisruptionBudget/web")->CollectionPath(),
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets");
}

TEST(ObjectRefTest, AManifestNamesItsObject) {
  const auto ref_of = [](absl::string_view json) {
    const absl::StatusOr<ObjectRef> ref = RefOf(*Json::Parse(json));
    return ref.ok() ? ref->Text() : std::string(ref.status().message());
  };
  EXPECT_EQ(ref_of(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}})"),
            "Pod/default/web");
  EXPECT_EQ(ref_of(R"({"apiVersion":"v2","kind":"Pod","metadata":{"name":"web"}})"),
            "apiVersion of a Pod must be v1");
  EXPECT_EQ(ref_of(R"({"apiVersion":"v1","kind":"Pod"})"), "metadata.name is missing");
  EXPECT_EQ(ref_of(R"({"apiVersion":"v1","kind":"Thing"})"), "unknown kind \"Thing\"");
}

// The cases of RFC 7386, appendix A, that apply to objects.
TEST(MergePatchTest, FollowsTheStandard) {
  const auto merged = [](absl::string_view target, absl::string_view patch) {
    return MergePatch(*Json::Parse(target), *Json::Parse(patch)).Compact();
  };
  EXPECT_EQ(merged(R"({"a":"b"})", R"({"a":"c"})"), R"({"a":"c"})");
  EXPECT_EQ(merged(R"({"a":"b"})", R"({"b":"c"})"), R"({"a":"b","b":"c"})");
  EXPECT_EQ(merged(R"({"a":"b","b":"c"})", R"({"a":null})"), R"({"b":"c"})");
  EXPECT_EQ(merged(R"({"a":["b"]})", R"({"a":"c"})"), R"({"a":"c"})");
  EXPECT_EQ(merged(R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})"), R"({"a":{"b":"d"}})");
  EXPECT_EQ(merged(R"({"a":[{"b":"c"}]})", R"({"a":[1]})"), R"({"a":[1]})");
  EXPECT_EQ(merged(R"({})", R"({"a":{"bb":{"ccc":null}}})"), R"({"a":{"bb":{}}})");
  EXPECT_EQ(merged(R"({"a":"foo"})", R"({"a":{"b":1}})"), R"({"a":{"b":1}})");
}

}  // namespace
}  // namespace fairlead::behaviours
