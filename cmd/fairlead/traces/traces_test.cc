#include "cmd/fairlead/traces/traces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <string>

#include "document/json.h"
#include "kube/transport/loopback_server.h"

namespace fairlead::cmd {
namespace {

using kube::LoopbackServer;
using ::testing::HasSubstr;
using ::testing::Not;

class TracesTest : public ::testing::Test {
 protected:
  void Bind(Traces& traces) {
    const auto loop = *core::DecisionLoop::Make(core::KwokOptions(), &hook::Catalog::BuiltIn());
    const absl::Duration now = clock_.Steady();
    traces.observer()->OnHandedOn(*loop, {{{1, model::BindPod{"ns", "p", "u", "n", {}}}}},
                                  {now, now, now});
  }

  static core::TracingSettings To(const std::string& endpoint, const std::string& ca_file = "") {
    core::TracingSettings settings;
    settings.endpoint = endpoint;
    settings.ca_file = ca_file;
    return settings;
  }

  std::string Logged() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return log_;
  }

  RealClock clock_;
  std::mutex mutex_;  // the transport's thread logs, too
  std::string log_;
  Logger logger_{&clock_, LogLevel::kDebug, [this](absl::string_view line) {
                   const std::lock_guard<std::mutex> lock(mutex_);
                   log_.append(line.data(), line.size());
                 }};
};

TEST_F(TracesTest, WithoutAnEndpointThereIsNothing) {
  const auto traces = Traces::Open({}, "me", clock_, logger_);
  ASSERT_TRUE(traces.ok()) << traces.status();
  EXPECT_EQ(*traces, nullptr);
  EXPECT_EQ(Logged(), "");
}

TEST_F(TracesTest, WhatCannotBeUsedIsNamed) {
  const auto error = [this](const core::TracingSettings& settings) {
    return std::string(Traces::Open(settings, "me", clock_, logger_).status().message());
  };
  EXPECT_THAT(error(To("http://")), HasSubstr("tracing: the collector: "));
  const std::string secret = error(To("http://user:hunter2@collector:4318"));
  EXPECT_THAT(secret, HasSubstr("must not hold a user or password"));
  EXPECT_THAT(secret, Not(HasSubstr("hunter2")));
  EXPECT_THAT(error(To("https://collector:4318", "/nowhere/ca.pem")), HasSubstr("/nowhere/ca.pem"));
}

TEST_F(TracesTest, ACollectorThatIsNotThereCostsNothingButItsTraces) {
  int port = 0;
  {
    const LoopbackServer server([](const auto&, LoopbackServer::Connection&) {});
    port = server.port();
  }
  const auto traces =
      Traces::Open(To("http://127.0.0.1:" + std::to_string(port)), "me", clock_, logger_);
  ASSERT_TRUE(traces.ok()) << traces.status();
  Bind(**traces);
  (*traces)->Stop();
  EXPECT_EQ((*traces)->GetStats().sent, 0);
  EXPECT_EQ((*traces)->GetStats().failed + (*traces)->GetStats().dropped, 4);
  EXPECT_THAT(Logged(), HasSubstr("the last traces are lost"));
}

TEST_F(TracesTest, TheCollectorGetsThemAtTheEnd) {
  const LoopbackServer server(
      [](const auto&, LoopbackServer::Connection& connection) { connection.Answer(200, "{}"); });
  const auto traces = Traces::Open(To(server.url()), "me", clock_, logger_);
  ASSERT_TRUE(traces.ok()) << traces.status();
  Bind(**traces);
  (*traces)->Stop();
  EXPECT_EQ((*traces)->GetStats().sent, 4) << "the binding, too, whose answer never came";
  ASSERT_EQ(server.requests().size(), 1u);
  const std::string body = server.requests()[0].body;
  EXPECT_THAT(body, HasSubstr(R"({"key":"service.name","value":{"stringValue":"fairlead"}})"));
  EXPECT_THAT(body, HasSubstr(R"({"key":"service.instance.id","value":{"stringValue":"me"}})"));
  EXPECT_TRUE(Json::Parse(body).ok());
  EXPECT_THAT(Logged(), Not(HasSubstr("lost")));
}

}  // namespace
}  // namespace fairlead::cmd
