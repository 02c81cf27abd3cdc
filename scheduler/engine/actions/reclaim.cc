#include "scheduler/engine/actions/reclaim.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "queues/reclaim.h"
#include "scheduler/engine/actions/eviction_pass.h"
#include "scheduler/model/scarcity.h"
#include "scheduler/verdict/text.h"

namespace fairlead::engine {
namespace {

class ReclaimPolicy final : public EvictionPolicy {
 public:
  explicit ReclaimPolicy(const CycleInputs& in) : in_(in) {}

  [[nodiscard]] absl::string_view Name() const override { return "reclaim"; }
  [[nodiscard]] int64_t Depth() const override { return in_.options.reclaim_depth; }
  // A limit may be lifted by evicting pods that are charged to it.
  bool MayHelp(const Outcome& outcome) override {
    return outcome.code == verdict::Code::kInsufficientCapacity ||
           outcome.code == verdict::Code::kQueueLimitReached;
  }
  bool MayHaveVictims(const Outcome& outcome, const state::Workload& workload) override;
  SearchOutcome Search(state::Transaction& txn, const SearchContext& context,
                       const SearchStep& step) override {
    return in_.search.Reclaim(txn, context, step);
  }
  [[nodiscard]] std::string Reason(const Outcome& outcome, const queues::QueueLedger& before,
                                   const state::Workload& victim) const override;

 private:
  const CycleInputs& in_;
  // Answers of MayHaveVictims() for equal steps of a leaf queue, preemptible or not.
  std::map<std::tuple<queues::QueueId, bool, StepKind>, bool> answers_;
};

// No pod is evicted for a workload that would end up in guaranteed quota of other queues.
bool ReclaimPolicy::MayHaveVictims(const Outcome& outcome, const state::Workload& workload) {
  if (!outcome.keeper.empty()) return false;
  const auto [answer, added] = answers_.try_emplace(
      {outcome.leaf, workload.preemptible, KindOf(in_.state, workload, outcome.step)}, false);
  if (added) {
    const queues::ReclaimContext rights =
        ReclaimRights(in_.options, in_.tree, in_.tracker.ledger(), in_.shares);
    answer->second =
        in_.search.MayReclaim(rights, {outcome.leaf, outcome.step_request, workload.preemptible});
  }
  return answer->second;
}

// "Evicted (reclaim) for workload ns/x of queue prod: GPUs held/fair share: queue research 6/4,
// queue prod 1/3". The queues are those just below the common ancestor, whose shares reclaim
// compares.
std::string ReclaimPolicy::Reason(const Outcome& outcome, const queues::QueueLedger& before,
                                  const state::Workload& victim) const {
  const state::Workload& workload = in_.state.workload(outcome.workload);
  std::string text =
      absl::StrCat("Evicted (reclaim) for workload ", model::Key(workload.ns, workload.name),
                   " of queue ", workload.queue);
  const std::optional<queues::QueueId> leaf = in_.tree.Find(victim.queue);
  if (!leaf.has_value()) return text;
  const auto [giver, taker] = in_.tree.Diverging(*leaf, outcome.leaf);
  // The resource of which the giver has too much, if the workload requests it.
  const auto told = std::find_if(
      model::kScarcestFirst.begin(), model::kScarcestFirst.end(), [&](model::ResourceIndex one) {
        const bool over = before.allocated(giver, one) > in_.shares.Of(giver)[one];
        return outcome.step_request[one] > 0 && (over || one == model::kScarcest);
      });
  const model::ResourceIndex r = told == model::kScarcestFirst.end() ? model::kScarcest : *told;
  const std::string& name = in_.tree.names().Name(r);
  const auto held_of_share = [&](queues::QueueId queue) {
    return absl::StrCat("queue ", in_.tree.Name(queue), " ",
                        model::FormatAmount(name, before.allocated(queue, r)), "/",
                        model::FormatAmount(name, in_.shares.Of(queue)[r]));
  };
  absl::StrAppend(&text, ": ", verdict::ResourceNoun(name),
                  " held/fair share: ", held_of_share(giver), ", ", held_of_share(taker));
  return text;
}

}  // namespace

void Reclaim::Execute(CycleContext& context) const {
  if (against_budgets_ && context.spared.empty()) return;
  ReclaimPolicy policy(context.in);
  EvictionPass(context, policy, Name(), against_budgets_).Run();
}

}  // namespace fairlead::engine
