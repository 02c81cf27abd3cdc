// Which workloads the entries of the last cycle (Waiting) stand for: each for its own, and for a
// range of an equivalence class behind it. Most classes have one range; a class of which some
// members wait for something else than others has several.
//
// Ranges are kept by the places of their bounds, so members may come and go.
//
// Ownership: borrows the index. Thread-safety: the owner's thread. Complexity: O(log n) a question;
// what divides entries costs a step for each workload between the cut and the nearer end.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "scheduler/engine/engine.h"
#include "scheduler/engine/pending.h"

namespace fairlead::engine {

class EntryRanges {
 public:
  EntryRanges(const state::ClusterState& state, PendingIndex& pending)
      : state_(state), pending_(pending) {}

  // Before the entries of a cycle.
  void Clear() { ranges_.clear(); }
  // What is behind the entry; its own moves aside, nothing of it was touched in the cycle.
  void Add(const MemberRange& rest, Waiting& entry);

  // Empty if none is left.
  [[nodiscard]] MemberRange Behind(const Waiting& entry) const;
  // Waiting::equivalence_class of the entry behind which it waits, or 0.
  [[nodiscard]] uint64_t Of(state::WorkloadId workload) const;

  // Engine's functions of these names.
  Waiting Divide(Waiting& entry, int64_t keep);
  std::vector<Waiting> SetApart(Waiting entry, const std::vector<state::WorkloadId>& workloads);
  std::vector<int64_t> MatchFormer(const FormerEntries& former, std::vector<Waiting>& waiting);

  // Marks members that have come from one range into another since the last call.
  void MarkMoves();

 private:
  friend class FormerEntries;
  struct Range {
    QueueOrderKey first;
    std::optional<QueueOrderKey> end;  // none: to the end of the class
    [[nodiscard]] bool Contains(const QueueOrderKey& key) const {
      return !(key < first) && (!end.has_value() || key < *end);
    }
  };
  using Ranges = absl::flat_hash_map<uint64_t, std::vector<Range>>;  // by class
  // Waiting::equivalence_class: the class and the number of the range. Never given to another
  // class.
  static constexpr int kRangeBits = 24;
  static uint64_t IdOf(uint64_t equivalence_class, size_t range) {
    return equivalence_class << kRangeBits | range;
  }
  [[nodiscard]] const Range* Find(const Waiting& entry) const;
  // The members from `first` to before `end`; none: to the end of the class.
  static MemberRange Slice(const EquivalenceClass& equivalence_class, const QueueOrderKey& first,
                           const std::optional<QueueOrderKey>& end);
  // Divides the entry into parts of these sizes.
  std::vector<Waiting> Parts(Waiting entry, const std::vector<int64_t>& sizes);

  const state::ClusterState& state_;
  PendingIndex& pending_;
  Ranges ranges_, told_;  // told_: as of the last MarkMoves()
};

// What a list of entries stood for, while another cycle makes another list.
class FormerEntries {
 public:
  FormerEntries(const EntryRanges& ranges, const std::vector<Waiting>& waiting);

 private:
  friend class EntryRanges;
  [[nodiscard]] int64_t Find(const PendingIndex& pending, state::WorkloadId workload) const;

  absl::flat_hash_map<state::WorkloadId, int64_t> own_;  // never iterated
  std::vector<state::WorkloadId> own_in_order_;
  absl::flat_hash_map<uint64_t, std::vector<std::pair<EntryRanges::Range, int64_t>>> behind_;
};

}  // namespace fairlead::engine
