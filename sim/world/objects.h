// Objects as actors of the world create them. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "sim/world/facts.h"
#include "sim/world/json.h"
#include "sim/world/plan.h"

namespace fairlead::sim::world {

// Fields that are read of an operation (all optional but `name`):
//   node    name cpu memory gpu zone       amounts in milli-CPU, bytes, devices
//   queue   name parent priority gpu_quota gpu_limit cpu_limit   devices and milli-CPU; absent: -1
//   group   name ns queue min class sub_groups sub_min        PodGroup
//   pod     ns queue group class scheduler cpu memory gpu fraction odd run note
//           class_in: label (else the spec) names the class
//           names: of so many resources that no node has, it asks for one each
//           cpu_text memory_text: as they are written
//           app select (KEY:VALUE) zones (by commas) near apart (values of app) topology (a key)
//           spread (a key)
//           claim and what belongs to it: device_objects.h; volume: volume_objects.h
//           `odd`: selector | namespace-affinity | volume | gated; `run`: seconds till it succeeds
//   all of them   shard: the value of kShardLabel
Json MakeNode(const Operation& fields);
Json MakeQueue(const Operation& fields);
Json MakeGroup(const Operation& fields);
// What label "sim/job" has for a job: its name, or the end of one that is too long for a label.
std::string JobLabel(const std::string& name);
Json MakePod(const Operation& fields, const std::string& name);
// As a kubelet shows a static pod: bound from the beginning.
Json MakeStaticPod(const std::string& name, const std::string& node);
Json MakeNamespace(const std::string& name);
Json MakePriorityClass(const std::string& name, int64_t value);

// Sets Ready and its reason.
void SetNodeReady(Json& node, bool ready);
// Replaces the condition of that type.
void SetCondition(Json& object, const std::string& type, bool value, const std::string& reason);

}  // namespace fairlead::sim::world
