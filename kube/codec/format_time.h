// Times in the formats of Kubernetes. Thread-safety: pure functions.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace fairlead::kube {

// metav1.Time: "2026-11-21T01:50:39Z", whole seconds.
std::string FormatSeconds(absl::Time time);
// metav1.MicroTime: exactly six fraction digits, or the server rejects it.
std::string FormatMicros(absl::Time time);
// RFC 3339 with as many fraction digits as the time has, for our own kinds.
std::string FormatExact(absl::Time time);

}  // namespace fairlead::kube
