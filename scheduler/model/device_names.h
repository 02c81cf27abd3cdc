// How the resources are named that ResourceClaims make a pod request: a *demand* is a number of
// devices of a class, a *shape* is a claim that numbers do not describe (scheduler/state/
// device_shape.h). No resource of a container can be named so.
#pragma once

#include "absl/strings/string_view.h"

namespace fairlead::model {

inline constexpr absl::string_view kDemandPrefix = "deviceclass:";
inline constexpr absl::string_view kShapePrefix = "deviceclaim:";

}  // namespace fairlead::model
