#include "autoscale-hook/provisioning/gathering.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace fairlead::hook {
void Gathering::Update(const DemandChanges& changes, absl::Time now) {
  if (quiet_ <= absl::ZeroDuration()) return;
  for (const Key& key : changes.left) {
    known_.erase(key);
    held_.erase(key);
  }
  for (const DemandChanges::Came& came : changes.came) {
    const Key key(came.is_group, came.workload);
    int64_t& pods = known_[key];
    if (came.complete) {
      held_.erase(key);
    } else if (came.pods > pods) {
      held_.insert(key);
      first_ = std::min(first_, now);
      last_ = now;
    }
    pods = came.pods;
  }
  // A clock that was set back must not hold demand for longer than `max`.
  if (!held_.empty() && (now >= closes_at() || now < first_)) held_.clear();
  if (!held_.empty()) return;
  first_ = absl::InfiniteFuture();
  last_ = absl::InfinitePast();
}

DemandChanges Gathering::ChangesTo(const Demand& demand) const {
  DemandChanges changes;
  if (quiet_ <= absl::ZeroDuration()) return changes;
  absl::flat_hash_set<Key> present;
  for (const DemandItem& item : demand) {
    Key key(item.is_group, item.workload);
    const auto known = known_.find(key);
    const int64_t pods = PodsOf(item.classes);
    if (known == known_.end() || known->second != pods) {
      changes.came.push_back(
          {item.is_group, item.workload, pods, IsCompleteGang(item.is_group, item.classes)});
    }
    present.insert(std::move(key));
  }
  for (const auto& [key, pods] : known_) {
    if (!present.contains(key)) changes.left.push_back(key);
  }
  return changes;
}

absl::Time Gathering::closes_at() const {
  if (first_ == absl::InfiniteFuture()) return absl::InfiniteFuture();
  return std::min(last_ + quiet_, first_ + max_);
}

}  // namespace fairlead::hook
