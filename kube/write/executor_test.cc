// Order, pauses, fencing and the end of the executor; write_protocol_test.cc tests the results of
// single writes.
#include "kube/write/executor.h"

#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/write/executor_testing.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST_F(ExecutorTest, AConditionThatAnotherSchedulerWroteMeanwhileStays) {
  const std::string path = "/apis/scheduling.run.ai/v2alpha2/namespaces/ns/podgroups/g";
  const auto group = [](const char* theirs) {
    return Reply::Json(200, absl::StrCat(R"({"metadata":{"name":"g","uid":"gu"},"spec":{},)"
                                         R"("status":{"schedulingConditions":[)",
                                         theirs, "]}}"));
  };
  const Reply refused = ErrorReply(422, "Invalid", "the server rejected our request");
  api_.On("PATCH", path + "/status", kOk);
  api_.On("PATCH", path + "/status", refused, 2);
  api_.On("GET", path, group(R"({"nodePool":"a","x":2})"));
  api_.On("GET", path, group(R"({"nodePool":"a","x":1})"), 1);
  Submit(model::SetPodGroupSchedulability{"ns", "g", "gu", "{}", "R", "m"});
  EXPECT_TRUE(Answer().ok());
  EXPECT_EQ(Requests(), (std::vector<std::string>{"PATCH status", "GET g", "PATCH status", "GET g",
                                                  "PATCH status"}));
  const std::string& body = api_.Sent("PATCH", path + "/status").at(2)->request.body;
  EXPECT_THAT(body, HasSubstr(R"("value":[{"nodePool":"a","x":2}]})"));
  EXPECT_THAT(body, HasSubstr(R"("value":[{"nodePool":"a","x":2},{"type":)"));
}

// The default time-out is longer than the lease's margin.
TEST_F(ExecutorTest, NoRequestOutlivesTheLease) {
  absl::Duration left = absl::Seconds(60);
  options_.time_left = [&left] { return left; };
  api_.On("POST", "*", Reply::Hold());
  Create();
  Submit(Bind("a"));
  api_.Pump();
  EXPECT_EQ(api_.exchanges().back().request.timeout, options_.request_timeout);
  left = absl::Seconds(4.5);
  Submit(Bind("b"));
  api_.Pump();
  EXPECT_EQ(api_.exchanges().back().request.timeout, absl::Seconds(4.5));
}

TEST_F(ExecutorTest, TheTaintsOfOthersStay) {
  const std::string theirs = R"({"key":"nvidia.com/gpu","value":"x","effect":"NoExecute"})";
  // Equal key, another effect: another taint.
  const std::string near =
      R"({"key":"fairlead.dev/to-be-removed","value":"v","effect":"NoExecute"})";
  api_.On("GET", kNodePath, Reply::Json(200, NodeJson("41", theirs + "," + near)));
  api_.On("PATCH", kNodePath, kOk);
  Submit(Taint(true));
  EXPECT_TRUE(Answer().ok());
  const std::string& body = api_.Sent("PATCH", kNodePath).at(0)->request.body;
  EXPECT_THAT(body, HasSubstr("\"resourceVersion\":\"41\""));
  EXPECT_THAT(body, HasSubstr("nvidia.com/gpu"));
  EXPECT_THAT(body, HasSubstr("NoExecute"));
  EXPECT_THAT(body, HasSubstr("\"NoSchedule\""));
}

TEST_F(ExecutorTest, RetryAfterPausesAllWrites) {
  api_.On("POST", kBindPath, ErrorReply(429, "TooManyRequests", "x", absl::Seconds(4)), 1);
  api_.On("POST", "/api/v1/namespaces/ns/pods/other/binding", kCreated);
  Submit(Bind());
  api_.Pump();
  Submit(Bind("other"));
  EXPECT_EQ(executor_->GetStats().window, 50) << "halved";
  EXPECT_THAT(Told(queue_), ElementsAre("1 ABORTED"));
  api_.Advance(absl::Seconds(3));
  EXPECT_EQ(api_.exchanges().size(), 1u);
  EXPECT_THAT(Told(queue_), IsEmpty());
  Settle();
  EXPECT_THAT(Told(queue_), ElementsAre("2 OK"));
  EXPECT_EQ(api_.exchanges().at(1).sent_at, absl::Seconds(4));
}

// The node may be cordoned by then, or the verdict another one.
TEST_F(ExecutorTest, ABindingOrAVerdictThatWaitedForLongIsNotSent) {
  options_.window.start = options_.window.min = options_.window.max = 1;
  Submit(Bind("busy"));  // hangs
  Submit(Unschedulable());
  Submit(Bind("late"));
  Submit(Event());  // only the executor repeats it
  api_.Advance(kQueuedFor);
  Submit(Bind("new"));
  api_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(Told(queue_), IsEmpty());
  api_.When([](const HttpRequest&) { return true; }, [](const HttpRequest&) { return kOk; });
  api_.Respond(api_.exchanges().back().id, kOk.response);
  Settle();
  EXPECT_THAT(Told(queue_),
              UnorderedElementsAre("1 OK", "3 CANCELLED", "4 OK", "5 OK", "2 CANCELLED"));
  EXPECT_THAT(Requests(), ElementsAre("POST binding", "POST binding", "POST events"));
  EXPECT_EQ(executor_->GetStats().expired, 2);
  EXPECT_TRUE(executor_->Idle());
}

TEST_F(ExecutorTest, ABudgetsNoDoesNotSlowOthersDown) {
  api_.On("POST", kEvictPath, ErrorReply(429, "TooManyRequests", "budget", absl::Seconds(10)));
  Submit(Evict());
  api_.Pump();
  EXPECT_EQ(executor_->GetStats().window, 100);
  api_.On("POST", "/api/v1/namespaces/ns/pods/other/binding", kCreated);
  Submit(Bind("other"));
  api_.Pump();
  EXPECT_THAT(Told(queue_), ElementsAre("1 RESOURCE_EXHAUSTED", "2 OK"));
}

// The core looks again whether they are wanted, and whether it still sees the cluster.
TEST_F(ExecutorTest, WhatTheCoreRepeatsIsAttemptedOnce) {
  api_.On("POST", kBindPath, ErrorReply(503, "ServiceUnavailable", "x"));
  api_.On("PATCH", kStatusPath, Lost());
  api_.On("POST", kEvictPath, ErrorReply(500, "InternalError", "etcd"));
  Submit(Bind());
  EXPECT_TRUE(absl::IsUnavailable(Answer()));
  Submit(Unschedulable());
  EXPECT_TRUE(absl::IsUnavailable(Answer()));
  api_.On("GET", kNodePath, ErrorReply(429, "TooManyRequests", "x", absl::Seconds(1)));
  Submit(Evict());
  EXPECT_TRUE(absl::IsUnavailable(Answer()));
  Submit(Taint(true));
  EXPECT_TRUE(absl::IsAborted(Answer()));
  api_.On("PATCH", "/api/v1/persistentvolumes/v", ErrorReply(500, "InternalError", "etcd"));
  Submit(model::BindVolume{"v", "u1", "7", "ns", "c", "u2"});
  EXPECT_TRUE(absl::IsUnavailable(Answer()));
  api_.On("PATCH", "/api/v1/namespaces/ns/persistentvolumeclaims/c", Lost());
  Submit(model::SelectVolumeNode{"ns", "c", "u2", "8", "n1"});
  EXPECT_TRUE(absl::IsUnavailable(Answer()));
  api_.On("PATCH", "/api/v1/namespaces/ns/configmaps/m", ErrorReply(500, "InternalError", "etcd"));
  Submit(ConfigMap());
  EXPECT_TRUE(absl::IsUnavailable(Answer()));
  api_.Advance(absl::Hours(1));
  EXPECT_THAT(Requests(), ElementsAre("POST binding", "PATCH status", "POST eviction", "GET n1",
                                      "PATCH v", "PATCH c", HasSubstr("PATCH m")));
  EXPECT_EQ(executor_->GetStats().retries, 0);
}

// Behind Retry-After, a full window, or another write of its object.
TEST_F(ExecutorTest, AnEvictionThatCannotBeSentIsAnsweredBeforeItIsOutOfDate) {
  options_.window.start = options_.window.min = options_.window.max = 1;
  Submit(Unschedulable());  // hangs
  Submit(Evict());
  Submit(Taint(true));
  model::CreateNodeRequest create;
  create.request.Own().meta.name = "r1";
  Submit(create);
  api_.Advance(kFreshFor - absl::Milliseconds(1));
  EXPECT_THAT(Told(queue_), IsEmpty());
  api_.Advance(absl::Milliseconds(1));
  EXPECT_THAT(Told(queue_), ElementsAre("2 UNAVAILABLE", "3 ABORTED", "4 UNAVAILABLE"));
  EXPECT_EQ(executor_->GetStats().expired, 3);
  api_.Respond(api_.exchanges().back().id, kOk.response);
  Settle();
  EXPECT_THAT(Told(queue_), ElementsAre("1 OK"));
  EXPECT_THAT(Requests(), ElementsAre("PATCH status"));
  EXPECT_TRUE(executor_->Idle());
  api_.On("PATCH", kStatusPath, ErrorReply(429, "TooManyRequests", "x", absl::Seconds(9)), 1);
  Submit(Unschedulable());
  api_.Pump();
  Submit(Evict());
  api_.Advance(kFreshFor);
  EXPECT_THAT(Told(queue_), ElementsAre("5 ABORTED", "6 UNAVAILABLE"));
}

TEST_F(ExecutorTest, RetriesBackOff) {
  options_.event_attempts = 10;
  api_.On("POST", "*", Lost());
  Submit(Event());
  Settle();
  absl::Duration step = options_.backoff_initial;
  for (size_t i = 1; i < api_.exchanges().size(); ++i) {
    const absl::Duration gap = api_.exchanges()[i].sent_at - api_.exchanges()[i - 1].sent_at;
    EXPECT_GE(gap, step / 2);
    EXPECT_LT(gap, step);
    step = std::min(2 * step, options_.backoff_max);
  }
  EXPECT_EQ(api_.exchanges().size(), 10u);
}

// The first attempt may have been carried out, whatever the answer to its repetition is.
TEST_F(ExecutorTest, ARefusalAfterALostAnswerIsNotCertain) {
  api_.On("POST", "*", ErrorReply(403, "Forbidden", "no longer"));
  api_.On("POST", "*", Lost(), 1);
  Submit(Event());
  EXPECT_TRUE(absl::IsUnavailable(Answer()));
  Submit(Event("q"));
  EXPECT_TRUE(absl::IsPermissionDenied(Answer()));
}

// ---- order
// -----------------------------------------------------------------------------------------

TEST_F(ExecutorTest, OneObjectOneWriteAtATimeInOrder) {
  Submit(Unschedulable("p", "first"));  // on the wire at once
  Submit(Bind());
  Submit(Evict());
  Submit(Unschedulable("p", "second"));
  api_.Pump();
  EXPECT_THAT(Requests(), ElementsAre("PATCH status"));
  api_.On("PATCH", kStatusPath, kOk);
  api_.On("POST", kBindPath, kCreated);
  api_.On("POST", kEvictPath, kCreated);
  api_.Respond(api_.exchanges().back().id, Reply::Json(500, "").response);
  Settle();
  EXPECT_THAT(Requests(), ElementsAre("PATCH status", "POST binding", "POST eviction",
                                      "PATCH status", "PATCH status"));
  EXPECT_THAT(Told(queue_), ElementsAre("1 UNAVAILABLE", "2 OK", "3 OK", "4 OK"));
}

TEST_F(ExecutorTest, ARetryLetsNoWriteOfItsObjectOvertake) {
  Submit(Event());
  model::EmitEvent next = Event();
  next.note = "on n2";
  Submit(next);
  api_.Respond(api_.exchanges().front().id, Reply::Json(500, "").response);
  api_.Pump();
  EXPECT_THAT(Requests(), ElementsAre("POST events"));
  api_.On("POST", "*", kCreated);
  Settle();
  EXPECT_THAT(Requests(), ElementsAre("POST events", "POST events", "POST events"));
  EXPECT_THAT(Told(queue_), ElementsAre("1 OK", "2 OK"));
}

TEST_F(ExecutorTest, ANewerStatusReplacesAQueuedOne) {
  Submit(Unschedulable("p", "first"));
  Submit(Unschedulable("p", "second"));
  EXPECT_THAT(Told(queue_), IsEmpty()) << "the first is on the wire";
  Submit(Unschedulable("p", "third"));
  EXPECT_THAT(Told(queue_), ElementsAre("2 OK"));
  api_.On("PATCH", kStatusPath, kOk);
  Settle();
  EXPECT_THAT(Told(queue_), ElementsAre("1 OK", "3 OK"));
  EXPECT_EQ(api_.exchanges().size(), 2u);
  EXPECT_THAT(api_.exchanges()[1].request.body, HasSubstr("third"));
  EXPECT_EQ(executor_->GetStats().replaced, 1);
}

TEST_F(ExecutorTest, ABindingTakesTheQueuedStatusOfItsPodOut) {
  Submit(Unschedulable("p", "first"));  // on the wire at once
  Submit(Unschedulable("p", "second"));
  Submit(Bind());
  // Not OK: it was not written, and the binding may be refused.
  EXPECT_THAT(Told(queue_), ElementsAre("2 CANCELLED"));
  api_.On("PATCH", kStatusPath, kOk);
  api_.On("POST", kBindPath, kCreated);
  Settle();
  EXPECT_THAT(Requests(), ElementsAre("PATCH status", "POST binding"));
  EXPECT_THAT(Told(queue_), ElementsAre("1 OK", "3 OK"));
}

TEST_F(ExecutorTest, TheMostUrgentGoesFirstAndTakesWhatIsBeforeItAlong) {
  options_.window.start = options_.window.min = options_.window.max = 1;
  Submit(Event("busy"));  // takes the one place
  Submit(Event("e"));
  Submit(Unschedulable("s"));
  model::CreateNodeRequest create;
  create.request.Own().meta.name = "r1";
  Submit(create);
  Submit(Unschedulable("p"));  // before the eviction of the same pod
  Submit(Evict());
  Submit(Bind("b"));
  api_.When([](const HttpRequest&) { return true; }, [](const HttpRequest&) { return kOk; });
  Settle();
  std::vector<std::string> paths;
  for (const auto& exchange : api_.exchanges()) paths.push_back(exchange.request.path);
  EXPECT_THAT(paths,
              ElementsAre(HasSubstr("/events"), HasSubstr("/b/binding"), HasSubstr("/p/status"),
                          HasSubstr("/p/eviction"), HasSubstr("/noderequests"),
                          HasSubstr("/s/status"), HasSubstr("/events"), HasSubstr("/p/status")));
  EXPECT_EQ(executor_->GetStats().answered[1], 1) << "an eviction, and not an event";
}

TEST_F(ExecutorTest, LowerLanesLeaveRoomForBindings) {
  for (int i = 0; i < 100; ++i) Submit(Event(absl::StrCat("e", i)));
  EXPECT_EQ(executor_->GetStats().in_flight, 50);
  for (int i = 0; i < 100; ++i) Submit(Unschedulable(absl::StrCat("s", i)));
  EXPECT_EQ(executor_->GetStats().in_flight, 75);
  for (int i = 0; i < 100; ++i) Submit(Bind(absl::StrCat("b", i)));
  EXPECT_EQ(executor_->GetStats().in_flight, 100);
  EXPECT_EQ(executor_->GetStats().queued[0], 100u);
}

TEST_F(ExecutorTest, EventsAreShedAndEverythingElseIsNot) {
  options_.max_queued_events = 5;
  for (int i = 0; i < 8; ++i) {
    model::EmitEvent event = Event();
    event.note = absl::StrCat("note ", i);
    Submit(event);
  }
  EXPECT_THAT(Told(queue_),
              ElementsAre("6 RESOURCE_EXHAUSTED", "7 RESOURCE_EXHAUSTED", "8 RESOURCE_EXHAUSTED"));
  EXPECT_EQ(executor_->GetStats().shed, 3);
  for (int i = 0; i < 8; ++i) Submit(Bind(absl::StrCat("b", i)));
  EXPECT_THAT(Told(queue_), IsEmpty());
}

// ---- fencing, provider, shutting down
// --------------------------------------------------------------

TEST_F(ExecutorTest, NothingIsWrittenWithoutLeadership) {
  bool leader = true;
  Create([&] { return leader; });
  Submit(Bind());   // 1: on the wire
  Submit(Evict());  // 2: queued behind it
  Submit(Event());  // 3: waits for a retry with an unknown outcome
  api_.Fail(api_.exchanges().back().id, absl::UnavailableError("reset"));
  api_.Pump();
  leader = false;
  executor_->Poke();
  EXPECT_THAT(Told(queue_), ElementsAre("2 ABORTED", "3 UNAVAILABLE"));
  Submit(Bind("new"));
  EXPECT_THAT(Told(queue_), ElementsAre("4 ABORTED"));
  api_.Respond(api_.exchanges().front().id, Reply::Json(500, "").response);
  api_.Pump();
  EXPECT_THAT(Told(queue_), ElementsAre("1 UNAVAILABLE"));
  api_.Advance(absl::Minutes(5));
  EXPECT_EQ(api_.exchanges().size(), 2u);
  EXPECT_TRUE(executor_->Idle());
  leader = true;
  api_.On("POST", kBindPath, kCreated);
  Submit(Bind());
  Settle();
  EXPECT_THAT(Told(queue_), ElementsAre("5 OK"));
}

TEST_F(ExecutorTest, ATimerAfterTheLossAnswersInsteadOfWriting) {
  bool leader = true;
  Create([&] { return leader; });
  api_.On("POST", "*", ErrorReply(429, "TooManyRequests", "x"));
  Submit(Event());
  api_.Pump();
  leader = false;
  api_.Advance(absl::Minutes(1));
  EXPECT_THAT(Told(queue_), ElementsAre("1 ABORTED"));
  EXPECT_EQ(api_.exchanges().size(), 1u);
}

TEST_F(ExecutorTest, NodesComeFromTheProvider) {
  model::LaunchNode launch;
  launch.request.Own().meta.name = "r1";
  Submit(launch);
  EXPECT_THAT(Told(queue_), ElementsAre("1 UNIMPLEMENTED"));
  std::vector<uint64_t> asked;
  bool leader = true;
  Create([&] { return leader; }, [&](const model::Action& action) { asked.push_back(action.id); });
  Submit(launch);
  Submit(model::TerminateNode{"r1", "kwok", "n1", "id"});
  EXPECT_THAT(asked, ElementsAre(2, 3));
  EXPECT_THAT(Told(queue_), IsEmpty()) << "the provider answers";
  leader = false;
  Submit(launch);
  EXPECT_EQ(asked.size(), 2u);
  EXPECT_THAT(Told(queue_), ElementsAre("4 ABORTED"));
  EXPECT_THAT(api_.exchanges(), IsEmpty());
}

TEST_F(ExecutorTest, DrainLetsWorkEndAndTakesNoMore) {
  Submit(Bind());
  Submit(Unschedulable());
  executor_->BeginDrain();
  Submit(Bind("late"));
  EXPECT_THAT(Told(queue_), ElementsAre("3 ABORTED"));
  api_.On("POST", kBindPath, kCreated);
  api_.On("PATCH", kStatusPath, kOk);
  Settle();
  EXPECT_THAT(Told(queue_), ElementsAre("1 OK", "2 OK"));
  EXPECT_TRUE(executor_->Drain(absl::ZeroDuration()));
}

TEST_F(ExecutorTest, DrainAnswersWhatIsLeft) {
  Submit(Bind());
  Submit(Unschedulable());
  EXPECT_FALSE(executor_->Drain(absl::ZeroDuration()));
  EXPECT_THAT(Told(queue_), ElementsAre("1 UNAVAILABLE", "2 ABORTED"));
  api_.Respond(api_.exchanges().front().id, kCreated.response);
  api_.Pump();
  EXPECT_THAT(Told(queue_), IsEmpty()) << "one answer an action";
}

// An eviction whose condition is left, an event that waits for its retry, a binding on the wire.
TEST_F(ExecutorTest, WhatIsAbandonedEndsWithTheRequestsOnTheWire) {
  api_.On("POST", kEvictPath, kCreated);
  api_.On("PATCH", kStatusPath, Reply::Hold());
  Submit(Evict());
  Submit(Event("other"));
  Submit(Bind("wire"));
  api_.Pump();
  api_.Fail(api_.exchanges()[1].id, absl::UnavailableError("reset"));
  api_.Pump();
  executor_->Abandon();
  EXPECT_THAT(Told(queue_), ElementsAre("1 OK", "2 UNAVAILABLE"));
  EXPECT_FALSE(executor_->Idle());
  const size_t sent = api_.exchanges().size();
  api_.Respond(api_.exchanges()[2].id, Reply::Json(500, "").response);
  api_.Advance(options_.request_timeout);
  EXPECT_TRUE(executor_->Idle());
  EXPECT_THAT(Told(queue_), ElementsAre("3 UNAVAILABLE"));
  EXPECT_EQ(api_.exchanges().size(), sent) << "nothing more is sent";
  EXPECT_TRUE(executor_->Drain(absl::ZeroDuration()));
}

TEST_F(ExecutorTest, DestroyedWithAnswersOnTheirWay) {
  Submit(Bind());
  executor_.reset();
  EXPECT_THAT(Told(queue_), ElementsAre("1 UNAVAILABLE"));
  api_.On("POST", kBindPath, kCreated);
  api_.Advance(absl::Hours(1));
  EXPECT_THAT(Told(queue_), IsEmpty());
}

TEST_F(ExecutorTest, CountsWhatItDoes) {
  api_.On("POST", kBindPath, ErrorReply(409, "Conflict", "x"));
  PodIs("u1", "n1");
  Submit(Bind());
  Settle();
  const ExecutorStats stats = executor_->GetStats();
  EXPECT_EQ(stats.requests_by_verb.at("POST"), 1);
  EXPECT_EQ(stats.requests_by_verb.at("GET"), 1);
  EXPECT_EQ(stats.answered[0], 1);
  EXPECT_EQ(stats.failed[0], 0);
  EXPECT_EQ(stats.request_latency.total(), 2);
  EXPECT_EQ(stats.action_latency.total(), 1);
  LatencyHistogram histogram;
  histogram.Add(absl::Microseconds(999));
  histogram.Add(absl::Milliseconds(1));
  histogram.Add(absl::Milliseconds(3));
  histogram.Add(absl::Hours(1));
  EXPECT_EQ(histogram.counts[0], 1);
  EXPECT_EQ(histogram.counts[1], 1);
  EXPECT_EQ(histogram.counts[2], 1);
  EXPECT_EQ(histogram.counts[LatencyHistogram::kBuckets - 1], 1);
}

// Random actions against a server that fails at random. Every action is answered exactly once, no
// two writes to one object are open together, and each object's first requests come in the order of
// submission.
TEST_F(ExecutorTest, EveryActionIsAnsweredOnceWhateverHappens) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    FakeClock clock(absl::UnixEpoch());
    FakeTransport api(clock);
    EventQueue queue;
    uint64_t draws = 0;
    const auto draw = [&](uint64_t n) { return JitterBits(seed, draws++) % n; };
    bool leader = true;
    ExecutorOptions options;
    options.max_queued_events = 8;
    Executor executor(api, api, clock, queue, options, nullptr, [&] { return leader; });
    api.When([](const HttpRequest&) { return true; },
             [&](const HttpRequest& request) -> Reply {
               switch (draw(9)) {
                 case 0:
                   return Lost();
                 case 1:
                   return ErrorReply(429, "TooManyRequests", "x", absl::Seconds(draw(3)));
                 case 2:
                   return ErrorReply(500, "InternalError", "x");
                 case 3:
                   return ErrorReply(409, "Conflict", "x");
                 case 4:
                   return Reply::Hold();  // times out
                 case 5:
                   return ErrorReply(404, "NotFound", "x");
                 default:
                   if (request.method == "GET" && absl::StrContains(request.path, "/nodes/")) {
                     return Reply::Json(200, NodeJson("7", ""));
                   }
                   return request.method == "GET"
                              ? Reply::Json(200, PodJson("p", "u1", "9", draw(2) ? "n1" : ""))
                              : kOk;
               }
             });
    std::map<uint64_t, int> answers;
    const auto collect = [&] {
      for (const auto& event : DrainNow(queue)) {
        ++answers[std::get<model::ActionResult>(event).action_id];
      }
    };
    uint64_t id = 0;
    for (int i = 0; i < 200; ++i) {
      const std::string name = absl::StrCat("p", draw(5));
      model::Action action;
      action.id = ++id;
      switch (draw(5)) {
        case 0:
          action.what = Bind(name);
          break;
        case 1:
          action.what = Unschedulable(name);
          break;
        case 2:
          action.what = Event(name);
          break;
        case 3:
          action.what = Taint(draw(2) == 0);
          break;
        default: {
          model::EvictPod evict = Evict();
          evict.name = name;
          action.what = evict;
        }
      }
      executor.Submit(std::move(action));
      if (draw(20) == 0) leader = !leader;
      if (draw(2) == 0) api.Advance(absl::Milliseconds(draw(3000)));
      std::map<std::string, int> open_by_object;
      for (const auto& exchange : api.exchanges()) {
        if (exchange.done || absl::StrContains(exchange.request.path, "/events")) continue;
        std::vector<std::string> parts = absl::StrSplit(exchange.request.path, '/');
        const bool pod = parts.size() > 6;
        EXPECT_EQ(++open_by_object[pod ? parts[6] : parts.back()], 1) << exchange.request.path;
      }
      collect();
    }
    api.Advance(absl::Hours(1));
    collect();
    EXPECT_TRUE(executor.Idle());
    EXPECT_EQ(answers.size(), id);
    for (const auto& [action, count] : answers) EXPECT_EQ(count, 1) << action;
    EXPECT_EQ(executor.GetStats().in_flight, 0);
  }
}

}  // namespace
}  // namespace fairlead::kube
