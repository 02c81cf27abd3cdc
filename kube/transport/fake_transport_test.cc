#include "kube/transport/fake_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Writes what it sees into a log.
class LoggingObserver final : public StreamObserver {
 public:
  explicit LoggingObserver(std::vector<std::string>& log) : log_(log) {}
  void OnHeaders(int status, absl::string_view content_type) override {
    log_.push_back(absl::StrCat("headers ", status, " ", content_type));
  }
  void OnData(absl::string_view bytes) override { log_.push_back(absl::StrCat("data ", bytes)); }
  void OnDone(const absl::Status& status, absl::Duration retry_after) override {
    log_.push_back(absl::StrCat("done ", absl::StatusCodeToString(status.code()), " ",
                                absl::FormatDuration(retry_after)));
  }

 private:
  std::vector<std::string>& log_;
};

class FakeTransportTest : public ::testing::Test {
 protected:
  FakeTransport::Id Get(const std::string& path, absl::Duration timeout = absl::Seconds(30)) {
    HttpRequest request;
    request.path = path;
    request.timeout = timeout;
    return transport_.Send(std::move(request), [this, path](absl::StatusOr<HttpResponse> answer) {
      log_.push_back(
          answer.ok() ? absl::StrCat(path, " ", answer->status, " ", answer->body)
                      : absl::StrCat(path, " ", absl::StatusCodeToString(answer.status().code())));
    });
  }
  FakeTransport::Id Watch(const std::string& path) {
    HttpRequest request;
    request.path = path;
    request.timeout = absl::InfiniteDuration();
    return transport_.Stream(std::move(request), std::make_shared<LoggingObserver>(log_));
  }

  FakeClock clock_{absl::UnixEpoch()};
  FakeTransport transport_{clock_};
  std::vector<std::string> log_;
};

TEST_F(FakeTransportTest, NothingIsCalledBackBeforePump) {
  transport_.On("GET", "/a", FakeTransport::Reply::Json(200, "x"));
  Get("/a?limit=1");
  EXPECT_THAT(log_, IsEmpty());
  transport_.Pump();
  EXPECT_THAT(log_, ElementsAre("/a?limit=1 200 x"));
  EXPECT_EQ(transport_.Sent("GET", "/a").size(), 1u);
  EXPECT_TRUE(transport_.exchanges().front().done);
}

TEST_F(FakeTransportTest, NewestScriptWinsUntilUsedUp) {
  transport_.On("GET", "/api/*", FakeTransport::Reply::Json(200, "old"));
  transport_.On("GET", "/api/a", FakeTransport::Reply::Failure(absl::UnavailableError("down")), 1);
  Get("/api/a");
  Get("/api/a");
  transport_.Pump();
  EXPECT_THAT(log_, ElementsAre("/api/a UNAVAILABLE", "/api/a 200 old"));
}

TEST_F(FakeTransportTest, HeldRequestsWaitForTheTestOrTheirTimeout) {
  const auto first = Get("/a");
  Get("/b", absl::Seconds(10));
  transport_.Advance(absl::Seconds(9));
  EXPECT_THAT(log_, IsEmpty());
  EXPECT_EQ(transport_.FindOpen("GET", "/a"), first);
  HttpResponse response;
  response.status = 429;
  transport_.Respond(first, response);
  transport_.Advance(absl::Seconds(1));
  EXPECT_THAT(log_, ElementsAre("/a 429 ", "/b DEADLINE_EXCEEDED"));
  EXPECT_EQ(transport_.open_count(), 0u);
}

TEST_F(FakeTransportTest, CancelOvertakesAQueuedAnswer) {
  transport_.On("GET", "/a", FakeTransport::Reply::Json(200, ""));
  const auto id = Get("/a");
  transport_.Cancel(id);
  transport_.Cancel(id);
  transport_.Cancel(999);
  transport_.Pump();
  EXPECT_THAT(log_, ElementsAre("/a CANCELLED"));
  EXPECT_TRUE(transport_.exchanges().front().cancelled);
}

TEST_F(FakeTransportTest, StreamsGetChunksAndAnEnd) {
  transport_.On("GET", "/w", FakeTransport::Reply::Watch());
  const auto id = Watch("/w");
  transport_.Pump();
  transport_.Data(id, "1");
  transport_.Data(id, "2");
  transport_.Pump();
  transport_.End(id, absl::OkStatus(), absl::Seconds(3));
  transport_.Data(id, "too late");
  transport_.Pump();
  EXPECT_THAT(log_, ElementsAre("headers 200 application/json", "data 1", "data 2", "done OK 3s"));
}

TEST_F(FakeTransportTest, AnErrorAnswerToAStreamEnds) {
  transport_.On("GET", "/w", FakeTransport::Reply::Json(410, "gone"));
  Watch("/w");
  transport_.Pump();
  EXPECT_THAT(log_, ElementsAre("headers 410 application/json", "data gone", "done OK 0"));
}

TEST_F(FakeTransportTest, TimersRunInOrderOfTimeThenOfCreation) {
  const auto note = [this](const std::string& name) {
    return [this, name] {
      log_.push_back(absl::StrCat(name, "@", absl::FormatDuration(clock_.Steady())));
    };
  };
  transport_.After(absl::Seconds(2), note("late"));
  transport_.After(absl::Seconds(1), note("first"));
  transport_.After(absl::Seconds(1), note("second"));
  transport_.CancelTimer(transport_.After(absl::Seconds(1), note("never")));
  transport_.After(absl::Seconds(1), [&] { transport_.After(absl::Seconds(1), note("nested")); });
  EXPECT_EQ(transport_.UntilNextTimer(), absl::Seconds(1));
  transport_.Advance(absl::Seconds(5));
  EXPECT_THAT(log_, ElementsAre("first@1s", "second@1s", "late@2s", "nested@2s"));
  EXPECT_EQ(clock_.Steady(), absl::Seconds(5));
  EXPECT_EQ(transport_.timer_count(), 0u);
}

TEST_F(FakeTransportTest, CallPumpsAndMovesTimeToItsTimeout) {
  transport_.On("GET", "/a", FakeTransport::Reply::Json(200, "x"));
  HttpRequest request;
  request.path = "/a";
  EXPECT_EQ(transport_.Call(request)->body, "x");
  request.path = "/held";
  EXPECT_TRUE(absl::IsDeadlineExceeded(transport_.Call(request).status()));
  EXPECT_EQ(clock_.Steady(), absl::Seconds(30));
}

TEST_F(FakeTransportTest, CallbacksMaySend) {
  transport_.On("GET", "/b", FakeTransport::Reply::Json(200, ""));
  transport_.After(absl::Seconds(1), [this] { Get("/b"); });
  transport_.Advance(absl::Seconds(1));
  EXPECT_THAT(log_, ElementsAre("/b 200 "));
}

TEST_F(FakeTransportTest, CancelAllEndsEverything) {
  Get("/a");
  Watch("/w");
  transport_.CancelAll();
  transport_.Pump();
  EXPECT_EQ(transport_.open_count(), 0u);
  EXPECT_EQ(log_.size(), 2u);
}

}  // namespace
}  // namespace fairlead::kube
