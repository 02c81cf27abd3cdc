#include "admission/review.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "admission/access.h"
#include "gtest/gtest.h"

namespace fairlead::admission {
namespace {

constexpr char kReview[] =
    R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{
  "uid":"705ab4f5","kind":{"group":"","version":"v1","kind":"Pod"},
  "resource":{"group":"","version":"v1","resource":"pods"},"subResource":"status","namespace":"team",
  "name":"web","operation":"UPDATE","dryRun":false,
  "userInfo":{"username":"ann","uid":"7","groups":["dev","system:authenticated"],
              "extra":{"scopes":["a","b"]}},
  "object":{"metadata":{"name":"web"}},"oldObject":null,"options":{}}})";

TEST(AdmissionReview, IsRead) {
  const absl::StatusOr<Request> request = ReadReview(kReview);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->uid, "705ab4f5");
  EXPECT_EQ(request->resource, "pods");
  EXPECT_EQ(request->version, "v1");
  EXPECT_EQ(request->kind, "Pod");
  EXPECT_EQ(request->sub_resource, "status");
  EXPECT_EQ(request->ns, "team");
  EXPECT_EQ(request->operation, Operation::kUpdate);
  EXPECT_EQ(request->user.name, "ann");
  EXPECT_EQ(request->user.groups, (std::vector<std::string>{"dev", "system:authenticated"}));
  ASSERT_EQ(request->user.extra.size(), 1u);
  EXPECT_EQ(request->user.extra[0].second, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(request->object.is_object());
  EXPECT_TRUE(request->old_object.is_null());
}

TEST(AdmissionReview, WhatIsNoneIsRefused) {
  for (const char* const text :
       {"", "[]", "{", "{}",
        R"({"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"})",
        R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"})",
        R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":[]})",
        R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":""}})"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ReadReview(text).status())) << text;
  }
}

TEST(AdmissionReview, AnAnswerIsWritten) {
  EXPECT_EQ(WriteReview("u\"1", {}),
            R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",)"
            R"("response":{"uid":"u\"1","allowed":true}})");
  Response refused;
  refused.allowed = false;
  refused.code = 422;
  refused.reason = "Invalid";
  refused.message = "spec.x: is wrong";
  refused.warnings = {"careful", std::string(300, 'x')};
  const absl::StatusOr<Json> written = Json::Parse(WriteReview("u", refused));
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->TextAt({"response", "allowed"}), "false");
  EXPECT_EQ(written->TextAt({"response", "status", "code"}), "422");
  EXPECT_EQ(written->TextAt({"response", "status", "message"}), "spec.x: is wrong");
  ASSERT_EQ(written->At({"response", "warnings"})->items().size(), 2u);
  EXPECT_EQ(written->At({"response", "warnings"})->items()[1].text().size(), 256u);
  Response patched;
  patched.patch = *Json::Parse(R"([{"op":"add","path":"/a","value":"b"}])");
  const absl::StatusOr<Json> patch = Json::Parse(WriteReview("u", patched));
  EXPECT_EQ(patch->TextAt({"response", "patchType"}), "JSONPatch");
  std::string decoded;
  ASSERT_TRUE(absl::Base64Unescape(patch->TextAt({"response", "patch"}), &decoded));
  EXPECT_EQ(decoded, R"([{"op":"add","path":"/a","value":"b"}])");
}

TEST(AccessReview, AsksWithAllThatTheUserIs) {
  const absl::StatusOr<Request> request = ReadReview(kReview);
  const absl::StatusOr<Json> asked =
      Json::Parse(EncodeAccessReview(request->user, request->ns, "research"));
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(asked->At({"spec"})->Compact(),
            R"({"user":"ann","uid":"7","groups":["dev","system:authenticated"],)"
            R"("extra":{"scopes":["a","b"]},"resourceAttributes":{"namespace":"team","verb":"use",)"
            R"("group":"scheduling.run.ai","resource":"queues","name":"research"}})");
}

TEST(AccessReview, TheAnswerDecides) {
  EXPECT_TRUE(ReadAccessReview(R"({"status":{"allowed":true}})")->allowed);
  EXPECT_FALSE(ReadAccessReview(R"({"status":{"allowed":false,"reason":"r"}})")->allowed);
  // A role that cannot be read is no permission.
  EXPECT_EQ(ReadAccessReview(R"({"status":{"allowed":false,"evaluationError":"no role"}})")->reason,
            "no role");
  for (const char* const text :
       {"", "{}", R"({"status":{"allowed":"true"}})", R"({"kind":"Status"})"}) {
    EXPECT_FALSE(ReadAccessReview(text).ok()) << text;
  }
}

TEST(AccessReview, WithoutAnAnswerThePolicyDecides) {
  const absl::StatusOr<Request> request = ReadReview(kReview);
  Policy policy;
  const Response open = NotAuthorized(*request, "research", "timed out", policy);
  EXPECT_TRUE(open.allowed);
  ASSERT_EQ(open.warnings.size(), 1u);
  policy.authorization_fails_closed = true;
  const Response closed = NotAuthorized(*request, "research", "timed out", policy);
  EXPECT_FALSE(closed.allowed);
  EXPECT_EQ(closed.code, 500);
  EXPECT_TRUE(absl::StrContains(closed.message, "timed out"));
  EXPECT_EQ(Forbidden(*request, "research", "").message,
            "user \"ann\" lacks the verb \"use\" on queues.scheduling.run.ai \"research\" in "
            "namespace \"team\"");
}

}  // namespace
}  // namespace fairlead::admission
