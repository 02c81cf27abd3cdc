// SetExtendedClaim: every answer of the server, driven by hand.
#include "kube/write/extended_claim_protocol.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/write/write_answers.h"

namespace fairlead::kube {
namespace {

using ::testing::HasSubstr;

constexpr char kPodWithClaim[] = "/api/v1/namespaces/ns/pods/p";
constexpr char kClaimsPath[] = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims";

HttpResponse Said(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.content_type = kJson;
  response.body = std::move(body);
  return response;
}

HttpResponse No(int status, const std::string& reason = "") {
  return Said(status, absl::StrCat(R"({"kind":"Status","status":"Failure","reason":")", reason,
                                   R"(","code":)", status, "}"));
}

HttpResponse ThePod(const std::string& uid = "u", const std::string& claim = "") {
  return Said(200, absl::StrCat(
                       R"({"kind":"Pod","metadata":{"namespace":"ns","name":"p","uid":")", uid,
                       R"("},"spec":{"containers":[{"name":"m","resources":{"requests":{)"
                       R"("example.com/fpga":"2"}}}]},"status":{)",
                       claim.empty()
                           ? ""
                           : absl::StrCat(R"("extendedResourceClaimStatus":{"resourceClaimName":")",
                                          claim, "\"}"),
                       "}}"));
}

HttpResponse TheClaim(const std::string& owner) {
  return Said(200, absl::StrCat(R"({"kind":"ResourceClaim","metadata":{"namespace":"ns",)"
                                R"("name":"p-claim","uid":"c","ownerReferences":[{"kind":"Pod",)"
                                R"("name":"p","controller":true,"uid":")",
                                owner, "\"}]}}"));
}

class ExtendedClaimProtocolTest : public ::testing::Test {
 protected:
  void Begin(const std::string& claim = "p-claim") {
    model::Action action;
    action.what =
        model::SetExtendedClaim{"ns", "p", "u", "n1", claim, {{"example.com/fpga", "fpga"}}};
    protocol_ = MakeWriteProtocol(action);
  }
  // "METHOD path"
  std::string Next() {
    const HttpRequest request = protocol_->Next(absl::UnixEpoch());
    return absl::StrCat(request.method, " ", request.path);
  }
  Decision On(const WriteAnswer& answer) { return protocol_->OnAnswer(answer); }
  void Until(const std::string& step) {
    if (Next() == step) return;
    On(ThePod());
    if (Next() == step) return;
    On(Said(201, TheClaim("u").body));
    ASSERT_EQ(Next(), step);
  }

  const std::string read_ = absl::StrCat("GET ", kPodWithClaim);
  const std::string make_ = absl::StrCat("POST ", kClaimsPath);
  const std::string look_ = absl::StrCat("GET ", kClaimsPath, "/p-claim");
  const std::string tell_ = absl::StrCat("PATCH ", kPodWithClaim, "/status");
  std::unique_ptr<WriteProtocol> protocol_;
};

TEST_F(ExtendedClaimProtocolTest, MakesTheClaimAndTellsThePod) {
  Begin();
  EXPECT_EQ(Next(), read_);
  EXPECT_EQ(On(ThePod()).next, Decision::Next::kContinue);
  EXPECT_EQ(Next(), make_);
  EXPECT_EQ(On(Said(201, TheClaim("u").body)).next, Decision::Next::kContinue);
  EXPECT_EQ(Next(), tell_);
  const Decision done = On(ThePod("u", "p-claim"));
  EXPECT_EQ(done.next, Decision::Next::kDone);
  EXPECT_TRUE(done.status.ok());
}

TEST_F(ExtendedClaimProtocolTest, AnotherPodOfThatNameIsLeftAlone) {
  Begin();
  EXPECT_TRUE(absl::IsFailedPrecondition(On(ThePod("other")).status));
  Begin();
  EXPECT_TRUE(absl::IsNotFound(On(No(404)).status));
}

TEST_F(ExtendedClaimProtocolTest, WhatWasMadeBeforeIsUsedIfItIsThePods) {
  Begin();
  Until(make_);
  EXPECT_EQ(On(No(409, "AlreadyExists")).next, Decision::Next::kContinue);
  EXPECT_EQ(Next(), look_);
  EXPECT_EQ(On(TheClaim("u")).next, Decision::Next::kContinue);
  EXPECT_EQ(Next(), tell_);

  Begin();
  Until(make_);
  On(No(409, "AlreadyExists"));
  const Decision refused = On(TheClaim("other"));
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status));
  EXPECT_THAT(std::string(refused.status.message()), HasSubstr("is not of this pod"));
}

TEST_F(ExtendedClaimProtocolTest, AClaimThatVanishesIsMadeAgainButNotForEver) {
  Begin();
  Until(make_);
  Decision last;
  int times = 0;
  for (; times < 20; ++times) {
    On(No(409, "AlreadyExists"));
    last = On(No(404));
    if (last.next == Decision::Next::kDone) break;
    EXPECT_EQ(Next(), make_);
  }
  EXPECT_LT(times, 20);
  EXPECT_TRUE(absl::IsAborted(last.status));
}

TEST_F(ExtendedClaimProtocolTest, AnUnknownOutcomeIsTriedAgainFromTheSameStep) {
  Begin();
  Until(make_);
  EXPECT_EQ(On(absl::UnavailableError("reset")).next, Decision::Next::kRetry);
  EXPECT_TRUE(protocol_->outcome_unknown());
  EXPECT_EQ(Next(), make_);
  On(Said(201, TheClaim("u").body));
  EXPECT_EQ(On(No(503)).next, Decision::Next::kRetry);
  EXPECT_EQ(Next(), tell_);
}

TEST_F(ExtendedClaimProtocolTest, AFullQuotaOfClaimsIsARefusal) {
  Begin();
  Until(make_);
  EXPECT_TRUE(absl::IsPermissionDenied(On(No(403, "Forbidden")).status));
}

TEST_F(ExtendedClaimProtocolTest, AServerThatDropsTheFieldIsNoticed) {
  Begin();
  Until(tell_);
  const Decision dropped = On(ThePod("u"));
  EXPECT_TRUE(absl::IsFailedPrecondition(dropped.status));
  EXPECT_THAT(std::string(dropped.status.message()), HasSubstr("DRAExtendedResource"));
}

TEST_F(ExtendedClaimProtocolTest, WithoutAClaimThePodIsToldThatAlone) {
  Begin("");
  EXPECT_EQ(Next(), tell_);
  EXPECT_TRUE(On(ThePod("u")).status.ok());
  Begin("");
  EXPECT_TRUE(absl::IsFailedPrecondition(On(No(409, "Conflict")).status));
}

}  // namespace
}  // namespace fairlead::kube
