#include "scheduler/engine/actions/consolidate.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/actions/eviction_pass.h"
#include "scheduler/state/gpu_devices.h"

namespace fairlead::engine {
namespace {

// GPUs that are idle or being released on nodes that pods may go to, shares included, in
// thousandths.
int64_t FreeMilliGpus(const state::ClusterState& state) {
  int64_t free_milli = 0;
  for (const auto& [name, id] : state.nodes_by_name()) {
    const state::NodeInfo& node = state.node(id);
    if (!node.exists || !node.TakesBindings()) continue;
    free_milli += std::max<int64_t>(0, node.Future()[model::kGpu]) + node.other_gpus_milli;
    const int64_t memory = state::MemoryOrNominal(node.gpu_memory_mib);
    for (const state::GpuGroup& group : node.gpu_groups) {
      if (group.closed || group.active == 0) continue;  // counted as a whole GPU above
      const int64_t used = group.used_mib - group.releasing_mib + group.pipelined_mib;
      free_milli += std::max<int64_t>(0, memory - used) * 1000 / memory;
    }
  }
  return free_milli;
}

class ConsolidationPolicy final : public EvictionPolicy {
 public:
  ConsolidationPolicy(const CycleInputs& in, absl::string_view name) : in_(in), name_(name) {}

  [[nodiscard]] absl::string_view Name() const override { return name_; }
  [[nodiscard]] int64_t Depth() const override { return in_.options.consolidation_depth; }
  // Which pods may be moved does not depend on the queue that asks.
  [[nodiscard]] queues::QueueId ScopeOf(queues::QueueId) const override { return 0; }

  // Consolidation creates no capacity: the GPUs that are free in sum must do. (Other resources are
  // left to the search, as in KAI.)
  bool MayHelp(const Outcome& outcome) override {
    return outcome.code == verdict::Code::kInsufficientCapacity && outcome.keeper.empty() &&
           in_.state.workload(outcome.workload).preemptible &&
           outcome.step_request[model::kGpu] <= FreeGpus();
  }
  // The next cycle would bind them again where they were, and pods that run would have moved in
  // vain.
  [[nodiscard]] bool TakesFresh() const override { return false; }
  // Nothing ends for it.
  bool MayHaveVictims(const Outcome&, const state::Workload&) override { return false; }
  SearchOutcome Search(state::Transaction& txn, const SearchContext& context,
                       const SearchStep& step) override {
    return in_.search.Consolidate(txn, context, step);
  }
  [[nodiscard]] std::string Reason(const Outcome& outcome, const queues::QueueLedger&,
                                   const state::Workload&) const override {
    const state::Workload& workload = in_.state.workload(outcome.workload);
    return absl::StrCat("Moved (consolidation) for workload ",
                        model::Key(workload.ns, workload.name), " of queue ", workload.queue,
                        ": it needs capacity in one place");
  }

 private:
  int64_t FreeGpus() {
    if (!free_.has_value() || free_->first != in_.state.version()) {
      free_ = {in_.state.version(), FreeMilliGpus(in_.state)};
    }
    return free_->second;
  }

  const CycleInputs& in_;
  const absl::string_view name_;
  std::optional<std::pair<uint64_t, int64_t>> free_;  // (state version, milli-GPU)
};

}  // namespace

void Consolidate::Execute(CycleContext& context) const {
  ConsolidationPolicy policy(context.in, Name());
  EvictionPass(context, policy, Name(), /*against_budgets=*/false).Run();
}

}  // namespace fairlead::engine
