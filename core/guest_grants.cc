#include "core/guest_grants.h"

namespace fairlead::core {

void GuestGrants::Add(uint64_t id, const std::string& uid, std::string node, absl::Time now) {
  const absl::Time until = now + bind_timeout_;
  grants_.insert_or_assign(uid, Grant{id, std::move(node), until});
  due_.Add(until, uid);
}

const std::string* GuestGrants::Ask(absl::string_view uid, absl::Time now) {
  const auto grant = grants_.find(uid);
  if (grant == grants_.end()) return nullptr;
  grant->second.until = now + bind_timeout_;
  return &grant->second.node;
}

std::optional<uint64_t> GuestGrants::End(absl::string_view uid) {
  const auto grant = grants_.find(uid);
  if (grant == grants_.end()) return std::nullopt;
  const uint64_t id = grant->second.id;
  grants_.erase(grant);
  return id;
}

std::vector<GuestGrants::Expired> GuestGrants::TakeExpired(absl::Time now) {
  std::vector<Expired> expired;
  for (const std::string& uid : due_.TakeDue(now)) {
    const auto grant = grants_.find(uid);
    if (grant == grants_.end()) continue;
    if (grant->second.until > now) {
      due_.Add(grant->second.until, uid);
      continue;
    }
    expired.push_back({grant->second.id, std::move(grant->second.node)});
    grants_.erase(grant);
  }
  return expired;
}

}  // namespace fairlead::core
