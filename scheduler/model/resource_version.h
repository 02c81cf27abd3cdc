// Order of resourceVersions. They are opaque, except that two decimal ones may be compared
// (k8s.io/apimachinery/pkg/util/resourceversion): those of one kind always, and those of different
// kinds of one cluster, because etcd has one counter for all of them.
#pragma once

#include "absl/strings/string_view.h"

namespace fairlead::model {

enum class VersionOrder { kOlder, kEqual, kNewer, kUnknown };

// How `a` compares with `b`. kUnknown unless both are decimal numbers without leading zeros. Equal
// strings are always kEqual, except the empty string, which says nothing.
VersionOrder CompareVersions(absl::string_view a, absl::string_view b);

}  // namespace fairlead::model
