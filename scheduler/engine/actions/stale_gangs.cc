#include "scheduler/engine/actions/stale_gangs.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/gang.h"
#include "scheduler/state/transaction.h"

namespace fairlead::engine {
namespace {

using state::PodStatus;
using state::Workload;

// Records whether the gang as a whole is below its minimum.
void RecordGang(CycleContext& c, const Workload& workload, bool stale) {
  const bool was_stale = workload.details->stale_since != absl::InfiniteFuture();
  if (stale && !was_stale) {
    c.in.state.SetStaleSince(workload.id, c.in.now);
    c.decisions.stale.push_back({workload.id, c.in.now});
  } else if (!stale && was_stale) {
    c.in.state.SetStaleSince(workload.id, absl::InfiniteFuture());
    c.decisions.stale.push_back({workload.id, std::nullopt});
  }
}

// The same of its sub-groups.
void RecordSubGroups(const Workload& workload, const std::vector<int32_t>& below, absl::Time now,
                     StaleIndex::SubGroups& since) {
  StaleIndex::SubGroups current;
  for (const int32_t set : below) {
    if (set == 0) continue;
    const std::string& name = workload.sets[static_cast<size_t>(set)].name;
    const auto known = since.find(name);
    current.emplace(name, known == since.end() ? now : known->second);
  }
  since = std::move(current);
}

// Those that are not below another one of them.
std::vector<int32_t> Topmost(const Workload& workload, const std::vector<int32_t>& below) {
  std::vector<bool> marked(workload.sets.size(), false);
  for (const int32_t set : below) marked[static_cast<size_t>(set)] = true;
  std::vector<int32_t> topmost;
  for (const int32_t set : below) {
    int32_t above = workload.sets[static_cast<size_t>(set)].parent;
    while (above >= 0 && !marked[static_cast<size_t>(above)]) {
      above = workload.sets[static_cast<size_t>(above)].parent;
    }
    if (above < 0) topmost.push_back(set);
  }
  return topmost;
}

// `set` is `ancestor`, or below it. Pods of no set belong to the gang alone.
bool IsWithin(const Workload& workload, int32_t set, int32_t ancestor) {
  if (ancestor == 0) return true;
  while (set > 0 && set != ancestor) set = workload.sets[static_cast<size_t>(set)].parent;
  return set == ancestor;
}

std::string MessageOf(const Workload& workload, int32_t set, absl::Duration grace) {
  const std::string what =
      set == 0 ? "its gang"
               : absl::StrCat("sub-group ", workload.sets[static_cast<size_t>(set)].name,
                              " of its gang");
  return absl::StrCat("Evicted (stalegangeviction): ", what, " has been below its minimum of ",
                      GangMinimum(workload, set), " pods for longer than ",
                      absl::FormatDuration(grace));
}

// What runs of the set and of those below it.
void EvictRest(CycleContext& c, const Workload& workload, int32_t set, absl::string_view action,
               absl::Duration grace) {
  const std::string message = MessageOf(workload, set, grace);
  std::vector<Eviction>& evictions = c.decisions.evictions;
  const uint64_t number = c.decisions.NextEvictionSet();
  const size_t before = evictions.size();
  state::Transaction txn(c.in.state);
  for (state::PodId id : workload.pods) {
    const state::PodRecord& pod = c.in.state.pod(id);
    if (pod.status != PodStatus::kBound && pod.status != PodStatus::kRunning) continue;
    if (!IsWithin(workload, pod.set, set)) continue;
    if (c.in.refusals.Stands(c.in.state, pod, c.in.now)) {
      c.decisions.WakeAt(c.in.refusals.NextEnd(c.in.state, c.in.now));
      continue;
    }
    txn.Evict(id);
    evictions.push_back({id, std::string(action), state::kNoId,
                         model::Key(workload.ns, workload.name), message, number});
  }
  txn.Commit();
  for (size_t i = evictions.size(); i-- > before;) c.in.state.ChargeBudgets(evictions[i].pod);
}

}  // namespace

void StaleGangEviction::Execute(CycleContext& c) const {
  for (auto& [id, since] : c.in.stale.gangs()) {
    const Workload& workload = c.in.state.workload(id);
    if (workload.id != id) continue;
    const std::vector<int32_t> below = BelowMinimum(workload);
    RecordGang(c, workload, !below.empty() && below.front() == 0);
    RecordSubGroups(workload, below, c.in.now, since);
    const absl::Duration grace =
        workload.details->staleness_grace.value_or(c.in.options.staleness_grace);
    if (grace < absl::ZeroDuration()) continue;
    for (const int32_t set : Topmost(workload, below)) {
      const state::GangSet& of = workload.sets[static_cast<size_t>(set)];
      const absl::Time end = (set == 0 ? workload.details->stale_since : since.at(of.name)) + grace;
      if (end > c.in.now) {
        c.decisions.WakeAt(end);
      } else {
        EvictRest(c, workload, set, Name(), grace);
      }
    }
  }
}

}  // namespace fairlead::engine
