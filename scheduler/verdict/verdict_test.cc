#include "scheduler/verdict/verdict.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/verdict/text.h"

namespace fairlead::verdict {
namespace {

// The contract of docs/verdict.md, written a second time.
struct CodeCase {
  Code code;
  const char* name;
  const char* category;
  const char* by;
};
constexpr CodeCase kCases[] = {
    {Code::kNone, "None", "policy", "Time"},
    {Code::kInvalidRequest, "InvalidRequest", "impossible", "UserChange"},
    {Code::kQueueNotFound, "QueueNotFound", "policy", "QueueChange"},
    {Code::kQueueNotLeaf, "QueueNotLeaf", "policy", "UserChange"},
    {Code::kMissingObject, "MissingObject", "impossible", "UserChange"},
    {Code::kGated, "Gated", "policy", "UserChange"},
    {Code::kGangIncomplete, "GangIncomplete", "policy", "UserChange"},
    {Code::kSchedulingBackoff, "SchedulingBackoff", "policy", "UserChange"},
    {Code::kBindingRefused, "BindingRefused", "policy", "UserChange"},
    {Code::kQueueLimitReached, "QueueLimitReached", "policy", "QueueChange"},
    {Code::kNonPreemptibleOverQuota, "NonPreemptibleOverQuota", "policy", "QueueChange"},
    {Code::kOverFairShare, "OverFairShare", "policy", "QueueChange"},
    {Code::kPreemptionDelay, "PreemptionDelay", "policy", "Time"},
    {Code::kNoInstanceTypeFits, "NoInstanceTypeFits", "impossible", "UserChange"},
    {Code::kTopologyInfeasible, "TopologyInfeasible", "impossible", "UserChange"},
    {Code::kConstraintsUnsatisfiable, "ConstraintsUnsatisfiable", "impossible", "UserChange"},
    {Code::kWaitingForVictims, "WaitingForVictims", "capacity", "Preemption"},
    {Code::kNodesRequested, "NodesRequested", "capacity", "NodeScaleUp"},
    {Code::kGpuCapReached, "GpuCapReached", "policy", "UserChange"},
    {Code::kCostCapReached, "CostCapReached", "policy", "UserChange"},
    {Code::kInsufficientCapacity, "InsufficientCapacity", "capacity", "NodeScaleUp"},
};

TEST(CodeTest, TableIsComplete) {
  ASSERT_EQ(std::size(kCases), static_cast<size_t>(kCodeCount));
  std::set<std::string> names;
  for (const CodeCase& c : kCases) {
    EXPECT_EQ(CodeName(c.code), c.name);
    EXPECT_EQ(CategoryName(CategoryOf(c.code)), c.category) << c.name;
    EXPECT_EQ(ResolvableByName(ResolvableByOf(c.code)), c.by) << c.name;
    EXPECT_EQ(ParseCode(c.name), c.code) << c.name;
    names.insert(c.name);
  }
  EXPECT_EQ(names.size(), std::size(kCases));
}

TEST(CodeTest, UnknownNamesAreNotCodes) {
  for (const char* name : {"", "none", "QueueLimit", "QueueLimitReached ", "Unschedulable"}) {
    EXPECT_EQ(ParseCode(name), std::nullopt) << name;
  }
}

TEST(CodeTest, UnschedulableOnlyForCapacityWithoutTheHook) {
  for (const CodeCase& c : kCases) {
    EXPECT_EQ(ConditionReason(c.code, /*hook_on=*/true), c.name);
    const bool capacity = std::string(c.category) == "capacity";
    EXPECT_EQ(ConditionReason(c.code, /*hook_on=*/false), capacity ? "Unschedulable" : c.name);
  }
}

// KAI marks a group that was ready and found no place. It does not mark a group that could not run
// or is pipelined.
TEST(CodeTest, WhatIsAnAttemptThatFailed) {
  const std::set<std::string> none = {
      "None",           "InvalidRequest",    "Gated",         "GangIncomplete", "SchedulingBackoff",
      "BindingRefused", "WaitingForVictims", "NodesRequested"};
  for (const CodeCase& c : kCases) EXPECT_EQ(IsFailedAttempt(c.code), !none.contains(c.name));
}

TEST(CodeTest, WhatNeedsNoAction) {
  const std::set<std::string> expected = {
      "Gated",           "GangIncomplete",    "QueueLimitReached",
      "PreemptionDelay", "WaitingForVictims", "NodesRequested"};
  Verdict v;
  v.queue_block = QueueBlock{"dept", "nvidia.com/gpu", 8000, 8000, 8000};
  for (const CodeCase& c : kCases) {
    v.code = c.code;
    EXPECT_EQ(IsExpected(v), expected.contains(c.name));
  }
  v.code = Code::kQueueLimitReached;
  v.queue_block->requested = 9000;
  EXPECT_FALSE(IsExpected(v)) << "more than the whole limit";
  v.queue_block.reset();
  EXPECT_FALSE(IsExpected(v));
}

Verdict Sample() {
  auto spec = std::make_shared<model::PodSpec>();
  spec->ns = "research";
  spec->requests = {{"cpu", 4000}, {"memory", int64_t{16} << 30}, {"nvidia.com/gpu", 8000}};
  spec->node_selector = {{"zone", "a"}};
  Verdict v;
  v.code = Code::kInsufficientCapacity;
  v.scope = Scope::kGang;
  v.queue = "research";
  v.position = 2;
  v.queue_block = QueueBlock{"dept", "nvidia.com/gpu", 16000, 8000, 8000};
  v.failed_predicates = {
      {"NodeResourcesFit", "Insufficient nvidia.com/gpu", 8, {{"nvidia.com/gpu", 2000}}},
      {"TaintToleration", "node(s) had untolerated taint {gpu: a100}", 4, {}}};
  v.unblockers = {{ResolvableBy::kNodeScaleUp, "a node with 8 GPUs"}};
  v.demand = {{spec, 2, 2}};
  v.details = {"reclaim found 3 victims, 4.5 GPUs too few"};
  v.node_requests = {"nr-b", "nr-a"};
  v.expected_at = absl::FromUnixSeconds(1'800'000'000);
  v.subject = "ConfigMap default/x";
  v.until = absl::FromUnixSeconds(1'700'000'000);
  v.pods_waiting = 2;
  v.pods_running = 1;
  v.min_member = 3;
  v.observed_generation = 5;
  return v;
}

TEST(HashTest, SameInEveryProcessAndVersion) {
  // A changed value rewrites the verdict of every waiting pod of every user once. Change it only on
  // purpose.
  EXPECT_EQ(Hash(Verdict()), "6289e0a034e9defe");
  EXPECT_EQ(Hash(Sample()), "e14cce4995aae86b");
}

TEST(HashTest, AmountsAreLeftOutOfTextsAndNamesAreNot) {
  EXPECT_EQ(WithoutAmounts("held: kept for gang ns/train-7, 6 GPUs (64Gi) for 1m30s."),
            "held: kept for gang ns/train-7, # GPUs (#) for #.");
  EXPECT_EQ(WithoutAmounts("A 6/4, n1 3/1; $12.50 an hour; p5.48xlarge; ns/7"),
            "A #, n1 #; # an hour; p5.48xlarge; ns/7");
}

struct Mutation {
  const char* what;
  std::function<void(Verdict&)> apply;
};

TEST(HashTest, PassingNumbersAreNotInIt) {
  const Mutation mutations[] = {
      {"position", [](Verdict& v) { v.position = 7; }},
      {"node count", [](Verdict& v) { v.failed_predicates[0].nodes = 9; }},
      {"missing amount", [](Verdict& v) { v.failed_predicates[0].missing[0].smallest = 1; }},
      {"order of predicates",
       [](Verdict& v) { std::swap(v.failed_predicates[0], v.failed_predicates[1]); }},
      {"used", [](Verdict& v) { v.queue_block->used = 1; }},
      {"expected time", [](Verdict& v) { v.expected_at.reset(); }},
      {"number in a detail",
       [](Verdict& v) { v.details[0] = "reclaim found 12 victims, 1,024.25 GPUs too few"; }},
      {"number in an unblocker", [](Verdict& v) { v.unblockers[0].what = "a node with 16 GPUs"; }},
      {"demand's count", [](Verdict& v) { v.demand[0].count = 1; }},
      {"demand's minimum", [](Verdict& v) { v.demand[0].min_count = 1; }},
      {"waiting", [](Verdict& v) { v.pods_waiting = 9; }},
      {"running", [](Verdict& v) { v.pods_running = 9; }},
      {"order of node requests", [](Verdict& v) { v.node_requests = {"nr-a", "nr-b"}; }},
  };
  for (const Mutation& m : mutations) {
    Verdict v = Sample();
    m.apply(v);
    EXPECT_EQ(Hash(v), Hash(Sample())) << m.what;
    EXPECT_EQ(Sentence(v), Sentence(Sample())) << m.what;
  }
}

TEST(HashTest, WhatNodesLackIsNotInItIfPolicyHoldsTheWorkload) {
  for (const Code code : {Code::kCostCapReached, Code::kGpuCapReached, Code::kQueueLimitReached}) {
    Verdict v = Sample();
    v.code = code;
    Verdict other = v;
    other.failed_predicates.pop_back();
    EXPECT_EQ(Hash(v), Hash(other));
    EXPECT_TRUE(SameButForPassingNumbers(v, other));
    EXPECT_EQ(Sentence(v), Sentence(other));
  }
}

TEST(HashTest, EverythingElseIsInIt) {
  const Mutation mutations[] = {
      {"code", [](Verdict& v) { v.code = Code::kNodesRequested; }},
      {"scope", [](Verdict& v) { v.scope = Scope::kPod; }},
      {"queue", [](Verdict& v) { v.queue = "other"; }},
      {"no block", [](Verdict& v) { v.queue_block.reset(); }},
      {"blocking queue", [](Verdict& v) { v.queue_block->queue = "other"; }},
      {"resource", [](Verdict& v) { v.queue_block->resource = "cpu"; }},
      {"limit", [](Verdict& v) { v.queue_block->limit = 1; }},
      {"requested", [](Verdict& v) { v.queue_block->requested = 1; }},
      {"plugin", [](Verdict& v) { v.failed_predicates[1].plugin = "NodeAffinity"; }},
      {"reason", [](Verdict& v) { v.failed_predicates[1].reason = "other"; }},
      {"missing resource", [](Verdict& v) { v.failed_predicates[0].missing[0].resource = "cpu"; }},
      {"one predicate less", [](Verdict& v) { v.failed_predicates.pop_back(); }},
      {"unblocker's kind", [](Verdict& v) { v.unblockers[0].by = ResolvableBy::kTime; }},
      {"unblocker's text", [](Verdict& v) { v.unblockers[0].what = "a rack with 8 GPUs"; }},
      {"demand's spec",
       [](Verdict& v) {
         auto spec = std::make_shared<model::PodSpec>(*v.demand[0].spec);
         spec->node_selector.Set("zone", "b");
         v.demand[0].spec = spec;
       }},
      {"detail", [](Verdict& v) { v.details[0] = "reclaim found no victim"; }},
      {"node requests", [](Verdict& v) { v.node_requests.pop_back(); }},
      {"subject", [](Verdict& v) { v.subject = "ConfigMap default/y"; }},
      {"until", [](Verdict& v) { v.until = absl::FromUnixSeconds(1); }},
      {"name in a detail", [](Verdict& v) { v.details[0] = "kept for gang ns/train-7"; }},
      {"other name in a detail", [](Verdict& v) { v.details[0] = "kept for gang ns/train-8"; }},
      {"name of digits", [](Verdict& v) { v.details[0] = "kept for gang ns/7"; }},
      {"gang size", [](Verdict& v) { v.min_member = 9; }},
      {"generation", [](Verdict& v) { v.observed_generation = 9; }},
  };
  std::set<std::string> hashes = {Hash(Sample())};
  for (const Mutation& m : mutations) {
    Verdict v = Sample();
    m.apply(v);
    EXPECT_TRUE(hashes.insert(Hash(v)).second) << m.what;
    EXPECT_FALSE(SameButForPassingNumbers(v, Sample())) << m.what;
  }
}

}  // namespace
}  // namespace fairlead::verdict
