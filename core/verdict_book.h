// Which verdicts stand on the API server, and which writes bring it up to date: on a change of the
// hash at once, of passing numbers (position, node counts) at most once per refresh interval, one
// write a gang where a PodGroup exists, and none while nothing changes (design section 4).
//
// Thread-safety: the owner's thread. Complexity: O(waiting) a step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "scheduler/engine/engine.h"
#include "scheduler/model/action.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::core {

class VerdictBook {
 public:
  VerdictBook(const state::ClusterState& state, absl::Duration refresh, bool hook_on,
              bool emit_events)
      : state_(state), refresh_(refresh), hook_on_(hook_on), emit_events_(emit_events) {}

  struct Current {
    verdict::Verdict verdict;
    absl::Time since;
    std::vector<std::string> pods;  // "namespace/name"
  };

  // `waiting` is everything that waits now. Appends the writes that are due.
  void Update(const std::vector<engine::Waiting>& waiting, absl::Time now,
              std::vector<model::Action>& actions);
  // A write of ours failed and has to be made again.
  void WriteFailed(const std::string& ns, const std::string& name, bool group);

  // Next time at which a passing number may be written; infinite future if none is stale.
  [[nodiscard]] absl::Time wake_at() const { return wake_at_; }
  // By workload ("namespace/name"; groups and pods apart), what was last found.
  [[nodiscard]] const std::vector<std::pair<state::WorkloadId, Current>>& current() const {
    return current_;
  }

 private:
  struct Written {
    std::string hash;
    std::string soft;       // what the hash leaves out
    std::string nominated;
    absl::Time at = absl::InfinitePast();
    verdict::Code code = verdict::Code::kNone;
    absl::Time since = absl::InfinitePast();
    uint64_t round = 0;  // last Update that found it waiting
  };
  [[nodiscard]] std::string KeyOf(const state::Workload& workload) const;
  void WriteGroup(const state::Workload& workload, const engine::Waiting& waiting,
                  std::vector<model::Action>& actions) const;
  void WritePod(const state::PodRecord& pod, const engine::Waiting& waiting,
                const std::string& nominated, std::vector<model::Action>& actions) const;
  void Clear(std::vector<model::Action>& actions);

  const state::ClusterState& state_;
  const absl::Duration refresh_;
  const bool hook_on_;
  const bool emit_events_;
  absl::flat_hash_map<std::string, Written> written_;
  std::vector<std::pair<state::WorkloadId, Current>> current_;
  absl::Time wake_at_ = absl::InfiniteFuture();
  uint64_t round_ = 0;
};

}  // namespace fairlead::core
