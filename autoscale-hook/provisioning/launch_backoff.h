// What must not be provisioned for a while because provisioning it failed.
//
// Every failure makes one key back off: Stockout, Timeout and Other the (type, zone, capacity
// type), Quota the (family, capacity type), Config the (pool, type), Auth the provider. Each
// reservation is a capacity type of its own. The
// back-offs of a key are those of base/write_attempts.h. Auth and Config back off for the longest
// one at once, as only an operator can fix them, and are forgotten when the pool is changed.
// Failures during a back-off belong to its wave of launches and do not lengthen it. A success, or a
// quiet time of twice the longest one after the back-off, forgets the key.
//
// Memory only: forgetting it at a restart costs at most one more refused launch per key.
// Thread-safety: none.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "autoscale-hook/provisioning/failure.h"
#include "base/write_attempts.h"

namespace fairlead::hook {

struct LaunchKey {
  std::string provider, pool, type, zone;
  bool spot = false;
  std::string reservation = {};  // empty: none
};

class LaunchBackoff {
 public:
  explicit LaunchBackoff(Backoff pauses) : pauses_(pauses) {}

  // `message`: the provider's message, for people.
  void Failed(const LaunchKey& key, FailureClass failure, absl::Time now,
              const std::string& message = "");
  void Succeeded(const LaunchKey& key);
  // The pool's object changed: its configuration may be fixed.
  void PoolChanged(const std::string& pool, const std::string& provider);
  // The back-offs of another one.
  void Continue(LaunchBackoff&& former) { entries_ = std::move(former.entries_); }

  struct Rest {
    absl::Time until;
    FailureClass failure;
    std::string message;
  };
  // The back-off of the key, if there is one. O(log n).
  [[nodiscard]] std::optional<Rest> Resting(const LaunchKey& key, absl::Time now) const;

 private:
  struct Entry {
    int failures = 0;
    Rest rest;
  };
  const Backoff pauses_;
  std::map<std::string, Entry> entries_;
};

}  // namespace fairlead::hook
