// What pods belong to in a random cluster: Services that select them, and the controllers that own
// them. Default constraints of topology spread count by the selectors of these.
//
// Most controllers select their pods; some select others, or by no label, as long as the API server
// would have them so or kube-scheduler bears it. Thread-safety: the dice's.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/differential/dice.h"

namespace fairlead::differential {

using Json = nlohmann::json;

class RandomOwners {
 public:
  // The dice must outlive it.
  RandomOwners(Dice& dice, const std::vector<std::string>& namespaces);

  // metadata.ownerReferences: of a controller that there is, one that is gone, one of another kind,
  // or of an owner that does not control the pod.
  void AddOwner(Json& pod);
  // world["services"], ["replicationControllers"], ["replicaSets"], ["statefulSets"].
  void MoveInto(Json& world);

 private:
  Json Labels();
  Json Service(int number, const std::string& ns);
  Json Controller(int number, const std::string& ns);

  Dice& dice_;
  Json services_ = Json::array();
  Json controllers_ = Json::array();
};

}  // namespace fairlead::differential
