// The terms by which pods of a random cluster choose nodes and each other: affinity and spread,
// required and preferred, over the few labels that its nodes and pods have.
//
// Thread-safety: the dice's.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/differential/dice.h"

namespace fairlead::differential {

using Json = nlohmann::json;

inline const std::vector<std::string> kNamespaces = {"blue", "green", "red"};
inline const std::vector<std::string> kZones = {"a", "b", "c"};
inline const std::vector<std::string> kApps = {"db", "web", "cache"};
inline const std::vector<std::string> kTiers = {"front", "back"};

class RandomTerms {
 public:
  // The dice must outlive it.
  explicit RandomTerms(Dice& dice) : dice_(dice) {}

  // As in spec.affinity: requiredDuringSchedulingIgnoredDuringExecution of nodes, and of pods.
  Json RequiredNodes();
  Json RequiredPods(bool anti);
  // preferredDuringSchedulingIgnoredDuringExecution.
  Json PreferredNodes();
  Json PreferredPods();
  // spec.topologySpreadConstraints, so many of each at most: no two DoNotSchedule or ScheduleAnyway
  // have one topology key, which the API server would refuse.
  Json SpreadConstraints(int hard, int soft);
  // Arguments of PodTopologySpread: of the system, said or not, or a list that may be empty.
  Json SpreadArgs();

 private:
  int64_t Between(int64_t low, int64_t high) { return dice_.Between(low, high); }
  bool OneIn(int64_t n) { return dice_.OneIn(n); }
  std::string Pick(const std::vector<std::string>& values) { return dice_.Pick(values); }

  Json NodeRequirement();
  Json NodeTerm();
  Json LabelSelector();
  Json PodTerm();
  Json NamespaceSelector();
  Json SpreadConstraint(const std::string& when_unsatisfiable);

  Dice& dice_;
};

}  // namespace fairlead::differential
