// Purchases that did not help their pods are not repeated.
#include <functional>
#include <string>

#include "autoscale-hook/hook_fixture_testing.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using testing::DetailsOf;
using testing::HookTest;
using testing::Item;
using testing::kDollar;
using testing::kStart;
using testing::Spec;
using testing::Type;
using verdict::Code;

TEST_F(HookTest, NodeThatDoesNotHelpItsPodIsNotProvisionedAgain) {
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  int created = 0;
  StepOutput out;
  // Two types could run it. The engine pipelines the pod to neither.
  for (; now_ < kStart + absl::Minutes(50); now_ += absl::Seconds(5)) {
    out = StepAndApply(demand);
    created += static_cast<int>(out.created.size());
    for (auto& [name, node] : nodes_) node.needed = false;
    Answer(false, absl::OkStatus());
    for (const auto& launch : All<model::LaunchNode>(out)) {
      Launched(launch);
    }
  }
  EXPECT_LE(created, 4);
  EXPECT_EQ(out.outcomes[0].code, Code::kNoInstanceTypeFits);
  EXPECT_NE(DetailsOf(out.outcomes[0]).find("did not help"), std::string::npos)
      << DetailsOf(out.outcomes[0]);
  // Another pod is another demand.
  out = StepAndApply({Item("team/b", Spec(1001, 4, 1), 1)});
  EXPECT_EQ(out.created.size(), 1u);
}

// A cloud whose nodes no pod can use. Equal pods come one after the other; the engine pipelines
// them, the first ones first, to nodes that are still on order.
class UselessNodesTest : public HookTest {
 protected:
  // Each item takes a node. Returns how many nodes were provisioned.
  int Run(const std::function<DemandItem(int)>& item, int items) {
    int created = 0;
    for (int second = 0; second < 1800; second += 5, now_ += absl::Seconds(5)) {
      const int here = std::min(items, 1 + second / 10);
      int coming = 0;
      for (auto& [name, node] : nodes_) {
        const auto request = requests_.find(name);
        const bool there = request != requests_.end() &&
                           request->second.launched_at.value_or(now_) + absl::Seconds(60) <= now_;
        node.registered = node.registered || there;
        node.ready = node.registered;
        node.needed = !node.registered && coming < here;
        coming += node.needed ? 1 : 0;
      }
      Demand demand;
      for (int i = coming; i < here; ++i) demand.push_back(item(i));
      const StepOutput out = StepAndApply(demand);
      created += static_cast<int>(out.created.size());
      Answer(false, absl::OkStatus());
      for (const auto& launch : All<model::LaunchNode>(out)) {
        Launched(launch);
      }
    }
    return created;
  }
};

TEST_F(UselessNodesTest, EqualPodsDoNotProvisionThemInTurns) {
  const auto pod = [](int i) { return Item(absl::StrCat("team/p", 100 + i), Spec(1000, 4, 1), 1); };
  EXPECT_LE(Run(pod, 6), 2 * 6) << "each of the two types once";
}

TEST_F(UselessNodesTest, EqualGangsDoNotProvisionThemInTurns) {
  catalog_ = Catalog::FromTypes({Type("g.4", 16, 64, 4, kDollar)});
  Restart();
  const auto gang = [](int i) {
    return Item(absl::StrCat("team/g", 100 + i), Spec(1000, 4, 1), 4, /*atomic=*/true);
  };
  EXPECT_LE(Run(gang, 6), 6);
}

// What is left of a former purchase does not help a gang that needs more.
TEST_F(HookTest, IdleNodeThatIsTooSmallForAGangIsNoProofAgainstItsType) {
  StepAndApply({Item("team/g1", Spec(1000, 4, 1), 2, /*atomic=*/true)});
  ASSERT_EQ(requests_.size(), 2u);
  for (auto& [name, node] : nodes_) {
    node = Arrived(name, name);
    node.needed = name == requests_.begin()->first;
  }
  StepAndApply();
  for (int i = 0; i < 3; ++i, now_ += absl::Seconds(20)) {
    const StepOutput out = Step({Item("team/g2", Spec(1000, 4, 1), 2, /*atomic=*/true)});
    EXPECT_EQ(out.created.size(), 2u);
    for (const auto& node : out.created) EXPECT_EQ(node.request.instance_type, "g.1");
  }
}

// Pods that come first have taken two of three nodes that were provisioned for a gang.
class TakenNodesTest : public HookTest {
 protected:
  void ExpectOthersAreProvisioned(bool restart, int64_t missing) {
    const auto gang = [](int64_t pods) {
      return Item("team/g", Spec(1000, 4, 1), pods, /*atomic=*/true);
    };
    StepAndApply({gang(3)});
    ASSERT_EQ(requests_.size(), 3u);
    const std::string left = requests_.begin()->first;
    for (auto& [name, node] : nodes_) node.needed = name != left;
    if (restart) Restart();
    // While the nodes boot, and when they are there.
    for (int i = 0; i < 4; ++i, now_ += absl::Seconds(10)) {
      for (auto& [name, node] : nodes_) {
        const bool needed = node.needed;
        if (i == 2) node = Arrived(name, name);
        node.needed = needed;
      }
      const StepOutput out = Step({gang(missing)});
      ASSERT_EQ(std::ssize(out.created), missing) << i << " " << DetailsOf(out.outcomes[0]);
      for (const auto& node : out.created) EXPECT_EQ(node.request.instance_type, "g.1");
    }
  }
};

TEST_F(TakenNodesTest, AreReplaced) { ExpectOthersAreProvisioned(false, 3); }
TEST_F(TakenNodesTest, AreReplacedAfterARestart) { ExpectOthersAreProvisioned(true, 3); }
// The third of its pods would go to the node that is left.
TEST_F(TakenNodesTest, AreReplacedAfterARestartBesideTheOneThatIsLeft) {
  ExpectOthersAreProvisioned(true, 2);
}

TEST_F(HookTest, NodeThatHelpedMayBeProvisionedAgain) {
  BuyReady();
  for (int i = 0; i < 5; ++i) {
    StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
    for (auto& [name, node] : nodes_) node = Arrived(name, name);
    for (auto& [name, node] : nodes_) node.needed = true;
    now_ += absl::Minutes(1);
    StepAndApply();
  }
  EXPECT_EQ(requests_.size(), 6u);
}

TEST_F(HookTest, RestartKnowsFromTheObjectsWhatDoesNotHelp) {
  BuyReady();
  nodes_.at(TheName()).needed = false;
  Restart();
  const StepOutput out = StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
  for (const auto& node : out.created) EXPECT_NE(node.request.instance_type, "g.1");
}

// A preference does not decide where a pod may run.
TEST_F(HookTest, PodWithAnotherPreferenceIsNoOtherPod) {
  BuyReady();
  nodes_.at(TheName()).needed = false;
  Restart();
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  for (int i = 0; i < 4; ++i, now_ += absl::Seconds(5)) StepAndApply(demand);
  auto spec = std::make_shared<model::PodSpec>(*Spec(1000, 4, 1));
  spec->preferred_node_terms.resize(1);
  for (const auto& node : StepAndApply({Item("team/b", spec, 1)}).created) {
    EXPECT_NE(node.request.instance_type, "g.1");
  }
}

// Pods that are never equal, on a cloud whose nodes none of them can use. A test of the total cost:
// of six hours.
class VariedPodsTest : public HookTest {
 protected:
  VariedPodsTest() {
    catalog_ = Catalog::FromTypes({Type("g.1", 4, 16, 1, kDollar)});
    Restart();
  }
  // Every 10 s the process ends if `restarts`, or its configuration is read again if `reloads`.
  int Run(bool restarts, bool reloads) {
    int created = 0;
    for (; now_ < kStart + absl::Hours(6); now_ += absl::Seconds(10)) {
      for (auto& [name, node] : nodes_) {
        node.needed = false;
        node.registered = node.ready =
            requests_.at(name).launched_at.value_or(now_) + absl::Seconds(60) <= now_;
      }
      auto spec = std::make_shared<model::PodSpec>(*Spec(1000, 4, 1));
      model::Add(spec->requests, model::kMemoryName, made_++ / 30);
      // Its workload is another pod every five minutes.
      const StepOutput out = StepAndApply({Item(absl::StrCat("team/p", made_ / 30), spec, 1)});
      created += static_cast<int>(out.created.size());
      Answer(false, absl::OkStatus());
      for (const auto& launch : All<model::LaunchNode>(out)) {
        Launched(launch);
      }
      StepAndApply();
      if (restarts) Restart();
      if (reloads) Reload();
    }
    return created;
  }
  int64_t made_ = 0;
};

TEST_F(VariedPodsTest, QueueWhosePurchasesDoNotHelpIsOnTrial) {
  EXPECT_LE(Run(/*restarts=*/false, /*reloads=*/false), 3 + 6 + 6)
      << "three, six in the first two hours, then one an hour";
}

TEST_F(VariedPodsTest, ReloadDoesNotEndATrial) {
  EXPECT_LE(Run(/*restarts=*/false, /*reloads=*/true), 3 + 6 + 6);
}

TEST_F(VariedPodsTest, RestartDoesNotEndATrial) {
  const int created = Run(/*restarts=*/true, /*reloads=*/false);
  EXPECT_LE(created, 6 * 10) << "the requests of an hour are remembered";
}

TEST_F(HookTest, QueueThatWasHelpedIsNotOnTrial) {
  int created = 0;
  for (int i = 0; i < 20; ++i, now_ += absl::Minutes(1)) {
    const Demand demand = {Item(absl::StrCat("team/p", i), Spec(1000 + i, 4, 1), 1)};
    created += static_cast<int>(StepAndApply(demand).created.size());
    for (auto& [name, node] : nodes_) {
      node = Arrived(name, name);
      node.needed = i % 4 == 3;  // one in four helps
    }
    for (int step = 0; step < 3; ++step, now_ += absl::Seconds(10)) {
      StepAndApply(i % 4 == 3 ? Demand() : demand);
    }
  }
  EXPECT_GE(created, 15);
}

// ---- what is left for the next process

TEST_F(HookTest, MachineThatDidNotHelpLeavesItsRequestForTheNextProcess) {
  catalog_ = Catalog::FromTypes({Type("g.1", 4, 16, 1, kDollar)});
  Restart();
  BuyReady();
  nodes_.at(TheName()).needed = false;
  Restart();
  const Demand demand = {Item("team/a", Spec(1000, 4, 1), 1)};
  for (int i = 0; i < 60 && ThePhase() != Phase::kGone; ++i, now_ += absl::Seconds(10)) {
    const StepOutput out = StepAndApply(demand);
    EXPECT_TRUE(out.created.empty());
    if (!All<model::TerminateNode>(out).empty()) {
      EXPECT_EQ(The().failure, "Unhelpful") << "stored before the machine ends";
      Answer(false, absl::OkStatus());
      nodes_.clear();
    }
  }
  ASSERT_EQ(ThePhase(), Phase::kGone);
  EXPECT_EQ(hook_->machines().rows().size(), 1u);
  Restart();
  const absl::Time restart = now_;
  for (; now_ < restart + absl::Minutes(50); now_ += absl::Minutes(1)) {
    const StepOutput out = StepAndApply(demand);
    EXPECT_TRUE(out.created.empty()) << now_;
    EXPECT_NE(DetailsOf(out.outcomes[0]).find("did not help"), std::string::npos);
  }
  now_ = restart + absl::Hours(1);
  StepTwice();
  EXPECT_TRUE(requests_.empty()) << "not for ever";
}

TEST_F(HookTest, RecordThatIsDeletedGoesAtOnce) {
  BuyReady();
  The().phase = Phase::kGone;
  The().failure = "Unhelpful";
  The().failed_at = now_;
  nodes_.clear();
  Restart();
  StepTwice();
  ASSERT_EQ(requests_.size(), 1u);
  The().meta.deletion = now_;
  StepTwice();
  EXPECT_TRUE(requests_.empty());
}

}  // namespace
}  // namespace fairlead::hook
