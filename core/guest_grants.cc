#include "core/guest_grants.h"

#include <algorithm>
#include <tuple>

namespace fairlead::core {

void GuestGrants::Add(uint64_t id, GuestGrant grant, absl::Time now) {
  const absl::Time until = now + bind_timeout_;
  due_.Add(until, grant.uid);
  new_.push_back(grant);
  const std::string uid = grant.uid;
  grants_.insert_or_assign(uid, Row{id, std::move(grant), now, until, absl::InfinitePast()});
}

std::optional<uint64_t> GuestGrants::IdOf(absl::string_view uid) const {
  const auto row = grants_.find(uid);
  return row == grants_.end() ? std::nullopt : std::optional<uint64_t>(row->second.id);
}

const std::string* GuestGrants::NodeOf(absl::string_view uid) const {
  const auto row = grants_.find(uid);
  return row == grants_.end() ? nullptr : &row->second.grant.node;
}

void GuestGrants::Told(absl::string_view uid, absl::Time now) {
  const auto row = grants_.find(uid);
  if (row == grants_.end()) return;
  row->second.until = std::min(now + bind_timeout_, row->second.since + kLongest * bind_timeout_);
}

void GuestGrants::Reserved(absl::string_view uid, absl::Time now) {
  const auto row = grants_.find(uid);
  if (row != grants_.end()) row->second.reserved_until = now + kReservedFor;
}

bool GuestGrants::IsReserved(absl::string_view uid, absl::Time now) const {
  const auto row = grants_.find(uid);
  return row != grants_.end() && now <= row->second.reserved_until;
}

std::optional<uint64_t> GuestGrants::End(absl::string_view uid) {
  const auto row = grants_.find(uid);
  if (row == grants_.end()) return std::nullopt;
  const uint64_t id = row->second.id;
  grants_.erase(row);
  return id;
}

std::vector<GuestGrants::Expired> GuestGrants::TakeExpired(absl::Time now) {
  std::vector<Expired> expired;
  for (const std::string& uid : due_.TakeDue(now)) {
    const auto row = grants_.find(uid);
    if (row == grants_.end()) continue;
    if (row->second.until > now) {
      due_.Add(row->second.until, uid);
      continue;
    }
    expired.push_back(
        {row->second.id, std::move(row->second.grant), row->second.until - row->second.since});
    grants_.erase(row);
  }
  return expired;
}

std::vector<uint64_t> GuestGrants::Ids() const {
  std::vector<uint64_t> ids;
  ids.reserve(grants_.size());
  for (const auto& [uid, row] : grants_) ids.push_back(row.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<GuestGrant> GuestGrants::All() const {
  std::vector<GuestGrant> all;
  all.reserve(grants_.size());
  for (const auto& [uid, row] : grants_) all.push_back(row.grant);
  std::sort(all.begin(), all.end(), [](const GuestGrant& a, const GuestGrant& b) {
    return std::tie(a.ns, a.name) < std::tie(b.ns, b.name);
  });
  return all;
}

}  // namespace fairlead::core
