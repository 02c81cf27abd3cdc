#include "tests/differential/random_preemption.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/differential/random_terms.h"

namespace fairlead::differential {
namespace {

Json Budget(Dice& dice, const std::string& ns, const std::string& app) {
  return {{"apiVersion", "policy/v1"},
          {"kind", "PodDisruptionBudget"},
          {"metadata", {{"name", app}, {"namespace", ns}, {"uid", absl::StrCat(ns, "-", app)}}},
          {"spec", {{"minAvailable", 1}, {"selector", {{"matchLabels", {{"app", app}}}}}}},
          {"status",
           {{"disruptionsAllowed", dice.Between(0, 2)},
            {"currentHealthy", 4},
            {"desiredHealthy", 1},
            {"expectedPods", 4}}}};
}

}  // namespace

void AddPreemption(Dice& dice, Json& world) {
  world["preempt"] = true;
  // A permutation of the moments.
  const int64_t moments = 997;
  const int64_t stride = dice.Between(1, moments - 1);
  int64_t number = 0;
  for (Json& pod : world["pods"]) {
    pod["metadata"].erase("deletionTimestamp");
    pod["metadata"].erase("deletionGracePeriodSeconds");
    pod["spec"]["priority"] = dice.Between(-1, 3) * 100;
    const absl::Time start = absl::FromUnixSeconds(1'700'000'000 + ++number * stride % moments);
    pod["status"] = {
        {"phase", "Running"},
        {"startTime", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", start, absl::UTCTimeZone())},
        {"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}};
  }
  for (Json& pod : world["ask"]) pod["spec"]["priority"] = dice.Between(0, 4) * 100;
  world["podDisruptionBudgets"] = Json::array();
  for (const std::string& ns : kNamespaces) {
    for (const std::string& app : kApps) {
      if (!dice.OneIn(3)) world["podDisruptionBudgets"].push_back(Budget(dice, ns, app));
    }
  }
}

}  // namespace fairlead::differential
