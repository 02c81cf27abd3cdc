// Over a real socket, against a server with every kind of fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "kube/credentials/credentials.h"
#include "kube/transport/curl_transport.h"
#include "kube/transport/loopback_server.h"
#include "usage-prometheus/fetcher.h"
#include "usage-prometheus/testing.h"

namespace fairlead::prometheus {
namespace {

using kube::LoopbackServer;
using testing::AsksForCapacity;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Vector;
using Connection = LoopbackServer::Connection;
using Request = LoopbackServer::Request;

void AnswerWell(const Request& request, Connection& connection) {
  connection.Answer(200,
                    AsksForCapacity(request.target) ? Vector({{"", "8"}}) : Vector({{"a", "2"}}));
}

class ServerTest : public ::testing::Test {
 protected:
  // The result of one fetch.
  absl::StatusOr<Usage> FetchFrom(LoopbackServer::Handler handler, const std::string& prefix = "") {
    server_ = std::make_unique<LoopbackServer>(std::move(handler), tls_);
    client_.server.url = absl::StrCat(server_->url(), prefix);
    kube::CurlTransportOptions transport_options;
    transport_options.max_body_bytes = 4096;
    auto transport = kube::CurlTransport::Create(
        client_.server, kube::NewCredentialSource(client_, clock_), clock_, transport_options);
    EXPECT_TRUE(transport.ok()) << transport.status();
    const auto promise = std::make_shared<std::promise<absl::StatusOr<Usage>>>();
    Fetch(**transport, *Queries::Create(options_), absl::FromUnixSeconds(1'767'268'800),
          [promise](absl::StatusOr<Usage> usage) { promise->set_value(std::move(usage)); });
    return promise->get_future().get();
  }

  RealClock clock_;
  QueryOptions options_;
  kube::ClientConfig client_;
  std::optional<kube::TlsIdentity> tls_;
  std::unique_ptr<LoopbackServer> server_;
};

TEST_F(ServerTest, AnswersComeBackAsOneReport) {
  const auto usage = FetchFrom(AnswerWell);
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(usage->report.parts.size(), 3u);
  const std::vector<Request> requests = server_->requests();
  ASSERT_EQ(requests.size(), 6u);
  for (const Request& request : requests) {
    EXPECT_EQ(request.method, "GET");
    EXPECT_THAT(testing::ParamOf(request.target, "query"), HasSubstr("sum_over_time(("));
    EXPECT_FALSE(request.headers.contains("authorization"));
  }
}

TEST_F(ServerTest, AnAddressMayHaveAPath) {
  ASSERT_TRUE(FetchFrom(AnswerWell, "/tenant/prometheus/").ok());
  for (const Request& request : server_->requests()) {
    EXPECT_TRUE(absl::StartsWith(request.target, "/tenant/prometheus/api/v1/query?"))
        << request.target;
  }
}

TEST_F(ServerTest, AnErrorIsTold) {
  const auto usage =
      FetchFrom([](const Request&, Connection& connection) { connection.Answer(500, "oops"); });
  EXPECT_TRUE(absl::IsUnavailable(usage.status())) << usage.status();
  EXPECT_THAT(usage.status().message(), HasSubstr("Metric: HTTP status 500"));
}

TEST_F(ServerTest, ARedirectIsNotFollowed) {
  const auto usage = FetchFrom([](const Request&, Connection& connection) {
    connection.Answer(302, "", "Location: /elsewhere\r\n");
  });
  EXPECT_THAT(usage.status().message(), HasSubstr("redirect"));
  for (const Request& request : server_->requests()) {
    EXPECT_THAT(request.target, Not(HasSubstr("elsewhere")));
  }
}

TEST_F(ServerTest, GarbageIsRefused) {
  const auto usage = FetchFrom([](const Request&, Connection& connection) {
    connection.Answer(200, std::string("\x00\xff{not json", 12));
  });
  EXPECT_TRUE(absl::IsInvalidArgument(usage.status())) << usage.status();
  EXPECT_THAT(usage.status().message(), HasSubstr("JSON"));
}

TEST_F(ServerTest, WhatIsNoHttpIsRefused) {
  const auto usage = FetchFrom([](const Request&, Connection& connection) {
    connection.Write("SSH-2.0-OpenSSH_9.2\r\n");
    connection.Close();
  });
  EXPECT_THAT(usage.status().message(), HasSubstr("Metric: GET /api/v1/query: "));
}

TEST_F(ServerTest, AnAnswerWithoutEndIsCutOff) {
  const auto usage = FetchFrom([](const Request&, Connection& connection) {
    connection.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 64; ++i) connection.Chunk(std::string(1024, 'x'));
    connection.WaitForClose();
  });
  EXPECT_TRUE(absl::IsResourceExhausted(usage.status())) << usage.status();
  EXPECT_THAT(usage.status().message(), HasSubstr("larger than 4096 bytes"));
}

TEST_F(ServerTest, AServerThatIsSilentIsGivenUp) {
  options_.timeout = absl::Milliseconds(200);
  const auto usage =
      FetchFrom([](const Request&, Connection& connection) { connection.WaitForClose(); });
  EXPECT_TRUE(absl::IsDeadlineExceeded(usage.status())) << usage.status();
  EXPECT_THAT(usage.status().message(), HasSubstr("no answer within 200ms"));
}

TEST_F(ServerTest, TheCertificateIsVerified) {
  const kube::TestAuthority authority("prometheus ca");
  tls_ = authority.Issue("prometheus", "IP:127.0.0.1");
  EXPECT_TRUE(absl::IsUnavailable(FetchFrom(AnswerWell).status()));
  EXPECT_TRUE(server_->requests().empty()) << "nothing is said to a stranger";
  client_.server.ca_pem = authority.certificate_pem();
  EXPECT_TRUE(FetchFrom(AnswerWell).ok());
}

TEST_F(ServerTest, TheTokenComesFromItsFile) {
  std::string path = ::testing::TempDir() + "/usage-token-XXXXXX";
  const int fd = mkstemp(path.data());
  ASSERT_GE(fd, 0);
  close(fd);
  std::ofstream(path) << "secret-of-the-test\n";
  client_.user.token_file = path;
  const auto usage = FetchFrom(AnswerWell);
  EXPECT_TRUE(usage.ok()) << usage.status();
  for (const Request& request : server_->requests()) {
    EXPECT_EQ(request.headers.at("authorization"), "Bearer secret-of-the-test");
  }
  unlink(path.c_str());
  const auto without = FetchFrom(AnswerWell);
  EXPECT_TRUE(absl::IsUnauthenticated(without.status())) << without.status();
  EXPECT_THAT(without.status().message(), Not(HasSubstr("secret")));
  EXPECT_TRUE(server_->requests().empty());
}

}  // namespace
}  // namespace fairlead::prometheus
