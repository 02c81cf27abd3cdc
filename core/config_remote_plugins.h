// Field `remotePlugins` of FairleadConfiguration. Internal to core.
// Thread-safety: pure function.
#pragma once

#include <simdjson.h>

#include <string>

#include "absl/status/status.h"
#include "core/options.h"

namespace fairlead::core {

// Adds them to the options' registry, so that profiles may name them.
absl::Status ReadRemotePlugins(const simdjson::dom::element& value, const std::string& path,
                               Options& options);

}  // namespace fairlead::core
