// Reported usage: it counts while it is fresh; stale reports are ignored.
#include <gmock/gmock.h>

#include <map>

#include "core/decision_loop_testing.h"

namespace fairlead::core {
namespace {

using testing::At;
using ::testing::HasSubstr;
using testing::MakeNode;
using testing::MakeQueue;
using testing::PodBuilder;

class ReportedUsageTest : public testing::DecisionLoopTest {
 protected:
  ReportedUsageTest() {
    options_.hook.enabled = false;
    options_.engine.usage.emplace();
    options_.engine.usage->reported = true;
    options_.engine.usage->staleness = absl::Minutes(5);
    Start();
  }
  // Eight GPUs, and two queues that want all of them.
  void Start() {
    Restart();
    Put(MakeQueue("past", "", 0, model::kUnlimited));
    Put(MakeQueue("fresh", "", 0, model::kUnlimited));
    Put(MakeNode("n", 8));
    for (const char* queue : {"past", "fresh"}) {
      for (int i = 0; i < 8; ++i) {
        Put(PodBuilder("ns", absl::StrCat("w-", queue, i)).Queue(queue).Gpus(1).Created(i).Build());
      }
    }
    SyncAll();
  }
  // `past` had three quarters of the GPUs.
  void Report(int64_t at, int64_t nano = 750'000'000) {
    loop_->Apply(model::UsageReport{At(at), {{"past", model::kGpuName, nano}}});
  }
  std::map<std::string, int64_t> Shares(int64_t at) const {
    std::map<std::string, int64_t> shares;
    for (const QueueRow& row : loop_->MakeView(At(at)).queues) {
      shares[row.name] = row.resources.at(0).fair_share;
    }
    return shares;
  }
  bool Equal(int64_t at) const { return Shares(at).at("past") == Shares(at).at("fresh"); }
};

TEST_F(ReportedUsageTest, StaleUsageLeadsToNoHistory) {
  Report(0);
  StepResult result = Step(0);
  EXPECT_LT(Shares(0).at("past"), Shares(0).at("fresh"));
  EXPECT_EQ(loop_->history().problem, "");
  // Only time passes; no event says so.
  for (int64_t at = 0; at < 300 && result.wake_at < At(300);) {
    at = std::max(at + 1, absl::ToInt64Seconds(result.wake_at - At(0)));
    AnswerAll(result);
    result = Step(at);
    if (at < 300) {
      EXPECT_FALSE(Equal(at)) << at;
    }
  }
  EXPECT_LE(result.wake_at, At(300));
  result = Step(300);
  EXPECT_TRUE(result.decided);
  EXPECT_TRUE(Equal(300));
  EXPECT_THAT(loop_->history().problem, HasSubstr("the last report is 5m old"));
  EXPECT_EQ(loop_->history().as_of, At(0));
  EXPECT_GT(result.wake_at, At(300)) << "it must not turn for ever";

  Report(301);
  EXPECT_TRUE(Step(302).decided);
  EXPECT_FALSE(Equal(302));
  EXPECT_EQ(loop_->history().problem, "");
}

TEST_F(ReportedUsageTest, BeforeTheFirstReportThereIsNoHistory) {
  Step(0);
  EXPECT_TRUE(Equal(0));
  EXPECT_TRUE(loop_->history().on);
  EXPECT_THAT(loop_->history().problem, HasSubstr("no report yet"));
  EXPECT_FALSE(loop_->history().as_of.has_value());
}

TEST_F(ReportedUsageTest, AReportOfNoKnownQueueIsNoHistory) {
  Step(0);
  const std::map<std::string, int64_t> shares = Shares(0);
  loop_->Apply(model::UsageReport{At(1), {{"elsewhere", model::kGpuName, 900'000'000}}});
  Step(1);
  EXPECT_EQ(Shares(1), shares);
  EXPECT_EQ(loop_->history().problem, "");
}

TEST_F(ReportedUsageTest, NoOtherReportReplacesTheOwnRecord) {
  options_.engine.usage->reported = false;
  Start();
  Step(0);
  const std::map<std::string, int64_t> shares = Shares(0);
  Report(1);
  EXPECT_FALSE(Step(1).decided) << "nothing has changed";
  Step(61);
  EXPECT_EQ(Shares(61), shares);
}

TEST_F(ReportedUsageTest, NothingOfItIsStored) {
  Report(0);
  EXPECT_TRUE(absl::IsFailedPrecondition(loop_->RestoreUsage("fairlead-usage/1:0:AAAA")));
  EXPECT_TRUE(loop_->RestoreUsage("").ok());
  EXPECT_TRUE(testing::Of<model::StoreUsage>(Step(100)).empty());
}

// The same events at the same times: the same decisions.
TEST_F(ReportedUsageTest, ReplayedReportsDecideTheSame) {
  const auto play = [this] {
    Start();
    std::vector<std::string> bound;
    const auto take = [&](const StepResult& result) {
      for (const model::BindPod& bind : testing::Of<model::BindPod>(result)) {
        bound.push_back(bind.name);
      }
    };
    Report(0);
    take(Step(0));
    Report(10, 10'000'000);
    Put(MakeNode("m", 4));
    take(Step(10));
    take(Step(400));
    return bound;
  };
  const std::vector<std::string> first = play();
  EXPECT_EQ(first.size(), 12u);
  EXPECT_EQ(play(), first);
}

}  // namespace
}  // namespace fairlead::core
