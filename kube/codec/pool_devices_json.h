// spec.devices of a NodePool (crds/nodepool.yaml), from JSON. Thread-safety: pure functions.
#pragma once

#include <vector>

#include "kube/codec/json_codec.h"
#include "scheduler/model/pool_devices.h"

namespace fairlead::kube::json {

void ReadPoolDevices(JsonReader& reader, JsonValue value, const FieldPath& path,
                     std::vector<model::PoolDevices>& out);

}  // namespace fairlead::kube::json
