// Order of resourceVersions. They are opaque, except that two decimal ones of the same resource
// type may be compared (k8s.io/apimachinery/pkg/util/resourceversion). We compare for one purpose
// only: to refuse going backwards.
#pragma once

#include "absl/strings/string_view.h"

namespace fairlead::kube {

enum class VersionOrder { kOlder, kEqual, kNewer, kUnknown };

// How `a` stands to `b`. kUnknown unless both are decimal numbers without leading zeros; equal
// strings are always kEqual, the empty string to itself excepted (no version says nothing).
VersionOrder CompareVersions(absl::string_view a, absl::string_view b);

}  // namespace fairlead::kube
