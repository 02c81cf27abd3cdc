// A day is simulated and recorded; its journal is read again, and played with and without a change.
#include "cmd/fairlead/forecast/week_what_if.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/forecast/recorded_week.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "journal/recorder.h"
#include "journal/redaction_testing.h"
#include "scheduler/model/testing/builders.h"
#include "sim/simulator.h"

namespace fairlead::cmd {
namespace {

using model::testing::MakeQueue;
using ::testing::HasSubstr;

const absl::Time kStart = absl::FromUnixSeconds(1'772'409'600);

class WeekTest : public ::testing::Test {
 protected:
  static inline int64_t cluster_gpus_ = 0;  // of the cap of the hook; 0: none
  static core::Options Options() {
    core::Options options = core::KwokOptions();
    options.hook.provider = "kwok";
    if (cluster_gpus_ > 0) options.hook.cluster_gpu_limit = cluster_gpus_;
    return options;
  }
  ~WeekTest() override { cluster_gpus_ = 0; }

  static journal::ReadOptions Read() {
    return [](const journal::Start&) { return Options(); };
  }
  static sim::ScenarioStep& StepAt(sim::Scenario& scenario, absl::Duration at) {
    sim::ScenarioStep& step = scenario.timeline.emplace_back();
    step.at = at;
    step.files = {"test"};
    step.apply.emplace_back();
    return step;
  }
  // Six jobs of one GPU and half an hour each, in a queue that may have two GPUs.
  static sim::Scenario Day() {
    sim::Scenario scenario;
    scenario.start = kStart;
    scenario.end = kStart + absl::Hours(6);
    sim::Manifest& first = StepAt(scenario, absl::ZeroDuration()).apply[0];
    first.objects.emplace_back(MakeQueue("team", "", 2, 2));
    model::NodePool pool;
    pool.meta.name = "pool";
    pool.instance_types = {"g5.xlarge"};
    first.objects.emplace_back(pool);
    AddJobs(scenario, "team", 0, 6, absl::Minutes(10));
    return scenario;
  }
  static RecordedWeek Recorded(sim::Scenario scenario) {
    return WeekOf(Records(std::move(scenario)));
  }
  static std::vector<std::string> Records(sim::Scenario scenario) {
    std::vector<std::string> records;
    journal::Recorder recorder("test", [&](std::string record) { records.push_back(record); });
    sim::SimulatorOptions options;
    options.core = Options();
    options.inputs = &recorder;
    auto simulator = sim::Simulator::Make(std::move(scenario), options);
    EXPECT_TRUE(simulator.ok()) << simulator.status();
    EXPECT_TRUE((*simulator)->Run().ok());
    return records;
  }
  static RecordedWeek WeekOf(const std::vector<std::string>& records) {
    WeekReader reader(Read());
    for (const std::string& record : records) {
      const absl::Status taken = reader.Take(record);
      EXPECT_TRUE(taken.ok()) << taken;
    }
    absl::StatusOr<RecordedWeek> week = reader.Finish();
    EXPECT_TRUE(week.ok()) << week.status();
    return *std::move(week);
  }
  static WeekAnswer Ask(const RecordedWeek& week, Change change) {
    WeekQuestion question;
    question.week = &week;
    question.change = std::move(change);
    question.without_options = question.with_options = Options();
    question.without_catalog = question.with_catalog = hook::Catalog::BuiltIn();
    absl::StatusOr<WeekAnswer> answer = AskWeek(question);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return *std::move(answer);
  }
  // Without names of queues.
  static std::string SideText(const WeekSide& side) {
    std::string text = absl::StrCat(side.cost_micro_usd, " ", side.evictions);
    for (const auto& [type, count] : side.nodes) absl::StrAppend(&text, " ", type, " ", count);
    for (const auto& [code, count] : side.verdicts) absl::StrAppend(&text, " ", code, " ", count);
    for (const auto& [queue, totals] : side.queues) {
      absl::StrAppend(&text, " ", totals.started, " ", absl::FormatDuration(totals.wait));
    }
    return text;
  }
  static void AddJobs(sim::Scenario& scenario, const std::string& queue, int first, int count,
                      absl::Duration at) {
    for (int i = first; i < first + count; ++i) {
      sim::ControllerSpec spec;
      spec.kind = sim::ControllerKind::kJob;
      spec.ns = "ns";
      spec.name = absl::StrCat("w", i);
      model::Pod& pod = spec.pod_template;
      pod.meta.ns = pod.spec.ns = "ns";
      pod.scheduler_name = model::kDefaultSchedulerName;
      pod.meta.labels.Set(model::kQueueLabel, queue);
      pod.meta.annotations.Set(sim::kRunSecondsAnnotation, "1800");
      pod.spec.requests = {{"cpu", 1000}, {"memory", 1'000'000'000}, {"nvidia.com/gpu", 1000}};
      StepAt(scenario, at + absl::Minutes(i - first)).apply[0].controllers.push_back(spec);
    }
  }
  // Of two provisioned GPUs, which one queue has borrowed, the other takes its own back.
  static sim::Scenario DayWithEvictions() {
    cluster_gpus_ = 2;
    sim::Scenario scenario = Day();
    scenario.timeline.resize(1);
    scenario.timeline[0].apply[0].objects[0] = MakeQueue("team", "", 0, model::kUnlimited);
    scenario.timeline[0].apply[0].objects.emplace_back(MakeQueue("owner", "", 2, 2));
    AddJobs(scenario, "team", 0, 2, absl::Minutes(10));
    AddJobs(scenario, "owner", 2, 2, absl::Minutes(25));
    return scenario;
  }
  static Change WithQueue(int64_t gpus) {
    Change change;
    change.applied.objects.emplace_back(MakeQueue("team", "", gpus, gpus));
    change.origins = {"test"};
    return change;
  }
};

TEST_F(WeekTest, FindsWhatCameAndHowLongItRan) {
  const RecordedWeek week = Recorded(Day());
  ASSERT_EQ(week.jobs.size(), 6u);
  for (size_t i = 0; i < week.jobs.size(); ++i) {
    const RecordedJob& job = week.jobs[i];
    EXPECT_EQ(job.queue, "team");
    EXPECT_NEAR(absl::ToDoubleMinutes(job.arrived - kStart), 10.0 + static_cast<double>(i), 0.1);
    ASSERT_TRUE(job.ran.has_value());
    EXPECT_NEAR(absl::ToDoubleMinutes(*job.ran), 30, 6) << "with the boot of its node";
    EXPECT_TRUE(job.pod.node_name.empty());
  }
}

TEST_F(WeekTest, WithoutAChangeItIsAlmostAsItWas) {
  const RecordedWeek week = Recorded(Day());
  const WeekAnswer answer = Ask(week, {});
  const WeekTotals& recorded = answer.recorded.at("team");
  const WeekTotals& played = answer.without.queues.at("team");
  EXPECT_EQ(recorded.jobs, 6);
  EXPECT_EQ(played.started, 6);
  EXPECT_NEAR(absl::ToDoubleMinutes(played.MeanWait()), absl::ToDoubleMinutes(recorded.MeanWait()),
              10);
  EXPECT_EQ(WeekJson(answer).Find("without")->Compact(), WeekJson(answer).Find("with")->Compact());
}

TEST_F(WeekTest, AHigherLimitShortensTheWaitAndBuysMoreNodes) {
  const RecordedWeek week = Recorded(Day());
  const WeekAnswer answer = Ask(week, WithQueue(6));
  EXPECT_LT(answer.with.queues.at("team").MeanWait(), answer.without.queues.at("team").MeanWait());
  EXPECT_GT(answer.with.nodes.at("g5.xlarge"), answer.without.nodes.at("g5.xlarge"));
  EXPECT_GT(answer.without.verdicts.at("QueueLimitReached"), 0);
  EXPECT_FALSE(answer.with.verdicts.contains("QueueLimitReached"));
  EXPECT_NEAR(static_cast<double>(answer.with.queues.at("team").gpu_milli_seconds),
              static_cast<double>(answer.without.queues.at("team").gpu_milli_seconds), 3.6e6);
  EXPECT_GT(answer.with.queues.at("team").cost_micro_usd, 0);
  EXPECT_LE(answer.with.queues.at("team").cost_micro_usd, answer.with.cost_micro_usd);
  EXPECT_THAT(WeekText(answer), HasSubstr("applies Queue team"));
}

TEST_F(WeekTest, AChangeWinsOverLaterRecordedOnes) {
  sim::Scenario day = Day();
  StepAt(day, absl::Minutes(12)).apply[0].objects.emplace_back(MakeQueue("team", "", 1, 1));
  const RecordedWeek week = Recorded(std::move(day));
  const WeekAnswer answer = Ask(week, WithQueue(6));
  EXPECT_FALSE(answer.with.verdicts.contains("QueueLimitReached"));
}

TEST_F(WeekTest, WhatIsDeletedHasToBeThere) {
  const RecordedWeek week = Recorded(Day());
  WeekQuestion question;
  question.week = &week;
  question.change.removed = {{"Queue", "misspelt"}};
  question.without_options = question.with_options = Options();
  const absl::Status status = AskWeek(question).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("--delete Queue/misspelt: "));
}

TEST_F(WeekTest, AnEvictedPodAndTheOneInItsPlaceAreOneJob) {
  const RecordedWeek week = Recorded(DayWithEvictions());
  ASSERT_EQ(week.jobs.size(), 4u);
  int64_t evictions = 0;
  for (const RecordedJob& job : week.jobs) {
    evictions += job.evictions;
    EXPECT_NEAR(absl::ToDoubleMinutes(job.ran.value_or(absl::ZeroDuration())), 30, 6);
  }
  EXPECT_EQ(evictions, 2);
}

// What was evicted is known by playing the journal, with the names that were derived there.
TEST_F(WeekTest, ARedactedJournalHasTheSameEvictions) {
  const std::vector<std::string> records = Records(DayWithEvictions());
  journal::RecordsInMemory files({&records});
  ASSERT_TRUE(journal::Redact({Read(), {}}, files).ok());
  const RecordedWeek original = WeekOf(records), redacted = WeekOf(files.redacted().front());
  ASSERT_EQ(original.jobs.size(), redacted.jobs.size());
  for (size_t i = 0; i < original.jobs.size(); ++i) {
    EXPECT_EQ(original.jobs[i].evictions, redacted.jobs[i].evictions) << i;
    EXPECT_EQ(original.jobs[i].ran, redacted.jobs[i].ran) << i;
  }
}

// A redacted journal has the same workload.
TEST_F(WeekTest, ARedactedWeekIsPlayedAsTheOriginal) {
  std::vector<std::string> records = Records(Day());
  journal::RecordsInMemory files({&records});
  ASSERT_TRUE(journal::Redact({Read(), {}}, files).ok());
  const WeekAnswer original = Ask(WeekOf(records), {}),
                   redacted = Ask(WeekOf(files.redacted().front()), {});
  EXPECT_EQ(SideText(original.without), SideText(redacted.without));
  ASSERT_EQ(redacted.recorded.size(), 1u);
  EXPECT_NE(redacted.recorded.begin()->first, "team");
}

TEST_F(WeekTest, AnEmptyJournalIsAnError) {
  WeekReader reader(Read());
  EXPECT_TRUE(absl::IsFailedPrecondition(reader.Finish().status()));
  EXPECT_FALSE(reader.Take("nonsense").ok());
}

}  // namespace
}  // namespace fairlead::cmd
