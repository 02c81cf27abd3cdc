#include "cmd/simtest/checks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cmd/simtest/belief_checks.h"
#include "cmd/simtest/catalogue.h"
#include "core/reconcile/status_updater.h"

namespace fairlead::simtest {
namespace {

using sim::world::Amounts;
using sim::world::ApiServer;
using sim::world::Json;
using sim::world::PodRow;
using sim::world::ResourceType;
using sim::world::TextAt;
using sim::world::Workload;

constexpr absl::Duration kWaitingMemory = absl::Seconds(60);

bool IsFairlead(absl::string_view actor) { return absl::StartsWith(actor, "fairlead"); }

Amounts Larger(const Amounts& a, const Amounts& b) {
  return {std::max(a.cpu, b.cpu), std::max(a.memory, b.memory), std::max(a.gpu, b.gpu)};
}

Amounts Sum(const Workload& workload) {
  Amounts sum;
  for (int64_t i = 0; i < workload.needed(); ++i) {
    sum += workload.waiting[static_cast<size_t>(i)]->facts.requests;
  }
  return sum;
}

}  // namespace

const std::vector<std::string>& InvariantNames() {
  static const auto* const kNames = new std::vector<std::string>{
      "caps",   "charge",  "churn",     "condition", "cost",     "cover",     "eviction",   "gang",
      "hang",   "leader",  "leak",      "limit",     "liveness", "misplaced", "overcommit", "parts",
      "policy", "preempt", "process",   "purchase",  "rate",     "recount",   "simulation", "spin",
      "stale",  "storm",   "terminate", "told",      "verdict",  "view",      "writers"};
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
}

absl::Time Checks::KnownSince() const {
  const absl::Time now = time_->now();
  return (now < disturbed_until_ + kRecovery ? disturbed_since_ : now) - kKnown;
}

void Checks::Hung(const std::string& identity, absl::Time until) {
  hung_[identity] = {time_->now(), until};
}

void Checks::Blind(const std::string& identity, absl::Time until) {
  // What a leader has lost to another fault it cannot read again.
  if (time_->now() < disturbed_until_) Disturb(until);
  blind_[identity] = {time_->now(), until};
}

void Checks::Settle() { settled_at_ = time_->now(); }

// ---- at every write
// ------------------------------------------------------------------------------

void Checks::OnCommit(const ApiServer::Commit& commit) {
  if (commit.type == ResourceType::kLeases) return OnLease(commit);
  if (commit.type == ResourceType::kEvents) return;
  if (commit.type == ResourceType::kPodGroups) {
    if (truth_->groups().empty()) {
      groups_since_ = absl::InfiniteFuture();
    } else {
      groups_since_ = std::min(groups_since_, time_->now());
    }
  }
  if (IsFairlead(commit.actor)) {
    OnWrite(commit);
  } else {
    if (commit.actor == "pod-grouper") CheckGrouped(commit);
    // Heartbeats of agents are no change that anything should follow.
    if (commit.actor != "agent") others_changed_at_ = time_->now();
  }
  if (commit.type == ResourceType::kPods) {
    if (commit.before != nullptr) NoteServed(sim::world::ReadPod(*commit.before));
    NotePart(sim::world::ReadPod(commit.after != nullptr ? *commit.after : *commit.before));
    int64_t waiting = 0;
    for (const auto& [key, row] : truth_->pods()) waiting += row.facts.waiting() ? 1 : 0;
    const absl::Time now = time_->now();
    waiting_then_[now] = std::max(waiting_then_[now], waiting);
    // The last one before the window says how many there were when it began.
    while (waiting_then_.size() > 1 &&
           std::next(waiting_then_.begin())->first < now - kWaitingMemory) {
      waiting_then_.erase(waiting_then_.begin());
    }
  }
}

// A workload may wait between two looks at all of them.
void Checks::NoteServed(const sim::world::PodFacts& before) {
  if (!before.waiting()) return;
  const std::string group = before.ns + "/" + before.group;
  served_at_[truth_->groups().contains(group) ? group : before.key()] = time_->now();
}

void Checks::OnLease(const ApiServer::Commit& commit) {
  const std::string holder =
      commit.after == nullptr ? "" : TextAt(*commit.after, {"spec", "holderIdentity"});
  if (holder != holder_) held_since_ = time_->now();
  holder_ = holder;
}

void Checks::OnWrite(const ApiServer::Commit& commit) {
  ++writes_;
  if (HasFailed(commit)) others_changed_at_ = time_->now();
  if (settled_at_ != absl::InfiniteFuture() && !IsNewStepOfAnEnd(commit)) {
    calm_writes_.push_back(time_->now());
  }
  if (!holder_.empty() && commit.actor != holder_ && time_->now() >= writers_excused_until_) {
    const Json& object = commit.after != nullptr ? *commit.after : *commit.before;
    Fail("writers", absl::StrCat(std::string(commit.actor), " wrote ", TextAt(object, {"kind"}),
                                 " ", TextAt(object, {"metadata", "name"}), ", and ", holder_,
                                 " has held the lease for ",
                                 absl::FormatDuration(time_->now() - held_since_)));
  }
  if (commit.type == ResourceType::kPods && commit.after != nullptr) {
    const std::string node = TextAt(*commit.after, {"spec", "nodeName"});
    const std::string former =
        commit.before == nullptr ? "" : TextAt(*commit.before, {"spec", "nodeName"});
    if (!node.empty() && former.empty()) {
      OnBinding(truth_->pods().at(absl::StrCat(TextAt(*commit.after, {"metadata", "namespace"}),
                                               "/", TextAt(*commit.after, {"metadata", "name"}))));
    }
  }
  if (commit.type == ResourceType::kPods && commit.before != nullptr) {
    const sim::world::PodFacts former = sim::world::ReadPod(*commit.before);
    const bool leaves = commit.after == nullptr || sim::world::ReadPod(*commit.after).terminating;
    if (leaves && !former.terminating && !former.node.empty() && former.ours) OnEviction(former);
    if (commit.after != nullptr) CheckClaim(*commit.before, *commit.after);
  }
  CheckBlind(commit);
  if (commit.type == ResourceType::kPodGroups && commit.before != nullptr &&
      commit.after != nullptr) {
    CheckPassing(*commit.before, *commit.after);
  }
  if (commit.type == ResourceType::kNodeRequests && commit.before == nullptr) {
    machines_.OnRequest(*commit.after, time_->now() > disturbed_until_ + kRecovery,
                        purchases_excused_);
    OnRequest(*commit.after);
  }
}

// Time has ended a purchase: its machine did not come.
bool Checks::HasFailed(const ApiServer::Commit& commit) {
  if (commit.type != ResourceType::kNodeRequests || commit.before == nullptr ||
      commit.after == nullptr) {
    return false;
  }
  constexpr char kFailed[] = "Failed";
  return TextAt(*commit.after, {"status", "phase"}) == kFailed &&
         TextAt(*commit.before, {"status", "phase"}) != kFailed;
}

// The taint for removal, and what becomes of the request of a machine that was ready.
bool Checks::IsNewStepOfAnEnd(const ApiServer::Commit& commit) {
  if (commit.before == nullptr) return false;
  const Json& before = *commit.before;
  std::string step = "gone";
  if (commit.type == ResourceType::kNodes) {
    if (commit.after != nullptr) {
      if (sim::world::ReadNode(before).removing) return false;
      if (!sim::world::ReadNode(*commit.after).removing) return false;
      step = "tainted";
    }
  } else if (commit.type == ResourceType::kNodeRequests) {
    const std::string former = TextAt(before, {"status", "phase"});
    if (former != "Ready" && former != "Draining" && former != "Gone") return false;
    if (commit.after != nullptr) {
      const Json& after = *commit.after;
      const std::string phase = TextAt(after, {"status", "phase"});
      if (phase != "Draining" && phase != "Gone") return false;
      step = absl::StrCat(phase, after["metadata"].contains("finalizers") ? " kept" : "",
                          after["metadata"].contains("deletionTimestamp") ? " deleted" : "");
    }
  } else {
    return false;
  }
  return end_steps_.insert(absl::StrCat(TextAt(before, {"metadata", "uid"}), " ", step)).second;
}

// What people are told of an eviction has to be true: "for workload NAMESPACE/NAME of ...".
void Checks::CheckClaim(const Json& before, const Json& after) {
  const std::string why = sim::world::DisruptionOf(after);
  if (why.empty() || why == sim::world::DisruptionOf(before)) return;
  CheckStaleClaim(sim::world::ReadPod(after), why);
  const absl::Time now = time_->now();
  for (const Workload& workload : truth_->Waiting()) {
    served_at_[workload.key] = now;
    // A pod may have got its group since the decision.
    for (const PodRow* row : workload.waiting) served_at_[row->facts.key()] = now;
  }
  for (const auto& [key, last] : served_at_) {
    if (!absl::StrContains(why, absl::StrCat("for workload ", key, " of"))) continue;
    if (now - last <= kServed || now <= disturbed_until_ + kRecovery) continue;
    Fail("eviction",
         absl::StrCat("pod ", TextAt(after, {"metadata", "name"}), " is told \"", why, "\", and ",
                      key, " has not waited for ", absl::FormatDuration(now - last)));
  }
  if (absl::StrContains(why, "(stalegangeviction): its gang"))
    CheckStale(sim::world::ReadPod(after));
}

void Checks::CheckBlind(const ApiServer::Commit& commit) {
  const auto blind = blind_.find(std::string(commit.actor));
  const absl::Time now = time_->now();
  if (blind == blind_.end() || now > blind->second.until || now < blind->second.since + kBlind) {
    return;
  }
  std::string what;
  if (commit.type == ResourceType::kNodeRequests && commit.before == nullptr) {
    what = "requests a node";
  } else if (commit.type == ResourceType::kPods && commit.before != nullptr &&
             sim::world::ReadPod(*commit.before).ours &&
             !sim::world::ReadPod(*commit.before).terminating &&
             (commit.after == nullptr || sim::world::ReadPod(*commit.after).terminating)) {
    what = "evicts a pod";
  } else if (commit.type == ResourceType::kNodes && commit.after != nullptr &&
             sim::world::ReadNode(*commit.after).removing &&
             !sim::world::ReadNode(*commit.before).removing) {
    what = "begins to remove a node";
  }
  if (what.empty()) return;
  Fail("stale", absl::StrCat(std::string(commit.actor), " ", what, " ",
                             absl::FormatDuration(now - blind->second.since),
                             " after it heard the last of pods or nodes"));
}

// The position is told to those who ask.
void Checks::CheckPassing(const Json& before, const Json& after) {
  const auto lasting = [](const Json& group) {
    Json verdict =
        group.contains("status") ? group["status"].value("schedulability", Json()) : Json();
    if (!verdict.is_object()) return Json();
    verdict.erase("position");
    verdict.erase("hash");
    // A cap holds it, whatever single nodes lack.
    const std::string code = verdict.value("code", "");
    if (code == "CostCapReached" || code == "GpuCapReached") verdict.erase("predicates");
    return verdict;
  };
  const Json now = lasting(after);
  if (time_->now() <= refused_until_ + kKnown) return;
  if (before == after || now.is_null() || now != lasting(before)) return;
  if (before["status"]["schedulability"] == after["status"]["schedulability"]) return;
  Fail("storm", absl::StrCat("the verdict of group ", TextAt(after, {"metadata", "name"}),
                             " is written again, and only its position, or what nodes lack "
                             "beside a cap, has changed"));
}

void Checks::OnEviction(const sim::world::PodFacts& pod) {
  const absl::Time now = time_->now();
  if (settled_at_ > now - absl::Minutes(1)) return;
  std::deque<absl::Time>& times = evictions_[pod.job];
  times.push_back(now);
  while (times.front() <= now - absl::Minutes(1)) times.pop_front();
  int64_t pods = 0;
  for (const auto& [key, row] : truth_->pods()) pods += row.facts.job == pod.job ? 1 : 0;
  if (static_cast<int64_t>(times.size()) <= kCalmEvictions + pods) return;
  Fail("churn", absl::StrCat(times.size(), " evictions of pods of ", pod.job, " in a minute"));
}

void Checks::OnBinding(const PodRow& row) {
  const absl::Time known = KnownSince();
  const auto node = truth_->nodes().find(row.facts.node);
  if (row.facts.impossible) {
    Fail("misplaced", absl::StrCat("pod ", row.facts.key(), " is bound to ", row.facts.node,
                                   ", and its node selector matches no node"));
  }
  if (node != truth_->nodes().end() && row.facts.ours && node->second.closed_since < known) {
    Fail("misplaced", absl::StrCat("pod ", row.facts.key(), " is bound to ", row.facts.node,
                                   ", which has been tainted by others, cordoned or unready for ",
                                   absl::FormatDuration(time_->now() - node->second.closed_since)));
  }
  if (node != truth_->nodes().end() && row.facts.ours && node->second.removing_since < known) {
    reopened_.push_back({row.facts.key(), row.facts.node, time_->now()});
  }
  if (node != truth_->nodes().end()) {
    const auto load = truth_->LoadOf(row.facts.node, [&](const PodRow& other) {
      return other.BoundByFairlead() || other.bound_at < known;
    });
    const sim::world::NodeRow& has = node->second;
    const Amounts allocatable =
        has.changed_at < known ? has.facts.allocatable : Larger(has.facts.allocatable, has.before);
    if (!load.amounts.FitsIn(allocatable) || load.pods > has.facts.pods) {
      Fail("overcommit", absl::StrCat("pod ", row.facts.key(), " bound to ", row.facts.node,
                                      ", which now holds ", load.amounts.Text(), " in ", load.pods,
                                      " pods and has ", allocatable.Text()));
    }
  }
  for (const std::string& name : truth_->Chain(row.queue)) {
    if (!OverLimitText(name, row.facts.requests).empty()) {
      over_limit_.try_emplace(name, OverLimit{time_->now(), row.facts.key(), row.facts.requests});
    }
  }
}

// What the queue holds of what `more` asks for, if that is more than its limit; "" if it is not.
std::string Checks::OverLimitText(const std::string& name, const Amounts& more) const {
  const auto found = truth_->queues().find(name);
  if (found == truth_->queues().end() || found->second.facts.odd) return "";
  const sim::world::QueueFacts& queue = found->second.facts;
  const Amounts use = truth_->UseOf(name, /*terminating_too=*/false);
  const auto over = [&](const char* what, int64_t used, int64_t asked, int64_t limit) {
    if (limit == sim::world::kNoLimit || asked <= 0 || used <= limit) return std::string();
    return absl::StrCat(used, " ", what, ", limit ", limit);
  };
  for (const std::string& text :
       {over("milli-GPU", use.gpu, more.gpu, queue.gpu_limit),
        over("milli-CPU", use.cpu, more.cpu, queue.cpu_limit),
        over("bytes of memory", use.memory, more.memory, queue.memory_limit)}) {
    if (!text.empty()) return text;
  }
  return "";
}

// An eviction that makes room below the limit may be on its way when its heir is bound: kOverLimit.
void Checks::CheckLimits() {
  const absl::Time known = KnownSince();
  for (auto it = over_limit_.begin(); it != over_limit_.end();) {
    const auto& [name, over] = *it;
    const std::string text = OverLimitText(name, over.requests);
    if (text.empty() || truth_->PolicyChangedAt(name) >= std::min(known, over.since - kKnown)) {
      it = over_limit_.erase(it);
      continue;
    }
    if (time_->now() - over.since > caps_.over_limit &&
        time_->now() > disturbed_until_ + kRecovery) {
      std::string held;
      for (const auto& [key, other] : truth_->pods()) {
        const std::vector<std::string> chain = truth_->Chain(other.queue);
        if (!other.facts.ours || !other.facts.active() || other.facts.terminating) continue;
        if (std::find(chain.begin(), chain.end(), name) != chain.end()) {
          absl::StrAppend(&held, " ", key);
        }
      }
      Fail("limit", absl::StrCat("since pod ", over.pod, " was bound, ",
                                 absl::FormatDuration(time_->now() - over.since), " ago, queue ",
                                 name, " has ", text, "; its pods:", held));
    }
    ++it;
  }
}

// A node that is needed again before it is drained loses the taint; that write and the binding are
// not ordered. If it is drained all the same, "terminate" fails too.
void Checks::CheckReopened() {
  const absl::Time now = time_->now();
  if (now <= disturbed_until_ + kRecovery) return;
  while (!reopened_.empty() && now - reopened_.front().bound_at > kReopen) {
    const Reopened reopened = reopened_.front();
    reopened_.pop_front();
    const auto node = truth_->nodes().find(reopened.node);
    const auto pod = truth_->pods().find(reopened.pod);
    if (node == truth_->nodes().end() || node->second.removing_since > reopened.bound_at) continue;
    if (pod == truth_->pods().end() || pod->second.bound_at != reopened.bound_at) continue;
    if (!pod->second.facts.active() || pod->second.facts.terminating) continue;
    Fail("misplaced", absl::StrCat("pod ", reopened.pod, " was bound to ", reopened.node, " ",
                                   absl::FormatDuration(now - reopened.bound_at),
                                   " ago, which still has the taint for removal"));
  }
}

// A request that is written again for a node that is there buys nothing.
void Checks::OnRequest(const Json& request) {
  const std::string name = TextAt(request, {"metadata", "name"});
  if (truth_->nodes().contains(name)) return;
  int64_t on_order = 0;
  server_->ForEach(ResourceType::kNodeRequests, [&](const Json& object) {
    const std::string phase = TextAt(object, {"status", "phase"});
    // Given up, and on its way out.
    if (object["metadata"].contains("deletionTimestamp")) return;
    if (!TextAt(object, {"status", "unneededSince"}).empty()) return;
    if (phase.empty() || phase == "Pending" || phase == "Launched" || phase == "Registered") {
      ++on_order;
    }
  });
  int64_t waiting = 0;
  for (const auto& [when, count] : waiting_then_) waiting = std::max(waiting, count);
  if (on_order > waiting) {
    Fail("cover", absl::StrCat("node request ", name, ": ", on_order, " are on order, and at most ",
                               waiting, " pods waited in the last minute"));
  }
  const auto spec = request.find("spec");
  if (spec == request.end() || !spec->contains("reasonWorkloads")) return;
  const absl::Time known = KnownSince();
  for (const Workload& workload : truth_->Waiting()) {
    const Json& reasons = (*spec)["reasonWorkloads"];
    if (std::find(reasons.begin(), reasons.end(), Json(workload.key)) == reasons.end()) continue;
    if (truth_->PolicyChangedAt(workload.queue) >= known) continue;
    bool old = workload.group == nullptr || workload.group->changed_at < known;
    for (const PodRow* row : workload.waiting) old = old && row->created < known;
    if (!old) continue;
    const std::string code = truth_->PolicyCode(workload);
    if (!code.empty()) {
      Fail("policy", absl::StrCat("node request ", name, " is for ", workload.key, ": ", code));
    }
    if (workload.waiting.front()->facts.plain &&
        !truth_->OverLimit(workload.queue, Sum(workload), /*terminating_too=*/false).empty()) {
      doubtful_.push_back({name, workload.key, time_->now()});
    }
  }
}

// Room below a limit may be made by evictions on their way, and others may take it then: judged
// after kOverLimit, unless there was room for a moment.
void Checks::CheckDoubtfulRequests() {
  for (const Workload& workload : doubtful_.empty() ? std::vector<Workload>() : truth_->Waiting()) {
    if (!truth_->OverLimit(workload.queue, Sum(workload), /*terminating_too=*/false).empty()) {
      continue;
    }
    std::erase_if(doubtful_,
                  [&](const Doubtful& doubtful) { return doubtful.workload == workload.key; });
  }
  while (!doubtful_.empty() && time_->now() - doubtful_.front().since > caps_.over_limit) {
    const Doubtful doubtful = doubtful_.front();
    doubtful_.pop_front();
    const Json* const request = server_->Find(ResourceType::kNodeRequests, "", doubtful.request);
    if (request == nullptr || TextAt(*request, {"status", "phase"}) == "Gone") continue;
    for (const Workload& workload : truth_->Waiting()) {
      if (workload.key != doubtful.workload) continue;
      if (truth_->PolicyChangedAt(workload.queue) >= std::min(KnownSince(), doubtful.since))
        continue;
      // A kubelet that is stuck keeps what leaves for longer; it is no reason not to order a node.
      const std::string over =
          truth_->OverLimit(workload.queue, Sum(workload), /*terminating_too=*/false);
      if (over.empty()) continue;
      Fail("policy",
           absl::StrCat("node request ", doubtful.request, " is for ", workload.key, ", ",
                        absl::FormatDuration(time_->now() - doubtful.since), " ago: ", over));
    }
  }
}

void Checks::OnDecision(const std::string& identity, const core::DecisionLoop& loop,
                        const core::StepResult& /*result*/) {
  machines_.CheckCaps();
  if (++decisions_ % recount_every_ != 0) return;
  const std::string broken = loop.CheckConsistency();
  if (!broken.empty()) Fail("recount", absl::StrCat(identity, ": ", broken));
}

// ---- while it is calm
// ----------------------------------------------------------------------------

bool Checks::CanBeBought(const Workload& workload) const {
  if (!caps_.hook || purchases_excused_) return false;
  const Amounts each = workload.waiting.front()->facts.requests;
  const hook::InstanceType* best = nullptr;
  for (const hook::InstanceType& type : WorldCatalog().types()) {
    const Amounts has{type.cpu_milli, type.memory_bytes, type.gpu_count * 1000};
    if (!each.FitsIn(has)) continue;
    if (best == nullptr || *type.on_demand_micro_usd < *best->on_demand_micro_usd) best = &type;
  }
  if (best == nullptr) return false;
  const int64_t count = workload.needed();
  return cloud_->live_gpus() + count * best->gpu_count <= caps_.gpus &&
         cloud_->live_count() + count <= caps_.nodes &&
         cloud_->live_price() + count * *best->on_demand_micro_usd <= caps_.micro_usd_per_hour;
}

// A webhook keeps one of its pods from being bound.
bool Checks::IsRefused(const Workload& workload) const {
  const std::set<std::string>& refused = server_->refused_bindings();
  return std::any_of(workload.waiting.begin(), workload.waiting.end(),
                     [&](const PodRow* row) { return refused.contains(row->facts.name); });
}

bool Checks::IsAnyRefused() const {
  const std::vector<Workload> waiting = truth_->Waiting();
  return std::any_of(waiting.begin(), waiting.end(),
                     [&](const Workload& workload) { return IsRefused(workload); });
}

void Checks::CheckLiveness() {
  std::map<std::string, absl::Time> fits, buyable, preempts;
  const absl::Time now = time_->now();
  for (const Workload& workload : truth_->Waiting()) {
    if (!truth_->Entitled(workload) || IsRefused(workload)) continue;
    const auto judge = [&](const char* invariant, std::map<std::string, absl::Time>& former,
                           std::map<std::string, absl::Time>& current, absl::Duration bound,
                           const char* why) {
      const auto since = former.find(workload.key);
      const bool begins = since == former.end() || now <= disturbed_until_;
      current[workload.key] = begins ? now : since->second;
      if (now - current[workload.key] <= bound) return;
      Fail(invariant,
           absl::StrCat(workload.group != nullptr ? "group " : "pod ", workload.key, " of queue ",
                        workload.queue, " (", workload.needed(), " pods of ",
                        workload.waiting.front()->facts.requests.Text(), ") ", why, " for ",
                        absl::FormatDuration(now - current[workload.key]),
                        " and waits: ", workload.waiting.front()->facts.condition, " ",
                        workload.group != nullptr ? workload.group->facts.verdict_code : ""));
    };
    if (truth_->CouldPreempt(workload)) {
      judge("preempt", preempts_since_, preempts, kPreemptWithin, "may evict pods of its queue");
    }
    if (truth_->FitsNow(workload)) {
      judge("liveness", fits_since_, fits, kPlaceWithin, "fits into idle room");
    } else if (CanBeBought(workload)) {
      judge("liveness", buyable_since_, buyable, kBuyWithin, "could have a machine");
    }
  }
  fits_since_ = std::move(fits);
  buyable_since_ = std::move(buyable);
  preempts_since_ = std::move(preempts);
}

// The lease is another's within its life and the deadline of its renewal.
void Checks::CheckHung() {
  const auto hung = hung_.find(holder_);
  if (hung == hung_.end() || time_->now() > hung->second.until) return;
  // With nothing else wrong there is another one that could lead.
  if (time_->now() - hung->second.since <= kHung || disturbed_since_ < hung->second.since) return;
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
      std::max({others_changed_at_, settled_at_, disturbed_until_ + kRecovery}) +
      absl::Seconds(1) * told / core::StatusUpdater::kRefreshesPerSecond + caps_.searched;
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
  CheckDoubtfulRequests();
}

void Checks::NoteBindings(const core::DecisionLoop* leader) {
  std::map<std::string, absl::Time> current;
  if (leader != nullptr) {
    for (const core::RunningRow& row : leader->MakeView(time_->now()).running) {
      if (row.status != "Binding") continue;
      const auto since = binding_since_.find(row.pod);
      current[row.pod] = since == binding_since_.end() ? time_->now() : since->second;
    }
  }
  binding_since_ = std::move(current);
}

void Checks::WhileCalm(const core::DecisionLoop* leader) {
  NoteBindings(leader);
  CheckLiveness();
  CheckGangs();
  CheckParts();
  CheckStorm();
  // A node may be kept for what a webhook refuses.
  if (!IsAnyRefused()) machines_.WhileCalm(std::max(settled_at_, disturbed_until_));
}

// ---- at the end
// ----------------------------------------------------------------------------------

// Long after it was bound, and with nothing in the way of the write.
void Checks::CheckToldThatRun() {
  const absl::Time now = time_->now();
  if (now <= disturbed_until_ + kRecovery) return;
  for (const auto& [key, row] : truth_->pods()) {
    const sim::world::PodFacts& pod = row.facts;
    if (!pod.ours || pod.node.empty() || pod.terminal || pod.terminating) continue;
    if (row.bound_at > now - kRecovery || (pod.condition.empty() && pod.verdict.empty())) continue;
    Fail("verdict", absl::StrCat("pod ", key, " has run on ", pod.node, " for ",
                                 absl::FormatDuration(now - row.bound_at), " and is told ",
                                 pod.condition.empty() ? pod.verdict : pod.condition));
  }
}

void Checks::CheckVerdicts() {
  const absl::Time settled = time_->now() - absl::Seconds(30);
  for (const auto& [key, row] : truth_->pods()) {
    const sim::world::PodFacts& pod = row.facts;
    if (!pod.ours || pod.terminal || pod.terminating) continue;
    if (!pod.node.empty()) {
      if (row.bound_at > settled) continue;
      if (!pod.condition.empty() || !pod.verdict.empty()) {
        Fail("verdict", absl::StrCat("pod ", key, " runs on ", pod.node, " and is told ",
                                     pod.condition.empty() ? pod.verdict : pod.condition));
      }
    } else if (row.created < settled && pod.condition.empty() && !pod.gated) {
      Fail("condition",
           absl::StrCat("pod ", key, " waits and has no condition PodScheduled=False"));
    }
  }
  static const auto* const kCapacity = new std::set<std::string>{
      "Unschedulable", "InsufficientCapacity", "NodesRequested", "WaitingForVictims"};
  for (const Workload& workload : truth_->Waiting()) {
    const std::string code = truth_->PolicyCode(workload);
    for (const PodRow* row : workload.waiting) {
      if (!row->facts.hopeless || row->created > settled) continue;
      if (!kCapacity->contains(row->facts.condition)) continue;
      Fail("verdict", absl::StrCat("pod ", row->facts.key(), " is told ", row->facts.condition,
                                   ", and no node could ever help it"));
    }
    for (const PodRow* row : workload.waiting) {
      // Without a condition: that is told by its own name.
      if (row->created > settled || row->facts.gated || row->facts.condition.empty()) continue;
      if (!code.empty() && row->facts.condition != code) {
        Fail("verdict", absl::StrCat("pod ", row->facts.key(), " is told ", row->facts.condition,
                                     "; true is ", code));
      }
      if (code.empty() && row->facts.condition == "QueueLimitReached" &&
          truth_->Entitled(workload) && truth_->OverLimitBeside(workload).empty()) {
        Fail("verdict", absl::StrCat("pod ", row->facts.key(),
                                     " is told QueueLimitReached, and is below every limit, also "
                                     "with all that waits for capacity"));
      }
    }
  }
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
  const FailBelief fail = [this](const std::string& invariant, const std::string& text) {
    Fail(invariant, text);
  };
  const Belief belief{leader->MakeView(time_->now()), time_->now(), began, binding_since_};
  CheckPods(belief, *truth_, fail);
  CheckNodes(belief, *truth_, fail);
  CheckCharges(belief, *truth_, fail);
  CheckVerdicts();
}

}  // namespace fairlead::simtest
