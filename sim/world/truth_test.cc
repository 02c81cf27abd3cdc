#include "sim/world/truth.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "sim/world/objects.h"

namespace fairlead::sim::world {
namespace {

class TruthTest : public ::testing::Test {
 protected:
  Operation Named(absl::string_view name) {
    Operation fields;
    fields.With("name", name).With("ns", "ns");
    return fields;
  }
  void Queue(absl::string_view name, absl::string_view parent, absl::string_view limit) {
    Operation fields = Named(name);
    fields.With("parent", parent);
    if (!limit.empty()) fields.With("gpu_limit", limit);
    ASSERT_TRUE(server_.Create(ResourceType::kQueues, MakeQueue(fields), "test").ok());
  }
  void Pod(const std::string& name, absl::string_view group, absl::string_view node) {
    Operation fields;
    fields.With("ns", "ns").With("queue", "q").With("group", group).With("gpu", 2);
    Json pod = MakePod(fields, name);
    if (!node.empty()) pod["spec"]["nodeName"] = std::string(node);
    ASSERT_TRUE(server_.Create(ResourceType::kPods, std::move(pod), "fairlead-a.1").ok());
  }
  void Node(absl::string_view name, int64_t gpus) {
    Operation fields = Named(name);
    fields.With("gpu", gpus);
    ASSERT_TRUE(server_.Create(ResourceType::kNodes, MakeNode(fields), "test").ok());
  }

  EventQueue time_{absl::FromUnixSeconds(1'772'409'600)};
  ApiServer server_{&time_};
  Truth truth_{&time_, &server_};
};

TEST_F(TruthTest, CountsTheLoadOfANodeAndTheUseOfEveryQueueAbove) {
  Queue("root", "", "");
  Queue("q", "root", "");
  Node("n", 8);
  Pod("p1", "", "n");
  Pod("p2", "", "n");
  Pod("p3", "", "");
  EXPECT_EQ(truth_.LoadOf("n", [](const PodRow&) { return true; }).amounts.gpu, 4000);
  EXPECT_EQ(truth_.UseOf("q").gpu, 4000);
  EXPECT_EQ(truth_.UseOf("root").gpu, 4000);
}

// docs/queues.md: the class of the PodGroup, else that of its pods.
TEST_F(TruthTest, AGroupThatNamesNoClassHasTheClassOfItsPods) {
  ASSERT_TRUE(
      server_.Create(ResourceType::kPriorityClasses, MakePriorityClass("build", 100), "test").ok());
  Queue("root", "", "");
  Queue("q", "root", "");
  const auto group = [&](absl::string_view name, absl::string_view priority_class) {
    Json object = MakeGroup(Named(name).With("queue", "q").With("min", 1));
    object["spec"].erase("priorityClassName");
    if (!priority_class.empty()) object["spec"]["priorityClassName"] = std::string(priority_class);
    ASSERT_TRUE(server_.Create(ResourceType::kPodGroups, std::move(object), "test").ok());
    Json pod = MakePod(Named(name).With("queue", "q").With("group", name), std::string(name));
    pod["metadata"]["labels"]["priorityClassName"] = "build";
    ASSERT_TRUE(server_.Create(ResourceType::kPods, std::move(pod), "test").ok());
  };
  group("named", "train");
  group("unnamed", "");
  const std::vector<Workload> waiting = truth_.Waiting();
  ASSERT_EQ(waiting.size(), 2);
  EXPECT_TRUE(waiting[0].preemptible) << waiting[0].key;
  EXPECT_FALSE(waiting[1].preemptible) << waiting[1].key;
}

// The class is in the spec, as users have it, so that both kinds of priorities say the same.
TEST_F(TruthTest, APodMayEvictOneOfALowerClassOfItsQueue) {
  for (const auto& [name, value] : {std::pair{"train", 50}, {"high", 80}}) {
    ASSERT_TRUE(
        server_.Create(ResourceType::kPriorityClasses, MakePriorityClass(name, value), "test")
            .ok());
  }
  Queue("root", "", "");
  Queue("q", "root", "");
  Node("n", 0);
  const auto pod = [&](const std::string& name, absl::string_view priority_class, int64_t cpu) {
    Operation fields = Named(name);
    fields.With("queue", "q").With("class", priority_class).With("cpu", cpu);
    return MakePod(fields, name);
  };
  Json low = pod("low", "train", 6000);
  low["spec"]["nodeName"] = "n";
  ASSERT_TRUE(server_.Create(ResourceType::kPods, std::move(low), "fairlead-a.1").ok());
  time_.RunUntil(time_.now() + absl::Minutes(1));
  ASSERT_TRUE(server_.Create(ResourceType::kPods, pod("high", "high", 5000), "test").ok());
  ASSERT_TRUE(server_.Create(ResourceType::kPods, pod("equal", "train", 5000), "test").ok());
  ASSERT_TRUE(server_.Create(ResourceType::kPods, pod("larger", "high", 9000), "test").ok());
  time_.RunUntil(time_.now() + absl::Minutes(1));
  std::map<std::string, bool> may;
  for (const Workload& workload : truth_.Waiting())
    may[workload.key] = truth_.CouldPreempt(workload);
  const std::map<std::string, bool> expected = {
      {"ns/equal", false}, {"ns/high", true}, {"ns/larger", false}};
  EXPECT_EQ(may, expected);
  const auto buy = [](Json& queue) {
    queue["metadata"]["annotations"]["fairlead.dev/over-quota"] = "Weigh";
    return absl::OkStatus();
  };
  ASSERT_TRUE(server_.Modify(ResourceType::kQueues, "", "q", buy, "test").ok());
  for (const Workload& workload : truth_.Waiting()) EXPECT_FALSE(truth_.CouldPreempt(workload));
}

// Fairlead takes it off again when the node is needed before it is drained.
TEST_F(TruthTest, TheTaintForRemovalDoesNotCloseANode) {
  Node("n", 8);
  const auto taint = [&](const char* key) {
    const auto add = [&](Json& node) {
      node["spec"]["taints"].push_back(Json{{"key", key}, {"effect", "NoSchedule"}});
      return absl::OkStatus();
    };
    ASSERT_TRUE(server_.Modify(ResourceType::kNodes, "", "n", add, "test").ok());
  };
  taint("fairlead.dev/to-be-removed");
  EXPECT_EQ(truth_.nodes().at("n").closed_since, absl::InfiniteFuture());
  EXPECT_EQ(truth_.nodes().at("n").removing_since, time_.now());
  taint("maintenance");
  EXPECT_EQ(truth_.nodes().at("n").closed_since, time_.now());
}

TEST_F(TruthTest, TheLimitOfAQueueAboveBinds) {
  Queue("root", "", "3");
  Queue("q", "root", "");
  Node("n", 8);
  Pod("p1", "", "n");
  EXPECT_EQ(truth_.OverLimit("q", {0, 0, 1000}), "");
  EXPECT_EQ(truth_.OverLimit("q", {0, 0, 2000}),
            "queue root: 2000 of milli-GPU used, 2000 more, limit 3000");
}

// What waits for room counts against a limit as if it ran; what a limit holds itself does not.
TEST_F(TruthTest, WhatWaitsForCapacityTakesPartOfALimit) {
  const auto told = [&](const std::string& name, absl::string_view reason) {
    const auto tell = [&](Json& pod) {
      pod["status"]["conditions"] = {
          {{"type", "PodScheduled"}, {"status", "False"}, {"reason", std::string(reason)}}};
      return absl::OkStatus();
    };
    ASSERT_TRUE(server_.Modify(ResourceType::kPods, "ns", name, tell, "fairlead-a.1").ok());
  };
  Queue("root", "", "5");
  Queue("q", "root", "");
  Pod("first", "", "");
  Pod("second", "", "");
  Pod("third", "", "");
  told("first", "Unschedulable");
  told("second", "QueueLimitReached");
  told("third", "QueueLimitReached");
  const auto waiting = [&](absl::string_view key) {
    for (const Workload& workload : truth_.Waiting()) {
      if (workload.key == key) return workload;
    }
    return Workload();
  };
  EXPECT_EQ(truth_.OverLimitBeside(waiting("ns/third")), "");
  told("second", "NodesRequested");
  EXPECT_EQ(truth_.OverLimitBeside(waiting("ns/third")),
            "queue root: 4000 of milli-GPU used, 2000 more, limit 5000");
  EXPECT_EQ(truth_.OverLimitBeside(waiting("ns/second")), "") << "itself is not beside it";
}

TEST_F(TruthTest, AQueueThatIsItsOwnParentHasNoChain) {
  Queue("q", "q", "");
  EXPECT_TRUE(truth_.Chain("q").empty());
}

// A gang of two on one node with room for one does not fit; on two nodes it does.
TEST_F(TruthTest, AGangFitsWholeOrNotAtAll) {
  Queue("q", "", "");
  Node("n1", 2);
  Operation group = Named("g");
  group.With("queue", "q").With("min", 2);
  ASSERT_TRUE(server_.Create(ResourceType::kPodGroups, MakeGroup(group), "test").ok());
  Pod("p1", "g", "");
  Pod("p2", "g", "");
  ASSERT_EQ(truth_.Waiting().size(), 1u);
  EXPECT_TRUE(truth_.Entitled(truth_.Waiting()[0]));
  EXPECT_FALSE(truth_.FitsNow(truth_.Waiting()[0]));
  Node("n2", 2);
  EXPECT_TRUE(truth_.FitsNow(truth_.Waiting()[0]));
}

TEST_F(TruthTest, PodsStayChargedWhenTheirGroupGoes) {
  Queue("q", "", "");
  Queue("other", "", "");
  Node("n", 8);
  Operation group = Named("g");
  group.With("queue", "other").With("min", 1);
  ASSERT_TRUE(server_.Create(ResourceType::kPodGroups, MakeGroup(group), "test").ok());
  Pod("p1", "g", "n");
  EXPECT_EQ(truth_.UseOf("other").gpu, 2000);
  ASSERT_TRUE(server_.RemoveNow(ResourceType::kPodGroups, "ns", "g", "test").ok());
  EXPECT_EQ(truth_.UseOf("other").gpu, 2000);
  EXPECT_EQ(truth_.UseOf("q").gpu, 0);
}

TEST_F(TruthTest, KnowsWhatPolicyHolds) {
  Queue("root", "", "");
  Pod("p1", "", "");
  EXPECT_EQ(truth_.PolicyCode(truth_.Waiting()[0]), "QueueNotFound");
  Queue("q", "root", "");
  EXPECT_EQ(truth_.PolicyCode(truth_.Waiting()[0]), "");
  Queue("below", "q", "");
  EXPECT_EQ(truth_.PolicyCode(truth_.Waiting()[0]), "QueueNotLeaf");
}

}  // namespace
}  // namespace fairlead::sim::world
