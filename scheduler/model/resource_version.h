// Order of resourceVersions. They are opaque, except that two decimal versions may be compared
// (k8s.io/apimachinery/pkg/util/resourceversion). Versions of different kinds of one cluster are
// comparable too, because etcd has one counter for all kinds.
#pragma once

#include "absl/strings/string_view.h"

namespace fairlead::model {

enum class VersionOrder { kOlder, kEqual, kNewer, kUnknown };

// How `a` compares with `b`. kUnknown unless both are decimal numbers without leading zeros. Equal
// strings are always kEqual, except the empty string, which is always kUnknown.
VersionOrder CompareVersions(absl::string_view a, absl::string_view b);

}  // namespace fairlead::model
