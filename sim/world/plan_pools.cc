#include "sim/world/plan_pools.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/world/plan_dice.h"
#include "sim/world/pool_objects.h"

namespace fairlead::sim::world {
namespace {

constexpr uint64_t kPoolDice = 0x706f6f6c73;
constexpr int64_t kManyNodes = 40, kManyDollars = 40;

class Pools : PlanDice {
 public:
  Pools(uint64_t seed, Plan& plan) : PlanDice(seed ^ kPoolDice, plan) {}

  void Draw() {
    for (int64_t p = random_.Between(2, 4); p > 0; --p) Pool(absl::StrCat("p", p));
    Times(3, 7, [&] { Work(); });
  }

 private:
  // Created, changed, deleted and made again.
  void Pool(const std::string& name) {
    Spec(At(OneIn(4) ? Sometime() : 0, "pool").With("name", name));
    Times(1, 5, [&] {
      const int64_t at = Sometime();
      const uint64_t what = random_.Below(4);
      if (what == 0) {
        At(at, "delete-pool").With("name", name);
        // At once, too: the same name, another object.
        if (!OneIn(4)) Spec(At(at + random_.Between(0, 20) * kSecond, "pool").With("name", name));
        return;
      }
      Operation& change = At(at, "pool").With("name", name);
      Spec(change);
      if (what != 1) return;
      static const std::vector<const char*> kWrongs = {"provider", "after", "schedule", "sharing"};
      change.With("wrong", Any(kWrongs));
      if (OneIn(2)) Spec(At(at + random_.Between(1, 30) * kSecond, "pool").With("name", name));
    });
  }

  void Spec(Operation& pool) {
    static const std::vector<const char*> kTypes = {
        "cpu8", "gpu1", "gpu4", "gpu8", "cpu8,gpu1", "gpu1,gpu8", "cpu8,gpu4,gpu8", "no-such-type"};
    static const std::vector<const char*> kZones = {"zone-a", "zone-b", "zone-a,zone-b", "zone-z"};
    static const std::vector<const char*> kEffects = {"NoSchedule", "NoSchedule", "NoExecute",
                                                      "PreferNoSchedule"};
    static const std::vector<const char*> kAfter = {"Never", "0s", "10s", "60s", "100s"};
    static const std::vector<const char*> kBudgets = {"0", "0%", "1", "2", "100%"};
    static const std::vector<const char*> kWeights = {"-2147483648", "0", "1", "100", "2147483647"};
    if (OneIn(2)) pool.With("types", Any(kTypes));
    if (OneIn(3)) pool.With("zones", Any(kZones));
    if (OneIn(2)) pool.With("tier", Tier());
    if (OneIn(3)) pool.With("taint", Any(kEffects));
    if (OneIn(6)) pool.With("startup", 1);
    if (OneIn(3)) pool.With("max", random_.Between(0, 4));
    if (OneIn(3)) pool.With("weight", Any(kWeights));
    if (OneIn(8)) pool.With("spot", 1);
    if (OneIn(8)) pool.With("label_zone", "zone-z");  // wrong if it has others
    if (OneIn(3)) pool.With("policy", OneIn(2) ? "WhenEmpty" : "WhenEmptyOrUnderutilized");
    if (OneIn(3)) pool.With("after", Any(kAfter));
    if (OneIn(4)) pool.With("budget", Any(kBudgets));
    if (OneIn(8)) pool.With("budget_reason", OneIn(2) ? "Empty" : "Underutilized");
  }

  const char* Tier() { return OneIn(2) ? "a" : "b"; }

  // Most of them run on nodes of pools alone.
  void Work() {
    Operation& job = At(random_.Between(500, plan_.end_ms - 30 * kSecond), "job");
    const bool gang = OneIn(3);
    const int64_t pods = random_.Between(1, 5);
    job.With("name", absl::StrCat("pooled", plan_.operations.size()))
        .With("ns", OneIn(2) ? "team-a" : "team-b")
        .With("queue", OneIn(2) ? "q1" : "q2")
        .With("pods", pods)
        .With("cpu", random_.Between(1, 6) * 1000)
        .With("memory", random_.Between(1, 8) * kGiB)
        .With("gpu", OneIn(2) ? random_.Between(1, 4) : 0)
        .With("grouping", gang ? "own" : "none")
        .With("min", gang ? pods : 1)
        .With("run", OneIn(4) ? kForever : random_.Between(10, 60));
    if (!OneIn(4)) job.With("select", absl::StrCat(kTierLabel, ":", Tier()));
    if (OneIn(2)) job.With("tolerate", kPoolTaintKey);
  }
};

}  // namespace

bool DrawsPools(uint64_t seed) { return seed % 5 == 3; }

void AddPools(uint64_t seed, bool always, Plan& plan) {
  if (!plan.hook && !always) return;
  if (always) {
    plan.hook = true;
    plan.max_nodes = std::max(plan.max_nodes, kManyNodes);
    plan.max_usd_per_hour = std::max(plan.max_usd_per_hour, kManyDollars);
  }
  Pools(seed, plan).Draw();
}

}  // namespace fairlead::sim::world
