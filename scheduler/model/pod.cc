#include "scheduler/model/pod.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace fairlead::model {

bool Toleration::Tolerates(const Taint& taint) const {
  if (effect.has_value() && *effect != taint.effect) return false;
  if (!key.empty() && key != taint.key) return false;
  if (exists) return true;
  // Without a key only Exists is valid; Equal then matches nothing.
  return !key.empty() && value == taint.value;
}

bool BringsClaim(const PodSpec& spec, absl::string_view claim) {
  const auto is_it = [&](const std::string& name) {
    return claim.size() == spec.ns.size() + 1 + name.size() && absl::EndsWith(claim, name) &&
           claim[spec.ns.size()] == '/' && absl::StartsWith(claim, spec.ns);
  };
  return std::any_of(spec.resource_claims.begin(), spec.resource_claims.end(), is_it) &&
         std::find(spec.claims_to_join.begin(), spec.claims_to_join.end(), claim) ==
             spec.claims_to_join.end();
}

}  // namespace fairlead::model
