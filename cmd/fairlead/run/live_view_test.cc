#include "cmd/fairlead/run/live_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>

#include "cmd/fairlead/app/app_testing.h"
#include "cmd/fairlead/inspect/test_views.h"

namespace fairlead::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

model::NodeRequest Request(const std::string& name, int64_t created_at) {
  model::NodeRequest request;
  request.meta.name = name;
  request.meta.creation = testing::At(created_at);
  request.instance_type = "g5.xlarge";
  request.price_micro_usd_per_hour = 1'006'000;
  request.queue = "research";
  request.reason_workloads = {"research/a", "research/b", "research/c", "research/d"};
  return request;
}

TEST(LiveViewTest, ASnapshotHasWhatTheViewHas) {
  core::View view = testing::SampleView();
  view.running[0].gpu_milli = 1000;
  view.nodes[1].promised_gpu_milli = 1000;
  view.nodes[1].pool = "gpu";
  view.waiting[1].verdict.code = verdict::Code::kGpuCapReached;  // and says nothing of what helps
  const dashboard::Snapshot snapshot = SnapshotOf(view, {Request("fl-1", 1), Request("fl-2", 2)});
  EXPECT_EQ(snapshot.at, view.at);
  ASSERT_EQ(snapshot.queues.size(), 3u);
  EXPECT_EQ(snapshot.queues[0].limit_gpu_milli, std::nullopt);
  EXPECT_EQ(snapshot.queues[1].quota_gpu_milli, 4000);
  EXPECT_EQ(snapshot.queues[1].used_gpu_milli, 8000);
  // The pod has the whole of a node at $1.006.
  EXPECT_EQ(snapshot.queues[1].micro_usd_per_hour, 1'006'000);
  EXPECT_EQ(snapshot.queues[0].micro_usd_per_hour, 1'006'000) << "of those below it";
  EXPECT_EQ(snapshot.queues[2].micro_usd_per_hour, 0);
  EXPECT_EQ(snapshot.micro_usd_per_hour, 3'018'000);
  EXPECT_EQ(snapshot.idle_micro_usd_per_hour, 2'012'000);
  ASSERT_EQ(snapshot.waiting.size(), 2u);
  EXPECT_EQ(snapshot.waiting[0].code, "QueueLimitReached");
  EXPECT_EQ(snapshot.waiting[0].category, "policy");
  EXPECT_THAT(snapshot.waiting[0].sentence, HasSubstr("research"));
  EXPECT_THAT(snapshot.waiting[0].helps, ElementsAre("raise the GPU limit of queue research to 9",
                                                     "wait until a pod of queue research ends"));
  EXPECT_FALSE(snapshot.waiting[1].helps.empty()) << "those of the code";
  EXPECT_EQ(snapshot.waiting[1].pods, 2);
  ASSERT_EQ(snapshot.nodes.size(), 4u);
  EXPECT_FALSE(snapshot.nodes[0].ours);
  EXPECT_TRUE(snapshot.nodes[1].coming);
  EXPECT_EQ(snapshot.nodes[1].promised_gpu_milli, 1000);
  EXPECT_EQ(snapshot.nodes[1].pool, "gpu");
  EXPECT_FALSE(snapshot.nodes[3].coming);
  EXPECT_EQ(snapshot.nodes[3].used_gpu_milli, 1000);
  ASSERT_EQ(snapshot.purchases.size(), 2u);
  EXPECT_EQ(snapshot.purchases[0].name, "fl-2") << "the newest first";
  EXPECT_EQ(snapshot.purchases[0].micro_usd_per_hour, 1'006'000);
}

TEST(LiveViewTest, WhatIsUnknownIsNotShownAsNumber) {
  model::NodeRequest request = Request("fl-1", 1);
  request.price_known = false;
  request.meta.creation = absl::InfinitePast();
  const dashboard::Snapshot snapshot =
      SnapshotOf(testing::SampleView(), {Request("fl-0", 2), request});
  EXPECT_EQ(snapshot.purchases[0].name, "fl-1") << "not shown by the API server yet: new";
  EXPECT_EQ(snapshot.purchases[0].micro_usd_per_hour, std::nullopt);
  EXPECT_EQ(snapshot.purchases[0].requested_at, std::nullopt);
}

TEST(LiveViewTest, APointCountsNodesThatCanBeUsed) {
  const dashboard::TimelinePoint point = PointOf(testing::SampleView());
  EXPECT_EQ(point.known_gpu_milli, 1000) << "fl-3 alone";
  EXPECT_EQ(point.used_gpu_milli, 1000);
  EXPECT_EQ(point.waiting_workloads, 2);
  EXPECT_EQ(point.micro_usd_per_hour, 3'018'000);
  EXPECT_EQ(point.queues.size(), 3u);
}

// The whole application, on a scripted API server: time passes on this thread, questions come from
// another one.
class LiveViewOfAppTest : public testing::AppTest {
 protected:
  void Observe() {
    app_ = std::make_unique<Application>(Application::Ports{&transport_, &transport_, &clock_},
                                         options_, &hook::Catalog::BuiltIn(), &logger_, &view_);
    ASSERT_TRUE(app_->Begin().ok());
  }
  // What `ask` answers, while the owner's thread works.
  Json Answered(const std::function<absl::StatusOr<dashboard::SourceText>()>& ask) {
    std::future<absl::StatusOr<dashboard::SourceText>> answer = std::async(std::launch::async, ask);
    while (answer.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
      app_->Turn(absl::ZeroDuration());
    }
    const absl::StatusOr<dashboard::SourceText> text = answer.get();
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? *Json::Parse(text->text) : Json();
  }
  Json Snapshot() {
    return Answered([this] { return view_.Snapshot(*app_); });
  }
  Json Timeline() {
    return Answered([this] { return view_.Timeline(*app_); });
  }

  LiveView view_;
};

TEST_F(LiveViewOfAppTest, ALeaderShowsWhatItDecides) {
  transport_.On("GET", "/api/v1/pods", testing::Reply::Json(200, testing::Pods("6")));
  ServeWatches();
  Observe();
  Pass(absl::Seconds(25));  // beyond one tick
  const Json snapshot = Snapshot();
  EXPECT_EQ(snapshot.TextAt({"leads"}), "true");
  EXPECT_EQ(snapshot.TextAt({"synced"}), "true");
  ASSERT_EQ(snapshot.Find("waiting")->items().size(), 1u);
  EXPECT_EQ(snapshot.Find("waiting")->items()[0].TextAt({"workload"}), "ns/p");
  ASSERT_EQ(snapshot.Find("purchases")->items().size(), 1u);
  const Json timeline = Timeline();
  EXPECT_EQ(timeline.Find("minutes")->items().size(), 1u);
  ASSERT_FALSE(timeline.Find("events")->items().empty());
  EXPECT_EQ(timeline.Find("events")->items().back().TextAt({"kind"}), "requested");
  EXPECT_THAT(timeline.Find("events")->items().back().TextAt({"text"}), HasSubstr("for ns/p"));
  Pass(absl::Minutes(3));
  EXPECT_EQ(Timeline().Find("minutes")->items().size(), 4u) << "a point per minute";
}

TEST_F(LiveViewOfAppTest, AStandbySaysWhoLeads) {
  HeldByAnother();
  Observe();
  Pass(absl::Seconds(2));
  const Json snapshot = Snapshot();
  EXPECT_EQ(snapshot.TextAt({"leads"}), "false");
  EXPECT_EQ(snapshot.TextAt({"leader"}), "other");
  EXPECT_EQ(snapshot.Find("nodes")->items().size(), 1u);
  const Json timeline = Timeline();
  EXPECT_TRUE(timeline.Find("events")->items().empty());
  EXPECT_TRUE(timeline.Find("minutes")->items().empty()) << "what it knows of queues is nothing";
}

TEST_F(LiveViewOfAppTest, AThreadThatDoesNotAnswerIsAskedOnce) {
  Observe();
  LiveView impatient(absl::ZeroDuration());
  EXPECT_TRUE(absl::IsUnavailable(impatient.Snapshot(*app_).status()));
  EXPECT_TRUE(absl::IsUnavailable(impatient.Snapshot(*app_).status()));
  Pass(absl::Seconds(1));  // it answers late
  EXPECT_TRUE(impatient.Snapshot(*app_).ok()) << "the late answer is taken";
  EXPECT_TRUE(absl::IsUnavailable(impatient.Snapshot(*app_).status())) << "and then asked for anew";
}

}  // namespace
}  // namespace fairlead::cmd
