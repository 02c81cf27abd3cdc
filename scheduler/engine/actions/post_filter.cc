#include "scheduler/engine/actions/post_filter.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/actions/eviction_pass.h"
#include "scheduler/framework/scheduling_points.h"

namespace fairlead::engine {
namespace {

class PostFilterPolicy final : public EvictionPolicy {
 public:
  PostFilterPolicy(const CycleInputs& in, PostFilter::Turn turn) : in_(in), turn_(turn) {}

  [[nodiscard]] absl::string_view Name() const override { return "postFilter"; }
  [[nodiscard]] int64_t Depth() const override { return in_.options.preempt_depth; }
  [[nodiscard]] bool MayServe(const framework::Framework&,
                              const state::PodClass& pod_class) const override {
    return !PluginsOf(pod_class).empty();
  }
  bool MayHelp(const Outcome& outcome) override {
    return outcome.code == verdict::Code::kInsufficientCapacity && outcome.step.pods.size() == 1;
  }
  bool MayHaveVictims(const Outcome& outcome, const state::Workload&) override {
    return outcome.keeper.empty();
  }
  SearchOutcome Search(state::Transaction& txn, const SearchContext& context,
                       const SearchStep& step) override {
    return in_.search.PostFilter(txn, context, step,
                                 PluginsOf(in_.state.class_of(step.step.pods.front())), plugin_);
  }
  [[nodiscard]] std::string Reason(const Outcome& outcome, const queues::QueueLedger&,
                                   const state::Workload&) const override {
    const state::Workload& workload = in_.state.workload(outcome.workload);
    return absl::StrCat("Evicted (postFilter) for workload ",
                        model::Key(workload.ns, workload.name), " of queue ", workload.queue, ": ",
                        plugin_, " proposed it");
  }

 private:
  [[nodiscard]] const std::vector<const framework::PostFilterPlugin*>& PluginsOf(
      const state::PodClass& pod_class) const {
    const framework::Framework::PostFilters& plugins = in_.framework.PostFiltersOf(pod_class);
    return turn_ == PostFilter::Turn::kFirst ? plugins.first : plugins.last;
  }

  const CycleInputs& in_;
  const PostFilter::Turn turn_;
  std::string plugin_;  // of the last search that found something
};

}  // namespace

absl::string_view PostFilter::Name() const {
  if (turn_ == Turn::kFirst) return against_budgets_ ? "postFilter against budgets" : "postFilter";
  return against_budgets_ ? "last postFilter against budgets" : "last postFilter";
}

void PostFilter::Execute(CycleContext& context) const {
  if (against_budgets_ && context.spared.empty()) return;
  PostFilterPolicy policy(context.in, turn_);
  EvictionPass(context, policy, Name(), against_budgets_).Run();
}

}  // namespace fairlead::engine
