// The server over TLS, asked by libcurl, which checks certificates.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "kube/credentials/credentials.h"
#include "kube/transport/curl_transport.h"
#include "server/certificates.h"
#include "server/http_server.h"
#include "server/http_server_testing.h"

namespace fairlead::server {
namespace {

class HttpsServerTest : public ::testing::Test {
 protected:
  void SetUp() override { std::signal(SIGPIPE, SIG_IGN); }

  [[nodiscard]] CertificateWithKey Issue(const std::string& name) const {
    return *IssueCertificate(authority_, {name}, absl::Now(), absl::Hours(1));
  }
  void Start(HttpServerOptions options = {}) {
    options.tls = shown_;
    options.posts["/echo"] = [](absl::string_view body) {
      Response response;
      response.body = absl::StrCat(body.size(), body.substr(0, 16));
      return response;
    };
    auto server = HttpServer::Start(
        {"127.0.0.1", 0}, {{"/livez", [](absl::string_view) { return Response{}; }}}, options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  // A client of its own, so that its connections are.
  [[nodiscard]] std::unique_ptr<kube::CurlTransport> Client() const {
    kube::ClientConfig config;
    config.server.url = absl::StrCat("https://127.0.0.1:", server_->port());
    config.server.ca_pem = authority_.certificate_pem;
    return *kube::CurlTransport::Create(config.server, kube::NewCredentialSource(config, clock_),
                                        clock_);
  }
  static absl::StatusOr<kube::HttpResponse> Post(kube::CurlTransport& client, std::string body) {
    kube::HttpRequest request;
    request.method = "POST";
    request.path = "/echo?timeout=5s";
    request.content_type = kube::kJson;
    request.body = std::move(body);
    return client.Call(std::move(request));
  }
  [[nodiscard]] int Connect() const { return testing::Connect(server_->port()); }

  RealClock clock_;
  CertificateWithKey authority_ = *MakeAuthority("authority", absl::Now(), absl::Hours(2));
  std::shared_ptr<TlsCertificate> shown_ = std::make_shared<TlsCertificate>();
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpsServerTest, AnswersOnOneConnectionAgainAndAgain) {
  const CertificateWithKey own = Issue("127.0.0.1");
  ASSERT_TRUE(shown_->Set(own.certificate_pem, own.key_pem).ok());
  Start();
  const auto client = Client();
  for (int i = 0; i < 3; ++i) {
    const auto answer = Post(*client, "hello");
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, "5hello");
  }
  EXPECT_EQ(Post(*client, std::string(1 << 20, 'x'))->body, "1048576xxxxxxxxxxxxxxxx");
}

TEST_F(HttpsServerTest, TheCertificateIsReplacedWhileItServes) {
  const CertificateWithKey wrong = Issue("elsewhere.example");
  ASSERT_TRUE(shown_->Set(wrong.certificate_pem, wrong.key_pem).ok());
  Start();
  EXPECT_TRUE(absl::IsUnavailable(Post(*Client(), "a").status()));
  const CertificateWithKey right = Issue("127.0.0.1");
  ASSERT_TRUE(shown_->Set(right.certificate_pem, right.key_pem).ok());
  const auto client = Client();
  EXPECT_TRUE(Post(*client, "a").ok());
  // What is open stays; new connections are refused.
  ASSERT_TRUE(shown_->Set(wrong.certificate_pem, wrong.key_pem).ok());
  EXPECT_TRUE(Post(*client, "a").ok());
  EXPECT_FALSE(Post(*Client(), "a").ok());
}

TEST_F(HttpsServerTest, WithoutACertificateConnectionsAreClosed) {
  Start();
  EXPECT_EQ(testing::ReadAll(Connect()), "");
  EXPECT_FALSE(Post(*Client(), "a").ok());
}

TEST_F(HttpsServerTest, PlainTextAndSilenceEndTheConnection) {
  const CertificateWithKey own = Issue("127.0.0.1");
  ASSERT_TRUE(shown_->Set(own.certificate_pem, own.key_pem).ok());
  HttpServerOptions options;
  options.handshake_timeout = absl::Milliseconds(50);
  Start(options);
  const int plain = Connect();
  const std::string request = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
  ASSERT_EQ(write(plain, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  EXPECT_EQ(testing::ReadAll(plain).find("HTTP/"), std::string::npos);
  EXPECT_EQ(testing::ReadAll(Connect()), "");
  EXPECT_TRUE(Post(*Client(), "a").ok());
}

TEST_F(HttpsServerTest, TooManyConnectionsMakeRoomForNewOnes) {
  const CertificateWithKey own = Issue("127.0.0.1");
  ASSERT_TRUE(shown_->Set(own.certificate_pem, own.key_pem).ok());
  HttpServerOptions options;
  options.connections_max = 2;
  options.body_bytes_max = 1000;
  Start(options);
  const int first = Connect();  // and says nothing
  const int second = Connect();
  EXPECT_TRUE(Post(*Client(), "a").ok());
  EXPECT_EQ(testing::ReadAll(first), "");
  EXPECT_EQ(Post(*Client(), std::string(1001, 'x'))->status, 413);
  close(second);
}

// One handler at a time would wait for ever.
TEST_F(HttpsServerTest, SlowHandlersRunBesideEachOther) {
  const CertificateWithKey own = Issue("127.0.0.1");
  ASSERT_TRUE(shown_->Set(own.certificate_pem, own.key_pem).ok());
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  HttpServerOptions options;
  options.slow_threads = 2;
  options.posts["/meet"] = [&](absl::string_view) {
    std::unique_lock<std::mutex> lock(mutex);
    ++inside;
    changed.notify_all();
    changed.wait(lock, [&] { return inside == 2; });
    return Response{};
  };
  Start(options);
  const auto meet = [this] {
    kube::HttpRequest request;
    request.method = "POST";
    request.path = "/meet";
    request.body = "{}";
    return Client()->Call(std::move(request));
  };
  auto other = std::async(std::launch::async, meet);
  EXPECT_EQ(meet()->status, 200);
  EXPECT_EQ(other.get()->status, 200);
}

}  // namespace
}  // namespace fairlead::server
