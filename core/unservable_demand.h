// The kinds of demand (engine::Waiting::demand_kind) for which the hook can provision nothing now.
// The engine does not charge them to their queues (Engine::SetUnservable), so that they hold no
// other demand below a limit. The hook is asked about them in every step all the same, and
// provisions nothing for them before they are charged again.
//
// A kind becomes unservable when the hook refuses some of its workloads, because nothing on offer
// suits them, or a cap, a back-off or former purchases forbid it. Of workloads of that kind for
// which nodes are requested in the same step, nothing is demanded any more. It is charged again as
// soon as the hook could provision nodes for some of it. Each of the two answers is true for the
// demand that it was given for; a plan for other demand could contradict it. So that they do not
// take turns, a kind that was charged again in vain stays uncharged for 10 s, doubling up to 5
// minutes, until nodes are requested for it.
//
// Bounds: kMaxKinds kinds; others stay charged. A kind that is not demanded for 10 minutes is
// forgotten. Thread-safety: the owner's thread. Complexity: O(kinds) per update.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "base/write_attempts.h"

namespace fairlead::core {

class UnservableDemand {
 public:
  static constexpr size_t kMaxKinds = 10'000;
  static constexpr absl::Duration kForgotten = absl::Minutes(10);
  static constexpr Backoff kPauses = {absl::Seconds(10), absl::Minutes(5)};

  // What the hook has said of the workloads of one kind.
  struct Answer {
    uint64_t kind = 0;
    bool served = false, refused = false;
  };
  // The answers to the demand of one cycle, in its order, at most one for each kind. True if
  // kinds() has changed for one of them.
  bool Update(const std::vector<Answer>& answers, absl::Time now);
  [[nodiscard]] const absl::flat_hash_set<uint64_t>& kinds() const { return kinds_; }
  // When the same answers could change kinds(); infinite future: never.
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }

 private:
  struct Row {
    absl::Time seen;
    absl::Time stays_until = absl::InfinitePast();
    int64_t charged_again = 0;  // since nodes were requested for it
  };
  bool Refused(const Answer& answer, absl::Time now);
  bool ChargeAgain(uint64_t kind, absl::Time now);

  absl::flat_hash_map<uint64_t, Row> rows_;  // never iterated where order is seen
  absl::flat_hash_set<uint64_t> kinds_;
  absl::Time wake_at_ = absl::InfiniteFuture();
};

}  // namespace fairlead::core
