#include "scheduler/engine/expand_equivalents.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "scheduler/engine/sorted_merge.h"

namespace fairlead::engine {
namespace {

QueueOrderKey KeyOf(const state::ClusterState& state, const Waiting& entry) {
  return MakeQueueOrderKey(state.workload(entry.workload));
}

// Workloads of an entry whose turn comes among the others of their queue.
struct Late {
  size_t entry = 0;
  bool own = false;  // the entry's own workload comes first
  MemberRange left;
  int64_t passed = 0;
};

class Runs {
 public:
  Runs(const state::ClusterState& state, const RestBehind& rest_behind,
       const std::vector<Waiting>& waiting)
      : state_(state), rest_behind_(rest_behind), waiting_(waiting) {}

  std::vector<EntryRun> InOrder(const std::function<bool(const Waiting&)>& included) {
    for (const Waiting& entry : waiting_) {
      if (!entry.part && included(entry)) late_.Expect(entry.verdict.queue);
    }
    for (size_t i = 0; i < waiting_.size(); ++i) {
      const Waiting& entry = waiting_[i];
      if (entry.part || !included(entry)) continue;
      for (size_t p = i + 1; p < waiting_.size() && waiting_[p].part; ++p) AddPart(p);
      late_.Advance(
          entry.verdict.queue, [&] { return KeyOf(state_, entry); }, [&] { PlaceOwn(i); },
          [&](Late row, const QueueOrderKey* bound) { PlaceLate(std::move(row), bound); });
    }
    return std::move(runs_);
  }

 private:
  void AddPart(size_t index) {
    late_.Add(waiting_[index].verdict.queue, KeyOf(state_, waiting_[index]), {index, true, {}, 0});
  }
  void PlaceOwn(size_t index) {
    Append(index, 0, 1, waiting_[index].workload);
    const MemberRange rest = rest_behind_(waiting_[index]);
    if (rest.empty()) return;
    late_.Add(waiting_[index].verdict.queue, *rest.next, {index, false, rest, 1});
  }
  void PlaceLate(Late row, const QueueOrderKey* bound) {
    if (row.own) return PlaceOwn(row.entry);
    const MemberRange taken = TakeBefore(row.left, bound);
    Append(row.entry, row.passed, taken.count, taken.next->workload);
    row.passed += taken.count;
    if (row.left.empty()) return;
    QueueOrderKey key = *row.left.next;
    late_.Add(waiting_[row.entry].verdict.queue, std::move(key), std::move(row));
  }
  void Append(size_t entry, int64_t first, int64_t count, state::WorkloadId workload) {
    EntryRun* last = runs_.empty() ? nullptr : &runs_.back();
    if (last != nullptr && last->entry == entry && last->first + last->count == first) {
      last->count += count;
    } else {
      runs_.push_back({entry, first, count, workload});
    }
  }

  const state::ClusterState& state_;
  const RestBehind& rest_behind_;
  const std::vector<Waiting>& waiting_;
  SortedMerge<absl::string_view, Late> late_;  // by queue
  std::vector<EntryRun> runs_;
};

}  // namespace

std::vector<EntryRun> RunsInOrder(const state::ClusterState& state, const RestBehind& rest_behind,
                                  const std::vector<Waiting>& waiting,
                                  const std::function<bool(const Waiting&)>& included) {
  return Runs(state, rest_behind, waiting).InOrder(included);
}

std::vector<Waiting> ExpandEquivalents(const state::ClusterState& state,
                                       const RestBehind& rest_behind,
                                       std::vector<Waiting> waiting) {
  const std::vector<EntryRun> runs =
      RunsInOrder(state, rest_behind, waiting, [](const Waiting&) { return true; });
  std::vector<MemberRange> behind;  // by entry; `next` is the next to come
  for (const Waiting& entry : waiting) behind.push_back(rest_behind(entry));
  std::map<std::string, int64_t> positions;
  std::vector<Waiting> all;
  for (const EntryRun& run : runs) {
    for (int64_t i = 0; i < run.count; ++i) {
      Waiting own = waiting[run.entry];
      if (run.first + i > 0) {
        MemberRange& rest = behind[run.entry];
        if (rest.empty()) break;
        const state::Workload& workload = state.workload(rest.next->workload);
        ++rest.next;
        own.workload = workload.id;
        own.pods.clear();
        for (const state::PodId pod : workload.pods) own.pods.push_back({pod});
      }
      own.behind = 0;
      own.equivalence_class = 0;
      own.part = false;
      own.verdict.position = ++positions[own.verdict.queue];
      all.push_back(std::move(own));
    }
  }
  return all;
}

}  // namespace fairlead::engine
