// Over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "extenders/client.h"
#include "extenders/connection.h"
#include "extenders/testing.h"
#include "kube/transport/loopback_server.h"

namespace fairlead::extenders {
namespace {

using kube::LoopbackServer;
using ::testing::HasSubstr;
using testing::kPodText;
using testing::NodeListText;
using Connection = LoopbackServer::Connection;
using Request = LoopbackServer::Request;

constexpr char kAdmitsA[] = R"({"NodeNames":["a"],"FailedNodes":{"b":"full"}})";

void AnswerAsApi(const Request& request, Connection& connection) {
  connection.Answer(200, request.target == testing::kPodPath ? kPodText : NodeListText({"a", "b"}));
}

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    config_.filter_verb = "filter";
    config_.bind_verb = "bind";
    config_.node_cache_capable = true;
    kube::ClientConfig api_config;
    api_config.server.url = api_server_.url();
    auto api = kube::CurlTransport::Create(api_config.server,
                                           kube::NewCredentialSource(api_config, clock_), clock_);
    EXPECT_TRUE(api.ok()) << api.status();
    api_ = *std::move(api);
  }

  void Start(LoopbackServer::Handler handler) {
    client_ = nullptr;
    server_ = std::make_unique<LoopbackServer>(std::move(handler), tls_);
    config_.url_prefix = absl::StrCat(server_->url(), "/prefix");
    auto transport = NewTransport(config_, clock_);
    ASSERT_TRUE(transport.ok()) << transport.status();
    std::vector<Extender> extenders;
    extenders.push_back({config_, *std::move(transport)});
    client_ = std::make_unique<Client>(std::move(extenders), api_.get(), &clock_);
  }
  std::future<Answer> Ask() {
    const auto promise = std::make_shared<std::promise<Answer>>();
    client_->Ask({.ns = "ns", .name = "p", .uid = "u1", .extenders = {0}, .nodes = {"a", "b"}},
                 [promise](Answer answer) { promise->set_value(std::move(answer)); });
    return promise->get_future();
  }
  std::future<absl::Status> Bind() {
    const auto promise = std::make_shared<std::promise<absl::Status>>();
    model::BindPod action{.ns = "ns", .name = "p", .uid = "u1", .node = "a", .annotations = {}};
    action.extender = 0;
    client_->Bind(action,
                  [promise](absl::Status status) { promise->set_value(std::move(status)); });
    return promise->get_future();
  }

  RealClock clock_;
  std::optional<kube::TlsIdentity> tls_;
  model::ExtenderConfig config_;
  LoopbackServer api_server_{AnswerAsApi};
  std::unique_ptr<kube::CurlTransport> api_;
  std::unique_ptr<LoopbackServer> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ServerTest, AskAndBindOnConnectionsThatStayOpen) {
  Start([](const Request& request, Connection& connection) {
    connection.Answer(200, request.target == "/prefix/bind" ? R"({"Error":""})" : kAdmitsA);
  });
  for (int i = 0; i < 3; ++i) {
    const Answer answer = Ask().get();
    ASSERT_EQ(answer.status, absl::OkStatus());
    EXPECT_TRUE(answer.answers.Find("a")->admitted);
    EXPECT_EQ(answer.answers.Find("b")->reason, "full");
    EXPECT_EQ(Bind().get(), absl::OkStatus());
  }
  EXPECT_EQ(server_->connections_accepted(), 2) << "one for questions, one for bindings";
  const Request first = server_->requests().front();
  EXPECT_EQ(first.target, "/prefix/filter");
  EXPECT_EQ(first.headers.at("content-type"), "application/json");
  EXPECT_THAT(first.body, HasSubstr(kPodText));
}

TEST_F(ServerTest, CallsDoNotQueueBehindAConnection) {
  constexpr int kCalls = 10;
  config_.http_timeout = absl::Seconds(20);
  std::mutex mutex;
  std::condition_variable changed;
  int here = 0;
  bool stopping = false;
  // Nothing is answered before all calls are there.
  Start([&](const Request& /*request*/, Connection& connection) {
    std::unique_lock<std::mutex> lock(mutex);
    ++here;
    changed.notify_all();
    changed.wait(lock, [&] { return here >= kCalls || stopping; });
    lock.unlock();
    connection.Answer(200, kAdmitsA);
  });
  std::vector<std::future<Answer>> asks;
  for (int i = 0; i < kCalls; ++i) asks.push_back(Ask());
  for (std::future<Answer>& ask : asks) EXPECT_EQ(ask.get().status, absl::OkStatus());
  {
    const std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
    changed.notify_all();
  }
  client_ = nullptr;
  server_ = nullptr;  // its handler uses the locals
}

TEST_F(ServerTest, AServerThatIsSilentIsGivenUp) {
  config_.http_timeout = absl::Milliseconds(200);
  Start([](const Request&, Connection& connection) { connection.WaitForClose(); });
  EXPECT_THAT(Ask().get().status.message(), HasSubstr("no answer within 200ms"));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Bind().get()));
}

TEST_F(ServerTest, AnAnswerWithoutEndIsCutOff) {
  config_.http_timeout = absl::Seconds(60);
  Start([](const Request&, Connection& connection) {
    connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
    connection.WaitForClose();
  });
  EXPECT_THAT(Ask().get().status.message(), HasSubstr("larger than 67108864 bytes"));
}

TEST_F(ServerTest, TheEndOfTheClientEndsItsCalls) {
  std::promise<void> asked;
  Start([&](const Request& request, Connection& connection) {
    if (request.target == "/prefix/filter") asked.set_value();
    connection.WaitForClose();
  });
  std::future<Answer> answer = Ask();
  asked.get_future().wait();
  client_ = nullptr;
  EXPECT_TRUE(absl::IsCancelled(answer.get().status));
}

TEST_F(ServerTest, EveryAskEndsOnceWheneverTheClientEnds) {
  config_.prioritize_verb = "prioritize";
  config_.weight = 1;
  config_.node_cache_capable = false;
  for (const size_t before : {0u, 1u, 20u, 59u}) {
    Start([](const Request& request, Connection& connection) {
      connection.Answer(200, request.target == "/prefix/filter"
                                 ? absl::StrCat(R"({"Nodes":)", NodeListText({"a", "b"}), "}")
                                 : R"([{"Host":"a","Score":1}])");
    });
    std::vector<std::future<Answer>> asks;
    for (int i = 0; i < 60; ++i) asks.push_back(Ask());
    for (size_t i = 0; i < before; ++i) EXPECT_EQ(asks[i].get().status, absl::OkStatus());
    client_ = nullptr;
    for (size_t i = before; i < asks.size(); ++i) {
      const absl::Status status = asks[i].get().status;
      EXPECT_TRUE(status.ok() || absl::IsCancelled(status)) << status;
    }
  }
}

TEST_F(ServerTest, ACertificateIsVerifiedAgainstTheAuthorityAndOurOwnShown) {
  const kube::TestAuthority authority("extender ca");
  tls_ = authority.Issue("extender", "DNS:extender.test");
  tls_->client_ca_pem = authority.certificate_pem();
  const auto handler = [](const Request&, Connection& connection) {
    connection.Answer(200, kAdmitsA);
  };
  const kube::TlsIdentity own = authority.Issue("scheduler");
  config_.enable_https = true;
  config_.tls.certificate_pem = own.certificate_pem;
  config_.tls.key_pem = own.key_pem;
  config_.tls.ca_pem = authority.certificate_pem();
  Start(handler);
  EXPECT_TRUE(absl::IsUnavailable(Ask().get().status)) << "the name is not the address";
  EXPECT_TRUE(server_->requests().empty());
  config_.tls.server_name = "extender.test";
  Start(handler);
  EXPECT_EQ(Ask().get().status, absl::OkStatus());
  EXPECT_EQ(server_->requests().front().client_name, "scheduler");
}

TEST_F(ServerTest, HttpsWithoutAuthorityIsNotVerifiedAsUpstream) {
  const kube::TestAuthority authority("unknown ca");
  tls_ = authority.Issue("extender", "DNS:other.test");
  const auto handler = [](const Request&, Connection& connection) {
    connection.Answer(200, kAdmitsA);
  };
  Start(handler);
  EXPECT_TRUE(absl::IsUnavailable(Ask().get().status)) << "the system does not know the authority";
  config_.enable_https = true;
  Start(handler);
  EXPECT_EQ(Ask().get().status, absl::OkStatus());
}

}  // namespace
}  // namespace fairlead::extenders
