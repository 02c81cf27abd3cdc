// A small world for the invariants of the hook: an API server with slow and lost writes, a provider
// with delays, refusals and lost replies, an engine with a stale view, users, and restarts at any
// step. After every event the invariants are checked against the world's own state, which the hook
// never sees; what does not hold fails the running test.
//
// Assumptions about the adapters, as documented: calls for one request are carried out in order,
// and writes in flight at a crash have happened or not before the next process lists the objects.
//
// Thread-safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/hook.h"
#include "autoscale-hook/hook_testing.h"

namespace fairlead::hook::testing {

class PropertyWorld {
 public:
  // `moves`: nodes with pods are emptied, and replaced by cheaper ones.
  PropertyWorld(uint64_t seed, bool caps, bool moves = false);

  void Run(int steps);
  // Nothing comes any more, and pods end.
  void Lull(int steps);
  // No faults any more.
  void Calm();
  void EndAllJobs() { jobs_.clear(); }
  void ExpectAllRunning();
  void ExpectNothingLeft();
  // I4: if nothing changed, nothing is done.
  void ExpectQuiet();

  int bought = 0, crashes = 0, removed = 0, refused = 0, whole = 0, replacing = 0, moved = 0;

 private:
  using Phase = model::NodeRequestPhase;

  struct ApiNode {
    std::string uid;
    bool ready = false, tainted = false;
    absl::Time ready_at = absl::InfiniteFuture();
  };
  struct CloudMachine {
    int64_t gpus = 0, price = 0;
    absl::Time registers_at;
    bool registered = false;
  };
  struct Job {
    int64_t pods = 1;
    std::map<std::string, int64_t> bound;  // node -> pods
    [[nodiscard]] int64_t Waiting() const {
      int64_t n = pods;
      for (const auto& [node, count] : bound) n -= count;
      return n;
    }
  };
  class Rooms;

  // ---- users (property_world.cc)
  int64_t Pick(int64_t low, int64_t high) { return random_.Between(low, high); }
  bool Chance(int percent) { return Pick(1, 100) <= percent; }
  bool Fault(int percent) { return faults_ && Chance(percent); }
  void Users();
  void EndOnePod();
  std::string Describe();

  // ---- the provider and the API server (property_world.cc)
  void KillMachine(std::string name);
  void Advance();
  void Deliver(const model::Action& action);
  void DeliverCreate(const model::CreateNodeRequest& create);
  void DeliverStatus(const model::UpdateNodeRequestStatus& update);
  void DeliverDelete(const model::DeleteNodeRequest& erase);
  void DeliverTaint(const model::SetNodeTaint& taint);
  void DeliverLaunch(const model::LaunchNode& launch);
  void DeliverTerminate(const model::TerminateNode& terminate);
  void DeliverList();
  // Nodes have no provider ids here.
  [[nodiscard]] ProviderCall CallOf(const std::string& name, bool launch) const;
  static std::string Subject(const model::Action& action);
  void Crash();

  // ---- the engine (property_world_engine.cc)
  void Look();
  void Tick();
  [[nodiscard]] int64_t GpusOf(const model::NodeRequest& request) const;
  [[nodiscard]] int64_t BoundOn(const std::string& node) const;
  [[nodiscard]] bool IsClosed(const std::string& name) const;
  // Places what fits; returns the pipelined pods and the rest.
  struct Placed {
    std::map<std::string, int64_t> promised;
    std::set<std::string> ordered;
    Demand demand;
  };
  Placed Place();
  // The same for one job. `ready`, `coming`: what is free, by node.
  void PlaceJob(const std::string& name, Job& job, std::map<std::string, int64_t>& ready,
                std::map<std::string, int64_t>& coming, Placed& placed);
  [[nodiscard]] std::vector<NodeUse> UsesOf(const Placed& placed) const;
  StepOutput Step(bool buy);
  void NoteServices(const StepOutput& out, const Demand& demand);
  void NotePurchases(const StepOutput& out);
  // Pods of emptied nodes are evicted, and wait again.
  void Empty(const StepOutput& out);

  // ---- the books (property_world_engine.cc)
  void CheckStepAgain(StepInput input, const StepOutput& out, const Demand& demand);
  void CheckRemovals(const StepOutput& out);
  void CheckPurchases(const StepOutput& out, const Demand& demand);
  void CheckCaps();

  static constexpr int64_t kUnset = int64_t{1} << 40;
  Random random_;
  bool faults_;
  HookOptions options_;
  Catalog catalog_;
  ArithmeticPlacement placement_;
  std::unique_ptr<Evacuation> evacuation_;
  std::unique_ptr<Hook> hook_;
  absl::Time now_ = absl::FromUnixSeconds(1800000000);
  std::shared_ptr<const model::PodSpec> pod_ = Spec(1000, 1, 1);
  int uids_ = 0, job_count_ = 0;
  std::map<std::string, model::NodeRequest> requests_, seen_requests_, unseen_;
  std::map<std::string, std::string> shown_;
  std::map<std::string, std::set<std::string>> written_;  // by set, names of requests
  std::map<std::string, ApiNode> nodes_, seen_nodes_;
  testing::NodeVersions versions_;
  std::map<std::string, CloudMachine> machines_;
  std::map<std::string, Job> jobs_;
  std::map<std::string, int64_t> free_coming_;
  std::set<std::string> withdrawn_;
  std::set<int64_t> unservable_;  // kinds, by pods: they are not charged
  std::deque<std::pair<absl::Time, model::Action>> flying_;
  uint64_t list_ = 0;  // of nodes, in flight; 0: none
  absl::Time list_at_ = absl::InfinitePast();
};

}  // namespace fairlead::hook::testing
