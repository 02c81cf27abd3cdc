// Of Checks: at every write of Fairlead's.
#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "cmd/simtest/checks.h"
#include "kube/write/executor.h"
#include "scheduler/model/api_names.h"
#include "sim/world/api_json.h"
#include "sim/world/pool_objects.h"

namespace fairlead::simtest {
namespace {

using sim::world::Amounts;
using sim::world::ApiServer;
using sim::world::Json;
using sim::world::PodRow;
using sim::world::ResourceType;
using sim::world::TextAt;
using sim::world::Workload;

constexpr int64_t kMostDoublings = 6;  // engine::MoveHistory
constexpr absl::Duration kWaitingMemory = absl::Seconds(60);

bool IsFairlead(absl::string_view actor) { return absl::StartsWith(actor, "fairlead"); }

bool IsDeletion(const ApiServer::Commit& commit) {
  return commit.before != nullptr &&
         (commit.after == nullptr ||
          !TextAt(*commit.after, {"metadata", "deletionTimestamp"}).empty());
}

}  // namespace

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
  shards_.OnCommit(commit, IsFairlead(commit.actor), KnownSince());
  if (IsFairlead(commit.actor)) {
    OnWrite(commit);
  } else {
    if (commit.actor == "pod-grouper") CheckGrouped(commit);
    // Heartbeats of agents are no change that anything should follow.
    if (commit.actor != "agent") others_changed_at_ = time_->now();
    if (IsDeletion(commit) && commit.type == ResourceType::kNodeRequests) {
      machines_.OnTaken(TextAt(*commit.before, {"metadata", "uid"}));
    }
  }
  if (commit.type == ResourceType::kPods) {
    std::optional<sim::world::PodFacts> before, after;
    if (commit.before != nullptr) before = sim::world::ReadPod(*commit.before);
    if (commit.after != nullptr) after = sim::world::ReadPod(*commit.after);
    const sim::world::PodFacts& last = after.has_value() ? *after : *before;
    if (before.has_value()) pools_.NoteUse(*before);
    if (after.has_value()) pools_.NoteUse(*after);
    NoteTouched(before, last);
    if (before.has_value()) NoteServed(*before);
    NotePart(last);
  }
  if (commit.type == ResourceType::kNodes) {
    pools_.OnNode(commit, KnownSince(), !IsDisturbed(), clocks_.empty());
  }
  if (commit.type == ResourceType::kPods || commit.type == ResourceType::kCapacityBuffers ||
      commit.type == ResourceType::kProvisioningRequests) {
    NoteWaiting();
  }
}

// Pods, and what asks for room without pods.
void Checks::NoteWaiting() {
  int64_t waiting = 0;
  for (const auto& [key, row] : truth_->pods()) waiting += row.facts.waiting() ? 1 : 0;
  server_->ForEach(ResourceType::kCapacityBuffers, [&](const Json& buffer) {
    waiting += buffer["spec"].value("replicas", int64_t{0});
  });
  server_->ForEach(ResourceType::kProvisioningRequests, [&](const Json& request) {
    for (const Json& set : request["spec"]["podSets"]) waiting += set.value("count", int64_t{0});
  });
  const absl::Time now = time_->now();
  waiting_then_[now] = std::max(waiting_then_[now], waiting);
  // The last one before the window says how many there were when it began.
  while (waiting_then_.size() > 1 &&
         std::next(waiting_then_.begin())->first < now - kWaitingMemory) {
    waiting_then_.erase(waiting_then_.begin());
  }
}

// A workload may wait between two looks at all of them.
void Checks::NoteServed(const sim::world::PodFacts& before) {
  if (!before.waiting()) return;
  const std::string group = before.ns + "/" + before.group;
  served_at_[truth_->groups().contains(group) ? group : before.key()] = time_->now();
}

void Checks::Touch(const sim::world::PodFacts& pod, const std::string& queue) {
  touched_[pod.key()] = time_->now();
  if (!pod.group.empty()) touched_[absl::StrCat(pod.ns, "/", pod.group)] = time_->now();
  for (const std::string& name : truth_->Chain(queue)) touched_queues_[name] = time_->now();
}

// Anything but what Fairlead tells a pod that waits.
void Checks::NoteTouched(const std::optional<sim::world::PodFacts>& before,
                         const sim::world::PodFacts& after) {
  if (!after.ours) return;
  const auto row = truth_->pods().find(after.key());
  if (row == truth_->pods().end()) {
    const auto group = truth_->groups().find(absl::StrCat(after.ns, "/", after.group));
    const bool filed = group != truth_->groups().end() && !group->second.facts.queue.empty();
    return Touch(after, filed ? group->second.facts.queue : after.queue_label);
  }
  if (!before.has_value()) return Touch(after, row->second.queue);
  const auto decides = [](const sim::world::PodFacts& pod) {
    return std::tie(pod.uid, pod.node, pod.group, pod.sub_group, pod.queue_label, pod.requests.cpu,
                    pod.terminal, pod.terminating, pod.gated, pod.priority_class);
  };
  if (decides(*before) == decides(after)) return;
  Touch(*before, before->queue_label);
  Touch(after, row->second.queue);
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
  if (commit.type == ResourceType::kNodeRequests && commit.before == nullptr) {
    requested_at_ = time_->now();
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
      CheckKnownGroup(*commit.after);
      OnBinding(truth_->pods().at(absl::StrCat(TextAt(*commit.after, {"metadata", "namespace"}),
                                               "/", TextAt(*commit.after, {"metadata", "name"}))));
    }
  }
  if (commit.type == ResourceType::kPods && commit.before != nullptr) {
    const sim::world::PodFacts former = sim::world::ReadPod(*commit.before);
    const bool leaves = commit.after == nullptr || sim::world::ReadPod(*commit.after).terminating;
    if (leaves && !former.terminating && !former.node.empty() && former.ours) OnEviction(former);
    if (commit.after != nullptr) {
      CheckClaim(*commit.before, *commit.after, std::string(commit.actor));
    }
  }
  CheckBlind(commit);
  suspensions_.OnWrite(commit);
  if (commit.type == ResourceType::kResourceClaims) devices_.OnClaim(commit, KnownSince());
  volumes_.OnWrite(commit, KnownSince());
  kai_.OnWrite(commit, time_->now() > std::max(disturbed_until_, refused_until_) + kRecovery);
  if (commit.type == ResourceType::kPodGroups && commit.before != nullptr &&
      commit.after != nullptr) {
    CheckPassing(*commit.before, *commit.after);
  }
  if (commit.type == ResourceType::kNodeRequests && commit.before == nullptr) {
    machines_.OnRequest(*commit.after, time_->now() > disturbed_until_ + kRecovery,
                        purchases_excused_);
    pools_.OnRequest(*commit.after, KnownSince());
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
void Checks::CheckClaim(const Json& before, const Json& after, const std::string& actor) {
  const std::string why = sim::world::DisruptionOf(after);
  if (why.empty() || why == sim::world::DisruptionOf(before)) return;
  const sim::world::PodFacts pod = sim::world::ReadPod(after);
  CheckGangEviction(pod, why);
  OnEvictionFor(pod, why);
  if (absl::StartsWith(why, "Moved (consolidation)")) {
    CheckMove(after, actor);
  }
  CheckServed(pod, why);
}

void Checks::CheckServed(const sim::world::PodFacts& pod, const std::string& why) {
  const absl::Time now = time_->now();
  for (const Workload& workload : truth_->Waiting()) {
    served_at_[workload.key] = now;
    // A pod may have got its group since the decision.
    for (const PodRow* row : workload.waiting) served_at_[row->facts.key()] = now;
  }
  for (const auto& [key, last] : served_at_) {
    if (!absl::StrContains(why, absl::StrCat("for workload ", key, " of"))) continue;
    if (now - last <= kServed || now <= disturbed_until_ + kRecovery) continue;
    Fail("eviction", absl::StrCat("pod ", pod.name, " is told \"", why, "\", and ", key,
                                  " has not waited for ", absl::FormatDuration(now - last)));
  }
}

void Checks::CheckMove(const Json& pod, const std::string& actor) {
  const auto found = truth_->pods().find(sim::world::ReadPod(pod).key());
  if (found == truth_->pods().end()) return;
  const PodRow& row = found->second;
  const int64_t moves = CountMove(row, actor);
  absl::Time start;
  const std::string text = TextAt(pod, {"metadata", "annotations", model::kLastStartAnnotation});
  if (!absl::ParseTime(absl::RFC3339_full, text, &start, nullptr)) return;
  // By its own clock it counts from starts that others have written by theirs.
  if (ClockOf(actor).changed_at != absl::InfinitePast()) return;
  const absl::Time now = time_->now();
  // Written by a clock that differs.
  if (absl::AbsDuration(row.bound_at - start) > kKnown) return;
  if (now - start >= kMovable * (int64_t{1} << std::min(moves, kMostDoublings))) return;
  Fail("move",
       absl::StrCat("pod ", row.facts.key(), " is moved ", absl::FormatDuration(now - start),
                    " after its start; its group was moved ", moves, " times before"));
}

// Pods that were bound before the last eviction belong to the same move. A move that nothing
// disturbed is remembered by the process that made it.
int64_t Checks::CountMove(const PodRow& pod, const std::string& actor) {
  const Json* const group = pod.facts.group.empty() ? nullptr
                                                    : server_->Find(ResourceType::kPodGroups,
                                                                    pod.facts.ns, pod.facts.group);
  if (group == nullptr) return 0;
  Moves& moves = moves_[absl::StrCat(actor, " ", TextAt(*group, {"metadata", "uid"}))];
  const absl::Time last = std::exchange(moves.last, time_->now());
  const bool another = pod.bound_at > last;
  const int64_t before = last < KnownSince() ? moves.decisions - (another ? 0 : 1) : int64_t{0};
  const absl::Time calm_since =
      std::max({disturbed_until_ + kRecovery, refused_until_ + kKnown, reloaded_until_});
  if (another && time_->now() > calm_since) ++moves.decisions;
  return std::max<int64_t>(0, before);
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
  } else if (SuspensionChecks::Suspends(commit)) {
    what = "suspends a workload";
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

// The position is only shown on request; what is written already need not be written.
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
  // A write that waits behind refused ones may be given up unsent, and so may the one after it:
  // what they would have said is said again.
  const absl::Duration given_up = 2 * kube::kQueuedFor;
  if (time_->now() <= std::max(refused_until_, unanswered_until_) + kKnown + given_up) return;
  if (now.is_null() || now != lasting(before)) return;
  const Json former_status = before.value("status", Json()), status = after.value("status", Json());
  if (former_status == status) return;  // the write was about something else
  constexpr char kCounts[] = "resourcesStatus";
  if (former_status.value(kCounts, Json()) != status.value(kCounts, Json())) return;
  const auto conditions = [](const Json& of) {
    Json all = of.value("schedulingConditions", Json::array());
    for (Json& condition : all) {
      condition.erase("lastTransitionTime");
      condition.erase("transitionID");
    }
    return all;
  };
  const bool same =
      former_status.value("schedulability", Json()) == status.value("schedulability", Json());
  if (same && conditions(former_status) != conditions(status)) return;
  Fail("storm",
       absl::StrCat("the verdict of group ", TextAt(after, {"metadata", "name"}),
                    " is written again, and ",
                    same ? "nothing of it" : "only its position, or what nodes lack beside a cap,",
                    " has changed"));
}

void Checks::OnEviction(const sim::world::PodFacts& pod) {
  stirred_at_ = time_->now();
  CountEviction(pod, absl::StrCat("evictions of pods of ", pod.job), kManyEvictions);
}

void Checks::OnEvictionFor(const sim::world::PodFacts& pod, absl::string_view why) {
  const std::vector<absl::string_view> parts = absl::StrSplit(why, "for workload ");
  if (parts.size() < 2) return;
  const std::string key(*absl::StrSplit(parts[1], ' ').begin());
  const auto lone = truth_->pods().find(key);
  const std::string gainer = lone == truth_->pods().end() ? key : lone->second.facts.job;
  CountEviction(pod, absl::StrCat("evictions of pods of ", pod.job, " for ", gainer),
                kCalmEvictions);
}

void Checks::CountEviction(const sim::world::PodFacts& pod, const std::string& what, int64_t most) {
  const absl::Time now = time_->now();
  std::deque<absl::Time>& times = evictions_[what];
  times.push_back(now);
  while (times.front() <= now - kChurn.back().time) times.pop_front();
  int64_t pods = 0;
  for (const auto& [key, row] : truth_->pods()) pods += row.facts.job == pod.job ? 1 : 0;
  for (const ChurnBound& bound : kChurn) {
    const absl::Time since = now - bound.time;
    if (settled_at_ > since) continue;
    const auto first = std::upper_bound(times.begin(), times.end(), since);
    if (std::distance(first, times.end()) <= most + bound.rounds * pods) continue;
    Fail("churn", absl::StrCat(std::distance(first, times.end()), " ", what, " in ",
                               absl::FormatDuration(bound.time)));
  }
}

void Checks::OnBinding(const PodRow& row) {
  stirred_at_ = time_->now();
  CheckPlacement(row);
  CheckShare(row);
  devices_.OnBinding(row);
  volumes_.OnBinding(row, KnownSince());
  for (const std::string& name : truth_->Chain(row.queue)) {
    if (!OverLimitText(name, row.facts.requests).empty()) {
      over_limit_.try_emplace(name, OverLimit{time_->now(), row.facts.key(), row.facts.requests});
    }
  }
  const auto node = truth_->nodes().find(row.facts.node);
  if (node == truth_->nodes().end()) return;
  const absl::Time known = KnownSince();
  if (row.facts.ours && node->second.closed_since < known) {
    Fail("misplaced", absl::StrCat("pod ", row.facts.key(), " is bound to ", row.facts.node,
                                   ", which has been tainted by others, cordoned or unready for ",
                                   absl::FormatDuration(time_->now() - node->second.closed_since)));
  }
  const std::vector<std::string>& tolerates = row.facts.tolerates;
  if (row.facts.ours && node->second.facts.kept_for_pool &&
      std::find(tolerates.begin(), tolerates.end(), sim::world::kPoolTaintKey) == tolerates.end()) {
    Fail("misplaced", absl::StrCat("pod ", row.facts.key(), " is bound to ", row.facts.node,
                                   " and does not tolerate the taint of its NodePool"));
  }
  if (row.facts.ours && node->second.removing_since < known) {
    reopened_.push_back({row.facts.key(), row.facts.node, time_->now()});
  }
  CheckLoad(row, node->second);
}

void Checks::CheckLoad(const PodRow& row, const sim::world::NodeRow& has) {
  const absl::Time known = KnownSince();
  auto load = truth_->LoadOf(row.facts.node, [&](const PodRow& other) {
    return other.BoundByFairlead() || other.bound_at < known;
  });
  // Of what the pod requests: a node may have lost some of what others use.
  if (row.facts.requests.cpu <= 0) load.amounts.cpu = 0;
  if (row.facts.requests.memory <= 0) load.amounts.memory = 0;
  if (row.facts.requests.gpu <= 0) load.amounts.gpu = 0;
  const Amounts allocatable = has.MostSince(known);
  if (load.amounts.FitsIn(allocatable) && load.pods <= has.facts.pods) return;
  Fail("overcommit",
       absl::StrCat("pod ", row.facts.key(), " bound to ", row.facts.node, ", which now holds ",
                    load.amounts.Text(), " in ", load.pods, " pods and has ", allocatable.Text()));
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

}  // namespace fairlead::simtest
