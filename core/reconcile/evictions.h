// From the decision to evict to the request: which requests go out when, and when a pod whose
// eviction was refused may be asked for again.
//
// A decision is a *set* of victims that were chosen together for one workload. From the decision on
// all of them count as leaving (kReleasing); the requests follow at a pace:
//   - At most max_in_flight are unanswered, and no more than per_second a second are sent, `burst`
//     of them at once. (The adapter has a window of its own, that of the API server's patience;
//     this pace is the cluster's: what kubelets, controllers and storage can stand.)
//   - Sets go in the order of the decisions. Pods of one workload in a set go together: what is
//     left of a gang is worth nothing. A gang that is larger than what is free goes as soon as one
//     place is, and the pace makes up for it afterwards.
//   - Victims for which a PodDisruptionBudget has nothing left go first, and the rest of their set
//     waits for the answers: a victim should not go in vain.
//   - A set is checked again right before any of it is sent (Prune): what it was chosen for may
//   have
//     been bound elsewhere, or may be gone. Then the victims that were not sent run on.
//
// What becomes of an answer:
//   OK, 404      it goes; the watch shows it.
//   unknown      (no connection, 5xx) asked again, after a pause; it stays kReleasing.
//   a refusal    (429 of a budget, 403, 409, 422, not sent at all): nothing was done. The pod is
//                taken back, what has not gone out of its set too, and the next cycle decides
//                afresh with what is already leaving. The pod is left alone for backoff_initial,
//                then twice as long each time, up to backoff_max; and one whose budget we know
//                until that budget changes (engine/victim_budgets.h). The series ends when it has
//                not been refused for backoff_max after the last pause.
//
// Ownership: values. Thread-safety: the owner's thread. No clock: times come in. Complexity: O(log
// n) a victim. Determinism: first in, first out.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "scheduler/model/action.h"
#include "scheduler/model/resources.h"
#include "scheduler/state/ids.h"

namespace fairlead::core {

struct EvictionOptions {
  int64_t max_in_flight = 256;  // kUnlimited: any number
  int64_t per_second = 0;       // 0: any number
  int64_t burst = 0;            // 0: per_second
  absl::Duration backoff_initial = absl::Seconds(1);
  absl::Duration backoff_max = absl::Minutes(1);
};

class Evictions {
 public:
  struct Victim {
    model::EvictPod evict;
    uint64_t gang = 0;            // equal for pods of one workload
    bool may_be_refused = false;  // a budget has nothing left for it
    std::string for_workload;     // "namespace/name"
    state::NodeId node = state::kNoId;
    // Evicted because of its own gang, not for another workload's room.
    bool for_itself = false;
  };
  // Why a set was chosen.
  struct Purpose {
    std::string for_workload;
    bool for_itself = false;
    std::vector<state::NodeId> nodes;  // of the victims
  };

  explicit Evictions(const EvictionOptions& options) : options_(options) {}

  // One decision. Victims of a gang stand together.
  void Add(std::vector<Victim> set);
  // From now on the sets that were added so far are subject to Prune: a cycle has run since.
  void Settle();
  // Drops what was not sent of sets that serve their purpose no longer; returns those victims,
  // which are to be taken back.
  std::vector<model::EvictPod> Prune(const std::function<bool(const Purpose&)>& serves);
  // Of a request that was sent, until its answer is known; null: not known.
  [[nodiscard]] const Purpose* PurposeOf(absl::string_view uid) const;
  // It is not asked for any more.
  void Forget(absl::string_view uid);
  // What may go out now; it counts as in flight. Victims of whom `wanted` says no are dropped.
  std::vector<model::EvictPod> TakeDue(absl::Time now,
                                       const std::function<bool(const Victim&)>& wanted);
  // It was sent by somebody else's decision: a repetition after an unknown outcome.
  void Sent(const std::string& uid) { in_flight_[uid]; }
  // An answer came that leaves the outcome open: its place is free.
  void Unknown(absl::string_view uid);
  // It goes.
  void Accepted(absl::string_view uid);
  // It stays. Answers who else of the set is to be taken back, in order; `until`: when the pod may
  // be asked for again.
  std::vector<model::EvictPod> Refused(absl::string_view uid, absl::Time now, absl::Time& until);

  // When TakeDue has something although no answer came; infinite future if never.
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }
  [[nodiscard]] size_t in_flight() const { return in_flight_.size(); }
  // Decided and not sent.
  [[nodiscard]] size_t queued() const { return queued_; }

 private:
  struct Set {
    std::deque<Victim> first;  // may be refused
    std::deque<Victim> rest;
    size_t unanswered = 0;  // of `first`
    bool fresh = true;      // decided in this cycle
    std::shared_ptr<Purpose> purpose;
  };
  struct Refusal {
    absl::Time until;
    absl::Duration pause;
  };
  static constexpr uint64_t kNoSet = 0;

  // Sends the gang at the front of `line`. False if the pace does not allow it.
  bool SendGang(uint64_t id, Set& set, std::deque<Victim>& line, absl::Time now,
                const std::function<bool(const Victim&)>& wanted,
                std::vector<model::EvictPod>& out);
  // Drops what was not sent of it.
  void Spare(Set& set, std::vector<model::EvictPod>& spared);
  [[nodiscard]] bool MayGo(absl::Time now);
  void TakePlace(absl::Time now);
  // The set of a request in flight whose answer the rest waits for, and its place is free.
  uint64_t Release(absl::string_view uid);

  const EvictionOptions options_;
  std::map<uint64_t, Set> sets_;  // by the order of decisions
  uint64_t next_set_ = 1;
  size_t queued_ = 0;
  absl::flat_hash_map<std::string, uint64_t> in_flight_;  // uid -> set that waits for it, or kNoSet
  absl::flat_hash_map<std::string, Refusal> refusals_;
  absl::flat_hash_map<std::string, std::shared_ptr<const Purpose>> purposes_;  // by uid
  // Until when what was sent fills the pace (the theoretical arrival time of a leaky bucket).
  absl::Time filled_until_ = absl::InfinitePast();
  absl::Time wake_at_ = absl::InfiniteFuture();
};

}  // namespace fairlead::core
