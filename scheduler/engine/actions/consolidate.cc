#include "scheduler/engine/actions/consolidate.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/actions/eviction_pass.h"
#include "scheduler/state/gpu_devices.h"

namespace fairlead::engine {
namespace {

// What is idle or being released, over all nodes.
struct FreeInSum {
  // GPUs on nodes that pods may go to, shares included, in thousandths.
  int64_t milli_gpus = 0;
  // The rest, also of nodes on order; by ResourceIndex. (GPUs are no sum of whole ones: pods that
  // share GPUs and move together free some.)
  std::vector<int64_t> amounts;
};

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

std::vector<int64_t> FreeAmounts(const state::ClusterState& state) {
  std::vector<int64_t> free(state.resource_names().size(), 0);
  for (const auto& [name, id] : state.nodes_by_name()) {
    const state::NodeInfo& node = state.node(id);
    if (!node.exists) continue;
    for (size_t r = 0; r < node.allocatable.size() && r < free.size(); ++r) {
      const int64_t here = node.Future(static_cast<model::ResourceIndex>(r));
      free[r] = model::SaturatingAdd(free[r], std::max<int64_t>(0, here));
    }
  }
  return free;
}

class ConsolidationPolicy final : public EvictionPolicy {
 public:
  ConsolidationPolicy(const CycleInputs& in, absl::string_view name) : in_(in), name_(name) {}

  [[nodiscard]] absl::string_view Name() const override { return name_; }
  [[nodiscard]] int64_t Depth() const override { return in_.options.consolidation_depth; }
  // Which pods may be moved does not depend on the queue that asks.
  [[nodiscard]] queues::QueueId ScopeOf(queues::QueueId) const override { return 0; }

  // Consolidation creates no capacity: what is free in sum must do. (KAI looks at GPUs alone, and
  // leaves the rest to the search.)
  bool MayHelp(const Outcome& outcome) override {
    return outcome.code == verdict::Code::kInsufficientCapacity && outcome.keeper.empty() &&
           in_.state.workload(outcome.workload).preemptible &&
           in_.state.workload(outcome.workload).IsMovable() &&
           outcome.step_request[model::kGpu] <= Free().milli_gpus;
  }
  // The next cycle would bind them again where they were, and pods that run would have moved in
  // vain.
  [[nodiscard]] bool TakesFresh() const override { return false; }
  // Nothing ends for it.
  bool MayHaveVictims(const Outcome&, const state::Workload&) override { return false; }
  SearchOutcome Search(state::Transaction& txn, const SearchContext& context,
                       const SearchStep& step) override {
    if (!FitsInSum(step.step.pods)) return {};
    SearchOutcome outcome = in_.search.Consolidate(txn, context, step);
    // Otherwise nothing has changed.
    if (outcome.found) free_.reset();
    return outcome;
  }
  void Evicts(const std::vector<state::PodId>& victims) override { in_.moves.Add(victims); }
  [[nodiscard]] std::string Reason(const Outcome& outcome, const queues::QueueLedger&,
                                   const state::Workload&) const override {
    const state::Workload& workload = in_.state.workload(outcome.workload);
    return absl::StrCat("Moved (consolidation) for workload ",
                        model::Key(workload.ns, workload.name), " of queue ", workload.queue,
                        ": it needs capacity in one place");
  }

 private:
  const FreeInSum& Free() {
    if (!free_.has_value()) free_ = {FreeMilliGpus(in_.state), FreeAmounts(in_.state)};
    return *free_;
  }
  // Every pod that moves takes as much as it leaves, so what the pods request must be free already.
  bool FitsInSum(const std::vector<state::PodId>& pods) {
    const std::vector<int64_t>& free = Free().amounts;
    model::Resources wanted;
    for (const state::PodId pod : pods) wanted += in_.state.class_of(pod).requests;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto r = static_cast<model::ResourceIndex>(i);
      const int64_t there = i < free.size() ? free[i] : 0;
      if (r != model::kGpu && wanted[r] > there && in_.framework.ChecksAmountOf(in_.state, r)) {
        return false;
      }
    }
    return true;
  }

  const CycleInputs& in_;
  const absl::string_view name_;
  std::optional<FreeInSum> free_;  // as things are
};

}  // namespace

void Consolidate::Execute(CycleContext& context) const {
  ConsolidationPolicy policy(context.in, Name());
  EvictionPass(context, policy, Name(), /*against_budgets=*/false).Run();
}

}  // namespace fairlead::engine
