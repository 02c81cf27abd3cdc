// An item that stands for several workloads is planned and provisioned for as that many items
// would be: random catalogues, caps, rates and demand.
//
// FAIRLEAD_DEMAND_SEEDS sets how many.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autoscale-hook/hook_testing.h"
#include "autoscale-hook/planner/planner_testing.h"
#include "base/testing/environment.h"

namespace fairlead::hook {
namespace {

using testing::ArithmeticPlacement;
using testing::kDollar;
using testing::Random;

// The workloads of items, by name.
class Workloads final : public DemandMembers {
 public:
  std::vector<std::vector<std::string>> of_item;
  [[nodiscard]] std::vector<std::string> Names(size_t item, int64_t count) const override {
    ++asked;
    return {of_item[item].begin(), of_item[item].begin() + count};
  }
  [[nodiscard]] std::optional<size_t> Find(bool, const std::string& workload) const override {
    for (size_t i = 0; i < of_item.size(); ++i) {
      for (const std::string& name : of_item[i]) {
        if (name == workload) return i;
      }
    }
    return std::nullopt;
  }
  mutable int asked = 0;
};

Demand OneByOne(const Demand& rows, const Workloads& names) {
  Demand all;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const std::string& name : names.of_item[i]) {
      all.push_back(rows[i]);
      all.back().workload = name;
      all.back().members = 1;
    }
  }
  return all;
}

struct Case {
  Catalog catalog;
  Demand rows;
  Workloads names;
};

Case RandomCase(Random& random) {
  Case made;
  std::vector<InstanceType> types;
  for (int64_t t = random.Between(1, 4); t > 0; --t) {
    const int64_t gpus = random.Between(0, 4);
    types.push_back(testing::Type(absl::StrCat("t.", t), 8 * (gpus + 1), 32, gpus,
                                  (gpus + 1) * kDollar + random.Between(0, kDollar)));
  }
  made.catalog = Catalog::FromTypes(types);
  std::vector<std::shared_ptr<const model::PodSpec>> specs;
  for (int64_t s = random.Between(1, 4); s > 0; --s) {
    specs.push_back(
        testing::Spec(1000 * random.Between(1, 9), random.Between(1, 20), random.Between(0, 2)));
  }
  int64_t count = 0;
  for (int64_t i = random.Between(1, 9); i > 0; --i) {
    DemandItem item;
    item.queue = "q";
    const int64_t kinds = random.Between(1, 2);
    item.is_group = random.Between(1, 3) == 1;
    item.atomic = item.is_group && random.Between(1, 2) == 1;
    for (int64_t k = 0; k < kinds; ++k) {
      verdict::DemandClass pods;
      pods.spec =
          specs[static_cast<size_t>(random.Between(0, static_cast<int64_t>(specs.size()) - 1))];
      pods.count = item.is_group ? random.Between(1, 3) : 1;
      pods.min_count = item.is_group ? random.Between(0, pods.count) : 1;
      item.classes.push_back(pods);
      if (!item.is_group) break;
    }
    item.members = random.Between(1, 12);
    made.names.of_item.emplace_back();
    for (int64_t m = 0; m < item.members; ++m) {
      made.names.of_item.back().push_back(absl::StrCat("team/w", 1000 + ++count));
    }
    item.workload = made.names.of_item.back().front();
    made.rows.push_back(item);
  }
  return made;
}

CapsLeft RandomCaps(Random& random) {
  CapsLeft caps;
  if (random.Between(1, 2) == 1) caps.gpus = random.Between(0, 12);
  if (random.Between(1, 3) == 1) caps.micro_usd_per_hour = random.Between(0, 20) * kDollar;
  if (random.Between(1, 3) == 1) caps.nodes = random.Between(0, 8);
  return caps;
}

std::string Describe(const Plan& plan) {
  std::vector<std::string> outcomes;  // by member
  std::vector<size_t> first;          // member, by outcome
  for (const ItemOutcome& outcome : plan.items) {
    first.push_back(outcomes.size());
    for (int64_t m = 0; m < outcome.members; ++m) {
      outcomes.push_back(absl::StrCat(verdict::CodeName(outcome.code), " ",
                                      absl::StrJoin(outcome.nodes, ","), " ",
                                      absl::StrJoin(outcome.details, "; ")));
    }
  }
  std::string text = absl::StrCat(absl::StrJoin(outcomes, "\n"), "\n");
  for (const PlannedNode& node : plan.nodes) {
    absl::StrAppend(&text, node.offer.type->name, ":");
    for (const auto& [outcome, pods] : node.pods_of_item) {
      absl::StrAppend(&text, " ", pods, " of ", first[outcome]);
    }
    absl::StrAppend(&text, "\n");
  }
  return absl::StrCat(text, plan.more_next_step ? "more " : "", plan.price_micro_usd_per_hour);
}

TEST(DemandRowsProperty, PlanIsTheSame) {
  const auto seeds =
      static_cast<uint64_t>(fairlead::testing::FromEnvironment("FAIRLEAD_DEMAND_SEEDS", 60));
  size_t nodes = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const Case made = RandomCase(random);
    const Demand singles = OneByOne(made.rows, made.names);
    model::NodePool pool;
    pool.meta.name = "pool";
    PlanInput input = testing::InputOf(made.catalog, {&pool}, made.rows);
    input.caps = RandomCaps(random);
    if (random.Between(1, 4) == 1) input.max_nodes = random.Between(1, 4);
    ArithmeticPlacement placement;
    const Plan of_rows = MakePlan(input, placement);
    input.demand = &singles;
    const Plan of_singles = MakePlan(input, placement);
    ASSERT_EQ(Describe(of_rows), Describe(of_singles));
    nodes += of_rows.nodes.size();
  }
  EXPECT_GT(nodes, 2 * seeds);
}

std::string Describe(const StepOutput& out) {
  std::string text;
  for (const model::Action& action : out.actions) {
    const auto* create = std::get_if<model::CreateNodeRequest>(&action.what);
    if (create == nullptr) continue;
    absl::StrAppend(&text, create->request->meta.name, " ", create->request->instance_type, " ",
                    absl::StrJoin(create->request->reason_workloads, ","), "\n");
  }
  for (const DemandOutcome& outcome : out.outcomes) {
    for (int64_t m = 0; m < outcome.members; ++m) {
      absl::StrAppend(&text, verdict::CodeName(outcome.code), " ",
                      absl::StrJoin(outcome.node_requests, ","), " ",
                      absl::StrJoin(outcome.details, "; "), "\n");
    }
  }
  return absl::StrCat(text, absl::FormatTime(out.wake_at));
}

TEST(DemandRowsProperty, StepIsTheSameUnderRates) {
  const auto seeds =
      static_cast<uint64_t>(fairlead::testing::FromEnvironment("FAIRLEAD_DEMAND_SEEDS", 60));
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Random random(seed);
    const Case made = RandomCase(random);
    const Demand singles = OneByOne(made.rows, made.names);
    HookOptions options;
    options.provider = "kwok";
    options.gathering_quiet = absl::ZeroDuration();
    options.guard.burst = random.Between(1, 5);
    options.guard.per_minute = random.Between(1, 60);
    options.max_nodes = random.Between(0, 20);
    Hook of_rows(options, &made.catalog), of_singles(options, &made.catalog);
    ArithmeticPlacement placement;
    absl::Time now = absl::FromUnixSeconds(1800000000);
    for (int step = 0; step < 4; ++step, now += absl::Seconds(random.Between(1, 20))) {
      StepInput input;
      input.now = now;
      input.demand = &made.rows;
      input.members = &made.names;
      const StepOutput rows = of_rows.Step(input, placement);
      input.demand = &singles;
      input.members = nullptr;
      ASSERT_EQ(Describe(rows), Describe(of_singles.Step(input, placement)));
    }
  }
}

// What a cap holds is not asked for its names.
TEST(DemandRowsTest, NothingIsNamedThatIsNotOrdered) {
  const Catalog catalog = Catalog::FromTypes({testing::Type("g.1", 4, 16, 1, kDollar)});
  HookOptions options;
  options.provider = "kwok";
  options.gathering_quiet = absl::ZeroDuration();
  options.max_nodes = 2;
  Hook hook(options, &catalog);
  Workloads names;
  names.of_item.emplace_back();
  for (int i = 0; i < 1000; ++i) names.of_item[0].push_back(absl::StrCat("team/w", i));
  Demand demand = {testing::Item("team/w0", testing::Spec(1000, 4, 1), 1)};
  demand[0].members = 1000;
  StepInput input;
  input.now = absl::FromUnixSeconds(1800000000);
  input.demand = &demand;
  input.members = &names;
  ArithmeticPlacement placement;
  StepOutput out = hook.Step(input, placement);
  EXPECT_EQ(out.created.size(), 2u);
  ASSERT_EQ(out.outcomes.size(), 3u);
  EXPECT_EQ(out.outcomes[0].workload, "team/w0");
  EXPECT_EQ(out.outcomes[1].workload, "team/w1");
  EXPECT_EQ(out.outcomes[2].members, 998);
  EXPECT_EQ(names.asked, 1);
}

}  // namespace
}  // namespace fairlead::hook
