#include "cmd/simtest/checks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cmd/simtest/belief_checks.h"
#include "cmd/simtest/catalogue.h"
#include "core/reconcile/status_updater.h"
#include "kube/watch/reflector.h"

namespace fairlead::simtest {

using sim::world::Amounts;
using sim::world::ApiServer;
using sim::world::PodRow;
using sim::world::Workload;

const std::vector<std::string>& InvariantNames() {
  static const auto* const kNames = new std::vector<std::string>{
      "caps",       "charge",     "churn",    "claims",   "condition", "cost",       "cover",
      "devices",    "disruption", "eviction", "gang",     "grant",     "hang",       "kai-status",
      "leader",     "leak",       "limit",    "liveness", "misplaced", "move",       "overcommit",
      "parts",      "policy",     "pool",     "preempt",  "process",   "purchase",   "queues",
      "rate",       "reclaim",    "recount",  "reload",   "retry",     "shard",      "share",
      "simulation", "spin",       "stale",    "stop",     "storm",     "suspension", "terminate",
      "told",       "verdict",    "view",     "volumes",  "writers"};
  return *kNames;
}

Checks::Checks(const sim::EventQueue* time, absl::Time start, ApiServer* server,
               const sim::world::Truth* truth, sim::world::Cloud* cloud, const Caps& caps,
               std::set<std::string> without, int64_t recount_every)
    : time_(time),
      start_(start),
      server_(server),
      truth_(truth),
      cloud_(cloud),
      caps_(caps),
      without_(std::move(without)),
      recount_every_(recount_every),
      machines_(
          time, server, truth, cloud, caps,
          [this](const std::string& invariant, const std::string& text) { Fail(invariant, text); }),
      pools_(
          time, server, truth, cloud, caps.hook, caps.empties,
          [this](const std::string& invariant, const std::string& text) { Fail(invariant, text); }),
      devices_(
          time, server, truth,
          [this](const std::string& invariant, const std::string& text) { Fail(invariant, text); }),
      volumes_(
          server, truth,
          [this](const std::string& invariant, const std::string& text) { Fail(invariant, text); }),
      kai_(
          time, server, truth, caps.kai_status, caps.rules_change,
          [this](const std::string& invariant, const std::string& text) { Fail(invariant, text); }),
      shards_(time, [this](const std::string& invariant,
                           const std::string& text) { Fail(invariant, text); }),
      suspensions_(
          time, server, truth,
          [this](const std::string& invariant, const std::string& text) { Fail(invariant, text); },
          [this](const sim::world::PodFacts& pod, const std::string& why) {
            OnEviction(pod);
            CheckGangEviction(pod, why);
            OnEvictionFor(pod, why);
            CheckServed(pod, why);
          }),
      held_since_(start) {
  server->Listen([this](const ApiServer::Commit& commit) { OnCommit(commit); });
}

void Checks::Fail(const std::string& invariant, const std::string& text) {
  if (failure_.has_value() || without_.contains(invariant)) return;
  failure_ = Failure{invariant, text, time_->now() - start_};
}

void Checks::Disturb(absl::Time until) {
  const absl::Time now = time_->now();
  if (now >= disturbed_until_ + kRecovery) disturbed_since_ = now;
  disturbed_until_ = std::max(disturbed_until_, until);
  for (auto& [identity, hung] : hung_) {
    if (now <= hung.until) hung.alone_since = std::max(hung.alone_since, until);
  }
}

Checks::Clock Checks::ClockOf(absl::string_view identity) const {
  for (const auto& [replica, clock] : clocks_) {
    if (absl::StartsWith(identity, absl::StrCat("fairlead-", replica, "."))) return clock;
  }
  return {};
}

void Checks::Reload(absl::Time until) {
  moves_.clear();
  reloaded_until_ = std::max(reloaded_until_, until);
}

absl::Time Checks::KnownSince() const {
  const absl::Time now = time_->now();
  return (now < disturbed_until_ + kRecovery ? disturbed_since_ : now) - kKnown;
}

void Checks::Hung(const std::string& identity, absl::Time until) {
  hung_[identity] = Trouble{time_->now(), until};
}

void Checks::Blind(const std::string& identity, absl::Time until) {
  // What a leader has lost to another fault it cannot read again.
  if (time_->now() < disturbed_until_) Disturb(until);
  blind_[identity] = Trouble{time_->now(), until};
}

absl::Time Checks::HeardAgainAt() const {
  absl::Time at = absl::InfinitePast();
  const absl::Duration pause = kube::ReflectorOptions().backoff_max;
  for (const auto& [identity, blind] : blind_) {
    at = std::max(at, blind.until + pause + kube::kBookmarkPeriodMax);
  }
  return at;
}

bool Checks::IsDisturbed() const { return time_->now() <= disturbed_until_ + kRecovery; }

absl::Duration Checks::QuietFor() const {
  if (IsAnyRefused()) return absl::ZeroDuration();
  return time_->now() - std::max({others_changed_at_, settled_at_, disturbed_until_ + kRecovery});
}

void Checks::Settle() { settled_at_ = time_->now(); }

void Checks::OnDecision(const std::string& identity, const core::DecisionLoop& loop,
                        const core::StepResult& result) {
  machines_.CheckCaps();
  // What is told why it waits is not being bound, if only for a moment between two looks.
  for (const model::Action& action : result.actions) {
    const auto* told = std::get_if<model::SetPodUnschedulable>(&action.what);
    if (told != nullptr && !told->reason.empty()) {
      binding_since_.erase(model::Key(told->ns, told->name));
    }
  }
  if (++decisions_ % recount_every_ != 0) return;
  const std::string broken = loop.CheckConsistency();
  if (!broken.empty()) Fail("recount", absl::StrCat(identity, ": ", broken));
}

bool Checks::CanBeBought(const Workload& workload) const {
  if (!caps_.hook || purchases_excused_) return false;
  if (!workload.waiting.front()->facts.plain) return false;  // machines may lack what it selects
  const Amounts each = workload.waiting.front()->facts.requests;
  const hook::InstanceType* best = nullptr;
  const absl::Time settled = time_->now() - kBuyWithin;
  for (const hook::InstanceType& type : WorldCatalog().types()) {
    if (!truth_->pools().Sells(type.name, settled)) continue;
    const Amounts has{type.cpu_milli, type.memory_bytes, type.gpu_count * 1000};
    if (!each.FitsIn(has)) continue;
    if (best == nullptr || *type.on_demand_micro_usd < *best->on_demand_micro_usd) best = &type;
  }
  if (best == nullptr) return false;
  int64_t count = workload.needed(), gpus = count * best->gpu_count,
          price = count * *best->on_demand_micro_usd;
  // A machine that was not ordered takes its place under the caps too, once it is known.
  for (const sim::world::Cloud::Machine& machine : cloud_->machines()) {
    if (machine.ended != absl::InfiniteFuture()) continue;
    ++count;
    gpus += machine.gpus;
    price += machine.price_micro_usd_per_hour;
  }
  return gpus <= caps_.gpus && count <= caps_.nodes && price <= caps_.micro_usd_per_hour;
}

// A webhook keeps one of its pods from being bound, or a claim of it from being allocated or bound.
bool Checks::IsRefused(const Workload& workload) const {
  const std::set<std::string>& refused = server_->refused_bindings();
  return std::any_of(workload.waiting.begin(), workload.waiting.end(), [&](const PodRow* row) {
    return refused.contains(row->facts.name) || devices_.IsRefused(row->facts) ||
           volumes_.IsRefused(row->facts);
  });
}

bool Checks::IsAnyRefused() const {
  const std::vector<Workload> waiting = truth_->Waiting();
  return std::any_of(waiting.begin(), waiting.end(),
                     [&](const Workload& workload) { return IsRefused(workload); });
}

void Checks::JudgeWait(const Workload& workload, const Waits& former, Waits& current,
                       absl::Duration bound, const char* invariant, const char* why) {
  const absl::Time now = time_->now();
  const std::string name =
      absl::StrCat(workload.key, workload.part.empty() ? "" : " sub-group ", workload.part);
  const auto since = former.find(name);
  const bool begins = since == former.end() || now <= disturbed_until_;
  current[name] = begins ? now : since->second;
  if (now - current[name] <= bound) return;
  const PodRow& first = *workload.waiting.front();
  Fail(
      invariant,
      absl::StrCat(workload.group != nullptr || !workload.part.empty() ? "group " : "pod ", name,
                   " of queue ", workload.queue, " (", workload.needed(), " pods of ",
                   first.facts.requests.Text(), ") ", why, " for ",
                   absl::FormatDuration(now - current[name]), " and waits: ", first.facts.condition,
                   " ", workload.group != nullptr ? workload.group->facts.verdict_code : ""));
}

void Checks::CheckLiveness() {
  Waits fits, buyable, preempts, reclaims;
  const bool still = time_->now() - stirred_at_ >= kReclaimWithin;
  for (const Workload& workload : truth_->Waiting()) {
    if (IsRefused(workload)) continue;
    for (const Workload& part : truth_->IdleParts(workload)) {
      if (!truth_->Entitled(part) || !truth_->FitsNow(part)) continue;
      JudgeWait(part, fits_since_, fits, kPlaceWithin, "liveness", "fits into idle room");
    }
    if (!truth_->Entitled(workload)) continue;
    if (truth_->CouldPreempt(workload)) {
      JudgeWait(workload, preempts_since_, preempts, kPreemptWithin, "preempt",
                "may evict pods of its queue");
    }
    const bool fits_now = truth_->FitsNow(workload);
    if (!fits_now && truth_->CouldReclaim(workload)) {
      JudgeWait(workload, reclaims_since_, reclaims,
                still ? kReclaimWithin : absl::InfiniteDuration(), "reclaim",
                "may reclaim GPUs of other queues");
    }
    if (fits_now) {
      JudgeWait(workload, fits_since_, fits, kPlaceWithin, "liveness", "fits into idle room");
    } else if (CanBeBought(workload)) {
      JudgeWait(workload, buyable_since_, buyable, kBuyWithin, "liveness", "could have a machine");
    }
  }
  fits_since_ = std::move(fits);
  buyable_since_ = std::move(buyable);
  preempts_since_ = std::move(preempts);
  reclaims_since_ = std::move(reclaims);
}

// The lease is another's within its life and the deadline of its renewal.
void Checks::CheckHung() {
  const auto hung = hung_.find(holder_);
  if (hung == hung_.end() || time_->now() > hung->second.until) return;
  // With nothing else wrong there is another one that could lead.
  if (time_->now() - hung->second.alone_since <= kHung) return;
  if (disturbed_since_ < hung->second.since) return;
  Fail("leader", absl::StrCat(holder_, " holds the lease, and has decided nothing for ",
                              absl::FormatDuration(time_->now() - hung->second.since)));
}

void Checks::CheckStorm() {
  const absl::Time now = time_->now();
  while (!calm_writes_.empty() && calm_writes_.front() < now - absl::Minutes(1)) {
    calm_writes_.pop_front();
  }
  // What could not be written during a fault is written after it, and what a change makes untrue at
  // a pace; what a search has found when it was made.
  int64_t told = 0;
  for (const Workload& workload : truth_->Waiting()) {
    told += static_cast<int64_t>(workload.waiting.size()) + (workload.group != nullptr ? 1 : 0);
  }
  const absl::Time calm_since =
      std::max({others_changed_at_, requested_at_, machines_.ended_at(), settled_at_,
                disturbed_until_ + kRecovery, grants_lost_until_, HeardAgainAt()}) +
      absl::Seconds(1) * told / core::StatusUpdater::kRefreshesPerSecond + kai_.WritesLast() +
      caps_.searched;
  if (now - calm_since < absl::Minutes(1)) return;
  if (static_cast<int64_t>(calm_writes_.size()) <= kCalmWrites) return;
  // What a webhook refuses is tried again, at the back-off's longest pause.
  if (IsAnyRefused()) return;
  Fail("storm",
       absl::StrCat(calm_writes_.size(), " writes in a minute in which nothing else changed"));
}

void Checks::EverySecond() {
  CheckHung();
  for (const Workload& workload : truth_->Waiting()) served_at_[workload.key] = time_->now();
  CheckToldThatRun();
  CheckGroupsTold();
  CheckStarted();
  machines_.EverySecond();
  CheckLimits();
  CheckReopened();
  CheckBonds();
  CheckDoubtfulRequests();
  suspensions_.EverySecond(std::max(disturbed_until_, refused_until_) + kRecovery);
}

void Checks::NoteBindings(const core::View& view) {
  std::map<std::string, absl::Time> current;
  // Until its volumes are there, a binding is not written.
  const std::set<std::string> awaiting = volumes_.AwaitingSince(time_->now());
  for (const core::RunningRow& row : view.running) {
    if (row.status != "Binding") continue;
    const auto since = binding_since_.find(row.pod);
    const bool begins = since == binding_since_.end() || awaiting.contains(row.pod);
    current[row.pod] = begins ? time_->now() : since->second;
  }
  binding_since_ = std::move(current);
}

void Checks::CheckBeliefs(core::View view, absl::Time began) {
  const FailBelief fail = [this](const std::string& invariant, const std::string& text) {
    Fail(invariant, text);
  };
  const Belief belief{std::move(view), time_->now(), began,
                      binding_since_,  &touched_,    reloaded_until_ != absl::InfinitePast()};
  CheckPods(belief, *truth_, fail);
  CheckNodes(belief, *truth_, fail);
  CheckCharges(belief, *truth_, fail);
}

void Checks::Look(const core::DecisionLoop* leader, absl::Time began) {
  const absl::Time now = time_->now();
  const bool calm = now > std::max(disturbed_until_, refused_until_) + kRecovery + kNoticed;
  kai_.Look(calm && leader != nullptr);
  if (leader == nullptr) {
    binding_since_.clear();
    return;
  }
  if (!calm && settled_at_ == absl::InfiniteFuture()) return;
  core::View view = leader->MakeView(now);
  NoteBindings(view);
  if (!calm) return;
  CheckBeliefs(std::move(view), began);
  CheckVerdicts();
}

void Checks::WhileCalm() {
  CheckLiveness();
  CheckGangs();
  CheckParts();
  devices_.WhileCalm(std::max(settled_at_, disturbed_until_ + kRecovery));
  CheckStorm();
  pools_.WhileCalm(std::max(settled_at_, disturbed_until_ + kRecovery));
  // A node may be kept for what a webhook refuses.
  if (!IsAnyRefused()) machines_.WhileCalm(std::max(settled_at_, disturbed_until_));
}

void Checks::AtEnd(const core::DecisionLoop* leader, absl::Time began) {
  for (const std::string& request : server_->unimplemented()) {
    Fail("simulation", absl::StrCat("the API server of the simulation cannot: ", request));
  }
  if (leader == nullptr) {
    Fail("leader", absl::StrCat("nothing leads; the lease is held by \"", holder_, "\""));
    return;
  }
  const std::string broken = leader->CheckConsistency();
  if (!broken.empty()) Fail("recount", broken);
  machines_.AtEnd(purchases_excused_);
  CheckBeliefs(leader->MakeView(time_->now()), began);
  CheckVerdicts();
}

}  // namespace fairlead::simtest
