// Field `tracing` of FairleadConfiguration. Internal to core.
// Thread-safety: pure function.
#pragma once

#include <simdjson.h>

#include <string>

#include "absl/status/status.h"
#include "core/configuration.h"

namespace fairlead::core {

absl::Status ReadTracing(const simdjson::dom::element& value, const std::string& path,
                         TracingSettings& tracing);

}  // namespace fairlead::core
