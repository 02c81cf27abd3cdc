#include "sim/world/plan_capacity.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "sim/world/plan_dice.h"

namespace fairlead::sim::world {
namespace {

constexpr uint64_t kCapacityDice = 0x6361706163697479;
constexpr char kNamespace[] = "team-a";

class Capacity : PlanDice {
 public:
  Capacity(uint64_t seed, Plan& plan) : PlanDice(seed ^ kCapacityDice, plan) {}

  void Draw() {
    for (int64_t t = 0; t < kTemplates; ++t) {
      At(random_.Between(0, plan_.end_ms / 3), "capacity-template", absl::StrCat("t", t))
          .With("cpu", random_.Between(1, 8) * 500)
          .With("memory", random_.Between(1, 8) * kGiB)
          .With("gpu", random_.Between(0, 2));
    }
    for (int64_t b = random_.Between(1, 3); b > 0; --b) Buffer(absl::StrCat("b", b));
    for (int64_t r = random_.Between(0, 3); r > 0; --r) Request(absl::StrCat("r", r));
    for (Operation& each : plan_.operations) {
      if (each.verb == "queue" && !each.Text("parent").empty()) OverQuota(each);
    }
  }

 private:
  static constexpr int64_t kTemplates = 2;

  Operation& At(int64_t at_ms, const char* verb, const std::string& name) {
    return PlanDice::At(at_ms, verb).With("name", name).With("ns", kNamespace);
  }
  // The last template is never made.
  std::string AnyTemplate() { return absl::StrCat("t", random_.Between(0, kTemplates)); }
  int64_t Gone() { return plan_.end_ms - random_.Between(1, 20) * kSecond; }

  void OverQuota(Operation& queue) {
    const int64_t policy = random_.Between(0, 3);
    if (policy > 0)
      queue.With("over_quota", policy == 1 ? "BuyNodes" : policy == 2 ? "Weigh" : "?");
  }
  void Buffer(const std::string& name) {
    const int64_t gone = Gone();
    for (int64_t times = random_.Between(1, 3); times > 0; --times) {
      At(random_.Between(0, gone), "capacity-buffer", name)
          .With("template", AnyTemplate())
          .With("replicas", random_.Between(0, 5));
    }
    At(gone, "delete-capacity", name).With("kind", "buffer");
  }
  void Request(const std::string& name) {
    const int64_t gone = Gone();
    At(random_.Between(0, gone), "provisioning-request", name)
        .With("template", AnyTemplate())
        .With("pods", random_.Between(1, 6))
        .With("checks", random_.Between(0, 1))
        .With("no_retry", random_.Between(0, 1));
    At(gone, "delete-capacity", name).With("kind", "request");
  }
};

}  // namespace

bool DrawsCapacity(uint64_t seed) { return seed % 4 == 1; }

void AddCapacity(uint64_t seed, Plan& plan) {
  if (plan.hook) Capacity(seed, plan).Draw();
}

}  // namespace fairlead::sim::world
