#include "scheduler/engine/expand_equivalents.h"

#include <map>
#include <string>
#include <utility>

#include "scheduler/engine/sorted_merge.h"

namespace fairlead::engine {
namespace {

// A verdict, and the next workload behind its owner that gets it too.
struct Behind {
  Waiting entry;  // of the one before
  MemberRange rest;
};

class Unfolding {
 public:
  Unfolding(const state::ClusterState& state, const std::vector<Waiting>& waiting) : state_(state) {
    for (const Waiting& entry : waiting) late_.Expect(entry.verdict.queue);
  }

  void Add(Waiting entry, const MemberRange& rest) {
    const std::string queue = entry.verdict.queue;
    late_.Advance(
        queue, [&] { return MakeQueueOrderKey(state_.workload(entry.workload)); },
        [&] { Place({std::move(entry), rest}); },
        [this](Behind behind) {
          const state::Workload& workload = state_.workload(behind.rest.next->workload);
          behind.entry.workload = workload.id;
          behind.entry.pods.clear();
          for (const state::PodId pod : workload.pods) behind.entry.pods.push_back({pod});
          ++behind.rest.next;
          Place(std::move(behind));
        });
  }
  std::vector<Waiting> Take() { return std::move(all_); }

 private:
  void Place(Behind row) {
    const std::string queue = row.entry.verdict.queue;
    row.entry.behind = 0;
    row.entry.verdict.position = ++positions_[queue];
    all_.push_back(row.entry);
    if (!row.rest.empty()) late_.Add(queue, *row.rest.next, std::move(row));
  }

  const state::ClusterState& state_;
  SortedMerge<std::string, Behind> late_;  // by queue
  std::map<std::string, int64_t> positions_;
  std::vector<Waiting> all_;
};

}  // namespace

std::vector<Waiting> ExpandEquivalents(
    const state::ClusterState& state, const std::function<MemberRange(const Waiting&)>& rest_behind,
    std::vector<Waiting> waiting) {
  Unfolding unfolding(state, waiting);
  for (Waiting& entry : waiting) {
    const MemberRange rest = rest_behind(entry);
    unfolding.Add(std::move(entry), rest);
  }
  return unfolding.Take();
}

}  // namespace fairlead::engine
