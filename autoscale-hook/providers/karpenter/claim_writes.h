// The order in which NodeClaims are written: some at a time, in the order in which they were added.
// When the API server throttles (429) or does not answer, all of them pause, each time for longer,
// and then one is tried.
//
// Ownership: a member of its owner, which Start names; does not own the scheduler. Thread-safety:
// the owner's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "autoscale-hook/providers/scheduler_port.h"
#include "base/write_attempts.h"

namespace fairlead::hook {

class ClaimWrites {
 public:
  // Makes the call, and Answered follows; or returns false, and nothing was sent.
  using Send = std::function<bool()>;

  // `resume` is called when a pause is over; the owner then calls Pump.
  ClaimWrites(size_t at_once, Backoff backoff, Scheduler* scheduler, std::function<void()> resume)
      : at_once_(at_once), backoff_(backoff), scheduler_(scheduler), resume_(std::move(resume)) {}

  void Start(std::weak_ptr<void> owner) { owner_ = std::move(owner); }
  // Sends nothing before it returns.
  void Add(Send send) { queue_.push_back(std::move(send)); }
  // Sends what may be sent now. Answers may come meanwhile.
  void Pump();
  void Answered(const absl::Status& status);

 private:
  size_t at_once_;
  Backoff backoff_;
  Scheduler* scheduler_;
  std::function<void()> resume_;
  std::weak_ptr<void> owner_;
  std::deque<Send> queue_;
  size_t in_flight_ = 0;
  int64_t failures_ = 0;  // in a row
  bool paused_ = false;
};

}  // namespace fairlead::hook
