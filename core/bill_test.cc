#include "core/bill.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fairlead::core {
namespace {

constexpr char kCatalog[] = R"(
as_of: "2026-01"
source: test
defaults:
  zones: [a]
types:
  - name: big
    cpu: 16
    memory: 64Gi
    gpu: {model: M, count: 4, memory_mib: 1000}
    price: {on_demand: 5}
  - name: free-but-not-sold
    cpu: 16
    memory: 64Gi
    gpu: {model: M, count: 4, memory_mib: 1000}
  - name: small
    cpu: 4
    memory: 16Gi
    gpu: {model: M, count: 1, memory_mib: 1000}
    price: {on_demand: 1}
)";

class BillTest : public ::testing::Test {
 protected:
  BillTest() : catalog_(*hook::Catalog::Parse(kCatalog, "test.yaml")) {}

  void SetUp() override { view_.at = absl::UnixEpoch(); }
  void AddNode(const std::string& request, int64_t price_micro_usd, const std::string& status) {
    NodeRow node;
    node.name = "node-" + request;
    node.node_request = request;
    node.price_micro_usd_per_hour = price_micro_usd;
    node.status = status;
    view_.nodes.push_back(node);
  }
  void AddWaiting(const std::string& pod, verdict::Code code, int64_t gpus_milli) {
    WaitingRow row;
    row.workload = pod;
    row.queue = "q";
    row.pods = {pod};
    row.verdict.code = code;
    auto spec = std::make_shared<model::PodSpec>();
    spec->requests = {{"cpu", 2000}, {"nvidia.com/gpu", gpus_milli}};
    row.verdict.demand = {{spec, 1, 0}};
    view_.waiting.push_back(row);
  }
  static model::Action Create(const std::string& name, std::vector<std::string> reasons) {
    model::NodeRequest request;
    request.meta.name = name;
    request.reason_workloads = std::move(reasons);
    return {1, model::CreateNodeRequest{request}};
  }
  void Later(absl::Duration by) { view_.at += by; }

  hook::Catalog catalog_;
  View view_;
};

TEST_F(BillTest, AddsUpHoursTimesPriceWhileTheRequestIsThere) {
  Bill bill(&catalog_, absl::Minutes(10));
  AddNode("r1", 1'006'000, "Ordered");
  AddNode("", 9'000'000, "Ready");  // not provisioned by the hook
  bill.Observe(view_, {Create("r1", {"ns/a"})});
  Later(absl::Minutes(30));
  AddNode("r2", 2'000'000, "Ordered");
  bill.Observe(view_, {Create("r2", {"ns/b"})});
  Later(absl::Minutes(30));
  view_.nodes.clear();
  bill.Observe(view_, {});
  bill.AdvanceTo(view_.at + absl::Hours(5));
  const BillTotals totals = bill.Totals();
  EXPECT_EQ(totals.nodes_requested, 2);
  EXPECT_EQ(totals.node_seconds, 5400);
  EXPECT_EQ(totals.cost_micro_usd, 1'006'000 + 1'000'000);
  EXPECT_EQ(totals.policy_blocked_nodes, 0);
  EXPECT_EQ(totals.reactive_cost_micro_usd, totals.cost_micro_usd) << "nothing was blocked";
}

TEST_F(BillTest, SeesANodeThatWasBoughtForAPolicyBlockedWorkload) {
  Bill bill(&catalog_, absl::Minutes(10));
  AddWaiting("ns/blocked", verdict::Code::kQueueLimitReached, 1000);
  AddWaiting("ns/capped", verdict::Code::kGpuCapReached, 1000);
  AddNode("r1", 1'000'000, "Ordered");
  AddNode("r2", 1'000'000, "Ordered");
  bill.Observe(view_, {Create("r1", {"ns/fine", "ns/blocked"}), Create("r2", {"ns/capped"})});
  Later(absl::Hours(1));
  bill.Observe(view_, {});
  EXPECT_EQ(bill.Totals().policy_blocked_nodes, 1);
  EXPECT_EQ(bill.Totals().policy_blocked_cost_micro_usd, 1'000'000);
}

TEST_F(BillTest, ANodeThatNeverRanAPodIsADuplicateOnceItIsGivenBack) {
  Bill bill(&catalog_, absl::Minutes(10));
  AddNode("used", 1, "Ready");
  AddNode("idle", 1, "Ready");
  AddNode("never-came", 1, "Ordered");
  RunningRow running;
  running.node = "node-used";
  view_.running = {running};
  bill.Observe(view_, {});
  EXPECT_EQ(bill.Totals().duplicate_nodes, 0) << "it may still be used";
  view_.nodes.clear();
  view_.running.clear();
  bill.Observe(view_, {});
  EXPECT_EQ(bill.Totals().duplicate_nodes, 1);
}

TEST_F(BillTest, TheReactiveAutoscalerPacksBlockedPodsAndKeepsNodesForAWhile) {
  Bill bill(&catalog_, absl::Minutes(30));
  AddWaiting("ns/a", verdict::Code::kQueueLimitReached, 3000);  // needs the big type
  AddWaiting("ns/b", verdict::Code::kQueueLimitReached, 1000);  // fits beside it
  AddWaiting("ns/c", verdict::Code::kQueueLimitReached, 1000);  // needs a small one of its own
  AddWaiting("ns/gated", verdict::Code::kGated, 1000);          // every autoscaler knows gates
  AddWaiting("ns/cap", verdict::Code::kGpuCapReached, 1000);
  AddWaiting("ns/capacity", verdict::Code::kInsufficientCapacity, 1000);
  bill.Observe(view_, {});
  Later(absl::Hours(1));
  bill.Observe(view_, {});
  EXPECT_EQ(bill.Totals().reactive_nodes, 2);
  EXPECT_EQ(bill.Totals().reactive_cost_micro_usd, 6'000'000);
  EXPECT_EQ(bill.Totals().cost_micro_usd, 0);

  view_.waiting.erase(view_.waiting.begin());  // a is gone: b keeps the big node
  bill.Observe(view_, {});
  Later(absl::Hours(1));
  bill.Observe(view_, {});
  EXPECT_EQ(bill.Totals().reactive_cost_micro_usd, 12'000'000);

  AddWaiting("ns/d", verdict::Code::kQueueLimitReached, 3000);  // into the capacity that a left
  bill.Observe(view_, {});
  EXPECT_EQ(bill.Totals().reactive_nodes, 2);

  view_.waiting.clear();  // half an hour each, and then none
  bill.Observe(view_, {});
  bill.AdvanceTo(view_.at + absl::Hours(9));
  EXPECT_EQ(bill.Totals().reactive_cost_micro_usd, 15'000'000);
}

TEST_F(BillTest, WhatNoProviderSellsIsNotBought) {
  Bill bill(&catalog_, absl::Minutes(30));
  AddWaiting("ns/huge", verdict::Code::kQueueLimitReached, 64'000);
  bill.Observe(view_, {});
  Later(absl::Hours(1));
  bill.Observe(view_, {});
  EXPECT_EQ(bill.Totals().reactive_nodes, 0);
  EXPECT_EQ(bill.Totals().reactive_cost_micro_usd, 0);
}

TEST_F(BillTest, OnlyQueuePolicyForbidsNodes) {
  for (int i = 0; i < verdict::kCodeCount; ++i) {
    const auto code = static_cast<verdict::Code>(i);
    const bool policy =
        code == verdict::Code::kQueueNotFound || code == verdict::Code::kQueueNotLeaf ||
        code == verdict::Code::kGated || code == verdict::Code::kGangIncomplete ||
        code == verdict::Code::kSchedulingBackoff || code == verdict::Code::kQueueLimitReached ||
        code == verdict::Code::kNonPreemptibleOverQuota || code == verdict::Code::kOverFairShare ||
        code == verdict::Code::kPreemptionDelay;
    EXPECT_EQ(ForbidsNodes(code), policy) << std::string(verdict::CodeName(code));
  }
}

}  // namespace
}  // namespace fairlead::core
