// Field `grouping` of FairleadConfiguration. Internal to core. Thread-safety: a pure function.
#pragma once

#include <simdjson.h>

#include <string>

#include "absl/status/status.h"
#include "core/options.h"

namespace fairlead::core {

absl::Status ReadGrouping(const simdjson::dom::element& value, const std::string& path,
                          GroupingOptions& out);

}  // namespace fairlead::core
