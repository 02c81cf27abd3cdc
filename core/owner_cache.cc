#include "core/owner_cache.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace fairlead::core {

absl::StatusOr<Json> ObjectOf(const model::ActionResult& answer) {
  if (!answer.status.ok()) return answer.status;
  if (answer.object == nullptr) return absl::InternalError("the answer has no object");
  return Json::Parse(*answer.object);
}

// ---- PacedReads ---------------------------------------------------------------------------------

PacedReads::PacedReads(int64_t per_second, int64_t burst)
    : interval_(absl::Seconds(1) / std::max<int64_t>(1, per_second)),
      allowance_(interval_ * (std::max<int64_t>(1, burst) - 1)) {}

void PacedReads::Set(const std::string& ns, const std::string& key, absl::Time due) {
  Erase(ns, key);
  due_by_key_[ns][key] = due;
  due_in_order_[ns].emplace(due, key);
}

void PacedReads::Erase(const std::string& ns, const std::string& key) {
  const auto rows = due_by_key_.find(ns);
  if (rows == due_by_key_.end()) return;
  const auto found = rows->second.find(key);
  if (found == rows->second.end()) return;
  due_in_order_[ns].erase({found->second, key});
  rows->second.erase(found);
  if (!rows->second.empty()) return;
  due_by_key_.erase(rows);
  due_in_order_.erase(ns);
}

std::optional<std::string> PacedReads::Take(absl::Time now) {
  if (RateDue() > now) return std::nullopt;
  const auto is_due = [now](const auto& entry) { return entry.second.begin()->first <= now; };
  const auto next = due_in_order_.upper_bound(last_);
  auto found = std::find_if(next, due_in_order_.end(), is_due);
  if (found == due_in_order_.end()) {
    found = std::find_if(due_in_order_.begin(), next, is_due);
    if (found == next) return std::nullopt;
  }
  spent_ = std::max(spent_, now) + interval_;
  last_ = found->first;
  const std::string key = found->second.begin()->second;
  Erase(last_, key);
  return key;
}

absl::Time PacedReads::due() const {
  absl::Time first = absl::InfiniteFuture();
  for (const auto& [ns, rows] : due_in_order_) first = std::min(first, rows.begin()->first);
  return first == absl::InfiniteFuture() ? first : std::max(first, RateDue());
}

// ---- OwnerCache ---------------------------------------------------------------------------------

OwnerCache::OwnerCache(int64_t reads_per_second, Backoff backoff)
    : backoff_(backoff),
      paced_{PacedReads(reads_per_second, reads_per_second),
             PacedReads(std::max<int64_t>(1, reads_per_second / 2), 1),
             PacedReads(std::max<int64_t>(1, reads_per_second / 10), 1)} {}

std::string OwnerCache::KeyOf(const grouping::ObjectName& name) {
  return absl::StrCat(name.Text(), " ", name.uid);
}

absl::StatusOr<const Json*> OwnerCache::Find(const std::string& key, absl::Time not_before) const {
  const auto found = rows_.find(key);
  if (found == rows_.end()) return nullptr;
  const Row& row = found->second;
  // What was read before such a failure is the best there is, if it is recent enough.
  if (!row.problem.ok() && !absl::IsUnavailable(row.problem)) return row.problem;
  if (!row.object.has_value() || row.read_at < not_before) return nullptr;
  return &*row.object;
}

absl::Status OwnerCache::ProblemOf(const grouping::ObjectName& name) const {
  const auto found = rows_.find(KeyOf(name));
  return found == rows_.end() ? absl::OkStatus() : found->second.problem;
}

void OwnerCache::Unschedule(const std::string& key, const Row& row) {
  ReadsOf(row.reason).Erase(row.name.ns, key);
}

void OwnerCache::Schedule(const std::string& key, Row& row, absl::Time due, Reason reason) {
  Unschedule(key, row);
  row.due = due;
  row.reason = reason;
  ReadsOf(reason).Set(row.name.ns, key, due);
}

void OwnerCache::Want(const grouping::ObjectName& name, const User& user, Reason reason,
                      absl::Time now) {
  const std::string key = KeyOf(name);
  const auto [place, made] = rows_.try_emplace(key);
  Row& row = place->second;
  if (made) row.name = name;
  row.users.insert(user);
  if (row.in_flight) {
    // The answer may be older than what the user asks for.
    row.again = true;
    return;
  }
  // Failures keep their pauses.
  if (!made && row.failures > 0) return;
  const absl::Time due = std::max(now, row.read_at + kRecent);
  if (made || row.due > due || reason < row.reason) Schedule(key, row, due, reason);
}

void OwnerCache::Depend(const User& user, Keys& former, Keys objects) {
  for (const std::string& key : former) {
    if (objects.contains(key)) continue;
    if (const auto found = rows_.find(key); found != rows_.end()) found->second.users.erase(user);
    DropIfUnused(key);
  }
  for (const std::string& key : objects) {
    if (const auto found = rows_.find(key); found != rows_.end()) found->second.users.insert(user);
  }
  former = std::move(objects);
}

void OwnerCache::DropIfUnused(const std::string& key) {
  const auto found = rows_.find(key);
  if (found == rows_.end() || !found->second.users.empty() || found->second.in_flight) return;
  Unschedule(key, found->second);
  rows_.erase(found);
}

void OwnerCache::ReadSoon(const Keys& objects) {
  for (const std::string& key : objects) {
    const auto found = rows_.find(key);
    if (found == rows_.end()) continue;
    Row& row = found->second;
    if (row.in_flight || row.failures > 0 || row.incomplete_at == row.read_at) continue;
    row.incomplete_at = row.read_at;
    Schedule(key, row, row.read_at + kIncomplete.Pause(++row.incomplete), Reason::kAwaited);
  }
}

void OwnerCache::ReadNow(const Keys& objects, absl::Time now) {
  for (const std::string& key : objects) {
    const auto found = rows_.find(key);
    if (found == rows_.end()) continue;
    Row& row = found->second;
    if (row.in_flight) {
      row.again = true;
    } else if (row.failures == 0 && row.reason != Reason::kAwaited) {
      Schedule(key, row, std::max(now, row.read_at + kRecent), Reason::kPodGone);
    }
  }
}

// ---- reads --------------------------------------------------------------------------------------

void OwnerCache::Send(Row& row, absl::Time now, std::vector<model::Action>& actions) {
  row.due = absl::InfiniteFuture();
  row.in_flight = true;
  row.again = false;
  row.sent_for = row.reason;
  row.sent_at = now;
  ++reading_;
  const grouping::ObjectName& name = row.name;
  actions.push_back(
      {0, model::ReadObject{name.api_version, name.kind, name.ns, name.name, name.uid}});
}

absl::Time OwnerCache::Step(absl::Time now, std::vector<model::Action>& actions) {
  for (PacedReads& reads : paced_) {
    while (reading_ < kReads) {
      const std::optional<std::string> key = reads.Take(now);
      if (!key.has_value()) break;
      Send(rows_.at(*key), now, actions);
    }
  }
  // An answer wakes the loop.
  if (reading_ >= kReads) return absl::InfiniteFuture();
  return std::min({paced_[0].due(), paced_[1].due(), paced_[2].due()});
}

bool OwnerCache::Take(Row& row, absl::StatusOr<Json> read) {
  if (read.ok() && !row.name.uid.empty()) {
    const std::string uid = read->TextAt({"metadata", "uid"});
    if (uid != row.name.uid) {
      read = absl::NotFoundError(
          absl::StrCat(row.name.Text(), " is gone: another object has its name, with another uid"));
    }
  }
  const absl::Status former = std::exchange(row.problem, read.status());
  if (!read.ok()) {
    ++row.failures;
    if (!absl::IsUnavailable(row.problem)) row.object.reset();
    return row.problem != former;
  }
  row.failures = 0;
  const std::string version = read->TextAt({"metadata", "resourceVersion"});
  if (former.ok() && row.object.has_value() && !version.empty() &&
      row.object->TextAt({"metadata", "resourceVersion"}) == version) {
    return false;
  }
  row.incomplete = 0;
  row.object = *std::move(read);
  return true;
}

std::vector<OwnerCache::User> OwnerCache::Answered(const model::ReadObject& read,
                                                   const model::ActionResult& result,
                                                   absl::Time now) {
  const std::string key = KeyOf({read.api_version, read.kind, read.ns, read.name, read.uid});
  const auto found = rows_.find(key);
  if (found == rows_.end() || !found->second.in_flight) return {};
  Row& row = found->second;
  row.in_flight = false;
  --reading_;
  if (row.users.empty()) {
    DropIfUnused(key);
    return {};
  }
  const bool changed = Take(row, ObjectOf(result));
  if (row.problem.ok()) row.read_at = row.sent_at;
  std::vector<User> told;
  // Some may have waited for nothing but a newer answer.
  if (changed || row.sent_for == Reason::kAwaited) told.assign(row.users.begin(), row.users.end());
  if (row.failures > 0) {
    Schedule(key, row, now + backoff_.Pause(row.failures), Reason::kAwaited);
  } else if (row.again) {
    Schedule(key, row, row.read_at + kRecent, Reason::kAwaited);
  } else {
    Schedule(key, row, now + kRefresh, Reason::kRepeated);
  }
  return told;
}

}  // namespace fairlead::core
