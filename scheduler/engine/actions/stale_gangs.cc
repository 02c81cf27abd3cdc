#include "scheduler/engine/actions/stale_gangs.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {
namespace {

using state::PodStatus;

// Records whether the gang is stale by now; true if it is.
bool RecordStale(CycleContext& c, const state::Workload& workload) {
  const bool stale = IsStale(c.in.state, workload);
  const bool was_stale = workload.details->stale_since != absl::InfiniteFuture();
  if (stale && !was_stale) {
    c.in.state.SetStaleSince(workload.id, c.in.now);
    c.decisions.stale.push_back({workload.id, c.in.now});
  } else if (!stale && was_stale) {
    c.in.state.SetStaleSince(workload.id, absl::InfiniteFuture());
    c.decisions.stale.push_back({workload.id, std::nullopt});
  }
  return stale;
}

void EvictRest(CycleContext& c, const state::Workload& workload, absl::string_view action,
               absl::Duration grace) {
  const std::string message =
      absl::StrCat("Evicted (stalegangeviction): its gang has been below its minimum of ",
                   GangMinimum(workload), " pods for longer than ", absl::FormatDuration(grace));
  std::vector<Eviction>& evictions = c.decisions.evictions;
  const uint64_t set = c.decisions.NextEvictionSet();
  const size_t before = evictions.size();
  state::Transaction txn(c.in.state);
  for (state::PodId pod : workload.pods) {
    const PodStatus status = c.in.state.pod(pod).status;
    if (status != PodStatus::kBound && status != PodStatus::kRunning) continue;
    if (c.in.refusals.Stands(c.in.state, c.in.state.pod(pod), c.in.now)) {
      c.decisions.WakeAt(c.in.refusals.NextEnd(c.in.state, c.in.now));
      continue;
    }
    txn.Evict(pod);
    evictions.push_back({pod, std::string(action), state::kNoId,
                         model::Key(workload.ns, workload.name), message, set});
  }
  txn.Commit();
  for (size_t i = evictions.size(); i-- > before;) c.in.state.ChargeBudgets(evictions[i].pod);
}

}  // namespace

void StaleGangEviction::Execute(CycleContext& c) const {
  for (state::WorkloadId id : c.in.maybe_stale) {
    const state::Workload& workload = c.in.state.workload(id);
    if (workload.id != id || !RecordStale(c, workload)) continue;
    const absl::Duration grace =
        workload.details->staleness_grace.value_or(c.in.options.staleness_grace);
    if (grace < absl::ZeroDuration()) continue;
    const absl::Time end = workload.details->stale_since + grace;
    if (end > c.in.now) {
      c.decisions.WakeAt(end);
      continue;
    }
    EvictRest(c, workload, Name(), grace);
  }
}

}  // namespace fairlead::engine
