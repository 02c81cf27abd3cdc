// The invariants about NodePools, `pool` and `disruption`; checks.h lists them with the others.
//
// A process may not have seen yet what was written a moment ago: each question is asked of all
// versions of a pool that may have been in force since `known`.
//
// Ownership: borrows. Thread-safety: none, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"
#include "sim/world/cloud.h"
#include "sim/world/truth.h"

namespace fairlead::simtest {

// hook.unneededAfter of these worlds.
inline constexpr absl::Duration kUnneededAfter = absl::Seconds(30);
// A NodePool is told whether it is in force within this.
inline constexpr absl::Duration kPoolTold = absl::Seconds(60);

class PoolChecks {
 public:
  using Fail = std::function<void(const std::string& invariant, const std::string& text)>;
  // `empties`: what the configuration says for pools that do not say whether nodes are emptied.
  PoolChecks(const sim::EventQueue* time, sim::world::ApiServer* server,
             const sim::world::Truth* truth, sim::world::Cloud* cloud, bool hook, bool empties,
             Fail fail)
      : time_(time),
        server_(server),
        truth_(truth),
        cloud_(cloud),
        hook_(hook),
        empties_(empties),
        fail_(std::move(fail)) {}

  // A NodeRequest was created by Fairlead.
  void OnRequest(const sim::world::Json& request, absl::Time known);
  // What a pod was, or is now.
  void NoteUse(const sim::world::PodFacts& pod);
  // Any change of a Node. `judged`: no fault has lasted for long; `timed`: every clock has always
  // been right.
  void OnNode(const sim::world::ApiServer::Commit& commit, absl::Time known, bool judged,
              bool timed);
  // `calm_since`: no fault has lasted since then.
  void WhileCalm(absl::Time calm_since);

 private:
  using Machine = sim::world::Cloud::Machine;
  struct Requested {
    std::string pool;
    absl::Time at, known;
  };
  // When nodes of a pool may go.
  struct Rules {
    bool empties = false;
    absl::Duration wait;
    std::optional<int64_t> at_once;
  };
  void CheckCap(const std::string& pool, const std::string& request, absl::Time known);
  void CheckBorn(const sim::world::Json& node);
  void CheckRemoval(const sim::world::Json& node, absl::Time known, bool timed);
  void CheckPace(const std::string& pool, const std::string& node, const std::vector<Rules>& rules);
  [[nodiscard]] std::vector<Rules> RulesOf(const std::string& pool, absl::Time known) const;
  // The machine that has the node now; null if none has.
  [[nodiscard]] const Machine* MachineOf(const sim::world::Json& node) const;
  // It goes because nothing needs it, or its pods have room elsewhere, and for no other reason.
  [[nodiscard]] bool GoesByRules(const sim::world::Json& node, const Machine& machine) const;

  const sim::EventQueue* time_;
  sim::world::ApiServer* server_;
  const sim::world::Truth* truth_;
  sim::world::Cloud* cloud_;
  const bool hook_, empties_;
  const Fail fail_;
  std::map<std::string, Requested> requested_;  // by uid of the request
  // By node: a pod that keeps it was there, and had been for long enough to be known.
  std::map<std::string, absl::Time> last_used_;
};

}  // namespace fairlead::simtest
