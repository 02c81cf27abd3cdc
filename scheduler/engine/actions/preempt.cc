#include "scheduler/engine/actions/preempt.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/actions/eviction_pass.h"

namespace fairlead::engine {
namespace {

class PreemptionPolicy final : public EvictionPolicy {
 public:
  explicit PreemptionPolicy(const CycleInputs& in) : in_(in) {}

  [[nodiscard]] absl::string_view Name() const override { return "preempt"; }
  [[nodiscard]] int64_t Depth() const override { return in_.options.preempt_depth; }
  // A limit may be lifted by evicting pods that are charged to it.
  bool MayHelp(const Outcome& outcome) override {
    return outcome.code == verdict::Code::kInsufficientCapacity ||
           outcome.code == verdict::Code::kQueueLimitReached;
  }
  // No pod is evicted for a workload that would end up in guaranteed quota of other queues.
  bool MayHaveVictims(const Outcome& outcome, const state::Workload& workload) override {
    return outcome.keeper.empty() && in_.search.MayPreempt(outcome.leaf, workload.priority);
  }
  SearchOutcome Search(state::Transaction& txn, const SearchContext& context,
                       const SearchStep& step) override {
    return in_.search.Preempt(txn, context, step);
  }
  [[nodiscard]] std::string Reason(const Outcome& outcome, const queues::QueueLedger&,
                                   const state::Workload& victim) const override {
    const state::Workload& workload = in_.state.workload(outcome.workload);
    return absl::StrCat("Evicted (preempt) for workload ", model::Key(workload.ns, workload.name),
                        " of queue ", workload.queue, ": its priority is ", workload.priority,
                        ", and that of ", model::Key(victim.ns, victim.name), " in the same queue ",
                        victim.priority);
  }

 private:
  const CycleInputs& in_;
};

}  // namespace

void Preempt::Execute(CycleContext& context) const {
  if (against_budgets_ && context.spared.empty()) return;
  PreemptionPolicy policy(context.in);
  EvictionPass(context, policy, Name(), against_budgets_).Run();
}

}  // namespace fairlead::engine
