// The certificate of the webhooks against an API server that keeps a Secret and two configurations.
#include "cmd/fairlead/webhook/webhook_identity.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/transport/fake_transport.h"

namespace fairlead::cmd {
namespace {

using kube::FakeTransport;
using kube::HttpRequest;

constexpr char kSecretsPath[] = "/api/v1/namespaces/fairlead/secrets";
constexpr char kSecretPath[] = "/api/v1/namespaces/fairlead/secrets/fairlead-webhook";
constexpr char kRegistered[] = "/apis/admissionregistration.k8s.io/v1/";

FakeTransport::Reply RefusalOf(int code, const std::string& reason) {
  return FakeTransport::Reply::Json(
      code, absl::StrCat(R"({"kind":"Status","code":)", code, R"(,"reason":")", reason,
                         R"(","message":"no: )", reason, "\"}"));
}

class WebhookIdentityTest : public ::testing::Test {
 protected:
  WebhookIdentityTest() {
    transport_.When([](const HttpRequest&) { return true; },
                    [this](const HttpRequest& request) { return Serve(request); });
    for (const char* const kind : {"validating", "mutating"}) {
      configurations_[absl::StrCat(kRegistered, kind, "webhookconfigurations/fairlead")] = {"", ""};
    }
  }

  FakeTransport::Reply Serve(const HttpRequest& request) {
    if (request.method != "GET") ++writes_;
    if (request.path == kSecretPath || request.path == kSecretsPath) return ServeSecret(request);
    const auto found = configurations_.find(request.path);
    if (found == configurations_.end()) return RefusalOf(404, "NotFound");
    std::vector<std::string>& bundles = found->second;
    if (request.method == "PATCH") {
      const Json patch = *Json::Parse(request.body);
      for (const Json& step : patch.items()) {
        for (size_t i = 0; i < bundles.size(); ++i) {
          if (step.TextAt({"path"}) == absl::StrCat("/webhooks/", i, "/clientConfig/caBundle")) {
            bundles[i] = step.TextAt({"value"});
          }
        }
      }
    }
    Json webhooks = Json::Array();
    for (size_t i = 0; i < bundles.size(); ++i) {
      Json client = Json::Object();
      client.SetUnlessEmpty("caBundle", bundles[i]);
      Json webhook = Json::Object();
      webhook.Set("name", absl::StrCat("w", i)).Set("clientConfig", std::move(client));
      webhooks.Add(std::move(webhook));
    }
    Json configuration = Json::Object();
    configuration.Set("webhooks", std::move(webhooks));
    return FakeTransport::Reply::Json(200, configuration.Compact());
  }

  FakeTransport::Reply ServeSecret(const HttpRequest& request) {
    if (request.method != "GET" && !before_write_.empty()) {
      // Another replica comes first.
      secret_ = std::exchange(before_write_, "");
      ++version_;
    }
    if (request.method == "GET") {
      if (secret_.empty()) return RefusalOf(404, "NotFound");
    } else if (request.method == "POST") {
      if (!secret_.empty()) return RefusalOf(409, "AlreadyExists");
      secret_ = request.body;
      ++version_;
    } else {
      const Json sent = *Json::Parse(request.body);
      if (sent.TextAt({"metadata", "resourceVersion"}) != absl::StrCat(version_)) {
        return RefusalOf(409, "Conflict");
      }
      secret_ = request.body;
      ++version_;
    }
    Json kept = *Json::Parse(secret_);
    kept.Find("metadata")->Set("resourceVersion", absl::StrCat(version_));
    return FakeTransport::Reply::Json(200, kept.Compact());
  }

  [[nodiscard]] std::string Kept(absl::string_view key) const {
    std::string text;
    EXPECT_TRUE(absl::Base64Unescape(Json::Parse(secret_)->TextAt({"data", key}), &text));
    return text;
  }
  void ExpectBundle() {
    const std::string bundle = absl::Base64Escape(Kept("ca.crt"));
    for (const auto& [path, bundles] : configurations_) {
      for (const std::string& one : bundles) EXPECT_EQ(one, bundle) << path;
    }
  }

  FakeClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  FakeTransport transport_{clock_};
  server::TlsCertificate shown_;
  WebhookIdentity identity_{{&transport_, &clock_, &shown_}, "fairlead"};
  std::string secret_, before_write_;
  int version_ = 0, writes_ = 0;
  std::map<std::string, std::vector<std::string>> configurations_;
};

TEST_F(WebhookIdentityTest, MakesAllOfItOnce) {
  ASSERT_TRUE(identity_.Reconcile().ok());
  EXPECT_TRUE(shown_.ready());
  ExpectBundle();
  EXPECT_TRUE(server::CheckCertificate({Kept("tls.crt"), Kept("tls.key")}, Kept("ca.crt"),
                                       {"fairlead-webhook.fairlead.svc", "127.0.0.1"})
                  .ok());
  EXPECT_EQ(writes_, 3);
  ASSERT_TRUE(identity_.Reconcile().ok());
  EXPECT_EQ(writes_, 3);
}

TEST_F(WebhookIdentityTest, TheSecondReplicaTakesWhatTheFirstHasMade) {
  ASSERT_TRUE(identity_.Reconcile().ok());
  const std::string first = std::exchange(secret_, "");
  before_write_ = first;
  server::TlsCertificate shown;
  WebhookIdentity second({&transport_, &clock_, &shown}, "fairlead");
  ASSERT_TRUE(second.Reconcile().ok());
  EXPECT_EQ(secret_, first);
  EXPECT_TRUE(shown.ready());
  ExpectBundle();
}

TEST_F(WebhookIdentityTest, RenewsTheCertificateBeforeItExpires) {
  ASSERT_TRUE(identity_.Reconcile().ok());
  const std::string authority = Kept("ca.crt");
  const std::string certificate = Kept("tls.crt");
  const auto context = shown_.Context();
  clock_.Advance(WebhookIdentity::kLifetime - WebhookIdentity::kRenewBefore - absl::Hours(1));
  ASSERT_TRUE(identity_.Reconcile().ok());
  EXPECT_EQ(Kept("tls.crt"), certificate);
  clock_.Advance(absl::Hours(2));
  ASSERT_TRUE(identity_.Reconcile().ok());
  EXPECT_NE(Kept("tls.crt"), certificate);
  EXPECT_EQ(Kept("ca.crt"), authority);
  EXPECT_NE(shown_.Context(), context);
}

// Of two that renew, the second's write is refused, and it shows what the first has made.
TEST_F(WebhookIdentityTest, ARenewalThatComesSecondGivesWay) {
  ASSERT_TRUE(identity_.Reconcile().ok());
  clock_.Advance(WebhookIdentity::kLifetime);
  const std::string old = secret_;
  ASSERT_TRUE(identity_.Reconcile().ok());
  const std::string renewed = std::exchange(secret_, old);
  before_write_ = renewed;
  ASSERT_TRUE(identity_.Reconcile().ok());
  EXPECT_EQ(secret_, renewed);
}

TEST_F(WebhookIdentityTest, TheFormerAuthorityStaysInTheBundle) {
  ASSERT_TRUE(identity_.Reconcile().ok());
  const std::string former = Kept("ca.crt");
  clock_.Advance(WebhookIdentity::kAuthorityLifetime - WebhookIdentity::kRenewAuthorityBefore +
                 absl::Hours(1));
  ASSERT_TRUE(identity_.Reconcile().ok());
  EXPECT_TRUE(absl::EndsWith(Kept("ca.crt"), former));
  EXPECT_NE(Kept("ca.crt"), former);
  ExpectBundle();
  EXPECT_TRUE(
      server::CheckCertificate({Kept("tls.crt"), Kept("tls.key")}, Kept("ca.crt"), {}).ok());
  const std::string bundle = Kept("ca.crt");
  clock_.Advance(absl::Hours(1));
  ASSERT_TRUE(identity_.Reconcile().ok());
  EXPECT_EQ(Kept("ca.crt"), bundle);
}

TEST_F(WebhookIdentityTest, WhatCannotBeUsedIsMadeAnew) {
  for (const char* const data :
       {"{}", R"({"ca.crt":"eA==","ca.key":"eA==","tls.crt":"eA==","tls.key":"!"})"}) {
    secret_ = absl::StrCat(R"({"metadata":{"name":"fairlead-webhook"},"data":)", data, "}");
    ++version_;
    ASSERT_TRUE(identity_.Reconcile().ok());
    EXPECT_TRUE(server::CheckCertificate({Kept("tls.crt"), Kept("tls.key")}, Kept("ca.crt"),
                                         {"fairlead-webhook.fairlead.svc"})
                    .ok());
    ExpectBundle();
  }
}

TEST_F(WebhookIdentityTest, AConfigurationThatIsMissingIsToldAndTheOtherWritten) {
  const std::string missing = absl::StrCat(kRegistered, "validatingwebhookconfigurations/fairlead");
  configurations_.erase(missing);
  const absl::Status status = identity_.Reconcile();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), missing));
  EXPECT_TRUE(shown_.ready());
  ExpectBundle();
}

TEST_F(WebhookIdentityTest, WithoutTheServerNothingIsMade) {
  ASSERT_TRUE(identity_.Reconcile().ok());
  const auto context = shown_.Context();
  for (const auto& reply :
       {FakeTransport::Reply::Failure(absl::UnavailableError("away")), RefusalOf(403, "Forbidden"),
        RefusalOf(500, "InternalError"), FakeTransport::Reply::Json(200, "{")}) {
    const int before = writes_;
    transport_.On("GET", kSecretPath, reply, 1);
    const absl::Status status = identity_.Reconcile();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(writes_, before);
    EXPECT_EQ(shown_.Context(), context);
  }
}

// Another bundle was set, or the manifests were applied again without one.
TEST_F(WebhookIdentityTest, TheBundleIsWrittenAgain) {
  ASSERT_TRUE(identity_.Reconcile().ok());
  configurations_.begin()->second[1] = "eA==";
  ASSERT_TRUE(identity_.Reconcile().ok());
  ExpectBundle();
  EXPECT_EQ(writes_, 4);
}

}  // namespace
}  // namespace fairlead::cmd
