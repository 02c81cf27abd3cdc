// How long pods whose binding failed are left alone: longer after each failure.
//
// Ownership: the engine's; persists over cycles, not over restarts. Thread-safety: the owner's
// thread. Complexity: O(1), but NextEnd() and Trim() O(pods in it). Determinism: nothing depends on
// the order of the table.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"

namespace fairlead::engine {

class BindBackoff {
 public:
  // The delay after the first failure, and the longest one.
  BindBackoff(absl::Duration initial, absl::Duration max) : delay_{initial, max} {}

  // The binding of the pod failed: the delay starts, twice as long as the last one.
  void OnFailed(const std::string& uid, absl::Time now);
  // The pod is left alone until then at least; no failure.
  void Hold(const std::string& uid, absl::Time until);

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  // The pod is to be left alone.
  [[nodiscard]] bool Holds(const std::string& uid, absl::Time now) const;
  // The earliest end of a delay that goes on; infinite future if there is none.
  [[nodiscard]] absl::Time NextEnd(absl::Time now) const;
  // Forgets delays that ended twice the longest one ago: another failure is of another streak. A
  // pod may wait that long for the victims of its next attempt; if the streak ended sooner, pods
  // would be evicted again and again, at the pace of the first delay, for a binding that fails.
  void Trim(absl::Time now);

 private:
  struct Entry {
    absl::Time until = absl::UnixEpoch();
    int64_t failures = 0;  // of the streak; none if the pod is only held
  };
  const Backoff delay_;
  absl::flat_hash_map<std::string, Entry> entries_;  // by the pod's uid
};

}  // namespace fairlead::engine
