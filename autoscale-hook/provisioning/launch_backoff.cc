#include "autoscale-hook/provisioning/launch_backoff.h"

#include "absl/strings/str_cat.h"
#include "scheduler/model/instance_facts.h"

namespace fairlead::hook {
namespace {

std::string Name(const LaunchKey& key, FailureClass failure) {
  const std::string capacity = !key.reservation.empty()
                                   ? absl::StrCat("reserved/", key.reservation)
                                   : std::string(key.spot ? "spot" : "on-demand");
  switch (failure) {
    case FailureClass::kQuota:
      // A family is the unit of an account's quotas.
      return absl::StrCat("quota/", key.provider, "/", model::InstanceFamily(key.type), "/",
                          capacity);
    case FailureClass::kAuth:
      return absl::StrCat("auth/", key.provider);
    case FailureClass::kConfig:
      return absl::StrCat("config/", key.pool, "/", key.type);
    case FailureClass::kStockout:
    case FailureClass::kTimeout:
    case FailureClass::kOther:
      break;
  }
  return absl::StrCat("stock/", key.provider, "/", key.type, "/", key.zone, "/", capacity);
}

}  // namespace

void LaunchBackoff::Failed(const LaunchKey& key, FailureClass failure, absl::Time now,
                           const std::string& message) {
  Entry& entry = entries_[Name(key, failure)];
  if (entry.failures > 0 && now < entry.rest.until) return;
  if (entry.failures > 0 && now >= entry.rest.until + 2 * pauses_.max) entry.failures = 0;
  ++entry.failures;
  const bool operators = failure == FailureClass::kAuth || failure == FailureClass::kConfig;
  entry.rest = {now + (operators ? pauses_.max : pauses_.Pause(entry.failures)), failure, message};
}

void LaunchBackoff::Succeeded(const LaunchKey& key) {
  for (FailureClass failure : {FailureClass::kStockout, FailureClass::kQuota, FailureClass::kAuth,
                               FailureClass::kConfig}) {
    entries_.erase(Name(key, failure));
  }
}

void LaunchBackoff::PoolChanged(const std::string& pool, const std::string& provider) {
  entries_.erase(absl::StrCat("auth/", provider));
  const std::string prefix = absl::StrCat("config/", pool, "/");
  auto it = entries_.lower_bound(prefix);
  while (it != entries_.end() && it->first.compare(0, prefix.size(), prefix) == 0) {
    it = entries_.erase(it);
  }
}

std::optional<LaunchBackoff::Rest> LaunchBackoff::Resting(const LaunchKey& key,
                                                          absl::Time now) const {
  std::optional<Rest> longest;
  for (FailureClass failure : {FailureClass::kStockout, FailureClass::kQuota, FailureClass::kAuth,
                               FailureClass::kConfig}) {
    auto it = entries_.find(Name(key, failure));
    if (it == entries_.end() || now >= it->second.rest.until) continue;
    if (!longest.has_value() || it->second.rest.until > longest->until) longest = it->second.rest;
  }
  return longest;
}

}  // namespace fairlead::hook
