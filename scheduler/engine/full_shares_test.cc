// Gangs that do not fill a fair share exactly: reclaim with and without rounding, through the
// engine, over many cycles.
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using model::testing::At;
using model::testing::MakeGroup;
using model::testing::PodBuilder;
using testing::Cluster;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// A cluster whose gangs are made anew when they are evicted. Every pod has one GPU.
class Gangs {
 public:
  explicit Gangs(bool round_to_gang) : cluster_(OptionsOf(round_to_gang)) {}

  Cluster& cluster() { return cluster_; }

  // All on one node; empty: it waits.
  void Add(const std::string& name, const std::string& queue, int64_t gpus,
           const std::string& node = "", bool preemptible = true) {
    model::PodGroup group = MakeGroup("ns", name, queue, static_cast<int32_t>(gpus));
    group.preemptibility =
        preemptible ? model::Preemptibility::kPreemptible : model::Preemptibility::kNonPreemptible;
    group.meta.creation = At(++groups_);
    cluster_.Group(group);
    for (int64_t i = 0; i < gpus; ++i) {
      const std::string pod = absl::StrCat(name, "-", i);
      pods_.emplace(pod, PodBuilder("ns", pod).Gpus(1).Group(name));
      queue_of_[pod] = queue;
      held_.try_emplace(queue, 0);
      if (node.empty()) {
        cluster_.Pod(pods_.at(pod));
      } else {
        Bind(pod, node);
      }
    }
  }

  // A cycle and what comes of it. Returns how many pods were evicted.
  size_t Cycle() {
    const CycleResult& result = cluster_.Run(100 + ++cycles_);
    const std::map<std::string, std::string> bound = testing::BoundBy(cluster_.state(), result);
    std::set<std::string> evicted;
    for (const Eviction& eviction : result.evictions) {
      evicted.insert(cluster_.state().pod(eviction.pod).name);
    }
    for (const auto& [pod, node] : bound) Bind(pod, node);
    for (const std::string& pod : evicted) {
      cluster_.state().RemovePod("ns", pod, "");
      cluster_.Pod(pods_.at(pod));
      --held_[queue_of_[pod]];
    }
    return evicted.size();
  }

  // Cycles until six in a row have evicted no pod; false if there are none.
  bool ComesToRest() {
    int quiet = 0;
    for (int cycle = 0; cycle < 60 && quiet < 6; ++cycle) quiet = Cycle() == 0 ? quiet + 1 : 0;
    return quiet == 6;
  }

  // Queue -> GPUs.
  [[nodiscard]] const std::map<std::string, int64_t>& held() const { return held_; }

 private:
  static EngineOptions OptionsOf(bool round_to_gang) {
    EngineOptions options;
    options.round_to_gang = round_to_gang;
    return options;
  }
  void Bind(const std::string& pod, const std::string& node) {
    cluster_.Pod(PodBuilder(pods_.at(pod)).On(node));
    ++held_[queue_of_[pod]];
  }

  Cluster cluster_;
  std::map<std::string, PodBuilder> pods_;
  std::map<std::string, std::string> queue_of_;
  std::map<std::string, int64_t> held_;
  int64_t groups_ = 0;
  int64_t cycles_ = 0;
};

// 36 GPUs, all in use. "big" holds 20 in gangs of two and has a share of 8; a, b, c and d hold one
// gang of four each, and each has a share of 7. All request more.
void FourQueuesBelowAndOneAbove(Gangs& gangs, bool preemptible = true) {
  Cluster& cluster = gangs.cluster();
  cluster.Queue("big", 0);
  for (int n = 0; n < 9; ++n) cluster.Node(absl::StrCat("n", n), 4);
  for (int i = 0; i < 10; ++i) {
    gangs.Add(absl::StrCat("big", i), "big", 2, absl::StrCat("n", i / 2));
  }
  gangs.Add("big-more", "big", 2);
  int node = 5;
  for (const std::string queue : {"a", "b", "c", "d"}) {
    cluster.Queue(queue, 0);
    gangs.Add(queue + "0", queue, 4, absl::StrCat("n", node++));
    gangs.Add(queue + "1", queue, 4, "", preemptible);
  }
}

TEST(FullSharesTest, WithoutRoundingNothingMoves) {
  Gangs gangs(/*round_to_gang=*/false);
  FourQueuesBelowAndOneAbove(gangs);
  for (int cycle = 0; cycle < 6; ++cycle) EXPECT_EQ(gangs.Cycle(), 0u);
  EXPECT_THAT(gangs.held(), UnorderedElementsAre(Pair("big", 20), Pair("a", 4), Pair("b", 4),
                                                 Pair("c", 4), Pair("d", 4)));
  EXPECT_THAT(gangs.cluster().DetailsOf("a1"),
              ::testing::HasSubstr("reclaim: queue a would exceed its fair share"));
}

TEST(FullSharesTest, NonPreemptibleGangsAreNotRoundedBeyondTheirQuota) {
  Gangs gangs(/*round_to_gang=*/true);
  FourQueuesBelowAndOneAbove(gangs, /*preemptible=*/false);
  for (int cycle = 0; cycle < 6; ++cycle) EXPECT_EQ(gangs.Cycle(), 0u);
}

// d is the last: it would gain three, and big would lack three for it.
TEST(FullSharesTest, RoundingEvensOutTheSharesAndThenNothingMoves) {
  Gangs gangs(/*round_to_gang=*/true);
  FourQueuesBelowAndOneAbove(gangs);
  EXPECT_TRUE(gangs.ComesToRest());
  EXPECT_THAT(gangs.held(), UnorderedElementsAre(Pair("big", 8), Pair("a", 8), Pair("b", 8),
                                                 Pair("c", 8), Pair("d", 4)));
}

// Two-level trees of random gangs, some of them idle: a fixed set of gangs comes to rest.
TEST(FullSharesProperty, NoPingPong) {
  int evictions = 0;
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const auto between = [&random](int64_t low, int64_t high) {
      return low + static_cast<int64_t>(random() % static_cast<uint32_t>(high - low + 1));
    };
    Gangs gangs(/*round_to_gang=*/true);
    for (int n = 0; n < 4; ++n) gangs.cluster().Node(absl::StrCat("n", n), 4);
    for (const std::string department : {"x", "y"}) {
      gangs.cluster().Queue(department, 0);
      for (int q = 0; q < 2; ++q) {
        const std::string queue = absl::StrCat(department, q);
        gangs.cluster().Queue(queue, between(0, 2), model::kUnlimited, department);
        // The first workload takes all it can get.
        if (gangs.held().size() == 1) gangs.Cycle();
        const int64_t gpus = between(1, 4);
        for (int64_t i = between(2, 16 / gpus); i > 0; --i) {
          gangs.Add(absl::StrCat(queue, "-", i), queue, gpus);
        }
      }
    }
    int quiet = 0;
    for (int cycle = 0; cycle < 60 && quiet < 6; ++cycle) {
      const size_t evicted = gangs.Cycle();
      evictions += static_cast<int>(evicted);
      quiet = evicted == 0 ? quiet + 1 : 0;
    }
    EXPECT_EQ(quiet, 6) << "still evicting after 60 cycles";
  }
  EXPECT_GT(evictions, 30) << "or nothing was tested";
}

}  // namespace
}  // namespace fairlead::engine
