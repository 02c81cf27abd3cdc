#include "scheduler/plugins/pod_census.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "scheduler/framework/domain_counters.h"
#include "scheduler/plugins/gpu_fragmentation.h"
#include "scheduler/plugins/plugin_test_util.h"
#include "scheduler/plugins/typical_pods.h"

namespace fairlead::plugins {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// Pods of few shapes that come, grow, move between groups, are deleted and go, and decisions about
// them that are tried and taken back.
class CensusWorld {
 public:
  explicit CensusWorld(uint64_t seed) : random_(seed) {}

  void Step() {
    const std::string name = absl::StrCat("p", Below(10));
    switch (Below(8)) {
      case 0:
        state_.RemovePod("ns", name, "");
        return;
      case 1: {
        model::Node node = MakeNode(absl::StrCat("n", Below(3)), 4);
        const char* const memory[] = {"16384", "40960", "81920"};
        if (Below(3) != 0) node.meta.labels.Set(model::kGpuMemoryLabel, memory[Below(3)]);
        state_.UpsertNode(node);
        return;
      }
      case 2:
        state_.RemoveNode(absl::StrCat("n", Below(3)), "");
        return;
      case 3:
        state_.RemovePodGroup("ns", absl::StrCat("g", Below(2)), "");
        return;
      default:
        state_.UpsertPod(Pod(name));
    }
  }
  void Try(state::Transaction& txn) {
    const state::PodId pod = state_.FindPod("ns", absl::StrCat("p", Below(10)));
    const state::NodeId node = state_.FindNode(absl::StrCat("n", Below(3)));
    if (pod == state::kNoId || node == state::kNoId || !state_.pod(pod).ours) return;
    if (state_.class_of(pod).SharesGpu()) return;
    switch (state_.pod(pod).status) {
      case state::PodStatus::kPending:
        return Below(2) == 0 ? txn.Allocate(pod, node) : txn.Pipeline(pod, node);
      case state::PodStatus::kReleasing:
        return txn.Pipeline(pod, node);
      case state::PodStatus::kBound:
      case state::PodStatus::kRunning:
        return txn.Evict(pod);
      default:
        return;
    }
  }
  size_t Below(size_t bound) { return static_cast<size_t>(random_() % bound); }
  state::ClusterState& state() { return state_; }

 private:
  static state::StateOptions Options() {
    state::StateOptions options;
    options.scheduler_names = {"fairlead"};
    return options;
  }
  model::Pod Pod(const std::string& name) {
    PodBuilder builder("ns", name);
    builder.Scheduler(Below(5) == 0 ? "other" : "fairlead");
    if (Below(3) == 0) {
      builder.GpuFraction(static_cast<int64_t>(250 * (1 + Below(3))));
    } else if (Below(3) == 0) {
      builder.GpuMemory(static_cast<int64_t>(4000 * (1 + Below(2))));
    } else {
      builder.Gpus(static_cast<int64_t>(Below(3)));
    }
    if (Below(3) == 0) builder.Group(absl::StrCat("g", Below(2)));
    if (Below(2) == 0) {
      builder.On(absl::StrCat("n", Below(3)),
                 Below(5) == 0 ? model::PodPhase::kSucceeded : model::PodPhase::kRunning);
    }
    if (Below(5) == 0) builder.Deleting();
    return builder;
  }

  std::mt19937_64 random_;
  state::ClusterState state_{Options()};
};

std::string Text(const std::vector<TypicalPod>& shapes) {
  std::string text;
  for (const TypicalPod& pod : shapes) {
    absl::StrAppend(&text, pod.cpu, " ", pod.devices, "x", pod.milli, " ", pod.weight, "; ");
  }
  return text;
}

TEST(PodCensusProperty, AgreesWithARecountAfterAnything) {
  size_t renewals = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    CensusWorld world(seed);
    PodCensus census(world.state());
    world.state().Subscribe(&census);
    uint64_t version = 0;
    std::string learned;
    const auto check = [&] {
      ASSERT_EQ(census.CheckConsistency(), "");
      const std::string now = Text(LearnTypicalPods(world.state(), CountPods(world.state())));
      const uint64_t renewed = census.Renew();
      // What is learned from an equal version is the same.
      ASSERT_TRUE(renewed != version || now == learned) << learned << " is " << now;
      renewals += renewed != version;
      version = renewed;
      learned = now;
    };
    for (int step = 0; step < 60; ++step) {
      SCOPED_TRACE(absl::StrCat("step ", step));
      world.Step();
      if (world.Below(3) == 0) continue;  // so that several changes come together
      ASSERT_NO_FATAL_FAILURE(check());
      state::Transaction txn(world.state());
      for (size_t i = world.Below(5); i > 0; --i) world.Try(txn);
      if (world.Below(2) == 0) {
        ASSERT_NO_FATAL_FAILURE(check());
      }
      txn.RollbackTo(0);
      ASSERT_NO_FATAL_FAILURE(check());
    }
    world.state().Unsubscribe(&census);
  }
  EXPECT_GT(renewals, 500u);
}

TEST_F(PluginTest, ARollBackLeavesTheCensusAsItWas) {
  AddNode(MakeNode("n", 4));
  AddPod(PodBuilder("ns", "a").Gpus(1).Scheduler("fairlead"));
  PodCensus census(state_);
  state_.Subscribe(&census);
  const uint64_t version = census.Renew();
  EXPECT_THAT(census.Counts(), ElementsAre(Pair(0, 1)));
  state::Transaction txn(state_);
  txn.Allocate(state_.FindPod("ns", "a"), state_.FindNode("n"));
  EXPECT_EQ(census.Renew(), version) << "a pod that is placed counts as before";
  txn.RollbackTo(0);
  EXPECT_EQ(census.Renew(), version);
  state_.Unsubscribe(&census);
}

// The class of the first pod goes, and its id is given to the class that the pod has now.
TEST_F(PluginTest, AClassThatTakesTheIdOfAnotherIsNoticed) {
  AddPod(PodBuilder("ns", "a").Gpus(1).Scheduler("fairlead"));
  PodCensus census(state_);
  state_.Subscribe(&census);
  const uint64_t version = census.Renew();
  state_.RemovePod("ns", "a", "");
  AddPod(PodBuilder("ns", "a").Gpus(3).Scheduler("fairlead"));
  EXPECT_THAT(CountPods(state_), ElementsAre(Pair(0, 1)));
  EXPECT_NE(census.Renew(), version);
  EXPECT_EQ(census.CheckConsistency(), "");
  state_.Unsubscribe(&census);
}

// Attached, a score follows the log; not attached, it counts again: the same scores.
TEST_F(PluginTest, ScoresThatFollowTheLogAreThoseOfARecount) {
  const auto follows = Only("GpuFragmentation"), counts = Only("GpuFragmentation");
  framework::DomainCounters counters(state_);
  state_.Subscribe(&counters);
  follows->Attach(&counters);
  ASSERT_EQ(follows->Subscribers().size(), 1u);
  for (state::StateSubscriber* each : follows->Subscribers()) state_.Subscribe(each);
  AddNode(MakeNode("n", 4));
  AddNode(MakeNode("m", 8));
  Waiting(PodBuilder("ns", "w").GpuFraction(300).Build().spec);
  for (int i = 0; i < 12; ++i) {
    PodBuilder pod("ns", absl::StrCat("p", i % 8));
    pod.GpuFraction(100 + 70 * i).Cpu(1000).Scheduler("fairlead");
    if (i % 3 != 0) pod.On(i % 2 == 0 ? "n" : "m");
    if (i > 8) pod.Deleting();
    AddPod(pod);
    EXPECT_EQ(Score(*follows, "n"), Score(*counts, "n")) << i;
    EXPECT_EQ(Score(*follows, "m"), Score(*counts, "m")) << i;
    EXPECT_EQ(follows->CheckConsistency(), "");
  }
  for (state::StateSubscriber* each : follows->Subscribers()) state_.Unsubscribe(each);
  state_.Unsubscribe(&counters);
  follows->Attach(nullptr);
  EXPECT_TRUE(follows->Subscribers().empty());
}

TEST_F(PluginTest, GivenTypicalPodsNeedNoCensus) {
  framework::DomainCounters counters(state_);
  const auto given = Only("GpuFragmentation", R"({"typicalPods":[{"cpu":"4"}]})");
  given->Attach(&counters);
  EXPECT_TRUE(given->Subscribers().empty());
}

}  // namespace
}  // namespace fairlead::plugins
