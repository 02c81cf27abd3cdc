// Nodes that are granted to guests: pods of ours that another scheduler binds
// (StateOptions::guest_schedulers). A grant stands in the place of the write of a binding: the pod
// holds its node from the decision on, the other scheduler is told the node when it asks, and the
// watch shows the pod there.
//
//   decided ──Add──▶ granted ──End──▶ the watch shows it on a node, or it is gone
//                       └──TakeExpired──▶ it waits again, as after a refused binding
//
// A scheduler that has been told the node may be binding the pod. So the time to do it begins anew
// when it is told, kLongest times at most: one that asks again and again is kept from it by
// something that Fairlead does not know.
//
// Of a gang no pod is to be bound before all are *reserved*: their scheduler has found no fault
// with their nodes, and asks whether it may bind them. It says so again and again, and if it stops,
// the pod is reserved no longer.
//
// Everything is decided anew after a restart. Ownership: values. Thread-safety: the owner's thread.
// Complexity: O(1), TakeExpired O(log) per grant. Determinism: expired ones in the order of time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/reconcile/due_times.h"

namespace fairlead::core {

struct GuestGrant {
  std::string ns, name, uid;  // of the pod
  std::string node;
};

class GuestGrants {
 public:
  static constexpr int64_t kLongest = 3;  // bind timeouts
  static constexpr absl::Duration kReservedFor = absl::Seconds(3);

  explicit GuestGrants(absl::Duration bind_timeout) : bind_timeout_(bind_timeout) {}

  // `id`: of the binding. A former grant of the pod ends.
  void Add(uint64_t id, GuestGrant grant, absl::Time now);
  // The binding that the pod was granted; none: it has no grant.
  [[nodiscard]] std::optional<uint64_t> IdOf(absl::string_view uid) const;
  // The node that the pod was granted; null: none.
  [[nodiscard]] const std::string* NodeOf(absl::string_view uid) const;
  // Its scheduler is told that it may bind the pod there.
  void Told(absl::string_view uid, absl::Time now);
  // Its scheduler has reserved the node for it.
  void Reserved(absl::string_view uid, absl::Time now);
  [[nodiscard]] bool IsReserved(absl::string_view uid, absl::Time now) const;
  // The binding whose grant ends; none: the pod has no grant.
  std::optional<uint64_t> End(absl::string_view uid);

  struct Expired {
    uint64_t id = 0;
    GuestGrant grant;
    absl::Duration held;
  };
  std::vector<Expired> TakeExpired(absl::Time now);
  [[nodiscard]] absl::Time wake_at() const { return due_.next(); }
  [[nodiscard]] size_t size() const { return grants_.size(); }
  // What was added since the last call, in order. Some may have ended since.
  std::vector<GuestGrant> TakeNew() { return std::exchange(new_, {}); }
  // All that have not ended, in the order of namespaces and names. O(log) each.
  [[nodiscard]] std::vector<GuestGrant> All() const;
  // The bindings of all, in their order.
  [[nodiscard]] std::vector<uint64_t> Ids() const;
  [[nodiscard]] absl::Duration bind_timeout() const { return bind_timeout_; }

 private:
  struct Row {
    uint64_t id = 0;
    GuestGrant grant;
    absl::Time since, until;
    absl::Time reserved_until = absl::InfinitePast();
  };
  const absl::Duration bind_timeout_;
  absl::flat_hash_map<std::string, Row> grants_;  // by the pod's uid
  DueTimes<std::string> due_;                     // uids; some have ended, or have more time
  std::vector<GuestGrant> new_;
};

}  // namespace fairlead::core
