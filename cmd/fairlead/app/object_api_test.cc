#include "cmd/fairlead/app/object_api.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/app/reader_testing.h"
#include "gmock/gmock.h"

namespace fairlead::cmd {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kThings[] = "/apis/example.com/v1/things";
constexpr char kThing[] = "/apis/example.com/v1/namespaces/n/things/a";

class ObjectApiTest : public testing::ReaderTest {
 protected:
  absl::StatusOr<Json> Call(const std::function<void(hook::ObjectApi::JsonDone)>& call) {
    std::optional<absl::StatusOr<Json>> answer;
    call([&](absl::StatusOr<Json> read) {
      EXPECT_FALSE(answer.has_value());
      answer = std::move(read);
    });
    Run();
    return answer.has_value() ? *answer : absl::UnknownError("no answer");
  }
  absl::StatusOr<Json> Get() {
    return Call([&](auto done) { api_.Get(kThing, done); });
  }
  absl::StatusOr<Json> List(const std::string& selector = "") {
    return Call([&](auto done) { api_.List(kThings, selector, done); });
  }
  absl::StatusOr<Json> Patch() {
    return Call([&](auto done) { api_.Patch(kThing, R"({"spec":{"replicas":1}})", done); });
  }
  absl::StatusOr<Json> Create() {
    return Call([&](auto done) { api_.Create(kThings, R"({"kind":"Thing"})", done); });
  }
  absl::Status Delete(const std::string& version = "") {
    return Call([&](auto done) {
             api_.Delete(kThing, "u-1", version, [done](const absl::Status& status) {
               status.ok() ? done(Json()) : done(status);
             });
           })
        .status();
  }
  static Reply Status(int code) {
    return Reply::Json(code, absl::StrCat(R"({"kind":"Status","message":"no","code":)", code, "}"));
  }

  absl::Duration time_left_ = absl::Seconds(10);
  KubeObjectApi api_{&transport_, tasks_, [this] { return time_left_; }};
};

TEST_F(ObjectApiTest, CodesOfAnswers) {
  const std::pair<int, absl::StatusCode> cases[] = {
      {400, absl::StatusCode::kInvalidArgument},  {401, absl::StatusCode::kUnauthenticated},
      {403, absl::StatusCode::kPermissionDenied}, {404, absl::StatusCode::kNotFound},
      {409, absl::StatusCode::kAborted},          {410, absl::StatusCode::kUnavailable},
      {422, absl::StatusCode::kInvalidArgument},  {429, absl::StatusCode::kResourceExhausted},
      {500, absl::StatusCode::kUnavailable},      {504, absl::StatusCode::kUnavailable}};
  for (const auto& [http, code] : cases) {
    transport_.On("GET", kThing, Status(http), 1);
    EXPECT_EQ(Get().status().code(), code) << http;
    transport_.On("GET", kThings, Status(http), 1);
    EXPECT_EQ(List().status().code(), code) << http;
    transport_.On("PATCH", kThing, Status(http), 1);
    EXPECT_EQ(Patch().status().code(), code) << http;
    transport_.On("DELETE", kThing, Status(http), 1);
    EXPECT_EQ(Delete().code(), code) << http;
    transport_.On("POST", kThings, Status(http), 1);
    EXPECT_EQ(Create().status().code(), http == 409 ? absl::StatusCode::kAlreadyExists : code)
        << http;
  }
  transport_.On("PATCH", kThing, Reply::Failure(absl::DeadlineExceededError("10 s")), 1);
  EXPECT_TRUE(absl::IsUnavailable(Patch().status())) << "its outcome is unknown";
  for (const char* body : {"<html>", "7", ""}) {
    transport_.On("GET", kThing, Reply::Json(200, body), 1);
    EXPECT_TRUE(absl::IsInvalidArgument(Get().status())) << body;
  }
}

TEST_F(ObjectApiTest, PatchesAreMergePatchesAndAnswerTheObject) {
  transport_.On("PATCH", kThing, Reply::Json(200, R"({"spec":{"replicas":1}})"), 1);
  const absl::StatusOr<Json> object = Patch();
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(object->TextAt({"spec", "replicas"}), "1");
  const auto sent = transport_.Sent("PATCH", kThing);
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0]->request.content_type, "application/merge-patch+json");
  EXPECT_EQ(sent[0]->request.timeout, absl::Seconds(10));
}

TEST_F(ObjectApiTest, DeletionsNameTheUid) {
  transport_.On("DELETE", kThing, Reply::Json(200, "{}"), 1);
  EXPECT_TRUE(Delete().ok());
  EXPECT_THAT(transport_.Sent("DELETE", kThing)[0]->request.body,
              HasSubstr(R"("preconditions":{"uid":"u-1"})"));
  transport_.On("DELETE", kThing, Reply::Json(200, "{}"), 1);
  EXPECT_TRUE(Delete("7").ok());
  EXPECT_THAT(transport_.Sent("DELETE", kThing)[1]->request.body,
              HasSubstr(R"("preconditions":{"uid":"u-1","resourceVersion":"7"})"));
}

TEST_F(ObjectApiTest, ObjectsAreCreatedInTheirCollection) {
  transport_.On("POST", kThings, Reply::Json(201, R"({"kind":"Thing","metadata":{"uid":"u-2"}})"),
                1);
  const absl::StatusOr<Json> object = Create();
  ASSERT_TRUE(object.ok()) << object.status();
  EXPECT_EQ(object->TextAt({"metadata", "uid"}), "u-2");
  const auto sent = transport_.Sent("POST", kThings);
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0]->request.content_type, "application/json");
  EXPECT_EQ(sent[0]->request.body, R"({"kind":"Thing"})");
}

TEST_F(ObjectApiTest, NothingIsWrittenWithoutLeadership) {
  time_left_ = absl::ZeroDuration();
  EXPECT_TRUE(absl::IsUnavailable(Patch().status()));
  EXPECT_TRUE(absl::IsUnavailable(Delete()));
  EXPECT_TRUE(absl::IsUnavailable(Create().status()));
  EXPECT_THAT(transport_.Sent("PATCH", kThing), SizeIs(0));
  EXPECT_THAT(transport_.Sent("DELETE", kThing), SizeIs(0));
  EXPECT_THAT(transport_.Sent("POST", kThings), SizeIs(0));
  time_left_ = absl::Seconds(2);
  transport_.On("PATCH", kThing, Reply::Json(200, "{}"), 1);
  EXPECT_TRUE(Patch().ok());
  EXPECT_EQ(transport_.Sent("PATCH", kThing)[0]->request.timeout, absl::Seconds(2));
}

TEST_F(ObjectApiTest, ListsAreReadToTheirEnd) {
  transport_.On("GET", kThings, Reply::Json(200, R"({"apiVersion":"example.com/v1","items":[
      {"metadata":{"name":"b"}}]})"),
                1);
  transport_.On("GET", kThings,
                Reply::Json(200, R"({"apiVersion":"example.com/v1","metadata":{"continue":"x y"},
      "items":[{"metadata":{"name":"a"}},7]})"),
                1);
  const absl::StatusOr<Json> list = List("role=worker");
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_THAT(list->items(), SizeIs(3));
  EXPECT_EQ(list->items()[0].TextAt({"metadata", "name"}), "a");
  EXPECT_EQ(list->items()[2].TextAt({"apiVersion"}), "example.com/v1");
  const auto sent = transport_.Sent("GET", kThings);
  ASSERT_THAT(sent, SizeIs(2));
  EXPECT_EQ(sent[0]->request.path, absl::StrCat(kThings, "?limit=500&labelSelector=role%3Dworker"));
  EXPECT_EQ(sent[1]->request.path,
            absl::StrCat(kThings, "?limit=500&labelSelector=role%3Dworker&continue=x%20y"));
}

TEST_F(ObjectApiTest, ListsThatAreNone) {
  for (const char* body : {"{}", R"({"items":7})", R"({"items":{}})"}) {
    transport_.On("GET", kThings, Reply::Json(200, body), 1);
    EXPECT_TRUE(absl::IsInvalidArgument(List().status())) << body;
  }
  transport_.On("GET", kThings, Reply::Json(200, R"({"items":null})"), 1);
  EXPECT_TRUE(List().ok()) << "an empty list of Go";
}

}  // namespace
}  // namespace fairlead::cmd
