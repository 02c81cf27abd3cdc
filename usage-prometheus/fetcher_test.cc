// When the fetcher queries, what it reports, and that no result reaches an owner that is gone.
#include "usage-prometheus/fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "kube/transport/fake_transport.h"
#include "usage-prometheus/testing.h"

namespace fairlead::prometheus {
namespace {

using kube::FakeTransport;
using testing::AsksForCapacity;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Vector;
using Reply = FakeTransport::Reply;

constexpr char kQuery[] = "/api/v1/query";

class FetcherTest : public ::testing::Test {
 protected:
  FetcherTest() {
    transport_.On("GET", kQuery, [](const kube::HttpRequest& request) {
      return Reply::Json(
          200, AsksForCapacity(request.path) ? Vector({{"", "8"}}) : Vector({{"a", "2"}}));
    });
    QueryOptions options;
    options.usage.sample_interval = absl::Seconds(30);
    fetcher_ = std::make_unique<UsageFetcher>(
        &transport_, *Queries::Create(options), absl::Seconds(5),
        [this](std::function<void()> task) { tasks_.push_back(std::move(task)); },
        [this](absl::StatusOr<Usage> usage) { told_.push_back(std::move(usage)); });
  }
  bool Poll() { return fetcher_->Poll(clock_.Now()); }
  // Delivers answers and runs the resulting tasks on the owner's thread.
  void Settle() {
    transport_.Pump();
    for (const auto& task : std::exchange(tasks_, {})) task();
  }
  size_t asked() const { return transport_.Sent("GET", kQuery).size(); }

  FakeClock clock_{absl::FromUnixSeconds(1'767'268'800)};
  FakeTransport transport_{clock_};
  std::vector<std::function<void()>> tasks_;
  std::vector<absl::StatusOr<Usage>> told_;
  std::unique_ptr<UsageFetcher> fetcher_;
};

TEST_F(FetcherTest, DecisionsWaitForTheFirstAnswerOnly) {
  EXPECT_FALSE(Poll());
  EXPECT_EQ(asked(), 6u) << "all questions at once";
  EXPECT_EQ(fetcher_->wake_at(), clock_.Now() + absl::Seconds(5));
  EXPECT_THAT(told_, IsEmpty()) << "nothing is told but on the owner's thread";
  Settle();
  EXPECT_TRUE(Poll());
  ASSERT_EQ(told_.size(), 1u);
  ASSERT_TRUE(told_[0].ok()) << told_[0].status();
  EXPECT_EQ(told_[0]->report.at, clock_.Now());
  ASSERT_EQ(told_[0]->report.parts.size(), 3u);
  EXPECT_EQ(told_[0]->report.parts[0].nano, 250'000'000);
  EXPECT_EQ(fetcher_->wake_at(), clock_.Now() + absl::Seconds(30));
}

TEST_F(FetcherTest, AskedAgainEachInterval) {
  Poll();
  Settle();
  clock_.Advance(absl::Seconds(29));
  Poll();
  EXPECT_EQ(asked(), 6u);
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Poll());
  Settle();
  EXPECT_EQ(asked(), 12u);
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[1]->report.at, clock_.Now());
}

TEST_F(FetcherTest, SilenceIsWaitedForSoLongAndNotAskedOverItself) {
  transport_.On("GET", kQuery, Reply::Hold());
  EXPECT_FALSE(Poll());
  transport_.Advance(absl::Seconds(4));
  EXPECT_FALSE(Poll());
  transport_.Advance(absl::Seconds(1));
  EXPECT_TRUE(Poll());
  EXPECT_EQ(fetcher_->wake_at(), absl::InfiniteFuture()) << "only the answer matters now";
  transport_.Advance(absl::Seconds(4));
  Settle();
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(asked(), 6u);
  // usageQueryTimeout ends it: ten seconds.
  transport_.Advance(absl::Seconds(1));
  Settle();
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_TRUE(absl::IsDeadlineExceeded(told_[0].status())) << told_[0].status();
  EXPECT_EQ(fetcher_->wake_at(), clock_.Now() + absl::Seconds(20));
}

TEST_F(FetcherTest, OneFailureFailsTheFetchAndEndsTheWait) {
  transport_.When(
      [](const kube::HttpRequest& request) {
        return testing::ParamOf(request.path, "query").find("cpu_cores") != std::string::npos;
      },
      [](const kube::HttpRequest&) {
        return Reply::Json(422, R"({"status":"error","errorType":"execution","error":"too many"})");
      });
  Poll();
  Settle();
  EXPECT_TRUE(Poll()) << "a definite no is not waited for";
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_THAT(told_[0].status().message(),
              HasSubstr("cpuAllocationMetric: HTTP status 422: execution: too many"));
}

TEST_F(FetcherTest, AnOwnerThatIsGoneIsNotTold) {
  Poll();
  transport_.Pump();
  ASSERT_FALSE(tasks_.empty());
  fetcher_.reset();
  Settle();
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(FetcherTest, TheCommandLineStopsAtTheFirstFailure) {
  QueryOptions options;
  const auto usage = FetchNow(transport_, *Queries::Create(options), clock_.Now());
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ(usage->report.parts.size(), 3u);
  EXPECT_EQ(asked(), 6u);
  transport_.On("GET", kQuery, Reply::Failure(absl::UnavailableError("no route")));
  const auto failed = FetchNow(transport_, *Queries::Create(options), clock_.Now());
  EXPECT_THAT(failed.status().message(), HasSubstr("gpuAllocationMetric: no route"));
  EXPECT_EQ(asked(), 7u);
}

}  // namespace
}  // namespace fairlead::prometheus
