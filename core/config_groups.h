// Fields `clusterApi` and `scaleSubresource` of FairleadConfiguration. Internal to core.
// Thread-safety: pure functions.
#pragma once

#include <simdjson.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/configuration.h"
#include "scheduler/model/scale_group.h"

namespace fairlead::core {

absl::Status ReadClusterApi(const simdjson::dom::element& value, const std::string& path,
                            ClusterApiSettings& out);
absl::Status ReadScaleSubresource(const simdjson::dom::element& value, const std::string& path,
                                  std::vector<model::ScaleGroup>& out);

}  // namespace fairlead::core
