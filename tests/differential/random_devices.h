// Random devices on a few nodes, and claims that ask for them: selectors in CEL, All,
// firstAvailable, constraints, taints and tolerations, admin access, partitions.
//
// What is left out differs by intention (docs/dra.md): pools whose slices are missing, more given
// away than a counter has, admin access to partitions or in several claims of one pod, and
// distinctAttribute over several devices of one request.
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

  // {"nodes": [NAME], "resourceSlices", "deviceClasses", "resourceClaims": allocated ones, "asks":
  // [[claim]], each list of a pod's}
  nlohmann::json Make();

 private:
  using Json = nlohmann::json;

  void AddPool(const std::string& node);
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
  Json slices_ = Json::array(), classes_ = Json::array(), given_ = Json::array();
  std::vector<std::pair<std::string, Json>> devices_;  // node, device
  std::map<std::string, int64_t> left_;                // "node/set": of its counter
};

}  // namespace fairlead::differential
