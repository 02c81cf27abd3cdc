// What was asked of the world and not answered yet, and what has to be asked again.
//
// An answer "Unavailable" or "DeadlineExceeded" means that nobody knows whether it was done. A
// binding, an eviction or the creation of a NodeRequest is then asked for again, after a pause that
// doubles, until somebody knows: the watch, which shows its effect, or an answer. Once an outcome
// was unknown, a later refusal of the same binding proves nothing: its reason may be our own
// earlier write. Such a binding keeps its room and is asked for until the watch decides.
//
// Ownership: values. Thread-safety: the owner's thread. Complexity: O(log retries) an answer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "scheduler/model/action.h"

namespace fairlead::core {

// The part of an action that its answer needs: a whole one is several times as large, and thousands
// are asked for at once.
struct AskedBinding {
  model::BindPod bind;
  int unknown = 0;  // answers so far that left the outcome open
};
struct AskedEviction {
  model::EvictPod evict;
  int unknown = 0;
};
struct AskedVerdict {
  std::string ns, name;
  bool group = false;
};
struct AskedRequest {
  model::NodeRequest request;
  int unknown = 0;
};
struct AskedStatus {
  model::NodeRequest request;
};
struct AskedProvider {
  std::string request_name;
  bool launch = false;
};
// About shared GPUs (core/gpu_reservations.h).
struct AskedReservation {
  std::string node, group;
};
struct AskedPodDeletion {
  std::string name;
};
struct AskedConfigMap {
  std::string ns, pod, uid;
};
// About ResourceClaims (core/claim_reservations.h).
struct AskedClaim {
  std::string key;        // "ns/name"
  bool reserved = false;  // a ReserveClaim, else a DeallocateClaim
};
using Asked =
    std::variant<AskedBinding, AskedEviction, AskedVerdict, AskedRequest, AskedProvider,
                 AskedReservation, AskedPodDeletion, AskedConfigMap, AskedClaim, AskedStatus>;

class Answers {
 public:
  Answers(absl::Duration retry_initial, absl::Duration retry_max)
      : retry_initial_(retry_initial), retry_max_(retry_max) {}

  // The action is on its way. `unknown`: how often its outcome was left open before.
  void Sent(const model::Action& action, int unknown = 0);
  void Reserve(size_t more) { in_flight_.reserve(in_flight_.size() + more); }
  // What the answer is about; none if no answer to it makes a difference.
  std::optional<Asked> Take(uint64_t action_id);

  using Retry = std::variant<AskedBinding, AskedEviction, AskedRequest>;
  // To be asked again after a pause, now that its outcome was left open once more.
  template <typename T>
  void RetryLater(T again, absl::Time now) {
    const absl::Time at = RetryAt(++again.unknown, now);
    retries_[at].emplace_back(std::move(again));
  }
  // What is due, in the order of its times, then of asking.
  std::vector<Retry> TakeDue(absl::Time now);
  // Infinite future if there is nothing.
  [[nodiscard]] absl::Time next_retry() const;

 private:
  [[nodiscard]] absl::Time RetryAt(int unknown, absl::Time now) const;

  absl::Duration retry_initial_, retry_max_;
  absl::flat_hash_map<uint64_t, Asked> in_flight_;
  std::map<absl::Time, std::vector<Retry>> retries_;
};

}  // namespace fairlead::core
