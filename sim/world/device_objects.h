// Objects of dynamic resource allocation as actors of the world create them. One driver
// (kDeviceDriver) has devices with two attributes: `model`, a text, and `lot`, the number of the
// device on its node.
//
// Fields that are read of an operation:
//   device-class  name, model: its devices are of that model alone, or of any but `but`
//   pod           claim: own (made for this pod) | shared (one for all pods of the job) | both
//                 claim_queue: label of the shared claim; devices: how many each claim asks for;
//                 device_class; device_model device_lot: a number, or `each`: selects devices of
//                 another lot. A number that no device has makes a selector that is distinct and
//                 matches the same devices; `each` is another such number for each pod
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/world/device_facts.h"
#include "sim/world/json.h"
#include "sim/world/plan.h"

namespace fairlead::sim::world {

inline constexpr char kDeviceDriver[] = "sim.example.com";

Json MakeDeviceClass(const Operation& fields);
// The pool has the node's name. `models`: device i is of model i modulo their number.
Json MakeSlice(const std::string& node, const std::string& node_uid, int64_t generation,
               int64_t count, const std::vector<std::string>& models);
// Adds what the fields say of claims to a pod of that name.
void AddClaims(Json& pod, const Operation& fields, const std::string& name);
Json MakeClaim(const std::string& ns, const std::string& name, Json spec);
// The claim that shared claims of the job are.
std::string SharedClaimName(const std::string& job);
// How names of claims begin that are made for the pod.
std::string GeneratedClaimPrefix(const std::string& pod);

}  // namespace fairlead::sim::world
