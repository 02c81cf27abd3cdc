// How long pods wait to be scheduled, for metrics alone: from the first step that knew of a pod
// which could start until its binding was done. The time before that, while scheduling gates held
// the pod, does not count; what a former process saw of it does not, either.
//
// Ownership: values. Thread-safety: the owner's thread. No clock: times come in. Complexity: O(1);
// memory O(rows of pods). A row is of one pod, told by its uid, because rows are reused.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "scheduler/state/ids.h"

namespace fairlead::core {

class PodWaits {
 public:
  // The pod waits and no gate holds it. Counts from the next Stamp, if it is not known yet: true.
  bool Seen(state::PodId pod, absl::string_view uid) {
    if (rows_.size() <= pod) rows_.resize(pod + 1);
    Row& row = rows_[pod];
    const uint64_t hash = absl::HashOf(uid);
    if (row.known && row.uid_hash == hash) return false;
    row = {.uid_hash = hash, .known = true};
    fresh_.push_back(pod);
    return true;
  }
  // A step begins.
  void Stamp(absl::Time now) {
    for (const state::PodId pod : fresh_) rows_[pod].since_us = absl::ToUnixMicros(now);
    fresh_.clear();
  }
  // The binding is done: how long the pod waited, in microseconds. None if that is not known, or
  // was told already.
  std::optional<int64_t> Bound(state::PodId pod, absl::string_view uid, absl::Time now) {
    if (rows_.size() <= pod) return std::nullopt;
    Row& row = rows_[pod];
    if (!row.known || row.told || row.uid_hash != absl::HashOf(uid)) return std::nullopt;
    row.told = true;
    const int64_t waited = absl::ToUnixMicros(now) - row.since_us;
    return waited < 0 ? int64_t{0} : waited;
  }

 private:
  struct Row {
    uint64_t uid_hash = 0;
    int64_t since_us = 0;
    bool known = false, told = false;
  };
  std::vector<Row> rows_;
  std::vector<state::PodId> fresh_;  // since the last Stamp
};

}  // namespace fairlead::core
