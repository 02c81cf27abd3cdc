// What becomes of the pods of a node that the hook would empty
// (autoscale-hook/machines/evacuation.h).
//
// Pods may be moved if a controller makes others in their place, they are placed by this program,
// no annotation keeps them (do-not-disrupt, safe-to-evict), PodDisruptionBudgets have something
// left for all of them, what is left of their gang keeps its minimum (or all of the gang's pods are
// moved), and no workload under the same top queue waits: in the moved pod's stead it could start.
// The room that is kept for pods which are not there (headroom.h) is no room for them.
//
// Ownership: borrows all. Thread-safety: the owner's thread; for one step of the hook.
// Complexity: OccupantsOf is O(pods of the node), FindRoom O(pods x nodes) filters, FitOn O(pods),
// kMostQuestions in all.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/machines/evacuation.h"
#include "core/headroom.h"
#include "queues/tree.h"
#include "scheduler/engine/engine.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class EngineEvacuation final : public hook::Evacuation {
 public:
  static constexpr int64_t kMostQuestions = 300'000;
  // From an eviction until the pod runs again.
  static constexpr absl::Duration kRestart = absl::Minutes(2);

  // `waiting`: after the last cycle.
  EngineEvacuation(const state::ClusterState& state, engine::Engine& engine,
                   const queues::QueueTree& tree, const std::vector<engine::Waiting>& waiting,
                   const Headroom& headroom, absl::Time now)
      : state_(state),
        engine_(engine),
        tree_(tree),
        waiting_(waiting),
        headroom_(headroom),
        now_(now) {}

  [[nodiscard]] hook::Occupants OccupantsOf(const std::string& node) override;
  [[nodiscard]] bool FindRoom(const std::vector<std::string>& nodes) override;
  [[nodiscard]] model::ResourceList RequestsOf(const std::vector<std::string>& nodes) override;
  [[nodiscard]] bool FitOn(const std::vector<std::string>& nodes, const model::Node& node) override;

  // A pod that keeps the node: it has to go before the node is empty.
  [[nodiscard]] static bool Stays(const state::PodRecord& pod) {
    return !pod.daemon && state::HoldsNode(pod.status);
  }

 private:
  // The pods that keep the nodes, large ones first; none: one of them does not run. `leaving`: the
  // nodes.
  std::optional<std::vector<state::PodId>> PodsOf(const std::vector<std::string>& names,
                                                  std::set<state::NodeId>& leaving) const;
  // Empty: none.
  [[nodiscard]] std::string WhyNotMoved(const state::PodRecord& pod);
  [[nodiscard]] bool BreaksGang(const std::vector<state::PodId>& pods) const;
  [[nodiscard]] std::string TopOf(const std::string& queue) const;
  [[nodiscard]] absl::Duration LostWork(const state::PodRecord& pod,
                                        const state::NodeInfo& node) const;

  const state::ClusterState& state_;
  engine::Engine& engine_;
  const queues::QueueTree& tree_;
  const std::vector<engine::Waiting>& waiting_;
  const Headroom& headroom_;
  const absl::Time now_;
  std::optional<std::set<std::string>> busy_tops_;  // top queues under which something waits
  int64_t questions_ = 0;
};

}  // namespace fairlead::core
