// What a reflector does with servers that list otherwise, and with kinds that they lack.
#include "absl/strings/str_cat.h"
#include "kube/watch/reflector_testing.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ReflectorTest;
using Id = FakeTransport::Id;

constexpr char kPods[] = "/api/v1/pods?fieldSelector=status.phase%21%3DFailed";

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

}  // namespace
}  // namespace fairlead::kube
