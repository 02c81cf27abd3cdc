#include "kube/watch/reflector.h"

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/transport/backoff.h"
#include "kube/watch/runtime_test_util.h"
#include "kube/watch/source.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Reply = FakeTransport::Reply;
using Id = FakeTransport::Id;

constexpr char kPods[] = "/api/v1/pods?fieldSelector=status.phase%21%3DFailed";

class ReflectorTest : public ::testing::Test {
 protected:
  void Begin(model::Kind kind = model::Kind::kPod) {
    options_.kind = kind;
    options_.seed = 7;
    path_ = CollectionPath(kind);
    reflector_ = std::make_unique<Reflector>(api_, api_, clock_, queue_, features_, options_);
    reflector_->Start();
    api_.Pump();
  }

  // The one open request, which must be to the kind's collection.
  Id Open() {
    api_.Pump();
    EXPECT_EQ(api_.open_count(), 1u);
    const std::optional<Id> id = api_.FindOpen("GET", path_);
    EXPECT_TRUE(id.has_value());
    return id.value_or(0);
  }
  // Advances virtual time until the next request has been sent.
  Id NextOpen() {
    for (int i = 0; i < 100 && api_.open_count() == 0; ++i) api_.Advance(api_.UntilNextTimer());
    return Open();
  }
  const std::string& LastPath() const { return api_.exchanges().back().request.path; }
  void Send(Id id, const std::string& data) {
    api_.Data(id, data);
    api_.Pump();
  }
  void Accept(Id id) {
    api_.Headers(id, 200);
    api_.Pump();
  }
  void End(Id id, absl::Status status = absl::OkStatus()) {
    api_.End(id, std::move(status));
    api_.Pump();
  }
  void Refuse(Id id, int code, absl::string_view reason, absl::string_view message,
              absl::Duration retry_after = absl::ZeroDuration()) {
    api_.Headers(id, code);
    api_.Data(id, StatusJson(code, reason, message));
    api_.End(id, absl::OkStatus(), retry_after);
    api_.Pump();
  }
  void Respond(Id id, int code, std::string body) {
    api_.Respond(id, Reply::Json(code, std::move(body)).response);
    api_.Pump();
  }
  // A watch with pods a, b and c at version 30.
  Id Synced() {
    Begin();
    const Id id = Open();
    Accept(id);
    Send(id, absl::StrCat(WatchLine("ADDED", PodJson("a", "ua", "10")),
                          WatchLine("ADDED", PodJson("b", "ub", "20")),
                          WatchLine("ADDED", PodJson("c", "uc", "30")),
                          BookmarkLine("30", /*initial_events_end=*/true)));
    EXPECT_THAT(Told(queue_), ElementsAre("+ns/a ua@10", "+ns/b ub@20", "+ns/c uc@30", "synced"));
    return id;
  }

  FakeClock clock_{absl::UnixEpoch()};
  FakeTransport api_{clock_};
  EventQueue queue_;
  ServerFeatures features_;
  ReflectorOptions options_;
  std::string path_;
  std::unique_ptr<Reflector> reflector_;
};

TEST_F(ReflectorTest, WatchListIsASnapshotAndThenAWatch) {
  Begin();
  const Id id = Open();
  EXPECT_TRUE(api_.exchanges().back().stream);
  EXPECT_EQ(api_.exchanges().back().request.traffic, TrafficClass::kWatch);
  EXPECT_THAT(LastPath(), HasSubstr("fieldSelector=status.phase%21%3DFailed"));
  EXPECT_THAT(LastPath(), HasSubstr("&watch=1"));
  EXPECT_THAT(LastPath(), HasSubstr("&sendInitialEvents=true"));
  EXPECT_THAT(LastPath(), HasSubstr("&resourceVersionMatch=NotOlderThan"));
  EXPECT_THAT(LastPath(), HasSubstr("&allowWatchBookmarks=true"));
  EXPECT_THAT(LastPath(), HasSubstr("&timeoutSeconds="));
  EXPECT_THAT(LastPath(), Not(HasSubstr("resourceVersion=")));
  Accept(id);
  Send(id, WatchLine("ADDED", PodJson("a", "ua", "10")));
  EXPECT_THAT(Told(queue_), IsEmpty()) << "a snapshot is told as a whole";
  Send(id, BookmarkLine("12"));
  EXPECT_FALSE(reflector_->GetStats().synced) << "not the bookmark that ends the initial events";
  Send(id, BookmarkLine("15", true));
  EXPECT_THAT(Told(queue_), ElementsAre("+ns/a ua@10", "synced"));
  Send(id, WatchLine("MODIFIED", PodJson("a", "ua", "16", "n1")));
  Send(id, WatchLine("DELETED", PodJson("a", "ua", "17")));
  EXPECT_THAT(Told(queue_), ElementsAre("-ns/a ua")) << "the queue merges what is still there";
  const ReflectorStats stats = reflector_->GetStats();
  EXPECT_EQ(stats.phase, ReflectorPhase::kWatch);
  EXPECT_EQ(stats.resource_version, "17");
  EXPECT_EQ(stats.objects, 0u);
  EXPECT_EQ(stats.snapshots, 1);
  EXPECT_EQ(api_.exchanges().size(), 1u);
}

TEST_F(ReflectorTest, AnEventMayBeCutAnywhere) {
  Begin();
  const Id id = Open();
  Accept(id);
  const std::string bytes = WatchLine("ADDED", PodJson("a", "ua", "10")) + BookmarkLine("11", true);
  for (const char c : bytes) Send(id, std::string(1, c));
  EXPECT_THAT(Told(queue_), ElementsAre("+ns/a ua@10", "synced"));
}

TEST_F(ReflectorTest, ALostWatchResumesFromTheNewestVersion) {
  Id id = Synced();
  Send(id, WatchLine("MODIFIED", PodJson("b", "ub", "31")));
  Send(id, BookmarkLine("50"));
  Send(id, BookmarkLine("40"));  // out of order: never go back
  End(id);
  EXPECT_EQ(api_.open_count(), 0u) << "not at once";
  const absl::Duration ended = clock_.Steady();
  id = NextOpen();
  EXPECT_GT(clock_.Steady(), ended);
  EXPECT_LE(clock_.Steady() - ended, absl::Milliseconds(500));
  EXPECT_THAT(LastPath(), HasSubstr("resourceVersion=50&"));
  EXPECT_THAT(LastPath(), Not(HasSubstr("sendInitialEvents")));
  Told(queue_);
  Accept(id);
  // Known events come again: nothing new.
  Send(id, WatchLine("MODIFIED", PodJson("b", "ub", "31")));
  Send(id, WatchLine("MODIFIED", PodJson("b", "ub", "25")));
  Send(id, WatchLine("DELETED", PodJson("b", "another", "29")));
  EXPECT_THAT(Told(queue_), IsEmpty());
  Send(id, WatchLine("MODIFIED", PodJson("b", "ub", "51")));
  EXPECT_THAT(Told(queue_), ElementsAre("+ns/b ub@51"));
  EXPECT_EQ(reflector_->GetStats().snapshots, 1);
}

TEST_F(ReflectorTest, ANewUidIsAnotherObject) {
  const Id id = Synced();
  Send(id, WatchLine("MODIFIED", PodJson("a", "ua2", "31")));
  EXPECT_THAT(Told(queue_), ElementsAre("-ns/a ua", "+ns/a ua2@31"));
  Send(id, WatchLine("DELETED", PodJson("a", "ua", "32")));
  EXPECT_THAT(Told(queue_), IsEmpty()) << "of the predecessor";
}

// Both forms of 410 lead to the same comparison.
class GoneTest : public ReflectorTest, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(StatusOrEvent, GoneTest, ::testing::Bool());

TEST_P(GoneTest, TheNewPictureIsComparedWithTheOld) {
  Id id = Synced();
  if (GetParam()) {
    End(id);
    id = NextOpen();
    Refuse(id, 410, "Expired", "too old resource version: 30 (90)");
  } else {
    Send(id, WatchLine("ERROR", StatusJson(410, "Expired", "too old resource version: 30 (90)")));
    EXPECT_TRUE(api_.exchanges().front().cancelled);
  }
  EXPECT_THAT(Told(queue_), IsEmpty()) << "the old picture stays until the new one is complete";
  EXPECT_THAT(reflector_->GetStats().last_error, HasSubstr("too old"));
  id = NextOpen();
  EXPECT_THAT(LastPath(), HasSubstr("sendInitialEvents=true"));
  Accept(id);
  Send(id, absl::StrCat(WatchLine("ADDED", PodJson("a", "ua", "10")),    // as it was
                        WatchLine("ADDED", PodJson("b", "ub2", "80")),   // recreated
                        WatchLine("ADDED", PodJson("d", "ud", "85"))));  // new; c is gone
  EXPECT_THAT(Told(queue_), IsEmpty());
  Send(id, BookmarkLine("90", true));
  EXPECT_THAT(Told(queue_), ElementsAre("-ns/c uc", "-ns/b ub", "+ns/b ub2@80", "+ns/d ud@85"));
  EXPECT_EQ(reflector_->GetStats().objects, 3u);
}

TEST_F(ReflectorTest, OtherErrorEventsResumeAndAreNeverObjects) {
  Id id = Synced();
  Send(id, absl::StrCat(WatchLine("MODIFIED", PodJson("a", "ua", "33")),
                        WatchLine("ERROR", StatusJson(500, "InternalError", "etcd has a cold")),
                        WatchLine("MODIFIED", PodJson("a", "ua", "34"))));
  EXPECT_THAT(Told(queue_), ElementsAre("+ns/a ua@33")) << "nothing after an error counts";
  id = NextOpen();
  EXPECT_THAT(LastPath(), HasSubstr("resourceVersion=33&"));
  EXPECT_THAT(reflector_->GetStats().last_error, HasSubstr("etcd has a cold"));
}

TEST_F(ReflectorTest, ServerErrorsBackOffAndRetryAfterIsObeyed) {
  Begin();
  std::vector<absl::Duration> gaps;
  for (int i = 0; i < 9; ++i) {
    const Id id = Open();
    const absl::Duration sent = clock_.Steady();
    Refuse(id, 500, "InternalError", "no");
    NextOpen();
    gaps.push_back(clock_.Steady() - sent);
  }
  absl::Duration step = absl::Milliseconds(500);
  for (const absl::Duration gap : gaps) {
    EXPECT_GE(gap, step / 2);
    EXPECT_LT(gap, step);
    step = std::min(step * 2, absl::Seconds(30));
  }
  const absl::Duration sent = clock_.Steady();
  Refuse(Open(), 429, "TooManyRequests", "later", absl::Seconds(77));
  NextOpen();
  EXPECT_EQ(clock_.Steady() - sent, absl::Seconds(77));
  EXPECT_EQ(reflector_->GetStats().errors, 10);
  EXPECT_TRUE(features_.watch_list) << "a server in trouble says nothing about its features";
}

TEST_F(ReflectorTest, TheSameSeedWaitsTheSameTime) {
  const auto wait = [](uint64_t seed) {
    JitteredBackoff backoff({absl::Seconds(1), absl::Seconds(30)}, seed);
    backoff.Next();
    return backoff.Next();
  };
  EXPECT_EQ(wait(1), wait(1));
  EXPECT_NE(wait(1), wait(2));
}

TEST_F(ReflectorTest, NoConnectionIsRetriedWithoutANewSnapshot) {
  Id id = Synced();
  End(id, absl::UnavailableError("connection reset"));
  for (int i = 0; i < 20; ++i) {
    id = NextOpen();
    EXPECT_THAT(LastPath(), HasSubstr("resourceVersion=30&"));
    End(id, absl::UnavailableError("connection refused"));
  }
  EXPECT_THAT(Told(queue_), IsEmpty());
}

struct Refusal {
  int code;
  const char* message;
  bool falls_back;
};
class FallbackTest : public ReflectorTest, public ::testing::WithParamInterface<Refusal> {};
INSTANTIATE_TEST_SUITE_P(
    Codes, FallbackTest,
    ::testing::Values(
        Refusal{400, "unknown parameter", true},
        Refusal{422, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch",
                true},
        Refusal{403, "sendInitialEvents: Forbidden: gate is off", true},
        Refusal{403, "pods is forbidden: User cannot watch resource", false}));

TEST_P(FallbackTest, AServerWithoutWatchListIsListed) {
  Begin();
  Refuse(Open(), GetParam().code, "Invalid", GetParam().message);
  EXPECT_EQ(!features_.watch_list, GetParam().falls_back);
  if (!GetParam().falls_back) {
    EXPECT_EQ(api_.open_count(), 0u);
    NextOpen();
    EXPECT_THAT(LastPath(), HasSubstr("sendInitialEvents"));
    return;
  }
  Id id = Open();  // at once
  EXPECT_FALSE(api_.exchanges().back().stream);
  EXPECT_EQ(LastPath(), absl::StrCat(kPods, "&limit=500"));
  Respond(id, 200, PodListJson("40", "next/page", {PodJson("a", "ua", "10")}));
  EXPECT_THAT(Told(queue_), IsEmpty());
  id = Open();
  EXPECT_EQ(LastPath(), absl::StrCat(kPods, "&limit=500&continue=next%2Fpage"));
  Respond(id, 200, PodListJson("40", "", {PodJson("b", "ub", "20")}));
  EXPECT_THAT(Told(queue_), ElementsAre("+ns/a ua@10", "+ns/b ub@20", "synced"));
  Open();
  EXPECT_THAT(LastPath(), HasSubstr("watch=1&resourceVersion=40&allowWatchBookmarks=true"));

  // Another reflector of the process does not try again.
  EventQueue queue;
  Reflector other(api_, api_, clock_, queue, features_, options_);
  other.Start();
  api_.Pump();
  EXPECT_EQ(LastPath(), absl::StrCat(kPods, "&limit=500"));
}

TEST_F(ReflectorTest, AWatchListThatNeverEndsIsGivenUp) {
  Begin();
  Id id = Open();
  Accept(id);
  Send(id, WatchLine("ADDED", PodJson("a", "ua", "10")));
  api_.Advance(options_.silence_limit + absl::Seconds(1));
  id = NextOpen();
  EXPECT_THAT(LastPath(), HasSubstr("sendInitialEvents"));
  Accept(id);
  Send(id, WatchLine("ADDED", PodJson("b", "ub", "10")));
  End(id);
  id = NextOpen();
  EXPECT_EQ(LastPath(), absl::StrCat(kPods, "&limit=500"));
  EXPECT_TRUE(features_.watch_list) << "of other kinds nothing is known";
  Respond(id, 200, PodListJson("40", "", {PodJson("c", "uc", "20")}));
  EXPECT_THAT(Told(queue_), ElementsAre("+ns/c uc@20", "synced"));
}

TEST_F(ReflectorTest, AnExpiredContinueRestartsTheList) {
  features_.watch_list = false;
  Begin();
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(LastPath(), absl::StrCat(kPods, "&limit=500"));
    Respond(Open(), 200, PodListJson("40", "t", {PodJson("old", "uo", "10")}));
    EXPECT_THAT(LastPath(), HasSubstr("continue=t"));
    Respond(Open(), 410, StatusJson(410, "Expired", "The provided continue parameter is too old"));
    NextOpen();
  }
  EXPECT_EQ(LastPath(), kPods) << "the third attempt is not paged";
  Respond(Open(), 200, PodListJson("50", "", {PodJson("a", "ua", "45")}));
  EXPECT_THAT(Told(queue_), ElementsAre("+ns/a ua@45", "synced"));
}

TEST_F(ReflectorTest, AnInterruptedListGoesOnWhereItWas) {
  features_.watch_list = false;
  Begin();
  Respond(Open(), 200, PodListJson("40", "t", {PodJson("a", "ua", "10")}));
  Respond(Open(), 503, StatusJson(503, "ServiceUnavailable", "moment"));
  api_.Fail(NextOpen(), absl::UnavailableError("gone"));
  api_.Pump();
  const Id id = NextOpen();
  EXPECT_THAT(LastPath(), HasSubstr("continue=t"));
  Respond(id, 200, PodListJson("40", "", {PodJson("b", "ub", "20")}));
  EXPECT_THAT(Told(queue_), ElementsAre("+ns/a ua@10", "+ns/b ub@20", "synced"));
}

TEST_F(ReflectorTest, AMissingCrdCountsAsEmptyAndIsAskedAgain) {
  Begin(model::Kind::kQueue);
  Refuse(Open(), 404, "NotFound", "the server could not find the requested resource");
  EXPECT_THAT(Told(queue_), ElementsAre("synced"));
  EXPECT_TRUE(reflector_->GetStats().missing);
  EXPECT_EQ(reflector_->GetStats().phase, ReflectorPhase::kMissing);
  EXPECT_THAT(reflector_->GetStats().last_error, HasSubstr("CRD not installed"));
  const absl::Duration asked = clock_.Steady();
  Id id = NextOpen();
  EXPECT_GE(clock_.Steady() - asked, options_.missing_retry / 2);
  Refuse(id, 404, "NotFound", "still not");
  id = NextOpen();
  Accept(id);
  Send(id, WatchLine("ADDED", QueueJson("q", "uq", "5")) + BookmarkLine("6", true));
  EXPECT_THAT(Told(queue_), ElementsAre("+q uq@5")) << "synced is told once";
  EXPECT_FALSE(reflector_->GetStats().missing);

  // Removed again: one 404 may be a server that is starting; three in a row count.
  End(id);
  for (int i = 0; i < Reflector::kMissingConfirmations; ++i) {
    EXPECT_THAT(Told(queue_), IsEmpty());
    Refuse(NextOpen(), 404, "NotFound", "gone");
  }
  EXPECT_THAT(Told(queue_), ElementsAre("-q uq"));
}

TEST_F(ReflectorTest, ABuiltInKindIsNeverMissing) {
  Begin();
  for (int i = 0; i < 5; ++i) Refuse(NextOpen(), 404, "NotFound", "wrong server?");
  EXPECT_THAT(Told(queue_), IsEmpty());
  EXPECT_FALSE(reflector_->GetStats().synced);
}

TEST_F(ReflectorTest, AWatchThatFailsAfterTheFirstSyncIsStale) {
  constexpr absl::Duration kBound = absl::Seconds(60);
  Id id = Synced();
  End(id, absl::UnavailableError("reset"));
  EXPECT_FALSE(reflector_->GetStats().IsStale(kBound));
  const absl::Duration broken = clock_.Steady();
  while (clock_.Steady() < broken + kBound) {
    EXPECT_FALSE(reflector_->GetStats().IsStale(kBound));
    Refuse(NextOpen(), 403, "Forbidden", "cannot watch pods");
  }
  api_.Advance(absl::Seconds(1));
  ReflectorStats stats = reflector_->GetStats();
  EXPECT_TRUE(stats.IsStale(kBound));
  EXPECT_TRUE(stats.synced) << "the old picture stays";
  EXPECT_THAT(stats.last_error, HasSubstr("403 Forbidden"));
  id = NextOpen();
  Accept(id);
  Send(id, BookmarkLine("60", true));
  stats = reflector_->GetStats();
  EXPECT_FALSE(stats.IsStale(kBound));
  EXPECT_EQ(stats.down_for, absl::ZeroDuration());
}

TEST_F(ReflectorTest, AnOpenWatchIsInStepBetweenTwoBookmarks) {
  constexpr absl::Duration kBound = absl::Seconds(60);
  const Id id = Synced();
  for (int i = 0; i < 5; ++i) {
    api_.Advance(kBookmarkPeriodMax);
    EXPECT_FALSE(reflector_->GetStats().IsStale(kBound));
    Send(id, BookmarkLine(absl::StrCat(60 + i)));
  }
  api_.Advance(kBookmarkPeriodMax + kBound + absl::Seconds(1));
  EXPECT_TRUE(reflector_->GetStats().IsStale(kBound)) << "open, but silent";
}

// Each watch is accepted; the age of the last proof of a working connection counts.
TEST_F(ReflectorTest, AWatchThatBreaksAgainAndAgainIsStale) {
  End(Synced(), absl::UnavailableError("reset"));
  for (int i = 0; i < 1000 && !reflector_->GetStats().IsStale(absl::Seconds(60)); ++i) {
    const Id id = NextOpen();
    if (api_.exchanges().back().stream) {
      Accept(id);
      End(id, absl::UnavailableError("reset"));
    } else {
      api_.Fail(id, absl::UnavailableError("reset"));
      api_.Pump();
    }
  }
  EXPECT_TRUE(reflector_->GetStats().IsStale(absl::Seconds(60)));
}

TEST_F(ReflectorTest, RefreshTakesANewSnapshot) {
  Id id = Synced();
  EXPECT_TRUE(reflector_->GetStats().fresh);
  reflector_->Refresh();
  EXPECT_FALSE(reflector_->GetStats().fresh);
  id = NextOpen();
  EXPECT_TRUE(api_.exchanges().front().cancelled);
  EXPECT_THAT(LastPath(), HasSubstr("sendInitialEvents"));
  Accept(id);
  Send(id, absl::StrCat(WatchLine("ADDED", PodJson("a", "ua", "10")),
                        WatchLine("ADDED", PodJson("b", "ub", "40", "n1"))));
  EXPECT_FALSE(reflector_->GetStats().fresh);
  EXPECT_THAT(Told(queue_), IsEmpty());
  Send(id, BookmarkLine("41", true));
  EXPECT_TRUE(reflector_->GetStats().fresh);
  EXPECT_THAT(Told(queue_), ElementsAre("-ns/c uc", "+ns/b ub@40"));
}

TEST_F(ReflectorTest, RefreshWakesTheConsumerThoughNothingHasChanged) {
  Synced();
  int woken = 0;
  queue_.SetWakeCallback([&woken] { ++woken; });
  reflector_->Refresh();
  const Id id = NextOpen();
  Accept(id);
  EXPECT_EQ(woken, 0);
  Send(id, absl::StrCat(WatchLine("ADDED", PodJson("a", "ua", "10")),
                        WatchLine("ADDED", PodJson("b", "ub", "20")),
                        WatchLine("ADDED", PodJson("c", "uc", "30")), BookmarkLine("41", true)));
  EXPECT_GT(woken, 0);
  EXPECT_THAT(Told(queue_), IsEmpty());
}

TEST_F(ReflectorTest, AWatchWithoutAnyAnswerIsNotWaitedForLong) {
  Id id = Synced();
  End(id);
  id = NextOpen();
  api_.Advance(options_.header_limit + absl::Seconds(1));
  EXPECT_NE(NextOpen(), id);
  EXPECT_THAT(LastPath(), HasSubstr("resourceVersion=30&")) << "no reason for a new snapshot";
}

TEST_F(ReflectorTest, SilenceIsADeadConnection) {
  Id id = Synced();
  api_.Advance(options_.silence_limit - absl::Seconds(1));
  Send(id, BookmarkLine("60"));  // a bookmark is a sign of life
  api_.Advance(options_.silence_limit - absl::Seconds(1));
  EXPECT_EQ(Open(), id);
  EXPECT_EQ(reflector_->GetStats().since_last_event, options_.silence_limit - absl::Seconds(1));
  api_.Advance(absl::Seconds(2));
  EXPECT_TRUE(api_.exchanges().front().cancelled);
  EXPECT_GE(reflector_->GetStats().down_for, options_.silence_limit) << "since its last word";
  EXPECT_TRUE(reflector_->GetStats().IsStale(absl::Minutes(1)));
  id = NextOpen();
  EXPECT_THAT(LastPath(), HasSubstr("resourceVersion=60&"));
  EXPECT_TRUE(reflector_->GetStats().IsStale(absl::Minutes(1))) << "the server has not answered";
  // A version from the future gives 200 and silence: the second time the version is not trusted any
  // more.
  Accept(id);
  api_.Advance(options_.silence_limit + absl::Seconds(1));
  NextOpen();
  EXPECT_THAT(LastPath(), HasSubstr("sendInitialEvents"));
}

TEST_F(ReflectorTest, TheStoreNeverGoesBackUnlessTheServerInsists) {
  const Id first = Synced();
  Send(first, WatchLine("ERROR", StatusJson(410, "Expired", "")));
  for (int i = 0; i < Reflector::kStaleSnapshotLimit; ++i) {
    const Id id = NextOpen();
    Accept(id);
    Send(id, WatchLine("ADDED", PodJson("a", "ua", "9")) + BookmarkLine("29", true));
    EXPECT_THAT(Told(queue_), IsEmpty());
    EXPECT_THAT(reflector_->GetStats().last_error, HasSubstr("older than version 30"));
  }
  const Id id = NextOpen();
  Accept(id);
  Send(id, WatchLine("ADDED", PodJson("a", "ua", "9")) + BookmarkLine("29", true));
  EXPECT_THAT(Told(queue_), ElementsAre("-ns/b ub", "-ns/c uc", "+ns/a ua@9"));
  Send(id, WatchLine("MODIFIED", PodJson("a", "ua", "30")));
  EXPECT_THAT(Told(queue_), ElementsAre("+ns/a ua@30"));
}

TEST_F(ReflectorTest, AStreamOfNonsenseIsLeftAndThenReplaced) {
  Id id = Synced();
  Send(id, WatchLine("MODIFIED", PodJson("a", "ua", "31")) + "{\"type\": nonsense\n");
  EXPECT_THAT(Told(queue_), ElementsAre("+ns/a ua@31")) << "what came before it counts";
  id = NextOpen();
  EXPECT_THAT(LastPath(), HasSubstr("resourceVersion=31&"));
  Accept(id);
  Send(id, "{\"type\": nonsense\n");
  NextOpen();
  EXPECT_THAT(LastPath(), HasSubstr("sendInitialEvents"));
}

TEST_F(ReflectorTest, AfterStopNothingIsToldAndNothingIsLeftOpen) {
  const Id id = Synced();
  api_.Data(id, WatchLine("MODIFIED", PodJson("a", "ua", "31")));  // on its way
  reflector_->Stop();
  api_.Pump();
  EXPECT_THAT(Told(queue_), IsEmpty());
  EXPECT_EQ(api_.open_count(), 0u);
  EXPECT_EQ(api_.timer_count(), 0u);
  reflector_.reset();
  api_.Advance(absl::Hours(1));
  EXPECT_EQ(api_.exchanges().size(), 1u);
}

TEST_F(ReflectorTest, DestroyedWithCallbacksOnTheirWay) {
  const Id id = Synced();
  api_.Data(id, WatchLine("MODIFIED", PodJson("a", "ua", "31")));
  api_.End(id);
  reflector_.reset();
  api_.Pump();
  EXPECT_THAT(Told(queue_), IsEmpty());
}

// The server is updated, or the RBAC rules are.
TEST(ReflectorOptionalKindTest, SaysWhenItIsMissingAndWhenItIsThere) {
  FakeClock clock(absl::UnixEpoch());
  FakeTransport api(clock);
  EventQueue queue;
  ServerFeatures features;
  ReflectorOptions options;
  options.kind = model::Kind::kResourceClaim;
  Reflector reflector(api, api, clock, queue, features, options);
  const auto told = [&] {
    std::vector<bool> missing;
    for (const model::ClusterEvent& event : DrainNow(queue)) {
      if (const auto* synced = std::get_if<model::Synced>(&event)) {
        missing.push_back(synced->missing);
      }
    }
    return missing;
  };
  const auto refuse = [&](int code) {
    const Id id = api.exchanges().back().id;
    api.Headers(id, code);
    api.Data(id, StatusJson(code, "x", "no"));
    api.End(id);
    api.Pump();
  };
  reflector.Start();
  api.Pump();
  refuse(403);
  EXPECT_THAT(told(), ElementsAre(true));
  api.Advance(options.missing_retry);
  refuse(404);
  EXPECT_THAT(told(), IsEmpty());
  api.Advance(options.missing_retry);
  const Id id = api.exchanges().back().id;
  api.Headers(id, 200);
  api.Data(id, BookmarkLine("5", true));
  api.Pump();
  EXPECT_THAT(told(), ElementsAre(false));
}

// Its objects still exist: a budget that cannot be read any more still protects its pods.
TEST_F(ReflectorTest, AnOptionalKindThatMayNoLongerBeReadIsStaleAndKeepsItsObjects) {
  Begin(model::Kind::kPodDisruptionBudget);
  Id id = Open();
  Accept(id);
  Send(id, WatchLine("ADDED", R"({"metadata":{"namespace":"ns","name":"b","uid":"ub",)"
                              R"("resourceVersion":"4"},"spec":{},"status":{}})"));
  Send(id, BookmarkLine("5", true));
  EXPECT_THAT(Told(queue_), ElementsAre("+ns/b ub@4", "synced"));
  End(id);
  for (int i = 0; i < 2 * Reflector::kMissingConfirmations; ++i) {
    Refuse(NextOpen(), 403, "Forbidden", "cannot watch");
  }
  EXPECT_THAT(reflector_->GetStats().last_error, HasSubstr("403"));
  api_.Advance(absl::Minutes(1));
  EXPECT_THAT(Told(queue_), IsEmpty());
  const ReflectorStats stats = reflector_->GetStats();
  EXPECT_FALSE(stats.missing);
  EXPECT_EQ(stats.objects, 1u);
  EXPECT_TRUE(stats.IsStale(absl::Minutes(1)));
  // A process that begins to lead does not wait for it for ever.
  reflector_->Refresh();
  EXPECT_FALSE(reflector_->GetStats().fresh);
  for (int i = 0; i < Reflector::kMissingConfirmations; ++i) {
    Refuse(NextOpen(), 403, "Forbidden", "cannot list");
  }
  EXPECT_TRUE(reflector_->GetStats().fresh);
  EXPECT_TRUE(reflector_->GetStats().IsStale(absl::Minutes(1)));
}

TEST(ClusterSourceTest, WatchesEveryKindAndSyncsWithoutTheCustomOnes) {
  FakeClock clock(absl::UnixEpoch());
  FakeTransport api(clock);
  EventQueue queue;
  ClusterSource source(api, api, clock, queue);
  source.Start();
  api.Pump();
  ASSERT_EQ(api.exchanges().size(), std::size(model::kAllKinds));
  for (const auto& exchange : api.exchanges()) {
    const bool pods = absl::StartsWith(exchange.request.path, "/api/v1/pods");
    EXPECT_EQ(pods,
              absl::StrContains(exchange.request.path, "fieldSelector=status.phase%21%3DFailed&"));
  }
  EXPECT_TRUE(absl::IsUnavailable(source.Health(absl::Minutes(5))));
  for (size_t i = 0; i < std::size(model::kAllKinds); ++i) {
    const FakeTransport::Exchange& exchange = api.exchanges()[i];
    if (absl::StartsWith(exchange.request.path, "/apis/scheduling.k8s.io/") ||
        absl::StartsWith(exchange.request.path, "/api/v1/")) {
      api.Headers(exchange.id, 200);
      api.Data(exchange.id, BookmarkLine("5", true));
    } else if (absl::StartsWith(exchange.request.path, "/apis/policy/")) {
      // RBAC rules from before budgets were read.
      api.Headers(exchange.id, 403);
      api.Data(exchange.id, StatusJson(403, "Forbidden", "cannot list poddisruptionbudgets"));
      api.End(exchange.id);
    } else {
      api.Headers(exchange.id, 404);
      api.Data(exchange.id, StatusJson(404, "NotFound", "no such resource"));
      api.End(exchange.id);
    }
  }
  api.Pump();
  EXPECT_TRUE(source.Synced());
  EXPECT_TRUE(source.Health(absl::Minutes(5)).ok()) << source.Health(absl::Minutes(5));
  EXPECT_EQ(Told(queue).size(), std::size(model::kAllKinds));
  source.Stop();
  EXPECT_EQ(api.timer_count(), 0u);
}

}  // namespace
}  // namespace fairlead::kube
