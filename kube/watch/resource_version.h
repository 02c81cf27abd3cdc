// The order of resourceVersions (scheduler/model/resource_version.h) for the watch. Its one purpose
// is to refuse going backwards.
#pragma once

#include "scheduler/model/resource_version.h"

namespace fairlead::kube {

using model::CompareVersions;
using model::VersionOrder;

}  // namespace fairlead::kube
