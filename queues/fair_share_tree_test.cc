#include <gtest/gtest.h>

#include "queues/fair_share.h"
#include "queues/fair_share_oracle.h"
#include "queues/test_support.h"

namespace fairlead::queues {
namespace {

using model::kGpu;
using model::kUnlimited;

class ComputeFairShareTest : public ::testing::Test {
 protected:
  QueueId Add(const std::string& name, const std::string& parent, model::QueueResource gpu) {
    model::Queue queue = MakeQueue(name, parent);
    queue.gpu = gpu;
    return tree_.Upsert(queue);
  }
  model::ResourceNames names_;
  QueueTree tree_{names_};
};

// The worked example of README.md.
TEST_F(ComputeFairShareTest, WorkedExample) {
  const QueueId research = Add("research", "", {8000, kUnlimited, 1 * kMicro});
  const QueueId product = Add("product", "", {4000, kUnlimited, 2 * kMicro});
  const QueueId vision = Add("vision", "research", {6000, kUnlimited, 1 * kMicro});
  const QueueId language = Add("language", "research", {2000, kUnlimited, 3 * kMicro});
  QueueLedger ledger(tree_);
  ledger.AddRequested(vision, Gpus(9000));
  ledger.AddRequested(language, Gpus(9000));
  ledger.AddRequested(product, Gpus(20'000));
  const FairShares shares = ComputeFairShare(tree_, ledger, Gpus(20'000));
  EXPECT_EQ(shares.Get(research, kGpu), 11'000);
  EXPECT_EQ(shares.Get(product, kGpu), 9000);
  EXPECT_EQ(shares.Get(vision, kGpu), 7000);
  EXPECT_EQ(shares.Get(language, kGpu), 4000);
}

TEST_F(ComputeFairShareTest, UnusableQueuesGetNothingAndTakeNothing) {
  const QueueId good = Add("good", "", {0, kUnlimited, kMicro});
  const QueueId orphan = Add("orphan", "missing", {4000, kUnlimited, kMicro});
  const QueueId below = Add("below", "orphan", {4000, kUnlimited, kMicro});
  QueueLedger ledger(tree_);
  ledger.AddRequested(good, Gpus(8000));
  ledger.AddRequested(below, Gpus(8000));
  const FairShares shares = ComputeFairShare(tree_, ledger, Gpus(8000));
  EXPECT_EQ(shares.Get(good, kGpu), 8000);
  EXPECT_EQ(shares.Get(orphan, kGpu), 0);
  EXPECT_EQ(shares.Get(below, kGpu), 0);
}

TEST_F(ComputeFairShareTest, ExtraResourcesAreSharedOnceNamed) {
  model::Queue queue = MakeQueue("named");
  queue.other = {{"example.com/licence", {2, kUnlimited, kMicro}}};
  const QueueId named = tree_.Upsert(queue);
  const QueueId silent = tree_.Upsert(MakeQueue("silent"));
  const model::ResourceIndex licence = *names_.Find("example.com/licence");
  QueueLedger ledger(tree_);
  model::Resources ten;
  ten.Set(licence, 10);
  ledger.AddRequested(named, ten);
  model::Resources three;
  three.Set(licence, 3);
  ledger.AddRequested(silent, three);
  const FairShares shares = ComputeFairShare(tree_, ledger, ten);
  EXPECT_EQ(shares.Get(named, licence), 7);
  EXPECT_EQ(shares.Get(silent, licence), 3) << "unlimited quota";
  EXPECT_EQ(shares.Get(named, model::kPods), 0);
}

// Random queues with features that RandomQueues lacks: another resource, lending limits, and, if
// `deep`, one long chain.
std::vector<model::Queue> RicherQueues(Random& random, int64_t count, bool deep) {
  std::vector<model::Queue> queues = RandomQueues(random, count);
  for (size_t i = 0; i < queues.size(); ++i) {
    model::Queue& queue = queues[i];
    if (deep && i > 0) queue.parent = absl::StrCat("q", i - 1 - i % 3 % i);
    const auto lend = [&random](model::QueueResource& r, int64_t unit) {
      if (random.OneIn(3)) r.lending_limit = random.Between(0, 8) * unit / 2;
    };
    lend(queue.gpu, 1000);
    lend(queue.cpu, 10);
    if (random.OneIn(2)) {
      model::QueueResource licences;
      licences.quota = random.OneIn(5) ? kUnlimited : random.Between(0, 6);
      licences.limit = random.OneIn(3) ? random.Between(0, 12) : kUnlimited;
      licences.over_quota_weight_micro = random.Between(0, 3) * kMicro;
      lend(licences, 1);
      queue.other = {{"example.com/licence", licences}};
    }
  }
  return queues;
}

struct RandomWorld {
  RandomWorld(Random& random, bool deep) {
    for (const model::Queue& queue : RicherQueues(random, random.Between(1, 25), deep)) {
      tree.Upsert(queue);
    }
    licence = names.Intern("example.com/licence");
    ledger.Rebuild(tree);
    options.k_micro = random.Between(0, 4) * kMicro / 2;
    for (QueueId q = 0; q < tree.size(); ++q) {
      if (tree.IsLeaf(q)) ledger.AddRequested(q, Request(random));
      options.usage.push_back(Usage(random));
    }
    total = Amounts(random.Between(0, 200), random.Between(0, 200), random.Between(0, 40) * 1000);
    total.Set(licence, random.Between(0, 60));
  }
  [[nodiscard]] model::Resources Request(Random& random) const {
    model::Resources request =
        Amounts(random.Between(0, 90), random.Between(0, 90), random.Between(0, 24) * 500);
    if (random.OneIn(2)) request.Set(licence, random.Between(0, 9));
    return request;
  }
  [[nodiscard]] static model::Resources Usage(Random& random) {
    model::Resources usage;
    for (const model::ResourceIndex r : {model::kCpu, kGpu}) {
      if (random.OneIn(2)) usage.Set(r, random.Between(0, 10) * kNano / 10);
    }
    return usage;
  }
  void CheckAll(const FairShares& shares) const {
    const TreeOracle oracle(tree, ledger, options, shares);
    for (const model::ResourceIndex r : tree.resources()) {
      oracle.Check(r, r == kGpu ? 1000 : 1, total[r]);
    }
  }

  model::ResourceNames names;
  QueueTree tree{names};
  QueueLedger ledger{tree};
  model::ResourceIndex licence = 0;
  FairShareOptions options;
  model::Resources total;
};

TEST(FairShareTreeTest, AgreesWithTheOracleOnRandomTrees) {
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 400 && !::testing::Test::HasFatalFailure(); ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    const RandomWorld world(random, round % 4 == 0);
    world.CheckAll(ComputeFairShare(world.tree, world.ledger, world.total, world.options));
  }
}

TEST(FairShareTreeTest, HistoryOfZeroChangesNothing) {
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 200; ++round) {
    RandomWorld world(random, false);
    world.options.usage.clear();
    const FairShares without =
        ComputeFairShare(world.tree, world.ledger, world.total, {.k_micro = 0, .usage = {}});
    world.options.usage.resize(world.tree.size());
    const FairShares with = ComputeFairShare(world.tree, world.ledger, world.total, world.options);
    for (QueueId q = 0; q < world.tree.size(); ++q) ASSERT_EQ(with.Of(q), without.Of(q));
  }
}

// A divider that is used repeatedly gives the result of one division from scratch.
TEST(FairShareDividerTest, AgreesWithOneDivisionAfterEveryChange) {
  struct Observer final : QueueObserver {
    Observer(RandomWorld& of, FairShareDivider& divided) : world(of), divider(divided) {
      world.tree.AddObserver(this);
    }
    ~Observer() { world.tree.RemoveObserver(this); }
    void OnQueueChange(QueueId, bool reshaped) override {
      divider.QueuesChanged();
      if (reshaped) world.ledger.Rebuild(world.tree);
    }
    RandomWorld& world;
    FairShareDivider& divider;
  };

  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 40; ++round) {
    RandomWorld world(random, false);
    FairShareDivider divider(world.tree);
    const Observer observer(world, divider);
    const auto some = [&] {
      return static_cast<QueueId>(random.Between(0, static_cast<int64_t>(world.tree.size()) - 1));
    };
    for (int step = 0; step < 30; ++step) {
      switch (random.Between(0, 5)) {
        case 0:
          world.ledger.AddRequested(some(), world.Request(random));
          break;
        case 1:
          world.options.usage[some()] = RandomWorld::Usage(random);
          break;
        case 2:
          world.options.k_micro = random.Between(0, 2) * kMicro;
          break;
        case 3:
          world.total.Set(kGpu, random.Between(0, 40) * 1000);
          break;
        case 4: {
          const QueueId q = some();
          if (!world.tree.Exists(q)) break;
          model::Queue queue = world.tree.Spec(q);
          queue.gpu.quota = random.Between(0, 8) * 500;
          queue.priority = static_cast<int32_t>(random.Between(1, 3));
          world.tree.Upsert(queue);
          break;
        }
        default:
          if (random.OneIn(4)) world.tree.Remove(world.tree.Name(some()));
          break;
      }
      const FairShares& again = divider.Divide(world.ledger, world.total, world.options);
      const FairShares once =
          ComputeFairShare(world.tree, world.ledger, world.total, world.options);
      for (QueueId q = 0; q < world.tree.size(); ++q) {
        ASSERT_EQ(again.Of(q), once.Of(q)) << "round " << round << ", step " << step;
      }
      divider.Divide(world.ledger, world.total, world.options);
      ASSERT_EQ(divider.divisions(), 0u) << "nothing changed";
      ASSERT_EQ(divider.CheckConsistency(), "");
    }
  }
}

TEST(FairShareDividerTest, DividesOnlyTheLevelsThatChanged) {
  model::ResourceNames names;
  QueueTree tree(names);
  std::vector<QueueId> leaves;
  for (int d = 0; d < 20; ++d) {
    model::Queue top = MakeQueue(absl::StrCat("top", d));
    top.gpu = {2000, kUnlimited, kMicro};
    tree.Upsert(top);
    for (int i = 0; i < 50; ++i) {
      model::Queue leaf = MakeQueue(absl::StrCat("leaf", d, "-", i), top.meta.name);
      leaf.gpu = {0, kUnlimited, kMicro};
      leaves.push_back(tree.Upsert(leaf));
    }
  }
  QueueLedger ledger(tree);
  for (const QueueId leaf : leaves) ledger.AddRequested(leaf, Gpus(8000));
  FairShareDivider divider(tree);
  const FairShareOptions options;
  divider.Divide(ledger, Gpus(1'000'000), options);
  EXPECT_EQ(divider.divisions(), 21u * 3);
  divider.Divide(ledger, Gpus(1'000'000), options);
  EXPECT_EQ(divider.divisions(), 0u);
  ledger.AddRequested(leaves[0], Gpus(1000));
  divider.Divide(ledger, Gpus(1'000'000), options);
  EXPECT_EQ(divider.divisions(), 2u) << "the top queues and the children of one, GPUs alone";
  ledger.Charge(leaves[0], Gpus(1000), true);
  divider.Divide(ledger, Gpus(1'000'000), options);
  EXPECT_EQ(divider.divisions(), 0u) << "what is placed changes no share";
}

TEST(FairShareDividerTest, ItsCheckFindsAChangeThatItWasNotTold) {
  model::ResourceNames names;
  QueueTree tree(names);
  tree.Upsert(MakeQueue("a"));
  FairShareDivider divider(tree);
  divider.Divide(QueueLedger(tree), Gpus(1000), {});
  EXPECT_EQ(divider.CheckConsistency(), "");
  model::Queue other = MakeQueue("a");
  other.gpu.quota = 5000;
  tree.Upsert(other);
  EXPECT_NE(divider.CheckConsistency(), "");
  divider.QueuesChanged();
  EXPECT_EQ(divider.CheckConsistency(), "");
  divider.Divide(QueueLedger(tree), Gpus(1000), {});
  tree.Upsert(MakeQueue("b"));
  EXPECT_NE(divider.CheckConsistency(), "");
}

}  // namespace
}  // namespace fairlead::queues
