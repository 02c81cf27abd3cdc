#include "sim/world/plan_faults.h"

#include <algorithm>
#include <vector>

#include "absl/strings/string_view.h"
#include "sim/world/plan_dice.h"

namespace fairlead::sim::world {
namespace {

class Faults : PlanDice {
 public:
  Faults(uint64_t seed, const std::set<std::string, std::less<>>& families, Plan& plan)
      : PlanDice(seed * 0xa0761d6478bd642fULL + 11, plan) {
    for (const std::string& family : ProcessFamilies()) {
      const bool drawn = random_.Below(3) == 0;  // either way, so that others do not change it
      if (!families.contains(family)) continue;
      if (drawn) on_.insert(family);
    }
    if (on_.empty() && families.size() == 1) on_ = {families.begin(), families.end()};
  }

  void Add() {
    if (on_.contains("reload")) Reloads();
    if (on_.contains("stop")) Stops();
    if (on_.contains("points")) Points();
    if (on_.contains("answers")) Answers();
  }

 private:
  Operation& OnReplica(int64_t at_ms, absl::string_view verb) {
    static const std::vector<const char*> kReplicas = {"leader", "leader", "a", "b"};
    return At(at_ms, verb).With("replica", Any(kReplicas));
  }
  void Settings(int64_t at_ms) {
    static const std::vector<const char*> kConfigurations = {
        "base", "spread",        "quiet",    "rounding",         "empty",
        "half", "unknown-field", "bad-type", "unknown-provider", "missing"};
    static const std::vector<const char*> kCatalogues = {"0",     "1",    "2",   "2",
                                                         "empty", "half", "bad", "missing"};
    Operation& settings = At(at_ms, "settings");
    const bool both = OneIn(4);
    const bool catalogue = OneIn(2);
    if (both || !catalogue) settings.With("configuration", Any(kConfigurations));
    if (both || catalogue) settings.With("catalogue", Any(kCatalogues));
    if (OneIn(2)) settings.With("signal", 1);
  }

  void Reloads() {
    Times(1, 4, [&] {
      const int64_t at = Sometime();
      if (OneIn(4)) {  // while leadership changes
        At(at - random_.Between(0, 20 * kSecond), "partition")
            .With("replica", "leader")
            .With("for_ms", random_.Between(12, 30) * kSecond);
      } else if (OneIn(3)) {  // while writes have no answer yet
        At(at - random_.Between(0, kSecond), "network")
            .With("replica", "leader")
            .With("max_delay_ms", random_.Between(500, 4000))
            .With("for_ms", 20 * kSecond);
      }
      Settings(at);
      // Once more, perhaps before the former ones are in force.
      if (OneIn(3)) Settings(at + random_.Between(1, 4 * kSecond));
    });
  }

  void Stops() {
    Times(1, 3, [&] {
      const int64_t at = Sometime();
      if (OneIn(3)) {  // too slow for what is to be written before the end
        At(at - random_.Between(1, 4) * kSecond, "network")
            .With("replica", "leader")
            .With("min_delay_ms", random_.Between(0, 3) * kSecond)
            .With("max_delay_ms", random_.Between(3, 7) * kSecond)
            .With("for_ms", 40 * kSecond);
      }
      OnReplica(at, "stop").With("down_ms", random_.Between(10, 10'000));
      if (OneIn(4)) {  // a roll-out does not wait
        At(at + random_.Between(0, 3 * kSecond), "stop")
            .With("replica", "standby")
            .With("down_ms", random_.Between(10, 10'000));
      }
    });
  }

  // All kinds of writes that there are in these worlds.
  const std::string& WriteKind() {
    static const std::vector<std::string> kPods = {"create-pods/binding", "create-pods/eviction",
                                                   "patch-pods/status", "patch-pods",
                                                   "patch-podgroups/status"};
    static const std::vector<std::string> kMachines = {
        "create-noderequests", "patch-noderequests/status", "patch-noderequests",
        "delete-noderequests", "patch-nodes"};
    static const std::vector<std::string> kOthers = {"create-pods", "delete-pods", "create-events"};
    if (plan_.hook && OneIn(2)) return Any(kMachines);
    return OneIn(6) ? Any(kOthers) : Any(kPods);
  }

  void Points() {
    static const std::vector<std::string> kCalls = {"launch", "terminate"};
    Times(2, 6, [&] {
      const bool call = plan_.hook && OneIn(3);
      OnReplica(Sometime(), "crash-at")
          .With("write", call       ? Any(kCalls)
                         : OneIn(8) ? "patch-leases"
                                    : WriteKind())
          .With("when", OneIn(2) ? "before" : "after")
          .With("count", random_.Between(1, 4))
          .With("down_ms", random_.Between(10, 10'000));
    });
  }

  void Answer() {
    static const std::vector<int64_t> kStatus = {404, 409, 410, 422, 429, 500, 503, 504, 0};
    const int64_t status = Any(kStatus);
    Operation& answer = OnReplica(Sometime(), "answer");
    if (!OneIn(5)) answer.With("write", WriteKind());
    answer.With("status", status).With("for_ms", random_.Between(2, 20) * kSecond);
    answer.With("chance", random_.Between(100, 1000));
    // Only these may come though the write was done.
    if ((status >= 500 || status == 0) && OneIn(2)) answer.With("served", 1);
    if (status == 429) answer.With("retry_after_ms", random_.Between(1, 8) * kSecond);
  }

  void Answers() {
    Times(2, 5, [&] { Answer(); });
    if (OneIn(2)) {
      OnReplica(Sometime(), "half-open")
          .With("class", "write")
          .With("for_ms", random_.Between(2, 30) * kSecond);
    }
    if (OneIn(2)) Times(1, 3, [&] { OnReplica(Sometime(), "goaway").With("calls", 1); });
    if (OneIn(2)) {
      static const std::vector<const char*> kRead = {"/api/v1/pods", "/api/v1/nodes",
                                                     "/apis/fairlead.dev/v1alpha1/noderequests",
                                                     "/apis/scheduling.run.ai"};
      const int64_t at = Sometime();
      const char* const replica = OneIn(2) ? "a" : "b";
      At(at, "refuse")
          .With("replica", replica)
          .With("method", "GET")
          .With("prefix", Any(kRead))
          .With("status", OneIn(2) ? 410 : 429)
          .With("for_ms", random_.Between(1, 20) * kSecond);
      At(at, "goaway").With("replica", replica);  // so that they ask
    }
  }

  std::set<std::string> on_;
};

}  // namespace

const std::set<std::string, std::less<>>& ProcessFamilies() {
  static const auto* const kFamilies =
      new std::set<std::string, std::less<>>{"answers", "points", "reload", "stop"};
  return *kFamilies;
}

void AddProcessFaults(uint64_t seed, const std::set<std::string, std::less<>>& families,
                      Plan& plan) {
  if (seed % 8 == 0) return;  // a tame one
  Faults(seed, families, plan).Add();
}

}  // namespace fairlead::sim::world
