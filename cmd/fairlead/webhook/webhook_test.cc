#include "cmd/fairlead/webhook/webhook.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "document/json.h"
#include "kube/transport/curl_transport.h"

namespace fairlead::cmd {
namespace {

class WebhookTest : public ::testing::Test {
 protected:
  WebhookTest() { std::filesystem::create_directories(folder_); }
  ~WebhookTest() override { std::filesystem::remove_all(folder_); }

  void WriteFile(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  void WriteCertificate() const {
    const server::CertificateWithKey issued =
        *server::IssueCertificate(authority_, {"127.0.0.1"}, absl::Now(), absl::Hours(1));
    WriteFile("tls.crt", issued.certificate_pem);
    WriteFile("tls.key", issued.key_pem);
  }

  RealClock clock_;
  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) /
      absl::StrCat("webhook-", ::testing::UnitTest::GetInstance()->random_seed(), "-", getpid());
  server::CertificateWithKey authority_ =
      *server::MakeAuthority("authority", absl::Now(), absl::Hours(2));
};

TEST_F(WebhookTest, AFolderIsReadAgainWhenItChanges) {
  server::TlsCertificate shown;
  CertificateFolder folder(folder_.string(), &shown);
  EXPECT_TRUE(absl::StrContains(folder.Check().message(), "tls.crt"));
  WriteCertificate();
  ASSERT_TRUE(folder.Check().ok());
  const auto first = shown.Context();
  ASSERT_TRUE(folder.Check().ok());
  EXPECT_EQ(shown.Context(), first);
  WriteFile("tls.key", "x");  // half of a change
  EXPECT_TRUE(absl::IsInvalidArgument(folder.Check()));
  EXPECT_EQ(shown.Context(), first);
  WriteCertificate();
  ASSERT_TRUE(folder.Check().ok());
  EXPECT_NE(shown.Context(), first);
}

TEST_F(WebhookTest, ServesWithTheCertificateOfAFolder) {
  WebhookCache cache;
  cache.OnEvent(model::Synced{model::Kind::kQueue});
  cache.OnEvent(model::Synced{model::Kind::kNamespace});
  Logger logger(&clock_, LogLevel::kOff, [](absl::string_view) {});
  WebhookOptions options;
  options.address = {"127.0.0.1", 0};
  options.certificate_dir = (folder_ / "none").string();
  const WebhookHandlers::Ports ports{&cache, nullptr, &clock_, &logger};
  EXPECT_TRUE(absl::IsInvalidArgument(Webhook::Start(ports, options).status()));
  options.certificate_dir = folder_.string();
  WriteCertificate();
  const auto webhook = Webhook::Start(ports, options);
  ASSERT_TRUE(webhook.ok()) << webhook.status();
  kube::ClientConfig config;
  config.server.url = absl::StrCat("https://127.0.0.1:", (*webhook)->port());
  config.server.ca_pem = authority_.certificate_pem;
  const auto client = *kube::CurlTransport::Create(
      config.server, kube::NewCredentialSource(config, clock_), clock_);
  kube::HttpRequest request;
  request.method = "POST";
  request.path = absl::StrCat(kValidatePath, "?timeout=5s");
  request.content_type = kube::kJson;
  request.body =
      R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u1",)"
      R"("kind":{"kind":"Queue"},"resource":{"group":"scheduling.run.ai","resource":"queues"},)"
      R"("operation":"CREATE","object":{"metadata":{"name":"q"},"spec":{}}}})";
  const auto answer = client->Call(std::move(request));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(Json::Parse(answer->body)->TextAt({"response", "status", "message"}),
            "Queue q: spec.resources: must be specified");
  EXPECT_EQ((*webhook)->GetStats().invalid, 1u);
}

}  // namespace
}  // namespace fairlead::cmd
