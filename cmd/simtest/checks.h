// The invariants of the simulated world, each by a name that a failure tells and --without takes.
//
//   at every write of Fairlead's
//     overcommit   a binding puts no more on a node than it has: our pods, and those of others that
//                  have been there for kKnown
//     misplaced    a binding takes no pod to a node that its selector or node affinity does not
//                  match, or that others have tainted, or that has been cordoned or unready, for
//                  kKnown; from a node that has Fairlead's own taint for removal, the taint is off
//                  within kReopen; nor to a pod that anti-affinity keeps it from, of either side;
//                  required pod affinity and hard spread hold with all that was bound within
//                  kKnown
//     share        pods that share a GPU hold no more than one GPU
//     devices      no device is allocated to two claims; what a claim is allocated exists on the
//                  node and is what the claim selects, unless slices of the node or the class
//                  changed within kKnown
//     claims       no pod is bound before all of its claims are allocated on the node and reserved
//                  for the pod; no claim is deallocated under a pod that is bound
//     volumes      no pod is bound before all of its claims are, nor to a node that one of its
//                  volumes does not suit, or that has as many volumes attached as it may; a claim
//                  of mode ReadWriteOncePod has one pod that is bound; no volume is given to two
//                  claims, no claim two volumes, none another node than the one selected for it
//     limit        a binding takes no queue on its chain over its limit for longer than kOverLimit
//                  (evictions may be on their way), unless what decides about it changed lately
//     writers      only the holder of the Lease writes
//     shard        nothing is written of another shard: its pods, groups, queues and nodes, and
//                  what has been of it since before kKnown
//     terminate    nothing is launched after its end was asked for. Nothing runs on a machine that
//                  is ended, but pods that another scheduler bound after the taint was written; its
//                  request says Draining, Failed or Gone before, or has another machine
//     caps         nodes, GPUs and dollars of machines stay within the caps (I6)
//     set          no machine of a gang is ordered before the requests of all of its machines were
//                  written
//     rate         nodes are not provisioned faster than the guard's rates, for pods of one shape
//                  and for all pods
//     cost         machines for lone pods of one GPU each that come within moments cost at most
//                  kDear percent of the cheapest that have as many GPUs
//     leak         what is paid for has a request or a node; while it is calm no machine is idle,
//                  and no request outlives its machine, for kLeak; a record of a machine that did
//                  not help may
//     eviction     the workload that a pod is told to be evicted for waits, or did a moment ago; a
//                  gang that is evicted as too small is, or was kServed ago
//     move         no pod is moved by consolidation within kMovable of its start, twice that for
//                  each move of its group before it (by a process whose clock was never set)
//     stale        one that has heard nothing of pods or nodes for kBlind evicts and buys nothing
//     policy       no node is requested for what policy holds (I1)
//     pool         a node is requested from a NodePool that there is and that is right, of a type
//                  and in a zone that it permits, and not beyond its maxNodes; without a pool only
//                  while there is none. A node has the labels and taints that its pool had since
//                  the node was requested. While it is calm a NodePool is told within kPoolTold
//                  whether it is in force
//     disruption   no node gets the taint for removal against its pool's consolidationPolicy,
//                  consolidateAfter or budgets, unless the cloud takes the machine back, a user
//                  deleted the request, or it is one machine too many
//     cover        there are no more nodes on order than pods that wait for them (I3)
//   at every n-th decision (RunOptions::recount_every), and at the end
//     recount      what the program has counted equals a recount (DecisionLoop::CheckConsistency)
//     spin         it does not ask to be woken in the past again and again
//   after the last fault, while the world is calm
//     liveness     a workload that is entitled and fits into idle room starts within kPlaceWithin;
//                  one that only a machine is missing for within kBuyWithin; a sub-group of which
//                  nothing runs counts as a workload, if one of them has to run
//     gang         no gang is half bound for longer than its grace and kGangSlack; at any time:
//                  nothing is bound alone that a pod-grouper groups within kGrouped of its
//                  creation, if there was a PodGroup before; nothing is bound alone that its owner
//                  says is of a gang; a gang whose pods were grouped before they were bound has
//                  its minimum within kStarted
//     claims       no claim is allocated for longer than kClaimKept while all pods that it is
//                  reserved for wait or are gone
//     storm        at most kCalmWrites writes a minute while nothing else changes (I4), nor a
//                  machine is given up, or one requested because the time for it has come (what
//                  is purchased again and again, rate and purchase find); what a change makes
//                  untrue is written at a pace; the steps in which an idle machine that was ready
//                  is ended follow from time alone, however many there are: each counts from its
//                  second time on. At any time: at most kCallsAMinute calls of the cloud about one
//                  machine, and no verdict of a group is written because its position has changed,
//                  or what nodes lack beside a cap
//     parts        no sub-group of a gang is half bound for longer than its grace and kGangSlack;
//                  one that is started is complete within kStarted
//     churn        at most kCalmEvictions evictions of one job's pods for another job in each time
//                  of kChurn, and kManyEvictions for all; and for each of its pods so many as that
//                  bound says, because a workload whose binding is refused evicts again after a
//                  pause that doubles (engine/eviction_backoff.h)
//     leader       there is one, and it is not one whose deciding thread has stood still for kHung
//                  while nothing else was wrong
//     grant        no guest is told a node that has taken no pods for kKnown
//     suspension   suspension_checks.h: at any time what is written to Jobs; none is suspended for
//                  longer than kSuspended
//     told         a group that waits, and does not share GPUs, has a code within kTold, at any
//                  time
//     preempt      a lone pod that may evict lone pods of lower priority in its queue, and would
//                  have room then, starts within kPreemptWithin
//     reclaim      a workload for whole GPUs that stays within the quotas of its queue, and would
//                  have room on one node if preemptible pods left that no other queue's quota
//                  keeps, does not wait for kReclaimWithin in which nothing is bound or evicted
//   every few seconds while no fault lasts or did until kNoticed ago, and at the end
//     verdict      what a waiting pod is told is true, and a pod that runs is told nothing; one
//                  that no node could help is not told that it waits for capacity
//     condition    a pod that waits has condition PodScheduled=False
//     view         what the program believes to run is what runs, and where
//     kai-status   what Fairlead writes in the place of KAI's controllers is what a recount of
//                  the API server's objects gives, within kCounted and the pace of these writes;
//                  the pace is kept; and at any time each is for one object, by its uid, and none
//                  is written unless the configuration says so (kai_status_checks.h)
//     charge       pods count in the queues under which they were started or wait, and as what they
//                  were started without their PodGroup; queues in sums (belief_checks.h)
//   at the end
//     purchase     machines on which nothing ever ran are few; nor are machines provisioned for
//                  pods of a job again that did not help such pods kUseless times (always)
//   of the process (process_checks.h)
//     queues       what it holds in memory is bounded by the objects that there are
//     reload       it takes files that can be used within kReadWithin, and no others
//     retry        a write that was answered 429 is not repeated before its Retry-After
//     stop         told to stop, it has ended within kStopWithin, and its lease is free if nothing
//                  was wrong
//   always
//     process      the program does not end by itself, unless it has lost the lease; hang: nor does
//                  it take for ever (workers.h)
//     simulation   nothing was asked that the simulated API server cannot do
//
// A fault is over for a replica only once it may have noticed: while one lasts and kRecovery after
// it, what changed since shortly before it counts as unknown.
//
// Ownership: borrows. Thread-safety: none, one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cmd/simtest/device_checks.h"
#include "cmd/simtest/kai_status_checks.h"
#include "cmd/simtest/machine_checks.h"
#include "cmd/simtest/pool_checks.h"
#include "cmd/simtest/shard_checks.h"
#include "cmd/simtest/suspension_checks.h"
#include "cmd/simtest/volume_checks.h"
#include "core/decision_loop.h"
#include "sim/event_queue.h"
#include "sim/world/api_server.h"
#include "sim/world/cloud.h"
#include "sim/world/truth.h"

namespace fairlead::simtest {

inline constexpr absl::Duration kKnown = absl::Seconds(10);
inline constexpr absl::Duration kReopen = absl::Seconds(10);
inline constexpr absl::Duration kOverLimit = absl::Seconds(10);
inline constexpr absl::Duration kOverLimitPaced = absl::Seconds(40);  // evictions one a second
// With a search budget for hardly more than one search a second.
inline constexpr absl::Duration kSearched = absl::Seconds(60);
inline constexpr absl::Duration kRecovery = absl::Seconds(60);
inline constexpr absl::Duration kPlaceWithin = absl::Seconds(90);
inline constexpr absl::Duration kPreemptWithin = absl::Seconds(120);
// Beside the pace of evictions (one a second at least) and a kubelet's grace of seconds.
inline constexpr absl::Duration kReclaimWithin = absl::Seconds(120);
inline constexpr absl::Duration kBuyWithin = absl::Seconds(200);
inline constexpr absl::Duration kGangSlack = absl::Seconds(120);
inline constexpr int64_t kCalmWrites = 10;
inline constexpr int64_t kSpins = 500;
inline constexpr int64_t kCalmEvictions = 8, kManyEvictions = 36;
struct ChurnBound {
  absl::Duration time;
  int64_t rounds;  // evictions of each pod of the job
};
inline constexpr std::array<ChurnBound, 2> kChurn = {
    {{absl::Minutes(1), 2}, {absl::Minutes(4), 5}}};
// AppOptions::hang_limit, the lease's life, and two rounds of looking at it.
inline constexpr absl::Duration kHung = absl::Seconds(60);
// AppOptions::stale_after, and what it takes to notice.
inline constexpr absl::Duration kBlind = absl::Seconds(66);
// consolidationMinRuntime of these worlds: hardly a job of them runs for a minute.
inline constexpr absl::Duration kMovable = absl::Seconds(5);
inline constexpr absl::Duration kGrouped = absl::Seconds(1);
inline constexpr absl::Duration kServed = absl::Seconds(3);
inline constexpr absl::Duration kStarted = absl::Seconds(20);
inline constexpr absl::Duration kTold = absl::Seconds(15);
inline constexpr absl::Duration kGuestBindTimeout = absl::Seconds(40);  // guests.bindTimeout
// A grant lasts longer if the scheduler asks again: an unreliable one does so before it binds.
inline constexpr absl::Duration kGuestMayTake = absl::Seconds(130);
// After that, what a fault held up is written and believed: a binding whose answer was lost, and
// that a webhook refuses, is in doubt for some attempts more.
inline constexpr absl::Duration kNoticed = absl::Seconds(60);

// Their names, sorted.
const std::vector<std::string>& InvariantNames();

struct Failure {
  std::string invariant, text;
  absl::Duration at;  // since the world began
};

class Checks {
 public:
  Checks(const sim::EventQueue* time, absl::Time start, sim::world::ApiServer* server,
         const sim::world::Truth* truth, sim::world::Cloud* cloud, const Caps& caps,
         std::set<std::string> without, int64_t recount_every);

  // A fault that may keep replicas from what happens.
  void Disturb(absl::Time until);
  // The deciding thread of that life stands still until then: another one has to lead.
  void Hung(const std::string& identity, absl::Time until);
  // That life hears nothing of a kind of object until then: it may not go on as if it did.
  void Blind(const std::string& identity, absl::Time until);
  // Writes are refused until then: what was written before may be written once more after it.
  void Refuse(absl::Time until) { refused_until_ = std::max(refused_until_, until); }
  // Writes are refused as invalid until then, or as if their object was gone.
  void RefuseForGood(absl::Time until) { kai_.GiveUp(until); }
  // Writes before then may have been done without an answer: what was written is written once more.
  void LoseAnswers(absl::Time until) { unanswered_until_ = std::max(unanswered_until_, until); }
  // The clock of that replica is off by this from now on: what it counts from creation times is.
  void Skew(const std::string& replica, absl::Duration offset) {
    clocks_[replica] = Clock{offset, time_->now()};
  }
  // Other settings may be taken until then: what a decision loop remembers is forgotten.
  void Reload(absl::Time until);
  void ExcuseWriters(absl::Time until) { writers_excused_until_ = until; }
  // Whether a pod's scheduler has been told its node: what the pod was told before is not judged.
  void SetGranted(std::function<bool(const std::string& uid)> granted) {
    granted_ = std::move(granted);
  }
  // A guest was told a node that has been useless since then.
  void GrantedBadNode(const std::string& what, absl::Time since);
  // Until then grants to guests run out, which is news, and no change.
  void ExpectLostGrants(absl::Time until) { grants_lost_until_ = until + kGuestMayTake; }
  // The cloud lied, or nodes were bought for what then went: purchases are judged leniently.
  void ExcusePurchases() { purchases_excused_ = true; }
  // All faults are over.
  void Settle();
  // A fault lasts, or did a moment ago.
  [[nodiscard]] bool IsDisturbed() const;
  // For how long nothing but Fairlead has changed anything, and no fault has lasted; zero while a
  // webhook refuses a pod that waits.
  [[nodiscard]] absl::Duration QuietFor() const;

  void OnDecision(const std::string& identity, const core::DecisionLoop& loop,
                  const core::StepResult& result);
  void EverySecond();
  // Every few seconds: what pods are told and what the leader believes, unless a fault lasts or
  // did a moment ago. `began`: when the leader's process did. `leader`: null if nothing leads.
  void Look(const core::DecisionLoop* leader, absl::Time began);
  // In the settle phase, every few seconds, after Look.
  void WhileCalm();
  void AtEnd(const core::DecisionLoop* leader, absl::Time began);
  void Fail(const std::string& invariant, const std::string& text);

  // The first one.
  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }
  [[nodiscard]] const std::string& lease_holder() const { return holder_; }
  [[nodiscard]] int64_t writes() const { return writes_; }

 private:
  void OnCommit(const sim::world::ApiServer::Commit& commit);
  void NoteServed(const sim::world::PodFacts& before);
  // `after`: of a pod that was deleted, what it was at last.
  void NoteTouched(const std::optional<sim::world::PodFacts>& before,
                   const sim::world::PodFacts& after);
  void Touch(const sim::world::PodFacts& pod, const std::string& queue);
  void NotePart(const sim::world::PodFacts& pod);
  void NoteWaiting();
  // Pods that hold a place. `part`: null for the whole group.
  [[nodiscard]] int64_t ActiveIn(const sim::world::GroupFacts& group,
                                 const std::string* part) const;
  void OnLease(const sim::world::ApiServer::Commit& commit);
  void OnWrite(const sim::world::ApiServer::Commit& commit);
  static bool HasFailed(const sim::world::ApiServer::Commit& commit);
  bool IsNewStepOfAnEnd(const sim::world::ApiServer::Commit& commit);
  void OnBinding(const sim::world::PodRow& row);
  void CheckLoad(const sim::world::PodRow& row, const sim::world::NodeRow& node);
  void CheckPlacement(const sim::world::PodRow& row);
  void CheckShare(const sim::world::PodRow& row);
  void CheckBonds();
  void OnRequest(const sim::world::Json& request);
  [[nodiscard]] std::string OverLimitText(const std::string& queue,
                                          const sim::world::Amounts& more) const;
  void OnEviction(const sim::world::PodFacts& pod);
  void OnEvictionFor(const sim::world::PodFacts& pod, absl::string_view why);
  void CountEviction(const sim::world::PodFacts& pod, const std::string& what, int64_t most);
  void CheckMove(const sim::world::Json& pod, const std::string& actor);
  // How often the pod's group was moved before the pod was bound, as far as the actor must know.
  int64_t CountMove(const sim::world::PodRow& pod, const std::string& actor);
  void CheckClaim(const sim::world::Json& before, const sim::world::Json& after,
                  const std::string& actor);
  // It is to make way for a workload that waits.
  void CheckServed(const sim::world::PodFacts& pod, const std::string& why);
  // What a pod is told that is evicted with its gang.
  void CheckGangEviction(const sim::world::PodFacts& pod, const std::string& why);
  void CheckNoneSucceeded(const sim::world::PodFacts& pod, const std::string& why);
  void CheckBelowMinimum(const sim::world::PodFacts& pod);
  void CheckPassing(const sim::world::Json& before, const sim::world::Json& after);
  void CheckBlind(const sim::world::ApiServer::Commit& commit);
  void CheckGrouped(const sim::world::ApiServer::Commit& commit);
  // Of a pod that is bound.
  void CheckKnownGroup(const sim::world::Json& pod);
  void CheckHung();
  void CheckParts();
  [[nodiscard]] bool IsAnyRefused() const;
  [[nodiscard]] bool IsRefused(const sim::world::Workload& workload) const;
  void CheckLimits();
  void CheckReopened();
  void CheckDoubtfulRequests();
  void CheckLiveness();
  // `former`, `current`: since when each could start, at the last look and at this one.
  using Waits = std::map<std::string, absl::Time>;
  void JudgeWait(const sim::world::Workload& workload, const Waits& former, Waits& current,
                 absl::Duration bound, const char* invariant, const char* why);
  void CheckGangs();
  void CheckStarted();
  void CheckGroupsTold();
  void CheckStorm();
  void NoteBindings(const core::View& view);
  void CheckBeliefs(core::View view, absl::Time began);
  void CheckVerdicts();
  [[nodiscard]] absl::Time TouchedAt(const std::string& key) const;
  [[nodiscard]] bool IsPolicySettled(const sim::world::Workload& workload) const;
  [[nodiscard]] bool IsUseSettled(const sim::world::Workload& workload) const;
  void CheckToldThatRun();
  [[nodiscard]] bool CanBeBought(const sim::world::Workload& workload) const;
  // What was committed before this has reached both replicas.
  [[nodiscard]] absl::Time KnownSince() const;
  // When every replica that was blind has heard of these objects again: it opens its watch after a
  // pause, and if nothing changes, a bookmark is the first word. Until then it says that its
  // objects may be out of date.
  [[nodiscard]] absl::Time HeardAgainAt() const;

  const sim::EventQueue* time_;
  absl::Time start_;
  sim::world::ApiServer* server_;
  const sim::world::Truth* truth_;
  sim::world::Cloud* cloud_;
  Caps caps_;
  std::set<std::string> without_;
  int64_t recount_every_;
  std::optional<Failure> failure_;
  MachineChecks machines_;
  PoolChecks pools_;
  DeviceChecks devices_;
  VolumeChecks volumes_;
  KaiStatusChecks kai_;
  ShardChecks shards_;
  SuspensionChecks suspensions_;

  std::string holder_;
  absl::Time held_since_, writers_excused_until_ = absl::InfinitePast();
  absl::Time refused_until_ = absl::InfinitePast(), unanswered_until_ = absl::InfinitePast();
  absl::Time disturbed_since_ = absl::InfinitePast(), disturbed_until_ = absl::InfinitePast();
  absl::Time settled_at_ = absl::InfiniteFuture();
  std::function<bool(const std::string& uid)> granted_ = [](const std::string&) { return false; };
  absl::Time grants_lost_until_ = absl::InfinitePast();
  bool purchases_excused_ = false;
  struct Clock {
    absl::Duration offset;
    absl::Time changed_at = absl::InfinitePast();
  };
  // Of that process; right unless it was ever set.
  [[nodiscard]] Clock ClockOf(absl::string_view identity) const;
  std::map<std::string, Clock> clocks_;  // by replica
  struct Moves {
    int64_t decisions = 0;
    absl::Time last = absl::InfinitePast();
  };
  std::map<std::string, Moves> moves_;  // by process and uid of the group
  absl::Time reloaded_until_ = absl::InfinitePast();
  int64_t decisions_ = 0, writes_ = 0;
  // When pods of a workload, or of a queue, came, went or changed: by "ns/name" and by name.
  std::map<std::string, absl::Time> touched_, touched_queues_;
  // Of the calm: since when each could start, or is half bound.
  std::map<std::string, absl::Time> preempts_since_, reclaims_since_, fits_since_, buyable_since_,
      half_since_, half_parts_;
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
  struct Bonds {
    std::string pod;
    absl::Time bound_at;
    std::vector<int64_t> beside;  // pods in its domain then, of each rule of its spread
  };
  std::deque<Bonds> bonds_;  // bindings of pods that must be near others, or spread
  struct Doubtful {
    std::string request, workload;
    absl::Time since;
  };
  std::deque<Doubtful> doubtful_;  // requests for what seems to be above a limit
  struct RunningPart {
    absl::Time since;
    bool complete = false;  // it was, at some time since
  };
  std::map<std::string, RunningPart> running_parts_;  // "group part"
  std::map<std::string, RunningPart>
      running_groups_;                              // that have not had their minimum yet, or had
  std::map<std::string, absl::Time> untold_since_;  // groups that wait without a code
  struct Trouble {
    absl::Time since, until;
    absl::Time alone_since = since;  // nothing else has been wrong
  };
  std::map<std::string, Trouble> hung_, blind_;  // by identity
  std::map<std::string, absl::Time> served_at_;  // workloads that waited: the last time
  // Of the calm, by the victim's job, and by that and the job that they were for.
  std::map<std::string, std::deque<absl::Time>> evictions_;
  std::deque<absl::Time> calm_writes_;
  absl::Time stirred_at_ = absl::InfinitePast();  // the last binding or eviction of Fairlead's
  std::set<std::string> end_steps_;               // of machines: uid and step
  absl::Time others_changed_at_ = absl::InfinitePast();
  absl::Time requested_at_ = absl::InfinitePast();    // the last machine
  absl::Time groups_since_ = absl::InfiniteFuture();  // there has always been a PodGroup
  std::map<absl::Time, int64_t> waiting_then_;        // how many pods waited, lately
};

}  // namespace fairlead::simtest
