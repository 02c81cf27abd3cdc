#include "scheduler/engine/actions/consolidate.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/actions/eviction_pass.h"
#include "scheduler/state/parts.h"

namespace fairlead::engine {
namespace {

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
           in_.state.workload(outcome.workload).IsMovable() && MayFitParts(outcome.step_request);
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
  const state::FreeInSum& Free() {
    if (!free_.has_value()) free_ = state::FreeInSumOf(in_.state);
    return *free_;
  }
  // Of what pods take parts of. It is no sum of whole ones: pods that share a device and move
  // together free some.
  bool MayFitParts(const model::Resources& charge) {
    for (size_t i = 0; i < charge.size(); ++i) {
      const auto r = static_cast<model::ResourceIndex>(i);
      if (state::HasParts(r) && charge[r] > Free()[r]) return false;
    }
    return true;
  }
  // Every pod that moves takes as much as it leaves, so what the pods request must be free already.
  bool FitsInSum(const std::vector<state::PodId>& pods) {
    model::Resources wanted;
    for (const state::PodId pod : pods) wanted += in_.state.class_of(pod).requests;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto r = static_cast<model::ResourceIndex>(i);
      if (!state::HasParts(r) && wanted[r] > Free()[r] &&
          in_.framework.ChecksAmountOf(in_.state, r)) {
        return false;
      }
    }
    return true;
  }

  const CycleInputs& in_;
  const absl::string_view name_;
  std::optional<state::FreeInSum> free_;  // as things are
};

}  // namespace

void Consolidate::Execute(CycleContext& context) const {
  ConsolidationPolicy policy(context.in, Name());
  EvictionPass(context, policy, Name(), /*against_budgets=*/false).Run();
}

}  // namespace fairlead::engine
