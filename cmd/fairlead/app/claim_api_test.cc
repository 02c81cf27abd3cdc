#include "cmd/fairlead/app/claim_api.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/app/reader_testing.h"
#include "gmock/gmock.h"

namespace fairlead::cmd {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kClaims[] = "/apis/karpenter.sh/v1/nodeclaims";
constexpr char kClaim[] = "/apis/karpenter.sh/v1/nodeclaims/fl-1";

class ClaimApiTest : public testing::ReaderTest {
 protected:
  absl::Status Create(Reply reply) {
    transport_.On("POST", kClaims, std::move(reply), 1);
    return Call([&](auto done) { api_.Create("fl-1", "{}", done); });
  }
  absl::Status Delete(Reply reply) {
    transport_.On("DELETE", kClaim, std::move(reply), 1);
    return Call([&](auto done) { api_.Delete("fl-1", "u-1", done); });
  }
  absl::Status Call(const std::function<void(hook::ClaimApi::Done)>& call) {
    std::optional<absl::Status> answer;
    call([&](const absl::Status& status) { answer = status; });
    Run();
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(absl::UnknownError("no answer"));
  }
  absl::StatusOr<hook::ClaimPage> List(const std::string& continuation = "") {
    absl::StatusOr<hook::ClaimPage> page = absl::UnknownError("no answer");
    api_.List(continuation, [&](absl::StatusOr<hook::ClaimPage> read) { page = std::move(read); });
    Run();
    return page;
  }
  static Reply Status(int code, const std::string& message = "no") {
    return Reply::Json(code, absl::StrCat(R"({"kind":"Status","code":)", code, R"(,"message":")",
                                          message, R"("})"));
  }

  absl::Duration time_left_ = absl::Seconds(10);
  KubeClaimApi api_{&transport_, tasks_, [this] { return time_left_; }};
};

TEST_F(ClaimApiTest, CodesOfAnswers) {
  const struct {
    int http;
    absl::StatusCode creation, deletion;
  } cases[] = {{400, absl::StatusCode::kInvalidArgument, absl::StatusCode::kInvalidArgument},
               {401, absl::StatusCode::kUnauthenticated, absl::StatusCode::kUnauthenticated},
               {403, absl::StatusCode::kPermissionDenied, absl::StatusCode::kPermissionDenied},
               {404, absl::StatusCode::kNotFound, absl::StatusCode::kNotFound},
               {409, absl::StatusCode::kAlreadyExists, absl::StatusCode::kFailedPrecondition},
               {422, absl::StatusCode::kInvalidArgument, absl::StatusCode::kInvalidArgument},
               {429, absl::StatusCode::kResourceExhausted, absl::StatusCode::kResourceExhausted},
               {500, absl::StatusCode::kUnavailable, absl::StatusCode::kUnavailable},
               {504, absl::StatusCode::kUnavailable, absl::StatusCode::kUnavailable}};
  for (const auto& c : cases) {
    EXPECT_EQ(Create(Status(c.http)).code(), c.creation) << c.http;
    EXPECT_EQ(Delete(Status(c.http)).code(), c.deletion) << c.http;
  }
  EXPECT_TRUE(Create(Reply::Json(201, "{}")).ok());
  EXPECT_TRUE(Delete(Reply::Json(200, "{}")).ok());
  const absl::Status lost = Create(Reply::Failure(absl::DeadlineExceededError("10 s")));
  EXPECT_TRUE(absl::IsUnavailable(lost)) << "its outcome is unknown";
  EXPECT_THAT(lost.message(), HasSubstr("create NodeClaim fl-1: "));
}

TEST_F(ClaimApiTest, DeletionNamesTheUid) {
  EXPECT_TRUE(Delete(Reply::Json(200, "{}")).ok());
  const auto sent = transport_.Sent("DELETE", kClaim);
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_THAT(sent[0]->request.body, HasSubstr(R"("preconditions":{"uid":"u-1"})"));
}

TEST_F(ClaimApiTest, NothingIsWrittenWithoutLeadership) {
  time_left_ = absl::ZeroDuration();
  EXPECT_TRUE(absl::IsUnavailable(Call([&](auto done) { api_.Create("fl-1", "{}", done); })));
  EXPECT_TRUE(absl::IsUnavailable(Call([&](auto done) { api_.Delete("fl-1", "u-1", done); })));
  EXPECT_THAT(transport_.Sent("POST", kClaims), SizeIs(0));
  EXPECT_THAT(transport_.Sent("DELETE", kClaim), SizeIs(0));
}

TEST_F(ClaimApiTest, ListsAreOfOurClaimsAndConsistent) {
  transport_.On("GET", kClaims, Reply::Json(200, R"({"metadata":{"continue":"a b"},"items":[
                  {"metadata":{"name":"fl-1","uid":"u-1"}}]})"));
  const auto page = List();
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_THAT(page->claims, SizeIs(1));
  EXPECT_EQ(page->claims[0].name, "fl-1");
  EXPECT_EQ(page->next, "a b");
  EXPECT_TRUE(List("a b").ok());
  const auto sent = transport_.Sent("GET", kClaims);
  ASSERT_THAT(sent, SizeIs(2));
  EXPECT_EQ(sent[0]->request.path,
            absl::StrCat(kClaims, "?labelSelector=fairlead.dev%2Fnode-request&limit=500"));
  EXPECT_THAT(sent[1]->request.path, HasSubstr("&continue=a%20b"));
}

TEST_F(ClaimApiTest, TheLastWarningTellsWhy) {
  constexpr char kEvents[] = "/api/v1/namespaces/default/events";
  transport_.On("GET", kEvents, Reply::Json(200, R"({"items":[
      {"type":"Warning","message":"sold out","lastTimestamp":"2026-01-01T00:00:02Z"},
      {"type":"Warning","message":"earlier","lastTimestamp":"2026-01-01T00:00:01Z"},
      {"type":"Normal","message":"no","lastTimestamp":"2026-01-01T00:00:03Z"},{"type":7}]})"),
                1);
  absl::StatusOr<std::string> warning = absl::UnknownError("no answer");
  const auto ask = [&] {
    api_.LastWarning("fl-1", "u-1", [&](absl::StatusOr<std::string> text) { warning = text; });
    Run();
  };
  ask();
  ASSERT_TRUE(warning.ok()) << warning.status();
  EXPECT_EQ(*warning, "sold out");
  EXPECT_THAT(transport_.Sent("GET", kEvents)[0]->request.path,
              HasSubstr("involvedObject.name%3Dfl-1%2CinvolvedObject.uid%3Du-1"));
  for (const char* body : {R"({"items":[]})", R"({"items":7})", "{}"}) {
    transport_.On("GET", kEvents, Reply::Json(200, body), 1);
    ask();
    EXPECT_EQ(*warning, "") << body;
  }
  transport_.On("GET", kEvents, Status(403), 1);
  ask();
  EXPECT_TRUE(absl::IsPermissionDenied(warning.status()));
}

TEST_F(ClaimApiTest, ListsThatFail) {
  transport_.On("GET", kClaims, Status(404), 1);
  EXPECT_EQ(List().status(),
            absl::NotFoundError(
                "the server has no nodeclaims of karpenter.sh/v1: is Karpenter installed?"));
  transport_.On("GET", kClaims, Status(410), 1);
  EXPECT_TRUE(absl::IsAborted(List("old").status()));
  transport_.On("GET", kClaims, Reply::Json(200, "<html>"), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(List().status()));
}

}  // namespace
}  // namespace fairlead::cmd
