// Field `usage` of FairleadConfiguration. Internal to core.
// Thread-safety: pure function.
#pragma once

#include <simdjson.h>

#include <string>

#include "absl/status/status.h"
#include "core/configuration.h"
#include "scheduler/engine/engine.h"

namespace fairlead::core {

absl::Status ReadUsage(const simdjson::dom::element& value, const std::string& path,
                       engine::EngineOptions& engine, UsageDatabaseSettings& database);

}  // namespace fairlead::core
