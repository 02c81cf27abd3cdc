// What queues keep back, what they used in the past, and GPU models, in the engine.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine.h"
#include "scheduler/engine/engine_testing.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::engine {
namespace {

using model::kUnlimited;
using model::testing::At;
using model::testing::MakeGroup;
using model::testing::MakeNode;
using model::testing::MakeQueue;
using model::testing::PodBuilder;
using testing::Member;
using verdict::Code;

class SharingTest : public testing::EngineFixture {
 protected:
  // `lending` in devices; of GPUs alone.
  void Queue(absl::string_view name, int64_t quota, int64_t lending = kUnlimited,
             absl::string_view parent = "") {
    model::Queue queue = MakeQueue(name, parent, quota, kUnlimited);
    queue.meta.creation = At(static_cast<int64_t>(tree_.size()));
    queue.gpu.lending_limit = lending == kUnlimited ? kUnlimited : lending * 1000;
    tree_.Upsert(queue);
  }
  std::string DetailsOf(const CycleResult& result, absl::string_view workload) {
    const Waiting* waiting = Find(result, workload);
    return waiting == nullptr ? "" : absl::StrJoin(waiting->verdict.details, "; ");
  }
  void Pod(absl::string_view name, absl::string_view queue, int64_t gpus, int64_t created = 1,
           bool preemptible = true) {
    state_.UpsertPod(
        PodBuilder("ns", name).Queue(queue).Gpus(gpus).Created(created).Preemptible(preemptible));
  }
  void Running(absl::string_view name, absl::string_view queue, int64_t gpus,
               absl::string_view node) {
    state_.UpsertPod(
        PodBuilder("ns", name).Queue(queue).Gpus(gpus).On(node).Preemptible(true).Created(0));
  }
  model::Resources AllocatedOf(absl::string_view queue) {
    for (const QueueNumbers& row : engine_->Numbers()) {
      if (tree_.Name(row.queue) == queue) return row.allocated;
    }
    return {};
  }
  model::Resources RequestedOf(absl::string_view queue) {
    for (const QueueNumbers& row : engine_->Numbers()) {
      if (tree_.Name(row.queue) == queue) return row.requested;
    }
    return {};
  }
};

// ---- lending

TEST_F(SharingTest, KeptRoomIsNotTakenThoughItIsIdleAndANodeHelps) {
  Queue("keeper", 4, 0);
  Queue("other", 0);
  state_.UpsertNode(MakeNode("n", 8));
  for (int i = 0; i < 6; ++i) Pod(absl::StrCat("o", i), "other", 1, i);
  const CycleResult result = Cycle();
  EXPECT_EQ(Bound(result).size(), 4u);
  ASSERT_EQ(CodeOf(result, "o5"), Code::kInsufficientCapacity);
  EXPECT_TRUE(Find(result, "o5")->wants_nodes);
  EXPECT_NE(DetailsOf(result, "o5").find("guaranteed to queue keeper (lendingLimit): 4 GPUs"),
            std::string::npos)
      << DetailsOf(result, "o5");
  // The owner takes its capacity at once, and no pod is evicted for it.
  Pod("k", "keeper", 4, 9);
  const CycleResult owner = Cycle();
  EXPECT_EQ(Bound(owner), (std::map<std::string, std::string>{{"k", "n"}}));
  EXPECT_TRUE(owner.evictions.empty());
  // It is done: its room is kept again.
  state_.RemovePod("ns", "k", "");
  EXPECT_TRUE(Bound(Cycle()).empty());
}

TEST_F(SharingTest, WithoutALendingLimitIdleQuotaIsLent) {
  Queue("keeper", 4);
  Queue("other", 0);
  state_.UpsertNode(MakeNode("n", 8));
  for (int i = 0; i < 6; ++i) Pod(absl::StrCat("o", i), "other", 1, i);
  EXPECT_EQ(Bound(Cycle()).size(), 6u);
}

TEST_F(SharingTest, AsManyGiveWayAsIsTakenBecauseIdleRoomIsKept) {
  Queue("keeper", 4, 0);
  Queue("owner", 4);
  Queue("borrower", 0);
  state_.UpsertNode(MakeNode("n", 8));
  for (int i = 0; i < 4; ++i) Running(absl::StrCat("b", i), "borrower", 1, "n");
  Pod("o", "owner", 2);
  // With one of them gone it would fit beside the idle GPUs, but those are kept.
  const CycleResult result = Cycle();
  EXPECT_EQ(result.evictions.size(), 2u) << DetailsOf(result, "o");
  EXPECT_EQ(CodeOf(result, "o"), Code::kWaitingForVictims);
}

TEST_F(SharingTest, NoPodGivesWayIfAllOfThemWouldNotMakeRoomBesideWhatIsKept) {
  Queue("keeper", 4, 0);
  Queue("owner", 4);
  Queue("borrower", 0);
  state_.UpsertNode(MakeNode("n", 8));
  for (int i = 0; i < 2; ++i) Running(absl::StrCat("b", i), "borrower", 1, "n");
  Running("o0", "owner", 2, "n");
  Pod("o", "owner", 3);
  const CycleResult result = Cycle();
  EXPECT_TRUE(result.evictions.empty());
  EXPECT_EQ(CodeOf(result, "o"), Code::kInsufficientCapacity);
}

TEST_F(SharingTest, WhatIsBoughtForARefusedPodIsPromisedToItOnce) {
  Queue("keeper", 8, 0);
  Queue("other", 0);
  state_.UpsertNode(MakeNode("n", 8));
  Pod("o", "other", 2);
  EXPECT_TRUE(Find(Cycle(), "o")->wants_nodes);
  state_.UpsertOrderedNode(MakeNode("fl-1", 2), "fl-1");
  const CycleResult result = Cycle();
  EXPECT_EQ(CodeOf(result, "o"), Code::kNodesRequested);
  // Nothing is bought twice, and the room that is kept is left alone.
  EXPECT_FALSE(Find(result, "o")->wants_nodes);
  EXPECT_EQ(Find(result, "o")->verdict.node_requests, (std::vector<std::string>{"fl-1"}));
  state_.RemoveOrderedNode("fl-1");
  state_.UpsertNode(MakeNode("m", 2));
  EXPECT_EQ(Bound(Cycle()).size(), 1u);
}

TEST_F(SharingTest, NothingIsBoughtWhereMoreIsKeptThanThereIs) {
  Queue("keeper", 100, 0);
  Queue("other", 0);
  state_.UpsertNode(MakeNode("n", 8));
  Pod("o", "other", 2);
  const CycleResult result = Cycle();
  ASSERT_EQ(CodeOf(result, "o"), Code::kInsufficientCapacity);
  EXPECT_FALSE(Find(result, "o")->wants_nodes);
  EXPECT_NE(DetailsOf(result, "o").find("more than the cluster has"), std::string::npos)
      << DetailsOf(result, "o");
  // The keeper's own pods are bought for.
  Pod("k", "keeper", 8, 2);
  Pod("k2", "keeper", 8, 3);
  const CycleResult own = Cycle();
  EXPECT_EQ(Bound(own).count("k"), 1u);
  ASSERT_NE(Find(own, "k2"), nullptr);
  EXPECT_TRUE(Find(own, "k2")->wants_nodes);
}

TEST_F(SharingTest, ReclaimDoesNotEatIntoWhatAThirdQueueKeeps) {
  Queue("keeper", 2, 0);
  Queue("poor", 3);
  Queue("rich", 0);
  state_.UpsertNode(MakeNode("n", 8));
  for (int i = 0; i < 6; ++i) Running(absl::StrCat("r", i), "rich", 1, "n");
  Pod("p", "poor", 3);
  const CycleResult result = Cycle();
  // Two of the three might be idle room: that is the keeper's.
  int64_t evicted = 0;
  for (const Eviction& eviction : result.evictions) {
    evicted += eviction.moves_to == state::kNoId ? 1 : 0;
  }
  EXPECT_TRUE(evicted == 0 || evicted == 3) << evicted;
  EXPECT_TRUE(Bound(result).empty());
  EXPECT_NE(CodeOf(result, "p"), Code::kNone);
}

// ---- history

EngineOptions WithUsage() {
  EngineOptions options;
  options.usage.emplace();
  options.usage->window = absl::Hours(1);
  return options;
}

TEST_F(SharingTest, WithoutHistoryTheEngineSetsNoWakeUp) {
  Queue("a", 0);
  EXPECT_EQ(Cycle(0).wake_at, absl::InfiniteFuture());
}

TEST_F(SharingTest, AQueueThatTookEverythingForAnHourYieldsToOneThatDidNot) {
  for (const bool history : {false, true}) {
    SCOPED_TRACE(history);
    Start(history ? WithUsage() : EngineOptions());
    Queue("a", 0);
    Queue("b", 0);
    state_.UpsertNode(MakeNode("n", 8));
    for (int i = 0; i < 8; ++i) Running(absl::StrCat("a", i), "a", 1, "n");
    int64_t at = 0;
    for (; at <= 3600; at += 60) {
      const CycleResult result = Cycle(at);
      EXPECT_EQ(result.wake_at, history ? At(at + 60) : absl::InfiniteFuture());
      EXPECT_TRUE(result.evictions.empty());
    }
    for (int i = 0; i < 8; ++i) Pod(absl::StrCat("b", i), "b", 1, i);
    Cycle(at);
    int64_t share = 0;
    for (const QueueNumbers& row : engine_->Numbers()) {
      if (tree_.Name(row.queue) == "b") share = row.fair_share[model::kGpu];
    }
    EXPECT_EQ(share, history ? 8000 : 4000);
    for (int i = 0; i < 8; ++i) {
      state_.RemovePod("ns", absl::StrCat("a", i), "");
      state_.RemovePod("ns", absl::StrCat("b", i), "");
    }
  }
}

TEST_F(SharingTest, KValueZeroIgnoresHistory) {
  EngineOptions options = WithUsage();
  options.k_micro = 0;
  Start(options);
  Queue("a", 0);
  Queue("b", 0);
  state_.UpsertNode(MakeNode("n", 8));
  for (int i = 0; i < 8; ++i) Running(absl::StrCat("a", i), "a", 1, "n");
  for (int64_t at = 0; at <= 600; at += 60) Cycle(at);
  for (int i = 0; i < 8; ++i) Pod(absl::StrCat("b", i), "b", 1, i);
  Cycle(660);
  for (const QueueNumbers& row : engine_->Numbers()) {
    EXPECT_EQ(row.fair_share[model::kGpu], 4000) << tree_.Name(row.queue);
  }
}

// ---- GPU models

class ModelTest : public SharingTest {
 protected:
  // A queue without bounds but on GPUs of one model, in devices.
  void ModelQueue(absl::string_view name, absl::string_view product, int64_t quota, int64_t limit) {
    model::Queue queue = MakeQueue(name, "", kUnlimited, kUnlimited);
    queue.meta.creation = At(static_cast<int64_t>(tree_.size()));
    auto milli = [](int64_t devices) {
      return devices == kUnlimited ? kUnlimited : devices * 1000;
    };
    queue.other.emplace_back(absl::StrCat("gpu-model/", product),
                             model::QueueResource{milli(quota), milli(limit), 1'000'000});
    tree_.Upsert(queue);
  }
  void ModelNode(absl::string_view name, int64_t gpus, absl::string_view product) {
    model::Node node = MakeNode(name, gpus);
    if (!product.empty()) node.meta.labels.Set(model::kGpuProductLabel, product);
    state_.UpsertNode(node);
  }
  model::ResourceIndex Index(absl::string_view product) {
    return *state_.resource_names().Find(absl::StrCat("gpu-model/", product));
  }
};

TEST_F(ModelTest, LimitHoldsAtTheNodeAndThePodGoesToAnotherModel) {
  ModelQueue("q", "H100", kUnlimited, 2);
  ModelNode("a-h100", 8, "H100");
  ModelNode("b-l4", 8, "L4");
  Running("r", "q", 2, "a-h100");  // makes the H100 node the preferred one
  for (int i = 0; i < 3; ++i) Pod(absl::StrCat("p", i), "q", 1, i);
  const auto bound = Bound(Cycle());
  ASSERT_EQ(bound.size(), 3u);
  for (const auto& [pod, node] : bound) EXPECT_EQ(node, "b-l4") << pod;
  EXPECT_EQ(AllocatedOf("q")[Index("H100")], 2000);
  EXPECT_EQ(AllocatedOf("q")[model::kGpu], 5000);
}

TEST_F(ModelTest, WithoutAnotherModelItWaitsForTheLimitAndNothingIsBought) {
  ModelQueue("q", "H100", kUnlimited, 2);
  ModelNode("a", 8, "H100");
  for (int i = 0; i < 3; ++i) Pod(absl::StrCat("p", i), "q", 1, i);
  const CycleResult result = Cycle();
  EXPECT_EQ(Bound(result).size(), 2u);
  ASSERT_EQ(CodeOf(result, "p2"), Code::kQueueLimitReached);
  const Waiting* waiting = Find(result, "p2");
  EXPECT_FALSE(waiting->wants_nodes);
  ASSERT_TRUE(waiting->verdict.queue_block.has_value());
  EXPECT_EQ(waiting->verdict.queue_block->resource, "gpu-model/H100");
  EXPECT_EQ(waiting->verdict.queue_block->used, 2000);
  // One ends: the next one starts.
  state_.RemovePod("ns", "p0", "");
  EXPECT_EQ(Bound(Cycle()).count("p2"), 1u);
}

TEST_F(ModelTest, GangIsHeldToTheLimitWhole) {
  ModelQueue("q", "H100", kUnlimited, 2);
  ModelNode("a", 8, "H100");
  state_.UpsertPodGroup(MakeGroup("ns", "g", "q", 3));
  for (int i = 0; i < 3; ++i) {
    state_.UpsertPod(Member(absl::StrCat("g", i), "g"));
  }
  const CycleResult result = Cycle();
  EXPECT_TRUE(result.bindings.empty());
  EXPECT_EQ(CodeOf(result, "g"), Code::kQueueLimitReached);
  EXPECT_EQ(AllocatedOf("q")[Index("H100")], 0);
}

TEST_F(ModelTest, NonPreemptibleWorkStaysWithinTheModelsQuota) {
  ModelQueue("q", "H100", 1, kUnlimited);
  ModelNode("a", 8, "H100");
  Pod("p0", "q", 1, 0, false);
  Pod("p1", "q", 1, 1, false);
  Pod("p2", "q", 1, 2, true);
  const CycleResult result = Cycle();
  EXPECT_EQ(CodeOf(result, "p1"), Code::kNonPreemptibleOverQuota);
  EXPECT_EQ(Bound(result).size(), 2u);
}

TEST_F(ModelTest, WhatNamesOneProductIsRequestedAndCheckedBeforeItIsPlaced) {
  ModelQueue("q", "H100", kUnlimited, 1);
  state_.UpsertPod(PodBuilder("ns", "one")
                       .Queue("q")
                       .Gpus(1)
                       .Created(1)
                       .NodeSelector(model::kGpuProductLabel, "H100"));
  state_.UpsertPod(PodBuilder("ns", "two")
                       .Queue("q")
                       .Gpus(1)
                       .Created(2)
                       .NodeSelector(model::kGpuProductLabel, "H100"));
  state_.UpsertPod(PodBuilder("ns", "l4")
                       .Queue("q")
                       .Gpus(1)
                       .Created(3)
                       .NodeSelector(model::kGpuProductLabel, "L4"));
  const CycleResult result = Cycle();
  EXPECT_EQ(RequestedOf("q")[Index("H100")], 2000);
  EXPECT_TRUE(Find(result, "one")->wants_nodes);
  EXPECT_EQ(CodeOf(result, "two"), Code::kQueueLimitReached);
  EXPECT_TRUE(Find(result, "l4")->wants_nodes);
}

TEST_F(ModelTest, NothingIsBoughtThatAModelsLimitCouldForbid) {
  ModelQueue("q", "H100", kUnlimited, 1);
  Pod("open", "q", 2);
  Pod("small", "q", 1, 2);
  const CycleResult result = Cycle();
  EXPECT_FALSE(Find(result, "open")->wants_nodes);
  EXPECT_EQ(CodeOf(result, "open"), Code::kQueueLimitReached);
  EXPECT_NE(DetailsOf(result, "open").find("no GPU model is requested"), std::string::npos);
  EXPECT_TRUE(Find(result, "small")->wants_nodes);
}

TEST_F(ModelTest, ANodeThatLearnsItsProductLaterIsChargedAnew) {
  ModelQueue("q", "H100", kUnlimited, 4);
  ModelNode("a", 8, "");
  Running("r", "q", 3, "a");
  Cycle();
  EXPECT_EQ(AllocatedOf("q")[Index("H100")], 0);
  ModelNode("a", 8, "H100");
  Pod("p", "q", 2);
  const CycleResult result = Cycle();
  EXPECT_EQ(AllocatedOf("q")[Index("H100")], 3000);
  EXPECT_EQ(RequestedOf("q")[Index("H100")], 3000);
  EXPECT_EQ(CodeOf(result, "p"), Code::kQueueLimitReached);
  ModelNode("a", 8, "L4");
  EXPECT_EQ(Bound(Cycle()).count("p"), 1u);
  EXPECT_EQ(AllocatedOf("q")[Index("H100")], 0);
}

TEST_F(ModelTest, AQueueThatHoldsMoreThanItsShareOfAModelGivesItUpAndNoOther) {
  for (const char* name : {"a", "b"}) {
    model::Queue queue = MakeQueue(name, "", 8, kUnlimited);
    queue.meta.creation = At(static_cast<int64_t>(tree_.size()));
    queue.other.emplace_back("gpu-model/H100", model::QueueResource{4000, kUnlimited, 1'000'000});
    tree_.Upsert(queue);
  }
  ModelNode("h", 8, "H100");
  ModelNode("l", 8, "L4");
  for (int i = 0; i < 8; ++i) {
    state_.UpsertPod(PodBuilder("ns", absl::StrCat("b-h", i))
                         .Queue("b")
                         .Gpus(1)
                         .On("h")
                         .Preemptible(true)
                         .NodeSelector(model::kGpuProductLabel, "H100"));
  }
  for (int i = 0; i < 2; ++i) Running(absl::StrCat("b-l", i), "b", 1, "l");
  for (int i = 0; i < 3; ++i) {
    state_.UpsertPod(PodBuilder("ns", absl::StrCat("a", i))
                         .Queue("a")
                         .Gpus(2)
                         .Created(i)
                         .NodeSelector(model::kGpuProductLabel, "H100"));
  }
  const CycleResult result = Cycle();
  // Two of the three are within the quota of 4.
  EXPECT_EQ(result.evictions.size(), 4u);
  for (const Eviction& eviction : result.evictions) {
    EXPECT_EQ(state_.pod(eviction.pod).name.substr(0, 3), "b-h");
  }
  EXPECT_EQ(CodeOf(result, "a0"), Code::kWaitingForVictims);
  EXPECT_EQ(CodeOf(result, "a1"), Code::kWaitingForVictims);
  EXPECT_EQ(CodeOf(result, "a2"), Code::kInsufficientCapacity) << DetailsOf(result, "a2");
}

TEST_F(ModelTest, APodHeldByAModelsLimitIsHelpedByAVictimOfThatModelOnly) {
  ModelQueue("q", "H100", kUnlimited, 2);
  ModelNode("h", 8, "H100");
  ModelNode("l", 2, "L4");
  Running("low-l0", "q", 1, "l");
  Running("low-l1", "q", 1, "l");
  Running("low-h0", "q", 1, "h");
  Running("low-h1", "q", 1, "h");
  state_.UpsertPod(PodBuilder("ns", "high")
                       .Queue("q")
                       .Gpus(1)
                       .Priority("high", 90)
                       .NodeSelector(model::kGpuProductLabel, "H100"));
  const CycleResult result = Cycle();
  ASSERT_EQ(result.evictions.size(), 1u) << DetailsOf(result, "high");
  EXPECT_EQ(state_.pod(result.evictions.front().pod).name.substr(0, 5), "low-h");
}

TEST_F(ModelTest, FairShareDividesEachModelByItself) {
  ModelQueue("a", "H100", 0, kUnlimited);
  ModelQueue("b", "H100", 0, kUnlimited);
  ModelNode("h", 8, "H100");
  ModelNode("l", 8, "L4");
  model::Node cordoned = MakeNode("c", 8);
  cordoned.meta.labels.Set(model::kGpuProductLabel, "H100");
  cordoned.unschedulable = true;
  state_.UpsertNode(cordoned);
  for (const char* queue : {"a", "b"}) {
    for (int i = 0; i < 8; ++i) {
      state_.UpsertPod(PodBuilder("ns", absl::StrCat(queue, i))
                           .Queue(queue)
                           .Gpus(1)
                           .NodeSelector(model::kGpuProductLabel, "H100"));
    }
  }
  Cycle();
  for (const QueueNumbers& row : engine_->Numbers()) {
    EXPECT_EQ(row.fair_share[Index("H100")], 4000) << tree_.Name(row.queue);
  }
}

}  // namespace
}  // namespace fairlead::engine
