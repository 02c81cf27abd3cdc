#include "cmd/fairlead/inspect/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/json_writer.h"
#include "cmd/fairlead/inspect/test_views.h"
#include "scheduler/verdict/json.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::cmd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using State = Explanation::State;

const std::vector<std::string>& Names() {
  static const auto* const names = new std::vector<std::string>{"fairlead", "kai-scheduler"};
  return *names;
}

Snapshot SampleSnapshot() {
  Snapshot snapshot;
  snapshot.view = testing::SampleView();
  model::NodeRequest written;
  written.meta.name = "fl-1";
  written.instance_type = "g5.xlarge";
  written.zone = "us-east-1a";
  written.phase = model::NodeRequestPhase::kLaunched;
  snapshot.requests = {written};
  snapshot.plan.requests["fl-2"] = "g5.xlarge";
  return snapshot;
}

Json PodJson(absl::string_view ns, absl::string_view name, absl::string_view rest = "",
             absl::string_view scheduler = "fairlead", absl::string_view phase = "Pending") {
  return *Json::Parse(absl::StrCat(
      R"({"metadata":{"namespace":")", ns, R"(","name":")", name, R"(","labels":)",
      R"({"kai.scheduler/queue":"research"})", rest, R"(},"spec":{"schedulerName":")", scheduler,
      R"("},"status":{"phase":")", phase,
      R"(","conditions":[{"type":"PodScheduled","status":"False","reason":"QueueLimitReached",)",
      R"("message":"as written","lastTransitionTime":"2026-03-02T09:00:00Z"}]}})"));
}

absl::StatusOr<Explanation> ExplainPod(const std::string& key_ns, const std::string& name, Json pod,
                                       const Snapshot& snapshot) {
  Live live;
  live.pod = std::move(pod);
  return Explain({Subject::Kind::kEither, key_ns, name}, live, snapshot, Names());
}

TEST(ParseSubjectTest, Forms) {
  EXPECT_EQ(ParseSubject("a", "ns")->kind, Subject::Kind::kEither);
  EXPECT_EQ(ParseSubject("pod/a", "ns")->kind, Subject::Kind::kPod);
  EXPECT_EQ(ParseSubject("podgroup/a", "")->kind, Subject::Kind::kPodGroup);
  EXPECT_EQ(ParseSubject("podgroup/a", "")->ns, "default");
  EXPECT_EQ(ParseSubject("queue/a", "")->kind, Subject::Kind::kQueue);
  EXPECT_EQ(ParseSubject("job/a", "")->kind, Subject::Kind::kJob);
  EXPECT_EQ(ParseSubject("deploy/a", "")->kind, Subject::Kind::kDeployment);
  for (const char* bad : {"", "pod/", "ns/a", "pod/ns/a", "node/a", "job/"}) {
    EXPECT_EQ(ParseSubject(bad, "").status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

// Users that wait may read their own pods, and nothing else.
TEST(ExplainTest, WithoutTheClusterTheRecordIsShown) {
  Live live;
  live.pod = PodJson("research", "sweep-09-0");
  const Subject subject = {Subject::Kind::kPod, "research", "sweep-09-0"};
  const absl::Time now = absl::FromUnixSeconds(1'772'442'060);  // 09:01
  auto e = ExplainRecorded(subject, live, Names(), now);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->state, State::kWaiting);
  const std::string text = ExplainText(*e);
  EXPECT_THAT(text, HasSubstr("Why         as written"));
  EXPECT_THAT(text, HasSubstr("Code        QueueLimitReached"));
  EXPECT_THAT(text, HasSubstr("Since       2026-03-02T09:00:00Z (1m)"));
  EXPECT_THAT(text, HasSubstr("Queue       research\n"));
  EXPECT_THAT(text, HasSubstr("fairlead-reader"));
  EXPECT_EQ(ExplainJson(*e).TextAt({"recorded", "reason"}), "QueueLimitReached");
  // The group's record is the whole verdict.
  live.group = *Json::Parse(R"({"metadata":{"name":"g"},"spec":{"queue":"research"},"status":)"
                            R"({"schedulability":{"code":"GangIncomplete","message":"of the gang",)"
                            R"("hash":"h"}}})");
  e = ExplainRecorded(subject, live, Names(), now);
  EXPECT_THAT(ExplainText(*e), HasSubstr("of the gang"));
  live = {};
  EXPECT_TRUE(absl::IsNotFound(ExplainRecorded(subject, live, Names(), now).status()));
  live.pod = PodJson("research", "sweep-09-0", "", "default-scheduler");
  EXPECT_EQ(ExplainRecorded(subject, live, Names(), now)->state, State::kNotOurs);
}

TEST(ExplainTest, APodOfAGuestThatNamesNoQueueIsNotFairleads) {
  state::StateOptions options;
  options.scheduler_names = {"fairlead", "team-scheduler"};
  options.guest_schedulers = {"team-scheduler"};
  Live live;
  EXPECT_EQ(SchedulerNamesFor(live, options), options.scheduler_names);
  live.pod = *Json::Parse(R"({"metadata":{"labels":{"kai.scheduler/queue":"q"}}})");
  EXPECT_EQ(SchedulerNamesFor(live, options), options.scheduler_names);
  live.pod = *Json::Parse(R"({"metadata":{"annotations":{"pod-group-name":"g"}}})");
  EXPECT_EQ(SchedulerNamesFor(live, options), options.scheduler_names);
  live.pod = *Json::Parse(R"({"metadata":{}})");
  EXPECT_EQ(SchedulerNamesFor(live, options), std::vector<std::string>{"fairlead"});
}

TEST(ExplainTest, AQueueStandsWithThoseAboveAndBelowIt) {
  const auto names = [](const std::string& queue) {
    std::vector<std::string> found;
    const auto view = QueueOnly(queue, SampleSnapshot().view);
    EXPECT_TRUE(view.ok()) << view.status();
    if (view.ok()) {
      for (const core::QueueRow& row : view->queues) found.push_back(row.name);
    }
    return found;
  };
  EXPECT_EQ(names("research"), (std::vector<std::string>{"gpu-platform", "research"}));
  EXPECT_THAT(names("gpu-platform"), ::testing::Contains("research"));
  EXPECT_EQ(names("gpu-platform").front(), "gpu-platform");
  EXPECT_EQ(QueueOnly("missing", SampleSnapshot().view).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ExplainTest, NothingHasThatName) {
  const auto pod = Explain({Subject::Kind::kPod, "ns", "a"}, {}, SampleSnapshot(), Names());
  EXPECT_EQ(pod.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(pod.status().message(), "there is no pod a in namespace ns");
  const auto either = Explain({Subject::Kind::kEither, "ns", "a"}, {}, SampleSnapshot(), Names());
  EXPECT_EQ(either.status().message(), "there is neither a pod nor a pod group a in namespace ns");
}

TEST(ExplainTest, WaitingAtALimit) {
  const auto e =
      ExplainPod("research", "sweep-09-0", PodJson("research", "sweep-09-0"), SampleSnapshot());
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->state, State::kWaiting);
  const std::string text = ExplainText(*e);
  EXPECT_THAT(text, HasSubstr("Queue       gpu-platform / research"));
  EXPECT_THAT(text, HasSubstr("reached its limit of 8 GPUs"));
  EXPECT_THAT(text, HasSubstr("QueueLimitReached (policy, resolved by QueueChange)"));
  EXPECT_THAT(text, Not(HasSubstr("Since"))) << "another verdict is on record";
  EXPECT_THAT(text, HasSubstr("1 in queue research, priority 50"));
  EXPECT_THAT(text, HasSubstr("1. raise the GPU limit of queue research to 9 [QueueChange]"));
  EXPECT_THAT(text, HasSubstr("2. wait until a pod of queue research ends [Time]"));
  EXPECT_THAT(text, HasSubstr("  gpu-platform  GPUs"));
  EXPECT_THAT(text, HasSubstr("    research"));
  EXPECT_THAT(text, HasSubstr("as written (differs"));
  EXPECT_FALSE(e->recorded.agrees);
}

TEST(ExplainTest, TheRecordAgrees) {
  const std::string annotation = verdict::ToJson(testing::LimitRow().verdict);
  const auto e = ExplainPod("research", "sweep-09-0",
                            PodJson("research", "sweep-09-0",
                                    absl::StrCat(R"(,"annotations":{"fairlead.dev/verdict":)",
                                                 JsonQuoted(annotation), "}")),
                            SampleSnapshot());
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_TRUE(e->recorded.agrees);
  EXPECT_THAT(ExplainText(*e), HasSubstr("matches the verdict on the pod"));
  EXPECT_THAT(ExplainText(*e), HasSubstr("Since       2026-03-02T09:00:00Z (1h)"));
  EXPECT_EQ(ExplainJson(*e).TextAt({"since"}), "2026-03-02T09:00:00Z");
}

TEST(ExplainTest, NothingRecordedAsksForAScheduler) {
  const auto e =
      ExplainPod("research", "sweep-09-0", *Json::Parse(R"({"spec":{"schedulerName":"fairlead"}})"),
                 SampleSnapshot());
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_THAT(ExplainText(*e), HasSubstr("Recorded    nothing yet"));
}

TEST(ExplainTest, AGangWaitsForNodes) {
  Live live;
  live.group = *Json::Parse(R"({"spec":{"queue":"production-inference"},"status":)"
                            R"({"schedulability":{"code":"NodesRequested","hash":"x"}}})");
  const auto e =
      Explain({Subject::Kind::kPodGroup, "serving", "chat"}, live, SampleSnapshot(), Names());
  ASSERT_TRUE(e.ok()) << e.status();
  const std::string text = ExplainText(*e);
  EXPECT_THAT(text, HasSubstr("Pod group   serving/chat"));
  EXPECT_THAT(text, HasSubstr("2 pods wait, 0 run, at least 2 must start together"));
  EXPECT_THAT(text, HasSubstr("Expected    2026-03-02T10:03:00Z"));
  EXPECT_THAT(text, HasSubstr("Insufficient nvidia.com/gpu"));
  EXPECT_THAT(text, HasSubstr("1 nvidia.com/gpu"));
  EXPECT_THAT(text, HasSubstr("fl-1          g5.xlarge  us-east-1a  Launched"));
  EXPECT_THAT(text, HasSubstr("to be ordered by the next decision"));

  const Json json = ExplainJson(*e);
  EXPECT_EQ(json.TextAt({"state"}), "Waiting");
  EXPECT_EQ(json.TextAt({"verdict", "code"}), "NodesRequested");
  EXPECT_EQ(json.TextAt({"recorded", "agrees"}), "false");
  EXPECT_EQ(json.Find("queuePath")->items().size(), 2u);
  EXPECT_EQ(json.Find("nodeRequests")->items()[1].TextAt({"written"}), "false");
}

TEST(ExplainTest, APodOfAGangShowsTheGangsRecord) {
  Live live;
  live.pod = PodJson("serving", "chat-0", R"(,"annotations":{"pod-group-name":"chat"})");
  live.group = *Json::Parse(absl::StrCat(R"({"status":{"schedulability":{"hash":")",
                                         verdict::Hash(testing::NodesRow().verdict), "\"}}}"));
  const auto e =
      Explain({Subject::Kind::kEither, "serving", "chat-0"}, live, SampleSnapshot(), Names());
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_FALSE(e->is_group);
  EXPECT_EQ(e->queue, "production-inference");
  EXPECT_TRUE(e->recorded.agrees);
  EXPECT_THAT(ExplainText(*e), HasSubstr("matches the verdict on the pod group"));
}

TEST(ExplainTest, Running) {
  const auto e =
      ExplainPod("research", "sweep-01-0", PodJson("research", "sweep-01-0"), SampleSnapshot());
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->state, State::kRunning);
  EXPECT_THAT(ExplainText(*e), HasSubstr("Running on node fl-3"));
  EXPECT_THAT(ExplainText(*e), Not(HasSubstr("Recorded")));
  EXPECT_EQ(ExplainJson(*e).TextAt({"node"}), "fl-3");
}

TEST(ExplainTest, WhoIsAheadIsNamed) {
  Snapshot snapshot = SampleSnapshot();
  core::WaitingRow own = snapshot.view.waiting[0];
  own.verdict.position = 7;
  snapshot.view.waiting[0].verdict.position = 7;
  // Rows may come in another order; a position of 0 is unknown; other queues do not count.
  for (const auto& [name, position, queue] :
       std::vector<std::tuple<std::string, int64_t, std::string>>{{"research/four", 4, "research"},
                                                                  {"research/two", 2, "research"},
                                                                  {"research/zero", 0, "research"},
                                                                  {"research/one", 1, "research"},
                                                                  {"research/nine", 9, "research"},
                                                                  {"serving/one", 1, "serving"},
                                                                  {"research/5", 5, "research"}}) {
    core::WaitingRow row = own;
    row.workload = name;
    row.pods = {name};
    row.queue = queue;
    row.verdict.position = position;
    snapshot.view.waiting.push_back(row);
  }
  const auto e = ExplainPod("research", "sweep-09-0", PodJson("research", "sweep-09-0"), snapshot);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_THAT(e->ahead, ::testing::ElementsAre("research/one", "research/two", "research/four"));
  EXPECT_THAT(ExplainText(*e),
              HasSubstr("Ahead       research/one, research/two, research/four and 3 more"));
  EXPECT_EQ(ExplainJson(*e).Find("ahead")->items().size(), 3u);
}

TEST(ExplainTest, ItWouldBePlacedNow) {
  Snapshot snapshot = SampleSnapshot();
  snapshot.plan.bind["research/new"] = "cpu-1";
  const auto e = ExplainPod("research", "new", PodJson("research", "new"), snapshot);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->state, State::kPlaceable);
  EXPECT_THAT(ExplainText(*e), HasSubstr("the next decision places it on node cpu-1"));
  EXPECT_EQ(ExplainJson(*e).TextAt({"wouldRunOn"}), "cpu-1");
}

TEST(ExplainTest, OfAnotherScheduler) {
  const auto e =
      ExplainPod("x", "web", PodJson("x", "web", "", "default-scheduler"), SampleSnapshot());
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->state, State::kNotOurs);
  EXPECT_THAT(ExplainText(*e), HasSubstr("spec.schedulerName is \"default-scheduler\""));
}

TEST(ExplainTest, Finished) {
  const auto e =
      ExplainPod("x", "job", PodJson("x", "job", "", "fairlead", "Succeeded"), SampleSnapshot());
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->state, State::kFinished);
  EXPECT_THAT(ExplainText(*e), HasSubstr("finished (Succeeded)"));
}

TEST(ExplainTest, AQueueThatIsNotThere) {
  Snapshot snapshot = SampleSnapshot();
  snapshot.view.queues.clear();
  const auto e = ExplainPod("research", "sweep-09-0", PodJson("research", "sweep-09-0"), snapshot);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_THAT(ExplainText(*e), HasSubstr("research (does not exist)"));
}

TEST(ExplainTest, ForeignTextDoesNotReachTheTerminal) {
  const auto e =
      ExplainPod("x", "evil", PodJson("x", "evil", "", "a\\u001b[2Jb"), SampleSnapshot());
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_THAT(ExplainText(*e), Not(HasSubstr("\x1b")));
}

// A circle among queues must not hang the command.
TEST(ExplainTest, ACircleOfQueuesEnds) {
  Snapshot snapshot = SampleSnapshot();
  snapshot.view.queues[0].parent = "research";
  const auto e = ExplainPod("research", "sweep-09-0", PodJson("research", "sweep-09-0"), snapshot);
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_LE(e->queue_path.size(), snapshot.view.queues.size());
}

}  // namespace
}  // namespace fairlead::cmd
