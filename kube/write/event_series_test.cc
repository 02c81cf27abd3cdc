// Events that repeat: what is posted, what is patched, how often, and what is remembered.
#include "kube/write/event_series.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/write/executor_testing.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kEvents[] = "/apis/events.k8s.io/v1/namespaces/ns/events";

model::EmitEvent Failed(const std::string& note = "no room") {
  model::EmitEvent event = Event();
  event.reason = "FailedScheduling";
  event.note = note;
  event.warning = true;
  return event;
}

class EventSeriesTest : public ExecutorTest {
 protected:
  // The scripted server has every event.
  void ServeEvents() {
    api_.On("POST", kEvents, kCreated);
    api_.On("PATCH", absl::StrCat(kEvents, "/*"), kOk);
  }
  // Submits it and runs what is due now.
  void Observe(const model::EmitEvent& event) {
    Submit(event);
    api_.Pump();
  }
  // "POST", or "PATCH 3" with the count, of all requests so far.
  std::vector<std::string> Writes() const {
    std::vector<std::string> lines;
    for (const auto& exchange : api_.exchanges()) {
      const std::string& body = exchange.request.body;
      const size_t at = body.find("\"count\":");
      lines.push_back(exchange.request.method);
      if (at == std::string::npos) continue;
      const size_t end = body.find_first_of(",}", at);
      absl::StrAppend(&lines.back(), " ", body.substr(at + 8, end - at - 8));
    }
    return lines;
  }
  // Answers so far that are not OK.
  std::vector<std::string> Errors() {
    std::vector<std::string> errors;
    for (const auto& event : DrainNow(queue_)) {
      const auto& result = std::get<model::ActionResult>(event);
      ++answers_;
      if (!result.status.ok()) errors.push_back(result.status.ToString());
    }
    return errors;
  }
  uint64_t answers_ = 0;
};

TEST_F(EventSeriesTest, ARepeatedEventIsPatched) {
  ServeEvents();
  Observe(Failed());
  api_.Advance(absl::Minutes(2));
  Observe(Failed());
  EXPECT_THAT(Writes(), ElementsAre("POST", "PATCH 2"));
  const HttpRequest& post = api_.exchanges()[0].request;
  const HttpRequest& patch = api_.exchanges()[1].request;
  const size_t at = post.body.find("\"name\":\"") + 8;
  const std::string name = post.body.substr(at, post.body.find('"', at) - at);
  EXPECT_EQ(patch.path, absl::StrCat(kEvents, "/", name));
  EXPECT_EQ(patch.content_type, kMergePatch);
  EXPECT_EQ(patch.body,
            R"({"series":{"count":2,"lastObservedTime":"1970-01-01T01:02:00.000000Z"}})");
  EXPECT_THAT(post.body, HasSubstr(R"("eventTime":"1970-01-01T01:00:00.000000Z")"));
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(answers_, 2u);
}

TEST_F(EventSeriesTest, AnotherNoteIsAnotherEvent) {
  ServeEvents();
  Observe(Failed("no room"));
  Observe(Failed("no taint"));
  model::EmitEvent other = Failed("no room");
  other.uid = "u2";
  Observe(other);
  EXPECT_THAT(Writes(), ElementsAre("POST", "POST", "POST"));
}

TEST_F(EventSeriesTest, OnePatchInAMinuteTellsAllThatWasCounted) {
  ServeEvents();
  Observe(Failed());
  for (int i = 0; i < 30; ++i) {  // one in ten seconds, for five minutes
    api_.Advance(absl::Seconds(10));
    Observe(Failed());
  }
  const std::vector<std::string> writes = Writes();
  EXPECT_LE(writes.size(), 1u + 5u + 1u);
  api_.Advance(absl::Minutes(1));
  EXPECT_EQ(Writes().back(), "PATCH 31") << "the last ones are told without another observation";
  std::optional<absl::Duration> last;
  for (const auto& exchange : api_.exchanges()) {
    if (exchange.request.method != "PATCH") continue;
    EXPECT_TRUE(!last.has_value() || exchange.sent_at - *last >= kSeriesPause);
    last = exchange.sent_at;
  }
  const size_t told = Writes().size();
  api_.Advance(absl::Hours(1));
  EXPECT_THAT(Writes(), SizeIs(told)) << "nothing is left to tell";
  EXPECT_EQ(api_.timer_count(), 0u);
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(answers_, 31u);
}

TEST_F(EventSeriesTest, WhatComesBeforeThePostIsAnsweredIsToldLater) {
  api_.On("POST", kEvents, Reply::Hold());
  Observe(Failed());
  Observe(Failed());
  EXPECT_THAT(Writes(), ElementsAre("POST"));
  ServeEvents();
  api_.Respond(api_.exchanges()[0].id, kCreated.response);
  api_.Advance(kSeriesPause);
  EXPECT_THAT(Writes(), ElementsAre("POST", "PATCH 2"));
}

TEST_F(EventSeriesTest, AfterSixQuietMinutesItIsANewEvent) {
  ServeEvents();
  Observe(Failed());
  api_.Advance(kSeriesLasts);
  Observe(Failed());
  EXPECT_THAT(Writes(), ElementsAre("POST", "POST"));
  EXPECT_NE(api_.exchanges()[0].request.body, api_.exchanges()[1].request.body)
      << "another name: the server still has the first one";
}

TEST_F(EventSeriesTest, AnEventThatIsGoneIsPostedAnew) {
  for (const int code : {404, 409}) {
    SCOPED_TRACE(code);
    api_.ClearScripts();
    ServeEvents();
    const model::EmitEvent event = Failed(absl::StrCat("note ", code));
    Observe(event);
    api_.On("PATCH", absl::StrCat(kEvents, "/*"), ErrorReply(code, "x", "gone"));
    api_.Advance(absl::Minutes(2));
    std::vector<std::string> expected = Writes();
    expected.insert(expected.end(), {"PATCH 2", "POST"});
    Observe(event);
    EXPECT_EQ(Writes(), expected);
    api_.On("PATCH", absl::StrCat(kEvents, "/*"), kOk);
    api_.Advance(absl::Minutes(2));
    Observe(event);
    EXPECT_EQ(Writes().back(), "PATCH 2") << "of the new series";
    EXPECT_THAT(Errors(), IsEmpty());
  }
}

TEST_F(EventSeriesTest, AnEventThatCouldNotBePostedIsPostedAgain) {
  api_.On("POST", kEvents, ErrorReply(403, "Forbidden", "no"));
  Observe(Failed());
  EXPECT_THAT(Errors(), SizeIs(1));
  Observe(Failed());
  EXPECT_THAT(Writes(), ElementsAre("POST", "POST"));
  EXPECT_THAT(Errors(), SizeIs(1));
  api_.Advance(absl::Hours(1));
  EXPECT_THAT(Writes(), SizeIs(2));
}

// A role of an older version lets events be created, not patched.
TEST_F(EventSeriesTest, APatchThatIsForbiddenIsNotRepeated) {
  api_.On("POST", kEvents, kCreated);
  api_.On("PATCH", absl::StrCat(kEvents, "/*"), ErrorReply(403, "Forbidden", "no"));
  Observe(Failed());
  api_.Advance(absl::Minutes(1));
  Observe(Failed());
  api_.Advance(absl::Hours(1));
  EXPECT_THAT(Writes(), ElementsAre("POST", "PATCH 2"));
}

// The retried POST of one observation has the same name, so its 409 says that it is there.
TEST_F(EventSeriesTest, ALostPostIsNotASecondEvent) {
  api_.On("POST", kEvents, ErrorReply(409, "AlreadyExists", "x"));
  api_.On("POST", kEvents, Lost(), 1);
  Submit(Failed());
  EXPECT_TRUE(Answer().ok());
  ASSERT_THAT(Writes(), ElementsAre("POST", "POST"));
  EXPECT_EQ(api_.exchanges()[0].request.body, api_.exchanges()[1].request.body);
}

TEST_F(EventSeriesTest, AStandbyTellsNothingThatItCounted) {
  bool leader = true;
  Create([&] { return leader; });
  ServeEvents();
  Observe(Failed());
  api_.Advance(absl::Minutes(1));
  Observe(Failed());  // patched
  Observe(Failed());  // counted
  leader = false;
  api_.Advance(absl::Minutes(2));
  EXPECT_THAT(Writes(), ElementsAre("POST", "PATCH 2"));
}

TEST_F(EventSeriesTest, CountedEventsDoNotKeepADrainWaiting) {
  ServeEvents();
  Observe(Failed());
  Observe(Failed());
  Observe(Failed());
  EXPECT_TRUE(executor_->Idle());
  executor_->BeginDrain();
  api_.Advance(absl::Minutes(2));
  EXPECT_TRUE(executor_->Idle());
  EXPECT_EQ(answers_, 0u);
  EXPECT_THAT(Errors(), IsEmpty());
  EXPECT_EQ(answers_, 3u);
}

TEST(EventMemoryTest, IsBoundedAndForgetsWhatIsOldest) {
  EventSeries series(/*max=*/3);
  const absl::Time now = absl::UnixEpoch();
  std::vector<EventRecordPtr> records;
  const auto observe = [&](const std::string& note) {
    EventSeries::Observed observed = series.Observe(Failed(note), now, absl::Seconds(1));
    observed.record->exists = true;
    return observed;
  };
  EXPECT_TRUE(observe("a").write);
  EXPECT_TRUE(observe("b").write);
  EXPECT_TRUE(observe("c").write);
  EXPECT_EQ(observe("a").record->count, 2) << "it is the newest now";
  EXPECT_EQ(observe("d").record->count, 1);
  EXPECT_EQ(series.size(), 3u);
  EXPECT_EQ(observe("a").record->count, 3);
  EXPECT_EQ(observe("b").record->count, 1) << "it was forgotten";
  EXPECT_EQ(series.size(), 3u);
}

TEST(EventMemoryTest, BindingsAreNotRemembered) {
  EventSeries series;
  model::EmitEvent event = Event();
  event.action = model::EventAction::kBinding;
  EXPECT_TRUE(series.Observe(event, absl::UnixEpoch(), absl::ZeroDuration()).write);
  EXPECT_EQ(series.size(), 0u);
}

}  // namespace
}  // namespace fairlead::kube
