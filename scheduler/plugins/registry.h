// All plugins of this module, by name.
#pragma once

#include "absl/status/status.h"
#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

// AlreadyExists if one of the names is taken.
absl::Status RegisterAll(framework::Registry& registry);

}  // namespace fairlead::plugins
