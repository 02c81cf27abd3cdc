#include "kube/watch/reflector.h"

#include "absl/strings/str_cat.h"
#include "kube/transport/backoff.h"
#include "kube/watch/reflector_testing.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::ReflectorTest;
using Id = FakeTransport::Id;

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

}  // namespace
}  // namespace fairlead::kube
