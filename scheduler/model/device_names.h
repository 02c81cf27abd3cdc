// Names of the resources that ResourceClaims make a pod request. A *demand* is a number of devices
// of a class. A *shape* is a claim that numbers do not describe (scheduler/state/ device_shape.h).
// No resource of a container can have such a name.
#pragma once

#include "absl/strings/string_view.h"

namespace fairlead::model {

inline constexpr absl::string_view kDemandPrefix = "deviceclass:";
inline constexpr absl::string_view kShapePrefix = "deviceclaim:";

}  // namespace fairlead::model
