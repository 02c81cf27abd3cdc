// From the decision to evict to the request: which requests go out when, and when a refused
// eviction may be repeated.
//
// A decision is a *set* of victims that were chosen together for one workload. From the decision on
// all of them count as leaving (kReleasing); the requests follow at a pace:
// - At most max_in_flight are unanswered, and at most per_second are sent per second, `burst` of
//   them at once. (The adapter has its own window, for the API server. This pace protects the
//   cluster: kubelets, controllers and storage.)
// - Sets go in the order of the decisions. Pods of one workload in a set go together, because the
//   rest of a gang is useless. A gang that is larger than the free places goes as soon as one place
//   is free; the pace compensates afterwards.
// - Victims without allowance in a PodDisruptionBudget go first, and the rest of their set waits
//   for the answers, so that no victim goes in vain.
// - A set is checked again right before any of it is sent (Prune), victim by victim: its workload
//   may have been bound elsewhere, be pipelined to another node by now (and need no headroom of the
//   victim's), or be gone; a gang that was too small may be large enough. Then the victims that
//   were not sent and are not needed continue to run, but for those in whose headroom below a limit
//   the workload was started.
//
// Answers (base/write_attempts.h):
//   OK           it goes; the watch shows it.
//   unknown      (no connection, 5xx) repeated after a pause; the pod stays kReleasing. So is a 404
//                until the watch shows that the pod is gone: a mistake would hold its place for
//                ever.
//   a refusal    (429 of a budget, 403, 409, 422, not sent at all): nothing was done. In doubt it
//                is believed, too: at worst the pod goes although its capacity counts as used. The
//                pod and the unsent rest of its set run on, and the next cycle decides again, with
//                the pods that are already leaving. The pod is not chosen again during the pause;
//                with a known budget, also not until that budget changes (engine/victim_budgets.h).
// Attempts at one pod, of several decisions, too, are one series with growing pauses, until it has
// not been tried for backoff_max after the last pause.
//
// Ownership: values. Thread-safety: the owner's thread. No clock: times come in. Complexity: O(log
// n) per victim. Determinism: first in, first out.
#pragma once

#include <algorithm>
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
#include "base/write_attempts.h"
#include "core/reconcile/due_times.h"
#include "scheduler/model/action.h"
#include "scheduler/model/resources.h"

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
  enum class Cause : uint8_t {
    kWaiting,  // the workload waits for the capacity
    kOwnGang,  // the workload is the victims' own: a gang below its minimum
    kLimit,    // the workload was started in the victims' part of a limit
    kNode,     // their node is emptied; `for_workload` is its name
  };
  struct Victim {
    model::EvictPod evict;
    uint64_t gang = 0;            // equal for pods of one workload, within a set
    bool may_be_refused = false;  // a budget allows no eviction of it
    std::string for_workload;     // "namespace/name"
    Cause cause = Cause::kWaiting;
    model::EmitEvent event = {};  // to be told when it is done
  };
  // Why a set was chosen.
  struct Purpose {
    std::string for_workload;
    Cause cause = Cause::kWaiting;
  };

  explicit Evictions(const EvictionOptions& options)
      : options_(options),
        rules_{.backoff = {options.backoff_initial, options.backoff_max},
               .believes_refusals = true} {}

  // Adds one decision, and gives its number; 0 if it is empty. Victims of a gang are adjacent.
  // `held`: none of them is sent before Release().
  uint64_t Add(std::vector<Victim> set, bool held = false);
  void Release(uint64_t set);
  // Drops what was not sent of the set.
  std::vector<model::EvictPod> Drop(uint64_t set);
  // Makes the sets that were added so far subject to Prune: another cycle runs.
  void Settle();
  struct Pruned {
    std::vector<model::EvictPod> victims;
    std::shared_ptr<const Purpose> purpose;
  };
  // Drops unsent victims that do not serve the purpose of their set any more.
  std::vector<Pruned> Prune(
      const std::function<bool(const Purpose&, const model::EvictPod&)>& serves);
  // The evictions to be sent now; they count as in flight. Drops victims for which `wanted` is
  // false.
  std::vector<model::EvictPod> TakeDue(absl::Time now,
                                       const std::function<bool(const Victim&)>& wanted);
  // A request whose outcome is unknown.
  struct Doubt {
    model::EvictPod evict;
    std::shared_ptr<const Purpose> purpose;
  };
  // Those that are due again. For each of them call SentAgain or Forget.
  std::vector<Doubt> TakeDoubts(absl::Time now);
  void SentAgain(absl::string_view uid, absl::Time now);
  // It is not evicted any more.
  void Forget(absl::string_view uid);

  struct Answer {
    Outcome outcome = Outcome::kDone;
    model::EvictPod evict;  // no uid: none of that pod is in flight
    // After a refusal: the others of the set that run on, in order, and when the eviction may be
    // tried again.
    std::vector<model::EvictPod> spared;
    absl::Time until;
    model::EmitEvent event;  // that of the victim, if the eviction is done
  };
  Answer Answered(absl::string_view uid, const absl::Status& status, absl::Time now);

  // When TakeDue or TakeDoubts has something although no answer came; infinite future if never.
  [[nodiscard]] absl::Time wake_at() const { return std::min(wake_at_, doubts_.next()); }
  [[nodiscard]] size_t in_flight() const { return in_flight_; }
  [[nodiscard]] size_t retries() const { return doubts_.size(); }
  // Decided and not sent.
  [[nodiscard]] size_t queued() const { return queued_; }

 private:
  struct Set {
    std::deque<Victim> first;  // may be refused
    std::deque<Victim> rest;
    size_t unanswered = 0;  // of `first`
    bool fresh = true;      // decided in this cycle
    bool held = false;
    std::shared_ptr<Purpose> purpose;
  };
  static constexpr uint64_t kNoSet = 0;
  // The attempts at one pod. After a refusal only the attempts are kept.
  struct Row {
    WriteAttempts attempts;
    model::EvictPod evict;
    model::EmitEvent event;
    std::shared_ptr<const Purpose> purpose;
    uint64_t set = kNoSet;  // that waits for the answer
  };

  // Sends the gang at the front of `line`. False if the pace does not allow it.
  bool SendGang(uint64_t id, Set& set, std::deque<Victim>& line, absl::Time now,
                const std::function<bool(const Victim&)>& wanted,
                std::vector<model::EvictPod>& out);
  // Drops the unsent part of the set.
  void Spare(Set& set, std::vector<model::EvictPod>& spared);
  [[nodiscard]] bool MayGo(absl::Time now);
  void TakePlace(absl::Time now);
  void Send(Row& row, absl::Time now);
  // Forgets series of refusals that are over.
  void Trim(absl::Time now);

  const EvictionOptions options_;
  const WriteAttempts::Rules rules_;
  std::map<uint64_t, Set> sets_;  // by the order of decisions
  uint64_t next_set_ = 1;
  size_t queued_ = 0;
  size_t in_flight_ = 0;
  absl::flat_hash_map<std::string, Row> rows_;  // by uid
  DueTimes<std::string> doubts_;                // uids
  size_t trim_at_ = 1024;
  // Until when sent requests fill the pace (the theoretical arrival time of a leaky bucket).
  absl::Time filled_until_ = absl::InfinitePast();
  absl::Time wake_at_ = absl::InfiniteFuture();
};

}  // namespace fairlead::core
