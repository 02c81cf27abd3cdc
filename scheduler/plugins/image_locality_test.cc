#include "scheduler/plugins/image_locality.h"

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/plugins/plugin_test_util.h"

namespace fairlead::plugins {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;

class ImageLocalityTest : public PluginTest {
 protected:
  void AddNodeWith(const std::string& name, std::vector<model::NodeImage> images) {
    model::Node node = MakeNode(name, 0);
    node.images = std::move(images);
    AddNode(node);
  }
  void WaitingWith(std::vector<std::string> names, int64_t containers) {
    model::Pod pod = PodBuilder("ns", "waiting");
    pod.images = {std::move(names), containers};
    AddPod(pod);
  }
  // Of all nodes in the order of their names. Also checks that nodes with equal marks score alike.
  std::vector<int64_t> Scores(const framework::Framework& framework) {
    std::vector<const state::NodeInfo*> nodes;
    for (const auto& [name, id] : state_.nodes_by_name()) nodes.push_back(&state_.node(id));
    const std::vector<int64_t> scores = framework.ScoresByPlugin(Ctx(), nodes).at(0).scores;
    std::map<framework::Marks, int64_t> by_marks;
    for (size_t i = 0; i < nodes.size(); ++i) {
      framework::Marks marks;
      framework.AddMarks(Ctx(), *nodes[i], {}, marks);
      EXPECT_EQ(by_marks.try_emplace(marks, scores[i]).first->second, scores[i]);
    }
    return scores;
  }
};

using Ints = std::vector<int64_t>;

// The numbers of upstream's test.
TEST_F(ImageLocalityTest, SizesCountByTheirSpread) {
  const auto locality = Only("ImageLocality");
  AddNodeWith("n1", {{"gcr.io/2000:latest", 2000 * kMib},
                     {"gcr.io/300:latest", 300 * kMib},
                     {"gcr.io/40:latest", 40 * kMib}});
  AddNodeWith("n2", {{"gcr.io/10:v1", 10 * kMib}, {"gcr.io/250:latest", 250 * kMib}});
  struct Case {
    std::vector<std::string> names;
    int64_t containers;
    Ints scores;
  };
  const Case cases[] = {
      // 40/2 < 23; 100 * (250/2 - 23) / (2*1000 - 23).
      {{"gcr.io/40:latest", "gcr.io/250:latest"}, 2, {0, 5}},
      // 100 * (340/2 - 23) / (2*1000 - 23).
      {{"gcr.io/40:latest", "gcr.io/300:latest"}, 2, {7, 0}},
      // 100 * (2000/2 - 23) / (2*1000 - 23); 10/2 < 23.
      {{"gcr.io/10:v1", "gcr.io/2000:latest"}, 2, {49, 0}},
      // More than 1000 a container is as 1000.
      {{"gcr.io/2000:latest", "gcr.io/300:latest"}, 1, {100, 0}},
      // An image that is named twice counts twice: 100 * (2*250/2 - 23) / (3*1000 - 23).
      {{"gcr.io/250:latest", "x:1", "gcr.io/250:latest"}, 3, {0, 7}},
      // One of a volume has no container: 100 * (250/2 - 23) / (1000 - 23).
      {{"x:1", "gcr.io/250:latest"}, 1, {0, 10}},
      {{"x:1"}, 1, {0, 0}},
      {{}, 1, {0, 0}},
  };
  for (const Case& c : cases) {
    WaitingWith(c.names, c.containers);
    EXPECT_EQ(Scores(*locality), c.scores);
    const bool some = c.scores != Ints{0, 0};
    EXPECT_EQ(locality->ScoresVary(Ctx()), some);
    EXPECT_EQ(locality->Normalizes(Ctx().pod_class), !c.names.empty());
  }
}

TEST_F(ImageLocalityTest, AThirdNodeWithoutImagesCounts) {
  const auto locality = Only("ImageLocality");
  for (const char* name : {"n1", "n2"}) AddNodeWith(name, {{"a:1", 601 * kMib}});
  WaitingWith({"a:1"}, 1);
  EXPECT_EQ(Scores(*locality), (Ints{59, 59}));  // 100 * (601 - 23) / 977
  AddNodeWith("n3", {});
  EXPECT_EQ(Scores(*locality), (Ints{38, 38, 0}));  // 601*2/3 = 400.67
  AddPod(PodBuilder("ns", "parked").On("unseen"));
  EXPECT_EQ(Scores(*locality), (Ints{38, 38, 0, 0})) << "a node that does not exist";
  state_.RemoveNode("n1", "");
  EXPECT_EQ(Scores(*locality), (Ints{28, 0, 0}));  // 601/2
}

TEST_F(ImageLocalityTest, TheLargestSizeThatANodeSaysCounts) {
  const auto locality = Only("ImageLocality");
  AddNodeWith("n1", {{"a:1", 100 * kMib}});
  AddNodeWith("n2", {{"a:1", 500 * kMib}});
  WaitingWith({"a:1"}, 1);
  EXPECT_EQ(Scores(*locality), (Ints{48, 48}));  // 100 * (500 - 23) / 977
  AddNodeWith("n2", {{"a:1", 300 * kMib}});
  EXPECT_EQ(Scores(*locality), (Ints{28, 28}));
  AddNodeWith("n2", {});
  EXPECT_EQ(Scores(*locality), (Ints{2, 0}));  // 50 - 23
}

TEST_F(ImageLocalityTest, HostileSizesAndPodsWithoutContainers) {
  const auto locality = Only("ImageLocality");
  AddNodeWith("n1", {{"a:1", INT64_MAX}, {"b:1", INT64_MAX}, {"c:1", -7}});
  AddNodeWith("n2", {{"c:1", INT64_MIN}});
  WaitingWith({"a:1", "b:1", "c:1"}, 3);
  EXPECT_EQ(Scores(*locality), (Ints{100, 0}));
  // Where containers allow less than the least that counts, upstream's formula is turned over.
  WaitingWith({"a:1"}, 0);
  EXPECT_EQ(Scores(*locality), (Ints{100, 0}));
  std::vector<std::string> many(9000, "a:1");
  WaitingWith(many, 9000);
  EXPECT_EQ(Scores(*locality), (Ints{100, 0}));
}

TEST_F(ImageLocalityTest, MarksTellImagesApartHoweverMany) {
  const auto locality = Only("ImageLocality");
  std::vector<std::string> names;
  for (int i = 0; i < 130; ++i) names.push_back(absl::StrCat("image-", i, ":1"));
  for (const size_t i : {size_t{0}, size_t{62}, size_t{63}, size_t{129}}) {
    AddNodeWith(absl::StrCat("n", i), {{names[i], 999 * kMib * (static_cast<int64_t>(i) + 1)}});
  }
  AddNodeWith("with-none", {{"other:1", 5}});
  WaitingWith(names, 130);
  std::set<framework::Marks> marks;
  for (const auto& [name, id] : state_.nodes_by_name()) {
    framework::Marks of_node;
    locality->AddMarks(Ctx(), state_.node(id), {}, of_node);
    EXPECT_EQ(of_node.size(), 3u);
    for (const int64_t mark : of_node) EXPECT_GE(mark, 0);
    marks.insert(of_node);
  }
  EXPECT_EQ(marks.size(), 5u);
  Scores(*locality);
}

TEST_F(ImageLocalityTest, NodesOfATransactionDoNotCount) {
  const auto locality = Only("ImageLocality");
  AddNodeWith("n1", {{"a:1", 500 * kMib}});
  WaitingWith({"a:1"}, 1);
  EXPECT_EQ(Scores(*locality), Ints{48});
  state::Transaction txn(state_);
  txn.AddNode(MakeNode("virtual", 0));
  EXPECT_EQ(Scores(*locality), (Ints{48, 0}));
}

// ---- following

class FollowedTest : public ImageLocalityTest {
 protected:
  FollowedTest() : counters_(state_), follows_(Only("ImageLocality")) {
    state_.Subscribe(&counters_);
    follows_->Attach(&counters_);
    for (state::StateSubscriber* each : follows_->Subscribers()) state_.Subscribe(each);
  }
  ~FollowedTest() override {
    for (state::StateSubscriber* each : follows_->Subscribers()) state_.Unsubscribe(each);
    state_.Unsubscribe(&counters_);
    follows_->Attach(nullptr);
  }
  void Check() {
    ASSERT_EQ(follows_->CheckConsistency(), "");
    const auto counts = Only("ImageLocality");
    ASSERT_EQ(Scores(*follows_), Scores(*counts));
    ASSERT_EQ(follows_->ScoresVary(Ctx()), counts->ScoresVary(Ctx()));
  }

  framework::DomainCounters counters_;
  std::unique_ptr<framework::Framework> follows_;
};

TEST_F(FollowedTest, ScoresAreThoseOfARecountAfterAnything) {
  ASSERT_EQ(follows_->Subscribers().size(), 1u);
  WaitingWith({"image-0", "image-1", "image-2", "image-1"}, 4);
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](unsigned bound) { return static_cast<int64_t>(random() % bound); };
    for (int step = 0; step < 40; ++step) {
      const std::string name = absl::StrCat("n", below(5));
      switch (below(6)) {
        case 0:
          state_.RemoveNode(name, "");
          break;
        case 1:
          AddPod(PodBuilder("ns", absl::StrCat("p", below(3))).On(name));
          break;
        case 2:
          state_.RemovePod("ns", absl::StrCat("p", below(3)), "");
          break;
        default: {
          std::vector<model::NodeImage> images;
          for (int i = 0; i < 4; ++i) {
            if (below(2) == 0) images.push_back({absl::StrCat("image-", i), below(2000) * kMib});
          }
          AddNodeWith(name, images);
        }
      }
      if (below(3) == 0) continue;  // so that several changes come together
      ASSERT_NO_FATAL_FAILURE(Check());
      state::Transaction txn(state_);
      model::Node added = MakeNode("virtual", 0);
      added.images = {{"image-0", 5}};
      txn.AddNode(added);
      if (below(2) == 0) {
        ASSERT_NO_FATAL_FAILURE(Check());
      }
      txn.RollbackTo(0);
      ASSERT_NO_FATAL_FAILURE(Check());
    }
  }
}

TEST_F(FollowedTest, ACensusForgetsImagesThatNoNodeHas) {
  ImageCensus census(state_);
  state_.Subscribe(&census);
  AddNodeWith("n1", {{"a:1", 5}, {"b:1", 7}});
  AddNodeWith("n2", {{"a:1", 6}});
  census.Renew();
  EXPECT_EQ(census.nodes(), 2);
  EXPECT_EQ(census.Find("a:1"), (ImageCensus::Image{2, 6}));
  EXPECT_EQ(census.Find("b:1"), (ImageCensus::Image{1, 7}));
  EXPECT_EQ(census.Find("c:1"), ImageCensus::Image{});
  AddNodeWith("n1", {});
  state_.RemoveNode("n2", "");
  EXPECT_EQ(census.CheckConsistency(), "");
  EXPECT_EQ(census.nodes(), 1);
  EXPECT_EQ(census.Find("a:1"), ImageCensus::Image{});
  state_.Unsubscribe(&census);
}

}  // namespace
}  // namespace fairlead::plugins
