// The published traces are outside the repository: FAIRLEAD_SHARED names the folder that has
// data/openb, by default ../shared. Tests that need them are skipped without.
#include "tests/replay/openb.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/replay/go_random.h"
#include "tests/replay/replay.h"

namespace fairlead::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Made with Go 1.26: Int63, Intn(8152), Intn(1024), a thousand Int63, a Shuffle of 0..9, Int63.
TEST(GoRandomTest, DealsWhatGoDeals) {
  struct Case {
    int64_t seed, first;
    int32_t odd, power_of_two;
    std::vector<int> shuffled;
    int64_t last;
  };
  const Case cases[] = {
      {42, 3440579354231278675, 4315, 644, {6, 0, 3, 8, 5, 2, 1, 9, 4, 7}, 7810047940068427366},
      {1, 5577006791947779410, 4671, 455, {5, 6, 0, 2, 9, 8, 3, 7, 1, 4}, 1827064181412630415},
      {-7, 747107023976529931, 2032, 82, {1, 8, 2, 5, 4, 0, 6, 7, 3, 9}, 8803189989277913839},
      {0, 8717895732742165505, 1802, 1017, {2, 1, 7, 4, 3, 9, 0, 5, 8, 6}, 5846949180277289045},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.seed);
    GoRandom random(c.seed);
    EXPECT_EQ(random.Int63(), c.first);
    EXPECT_EQ(random.Intn(8152), c.odd);
    EXPECT_EQ(random.Intn(1024), c.power_of_two);
    for (int i = 0; i < 1000; ++i) random.Int63();
    std::vector<int> items = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    random.Shuffle(items);
    EXPECT_EQ(items, c.shuffled);
    EXPECT_EQ(random.Int63(), c.last);
  }
}

std::string FileWith(const std::string& name, const std::string& text) {
  const std::string file = ::testing::TempDir() + "/" + name;
  std::ofstream(file) << text;
  return file;
}

constexpr char kPodHeader[] =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time\n";

TEST(OpenbTest, WhatIsWrongWithAFileIsNamed) {
  EXPECT_EQ(ReadPods("/nowhere/pods.csv").status().code(), absl::StatusCode::kNotFound);
  const std::pair<const char*, const char*> cases[] = {
      {"a,1000,1,1,1001,,LS,Running,0\n", "line 2: gpu_milli 1001 is not between 1 and 1000"},
      {"a,1000,1,1,0,,LS,Running,0\n", "line 2: gpu_milli 0"},
      {"a,1000,1,0,0,\nb,x,1,0,0,\n", "line 3: cpu_milli \"x\" is no amount"},
      {"a,-1,1,0,0,\n", "cpu_milli \"-1\" is no amount"},
      {"a,1000\n", "line 2: has no column memory_mib"},
  };
  for (const auto& [row, text] : cases) {
    const auto pods = ReadPods(FileWith("bad.csv", absl::StrCat(kPodHeader, row)));
    EXPECT_EQ(pods.status().code(), absl::StatusCode::kInvalidArgument) << row;
    EXPECT_THAT(std::string(pods.status().message()), HasSubstr(text)) << row;
  }
}

TEST(OpenbTest, PodsAreReadByTheNamesOfTheColumns) {
  const auto pods = ReadPods(FileWith(
      "pods.csv", "gpu_spec,gpu_milli,num_gpu,memory_mib,cpu_milli,name\r\nA|B,500,1,2,3,p\r\n"));
  ASSERT_TRUE(pods.ok()) << pods.status();
  ASSERT_EQ(pods->size(), 1U);
  const TracePod& pod = pods->front();
  EXPECT_EQ(pod.Demand(), 500);
  EXPECT_THAT(pod.gpu_models, ElementsAre("A", "B"));
  const auto no_models =
      ReadPods(FileWith("few.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,1000\n"));
  ASSERT_TRUE(no_models.ok()) << no_models.status();
  EXPECT_TRUE(no_models->front().gpu_models.empty());
  const model::Pod object = ToPod(pod, 7);
  EXPECT_EQ(object.spec.gpu_share.fraction_milli, 500);
  EXPECT_EQ(model::Get(object.spec.requests, "cpu"), 3);
  EXPECT_EQ(model::Get(object.spec.requests, "memory"), 2 << 20);
  EXPECT_EQ(model::Get(object.spec.requests, "nvidia.com/gpu"), 0);
}

TracePod Pod(const std::string& name, int64_t gpus, int64_t milli, int64_t cpu = 1000) {
  TracePod pod;
  pod.name = name;
  pod.cpu = cpu;
  pod.gpus = gpus;
  pod.gpu_milli = milli;
  return pod;
}

TEST(OpenbTest, EveryPodArrivesOnceAndThenCopiesUpToTheDemand) {
  std::vector<TracePod> pods;
  for (int i = 0; i < 20; ++i) pods.push_back(Pod(absl::StrCat("p", i), i % 3, 100 + i * 10));
  int64_t demand = 0;
  for (const TracePod& pod : pods) demand += pod.Demand();
  const std::vector<size_t> order = PublishedOrder(pods, 42, demand * 2, 130);
  const std::set<size_t> first(order.begin(), order.begin() + 20);
  EXPECT_EQ(first.size(), 20U);
  int64_t arrived = 0;
  for (const size_t pod : order) arrived += pods[pod].Demand();
  EXPECT_LE(arrived, demand * 2 * 130 / 100 + 1000);
  EXPECT_GT(arrived, demand * 2 * 130 / 100 - 1000);
  EXPECT_EQ(order, PublishedOrder(pods, 42, demand * 2, 130));
  EXPECT_NE(order, PublishedOrder(pods, 43, demand * 2, 130));
  EXPECT_EQ(PublishedOrder(pods, 42, demand / 2, 130).size(), pods.size());
  EXPECT_EQ(PublishedOrder({Pod("cpu", 0, 0)}, 42, 1000, 130).size(), 1U) << "nothing to ask for";
  EXPECT_TRUE(PublishedOrder({}, 42, 1000, 130).empty());
}

// Two GPUs; three whole GPUs and two shares of 0.6 are requested in some order.
TEST(ReplayTest, CountsWhatIsPlacedAndTurnsAwayTheRest) {
  const std::vector<TraceNode> nodes = {{"n", 8000, 1024, 2, "A"}};
  std::vector<TracePod> pods = {Pod("a", 1, 1000), Pod("b", 1, 1000), Pod("c", 0, 0)};
  pods[2].memory_mib = 1025;
  for (const char* plugin : {"GpuFragmentation", "GpuFragmentation:learned", "default"}) {
    SCOPED_TRACE(plugin);
    ReplayOptions options;
    options.plugin = plugin;
    const auto result = Replay(nodes, pods, options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->capacity_milli, 2000);
    EXPECT_EQ(result->arrived_milli, 2000) << "another one would go beyond 130 %";
    EXPECT_EQ(result->allocated_milli, 2000);
    EXPECT_EQ(result->placed, 2);
    EXPECT_GE(result->refused, 1) << "c has no memory anywhere";
    EXPECT_DOUBLE_EQ(result->Final(), 100);
  }
  ReplayOptions unknown;
  unknown.plugin = "Unheard";
  EXPECT_EQ(Replay(nodes, pods, unknown).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Replay({{"cpu", 1, 1, 0, ""}}, pods, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

class PublishedTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("FAIRLEAD_SHARED");
    folder_ = absl::StrCat(shared != nullptr ? shared : "../shared", "/data/openb");
    if (!std::filesystem::exists(PodFile(folder_, "default"))) {
      GTEST_SKIP() << "skipped: there is no " << PodFile(folder_, "default")
                   << "; set FAIRLEAD_SHARED to the folder that has data/openb";
    }
    auto nodes = ReadNodes(NodeFile(folder_));
    auto pods = ReadPods(PodFile(folder_, "default"));
    ASSERT_TRUE(nodes.ok() && pods.ok()) << nodes.status() << pods.status();
    nodes_ = *std::move(nodes);
    pods_ = *std::move(pods);
  }
  [[nodiscard]] std::vector<TraceNode> EveryNthNode(size_t n) const {
    std::vector<TraceNode> nodes;
    for (size_t i = 0; i < nodes_.size(); i += n) nodes.push_back(nodes_[i]);
    return nodes;
  }
  std::string folder_;
  std::vector<TraceNode> nodes_;
  std::vector<TracePod> pods_;
};

// While everything finds a place, allocation equals arrival, so the order is the published one.
// Published values are means, rounded to 0.01, of samples that were rounded before.
TEST_F(PublishedTraceTest, PodsArriveInThePublishedOrder) {
  const auto published = ReadPublished(folder_);
  ASSERT_TRUE(published.ok()) << published.status();
  int64_t capacity = 0;
  for (const TraceNode& node : nodes_) capacity += node.gpus * 1000;
  for (const int64_t seed : {42, 51}) {
    const auto known = published->find({"default", seed});
    ASSERT_NE(known, published->end());
    const std::vector<double>& curve = known->second.at("06-FGD");
    std::vector<double> sums(131, 0);
    std::vector<int> counts(131, 0);
    int64_t arrived = 0;
    for (const size_t pod : PublishedOrder(pods_, seed, capacity, 130)) {
      arrived += pods_[pod].Demand();
      const double percent = 100.0 * static_cast<double>(arrived) / static_cast<double>(capacity);
      sums[static_cast<size_t>(percent + 0.5)] += percent;
      ++counts[static_cast<size_t>(percent + 0.5)];
    }
    for (size_t at = 0; at <= 60; ++at) {
      EXPECT_NEAR(curve[at], sums[at] / counts[at], 0.0101) << "seed " << seed << " at " << at;
    }
  }
}

TEST_F(PublishedTraceTest, FragmentationAwareScoreBeatsBinPackingOnASlice) {
  const std::vector<TraceNode> nodes = EveryNthNode(16);
  ReplayOptions options;
  const auto aware = Replay(nodes, pods_, options);
  options.shuffle_names = 7;
  const auto shuffled = Replay(nodes, pods_, options);
  options.plugin = "default";
  const auto packed = Replay(nodes, pods_, options);
  ASSERT_TRUE(aware.ok() && shuffled.ok() && packed.ok());
  EXPECT_GT(aware->Final(), packed->Final());
  EXPECT_GT(shuffled->Final(), packed->Final());
  RecordProperty("aware", absl::StrCat(aware->Final()));
  RecordProperty("packed", absl::StrCat(packed->Final()));
}

}  // namespace
}  // namespace fairlead::replay
