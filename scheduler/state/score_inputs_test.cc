// What scores alone read, each kept only if the options say so: profiles, images, scoring requests,
// labels that plugins read.
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/state/state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using model::testing::MakeNode;
using model::testing::PodBuilder;
using testing::OurPods;

StateOptions With(bool images, bool scoring) {
  StateOptions options = OurPods();
  options.scheduler_names = {"fairlead", "second", "first"};
  options.profiles = {{"first", 0}, {"second", 1}};
  options.keep_images = images;
  options.sum_scoring_requests = scoring;
  return options;
}

model::Pod PodOf(const std::string& name, model::ScoringRequests scoring,
                 const std::string& node = "", const std::string& scheduler = "fairlead") {
  PodBuilder builder("ns", name);
  builder.Scheduler(scheduler);
  if (!node.empty()) builder.On(node);
  model::Pod pod = builder;
  pod.spec.scoring_requests = scoring;
  return pod;
}

model::Node NodeWithImages(const std::string& name, std::vector<model::NodeImage> images) {
  model::Node node = MakeNode(name, 0);
  node.images = std::move(images);
  return node;
}

class ScoreInputsTest : public ::testing::Test {
 protected:
  explicit ScoreInputsTest(bool images = true, bool scoring = true)
      : state_(With(images, scoring)) {}
  ~ScoreInputsTest() override { EXPECT_EQ(state_.CheckConsistency(), ""); }

  const model::PodSpec& SpecOf(const std::string& pod) {
    return *state_.class_of(state_.FindPod("ns", pod)).spec;
  }
  const NodeInfo& Node(const std::string& name) { return state_.node(state_.FindNode(name)); }
  // "cpu memory" that scores count on the node.
  std::string Used(const std::string& node = "n") {
    const model::ResourceSum& used = Node(node).used_for_scores;
    return std::to_string(used[model::kCpu]) + " " + std::to_string(used[model::kMemory]);
  }

  ClusterState state_;
};

class NoScoreInputsTest : public ScoreInputsTest {
 protected:
  NoScoreInputsTest() : ScoreInputsTest(false, false) {}
};

TEST_F(ScoreInputsTest, TheSchedulerNameSaysTheProfile) {
  for (const char* scheduler : {"first", "second", "fairlead", "other"}) {
    state_.UpsertPod(PodOf(scheduler, {}, "n", scheduler));
  }
  EXPECT_EQ(SpecOf("first").profile, 0);
  EXPECT_EQ(SpecOf("second").profile, 1);
  EXPECT_EQ(SpecOf("fairlead").profile, 0) << "it names none";
  EXPECT_EQ(SpecOf("other").profile, 0);
  const auto class_of = [&](const char* pod) {
    return state_.pod(state_.FindPod("ns", pod)).pod_class;
  };
  EXPECT_EQ(class_of("first"), class_of("fairlead"));
  EXPECT_NE(class_of("first"), class_of("second"));
  EXPECT_FALSE(state_.UpsertPod(PodOf("second", {}, "n", "second")).Any()) << "an echo";
  EXPECT_EQ(SpecOf("second").profile, 1);
}

TEST_F(ScoreInputsTest, ImagesOfOurPodsArePartOfTheirClass) {
  const auto with = [](const char* name, const char* image, const char* scheduler) {
    model::Pod pod = PodOf(name, {}, "n", scheduler);
    pod.images = {{image}, 1};
    return pod;
  };
  state_.UpsertPod(with("a", "x:1", "fairlead"));
  state_.UpsertPod(with("b", "x:1", "fairlead"));
  state_.UpsertPod(with("c", "y:1", "fairlead"));
  state_.UpsertPod(with("d", "y:1", "other"));
  EXPECT_EQ(SpecOf("a").images->names, std::vector<std::string>{"x:1"});
  EXPECT_EQ(SpecOf("a").images->containers, 1);
  EXPECT_EQ(&SpecOf("a"), &SpecOf("b"));
  EXPECT_EQ(SpecOf("c").images->names, std::vector<std::string>{"y:1"});
  EXPECT_TRUE(SpecOf("d").images->names.empty());
  EXPECT_FALSE(state_.UpsertPod(with("a", "x:1", "fairlead")).Any());
  EXPECT_TRUE(state_.UpsertPod(with("a", "y:1", "fairlead")).Any());
  EXPECT_EQ(&SpecOf("a"), &SpecOf("c"));
}

// Labels of pods divide classes only where a plugin reads them.
TEST(PluginLabelsTest, ArePartOfTheClass) {
  StateOptions options = OurPods();
  options.plugin_labels = {"zone", "driver"};
  ClusterState state(options);
  const auto put = [&state](const char* name, model::StringMap labels,
                            const char* scheduler = "fairlead") {
    model::Pod pod = PodOf(name, {}, "n", scheduler);
    pod.meta.labels = std::move(labels);
    return state.UpsertPod(pod);
  };
  const auto spec = [&state](const char* name) -> const model::PodSpec& {
    return *state.class_of(state.FindPod("ns", name)).spec;
  };
  put("a", {{"driver", "535"}, {"app", "x"}});
  put("b", {{"driver", "535"}, {"app", "y"}});
  put("c", {{"driver", "550"}});
  put("d", {{"app", "x"}});
  put("foreign", {{"driver", "535"}}, "other");
  EXPECT_EQ(spec("a").labels_for_plugins, (model::StringMap{{"driver", "535"}}));
  EXPECT_EQ(&spec("a"), &spec("b"));
  EXPECT_EQ(spec("c").labels_for_plugins, (model::StringMap{{"driver", "550"}}));
  EXPECT_TRUE(spec("d").labels_for_plugins.empty());
  EXPECT_TRUE(spec("foreign").labels_for_plugins.empty());
  EXPECT_FALSE(put("a", {{"driver", "535"}, {"app", "x"}}).Any()) << "an echo";
  EXPECT_TRUE(put("a", {{"driver", "550"}, {"app", "x"}}).Any());
  EXPECT_EQ(&spec("a"), &spec("c"));
  put("a", {});
  EXPECT_EQ(&spec("a"), &spec("d"));
  EXPECT_EQ(state.CheckConsistency(), "");
}

TEST_F(ScoreInputsTest, AChangedListOfImagesIsAChangeOfTheNode) {
  state_.UpsertNode(NodeWithImages("n", {{"a:1", 5}}));
  const uint64_t version = Node("n").object_version;
  EXPECT_FALSE(state_.UpsertNode(NodeWithImages("n", {{"a:1", 5}})).Any());
  EXPECT_EQ(Node("n").object_version, version);
  EXPECT_TRUE(state_.UpsertNode(NodeWithImages("n", {{"a:1", 6}})).Any());
  EXPECT_GT(Node("n").object_version, version);
  EXPECT_EQ(Node("n").object.images, (std::vector<model::NodeImage>{{"a:1", 6}}));
}

TEST_F(NoScoreInputsTest, NothingIsKept) {
  state_.UpsertNode(NodeWithImages("n", {{"a:1", 5}}));
  const uint64_t version = Node("n").object_version;
  EXPECT_TRUE(Node("n").object.images.empty());
  EXPECT_FALSE(state_.UpsertNode(NodeWithImages("n", {{"a:1", 5}, {"b:1", 6}})).Any());
  EXPECT_EQ(Node("n").object_version, version);
  model::Pod pod = PodOf("a", {500, 7}, "n");
  pod.images = {{"x:1"}, 1};
  state_.UpsertPod(pod);
  EXPECT_TRUE(SpecOf("a").images->names.empty());
  EXPECT_EQ(Used(), "0 0");
}

TEST_F(ScoreInputsTest, PodsOfEverySchedulerCountAsLongAsTheyHoldTheNode) {
  state_.UpsertNode(MakeNode("n", 0));
  state_.UpsertPod(PodOf("waits", {100, 1}));
  EXPECT_EQ(Used(), "0 0");
  state_.UpsertPod(PodOf("ours", {100, 1}, "n"));
  state_.UpsertPod(PodOf("theirs", {30, 5}, "n", "other"));
  EXPECT_EQ(Used(), "130 6");
  model::Pod ends = PodOf("ours", {100, 1}, "n");
  ends.meta.deletion = model::testing::At(1);
  state_.UpsertPod(ends);
  EXPECT_EQ(Used(), "130 6") << "it still runs";
  state_.RemovePod("ns", "ours", "");
  EXPECT_EQ(Used(), "30 5");
  state_.UpsertPod(PodOf("theirs", {40, 5}, "n", "other"));
  EXPECT_EQ(Used(), "40 5") << "resized in place";
  state_.RemovePod("ns", "theirs", "");
  EXPECT_EQ(Used(), "0 0");
}

TEST_F(ScoreInputsTest, HostileAmounts) {
  state_.UpsertNode(MakeNode("n", 0));
  state_.UpsertPod(PodOf("huge", {INT64_MAX, INT64_MAX}, "n"));
  state_.UpsertPod(PodOf("huge2", {INT64_MAX, 1}, "n"));
  state_.UpsertPod(PodOf("negative", {-5, INT64_MIN}, "n"));
  EXPECT_EQ(Used(), "9223372036854775807 9223372036854775807");
  EXPECT_EQ(state_.CheckConsistency(), "");
  state_.RemovePod("ns", "huge", "");
  EXPECT_EQ(Used(), "9223372036854775807 1");
  state_.RemovePod("ns", "huge2", "");
  EXPECT_EQ(Used(), "0 0") << "sums are exact";
}

TEST_F(ScoreInputsTest, RollBackAndPromises) {
  state_.UpsertNode(MakeNode("n", 0));
  state_.UpsertPod(PodOf("runs", {10, 1}, "n"));
  state_.UpsertPod(PodOf("a", {100, 2}));
  state_.UpsertPod(PodOf("b", {1000, 3}));
  const std::string before = state_.Dump();
  Transaction txn(state_);
  const NodeId n = state_.FindNode("n");
  txn.Evict(state_.FindPod("ns", "runs"));
  txn.Allocate(state_.FindPod("ns", "a"), n);
  EXPECT_EQ(Used(), "110 3");
  EXPECT_EQ(state_.CheckConsistency(), "");
  const std::string allocated = state_.Dump();
  const Transaction::Checkpoint mark = txn.Mark();
  txn.Pipeline(state_.FindPod("ns", "b"), n);
  EXPECT_EQ(Used(), "110 3") << "a promise holds nothing yet";
  txn.Remove(state_.FindPod("ns", "runs"));
  EXPECT_EQ(Used(), "100 2");
  EXPECT_EQ(state_.CheckConsistency(), "");
  txn.RollbackTo(mark);
  EXPECT_EQ(state_.Dump(), allocated);
  txn.RollbackTo(0);
  EXPECT_EQ(state_.Dump(), before);
}

}  // namespace
}  // namespace fairlead::state
