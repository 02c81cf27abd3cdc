#include "autoscale-hook/providers/kwok_provider.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "autoscale-hook/providers/contract_testing.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

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
    provider_->Launch({{launch, [&status](const absl::Status& s) { status = s; }}});
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
  VirtualTime scheduler_;
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
  scheduler_.Advance(absl::Seconds(5));
  EXPECT_TRUE(Terminate().ok());
  EXPECT_TRUE(Launch().ok());
  scheduler_.Advance(absl::Seconds(9));
  EXPECT_EQ(api_.creates, 0);
  scheduler_.Advance(absl::Hours(1));
  EXPECT_EQ(api_.creates, 1);
}

TEST_F(KwokProviderTest, TerminatedWhileTheCreationIsUnderWayIsNotLeftBehind) {
  api_.hold = true;
  EXPECT_TRUE(Launch().ok());
  scheduler_.Advance(absl::Seconds(10));
  ASSERT_EQ(api_.held.size(), 1u);
  absl::Status first, second = absl::UnknownError("no answer");
  provider_->Terminate({"fl-1", "kwok", "fl-1", ""}, [&](const absl::Status& s) { first = s; });
  provider_->Terminate({"fl-1", "kwok", "fl-1", ""}, [&](const absl::Status& s) { second = s; });
  EXPECT_TRUE(absl::IsUnavailable(first)) << "asked again: " << first;
  EXPECT_TRUE(absl::IsUnknown(second)) << "the node may come: " << second;
  EXPECT_TRUE(absl::IsUnavailable(Launch())) << "it is being ended";
  api_.held.front()();
  EXPECT_TRUE(second.ok()) << second;
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

TEST_F(KwokProviderTest, WhatIsOutOfStockIsAskedAtEachLaunch) {
  bool stock_out = true;
  options_.out_of_stock = [&](absl::string_view type) { return stock_out && type == "g.1"; };
  provider_ = std::make_unique<KwokProvider>(options_, &scheduler_, &api_);
  EXPECT_EQ(ClassifyFailure(Launch()), FailureClass::kStockout);
  EXPECT_TRUE(Launch("fl-2", "g.2").ok());
  stock_out = false;
  EXPECT_TRUE(Launch().ok());
  scheduler_.Advance(absl::Minutes(1));
  EXPECT_EQ(api_.nodes.size(), 2u);
}

TEST_F(KwokProviderTest, TimersOutliveTheProvider) {
  EXPECT_TRUE(Launch().ok());
  provider_.reset();
  scheduler_.Advance(absl::Hours(1));
  EXPECT_TRUE(api_.nodes.empty());
}

// The Node objects are the machines. kwok has no memory of them, and watches nothing.
class KwokWorld final : public ContractWorld, public NodeApi {
 public:
  [[nodiscard]] ProviderTraits traits() const override { return {.watches = false}; }
  std::unique_ptr<Provider> MakeProvider() override {
    KwokOptions options;
    options.boot_delay_by_type = {{kLateType, absl::Minutes(4)},
                                  {kNeverType, absl::InfiniteDuration()}};
    auto provider = std::make_unique<KwokProvider>(options, &time, this);
    provider->RefuseType(kNoneType, FailureClass::kStockout);
    return provider;
  }
  std::set<std::string> Machines(const std::string& request) override {
    std::set<std::string> ids;
    for (const auto& [name, node] : nodes_) {
      if (node.meta.labels.Get(model::kNodeRequestLabel) == request) ids.insert(node.provider_id);
    }
    return ids;
  }
  void Vanish(const std::string& request) override { nodes_.erase(request); }
  void Replace(const std::string& request) override { nodes_.at(request).ready = false; }
  void AddForeigner(const std::string& name) override { nodes_[name].provider_id = "other://1"; }
  bool HasForeigner(const std::string& name) override { return nodes_.contains(name); }

  void CreateNode(const model::Node& node, Done done) override {
    calls.Call(/*writes=*/true,
               [this, node] {
                 return nodes_.emplace(node.meta.name, node).second
                            ? absl::OkStatus()
                            : absl::AlreadyExistsError("it is there");
               },
               std::move(done));
  }
  void SetNodeReady(const model::Node& node, Done done) override {
    calls.Call(/*writes=*/true,
               [this, name = node.meta.name] {
                 auto it = nodes_.find(name);
                 if (it == nodes_.end()) return absl::NotFoundError(name);
                 it->second.ready = true;
                 return absl::OkStatus();
               },
               std::move(done));
  }
  void DeleteNode(const std::string& name, Done done) override {
    calls.Call(/*writes=*/true,
               [this, name] {
                 return nodes_.erase(name) == 1 ? absl::OkStatus() : absl::NotFoundError(name);
               },
               std::move(done));
  }

 private:
  std::map<std::string, model::Node> nodes_;
};

std::unique_ptr<ContractWorld> MakeKwokWorld() { return std::make_unique<KwokWorld>(); }

INSTANTIATE_TEST_SUITE_P(Kwok, ProviderContract, ::testing::Values(&MakeKwokWorld));

}  // namespace
}  // namespace fairlead::hook
