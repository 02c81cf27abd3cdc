#include "cmd/fairlead/app/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cmd/fairlead/app/app_testing.h"
#include "queues/usage_record.h"

namespace fairlead::cmd::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(AppTest, TheLeaderBindsOnce) {
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_EQ(Bindings(), 1u);
  EXPECT_THAT(log_, HasSubstr("msg=\"became leader\" identity=me"));
  EXPECT_THAT(log_, HasSubstr("msg=decision cycle="));
  EXPECT_THAT(log_, HasSubstr("bound=1"));
}

TEST_F(AppTest, WithoutElectionItWritesAtOnce) {
  options_.leader_election.enabled = false;
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(1)));
  EXPECT_EQ(Bindings(), 1u);
  EXPECT_TRUE(transport_.Sent("GET", kLease).empty());
}

TEST_F(AppTest, AStandbyWritesNothing) {
  HeldByAnother();
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(5)));
  for (const auto& exchange : transport_.exchanges()) {
    EXPECT_EQ(exchange.request.method, "GET") << exchange.request.path;
  }
  EXPECT_THAT(log_, HasSubstr("msg=synced")) << "but it is ready";
}

TEST_F(AppTest, AStandbyTakesOverAndBinds) {
  HeldByAnother();  // and never renews
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(30)));
  EXPECT_EQ(Bindings(), 1u);
}

// Of a write that is answered while the process ends.
TEST_F(AppTest, TheLastAnswerIsTold) {
  constexpr char kBinding[] = "/api/v1/namespaces/ns/pods/p/binding";
  options_.drain_timeout = absl::Seconds(20);
  transport_.On("POST", kBinding, Reply::Hold());
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  app_->Stop();
  EXPECT_FALSE(app_->Turn(absl::ZeroDuration()));
  ASSERT_TRUE(app_->EndTurn(absl::ZeroDuration()));
  const auto open = transport_.FindOpen("POST", kBinding);
  ASSERT_TRUE(open.has_value());
  transport_.Respond(*open, Reply::Json(404, R"({"kind":"Status","code":404})").response);
  transport_.Pump();
  app_->EndTurn(absl::ZeroDuration());
  EXPECT_THAT(log_, HasSubstr("msg=\"action failed\" action=\"bind ns/p to n1\""));
}

TEST_F(AppTest, LostLeadershipEndsItWithAnError) {
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  transport_.On("PATCH", kLease, Reply::Json(409, R"({"kind":"Status","code":409})"));
  transport_.On("GET", kLease, Reply::Json(200, LeaseOf("other", "9")));
  EXPECT_FALSE(Pass(absl::Seconds(30)));
  const size_t sent = transport_.exchanges().size();
  const absl::Status status = app_->End();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("leadership was lost"));
  EXPECT_EQ(transport_.exchanges().size(), sent) << "nothing more was written";
}

TEST_F(AppTest, StopGivesTheLeaseBack) {
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  app_->Stop();
  EXPECT_FALSE(app_->Turn(absl::Hours(1)));
  const size_t before = transport_.Sent("PATCH", kLease).size();
  EXPECT_TRUE(app_->End().ok());
  transport_.Pump();
  const auto patches = transport_.Sent("PATCH", kLease);
  ASSERT_EQ(patches.size(), before + 1);
  EXPECT_THAT(patches.back()->request.body, HasSubstr(R"("holderIdentity":"")"));
}

// The server may still do it: the next leader has to wait until the lease expires.
TEST_F(AppTest, TheLeaseIsNotGivenBackWhileAWriteIsUnanswered) {
  transport_.On("POST", "/api/v1/namespaces/ns/pods/p/binding", Reply::Hold());
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  ASSERT_EQ(Bindings(), 1u);
  app_->Stop();
  EXPECT_FALSE(app_->Turn(absl::Hours(1)));
  const size_t before = transport_.Sent("PATCH", kLease).size();
  EXPECT_TRUE(app_->End().ok());
  transport_.Advance(absl::Minutes(1));
  EXPECT_EQ(transport_.Sent("PATCH", kLease).size(), before) << "neither released nor renewed";
  EXPECT_THAT(log_, HasSubstr("the lease is not released"));
}

TEST_F(AppTest, ANodeIsBoughtAndCreatedWhenItHasBooted) {
  transport_.On("GET", "/api/v1/pods", Reply::Json(200, Pods("16")));
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(4)));
  EXPECT_EQ(transport_.Sent("POST", kRequests).size(), 1u);
  EXPECT_EQ(NodesCreated(), 0u) << "it boots for five seconds";
  EXPECT_TRUE(Pass(absl::Seconds(8)));
  ASSERT_EQ(NodesCreated(), 1u);
  EXPECT_THAT(transport_.Sent("POST", "/api/v1/nodes")[0]->request.body,
              HasSubstr(R"("kwok.x-k8s.io/node":"fake")"));
}

// A NodeRequest that a standby knows as Pending, and no other node.
class TakeoverTest : public AppTest {
 protected:
  TakeoverTest() {
    HeldByAnother();
    transport_.On("GET", "/api/v1/nodes",
                  Reply::Json(200, R"({"metadata":{"resourceVersion":"1"},"items":[]})"));
    Listed("1", "Pending");
  }
  static std::string Request(absl::string_view version, absl::string_view phase) {
    return absl::StrCat(
        R"({"apiVersion":"fairlead.dev/v1alpha1","kind":"NodeRequest","metadata":{"name":"fl-1",)",
        R"("uid":"u-1","resourceVersion":")", version,
        R"(","creationTimestamp":"2026-03-02T00:00:00Z"},"spec":{"provider":"kwok",)",
        R"("instanceType":"g5.xlarge","zone":"us-east-1a"},"status":{"phase":")", phase, R"("}})");
  }
  // Sets the server's version of it from now on.
  void Listed(absl::string_view version, absl::string_view phase) {
    transport_.On("GET", kRequests,
                  Reply::Json(200, absl::StrCat(R"({"metadata":{"resourceVersion":")", version,
                                                R"("},"items":[)", Request(version, phase), "]}")));
    ServeWatches();
  }
  void ExpectTakeoverWithoutLaunchingItAgain() {
    EXPECT_TRUE(Pass(absl::Seconds(40)));
    EXPECT_THAT(log_, HasSubstr("msg=\"became leader\""));
    EXPECT_GT(NodesCreated(), 0u) << "the pod needs a node";
    for (const auto* exchange : transport_.Sent("POST", "/api/v1/nodes")) {
      EXPECT_THAT(exchange->request.body, Not(HasSubstr("fl-1\"")))
          << "a node that was given back was launched again";
    }
  }
};

// The former leader updates a request that this process already knew.
TEST_F(TakeoverTest, TheLatestStatusOfRequestsCounts) {
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  const auto watch = transport_.FindOpen("GET", kRequests);
  ASSERT_TRUE(watch.has_value());
  Listed("2", "Gone");
  transport_.Data(*watch,
                  absl::StrCat(R"({"type":"MODIFIED","object":)", Request("2", "Gone"), "}\n"));
  ExpectTakeoverWithoutLaunchingItAgain();
}

// The watch is behind: the former leader's last write has not come yet.
TEST_F(TakeoverTest, ANewLeaderReadsBeforeItDecides) {
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  Listed("2", "Gone");
  ExpectTakeoverWithoutLaunchingItAgain();
}

TEST_F(TakeoverTest, ANewLeaderThatCannotReadDecidesNothing) {
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  transport_.On("GET", kRequests, Reply::Json(503, R"({"kind":"Status","code":503})"));
  EXPECT_TRUE(Pass(absl::Seconds(40)));
  EXPECT_THAT(log_, HasSubstr("msg=\"became leader\""));
  EXPECT_THAT(log_, Not(HasSubstr("msg=decision")));
  EXPECT_TRUE(transport_.Sent("POST", "*").empty());
  Listed("2", "Gone");
  EXPECT_TRUE(Pass(absl::Seconds(40)));
  EXPECT_THAT(log_, HasSubstr("msg=decision"));
}

TEST_F(AppTest, AWatchThatFailsIsToldAndThenStale) {
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  transport_.On("GET", "/api/v1/pods",
                Reply::Json(403, R"({"kind":"Status","code":403,"message":"no"})"));
  transport_.End(*transport_.FindOpen("GET", "/api/v1/pods"));
  EXPECT_TRUE(Pass(absl::Seconds(20)));
  EXPECT_THAT(log_, HasSubstr("msg=\"watch fails; it will be retried\" kind=Pod"));
  EXPECT_THAT(log_, HasSubstr("403"));
  EXPECT_THAT(log_, Not(HasSubstr("out of date")));
  EXPECT_TRUE(Pass(absl::Seconds(60)));
  EXPECT_THAT(log_, HasSubstr("level=error msg=\"objects may be out of date; nothing is evicted, "
                              "provisioned or removed\" kind=Pod"));
  for (const kube::ReflectorStats& kind : app_->GetStats().kinds) {
    EXPECT_EQ(kind.IsStale(options_.stale_after), kind.kind == model::Kind::kPod);
  }
  transport_.On("GET", "/api/v1/pods", Reply::Json(200, Pods("1")));
  ServeWatches();
  EXPECT_TRUE(Pass(absl::Seconds(40)));
  EXPECT_THAT(log_, HasSubstr("msg=\"watch works again\" kind=Pod"));
}

// A blocked standard error was sufficient to keep the lease for ever.
TEST_F(AppTest, AKindThatBecomesMissingIsTold) {
  constexpr char kGroups[] = "/apis/scheduling.run.ai/v2alpha2/podgroups";
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_THAT(log_, Not(HasSubstr("kind is not installed")));
  transport_.On("GET", kGroups, Reply::Json(404, R"({"kind":"Status","code":404})"));
  transport_.End(*transport_.FindOpen("GET", kGroups));
  EXPECT_TRUE(Pass(absl::Seconds(20)));
  constexpr char kTold[] = "msg=\"kind is not installed, or may not be read; it counts as empty\"";
  EXPECT_THAT(log_, HasSubstr(absl::StrCat(kTold, " kind=PodGroup")));
  transport_.On("GET", kGroups,
                Reply::Json(200, R"({"metadata":{"resourceVersion":"9"},"items":[]})"));
  ServeWatches();
  EXPECT_TRUE(Pass(absl::Seconds(70)));
  EXPECT_THAT(log_, HasSubstr("msg=\"kind is installed\" kind=PodGroup"));
}

TEST_F(AppTest, AHungOwnerLosesTheLease) {
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_TRUE(app_->Alive());
  transport_.Advance(options_.hang_limit + absl::Seconds(3));  // and no Turn
  EXPECT_FALSE(app_->Alive());
  EXPECT_TRUE(app_->GetStats().leader);
  const size_t renewals = transport_.Sent("PATCH", kLease).size();
  transport_.Advance(options_.leader_election.times.lease_duration);
  EXPECT_EQ(transport_.Sent("PATCH", kLease).size(), renewals);
  EXPECT_FALSE(app_->GetStats().leader);
  EXPECT_GT(app_->GetStats().lease.withheld, 0);
  EXPECT_FALSE(app_->Turn(absl::ZeroDuration())) << "when it goes on, it has lost";
}

// Takes 20 s for each event, and asks meanwhile whether the owner is alive.
struct SlowReader final : AppObserver {
  void OnEvent(const model::ClusterEvent& /*event*/) override {
    ++events;
    alive = app->Alive() && alive;
    clock->Advance(absl::Seconds(20));
  }
  FakeClock* clock = nullptr;
  Application* app = nullptr;
  int events = 0;
  bool alive = true;
};

TEST_F(AppTest, AnOwnerThatReadsOneEventAfterAnotherDoesNotHang) {
  SlowReader reader;
  reader.clock = &clock_;
  observer_ = &reader;
  Begin();
  reader.app = app_.get();
  transport_.Pump();
  app_->Turn(absl::ZeroDuration());
  ASSERT_GE(reader.events, 3) << "of one turn";
  EXPECT_TRUE(reader.alive);
}

// A refused binding is retried after seconds, not after the clock has caught up.
TEST_F(AppTest, AWallClockSetBackStopsNoTimer) {
  const std::string binding = "/api/v1/namespaces/ns/pods/p/binding";
  transport_.On("POST", binding, Reply::Json(500, R"({"kind":"Status","code":500})"));
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(1)));
  const size_t before = Bindings();
  ASSERT_GE(before, 1u);
  clock_.SetWallOffset(-absl::Hours(1));
  EXPECT_TRUE(Pass(absl::Seconds(60)));
  EXPECT_GT(Bindings(), before);
  EXPECT_LT(app_->UntilWake(), absl::Minutes(5));
}

TEST_F(AppTest, AnIdleOwnerAnswersWheneverItIsAsked) {
  Begin();
  ASSERT_TRUE(Pass(absl::Minutes(3)));
  EXPECT_TRUE(app_->GetStats().leader);
  EXPECT_EQ(app_->GetStats().lease.withheld, 0);
}

TEST_F(AppTest, NoWriteOutlivesTheLease) {
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  const auto sent = transport_.Sent("POST", "/api/v1/namespaces/ns/pods/p/binding");
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_LT(sent[0]->request.timeout, options_.leader_election.times.lease_duration);
  EXPECT_GT(sent[0]->request.timeout, absl::Seconds(5));
}

TEST_F(AppTest, ANewConfigurationTakesEffectWithoutGivingTheLeaseUp) {
  options_.core.state.scheduler_names = {"another"};
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_EQ(Bindings(), 0u);
  EXPECT_TRUE(app_->Reconfigure(core::KwokOptions(), nullptr).ok());
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_THAT(log_, HasSubstr("new configuration in effect"));
  EXPECT_EQ(Bindings(), 1u);
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_EQ(Bindings(), 1u) << "once";
  EXPECT_EQ(app_->GetStats().lease.gains, 1);
}

// The answer to a binding may be the only message that says where the pod is.
TEST_F(AppTest, ANewConfigurationWaitsForWhatIsUnderWay) {
  transport_.On("POST", "/api/v1/namespaces/ns/pods/p/binding", Reply::Hold());
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  ASSERT_EQ(Bindings(), 1u);
  options_.drain_timeout = absl::Seconds(20);
  EXPECT_TRUE(app_->Reconfigure(core::KwokOptions(), nullptr).ok());
  const auto binding = transport_.FindOpen("POST", "/api/v1/namespaces/ns/pods/p/binding");
  ASSERT_TRUE(binding.has_value());
  transport_.Respond(*binding, Reply::Json(201, "{}").response);
  transport_.On("GET", "/api/v1/pods",
                Reply::Json(200, R"({"metadata":{"resourceVersion":"9"},"items":[]})"));
  EXPECT_TRUE(Pass(absl::Seconds(5)));
  EXPECT_THAT(log_, HasSubstr("new configuration in effect"));
  EXPECT_THAT(log_, Not(HasSubstr("not every write was answered")));
  EXPECT_EQ(Bindings(), 1u);
}

// What is read while a write is on the wire may not show it.
TEST_F(AppTest, ANewConfigurationWaitsForWhatIsOnTheWireBeyondItsDeadline) {
  transport_.On("POST", "/api/v1/namespaces/ns/pods/p/binding", Reply::Hold());
  Begin();
  ASSERT_TRUE(Pass(absl::Seconds(3)));
  ASSERT_EQ(Bindings(), 1u);
  EXPECT_TRUE(app_->Reconfigure(core::KwokOptions(), nullptr).ok());  // its deadline is now
  const size_t lists = transport_.Sent("GET", "/api/v1/pods").size();
  EXPECT_TRUE(Pass(absl::Seconds(5)));
  EXPECT_EQ(transport_.Sent("GET", "/api/v1/pods").size(), lists);
  EXPECT_THAT(log_, HasSubstr("writes were given up"));
  EXPECT_THAT(log_, Not(HasSubstr("new configuration in effect")));
  EXPECT_TRUE(Pass(absl::Seconds(15))) << "the time-out of the request";
  EXPECT_THAT(log_, HasSubstr("new configuration in effect"));
}

// ---- usage of queues

constexpr char kUsageMap[] = "/api/v1/namespaces/fairlead/configmaps/fairlead-usage";

class UsageTest : public AppTest {
 protected:
  UsageTest() {
    options_.core.engine.usage.emplace();
    transport_.On("GET", kUsageMap, Reply::Json(404, R"({"kind":"Status","code":404})"));
  }
  // The last written text.
  std::string Stored() const {
    const auto sent = transport_.Sent("PATCH", kUsageMap);
    if (sent.empty()) return "";
    return Json::Parse(sent.back()->request.body)->TextAt({"data", "usage"});
  }
  static std::string MapWith(absl::string_view text) {
    Json map = Json::Object();
    Json data = Json::Object();
    data.Set("usage", text).Set("note", "of another program");
    return map.Set("data", data).Compact();
  }
};

TEST_F(UsageTest, ItIsReadOnceAndWrittenOnceAMinute) {
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_EQ(Bindings(), 1u);
  EXPECT_EQ(transport_.Sent("GET", kUsageMap).size(), 1u);
  EXPECT_THAT(log_, HasSubstr("history=\"none yet\""));
  EXPECT_THAT(Stored(), HasSubstr("fairlead-usage/1:"));
  EXPECT_TRUE(Pass(absl::Seconds(200)));
  EXPECT_EQ(transport_.Sent("PATCH", kUsageMap).size(), 4u);
}

TEST_F(UsageTest, WhatIsStoredGoesOn) {
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(130)));
  const std::string text = Stored();
  app_.reset();
  log_.clear();
  transport_.On("GET", kUsageMap, Reply::Json(200, MapWith(text)));
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_THAT(log_, HasSubstr("history=read"));
  const auto restored = queues::UsageRecord::Decode(Stored(), *options_.core.engine.usage);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(restored->cell_count(),
            queues::UsageRecord::Decode(text, *options_.core.engine.usage)->cell_count());
}

TEST_F(UsageTest, WhatCannotBeReadIsToldAndRecordedAnew) {
  transport_.On("GET", kUsageMap, Reply::Json(200, MapWith("fairlead-usage/9:new")));
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_THAT(log_, HasSubstr("usage of queues could not be read; recording starts again"));
  EXPECT_THAT(log_, HasSubstr("version"));
  EXPECT_EQ(Bindings(), 1u);
  EXPECT_THAT(Stored(), HasSubstr("fairlead-usage/1:"));
  // Nothing but our key is written.
  EXPECT_THAT(transport_.Sent("PATCH", kUsageMap).back()->request.body, Not(HasSubstr("note")));
}

TEST_F(UsageTest, AServerThatDoesNotAnswerDelaysDecisionsAndLosesNothing) {
  transport_.On("GET", kUsageMap, Reply::Json(503, R"({"kind":"Status","code":503})"));
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_EQ(Bindings(), 0u);
  EXPECT_TRUE(Pass(absl::Seconds(4)));
  EXPECT_EQ(Bindings(), 1u);
  EXPECT_TRUE(Pass(absl::Seconds(120)));
  EXPECT_EQ(Stored(), "") << "what is there could not be read, and must not be replaced";
  EXPECT_GT(transport_.Sent("GET", kUsageMap).size(), 5u);
  transport_.On("GET", kUsageMap, Reply::Json(404, R"({"kind":"Status","code":404})"));
  EXPECT_TRUE(Pass(absl::Seconds(90)));
  EXPECT_THAT(Stored(), HasSubstr("fairlead-usage/1:"));
}

TEST_F(UsageTest, AStandbyNeitherReadsNorWrites) {
  HeldByAnother();
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(5)));
  EXPECT_TRUE(transport_.Sent("GET", kUsageMap).empty());
  EXPECT_EQ(Stored(), "");
}

// ---- usage reported by Prometheus

constexpr char kPrometheus[] = "/api/v1/query";

class PrometheusTest : public AppTest {
 protected:
  PrometheusTest() {
    prometheus::QueryOptions queries;
    queries.usage.reported = true;
    options_.core.engine.usage = queries.usage;
    options_.usage_queries = *prometheus::Queries::Create(queries);
    usage_database_ = &transport_;
    Say("2");
  }
  // Every query answers: the default queue held so much of 8.
  void Say(const std::string& held) {
    transport_.On("GET", kPrometheus, [held](const kube::HttpRequest& request) {
      const bool capacity = absl::StrContains(request.path, "capacity");
      return Reply::Json(
          200, absl::StrCat(R"({"status":"success","data":{"resultType":"vector","result":[)",
                            R"({"metric":{"queue_name":"default-queue"},"value":[1,")",
                            capacity ? "8" : held, R"("]}]}})"));
    });
  }
  size_t asked() const { return transport_.Sent("GET", kPrometheus).size(); }
};

TEST_F(PrometheusTest, WithoutADatabaseItDoesNotStart) {
  Application app({&transport_, &transport_, &clock_}, options_, &hook::Catalog::BuiltIn(),
                  &logger_);
  EXPECT_TRUE(absl::IsInvalidArgument(app.Begin()));
}

TEST_F(PrometheusTest, ItIsAskedOnceAMinuteAndNothingIsStored) {
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_EQ(Bindings(), 1u);
  EXPECT_EQ(asked(), 6u);
  EXPECT_THAT(log_, Not(HasSubstr("without history")));
  EXPECT_TRUE(Pass(absl::Seconds(120)));
  EXPECT_EQ(asked(), 18u);
  EXPECT_TRUE(transport_.Sent("GET", kUsageMap).empty());
  EXPECT_TRUE(transport_.Sent("PATCH", kUsageMap).empty());
}

TEST_F(PrometheusTest, SilenceDelaysTheFirstDecisionForTheWaitTimeout) {
  options_.usage_wait_timeout = absl::Seconds(5);
  transport_.On("GET", kPrometheus, Reply::Hold());
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_EQ(Bindings(), 0u);
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  EXPECT_EQ(Bindings(), 1u);
  EXPECT_THAT(log_, HasSubstr("fair shares are divided without history"));
  EXPECT_TRUE(Pass(absl::Seconds(6)));
  EXPECT_THAT(log_, HasSubstr("usage of queues could not be fetched"));
}

TEST_F(PrometheusTest, BadAnswersAreToldAndWhatIsKnownStandsUntilItIsStale) {
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(3)));
  Say("NaN");
  EXPECT_TRUE(Pass(absl::Seconds(120)));
  EXPECT_THAT(log_, HasSubstr("queue default-queue: \\\"NaN\\\" is no number"));
  EXPECT_THAT(log_, Not(HasSubstr("without history"))) << "for five minutes";
  EXPECT_TRUE(Pass(absl::Seconds(240)));
  EXPECT_THAT(log_, HasSubstr("fair shares are divided without history"));
  EXPECT_THAT(log_, HasSubstr("the last report is 5m old"));
  Say("2");
  EXPECT_TRUE(Pass(absl::Seconds(70)));
  EXPECT_THAT(log_, HasSubstr("fair shares are divided with history again"));
}

TEST_F(PrometheusTest, AStandbyKnowsAlready) {
  HeldByAnother();
  Begin();
  EXPECT_TRUE(Pass(absl::Seconds(5)));
  EXPECT_EQ(asked(), 6u);
  EXPECT_EQ(Bindings(), 0u);
}

}  // namespace
}  // namespace fairlead::cmd::testing
