#include <gtest/gtest.h>

#include <string>

#include "sim/world/objects.h"
#include "sim/world/truth.h"

namespace fairlead::sim::world {
namespace {

// A node of 8 GPUs that queue `giver` holds; a pod of queue `taker` waits for 4.
class TruthReclaimTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"train", "build"}) {
      const int64_t value = std::string(name) == "train" ? 50 : 100;
      ASSERT_TRUE(
          server_.Create(ResourceType::kPriorityClasses, MakePriorityClass(name, value), "test")
              .ok());
    }
    Operation root, node;
    root.With("name", "root");
    ASSERT_TRUE(server_.Create(ResourceType::kQueues, MakeQueue(root), "test").ok());
    node.With("name", "n").With("gpu", 8).With("cpu", 16000);
    ASSERT_TRUE(server_.Create(ResourceType::kNodes, MakeNode(node), "test").ok());
    Queue("giver", 0);
    Queue("taker", 4);
    time_.RunUntil(time_.now() + absl::Minutes(1));
  }
  void Queue(const char* name, int64_t quota) {
    Operation queue;
    queue.With("name", name).With("parent", "root").With("gpu_quota", quota);
    ASSERT_TRUE(server_.Create(ResourceType::kQueues, MakeQueue(queue), "test").ok());
  }
  void Pod(const std::string& name, const char* queue, int64_t gpus, const char* node,
           const char* priority_class = "train") {
    Operation fields;
    fields.With("ns", "ns").With("name", name).With("queue", queue).With("gpu", gpus);
    fields.With("class", priority_class).With("node", node).With("cpu", 500);
    ASSERT_TRUE(server_.Create(ResourceType::kPods, MakePod(fields, name), "fairlead-a.1").ok());
  }
  void Hold(int64_t pods, const char* priority_class = "train") {
    for (; pods > 0; --pods) {
      Pod(std::string(priority_class) + std::to_string(pods), "giver", 1, "n", priority_class);
    }
    time_.RunUntil(time_.now() + absl::Minutes(1));
  }
  static Json Budget(const char* job) {
    return {{"apiVersion", "policy/v1"},
            {"kind", "PodDisruptionBudget"},
            {"metadata", {{"name", job}, {"namespace", "ns"}}},
            {"spec", Json::object()}};
  }
  bool Could() {
    for (const Workload& workload : truth_.Waiting()) {
      if (workload.key == "ns/waits") return truth_.CouldReclaim(workload);
    }
    ADD_FAILURE() << "it does not wait";
    return false;
  }

  EventQueue time_{absl::FromUnixSeconds(1'772'409'600)};
  ApiServer server_{&time_};
  Truth truth_{&time_, &server_};
};

TEST_F(TruthReclaimTest, WithinItsQuotaItTakesWhatIsAboveThatOfOthers) {
  Hold(8);
  Pod("waits", "taker", 4, "");
  EXPECT_TRUE(Could());
}

TEST_F(TruthReclaimTest, NotBeyondItsQuota) {
  Hold(8);
  Pod("waits", "taker", 5, "");
  EXPECT_FALSE(Could());
}

// The queue has its turn by the first in its line.
TEST_F(TruthReclaimTest, NotBesideWhatExceedsItsQuota) {
  Hold(8);
  Pod("waits", "taker", 2, "");
  Pod("small", "taker", 4, "");
  EXPECT_TRUE(Could());
  Pod("large", "taker", 5, "");
  EXPECT_FALSE(Could());
}

TEST_F(TruthReclaimTest, NotWhatTheQuotaOfTheOtherKeeps) {
  Queue("other", 1);
  Hold(4);
  for (const char* name : {"o1", "o2", "o3", "o4"}) Pod(name, "other", 1, "n");
  time_.RunUntil(time_.now() + absl::Minutes(1));
  Pod("waits", "taker", 4, "");
  EXPECT_TRUE(Could());
  Pod("more", "giver", 1, "n", "build");  // the node is overfull: what is left gives three
  time_.RunUntil(time_.now() + absl::Minutes(1));
  EXPECT_FALSE(Could());
}

TEST_F(TruthReclaimTest, NotWhatIsNotPreemptible) {
  Hold(3);
  Hold(5, "build");
  Pod("waits", "taker", 4, "");
  EXPECT_FALSE(Could());
}

TEST_F(TruthReclaimTest, NotWhileAPodLeavesOrANodeComes) {
  Hold(8);
  Pod("waits", "taker", 4, "");
  ASSERT_TRUE(server_.Remove(ResourceType::kPods, "ns", "train1", "test").ok());
  EXPECT_FALSE(Could());
  ASSERT_TRUE(server_.RemoveNow(ResourceType::kPods, "ns", "train1", "test").ok());
  EXPECT_TRUE(Could());
  const Json request = {{"apiVersion", "fairlead.dev/v1alpha1"},
                        {"kind", "NodeRequest"},
                        {"metadata", {{"name", "r"}}},
                        {"spec", {{"provider", "kwok"}, {"instanceType", "gpu1"}}}};
  ASSERT_TRUE(server_.Create(ResourceType::kNodeRequests, request, "test").ok());
  EXPECT_FALSE(Could());
}

TEST_F(TruthReclaimTest, NotWhatABudgetProtects) {
  Hold(8);
  Pod("waits", "taker", 4, "");
  for (const char* job : {"train1", "train2", "train3", "train4"}) {
    EXPECT_TRUE(Could());
    ASSERT_TRUE(server_.Create(ResourceType::kPodDisruptionBudgets, Budget(job), "test").ok());
  }
  EXPECT_TRUE(Could());  // four others may go
  ASSERT_TRUE(server_.Create(ResourceType::kPodDisruptionBudgets, Budget("train5"), "test").ok());
  EXPECT_FALSE(Could());
}

}  // namespace
}  // namespace fairlead::sim::world
