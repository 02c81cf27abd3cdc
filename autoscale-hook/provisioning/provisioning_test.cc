// Nodes that are smaller than the catalogue says, and a hook without a provider.
#include <string>

#include "autoscale-hook/hook_fixture_testing.h"

namespace fairlead::hook {
namespace {

using Phase = model::NodeRequestPhase;
using testing::DetailsOf;
using testing::HookTest;
using testing::Item;
using testing::kDollar;
using testing::kGiB;
using testing::Spec;
using testing::Type;
using verdict::Code;

TEST_F(HookTest, SmallerNodesAreLearnedAndSurviveARestart) {
  catalog_ = Catalog::FromTypes({Type("g.1", 4, 32, 1, kDollar)});
  Restart();
  const Demand demand = {Item("team/a", Spec(1000, 31, 1), 1)};
  StepAndApply(demand);
  ASSERT_EQ(requests_.size(), 1u);
  StepAndApply();
  Answer(true, absl::OkStatus());
  NodeUse& node = nodes_.at(TheName());
  node = Arrived(TheName(), TheName());
  node.allocatable = {
      {"cpu", 4000}, {"memory", 29 * kGiB}, {"nvidia.com/gpu", 1000}, {"pods", 110}};
  StepAndApply();
  ASSERT_EQ(ThePhase(), Phase::kReady);
  EXPECT_EQ(model::Get(The().allocatable, "memory"), 29 * kGiB);
  for (int life = 0; life < 2; ++life) {
    const StepOutput out = StepAndApply(demand);
    EXPECT_TRUE(out.created.empty());
    EXPECT_EQ(out.outcomes[0].code, Code::kNoInstanceTypeFits);
    EXPECT_NE(DetailsOf(out.outcomes[0])
                  .find("nodes of type g.1 have 29Gi of memory instead of 32Gi of memory"),
              std::string::npos)
        << DetailsOf(out.outcomes[0]);
    const StepOutput fits = StepAndApply({Item("team/b", Spec(1000, 28, 1), 1)});
    EXPECT_EQ(fits.created.size(), 1u);
    EXPECT_EQ(model::Get(fits.created.at(0).node.allocatable, "memory"), 29 * kGiB)
        << "what is promised is what comes";
    Restart();
    std::erase_if(requests_, [](const auto& r) { return r.second.phase != Phase::kReady; });
    std::erase_if(nodes_, [&](const auto& n) { return !requests_.contains(n.first); });
  }
}

TEST_F(HookTest, NodeWithSomeOfItsDevicesIsUsedAsItIsAfterItsTime) {
  BuyLaunched();
  NodeUse& node = nodes_.at(TheName());
  node.registered = node.usable_in_part = true;
  now_ += options_.ready_timeout;
  StepAndApply();
  EXPECT_EQ(ThePhase(), Phase::kReady);
}

// ---- providers

TEST_F(HookTest, NoProviderIsAHookThatIsOff) {
  options_.provider.clear();
  Restart();
  EXPECT_TRUE(Step({Item("team/a", Spec(1000, 4, 1), 1)}).actions.empty());
  options_.enabled = false;
  EXPECT_TRUE(CheckProvider(options_, "hook.provider").ok());
  options_.enabled = true;
  const absl::Status missing = CheckProvider(options_, "hook.provider");
  EXPECT_EQ(missing.message(),
            "hook.provider: must be set if the hook is enabled; known providers: aws, kwok");
  options_.provider = "gce";
  const absl::Status unknown = CheckProvider(options_, "hook.provider");
  EXPECT_TRUE(absl::IsInvalidArgument(unknown));
  EXPECT_EQ(unknown.message(),
            "hook.provider: \"gce\" is not a known provider; known providers: aws, kwok");
}

TEST_F(HookTest, PoolOfAnUnknownProviderOffersNothing) {
  model::NodePool pool;
  pool.meta.name = "cloud";
  pool.provider = "gce";
  pools_ = {pool};
  const StepOutput out = StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
  EXPECT_TRUE(out.created.empty());
  EXPECT_NE(DetailsOf(out.outcomes[0]).find("NodePool cloud: spec.provider \"gce\""),
            std::string::npos)
      << DetailsOf(out.outcomes[0]);
}

}  // namespace
}  // namespace fairlead::hook
