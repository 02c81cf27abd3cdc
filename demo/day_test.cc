#include "demo/day.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "autoscale-hook/provisioning/failure.h"
#include "cmd/fairlead/inspect/test_views.h"
#include "demo/day_clock.h"
#include "demo/day_cloud.h"
#include "demo/day_manifests.h"
#include "demo/day_objects.h"
#include "demo/day_watcher.h"
#include "document/yaml.h"
#include "kube/transport/fake_transport.h"

namespace fairlead::demo {
namespace {

using kube::FakeTransport;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Reply = FakeTransport::Reply;

// ---- time
// ------------------------------------------------------------------------------------------

TEST(DayClockTest, EveryInstantOfAViewIsMoved) {
  DayClock clock{cmd::testing::At(0), absl::FromUnixSeconds(0), 60};
  core::View view = cmd::testing::SampleView();
  view.at = cmd::testing::At(10);
  view.waiting[1].verdict.until = absl::InfiniteFuture();
  const core::View moved = clock.ToScenario(view);
  EXPECT_EQ(moved.at, absl::FromUnixSeconds(10 * 60 * 60));
  EXPECT_EQ(*moved.nodes[3].unneeded_since, absl::FromUnixSeconds(597 * 3600));
  EXPECT_EQ(moved.waiting[0].since, absl::FromUnixSeconds(540 * 3600));
  EXPECT_EQ(*moved.waiting[1].verdict.expected_at, absl::FromUnixSeconds(603 * 3600));
  EXPECT_EQ(*moved.waiting[1].verdict.until, absl::InfiniteFuture());
  EXPECT_THAT(moved.waiting[1].message, HasSubstr("1970-01-26"))
      << "the message tells the same time";
  EXPECT_EQ(clock.ToReal(moved.at), view.at);
}

TEST(DayClockTest, TimeOutsKeepAFloor) {
  hook::HookOptions options;
  const hook::HookOptions fast = Accelerated(options, 3600);
  EXPECT_EQ(fast.expected_boot, options.expected_boot / 3600);
  EXPECT_GE(fast.launch_timeout, absl::Seconds(1));
  EXPECT_GT(fast.unneeded_after, absl::ZeroDuration());
  EXPECT_LE(fast.backoff_initial, fast.backoff_max);
  const hook::HookOptions same = Accelerated(options, 1);
  EXPECT_EQ(same.unneeded_after, options.unneeded_after);
  EXPECT_EQ(same.ready_timeout, options.ready_timeout);
}

// ---- manifests
// -------------------------------------------------------------------------------------

TEST(ScaleTimesTest, PodsTemplatesAndQueues) {
  Json job = *Json::Parse(
      R"({"kind":"Job","metadata":{"annotations":{"fairlead.dev/run-seconds":"7200","x":"7200"}},)"
      R"("spec":{"template":{"metadata":{"annotations":{"fairlead.dev/run-seconds":"90",)"
      R"("fairlead.dev/stop-seconds":"soon"}}}}})");
  ScaleTimes(job, 3600);
  EXPECT_EQ(job.Compact(),
            R"({"kind":"Job","metadata":{"annotations":{"fairlead.dev/run-seconds":"2.000",)"
            R"("x":"7200"}},"spec":{"template":{"metadata":{"annotations":)"
            R"({"fairlead.dev/run-seconds":"0.025","fairlead.dev/stop-seconds":"soon"}}}}})");
  Json queue = *Json::Parse(R"({"kind":"Queue","spec":{"reclaimMinRuntime":"4h","priority":1}})");
  ScaleTimes(queue, 3600);
  EXPECT_EQ(queue.TextAt({"spec", "reclaimMinRuntime"}), "5000ms");
}

class PlanTest : public ::testing::Test {
 protected:
  PlanTest() : folder_(std::filesystem::path(::testing::TempDir()) / "fairlead_day") {
    std::filesystem::create_directories(folder_ / "crds");
    scenario_.directory = folder_.string();
  }
  ~PlanTest() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  std::filesystem::path folder_;
  sim::Scenario scenario_;
};

TEST_F(PlanTest, NamesWhatItWillCreate) {
  Write("a.yaml",
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n---\n"
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: one, namespace: team}\n---\n"
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: two, namespace: other}\n");
  Write("crds/x.yaml", "kind: CustomResourceDefinition\nmetadata: {name: x}\n---\nkind: Other\n");
  Write("crds/readme.md", "no yaml: [");
  sim::ScenarioStep step;
  step.files = {"a.yaml"};
  scenario_.timeline = {step, step};  // applied twice, counted once
  const auto plan = PlanDay(scenario_, (folder_ / "crds").string(), 60);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(PlanText(*plan), "2 Job, namespaces other, team");
  EXPECT_EQ(plan->definitions.size(), 1u);
  EXPECT_EQ(plan->manifests.size(), 2u);

  const auto id = IdOfReference({"Job", "team/one"}, *plan);
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(id->api_version, "batch/v1");
  EXPECT_EQ(id->ns, "team");
  EXPECT_EQ(IdOfReference({"Queue", "q"}, *plan)->api_version, "scheduling.run.ai/v2");
  EXPECT_FALSE(IdOfReference({"Nope", "q"}, *plan).ok());
}

TEST_F(PlanTest, ADocumentWithoutANameIsRefusedWithItsFile) {
  Write("a.yaml", "apiVersion: v1\nkind: Pod\n");
  sim::ScenarioStep step;
  step.files = {"a.yaml"};
  scenario_.timeline = {step};
  const absl::Status status = PlanDay(scenario_, "", 60).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("/a.yaml: metadata.name is missing"));
  EXPECT_EQ(PlanDay(scenario_, "/nonesuch", 60).status().code(), absl::StatusCode::kNotFound);
}

// ---- writes
// -------------------------------------------------------------------------------

class DayObjectsTest : public ::testing::Test {
 protected:
  DayObjectsTest() {
    transport_.On("GET", "*", Reply::Json(404, "{}"));
    transport_.On("GET", "/api/v1",
                  Reply::Json(200, R"({"resources":[)"
                                   R"({"name":"pods","kind":"Pod","namespaced":true},)"
                                   R"({"name":"nodes","kind":"Node"},)"
                                   R"({"name":"namespaces","kind":"Namespace"}]})"));
    transport_.On("PATCH", "*", Reply::Json(201, "{}"));
    transport_.On("DELETE", "*", Reply::Json(200, "{}"));
    plan_.namespaces = {"team"};
    plan_.manifests = {{Pod("a")}};
  }
  static Json Pod(const std::string& name) {
    return *Json::Parse(absl::StrCat(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":")",
                                     name, R"(","namespace":"team"}})"));
  }
  std::vector<std::string> Deleted() const {
    std::vector<std::string> paths;
    for (const auto& exchange : transport_.exchanges()) {
      if (exchange.request.method == "DELETE") paths.push_back(exchange.request.path);
    }
    return paths;
  }
  FakeClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  FakeTransport transport_{clock_};
  cmd::ApiClient client_{&transport_};
  int sleeps_ = 0, pauses_ = 0;
  DayObjects objects_{&client_, [this](absl::Duration) { return ++sleeps_ < 1000; },
                      [this](absl::Duration) { ++pauses_; }};
  DayPlan plan_;
};

TEST_F(DayObjectsTest, NothingOfOthersIsOverwritten) {
  transport_.On("GET", "/api/v1/namespaces/team/pods/a", Reply::Json(200, "{}"));
  const absl::Status status = objects_.CheckFree(plan_);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Pod team/a is in the cluster already"));
  for (const auto& exchange : transport_.exchanges()) EXPECT_EQ(exchange.request.method, "GET");
}

TEST_F(DayObjectsTest, AKindThatIsNotInstalledIsSaidBeforeAnythingIsWritten) {
  plan_.manifests = {
      {*Json::Parse(R"({"apiVersion":"x.io/v1","kind":"Thing","metadata":{"name":"a"}})")}};
  const absl::Status status = objects_.CheckFree(plan_);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--crds"));
}

TEST_F(DayObjectsTest, CleanupDeletesWhatWasMadeHereAndNothingElse) {
  transport_.On("GET", "/api/v1/nodes",
                Reply::Json(200, R"({"items":[{"metadata":{"name":"old"}}]})"));
  ASSERT_TRUE(objects_.CheckFree(plan_).ok());
  ASSERT_TRUE(objects_.Prepare(plan_).ok());
  ASSERT_TRUE(objects_.Apply(plan_.manifests[0][0]).ok());
  transport_.On(
      "GET", "/api/v1/nodes",
      Reply::Json(200, R"({"items":[{"metadata":{"name":"old"}},)"
                       R"({"metadata":{"name":"bought"}},{"metadata":{"name":"joined"}}]})"));
  transport_.On(
      "GET", "/api/v1/nodes/bought",
      Reply::Json(200, R"({"metadata":{"labels":{"fairlead.dev/node-request":"bought"}}})"));
  transport_.On("GET", "/api/v1/nodes/joined", Reply::Json(200, R"({"metadata":{"labels":{}}})"));
  ASSERT_TRUE(objects_.Cleanup().ok());
  EXPECT_THAT(Deleted(), ElementsAre("/api/v1/namespaces/team/pods/a", "/api/v1/nodes/bought",
                                     "/api/v1/namespaces/team"));
}

TEST_F(DayObjectsTest, ANamespaceThatWasThereStays) {
  transport_.On("GET", "/api/v1/namespaces/team", Reply::Json(200, "{}"));
  ASSERT_TRUE(objects_.CheckFree(plan_).ok());
  ASSERT_TRUE(objects_.Prepare(plan_).ok());
  ASSERT_TRUE(objects_.Cleanup().ok());
  EXPECT_THAT(Deleted(), ElementsAre());
}

TEST_F(DayObjectsTest, ANamespaceThatIsGoingIsMadeAnew) {
  ASSERT_TRUE(objects_.CheckFree(plan_).ok());
  transport_.On("GET", "/api/v1/namespaces/team",
                Reply::Json(200, R"({"metadata":{"deletionTimestamp":"2026-03-02T00:00:00Z"}})"),
                /*times=*/3);
  ASSERT_TRUE(objects_.Prepare(plan_).ok());
  EXPECT_EQ(sleeps_, 3);
  EXPECT_EQ(transport_.Sent("PATCH", "/api/v1/namespaces/team").size(), 1u);
}

TEST_F(DayObjectsTest, CleanupEndsWhenTheNamespacesAreGone) {
  ASSERT_TRUE(objects_.CheckFree(plan_).ok());
  ASSERT_TRUE(objects_.Prepare(plan_).ok());
  transport_.On("GET", "/api/v1/namespaces/team", Reply::Json(200, "{}"), /*times=*/4);
  ASSERT_TRUE(objects_.Cleanup().ok());
  EXPECT_EQ(pauses_, 4);
}

TEST_F(DayObjectsTest, WaitsForTheServiceAccountOfANewNamespace) {
  ASSERT_TRUE(objects_.CheckFree(plan_).ok());
  transport_.On("PATCH", "/api/v1/namespaces/team/pods/a",
                Reply::Json(403, R"({"kind":"Status","apiVersion":"v1","code":403,"message":)"
                                 R"("error looking up service account team/default"})"),
                /*times=*/2);
  EXPECT_TRUE(objects_.Apply(plan_.manifests[0][0]).ok());
  EXPECT_EQ(sleeps_, 2);
  transport_.On("PATCH", "/api/v1/namespaces/team/pods/b",
                Reply::Json(403, R"({"kind":"Status","apiVersion":"v1","code":403,)"
                                 R"("message":"you may not"})"));
  EXPECT_EQ(objects_.Apply(Pod("b")).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(DayObjectsTest, CleanupGoesOnAfterAnError) {
  ASSERT_TRUE(objects_.CheckFree(plan_).ok());
  ASSERT_TRUE(objects_.Prepare(plan_).ok());
  ASSERT_TRUE(objects_.Apply(Pod("a")).ok());
  ASSERT_TRUE(objects_.Apply(Pod("b")).ok());
  transport_.On("DELETE", "/api/v1/namespaces/team/pods/b", Reply::Json(500, "{}"));
  EXPECT_FALSE(objects_.Cleanup().ok());
  EXPECT_THAT(Deleted(), ElementsAre("/api/v1/namespaces/team/pods/b",
                                     "/api/v1/namespaces/team/pods/a", "/api/v1/namespaces/team"));
}

// ---- faults
// ----------------------------------------------------------------------------------------

class Recording final : public hook::Provider, public hook::Scheduler {
 public:
  struct Calls {
    std::vector<std::string> launched, terminated;
  };
  explicit Recording(Calls* calls) : calls_(calls) {}
  [[nodiscard]] absl::string_view name() const override { return "kwok"; }
  void Start(hook::ProviderListener* /*listener*/) override {}
  void ReportAll() override {}
  void Launch(std::vector<hook::LaunchOrder> orders) override {
    for (const hook::LaunchOrder& order : orders) {
      calls_->launched.push_back(order.launch.request->meta.name);
      order.answer(absl::OkStatus());
    }
  }
  void Terminate(const model::TerminateNode& terminate, Answer answer) override {
    calls_->terminated.push_back(terminate.request_name);
    answer(absl::OkStatus());
  }
  void After(absl::Duration /*delay*/, std::function<void()> callback) override {
    timers.push_back(std::move(callback));
  }
  std::vector<std::function<void()>> timers;

 private:
  Calls* calls_;
};

class FaultyProviderTest : public ::testing::Test {
 protected:
  absl::Status Launch(const std::string& name) {
    model::LaunchNode launch;
    launch.request.Own().meta.name = name;
    launch.request.Own().instance_type = "g5.xlarge";
    launch.request.Own().zone = "a";
    absl::Status got = absl::UnknownError("no answer");
    provider_.Launch({{launch, [&](const absl::Status& status) { got = status; }}});
    return got;
  }
  void Terminate(const std::string& name) {
    model::TerminateNode terminate;
    terminate.request_name = name;
    provider_.Terminate(terminate, [](const absl::Status&) {});
  }
  absl::Time now_ = absl::FromUnixSeconds(100);
  Recording::Calls calls_;
  Recording timers_{&calls_};
  FaultyProvider provider_{std::make_unique<Recording>(&calls_), &timers_, [this] { return now_; },
                           absl::Seconds(1)};
};

TEST_F(FaultyProviderTest, SoldOutUntilItIsNot) {
  provider_.AddStockout("g5.xlarge", "a", absl::FromUnixSeconds(200));
  provider_.AddStockout("p5.48xlarge", "", absl::FromUnixSeconds(900));
  EXPECT_EQ(hook::ClassifyFailure(Launch("n1")), hook::FailureClass::kStockout);
  now_ = absl::FromUnixSeconds(200);
  EXPECT_TRUE(Launch("n1").ok());
  EXPECT_THAT(calls_.launched, ElementsAre("n1"));
}

TEST_F(FaultyProviderTest, ALostMachineIsAcceptedAndStaysLost) {
  provider_.LoseNextLaunches(1);
  EXPECT_TRUE(Launch("n1").ok());
  EXPECT_TRUE(Launch("n1").ok()) << "asked again it is still on its way";
  EXPECT_TRUE(Launch("n2").ok());
  EXPECT_THAT(calls_.launched, ElementsAre("n2"));
  Terminate("n1");
  EXPECT_THAT(calls_.terminated, ElementsAre("n1"));
}

TEST_F(FaultyProviderTest, ALateMachineComesUnlessItIsGivenUp) {
  provider_.DelayNextLaunches(2, 10);
  EXPECT_TRUE(Launch("n1").ok());
  EXPECT_TRUE(Launch("n2").ok());
  EXPECT_TRUE(calls_.launched.empty());
  Terminate("n2");
  for (const auto& timer : timers_.timers) timer();
  EXPECT_THAT(calls_.launched, ElementsAre("n1"));
}

// ---- expectations
// ----------------------------------------------------------------------------------

TEST(HoldsTest, ComparesWhatIsGiven) {
  const core::View view = cmd::testing::SampleView();
  sim::MomentCheck check;
  EXPECT_TRUE(Holds(check, view));
  check.nodes = {{"g5.xlarge", 3}};
  check.running = {{"research", 1}};
  check.waiting = sim::WaitCounts{{{"QueueLimitReached", "research"}, 1},
                                  {{"NodesRequested", "production-inference"}, 2}};
  EXPECT_TRUE(Holds(check, view));
  check.waiting->begin()->second = 7;
  EXPECT_FALSE(Holds(check, view));
  check.waiting.reset();
  check.nodes = {{"g5.xlarge", 2}};
  EXPECT_FALSE(Holds(check, view));
  check.nodes.reset();
  check.running = std::map<std::string, int64_t>{};
  EXPECT_FALSE(Holds(check, view));
}

TEST(DayStopTest, ARequestEndsEverySleep) {
  DayStop stop;
  EXPECT_TRUE(stop.SleepFor(absl::ZeroDuration()));
  bool called = false;
  stop.OnRequest([&] { called = true; });
  stop.Request();
  EXPECT_TRUE(called);
  EXPECT_TRUE(stop.requested());
  EXPECT_FALSE(stop.SleepFor(absl::Hours(1)));
}

}  // namespace
}  // namespace fairlead::demo
