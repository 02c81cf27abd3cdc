// One cycle over the waiting workloads: the passes of engine.h, in order, and what came of each
// workload.
//
// Thread-safety: the owner's thread. Lives for one cycle.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "queues/fair_share.h"
#include "queues/job_order.h"
#include "queues/limits.h"
#include "scheduler/engine/books.h"
#include "scheduler/engine/engine.h"
#include "scheduler/engine/pending.h"
#include "scheduler/engine/placer.h"
#include "scheduler/engine/victim_search.h"

namespace fairlead::engine {

// What one cycle found out about one workload, before it is put into a verdict.
struct Outcome {
  state::WorkloadId workload = state::kNoId;
  queues::QueueId leaf = PendingIndex::kNoQueue;
  verdict::Code code = verdict::Code::kNone;
  std::optional<queues::LimitViolation> violation;
  std::string subject;
  std::vector<std::string> details;
  std::optional<absl::Time> until;
  // The step that did not get a place, and the pod of it for which no node was found.
  std::vector<state::PodId> step;
  model::Resources step_request;
  state::PodId failed_pod = state::kNoId;
  std::vector<Waiting::PodPromise> promises;
  std::vector<state::PodId> demanded;  // pods that the hook may buy for
  bool whole_demand = true;            // false: a limit holds some pods of it back
  int64_t position = 0;
};

// Until when a pod whose binding failed is left alone.
using BindBackoff = absl::flat_hash_map<state::PodId, std::pair<absl::Time, absl::Duration>>;

struct CycleParts {
  const EngineOptions& options;
  state::ClusterState& state;
  const queues::QueueTree& tree;
  Books& books;
  const PendingIndex& pending;
  Placer& placer;
  VictimSearch& search;
  const queues::FairShares& shares;
  const BindBackoff& backoff;
};

class Cycle {
 public:
  Cycle(const CycleParts& parts, absl::Time now) : p_(parts), now_(now) {}

  void Run();

  std::vector<Binding> bindings;
  std::vector<Eviction> evictions;
  std::vector<Outcome> outcomes;  // in the order of service
  absl::Time wake_at = absl::InfiniteFuture();

 private:
  struct Step {
    std::vector<state::PodId> pods;
    model::Resources request;
  };
  // Equal pods that did not fit: at least this many at once did not.
  using Failures = absl::flat_hash_map<state::PodClassId, int64_t>;

  void Unservable();
  void Allocate();
  // One step of a workload; true if it was placed or promised and the workload may have more.
  bool Serve(queues::QueueId leaf, const state::Workload& workload);
  // What must hold before anything is tried; false: the outcome is written.
  bool MayStart(queues::QueueId leaf, const state::Workload& workload);
  [[nodiscard]] Step NextStep(const state::Workload& workload) const;
  bool InBackoff(const Step& step);
  void Evict(bool reclaim);
  bool DelaysEviction(Outcome& outcome, const state::Workload& workload);
  void Demand();
  void DemandFor(Outcome& outcome);
  Outcome& OutcomeOf(const state::Workload& workload, queues::QueueId leaf);
  void RecordPromises(const state::Workload& workload, queues::QueueId leaf, const Step& step,
                      bool victims_chosen);
  [[nodiscard]] bool Known(const Failures& failures, const Step& step) const;
  void Remember(Failures& failures, const Step& step) const;
  void TakeBack();

  const CycleParts& p_;
  const absl::Time now_;
  absl::flat_hash_map<state::WorkloadId, size_t> index_;  // into outcomes
  std::vector<state::PodId> promised_;
  struct DemandCharge {
    queues::QueueId leaf;
    model::Resources amount;
    bool preemptible;
  };
  std::vector<DemandCharge> demand_charges_;
  Failures failed_now_, failed_future_;
  absl::flat_hash_map<queues::QueueId, model::Resources> next_request_;
};

}  // namespace fairlead::engine
