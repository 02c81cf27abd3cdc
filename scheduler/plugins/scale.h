// The tiers of scheduler/framework/score_tiers.h under the names that plugins use.
#pragma once

#include "scheduler/framework/score_tiers.h"

namespace fairlead::plugins {

using framework::kPlacementRange;
using framework::kPreferenceStep;
using framework::kResourceTypeStep;
using framework::kSharedGpuStep;

}  // namespace fairlead::plugins
