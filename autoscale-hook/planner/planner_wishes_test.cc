// What pods say about their machines (model/instance_wishes.h), through the planner: prices, and
// GPU models in the order given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autoscale-hook/planner/planner_testing.h"
#include "autoscale-hook/planner/wished_offers.h"
#include "base/testing/environment.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

using fairlead::testing::FromEnvironment;
using testing::ArithmeticPlacement;
using ::testing::HasSubstr;
using testing::InputOf;
using testing::Item;
using testing::kDollar;
using testing::Random;
using testing::Spec;
using testing::Type;
using verdict::Code;
using Pods = std::shared_ptr<const model::PodSpec>;
using Bought = std::map<std::string, int>;

Pods Wishing(int64_t gpus, const model::StringMap& annotations) {
  auto spec = std::make_shared<model::PodSpec>(*Spec(1000, 4, gpus));
  std::vector<model::WishProblem> problems;
  spec->wishes = model::ParseInstanceWishes(annotations, problems);
  EXPECT_TRUE(problems.empty());
  return spec;
}

Pods Skus(int64_t gpus, const char* skus) {
  return Wishing(gpus, {{model::kGpuSkusAnnotation, skus}});
}

class PlannerWishesTest : public ::testing::Test {
 protected:
  PlannerWishesTest() {
    // The later the model in the list of most tests, the cheaper.
    for (const auto& [name, dollars, product] :
         std::initializer_list<std::tuple<const char*, int64_t, const char*>>{
             {"p5.4xlarge", 7, "NVIDIA-H100-80GB-HBM3"},
             {"p4d.large", 4, "NVIDIA-A100-SXM4-40GB"},
             {"g6e.xlarge", 2, "NVIDIA-L40S"},
             {"g6.xlarge", 1, "NVIDIA-L4"}}) {
      types_.push_back(Type(name, 16, 64, 1, dollars * kDollar, product));
    }
  }
  const Plan& Run(Demand demand) {
    catalog_ = std::make_unique<Catalog>(Catalog::FromTypes(types_));
    demand_ = std::move(demand);
    PlanInput input = InputOf(*catalog_, {&pool_}, demand_);
    std::erase_if(input.offers, [&](const Offer& offer) {
      if (!resting_.contains(offer.type->name)) return false;
      input.resting.push_back({offer, testing::kRestsUntil, FailureClass::kStockout, "none left"});
      return true;
    });
    input.caps = caps_;
    return plan_ = MakePlan(input, placement_);
  }
  [[nodiscard]] Bought All() const {
    Bought bought;
    for (const PlannedNode& node : plan_.nodes) ++bought[node.offer.type->name];
    return bought;
  }
  // Of one item of the demand; empty if it gets nothing.
  [[nodiscard]] Bought Of(size_t item) const {
    Bought bought;
    for (const ItemOutcome& outcome : plan_.items) {
      if (outcome.item != item) continue;
      for (const size_t node : outcome.nodes) ++bought[plan_.nodes[node].offer.type->name];
    }
    return bought;
  }
  [[nodiscard]] std::string Details(size_t number) const {
    std::vector<std::string> details = plan_.items[number].details;
    if (!plan_.items[number].alternative.empty()) {
      details.push_back(plan_.items[number].alternative);
    }
    return absl::StrJoin(details, "; ");
  }

  std::vector<InstanceType> types_;
  std::set<std::string> resting_;  // types
  model::NodePool pool_;
  CapsLeft caps_;
  Demand demand_;
  std::unique_ptr<Catalog> catalog_;
  ArithmeticPlacement placement_;
  Plan plan_;
};

TEST_F(PlannerWishesTest, TheFirstModelThatIsToBeHadWhateverItCosts) {
  Run({Item("a", Skus(1, "H100,A100,L40S"), 2), Item("b", Skus(1, "A100,L4"), 1),
       Item("c", Spec(1000, 4, 1), 1)});
  EXPECT_EQ(Of(0), (Bought{{"p5.4xlarge", 2}}));
  EXPECT_EQ(Of(1), (Bought{{"p4d.large", 1}}));
  EXPECT_EQ(Of(2), (Bought{{"g6.xlarge", 1}}));
  EXPECT_EQ(Details(0), "");
}

TEST_F(PlannerWishesTest, AModelThatNoCatalogueHasIsPassedOver) {
  Run({Item("a", Skus(1, "B200,L40S,L4"), 1)});
  EXPECT_EQ(All(), (Bought{{"g6e.xlarge", 1}}));
  EXPECT_EQ(Details(0),
            "GPU model L40S is provisioned instead of B200 (no instance type on offer with it "
            "suits the pods)");
}

TEST_F(PlannerWishesTest, AModelThatIsTooSmallIsPassedOver) {
  types_.push_back(Type("p4d.24xlarge", 96, 1024, 8, 32 * kDollar, "NVIDIA-A100-SXM4-40GB"));
  Run({Item("a", Skus(4, "H100,A100,L4"), 1)});
  EXPECT_EQ(All(), (Bought{{"p4d.24xlarge", 1}}));
}

TEST_F(PlannerWishesTest, AfterAStockOutTheNextOne) {
  resting_ = {"p5.4xlarge"};
  Run({Item("a", Skus(1, "H100,A100,L40S"), 1)});
  EXPECT_EQ(All(), (Bought{{"p4d.large", 1}}));
  EXPECT_EQ(Details(0),
            "GPU model A100 is provisioned instead of H100 (in backoff after Stockout of "
            "p5.4xlarge)");
  resting_ = {"p5.4xlarge", "p4d.large"};
  Run({Item("a", Skus(1, "H100,A100,L40S"), 1)});
  EXPECT_EQ(All(), (Bought{{"g6e.xlarge", 1}}));
  EXPECT_THAT(Details(0), HasSubstr("instead of H100 (in backoff after Stockout of p5.4xlarge), "
                                    "A100 (in backoff after Stockout of p4d.large)"));
  resting_ = {"p5.4xlarge", "p4d.large", "g6e.xlarge"};
  Run({Item("a", Skus(1, "H100,A100,L40S"), 1)});
  EXPECT_TRUE(All().empty());  // never a model that the pod does not name
  EXPECT_EQ(plan_.items[0].code, Code::kInsufficientCapacity);
}

TEST_F(PlannerWishesTest, ACapSendsTheRestOfTheSinglesToTheNextModel) {
  caps_.gpus_by_model = {{"NVIDIA-H100-80GB-HBM3", 2}, {"NVIDIA-A100-SXM4-40GB", 1}};
  Demand demand;
  for (const char* name : {"a", "b", "c", "d"}) {
    demand.push_back(Item(name, Skus(1, "H100,A100,L40S"), 1));
  }
  Run(demand);
  EXPECT_EQ(Of(0), (Bought{{"p5.4xlarge", 1}}));
  EXPECT_EQ(Of(1), (Bought{{"p5.4xlarge", 1}}));
  EXPECT_EQ(Of(2), (Bought{{"p4d.large", 1}}));
  EXPECT_EQ(Of(3), (Bought{{"g6e.xlarge", 1}}));
  EXPECT_EQ(Details(2),
            "GPU model A100 is provisioned instead of H100 (the caps leave too little for it)");
}

TEST_F(PlannerWishesTest, TheSameForMembersOfOneItem) {
  caps_.gpus_by_model = {{"NVIDIA-H100-80GB-HBM3", 2}, {"NVIDIA-A100-SXM4-40GB", 1}};
  DemandItem item = Item("a", Skus(1, "H100,A100,L40S"), 1);
  item.members = 6;
  Run({item, Item("z", Spec(1000, 4, 1), 1)});
  ASSERT_EQ(plan_.items.size(), 7);
  std::vector<std::string> types;
  for (const ItemOutcome& outcome : plan_.items) {
    ASSERT_EQ(outcome.nodes.size(), 1);
    types.push_back(plan_.nodes[outcome.nodes[0]].offer.type->name);
  }
  EXPECT_EQ(types, (std::vector<std::string>{"p5.4xlarge", "p5.4xlarge", "p4d.large", "g6e.xlarge",
                                             "g6e.xlarge", "g6e.xlarge", "g6.xlarge"}));
}

// Equal workloads go on to the next model together: more of them than are left out one by one.
TEST_F(PlannerWishesTest, ManyEqualWorkloadsBehindACap) {
  caps_.gpus_by_model = {{"NVIDIA-H100-80GB-HBM3", 1}};
  Demand demand;
  for (int i = 0; i < 4 * kMaxLeftOut; ++i) {
    demand.push_back(Item(absl::StrCat("w", 1000 + i), Skus(1, "H100,A100"), 1));
  }
  Run(demand);
  EXPECT_EQ(All(), (Bought{{"p5.4xlarge", 1}, {"p4d.large", 4 * kMaxLeftOut - 1}}));
}

TEST_F(PlannerWishesTest, AGangIsWholeOnOneModel) {
  caps_.gpus_by_model = {{"NVIDIA-H100-80GB-HBM3", 3}};
  Run({Item("gang", Skus(1, "H100,A100"), 4, true), Item("single", Skus(1, "H100"), 3)});
  EXPECT_EQ(Of(0), (Bought{{"p4d.large", 4}}));
  EXPECT_EQ(Of(1), (Bought{{"p5.4xlarge", 3}}));
}

TEST_F(PlannerWishesTest, PodsOfOneWorkloadGetAPartAndTheRestAsksAgain) {
  caps_.gpus_by_model = {{"NVIDIA-H100-80GB-HBM3", 3}};
  Run({Item("a", Skus(1, "H100,A100"), 8)});
  EXPECT_EQ(All(), (Bought{{"p5.4xlarge", 3}}));
  caps_.gpus_by_model = {{"NVIDIA-H100-80GB-HBM3", 0}};
  Run({Item("a", Skus(1, "H100,A100"), 5)});
  EXPECT_EQ(All(), (Bought{{"p4d.large", 5}}));
}

TEST_F(PlannerWishesTest, ACostCapThatNoModelFitsIsTold) {
  caps_.micro_usd_per_hour = 500000;
  Run({Item("a", Skus(1, "H100,A100,L40S"), 1)});
  EXPECT_TRUE(All().empty());
  EXPECT_EQ(plan_.items[0].code, Code::kCostCapReached);
  caps_.micro_usd_per_hour = 2 * kDollar;
  Run({Item("a", Skus(1, "H100,A100,L40S"), 1)});
  EXPECT_EQ(All(), (Bought{{"g6e.xlarge", 1}}));
}

TEST_F(PlannerWishesTest, TheMaximumCostIsOfOneNode) {
  Run({Item("a", Wishing(1, {{model::kMaxCostAnnotation, "4"}}), 3),
       Item("b",
            Wishing(1, {{model::kMaxCostAnnotation, "3.999999"},
                        {model::kGpuSkusAnnotation, "A100,L40S"}}),
            1)});
  EXPECT_EQ(Of(0), (Bought{{"g6.xlarge", 3}}));
  EXPECT_EQ(Of(1), (Bought{{"g6e.xlarge", 1}}));
  Run({Item("a", Wishing(1, {{model::kMaxCostAnnotation, "0.99"}}), 1)});
  EXPECT_TRUE(All().empty());
  EXPECT_EQ(plan_.items[0].code, Code::kNoInstanceTypeFits);
  EXPECT_EQ(Details(0),
            "the cheapest type that suits it (g6.xlarge) costs $1.00 an hour, its "
            "instance-max-cost is $0.99");
}

TEST_F(PlannerWishesTest, ATypeWithoutAPriceIsNotBoughtForAMaximumCost) {
  types_ = {Type("new", 16, 64, 1, 0, "NVIDIA-H100-80GB-HBM3")};
  types_[0].on_demand_micro_usd.reset();
  Run({Item("a", Wishing(1, {{model::kMaxCostAnnotation, "1000"}}), 1)});
  EXPECT_TRUE(All().empty());
  EXPECT_EQ(plan_.items[0].code, Code::kNoInstanceTypeFits);
}

TEST_F(PlannerWishesTest, SpotAndOnDemandOfOneTypeAreTwoOffers) {
  types_ = {Type("g6.xlarge", 16, 64, 1, 1 * kDollar, "NVIDIA-L4")};
  types_[0].spot_micro_usd = kDollar / 4;
  pool_.allow_spot = true;
  Run({Item("any", Spec(1000, 4, 1), 1),
       Item("steady", Wishing(1, {{model::kOfferingsAnnotation, "on-demand"}}), 1),
       Item("spot", Wishing(1, {{model::kOfferingsAnnotation, "spot"}}), 1)});
  ASSERT_EQ(plan_.items.size(), 3);
  const auto spot = [&](size_t item) {
    return plan_.nodes[plan_.items[item].nodes.at(0)].offer.spot;
  };
  EXPECT_TRUE(spot(0));
  EXPECT_FALSE(spot(1));
  EXPECT_TRUE(spot(2));
  pool_.allow_spot = false;
  Run({Item("spot", Wishing(1, {{model::kOfferingsAnnotation, "spot"}}), 1)});
  EXPECT_TRUE(All().empty());
  EXPECT_EQ(Details(0), "types on offer could run it but for its annotations: instance-offerings");
}

TEST_F(PlannerWishesTest, EveryOtherWishIsKeptToo) {
  types_.push_back(Type("g6.48xlarge", 192, 768, 8, kDollar / 2, "NVIDIA-L4"));
  const auto bought = [&](const char* key, const char* value) {
    Run({Item("a", Wishing(1, {{key, value}}), 1)});
    return All();
  };
  EXPECT_EQ(bought(model::kMaxGpusAnnotation, "8"), (Bought{{"g6.48xlarge", 1}}));
  EXPECT_EQ(bought(model::kMaxGpusAnnotation, "7"), (Bought{{"g6.xlarge", 1}}));
  EXPECT_EQ(bought(model::kFamilyExclusionsAnnotation, "g6"), (Bought{{"g6e.xlarge", 1}}));
  EXPECT_EQ(bought(model::kFamilyInclusionsAnnotation, "p5,p4d"), (Bought{{"p4d.large", 1}}));
  EXPECT_EQ(bought(model::kTypeRegexpAnnotation, "^p5\\."), (Bought{{"p5.4xlarge", 1}}));
  EXPECT_EQ(bought(model::kTypeRegexpAnnotation, "^x"), Bought());
  EXPECT_EQ(Details(0),
            "types on offer could run it but for its annotations: instance-type-regexp");
}

// A gang in one zone: the zone decides among the offers of the model, not between models.
TEST_F(PlannerWishesTest, TopologyRulesKeepTheOrderToo) {
  types_[0].zones = {"z1"};
  types_[1].zones = {"z2"};
  const auto gang = [](const char* name) {
    DemandItem item = Item(name, Skus(1, "H100,A100"), 4, true);
    item.classes[0].min_count = 4;
    verdict::DomainRule rule;
    rule.what = "topology t";
    rule.labels = {model::kZoneLabel, model::kHostnameLabel};
    rule.required = 1;
    item.domains.rules = {rule};
    item.domains.parts = {{0, item.classes}};
    return item;
  };
  Run({gang("a"), gang("b")});
  EXPECT_EQ(Of(0), (Bought{{"p5.4xlarge", 4}}));
  EXPECT_EQ(Of(1), (Bought{{"p5.4xlarge", 4}}));
  caps_.gpus_by_model = {{"NVIDIA-H100-80GB-HBM3", 7}};
  Run({gang("a"), gang("b")});
  EXPECT_EQ(Of(0), (Bought{{"p5.4xlarge", 4}}));
  EXPECT_EQ(Of(1), (Bought{{"p4d.large", 4}}));
  caps_.gpus_by_model = {{"NVIDIA-H100-80GB-HBM3", 3}};
  Run({gang("a"), gang("b")});
  EXPECT_EQ(Of(0), (Bought{{"p4d.large", 4}}));
  EXPECT_EQ(Details(0),
            "GPU model A100 is provisioned instead of H100 (the caps leave too little for it)");
  // On one node, there is none so large but of the second model.
  types_.push_back(Type("p4d.24xlarge", 96, 1024, 8, 32 * kDollar, "NVIDIA-A100-SXM4-40GB"));
  DemandItem one = gang("one");
  one.domains.rules[0].required = 2;
  Run({one});
  EXPECT_EQ(All(), (Bought{{"p4d.24xlarge", 1}}));
  // And a maximum cost holds for the unit.
  one.classes[0].spec = Wishing(1, {{model::kMaxCostAnnotation, "31"}});
  one.domains.parts = {{0, one.classes}};
  Run({one});
  EXPECT_TRUE(All().empty());
}

TEST(WishRank, IsThePlaceOfTheModelOrNone) {
  InstanceType type = Type("x", 1, 1, 1, 2 * kDollar, "NVIDIA-A10G");
  const Offer offer{&type, nullptr, "z1", false, 2 * kDollar};
  const auto rank = [&](const model::StringMap& annotations) {
    return WishRank(*Wishing(1, annotations)->wishes, offer, UsableNode(offer, "").meta.labels);
  };
  EXPECT_EQ(rank({}), 0);
  EXPECT_EQ(rank({{model::kGpuSkusAnnotation, "L4,A10G,T4"}}), 1);
  EXPECT_EQ(rank({{model::kGpuSkusAnnotation, "L4,A10"}}), kNotWished);
  EXPECT_EQ(rank({{model::kMaxCostAnnotation, "2"}}), 0);
  EXPECT_EQ(rank({{model::kMaxCostAnnotation, "1.999999"}}), kNotWished);
}

// Whether "A100" is a word of "NVIDIA-A100-SXM4-40GB", found apart from the code.
bool Names(const std::string& word, const std::string& product) {
  return absl::StrContains(absl::StrCat(product, "-"), absl::StrCat("-", word, "-"));
}

class RandomWishesTest : public PlannerWishesTest {
 protected:
  Pods RandomPods(Random& random) {
    std::vector<std::string> models = {"H100", "A100", "L40S", "L4", "B200"};
    std::shuffle(models.begin(), models.end(), random.engine());
    models.resize(static_cast<size_t>(random.Between(1, 4)));
    model::StringMap annotations = {{model::kGpuSkusAnnotation, absl::StrJoin(models, ",")}};
    if (random.OneIn(3)) {
      annotations.Set(model::kMaxCostAnnotation, absl::StrCat(random.Between(0, 7)));
    }
    return Wishing(1, annotations);
  }
  Demand RandomDemand(Random& random) {
    Demand demand;
    for (int64_t i = random.Between(1, 5); i > 0; --i) {
      const bool gang = random.OneIn(2);
      DemandItem item =
          Item(absl::StrCat("w", i), RandomPods(random), gang ? random.Between(1, 3) : 1, gang);
      item.members = random.Between(1, 3);
      demand.push_back(std::move(item));
    }
    return demand;
  }
  void RandomCaps(Random& random) {
    resting_.clear();
    caps_ = {};
    for (const InstanceType& type : types_) {
      if (random.OneIn(4)) resting_.insert(type.name);
      if (random.OneIn(3)) caps_.gpus_by_model[type.gpu_model] = random.Between(0, 3);
    }
    if (random.OneIn(3)) caps_.micro_usd_per_hour = random.Between(0, 20) * kDollar;
    if (random.OneIn(3)) caps_.nodes = random.Between(0, 6);
  }
  // How many nodes of the type could be bought beside the plan.
  [[nodiscard]] int64_t NodesLeft(const InstanceType& type) const {
    if (resting_.contains(type.name)) return 0;
    int64_t nodes = caps_.nodes, dollars = caps_.micro_usd_per_hour, of_model = kNoBound;
    const auto cap = caps_.gpus_by_model.find(type.gpu_model);
    if (cap != caps_.gpus_by_model.end()) of_model = cap->second;
    for (const PlannedNode& node : plan_.nodes) {
      if (nodes != kNoBound) --nodes;
      if (dollars != kNoBound) dollars -= node.offer.price_micro_usd_per_hour;
      if (of_model != kNoBound && node.offer.type->gpu_model == type.gpu_model) --of_model;
    }
    return std::min({nodes, dollars / *type.on_demand_micro_usd, of_model});
  }
  // The node suits the pods, and as many nodes of no model that they name earlier could be bought.
  void Check(const verdict::DemandClass& pods, const InstanceType& type) {
    const model::InstanceWishes& wishes = *pods.spec->wishes;
    const int64_t most = wishes.max_micro_usd_per_hour.value_or(kNoBound);
    EXPECT_LE(*type.on_demand_micro_usd, most);
    for (const std::string& model : wishes.gpu_models) {
      if (Names(model, type.gpu_model)) return;
      for (const InstanceType& earlier : types_) {
        if (!Names(model, earlier.gpu_model) || *earlier.on_demand_micro_usd > most) continue;
        EXPECT_LT(NodesLeft(earlier), pods.count) << type.name << " instead of " << earlier.name;
      }
    }
    ADD_FAILURE() << type.name << " has no model that the pods name";
  }
};

// Whatever is planned, each node suits the pods that are planned for it, and no pod has a later
// model while enough nodes of an earlier one could still be bought.
TEST_F(RandomWishesTest, EveryPlanKeepsEveryWish) {
  const auto runs = FromEnvironment("FAIRLEAD_WISHES_RUNS", 400);
  int64_t nodes = 0, later = 0;
  for (uint64_t run = 1; run <= static_cast<uint64_t>(runs); ++run) {
    Random random(run);
    SCOPED_TRACE(random.Describe());
    RandomCaps(random);
    Run(RandomDemand(random));
    for (const ItemOutcome& outcome : plan_.items) {
      for (const size_t number : outcome.nodes) {
        const InstanceType& type = *plan_.nodes[number].offer.type;
        Check(demand_[outcome.item].classes[0], type);
        ++nodes;
      }
      later += outcome.alternative.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(nodes, runs);
  EXPECT_GT(later, runs / 4);
}

}  // namespace
}  // namespace fairlead::hook
