// Which peers the transport accepts over TLS, and how it works with a real API server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/credentials/kubeconfig.h"
#include "kube/transport/curl_transport.h"
#include "kube/transport/loopback_server.h"

namespace fairlead::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Answer = absl::StatusOr<HttpResponse>;
using Connection = LoopbackServer::Connection;

class TlsTest : public ::testing::Test {
 protected:
  void Serve(TlsIdentity identity) {
    server_ = std::make_unique<LoopbackServer>(
        [](const LoopbackServer::Request& request, Connection& c) {
          c.Answer(200, absl::StrCat(request.client_name, "@", request.headers.at("host")));
        },
        std::move(identity));
    config_.url = server_->url();
    config_.ca_pem = authority_.certificate_pem();
  }
  Answer Call(Credentials credentials = {}) {
    auto transport = CurlTransport::Create(
        config_, std::make_unique<StaticCredentials>(std::move(credentials)), clock_);
    if (!transport.ok()) return transport.status();
    HttpRequest request;
    request.path = "/";
    return (*transport)->Call(request);
  }
  void ExpectRefused(const Answer& answer) {
    EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
    EXPECT_TRUE(server_->requests().empty()) << "the request was sent all the same";
    EXPECT_THAT(std::string(answer.status().message()), Not(HasSubstr("PRIVATE KEY")));
  }

  RealClock clock_;
  TestAuthority authority_{"good"}, other_{"other"};
  ServerConfig config_;
  std::unique_ptr<LoopbackServer> server_;
};

TEST_F(TlsTest, AcceptsACertificateOfTheAuthority) {
  Serve(authority_.Issue("server", "IP:127.0.0.1"));
  const Answer answer = Call();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, absl::StrCat("@127.0.0.1:", server_->port()));
}

TEST_F(TlsTest, RefusesOtherAuthoritiesAndNames) {
  Serve(other_.Issue("server", "IP:127.0.0.1"));
  ExpectRefused(Call());
  config_.ca_pem.clear();  // then the system's, which do not include it
  ExpectRefused(Call());
  Serve(authority_.Issue("server", "DNS:kubernetes"));
  ExpectRefused(Call());
  config_.tls_server_name = "other";
  ExpectRefused(Call());
}

TEST_F(TlsTest, ChecksTheServerNameInstead) {
  Serve(authority_.Issue("server", "DNS:kubernetes"));
  config_.tls_server_name = "kubernetes";
  const Answer answer = Call();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, absl::StrCat("@127.0.0.1:", server_->port()));
}

TEST_F(TlsTest, InsecureOnlyIfToldSo) {
  Serve(other_.Issue("server", "DNS:wrong"));
  config_.ca_pem.clear();
  config_.insecure_skip_tls_verify = true;
  EXPECT_TRUE(Call().ok());
}

TEST_F(TlsTest, ShowsTheClientCertificate) {
  TlsIdentity identity = authority_.Issue("server", "IP:127.0.0.1");
  identity.client_ca_pem = authority_.certificate_pem();
  Serve(identity);
  ExpectRefused(Call());
  const TlsIdentity client = authority_.Issue("me");
  Credentials credentials;
  credentials.certificate_pem = client.certificate_pem;
  credentials.key_pem = client.key_pem;
  const Answer answer = Call(credentials);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(absl::StartsWith(answer->body, "me@"));
  credentials.key_pem = other_.Issue("thief").key_pem;
  EXPECT_TRUE(absl::IsUnavailable(Call(credentials).status()));
  credentials.key_pem = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n";
  EXPECT_THAT(std::string(Call(credentials).status().message()), Not(HasSubstr("hunter2")));
}

// Rotates from one client certificate to another when told; then new connections must be used.
TEST_F(TlsTest, ANewCertificateGetsANewConnection) {
  class Rotating final : public CredentialSource {
   public:
    CredentialsPtr Current() override {
      const std::lock_guard<std::mutex> lock(mutex_);
      return current_;
    }
    void Load(CredentialsPtr, Done done) override { done(Current()); }
    void Set(const TlsIdentity& identity) {
      Credentials credentials;
      credentials.certificate_pem = identity.certificate_pem;
      credentials.key_pem = identity.key_pem;
      const std::lock_guard<std::mutex> lock(mutex_);
      current_ = std::make_shared<const Credentials>(std::move(credentials));
    }

   private:
    std::mutex mutex_;
    CredentialsPtr current_;
  };
  TlsIdentity identity = authority_.Issue("server", "IP:127.0.0.1");
  identity.client_ca_pem = authority_.certificate_pem();
  Serve(identity);
  auto owned = std::make_unique<Rotating>();
  Rotating* source = owned.get();
  source->Set(authority_.Issue("before"));
  auto transport = CurlTransport::Create(config_, std::move(owned), clock_);
  ASSERT_TRUE(transport.ok());
  HttpRequest request;
  request.path = "/";
  EXPECT_TRUE(absl::StartsWith((*transport)->Call(request)->body, "before@"));
  EXPECT_TRUE(absl::StartsWith((*transport)->Call(request)->body, "before@"));
  source->Set(authority_.Issue("after"));
  EXPECT_TRUE(absl::StartsWith((*transport)->Call(request)->body, "after@"));
  EXPECT_EQ(server_->connections_accepted(), 2);
}

// ---- a real server -----------------------------------------------------------------------------

TEST(RealServerTest, VersionAndManyRequestsAtOnce) {
  const char* path = std::getenv("FAIRLEAD_TEST_KUBECONFIG");
  if (path == nullptr) GTEST_SKIP() << "FAIRLEAD_TEST_KUBECONFIG names no kubeconfig";
  const auto config = LoadKubeconfig({path});
  ASSERT_TRUE(config.ok()) << config.status();
  const RealClock clock;
  auto transport =
      CurlTransport::Create(config->server, NewCredentialSource(*config, clock), clock);
  ASSERT_TRUE(transport.ok()) << transport.status();
  HttpRequest request;
  request.path = "/version";
  const Answer answer = (*transport)->Call(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_THAT(answer->body, HasSubstr("gitVersion"));
  // More requests than one connection has streams for.
  std::vector<std::future<Answer>> answers;
  for (int i = 0; i < 500; ++i) {
    auto promise = std::make_shared<std::promise<Answer>>();
    answers.push_back(promise->get_future());
    (*transport)->Send(request, [promise](Answer a) { promise->set_value(std::move(a)); });
  }
  for (auto& future : answers) {
    const Answer each = future.get();
    ASSERT_TRUE(each.ok()) << each.status();
    EXPECT_EQ(each->status, 200);
  }
}

}  // namespace
}  // namespace fairlead::kube
