#include "cmd/fairlead/webhook/token_review.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "document/json.h"
#include "kube/transport/fake_transport.h"

namespace fairlead::cmd {
namespace {

using kube::FakeTransport;
using Reply = FakeTransport::Reply;
using ::testing::HasSubstr;

constexpr char kTokenReviews[] = "/apis/authentication.k8s.io/v1/tokenreviews";
constexpr char kAccessReviews[] = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

class TokenReviewTest : public ::testing::Test {
 protected:
  TokenReviewTest() {
    transport_.On("POST", kTokenReviews,
                  Reply::Json(201, R"({"status":{"authenticated":true,"user":{"username":"alice",)"
                                   R"("uid":"u1","groups":["g1","g2"],"extra":{"k":["v"]}}}})"));
    transport_.On("POST", kAccessReviews, Reply::Json(201, R"({"status":{"allowed":true}})"));
  }
  absl::Status Review() { return ReviewToken(transport_, "a \"token\""); }

  FakeClock clock_{absl::UnixEpoch()};
  FakeTransport transport_{clock_};
};

TEST_F(TokenReviewTest, AsksWhoseItIsAndWhetherThatUserMayListQueues) {
  EXPECT_TRUE(Review().ok());
  const auto tokens = transport_.Sent("POST", kTokenReviews);
  const auto access = transport_.Sent("POST", kAccessReviews);
  ASSERT_EQ(tokens.size(), 1u);
  ASSERT_EQ(access.size(), 1u);
  EXPECT_EQ(Json::Parse(tokens[0]->request.body)->TextAt({"spec", "token"}), "a \"token\"");
  EXPECT_EQ(access[0]->request.body,
            R"({"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":)"
            R"({"user":"alice","uid":"u1","groups":["g1","g2"],"extra":{"k":["v"]},)"
            R"("resourceAttributes":{"group":"scheduling.run.ai","resource":"queues",)"
            R"("verb":"list"}}})");
}

TEST_F(TokenReviewTest, ATokenOfNobodyIsRefusedWithoutASecondQuestion) {
  for (const char* status :
       {R"({"authenticated":false,"error":"expired"})", "{}", R"({"authenticated":true})",
        R"({"authenticated":true,"user":{}})", R"({"user":{"username":"alice"}})"}) {
    transport_.On("POST", kTokenReviews,
                  Reply::Json(201, absl::StrCat(R"({"status":)", status, "}")));
    EXPECT_TRUE(absl::IsUnauthenticated(Review())) << status;
  }
  EXPECT_TRUE(transport_.Sent("POST", kAccessReviews).empty());
}

TEST_F(TokenReviewTest, AUserWhoMayNotListQueuesIsNamed) {
  for (const char* status : {R"({"allowed":false})", "{}", R"({"denied":true})"}) {
    transport_.On("POST", kAccessReviews,
                  Reply::Json(201, absl::StrCat(R"({"status":)", status, "}")));
    const absl::Status refused = Review();
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << status;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("alice may not list queues"));
  }
}

TEST_F(TokenReviewTest, IfTheServerIsAwayNobodyIsLetIn) {
  for (const char* path : {kAccessReviews, kTokenReviews}) {
    transport_.On("POST", path, Reply::Failure(absl::UnavailableError("connection refused")));
    const absl::Status failed = Review();
    EXPECT_TRUE(absl::IsUnavailable(failed)) << path;
    EXPECT_THAT(std::string(failed.message()), HasSubstr("try again in some seconds"));
  }
  transport_.On("POST", kTokenReviews, Reply::Json(500, "{}"));
  EXPECT_TRUE(absl::IsUnavailable(Review()));
  transport_.On("POST", kTokenReviews, Reply::Json(201, "<html>"));
  EXPECT_TRUE(absl::IsUnavailable(Review()));
  transport_.On("POST", kTokenReviews, Reply::Json(201, "[]"));
  EXPECT_TRUE(absl::IsUnavailable(Review()));
}

TEST_F(TokenReviewTest, IfFairleadMayNotAskTheRoleIsNamed) {
  transport_.On("POST", kTokenReviews,
                Reply::Json(403, R"({"kind":"Status","message":"tokenreviews is forbidden"})"));
  const absl::Status failed = Review();
  EXPECT_TRUE(absl::IsFailedPrecondition(failed));
  EXPECT_THAT(std::string(failed.message()), HasSubstr("system:auth-delegator"));
  EXPECT_THAT(std::string(failed.message()), HasSubstr("tokenreviews is forbidden"));
}

TEST_F(TokenReviewTest, AServerThatDoesNotAnswerIsWaitedForForALimitedTime) {
  transport_.On("POST", kTokenReviews, Reply::Hold());
  const absl::Duration before = clock_.Steady();
  EXPECT_TRUE(absl::IsUnavailable(Review()));
  EXPECT_EQ(clock_.Steady() - before, kReviewTimeout);
}

}  // namespace
}  // namespace fairlead::cmd
