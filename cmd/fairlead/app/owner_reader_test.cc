#include "cmd/fairlead/app/owner_reader.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Answers at once with what it has; NotFound otherwise.
class FakeObjectApi final : public hook::ObjectApi {
 public:
  void Get(const std::string& path, JsonDone done) override {
    asked_.push_back(path);
    if (const auto failed = failures_.find(path); failed != failures_.end()) {
      return done(failed->second);
    }
    const auto found = objects_.find(path);
    if (found == objects_.end()) return done(absl::NotFoundError("404"));
    done(Json::Parse(found->second));
  }
  void List(const std::string&, const std::string&, JsonDone) override { FAIL(); }
  void Patch(const std::string&, std::string, JsonDone) override { FAIL(); }
  void Create(const std::string&, std::string, JsonDone) override { FAIL(); }
  void Delete(const std::string&, const std::string&, const std::string&, Done) override { FAIL(); }

  std::map<std::string, std::string> objects_;
  std::map<std::string, absl::Status> failures_;
  std::vector<std::string> asked_;
};

class OwnerReaderTest : public ::testing::Test {
 protected:
  OwnerReaderTest() {
    api_.objects_["/apis/example.com/v1"] =
        R"({"kind":"APIResourceList","resources":[
             {"name":"things/status","kind":"Thing","namespaced":true},
             {"name":"things","kind":"Thing","namespaced":true},
             {"name":"worlds","kind":"World","namespaced":false}]})";
    api_.objects_["/apis/example.com/v1/namespaces/ns/things/t"] = R"({"kind":"Thing"})";
    api_.objects_["/apis/example.com/v1/worlds/w"] = R"({"kind":"World"})";
  }
  absl::StatusOr<Json> Read(const model::ReadObject& object) {
    std::optional<absl::StatusOr<Json>> answer;
    reader_.Read(object, [&](absl::StatusOr<Json> read) { answer = std::move(read); });
    return answer.has_value() ? *answer : absl::UnknownError("no answer");
  }
  FakeObjectApi api_;
  KindPaths kinds_{&api_};
  OwnerReader reader_{&api_, &kinds_};
};

TEST_F(OwnerReaderTest, TheNameOfTheKindInPathsIsAskedForOnce) {
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<Json> thing = Read({"example.com/v1", "Thing", "ns", "t", ""});
    ASSERT_TRUE(thing.ok()) << thing.status();
    EXPECT_EQ(thing->TextAt({"kind"}), "Thing");
  }
  EXPECT_THAT(api_.asked_,
              ElementsAre("/apis/example.com/v1", "/apis/example.com/v1/namespaces/ns/things/t",
                          "/apis/example.com/v1/namespaces/ns/things/t"));
}

TEST_F(OwnerReaderTest, AKindWithoutNamespaces) {
  EXPECT_TRUE(Read({"example.com/v1", "World", "ns", "w", ""}).ok());
}

TEST_F(OwnerReaderTest, WhatIsMissingIsNamed) {
  const auto message_of = [this](const model::ReadObject& object) {
    const absl::Status status = Read(object).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(message_of({"example.com/v1", "Thing", "ns", "u", ""}),
            "example.com/v1 Thing ns/u is gone");
  EXPECT_THAT(message_of({"example.com/v1", "Other", "ns", "u", ""}),
              StartsWith("example.com/v1 Other ns/u: the API server does not serve kind Other of "
                         "example.com/v1\ninstall the definition of that kind"));
  EXPECT_THAT(message_of({"gone.com/v1", "Thing", "ns", "u", ""}),
              StartsWith("gone.com/v1 Thing ns/u: the API server does not serve gone.com/v1\n"));
}

TEST_F(OwnerReaderTest, StatusAndManagedFieldsAreLeftOut) {
  api_.objects_["/apis/example.com/v1/namespaces/ns/things/t"] =
      R"({"kind":"Thing","metadata":{"name":"t","managedFields":[{"manager":"m"}],"uid":"u"},)"
      R"("spec":{"status":1},"status":{"active":3}})";
  const absl::StatusOr<Json> thing = Read({"example.com/v1", "Thing", "ns", "t", ""});
  ASSERT_TRUE(thing.ok()) << thing.status();
  EXPECT_EQ(thing->Compact(),
            R"({"kind":"Thing","metadata":{"name":"t","uid":"u"},"spec":{"status":1}})");
}

TEST_F(OwnerReaderTest, AKindThatIsInstalledLaterIsFound) {
  EXPECT_FALSE(Read({"example.com/v1", "Late", "ns", "l", ""}).ok());
  api_.objects_["/apis/example.com/v1"] =
      R"({"resources":[{"name":"lates","kind":"Late","namespaced":true}]})";
  api_.objects_["/apis/example.com/v1/namespaces/ns/lates/l"] = "{}";
  EXPECT_TRUE(Read({"example.com/v1", "Late", "ns", "l", ""}).ok());
}

TEST_F(OwnerReaderTest, ARuleThatIsMissingIsNamed) {
  api_.failures_["/apis/example.com/v1/namespaces/ns/things/t"] =
      absl::PermissionDeniedError("403");
  const absl::Status status = Read({"example.com/v1", "Thing", "ns", "t", ""}).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(status.message(),
              HasSubstr("{apiGroups: [\"example.com\"], resources: [things], verbs: [get]}"));
}

TEST_F(OwnerReaderTest, NamesOfTenantsStayInTheirPlace) {
  EXPECT_FALSE(Read({"example.com/v1", "Thing", "ns", "../../secrets/s", ""}).ok());
  EXPECT_EQ(api_.asked_.back(), "/apis/example.com/v1/namespaces/ns/things/..%2F..%2Fsecrets%2Fs");
}

}  // namespace
}  // namespace fairlead::cmd
