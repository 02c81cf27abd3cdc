// Workloads that wait, leaf queue by leaf queue in queue order, and one cycle's walk over
// them.
//
// Order in a queue (facts 3.4): what a QueueSort plugin says, if there is one; then priority, then
// elastic state (below its minimum, at it, above it), then age (Workload::turn), then uid.
//
// Inside a leaf they stand in equivalence classes: lone pods of one class, or groups of one shape
// of which nothing has started, of one priority and preemptibility, whose preemption delay is over
// or ends at the same time. Every decision treats the members of an equivalence class alike; they
// differ in name and age only. So what holds the first of an equivalence class in a cycle holds the
// others too, and a walk can leave them out: a cycle costs what it looks at, not what waits. Any
// other workload is an equivalence class of its own.
//
// Thread-safety: the owner's thread. Complexity: O(log n) a change, O(1) for the youngest of a
// equivalence class; a walk costs what it visits, times the logarithm of the equivalence classes
// that it has met.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "base/inline_string.h"
#include "queues/tree.h"
#include "scheduler/engine/engine.h"
#include "scheduler/engine/gang.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

struct QueueOrderKey {
  int64_t sort_key = 0;  // of a QueueSort plugin; 0 without one, and for victims
  int64_t minus_priority = 0;
  int elastic_state = 0;  // ElasticStateOf()
  int64_t turn_ns = 0;    // Workload::turn
  InlineString uid;
  state::WorkloadId workload = state::kNoId;
  state::PodId first_pod = state::kNoId;  // no part of the order: the next to be read
  friend auto operator<=>(const QueueOrderKey&, const QueueOrderKey&) = default;
};
QueueOrderKey MakeQueueOrderKey(const state::Workload& workload);

// What the workloads of an equivalence class have in common.
struct EquivalenceKey {
  int64_t minus_priority = 0;
  int64_t generation = 0;                      // of the pod or PodGroup: verdicts name it
  state::PodClassId pod_class = state::kNoId;  // of the first pod
  std::string shape;                           // of a group: its sets, and its pods' classes
  bool preemptible = true;
  bool may_preempt = true;
  int64_t expected_ns = 0;                 // how long it runs by its own word, where that matters
  int64_t delay_end_ns = 0;                // of its preemption delay; 0: none, or it is over
  state::WorkloadId alone = state::kNoId;  // the only member, if it is nothing like the others
  friend auto operator<=>(const EquivalenceKey&, const EquivalenceKey&) = default;
};
// `by_duration`: what says how long it runs is treated apart from what does not. `now_ns`: a
// preemption delay that is over makes no difference.
EquivalenceKey MakeEquivalenceKey(const state::ClusterState& state, const state::Workload& workload,
                                  bool by_duration, int64_t now_ns);

struct EquivalenceClass {
  using Members = std::set<QueueOrderKey>;
  uint64_t id = 0;  // never given to another one
  EquivalenceKey key;
  bool one_pod = false;         // IsOnePod() of the members
  Members members;              // never empty
  size_t moved_at = kNotMoved;  // PendingLeaf's

  static constexpr size_t kNotMoved = ~size_t{0};
  [[nodiscard]] bool IsPlain() const { return key.alone == state::kNoId; }
};

// Members of an equivalence class, from `next` to before `end`: they wait for what the one before
// them waits for. Valid until the index changes one of them.
struct MemberRange {
  const EquivalenceClass* equivalence_class = nullptr;
  EquivalenceClass::Members::const_iterator next, end;
  int64_t count = 0;

  [[nodiscard]] bool empty() const { return equivalence_class == nullptr || next == end; }
  // Without its first member.
  [[nodiscard]] MemberRange Behind() const;
};
// The first of `rest` that come before the bound, at least one if its first does; all if the bound
// is null. `rest` keeps the others. O(log n), and a step for each that is taken if not all are.
MemberRange TakeBefore(MemberRange& rest, const QueueOrderKey* bound);
// All members but the first.
MemberRange BehindFirst(const EquivalenceClass& equivalence_class);

// The equivalence classes of a leaf queue.
class PendingLeaf {
 public:
  struct ByFirst {
    bool operator()(const EquivalenceClass* a, const EquivalenceClass* b) const {
      return *a->members.begin() < *b->members.begin();
    }
  };
  using InOrder = std::set<EquivalenceClass*, ByFirst>;  // by their first members

  struct Place {
    EquivalenceClass* equivalence_class = nullptr;
    EquivalenceClass::Members::const_iterator position;
  };
  // `next_id` is taken for an equivalence class that is new.
  Place Insert(const EquivalenceKey& equivalence_key, QueueOrderKey key, uint64_t& next_id);
  void Erase(const Place& place);

  // Invalidated by the next Insert() or Erase().
  [[nodiscard]] const InOrder& equivalence_classes() const {
    PlaceMoved();
    return in_order_;
  }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  // Takes it out of the order: its first member is about to be another one.
  void TakeOut(EquivalenceClass& equivalence_class);
  void PlaceMoved() const;

  std::map<EquivalenceKey, EquivalenceClass> equivalence_classes_;
  EquivalenceClass* last_ = nullptr;  // to which a workload came: most come with their like
  // When many members come or go, their classes move once: when the order is next asked for.
  mutable InOrder in_order_;
  mutable std::vector<EquivalenceClass*> moved_;  // not in `in_order_`; null: gone since
  size_t size_ = 0;
};

class PendingIndex {
 public:
  PendingIndex(const state::ClusterState& state, const queues::QueueTree& tree, bool by_duration)
      : state_(state), tree_(tree), by_duration_(by_duration) {}

  // Files the workload again by its present row, or takes it out if nothing of it waits.
  void Refresh(const state::Workload& workload);
  void Remove(state::WorkloadId workload);
  void Clear();
  // Files workloads again whose preemption delay is over by `now`. Time that runs backwards begins
  // no delay again.
  void EndDelays(absl::Time now);
  // By the time of the last EndDelays().
  [[nodiscard]] bool IsDelayed(const state::Workload& workload) const {
    return absl::ToUnixNanos(workload.PreemptionDelayEnd()) > now_ns_;
  }
  // Whether the workload, which may be gone, is to be an equivalence class of its own from now on.
  void SetAlone(state::WorkloadId workload, bool alone);

  // Leaves with waiting workloads; workloads whose queue does not exist are under kNoQueue.
  static constexpr queues::QueueId kNoQueue = ~queues::QueueId{0};
  [[nodiscard]] const std::map<queues::QueueId, PendingLeaf>& leaves() const { return leaves_; }
  [[nodiscard]] size_t size() const { return size_; }
  // Null if there is none any more.
  [[nodiscard]] const EquivalenceClass* FindEquivalenceClass(uint64_t id) const;
  [[nodiscard]] const state::ClusterState& state() const { return state_; }
  // Null if the workload does not wait.
  [[nodiscard]] const EquivalenceClass* EquivalenceClassOf(state::WorkloadId workload) const;
  [[nodiscard]] const QueueOrderKey* KeyOf(state::WorkloadId workload) const;
  // The workload has to wait.
  [[nodiscard]] EquivalenceClass::Members::const_iterator PositionOf(
      state::WorkloadId workload) const {
    return filed_[workload].place.position;
  }

  // Since the last call: what was filed, perhaps again, and what was taken out, each perhaps
  // several times.
  WaitingChanges TakeChanges();
  // Its members wait for something else than before: news for TakeChanges().
  void MarkChanged(const MemberRange& range);

  // Compares with how each workload would be filed now; the first difference, or empty. Of those
  // for which `changed` is true nothing is known.
  [[nodiscard]] std::string CheckConsistency(
      absl::FunctionRef<bool(state::WorkloadId)> changed) const;

 private:
  // How a workload is filed.
  struct Filing {
    queues::QueueId queue = kNoQueue;
    EquivalenceKey equivalence_key;
    QueueOrderKey key;
  };
  [[nodiscard]] static bool Waits(const state::Workload& workload) {
    return workload.Count(state::PodStatus::kPending) > 0 ||
           workload.Count(state::PodStatus::kGated) > 0;
  }
  [[nodiscard]] Filing FilingOf(const state::Workload& workload) const;
  struct Filed {
    queues::QueueId queue = kNoQueue;
    PendingLeaf::Place place;  // without an equivalence class: it does not wait
  };
  const state::ClusterState& state_;
  const queues::QueueTree& tree_;
  const bool by_duration_;
  std::map<queues::QueueId, PendingLeaf> leaves_;
  std::vector<Filed> filed_;  // by WorkloadId
  size_t size_ = 0;
  uint64_t next_class_ = 1;
  absl::flat_hash_set<state::WorkloadId> alone_;  // by SetAlone()
  // By id; those of one alone are not asked for.
  absl::flat_hash_map<uint64_t, const EquivalenceClass*> plain_;
  WaitingChanges changes_;
  int64_t now_ns_ = std::numeric_limits<int64_t>::min();
  // Members of classes with a `delay_end_ns`, by it.
  std::set<std::pair<int64_t, state::WorkloadId>> delays_;
};

// Takes the workloads of each leaf in order, without changing the index; a workload that made
// progress can be put back in with its new place.
class JobIterator {
 public:
  explicit JobIterator(const PendingIndex& index);
  // kNoId when the leaf is exhausted.
  [[nodiscard]] state::WorkloadId Peek(queues::QueueId leaf);
  // Where the workload that Peek() returned last for the leaf stands in its equivalence class; no
  // class if it is an equivalence class of its own, or was put back.
  struct Peeked {
    const EquivalenceClass* equivalence_class = nullptr;
    const QueueOrderKey* key = nullptr;
  };
  [[nodiscard]] Peeked ClassOfPeeked(queues::QueueId leaf) const;
  void Pop(queues::QueueId leaf);
  void Requeue(queues::QueueId leaf, QueueOrderKey key);
  // Leaves out the rest of the equivalence class whose member was popped last. None of a member
  // that was put back, or of an equivalence class of one. `in_turn`: they hold their places among
  // the queues (IsLeftOut).
  MemberRange LeaveOutRest(queues::QueueId leaf, bool in_turn = true);
  // What Peek returned is one of those left out: it only holds its place among the queues, because
  // what it asks for decides whose turn it is. PassLeftOut() takes it, not Pop().
  [[nodiscard]] bool IsLeftOut(queues::QueueId leaf) const;
  // Passes those that are left out and come before the next that is not; at most `most` of them.
  // Returns how many; not counted, and 0, if `most` is kUnlimited. Complexity: O(passed), or
  // O(log members) for each class if not counted.
  int64_t PassLeftOut(queues::QueueId leaf, int64_t most = model::kUnlimited);
  // What was left out in turn and not passed yet, with the member behind which it was left out.
  // Counts are right if everything that was passed was counted.
  struct LeftOut {
    MemberRange rest;
    state::WorkloadId behind = state::kNoId;
  };
  [[nodiscard]] const std::vector<LeftOut>& NotPassed(queues::QueueId leaf) const {
    return cursors_.at(leaf).left_out;
  }

 private:
  struct Later {
    bool operator()(const MemberRange& a, const MemberRange& b) const { return *b.next < *a.next; }
    bool operator()(const LeftOut& a, const LeftOut& b) const { return (*this)(a.rest, b.rest); }
  };
  struct Cursor {
    PendingLeaf::InOrder::const_iterator untouched,
        end;                        // equivalence classes that were not met yet
    std::vector<MemberRange> met;   // a heap, the first member on top
    MemberRange popped_from;        // not in `met` until the next look
    std::vector<LeftOut> left_out;  // a heap, the first that was not passed on top
    std::set<QueueOrderKey> put_back;

    void Normalize();
    // The first that was neither popped nor left out; null if there is none.
    [[nodiscard]] const QueueOrderKey* First() const;
    [[nodiscard]] bool FromPutBack() const;
    // The first of those left out, if a workload comes after it.
    [[nodiscard]] const QueueOrderKey* FirstLeftOut() const;
    // Reads ahead what a turn of the next member will read.
    void PrefetchNext(const state::ClusterState& state) const;
  };
  const state::ClusterState& state_;
  std::map<queues::QueueId, Cursor> cursors_;
};

}  // namespace fairlead::engine
