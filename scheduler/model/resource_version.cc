#include "scheduler/model/resource_version.h"

namespace fairlead::model {
namespace {

bool IsDecimal(absl::string_view s) {
  if (s.empty() || (s[0] == '0' && s.size() > 1)) return false;
  for (char c : s) {
    if (c < '0' || c > '9') return false;
  }
  return true;
}

}  // namespace

VersionOrder CompareVersions(absl::string_view a, absl::string_view b) {
  if (a == b) return a.empty() ? VersionOrder::kUnknown : VersionOrder::kEqual;
  if (!IsDecimal(a) || !IsDecimal(b)) return VersionOrder::kUnknown;
  if (a.size() != b.size()) {
    return a.size() < b.size() ? VersionOrder::kOlder : VersionOrder::kNewer;
  }
  return a < b ? VersionOrder::kOlder : VersionOrder::kNewer;
}

}  // namespace fairlead::model
