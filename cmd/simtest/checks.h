// The invariants of the simulated world, each by a name that a failure tells and --without takes.
//
//   at every write of Fairlead's
//     overcommit   a binding puts no more on a node than it has: our pods, and those of others that
//                  have been there for kKnown
//     misplaced    a binding takes no pod to a node that its selector does not match, or that
//     others
//                  have tainted, or that has been cordoned or unready, for kKnown; from a node that
//                  bears Fairlead's own taint for removal, the taint is off within kReopen
//     limit        a binding takes no queue on its chain over its limit for longer than kOverLimit
//                  (evictions may be on their way), unless what decides about it changed lately
//     writers      only the holder of the Lease writes
//     terminate    nothing runs on a machine that is ended, but pods that another scheduler bound
//                  after the taint was written
//     caps         GPUs and dollars of machines stay within the caps (I6)
//     policy       no node is requested for what policy holds (I1)
//     cover        there are no more nodes on order than pods that wait for them (I3)
//   at every n-th decision (RunOptions::recount_every), and at the end
//     recount      what the program has counted equals a recount (DecisionLoop::CheckConsistency)
//     spin         it does not ask to be woken in the past again and again
//   after the last fault, while the world is calm
//     liveness     a workload that is entitled and fits into idle room starts within kPlaceWithin;
//                  one that only a machine is missing for within kBuyWithin
//     gang         no gang is half bound for longer than its grace and kGangSlack
//     storm        at most kCalmWrites writes a minute while nothing else changes (I4); the steps
//     in
//                  which an idle machine that was ready is ended follow from time alone, however
//                  many there are: each counts from its second time on
//     leader       there is one
//   at the end
//     verdict      what a waiting pod is told is true, and a pod that runs is told nothing
//     condition    a pod that waits has condition PodScheduled=False
//     view         what the program believes to run is what runs
//     purchase     machines on which nothing ever ran are few
//   always
//     process      the program does not end by itself; hang: nor does it take for ever (workers.h)
//     simulation   nothing was asked that the simulated API server cannot do
//
// A fault is over for a replica only once it may have noticed: while one lasts and kRecovery after
// it, what changed since shortly before it counts as unknown.
//
// Ownership: borrows. Thread-safety: none, one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/decision_loop.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"
#include "sim/world/cloud.h"
#include "sim/world/truth.h"

namespace fairlead::simtest {

inline constexpr absl::Duration kKnown = absl::Seconds(10);
inline constexpr absl::Duration kReopen = absl::Seconds(10);
inline constexpr absl::Duration kOverLimit = absl::Seconds(10);
inline constexpr absl::Duration kRecovery = absl::Seconds(60);
inline constexpr absl::Duration kPlaceWithin = absl::Seconds(90);
inline constexpr absl::Duration kBuyWithin = absl::Seconds(200);
inline constexpr absl::Duration kGangSlack = absl::Seconds(120);
inline constexpr int64_t kCalmWrites = 10;
inline constexpr int64_t kSpins = 500;

// Their names, sorted.
const std::vector<std::string>& InvariantNames();

struct Failure {
  std::string invariant, text;
  absl::Duration at;  // since the world began
};

struct Caps {
  bool hook = true;
  int64_t gpus = 0, micro_usd_per_hour = 0;
  absl::Duration gang_grace;
};

class Checks {
 public:
  Checks(const sim::EventQueue* time, absl::Time start, sim::world::ApiServer* server,
         const sim::world::Truth* truth, sim::world::Cloud* cloud, const Caps& caps,
         std::set<std::string> without, int64_t recount_every);

  // A fault that may keep replicas from what happens.
  void Disturb(absl::Time until);
  void ExcuseWriters(absl::Time until) { writers_excused_until_ = until; }
  // The cloud lied, or nodes were bought for what then went: purchases are judged leniently.
  void ExcusePurchases() { purchases_excused_ = true; }
  // All faults are over.
  void Settle();

  void OnDecision(const std::string& identity, const core::DecisionLoop& loop,
                  const core::StepResult& result);
  void EverySecond();
  // In the settle phase, every few seconds.
  void WhileCalm(const core::DecisionLoop* leader);
  void AtEnd(const core::DecisionLoop* leader);
  void Fail(const std::string& invariant, const std::string& text);

  // The first one.
  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }
  [[nodiscard]] const std::string& lease_holder() const { return holder_; }
  [[nodiscard]] int64_t writes() const { return writes_; }

 private:
  void OnCommit(const sim::world::ApiServer::Commit& commit);
  void OnLease(const sim::world::ApiServer::Commit& commit);
  void OnWrite(const sim::world::ApiServer::Commit& commit);
  bool IsNewStepOfAnEnd(const sim::world::ApiServer::Commit& commit);
  void OnBinding(const sim::world::PodRow& row);
  void OnRequest(const sim::world::Json& request);
  [[nodiscard]] std::string OverLimitText(const std::string& queue,
                                          const sim::world::Amounts& more) const;
  void OnTerminate(const std::string& node);
  void CheckLimits();
  void CheckReopened();
  void CheckDoubtfulRequests();
  void CheckCaps();
  void CheckLiveness();
  void CheckGangs();
  void CheckStorm();
  void NoteBindings(const core::DecisionLoop* leader);
  void CheckVerdicts();
  void CheckView(const core::DecisionLoop& leader);
  void CheckPurchases();
  [[nodiscard]] bool CanBeBought(const sim::world::Workload& workload) const;
  // What was committed before this has reached everybody.
  [[nodiscard]] absl::Time KnownSince() const;

  const sim::EventQueue* time_;
  absl::Time start_;
  sim::world::ApiServer* server_;
  const sim::world::Truth* truth_;
  sim::world::Cloud* cloud_;
  Caps caps_;
  std::set<std::string> without_;
  int64_t recount_every_;
  std::optional<Failure> failure_;

  std::string holder_;
  absl::Time held_since_, writers_excused_until_ = absl::InfinitePast();
  absl::Time disturbed_since_ = absl::InfinitePast(), disturbed_until_ = absl::InfinitePast();
  absl::Time settled_at_ = absl::InfiniteFuture();
  bool purchases_excused_ = false;
  int64_t decisions_ = 0, writes_ = 0;
  // Of the calm: since when each could start, or is half bound.
  std::map<std::string, absl::Time> fits_since_, buyable_since_, half_since_;
  std::map<std::string, absl::Time> binding_since_;  // pods whose binding the leader writes
  struct OverLimit {
    absl::Time since;
    std::string pod;
    sim::world::Amounts requests;
  };
  std::map<std::string, OverLimit> over_limit_;  // queues, since a binding
  struct Reopened {
    std::string pod, node;
    absl::Time bound_at;
  };
  std::deque<Reopened> reopened_;  // bindings to nodes behind Fairlead's own taint
  struct Doubtful {
    std::string request, workload;
    absl::Time since;
  };
  std::deque<Doubtful> doubtful_;  // requests for what seems to be above a limit
  std::deque<absl::Time> calm_writes_;
  std::set<std::string> end_steps_;  // of machines: uid and step
  absl::Time others_changed_at_ = absl::InfinitePast();
  std::map<absl::Time, int64_t> waiting_then_;  // how many pods waited, lately
};

}  // namespace fairlead::simtest
