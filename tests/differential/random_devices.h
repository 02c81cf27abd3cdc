// Random devices on a few nodes, of one node each or of several, and claims that ask for them:
// selectors in CEL, All, firstAvailable, constraints, taints and tolerations, admin access,
// partitions; of pools of several nodes also such as are incomplete, or have a name twice.
//
// What is left out differs by intention (docs/dra.md): a node's pools whose slices are missing,
// more given away than a counter has, admin access to partitions or in several claims of one pod,
// and distinctAttribute over several devices of one request.
//
// Determinism: all of it follows from the seed. Thread-safety: one object per thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/differential/dice.h"

namespace fairlead::differential {

class RandomDevices {
 public:
  explicit RandomDevices(uint64_t seed) : dice_(seed) {}

  // {"nodes": [NAME], "labels": {NAME: {}}, "resourceSlices", "deviceClasses", "resourceClaims":
  // allocated ones, "asks":
  // [[claim]], each list of a pod's}
  nlohmann::json Make();

 private:
  using Json = nlohmann::json;

  // `scope`: the field that says which nodes can use it; null: each device has one of its own.
  void AddPool(const std::string& pool, const Json& scope);
  // One of the fields that admit several nodes or one.
  Json MakeScope();
  Json MakeDevice(const std::string& name);
  Json MakePartition(const std::string& name, int64_t sets, Json device);
  void GiveAway();
  Json MakeClaim(const std::string& name, bool alone);
  Json MakeRequest(bool alone, bool distinct);
  // The fields of `exactly` and of an entry of firstAvailable.
  Json MakeExact(bool alone, bool distinct);
  Json MakeSelectors();
  // A CEL expression that is true or false, or an error.
  std::string Expression(int depth);
  std::string Term();
  std::string Attribute(const std::string& name);

  Dice dice_;
  bool partitions_ = false;
  Json nodes_ = Json::array(), labels_ = Json::object();
  Json slices_ = Json::array(), classes_ = Json::array(), given_ = Json::array();
  std::vector<std::pair<std::string, Json>> devices_;  // pool, device
  std::map<std::string, int64_t> left_;                // "pool/set": of its counter
};

}  // namespace fairlead::differential
