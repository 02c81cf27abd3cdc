#include "queues/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "queues/test_support.h"

namespace fairlead::queues {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Names(const QueueTree& tree, absl::Span<const QueueId> ids) {
  std::vector<std::string> names;
  for (const QueueId id : ids) names.push_back(tree.Name(id));
  return names;
}

class QueueTreeTest : public ::testing::Test {
 protected:
  QueueId Add(const std::string& name, const std::string& parent = "", int64_t age = 0) {
    return tree_.Upsert(MakeQueue(name, parent, age));
  }
  std::string ProblemOf(const std::string& name) {
    return tree_.Problem(*tree_.Find(name)).value_or("");
  }
  model::ResourceNames names_;
  QueueTree tree_{names_};
};

TEST_F(QueueTreeTest, OrphanAndItsSubtreeAreUnusableUntilTheParentComes) {
  const QueueId leaf = Add("leaf", "mid");
  const QueueId mid = Add("mid", "top");
  EXPECT_EQ(ProblemOf("mid"), "parent queue 'top' does not exist");
  EXPECT_THAT(ProblemOf("leaf"), HasSubstr("queue 'mid' above it is unusable: parent queue 'top'"));
  EXPECT_FALSE(tree_.Usable(leaf));
  EXPECT_FALSE(tree_.IsLeaf(mid));
  EXPECT_TRUE(tree_.IsLeaf(leaf));

  const QueueId top = Add("top");
  EXPECT_TRUE(tree_.Usable(leaf));
  EXPECT_TRUE(tree_.Usable(mid));
  EXPECT_THAT(tree_.Ancestors(leaf), ElementsAre(leaf, mid, top));

  tree_.Remove("top");
  EXPECT_FALSE(tree_.Usable(leaf));
  EXPECT_FALSE(tree_.Find("top"));
  EXPECT_THAT(tree_.Ancestors(leaf), ElementsAre(leaf, mid));
  EXPECT_EQ(Add("top"), top) << "an id belongs to a name";
  EXPECT_TRUE(tree_.Usable(leaf));
}

TEST_F(QueueTreeTest, EveryMemberOfACycleSaysTheCycle) {
  Add("c", "b");
  Add("a", "c");
  const QueueId hanging = Add("hanging", "a");
  Add("b", "a");
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(ProblemOf(name), "parent cycle: a -> c -> b -> a") << name;
    EXPECT_FALSE(tree_.Parent(*tree_.Find(name))) << name;
  }
  EXPECT_THAT(ProblemOf("hanging"), HasSubstr("queue 'a' above it is unusable: parent cycle"));
  EXPECT_EQ(tree_.Ancestors(hanging).size(), 2);

  Add("b");  // breaks the cycle
  for (const char* name : {"a", "b", "c", "hanging"}) EXPECT_EQ(ProblemOf(name), "") << name;
  EXPECT_EQ(tree_.Ancestors(hanging).size(), 4);

  Add("self", "self");
  EXPECT_EQ(ProblemOf("self"), "parent cycle: self -> self");
  tree_.Remove("self");
  EXPECT_FALSE(tree_.Find("self"));
}

TEST_F(QueueTreeTest, InvalidSpecsAreProblemsOfTheQueueAndWhatIsBelow) {
  Add("leaf", "bad");
  model::Queue bad = MakeQueue("bad");
  bad.gpu.limit = -2;
  tree_.Upsert(bad);
  EXPECT_THAT(ProblemOf("bad"), HasSubstr("spec.resources.gpu.limit"));
  EXPECT_THAT(ProblemOf("leaf"), HasSubstr("queue 'bad' above it"));

  bad = MakeQueue("bad");
  bad.other = {{"nvidia.com/gpu", Unbounded()}};
  tree_.Upsert(bad);
  EXPECT_THAT(ProblemOf("bad"), HasSubstr("'nvidia.com/gpu' twice"));

  bad = MakeQueue("bad");
  bad.invalid = "resources must be specified";
  tree_.Upsert(bad);
  EXPECT_EQ(ProblemOf("bad"), "resources must be specified");

  tree_.Upsert(MakeQueue("bad"));
  EXPECT_EQ(ProblemOf("leaf"), "");
}

TEST_F(QueueTreeTest, SiblingsAreSortedByAgeThenName) {
  Add("top");
  Add("y", "top", 2);
  Add("b", "top", 1);
  Add("a", "top", 1);
  Add("old", "top", 0);
  const QueueId top = *tree_.Find("top");
  EXPECT_THAT(Names(tree_, tree_.Children(top)), ElementsAre("old", "a", "b", "y"));
  Add("old", "top", 5);  // made again
  EXPECT_THAT(Names(tree_, tree_.Children(top)), ElementsAre("a", "b", "y", "old"));
  Add("a");  // moved to the top
  EXPECT_THAT(Names(tree_, tree_.Children(top)), ElementsAre("b", "y", "old"));
  EXPECT_THAT(Names(tree_, tree_.Roots()), ElementsAre("a", "top"));
}

TEST_F(QueueTreeTest, VersionsFollowWhatDecisionsSee) {
  const QueueId top = Add("top");
  const uint64_t version = tree_.version();
  const uint64_t shape = tree_.shape_version();
  model::Queue same = MakeQueue("top");
  same.meta.resource_version = "17";
  tree_.Upsert(same);
  EXPECT_EQ(tree_.version(), version);
  EXPECT_EQ(tree_.Spec(top).meta.resource_version, "17");
  same.gpu.quota = 1000;
  tree_.Upsert(same);
  EXPECT_GT(tree_.version(), version);
  EXPECT_EQ(tree_.shape_version(), shape);
  EXPECT_EQ(tree_.BoundsOf(top, model::kGpu).quota, 1000);
  Add("leaf", "top");
  EXPECT_GT(tree_.shape_version(), shape);
  tree_.Remove("missing");
}

TEST_F(QueueTreeTest, ObserversAreToldWhatDecisionsSee) {
  class Observer final : public QueueObserver {
   public:
    void OnQueueChange(QueueId queue, bool reshaped) override {
      told.emplace_back(queue, reshaped);
    }
    std::vector<std::pair<QueueId, bool>> told;
  };
  using Told = std::vector<std::pair<QueueId, bool>>;
  Observer observer;
  tree_.AddObserver(&observer);
  const QueueId top = Add("top");
  model::Queue same = MakeQueue("top");
  same.meta.resource_version = "17";
  tree_.Upsert(same);
  EXPECT_EQ(std::exchange(observer.told, {}), Told({{top, true}}));
  same.gpu.quota = 1000;
  tree_.Upsert(same);
  EXPECT_EQ(std::exchange(observer.told, {}), Told({{top, false}}));
  tree_.Remove("missing");
  tree_.Remove("top");
  EXPECT_EQ(std::exchange(observer.told, {}), Told({{top, true}}));
  tree_.RemoveObserver(&observer);
  Add("top");
  EXPECT_EQ(observer.told, Told());
}

TEST_F(QueueTreeTest, ExtraResourcesAppearWhileAQueueNamesThem) {
  model::Queue queue = MakeQueue("a");
  queue.other = {{"example.com/licence", {5, 7, 0}}};
  const QueueId a = tree_.Upsert(queue);
  const QueueId b = Add("b");
  const model::ResourceIndex licence = *names_.Find("example.com/licence");
  EXPECT_THAT(tree_.resources(), ElementsAre(model::kCpu, model::kMemory, model::kGpu, licence));
  EXPECT_EQ(tree_.BoundsOf(a, licence).limit, 7);
  EXPECT_EQ(tree_.BoundsOf(b, licence).limit, model::kUnlimited);
  EXPECT_EQ(tree_.BoundsOf(a, model::kPods).quota, model::kUnlimited);
  tree_.Remove("a");
  EXPECT_EQ(tree_.resources().size(), 3);
}

TEST_F(QueueTreeTest, CommonAncestorsAndDivergingSides) {
  const QueueId top = Add("top");
  const QueueId left = Add("left", "top");
  const QueueId right = Add("right", "top");
  const QueueId deep = Add("deep", "left");
  const QueueId other = Add("other");
  EXPECT_EQ(tree_.LowestCommonAncestor(deep, right), top);
  EXPECT_EQ(tree_.LowestCommonAncestor(deep, left), left);
  EXPECT_EQ(tree_.LowestCommonAncestor(deep, other), std::nullopt);
  EXPECT_EQ(tree_.Diverging(deep, right), std::pair(left, right));
  EXPECT_EQ(tree_.Diverging(deep, other), std::pair(top, other));
  EXPECT_EQ(tree_.Diverging(deep, left), std::pair(deep, left));
  EXPECT_EQ(tree_.Diverging(deep, deep), std::pair(deep, deep));
}

// The tree depends only on the current set of objects, not on the order of changes.
TEST_F(QueueTreeTest, IncrementalChangesGiveTheSameTreeAsBuildingAfresh) {
  Random random;
  SCOPED_TRACE(random.Describe());
  std::vector<std::optional<model::Queue>> world(12);
  for (int step = 0; step < 3000; ++step) {
    const auto i = static_cast<size_t>(random.Between(0, 11));
    const std::string name(1, static_cast<char>('a' + i));
    if (random.OneIn(4)) {
      world[i].reset();
      tree_.Remove(name);
    } else {
      const std::string parent =
          random.OneIn(3) ? "" : std::string(1, static_cast<char>('a' + random.Between(0, 12)));
      world[i] = MakeQueue(name, parent, random.Between(0, 2));
      if (random.OneIn(8)) world[i]->invalid = "broken";
      tree_.Upsert(*world[i]);
    }
    QueueTree fresh(names_);
    std::vector<size_t> order(world.size());
    for (size_t k = 0; k < order.size(); ++k) order[k] = k;
    std::shuffle(order.begin(), order.end(), random.engine());
    for (const size_t k : order) {
      if (world[k]) fresh.Upsert(*world[k]);
    }
    ASSERT_EQ(Names(tree_, tree_.Roots()), Names(fresh, fresh.Roots())) << step;
    for (const auto& queue : world) {
      if (!queue) continue;
      const QueueId x = *tree_.Find(queue->meta.name);
      const QueueId y = *fresh.Find(queue->meta.name);
      ASSERT_EQ(tree_.Problem(x), fresh.Problem(y)) << step;
      ASSERT_EQ(tree_.IsLeaf(x), fresh.IsLeaf(y)) << step;
      ASSERT_EQ(Names(tree_, tree_.Children(x)), Names(fresh, fresh.Children(y))) << step;
      ASSERT_EQ(Names(tree_, tree_.Ancestors(x)), Names(fresh, fresh.Ancestors(y))) << step;
    }
  }
}

TEST_F(QueueTreeTest, ARememberedQueueIsLikeADeletedOne) {
  const QueueId dept = Add("dept");
  ASSERT_TRUE(tree_.Remember("team", "dept"));
  EXPECT_FALSE(tree_.Remember("team", "")) << "it has an id";
  EXPECT_FALSE(tree_.Remember("dept", ""));
  const QueueId team = *tree_.FindEver("team");
  EXPECT_FALSE(tree_.Find("team"));
  EXPECT_FALSE(tree_.Usable(team));
  EXPECT_EQ(tree_.ChargedTo(team), dept);
  EXPECT_THAT(Names(tree_, tree_.Roots()), ElementsAre("dept"));
  EXPECT_TRUE(tree_.IsLeaf(dept));
  EXPECT_EQ(Add("team"), team);
  EXPECT_TRUE(tree_.Usable(team));
  EXPECT_THAT(Names(tree_, tree_.Roots()), ElementsAre("dept", "team"));
}

TEST_F(QueueTreeTest, NamesOfTenantsDoNotGrowTheTreeWithoutEnd) {
  EXPECT_FALSE(tree_.Remember("", ""));
  EXPECT_FALSE(tree_.Remember(std::string(300, 'q'), ""));
  for (size_t i = 0; i < QueueTree::kMostRemembered; ++i) {
    EXPECT_TRUE(tree_.Remember(absl::StrCat("q", i), ""));
  }
  EXPECT_FALSE(tree_.Remember("one-more", ""));
  Add("q0");  // it is a queue, so it is not only remembered
  EXPECT_TRUE(tree_.Remember("one-more", ""));
}

}  // namespace
}  // namespace fairlead::queues
