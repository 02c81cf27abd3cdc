// Field `provisioningRequest` of FairleadConfiguration. Internal to core.
// Thread-safety: pure functions.
#pragma once

#include <simdjson.h>

#include <string>

#include "absl/status/status.h"
#include "scheduler/model/provisioning_group.h"

namespace fairlead::core {

absl::Status ReadProvisioningRequest(const simdjson::dom::element& value, const std::string& path,
                                     model::ProvisioningSettings& out);

}  // namespace fairlead::core
