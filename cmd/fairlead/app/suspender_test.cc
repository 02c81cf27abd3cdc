#include "cmd/fairlead/app/suspender.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RecordingObjectApi final : public hook::ObjectApi {
 public:
  void Get(const std::string& path, JsonDone done) override {
    const auto found = objects_.find(path);
    if (found == objects_.end()) return done(absl::NotFoundError("404"));
    done(Json::Parse(found->second));
  }
  void List(const std::string& path, const std::string& selector, JsonDone done) override {
    asked_.push_back(path + "?" + selector);
    if (!refusal_.ok()) return done(refusal_);
    done(Json::Parse(list_));
  }
  void Patch(const std::string& path, std::string body, JsonDone done) override {
    asked_.push_back(path + " " + body);
    if (!refusal_.ok()) return done(refusal_);
    done(Json::Object());
  }
  void Create(const std::string&, std::string, JsonDone) override { FAIL(); }
  void Delete(const std::string&, const std::string&, const std::string&, Done) override { FAIL(); }

  std::map<std::string, std::string> objects_;
  std::string list_ = "[]";
  absl::Status refusal_;
  std::vector<std::string> asked_;
};

class SuspenderTest : public ::testing::Test {
 protected:
  SuspenderTest() {
    api_.objects_["/apis/kubeflow.org"] =
        R"({"preferredVersion":{"groupVersion":"kubeflow.org/v1","version":"v1"}})";
    api_.objects_["/apis/kubeflow.org/v1"] =
        R"({"resources":[{"name":"pytorchjobs","kind":"PyTorchJob","namespaced":true}]})";
  }
  static model::SetSuspended Job(bool suspended) {
    model::Suspendable job{"kubeflow.org/v1",       "PyTorchJob", "team", "job", "u-1", "42",
                           "spec.runPolicy.suspend"};
    if (suspended) {
      job.by = "fairlead";
      job.reason = "for \"x\"";
    }
    return {1, suspended, job};
  }
  absl::Status Set(const model::SetSuspended& set) {
    std::optional<absl::Status> answer;
    suspender_.Set(set, [&](const absl::Status& status) { answer = status; });
    return answer.value_or(absl::UnknownError("no answer"));
  }
  absl::StatusOr<Json> List(const model::ListSuspended& list) {
    std::optional<absl::StatusOr<Json>> answer;
    suspender_.List(list, [&](const absl::StatusOr<Json>& said) { answer = said; });
    return answer.has_value() ? *answer : absl::UnknownError("no answer");
  }
  RecordingObjectApi api_;
  KindPaths kinds_{&api_};
  Suspender suspender_{&api_, &kinds_};
};

constexpr char kPath[] = "/apis/kubeflow.org/v1/namespaces/team/pytorchjobs/job";

TEST_F(SuspenderTest, OnePatchOfTheVersionThatWasReadWritesTheFieldAndTheMarks) {
  EXPECT_TRUE(Set(Job(true)).ok());
  EXPECT_TRUE(Set(Job(false)).ok());
  EXPECT_THAT(
      api_.asked_,
      ElementsAre(
          std::string(kPath) + R"( {"metadata":{"uid":"u-1","resourceVersion":"42",)"
                               R"("labels":{"fairlead.dev/suspended":"true"},)"
                               R"("annotations":{"fairlead.dev/suspended-by":"fairlead",)"
                               R"("fairlead.dev/suspended-for":"for \"x\""}},)"
                               R"("spec":{"runPolicy":{"suspend":true}}})",
          std::string(kPath) +
              R"( {"metadata":{"uid":"u-1","resourceVersion":"42",)"
              R"("labels":{"fairlead.dev/suspended":null},)"
              R"("annotations":{"fairlead.dev/suspended-by":null,)"
              R"("fairlead.dev/suspended-for":null}},"spec":{"runPolicy":{"suspend":false}}})"));
}

TEST_F(SuspenderTest, ARuleThatIsMissingIsNamed) {
  api_.refusal_ = absl::PermissionDeniedError("403");
  const absl::Status status = Set(Job(true));
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_EQ(
      status.message(),
      "suspend PyTorchJob team/job: 403\nadd this rule to a ClusterRole of Fairlead's service "
      "account: {apiGroups: [\"kubeflow.org\"], resources: [pytorchjobs], verbs: [get, list, "
      "patch]}");
  EXPECT_THAT(List({"kubeflow.org", "PyTorchJob"}).status().message(),
              HasSubstr("verbs: [get, list, patch]"));
}

TEST_F(SuspenderTest, OtherRefusalsKeepTheirCode) {
  api_.refusal_ = absl::AbortedError("409");
  EXPECT_EQ(Set(Job(false)), absl::AbortedError("release PyTorchJob team/job: 409"));
  model::Suspendable other = Job(true).object;
  other.kind = "Other";
  EXPECT_TRUE(absl::IsNotFound(Set({1, true, other})));
}

TEST_F(SuspenderTest, WhatIsSuspendedIsListedInTheVersionThatTheServerPrefers) {
  api_.list_ =
      R"([{"apiVersion":"kubeflow.org/v1","metadata":{"name":"job","namespace":"team","uid":"u",)"
      R"("labels":{"fairlead.dev/suspended":"true"},"managedFields":[{}]},"spec":{"a":1}}])";
  const absl::StatusOr<Json> list = List({"kubeflow.org", "PyTorchJob"});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(
      list->Compact(),
      R"([{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","metadata":{"namespace":"team",)"
      R"("name":"job","uid":"u","labels":{"fairlead.dev/suspended":"true"}}}])");
  EXPECT_THAT(api_.asked_, ElementsAre("/apis/kubeflow.org/v1/pytorchjobs?"
                                       "fairlead.dev/suspended=true"));
}

TEST_F(SuspenderTest, NothingIsSuspendedOfAKindThatIsNotServed) {
  for (const model::ListSuspended& list :
       {model::ListSuspended{"ray.io", "RayJob"}, model::ListSuspended{"kubeflow.org", "TFJob"}}) {
    const absl::StatusOr<Json> found = List(list);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT(found->items(), IsEmpty());
  }
}

}  // namespace
}  // namespace fairlead::cmd
