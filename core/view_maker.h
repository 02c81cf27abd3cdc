// Makes the View out of the core's parts. Internal to core.
#pragma once

#include "core/reconcile/status_updater.h"
#include "core/request_book.h"
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
  const RequestBook& requests;
  const hook::Hook& hook;
  const StatusUpdater& verdicts;
  const std::vector<engine::Waiting>& waiting;

  [[nodiscard]] View Make(absl::Time now) const;

 private:
  void AddQueues(View& view) const;
  void AddNodes(View& view) const;
  void AddWaiting(View& view) const;
};

}  // namespace fairlead::core
