#include "autoscale-hook/providers/kwok_provider.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

class FakeScheduler final : public Scheduler {
 public:
  void After(absl::Duration delay, std::function<void()> callback) override {
    due_.emplace(now_ + delay, std::move(callback));
  }
  void Advance(absl::Duration by) {
    const absl::Duration end = now_ + by;
    while (!due_.empty() && due_.begin()->first <= end) {
      now_ = due_.begin()->first;
      auto callback = std::move(due_.begin()->second);
      due_.erase(due_.begin());
      callback();
    }
    now_ = end;
  }

 private:
  absl::Duration now_ = absl::ZeroDuration();
  std::multimap<absl::Duration, std::function<void()>> due_;
};

class FakeApi final : public NodeApi {
 public:
  void CreateNode(const model::Node& node, Done done) override {
    ++creates;
    if (hold) return held.push_back([this, node, done] { Create(node, done); });
    Create(node, done);
  }
  void SetNodeReady(const model::Node& node, Done done) override {
    if (failures > 0) return --failures, done(absl::UnavailableError("down"));
    nodes.at(node.meta.name).ready = true;
    done(absl::OkStatus());
  }
  void DeleteNode(const std::string& name, Done done) override {
    done(nodes.erase(name) == 1 ? absl::OkStatus() : absl::NotFoundError(name));
  }
  std::map<std::string, model::Node> nodes;
  std::deque<std::function<void()>> held;
  int creates = 0, failures = 0;
  bool hold = false;

 private:
  void Create(const model::Node& node, const Done& done) {
    if (failures > 0) return --failures, done(absl::UnavailableError("down"));
    if (nodes.contains(node.meta.name)) return done(absl::AlreadyExistsError("there"));
    nodes[node.meta.name] = node;
    done(absl::OkStatus());
  }
};

class KwokProviderTest : public ::testing::Test {
 protected:
  absl::Status Launch(const std::string& name = "fl-1", const std::string& type = "g.1") {
    model::LaunchNode launch;
    launch.request.Own().meta.name = name;
    launch.request.Own().instance_type = type;
    launch.node.Own().meta.name = name;
    absl::Status status = absl::UnknownError("no answer");
    provider_->Launch(launch, [&status](const absl::Status& s) { status = s; });
    return status;
  }
  absl::Status Terminate(const std::string& name = "fl-1") {
    absl::Status status = absl::UnknownError("no answer");
    provider_->Terminate({name, "kwok", name, ""},
                         [&status](const absl::Status& s) { status = s; });
    return status;
  }
  KwokOptions options_{
      absl::Seconds(10), {{"slow.1", absl::Minutes(5)}}, absl::Seconds(1), absl::Seconds(2)};
  FakeScheduler scheduler_;
  FakeApi api_;
  std::unique_ptr<KwokProvider> provider_ =
      std::make_unique<KwokProvider>(options_, &scheduler_, &api_);
};

TEST_F(KwokProviderTest, BootsThenBecomesReadyThenGoes) {
  EXPECT_TRUE(Launch().ok());
  scheduler_.Advance(absl::Seconds(9));
  EXPECT_TRUE(api_.nodes.empty());
  scheduler_.Advance(absl::Seconds(1));
  ASSERT_TRUE(api_.nodes.contains("fl-1"));
  const model::Node& node = api_.nodes["fl-1"];
  EXPECT_FALSE(node.ready);
  EXPECT_EQ(node.meta.annotations.Get("kwok.x-k8s.io/node"), "fake");
  EXPECT_EQ(node.meta.labels.Get(model::kNodeRequestLabel), "fl-1");
  EXPECT_EQ(node.provider_id, "kwok://fl-1");
  scheduler_.Advance(absl::Seconds(1));
  EXPECT_TRUE(node.ready);
  EXPECT_TRUE(Terminate().ok());
  EXPECT_TRUE(api_.nodes.empty());
  EXPECT_TRUE(Terminate().ok()) << "gone is gone";
}

TEST_F(KwokProviderTest, LaunchIsIdempotentAlsoAcrossARestart) {
  EXPECT_TRUE(Launch().ok());
  EXPECT_TRUE(Launch().ok());
  scheduler_.Advance(absl::Minutes(1));
  EXPECT_EQ(api_.creates, 1);
  provider_ = std::make_unique<KwokProvider>(options_, &scheduler_, &api_);
  EXPECT_TRUE(Launch().ok());
  scheduler_.Advance(absl::Minutes(1));
  EXPECT_EQ(api_.nodes.size(), 1u);
}

TEST_F(KwokProviderTest, TerminatedWhileBootingNeverAppears) {
  EXPECT_TRUE(Launch().ok());
  EXPECT_TRUE(Terminate().ok());
  scheduler_.Advance(absl::Hours(1));
  EXPECT_TRUE(api_.nodes.empty());
  // The name again: timers of the former life do nothing.
  EXPECT_TRUE(Launch().ok());
  scheduler_.Advance(absl::Hours(1));
  EXPECT_EQ(api_.creates, 1);
}

TEST_F(KwokProviderTest, TerminatedWhileTheCreationIsUnderWayIsNotLeftBehind) {
  api_.hold = true;
  EXPECT_TRUE(Launch().ok());
  scheduler_.Advance(absl::Seconds(10));
  ASSERT_EQ(api_.held.size(), 1u);
  EXPECT_TRUE(Terminate().ok());
  api_.held.front()();
  EXPECT_TRUE(api_.nodes.empty());
}

TEST_F(KwokProviderTest, ApiFailuresAreRetried) {
  api_.failures = 3;
  EXPECT_TRUE(Launch().ok());
  scheduler_.Advance(absl::Minutes(1));
  EXPECT_TRUE(api_.nodes.at("fl-1").ready);
}

TEST_F(KwokProviderTest, RefusalsAndDelaysByType) {
  provider_->RefuseType("g.1", FailureClass::kStockout);
  EXPECT_EQ(ClassifyFailure(Launch()), FailureClass::kStockout);
  scheduler_.Advance(absl::Hours(1));
  EXPECT_TRUE(api_.nodes.empty());
  provider_->AcceptType("g.1");
  EXPECT_TRUE(Launch().ok());
  EXPECT_TRUE(Launch("fl-2", "slow.1").ok());
  scheduler_.Advance(absl::Minutes(4));
  EXPECT_EQ(api_.nodes.size(), 1u);
  scheduler_.Advance(absl::Minutes(1));
  EXPECT_EQ(api_.nodes.size(), 2u);
}

TEST_F(KwokProviderTest, TimersOutliveTheProvider) {
  EXPECT_TRUE(Launch().ok());
  provider_.reset();
  scheduler_.Advance(absl::Hours(1));
  EXPECT_TRUE(api_.nodes.empty());
}

}  // namespace
}  // namespace fairlead::hook
