#include "cmd/fairlead/traces/span_exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "document/json.h"
#include "kube/credentials/credentials.h"
#include "kube/transport/curl_transport.h"
#include "kube/transport/fake_transport.h"
#include "kube/transport/loopback_server.h"

namespace fairlead::cmd {
namespace {

using kube::FakeTransport;
using kube::LoopbackServer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Reply = FakeTransport::Reply;

tracing::Span NumberedSpan(int64_t number) {
  return {.trace = {1, 1},
          .id = static_cast<uint64_t>(number),
          .name = "n",
          .start = absl::UnixEpoch(),
          .end = absl::UnixEpoch(),
          .attributes = {{"number", number}}};
}

// The numbers of the spans in a request.
std::vector<int> NumbersIn(const std::string& body) {
  std::vector<int> numbers;
  const Json json = *Json::Parse(body);
  const Json& scope = json.Find("resourceSpans")->items().at(0).Find("scopeSpans")->items().at(0);
  for (const Json& span : scope.Find("spans")->items()) {
    numbers.push_back(
        std::stoi(span.Find("attributes")->items().at(0).TextAt({"value", "intValue"})));
  }
  return numbers;
}

// In virtual time.
class SpanExporterTest : public ::testing::Test {
 protected:
  SpanExporterTest() {
    options_.queue_max = 8;
    options_.batch_max = 4;
  }
  void Start() {
    exporter_ = std::make_unique<SpanExporter>(
        transport_, transport_, clock_, options_,
        [this](const std::string& problem) { told_.push_back(problem); });
  }
  void Add(int from, int to) {
    for (int i = from; i <= to; ++i) exporter_->Add(NumberedSpan(i));
  }
  void Answer(Reply reply, int times = FakeTransport::kAlways) {
    transport_.On("POST", "/v1/traces", std::move(reply), times);
  }
  static Reply Busy(int status, absl::Duration retry_after) {
    Reply reply = Reply::Json(status, "");
    reply.response.retry_after = retry_after;
    return reply;
  }
  // What was sent, in order.
  std::vector<std::vector<int>> Sent() const {
    std::vector<std::vector<int>> sent;
    for (const auto& exchange : transport_.exchanges()) {
      sent.push_back(NumbersIn(exchange.request.body));
    }
    return sent;
  }
  std::string Stats() const {
    const SpanStats stats = exporter_->GetStats();
    return absl::StrCat(stats.sent, " sent, ", stats.failed, " failed, ", stats.dropped,
                        " dropped");
  }

  FakeClock clock_{absl::UnixEpoch()};
  FakeTransport transport_{clock_};
  SpanExporterOptions options_;
  std::vector<std::string> told_;
  std::unique_ptr<SpanExporter> exporter_;
};

// Every fault of a collector that stays as it is: how often a batch is sent, and that it is given
// up in the end.
TEST_F(SpanExporterTest, ACollectorThatNeverTakesABatch) {
  struct Row {
    const char* what;
    Reply reply;
    bool repeated;
    const char* problem;
  };
  const Row rows[] = {
      {"it refuses", Reply::Json(400, R"({"message":"bad"})"), false, "HTTP status 400: bad"},
      {"it has a fault", Reply::Json(500, ""), false, "HTTP status 500"},
      {"it is another program", Reply::Json(404, "<html>"), false, "HTTP status 404"},
      {"the token is wrong", Reply::Json(401, ""), false, "HTTP status 401"},
      {"too large", Reply::Json(413, ""), false, "HTTP status 413"},
      {"it is throttling", Reply::Json(429, ""), true, "HTTP status 429"},
      {"a proxy has no collector", Reply::Json(502, ""), true, "HTTP status 502"},
      {"it is busy", Reply::Json(503, ""), true, "HTTP status 503"},
      {"it closes", Reply::Failure(absl::UnavailableError("closed")), true, "closed"},
      {"it hangs", Reply::Hold(), true, "no answer within 10s"},
  };
  for (const Row& row : rows) {
    const size_t before = transport_.exchanges().size();
    told_.clear();
    transport_.ClearScripts();
    Answer(row.reply);
    Start();
    Add(1, 3);
    transport_.Advance(absl::Minutes(10));
    EXPECT_EQ(Stats(), "0 sent, 3 failed, 0 dropped") << row.what;
    const size_t requests = transport_.exchanges().size() - before;
    if (row.repeated) {
      EXPECT_GE(requests, 4u) << row.what;
      EXPECT_LE(requests, 12u) << row.what;
    } else {
      EXPECT_EQ(requests, 1u) << row.what;
    }
    EXPECT_THAT(told_, ElementsAre(HasSubstr(row.problem))) << "once: " << row.what;
  }
}

TEST_F(SpanExporterTest, RetryAfterIsWaitedFor) {
  Answer(Reply::Json(200, "{}"));
  Answer(Busy(429, absl::Seconds(40)), 1);
  Start();
  Add(1, 2);
  transport_.Advance(absl::Seconds(1));
  ASSERT_THAT(Sent(), ElementsAre(ElementsAre(1, 2)));
  transport_.Advance(absl::Milliseconds(39'999));
  EXPECT_EQ(Sent().size(), 1u);
  transport_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(Sent(), ElementsAre(ElementsAre(1, 2), ElementsAre(1, 2)));
  EXPECT_EQ(Stats(), "2 sent, 0 failed, 0 dropped");
  EXPECT_THAT(told_, ElementsAre("HTTP status 429", ""));
}

TEST_F(SpanExporterTest, ButNotForEver) {
  Answer(Reply::Json(200, "{}"));
  Answer(Busy(503, absl::Hours(24)), 1);
  Start();
  Add(1, 1);
  transport_.Advance(absl::Minutes(6));
  EXPECT_EQ(Stats(), "1 sent, 0 failed, 0 dropped");
}

TEST_F(SpanExporterTest, ARefusedBatchPausesTheNext) {
  Answer(Reply::Json(500, ""));
  Start();
  Add(1, 8);
  transport_.Pump();
  transport_.Advance(absl::Milliseconds(499));
  EXPECT_THAT(Sent(), ElementsAre(ElementsAre(1, 2, 3, 4)));
  transport_.Advance(absl::Milliseconds(501));
  EXPECT_THAT(Sent(), ElementsAre(ElementsAre(1, 2, 3, 4), ElementsAre(5, 6, 7, 8)));
}

TEST_F(SpanExporterTest, ASpanThatComesInAPauseWaitsToo) {
  Answer(Busy(429, absl::Seconds(100)));
  options_.retry_for = absl::ZeroDuration();
  Start();
  Add(1, 1);
  transport_.Advance(absl::Seconds(1));
  EXPECT_EQ(Stats(), "0 sent, 1 failed, 0 dropped");
  Add(2, 7);
  transport_.Advance(absl::Seconds(99));
  EXPECT_EQ(Sent().size(), 1u);
  transport_.Advance(absl::Seconds(1));
  EXPECT_EQ(Sent().size(), 2u);
}

TEST_F(SpanExporterTest, TheOldestGiveWayWhenTheQueueIsFull) {
  Answer(Reply::Json(200, "{}"));
  Answer(Reply::Hold(), 1);
  Start();
  Add(1, 4);
  transport_.Pump();
  ASSERT_THAT(Sent(), ElementsAre(ElementsAre(1, 2, 3, 4))) << "and hangs";
  Add(5, 15);
  EXPECT_EQ(Stats(), "0 sent, 0 failed, 3 dropped");
  transport_.Advance(absl::Minutes(1));
  EXPECT_THAT(Sent(), ElementsAre(ElementsAre(1, 2, 3, 4), ElementsAre(1, 2, 3, 4),
                                  ElementsAre(8, 9, 10, 11), ElementsAre(12, 13, 14, 15)));
  EXPECT_EQ(Stats(), "12 sent, 0 failed, 3 dropped");
}

TEST_F(SpanExporterTest, WhatTheCollectorRejectsHasFailed) {
  Answer(Reply::Json(200, R"({"partialSuccess":{"rejectedSpans":"2","errorMessage":"old"}})"));
  Start();
  Add(1, 3);
  transport_.Advance(absl::Minutes(5));
  EXPECT_EQ(Sent().size(), 1u) << "it is not repeated";
  EXPECT_EQ(Stats(), "1 sent, 2 failed, 0 dropped");
  EXPECT_THAT(told_, ElementsAre("old"));
}

TEST_F(SpanExporterTest, SpansAreGathered) {
  Answer(Reply::Json(200, "{}"));
  Start();
  Add(1, 2);
  transport_.Advance(absl::Milliseconds(999));
  EXPECT_THAT(Sent(), IsEmpty());
  Add(3, 3);
  transport_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(Sent(), ElementsAre(ElementsAre(1, 2, 3)));
  Add(4, 8);  // a full batch and one more
  transport_.Pump();
  EXPECT_THAT(Sent(), ElementsAre(ElementsAre(1, 2, 3), ElementsAre(4, 5, 6, 7)));
  transport_.Advance(absl::Seconds(1));
  EXPECT_THAT(Sent().back(), ElementsAre(8));
  EXPECT_EQ(Stats(), "8 sent, 0 failed, 0 dropped");
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(SpanExporterTest, WithoutSpansNothingHappens) {
  Start();
  transport_.Advance(absl::Hours(1));
  EXPECT_THAT(transport_.exchanges(), IsEmpty());
  EXPECT_EQ(transport_.timer_count(), 0u);
}

TEST_F(SpanExporterTest, TheEndDoesNotPressACollectorThatAskedForAPause) {
  Answer(Busy(503, absl::Seconds(30)));
  Start();
  Add(1, 6);
  transport_.Advance(absl::Seconds(1));
  ASSERT_EQ(Sent().size(), 1u);
  EXPECT_FALSE(exporter_->Stop(absl::Hours(1))) << "or the test hangs here";
  EXPECT_EQ(Stats(), "0 sent, 0 failed, 6 dropped");
}

TEST_F(SpanExporterTest, AfterTheEndNothingIsSentAndAnAnswerChangesNothing) {
  Answer(Reply::Hold());
  Start();
  Add(1, 6);
  transport_.Pump();
  ASSERT_EQ(Sent().size(), 1u);
  EXPECT_FALSE(exporter_->Stop(absl::ZeroDuration()));
  EXPECT_EQ(Stats(), "0 sent, 4 failed, 2 dropped") << "what was sent may have arrived";
  EXPECT_TRUE(transport_.exchanges()[0].cancelled);
  Add(7, 7);
  transport_.Advance(absl::Minutes(5));
  EXPECT_EQ(Sent().size(), 1u);
  EXPECT_EQ(Stats(), "0 sent, 4 failed, 3 dropped");
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(SpanExporterTest, ItsEndDropsWhatWaits) {
  Answer(Reply::Json(200, "{}"));
  Start();
  Add(1, 2);
  exporter_.reset();
  transport_.Advance(absl::Minutes(5));
  EXPECT_THAT(Sent(), IsEmpty());
}

// ---- over a real socket
// --------------------------------------------------------------------------

class SpanExporterSocketTest : public ::testing::Test {
 protected:
  using Request = LoopbackServer::Request;
  using Connection = LoopbackServer::Connection;

  void Start(LoopbackServer::Handler handler) {
    server_ = std::make_unique<LoopbackServer>(std::move(handler));
    kube::ClientConfig client;
    client.server.url = absl::StrCat(server_->url(), "/otlp");
    auto made = kube::CurlTransport::Create(client.server,
                                            kube::NewCredentialSource(client, clock_), clock_);
    ASSERT_TRUE(made.ok()) << made.status();
    transport_ = *std::move(made);
    exporter_ = std::make_unique<SpanExporter>(*transport_, *transport_, clock_, options_);
  }
  void Add(int from, int to) {
    for (int i = from; i <= to; ++i) exporter_->Add(NumberedSpan(i));
  }

  RealClock clock_;
  SpanExporterOptions options_;
  std::unique_ptr<LoopbackServer> server_;
  std::unique_ptr<kube::CurlTransport> transport_;
  std::unique_ptr<SpanExporter> exporter_;
};

TEST_F(SpanExporterSocketTest, ACollectorThatHangsDoesNotHoldUpTheEnd) {
  Start([](const Request&, Connection& connection) { connection.WaitForClose(); });
  Add(1, 3);
  const absl::Time start = absl::Now();
  EXPECT_FALSE(exporter_->Stop(absl::Milliseconds(300)));
  exporter_.reset();
  transport_.reset();
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(300));
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST_F(SpanExporterSocketTest, NorDoesOneThatCloses) {
  Start([](const Request&, Connection& connection) { connection.Close(); });
  Add(1, 3);
  const absl::Time start = absl::Now();
  EXPECT_FALSE(exporter_->Stop(absl::Seconds(30)));
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
  EXPECT_EQ(exporter_->GetStats().failed, 3);
}

TEST_F(SpanExporterSocketTest, TheEndSendsTheRestAtOnce) {
  options_.gather = absl::Hours(1);
  options_.batch_max = 2;
  Start([](const Request&, Connection& connection) { connection.Answer(200, "{}"); });
  Add(1, 1);
  EXPECT_TRUE(exporter_->Stop(absl::Seconds(30)));
  EXPECT_EQ(exporter_->GetStats().sent, 1);
  const std::vector<Request> requests = server_->requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].method, "POST");
  EXPECT_EQ(requests[0].target, "/otlp/v1/traces");
  EXPECT_EQ(requests[0].headers.at("content-type"), "application/json");
  EXPECT_THAT(NumbersIn(requests[0].body), ElementsAre(1));
}

TEST_F(SpanExporterSocketTest, AllBatchesOfTheRest) {
  options_.gather = absl::Hours(1);
  options_.batch_max = 100;
  Start([](const Request&, Connection& connection) { connection.Answer(200, "{}"); });
  Add(1, 99);
  EXPECT_TRUE(exporter_->Stop(absl::Seconds(30)));
  EXPECT_EQ(exporter_->GetStats().sent, 99);
}

TEST_F(SpanExporterSocketTest, RetryAfterIsReadFromTheAnswer) {
  std::atomic<int> answers = 0;
  options_.gather = absl::ZeroDuration();
  options_.pauses = {absl::Milliseconds(1), absl::Milliseconds(2)};
  Start([&answers](const Request&, Connection& connection) {
    if (++answers == 1) {
      connection.Answer(429, "", "Retry-After: 1\r\n");
    } else {
      connection.Answer(200, "{}");
    }
  });
  const absl::Time start = absl::Now();
  Add(1, 3);
  while (exporter_->GetStats().sent < 3 && absl::Now() - start < absl::Seconds(30)) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(exporter_->GetStats().sent, 3);
  EXPECT_GE(absl::Now() - start, absl::Seconds(1));
}

// Many threads, of which the server is one: for TSan.
TEST_F(SpanExporterSocketTest, NothingIsLostOrCountedTwice) {
  std::atomic<int> answers = 0;
  options_.queue_max = 1000;
  options_.batch_max = 50;
  options_.gather = absl::ZeroDuration();
  options_.pauses = {absl::Milliseconds(1), absl::Milliseconds(2)};
  Start([&answers](const Request&, Connection& connection) {
    connection.Answer(++answers % 3 == 0 ? 500 : 200, "{}");
  });
  std::thread other([this] { Add(1, 5000); });
  Add(5001, 10'000);
  other.join();
  exporter_->Stop(absl::Seconds(30));
  const SpanStats stats = exporter_->GetStats();
  EXPECT_EQ(stats.sent + stats.failed + stats.dropped, 10'000);
  EXPECT_GT(stats.sent, 0);
}

}  // namespace
}  // namespace fairlead::cmd
