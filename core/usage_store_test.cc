// The usage of queues, across the end of a process.
#include <optional>

#include "core/decision_loop_testing.h"
#include "queues/usage_record.h"

namespace fairlead::core {
namespace {

using testing::At;
using testing::MakeNode;
using testing::MakeQueue;
using testing::Of;
using testing::PodBuilder;

class UsageStoreTest : public testing::DecisionLoopTest {
 protected:
  UsageStoreTest() {
    options_.hook.enabled = false;
    options_.engine.usage.emplace();
    options_.engine.usage->window = absl::Hours(24);
    options_.usage_store = {"ns", "usage"};
    Restart();
  }
  // `past` has all eight GPUs.
  void Objects() {
    Put(MakeQueue("past", "", 0, model::kUnlimited));
    Put(MakeQueue("fresh", "", 0, model::kUnlimited));
    Put(MakeNode("n", 8));
    for (int i = 0; i < 8; ++i) {
      Put(PodBuilder("ns", absl::StrCat("p", i)).Queue("past").Gpus(1).On("n").Build());
    }
    SyncAll();
  }
  // The writes from `from` on, in steps at the requested times.
  std::vector<model::StoreUsage> Run(int64_t from, int64_t to) {
    std::vector<model::StoreUsage> writes;
    for (absl::Time now = At(from); now <= At(to);) {
      const StepResult result = StepAt(now);
      for (const model::StoreUsage& write : Of<model::StoreUsage>(result)) writes.push_back(write);
      AnswerAll(result);
      now = std::max(now + absl::Seconds(1), result.wake_at);
    }
    return writes;
  }
  // The shares of the GPUs if both queues want all of them.
  std::map<std::string, int64_t> FairShares() {
    for (const char* queue : {"past", "fresh"}) {
      for (int i = 0; i < 8; ++i) {
        Put(PodBuilder("ns", absl::StrCat("w-", queue, i)).Queue(queue).Gpus(1).Build());
      }
    }
    Step(4000);
    std::map<std::string, int64_t> shares;
    for (const QueueRow& row : loop_->MakeView(At(4000)).queues) {
      shares[row.name] = row.resources.at(0).fair_share;
    }
    return shares;
  }
};

TEST_F(UsageStoreTest, IsWrittenOnceAMinuteAfterItIsKnownWhatWasThere) {
  Objects();
  EXPECT_TRUE(Run(0, 300).empty());
  ASSERT_TRUE(loop_->RestoreUsage("").ok());
  const std::vector<model::StoreUsage> writes = Run(301, 900);
  EXPECT_GE(writes.size(), 9u);
  EXPECT_LE(writes.size(), 11u);
  EXPECT_EQ(writes.back().ns, "ns");
  EXPECT_EQ(writes.back().name, "usage");
  EXPECT_TRUE(queues::UsageRecord::Decode(writes.back().text, *options_.engine.usage).ok());
}

TEST_F(UsageStoreTest, AFailedWriteIsRepeatedWithTheLatestRecordAndNeverSentTwiceAtOnce) {
  Objects();
  ASSERT_TRUE(loop_->RestoreUsage("").ok());
  std::vector<absl::Time> sent;
  std::optional<uint64_t> unanswered;
  for (absl::Time now = At(0); now <= At(900);) {
    const StepResult result = StepAt(now);
    for (const model::Action& action : result.actions) {
      if (!std::holds_alternative<model::StoreUsage>(action.what)) continue;
      EXPECT_FALSE(unanswered.has_value());
      sent.push_back(now);
      unanswered = action.id;
    }
    // The answers take ten seconds.
    if (unanswered.has_value() && now >= sent.back() + absl::Seconds(10)) {
      loop_->Apply(model::ActionResult{*unanswered, sent.size() % 2 == 0
                                                        ? absl::PermissionDeniedError("403")
                                                        : absl::UnavailableError("no answer")});
      unanswered.reset();
    }
    now += absl::Seconds(1);
  }
  ASSERT_GE(sent.size(), 4u);
  EXPECT_LE(sent.size(), 12u);
  EXPECT_LE(sent[1] - sent[0], absl::Seconds(20));
  for (size_t i = 2; i < sent.size(); ++i) EXPECT_GE(sent[i] - sent[i - 1], sent[1] - sent[0]);
  // A leader that is told OK writes at its interval again.
  if (unanswered.has_value()) {
    loop_->Apply(model::ActionResult{*unanswered, absl::OkStatus()});
  }
  EXPECT_FALSE(Run(901, 1500).empty());
}

TEST_F(UsageStoreTest, FairSharesGoOnAfterARestart) {
  Objects();
  ASSERT_TRUE(loop_->RestoreUsage("").ok());
  const std::string stored = Run(0, 3900).back().text;
  const std::map<std::string, int64_t> kept_on = FairShares();
  EXPECT_LT(kept_on.at("past"), kept_on.at("fresh"));

  Restart();
  Objects();
  ASSERT_TRUE(loop_->RestoreUsage("").ok());
  Step(3950);
  const std::map<std::string, int64_t> forgotten = FairShares();
  EXPECT_NE(forgotten, kept_on) << "otherwise this shows nothing";

  Restart();
  Objects();
  ASSERT_TRUE(loop_->RestoreUsage(stored).ok());
  Step(3950);
  EXPECT_EQ(FairShares(), kept_on);
}

TEST_F(UsageStoreTest, WhatCannotBeReadIsRecordedAnew) {
  Objects();
  EXPECT_TRUE(absl::IsDataLoss(loop_->RestoreUsage("fairlead-usage/1:0:AAAA")));
  EXPECT_TRUE(absl::IsInvalidArgument(loop_->RestoreUsage("something else")));
  EXPECT_FALSE(Run(0, 120).empty());
}

TEST_F(UsageStoreTest, NothingIsWrittenWhereNothingIsRecorded) {
  options_.engine.usage.reset();
  Restart();
  Objects();
  EXPECT_TRUE(loop_->RestoreUsage("").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(loop_->RestoreUsage("x")));
  EXPECT_TRUE(Run(0, 600).empty());
}

TEST_F(UsageStoreTest, ALongRecordIsCoarsenedUntilItFits) {
  options_.usage_store.max_bytes = 400;
  Restart();
  Objects();
  ASSERT_TRUE(loop_->RestoreUsage("").ok());
  const std::vector<model::StoreUsage> writes = Run(0, 6 * 3600);
  ASSERT_FALSE(writes.empty());
  for (const model::StoreUsage& write : writes) EXPECT_LE(write.text.size(), 400u);
}

}  // namespace
}  // namespace fairlead::core
