// Workloads that wait, leaf queue by leaf queue in the order of service, and one cycle's walk over
// them.
//
// Order in a queue (facts 3.4): priority, then elastic state (below its minimum, at it, above it),
// then age, then uid.
//
// Thread-safety: the owner's thread. Complexity: O(log n) a change; a walk costs what it visits.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "queues/tree.h"
#include "scheduler/engine/gang.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

struct ServiceKey {
  int64_t minus_priority = 0;
  int elastic_state = 0;  // ElasticStateOf()
  int64_t creation_ns = 0;
  std::string uid;
  state::WorkloadId workload = state::kNoId;
  friend auto operator<=>(const ServiceKey&, const ServiceKey&) = default;
};
ServiceKey MakeServiceKey(const state::Workload& workload);

class PendingIndex {
 public:
  explicit PendingIndex(const queues::QueueTree& tree) : tree_(tree) {}

  // Files the workload anew by its present row, or takes it out if nothing of it waits.
  void Refresh(const state::Workload& workload);
  void Remove(state::WorkloadId workload);
  void Clear();

  using Leaf = std::set<ServiceKey>;
  // Leaves with waiting workloads; workloads whose queue does not exist are under kNoQueue.
  static constexpr queues::QueueId kNoQueue = ~queues::QueueId{0};
  [[nodiscard]] const std::map<queues::QueueId, Leaf>& leaves() const { return leaves_; }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  struct Place {
    bool filed = false;
    queues::QueueId queue = kNoQueue;
    Leaf::const_iterator position;  // where it is in its leaf, if it is filed
  };
  const queues::QueueTree& tree_;
  std::map<queues::QueueId, Leaf> leaves_;
  std::vector<Place> places_;  // by WorkloadId
  size_t size_ = 0;
};

// Takes the workloads of each leaf in order, without changing the index; a workload that made
// progress can be put back in with its new place.
class ServiceWalk {
 public:
  explicit ServiceWalk(const PendingIndex& index);
  // kNoId when the leaf is exhausted.
  [[nodiscard]] state::WorkloadId Peek(queues::QueueId leaf) const;
  void Pop(queues::QueueId leaf);
  void PutBack(queues::QueueId leaf, ServiceKey key);

 private:
  struct Cursor {
    PendingIndex::Leaf::const_iterator next, end;
    std::set<ServiceKey> put_back;
  };
  std::map<queues::QueueId, Cursor> cursors_;
};

}  // namespace fairlead::engine
