// Makes the View out of the core's parts. Internal to core.
#pragma once

#include "absl/functional/function_ref.h"
#include "autoscale-hook/hook.h"
#include "core/reconcile/status_updater.h"
#include "core/view.h"
#include "queues/tree.h"
#include "scheduler/engine/engine.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

HistoryRow HistoryOf(const engine::Engine& engine);

struct ViewMaker {
  const state::ClusterState& state;
  const queues::QueueTree& tree;
  const engine::Engine& engine;
  const hook::Hook& hook;
  const StatusUpdater& verdicts;
  const std::vector<engine::Waiting>& waiting;

  // `waiting` stands for no workloads behind its entries.
  [[nodiscard]] View Make(absl::Time now) const;
  // O(queues + nodes + machines + entries of `waiting`).
  [[nodiscard]] Totals Count() const;

 private:
  [[nodiscard]] std::vector<QueueRow> Queues() const;
  void AddNodes(View& view) const;
  void AddWaiting(View& view) const;
  // Of `workloads` that wait as the entry does.
  void AddUnschedulable(const engine::Waiting& entry, int64_t workloads, Totals& totals) const;
  // use(request) of each machine that costs money.
  void ForEachHeld(absl::FunctionRef<void(const model::NodeRequest&)> use) const;
};

}  // namespace fairlead::core
