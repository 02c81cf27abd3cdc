#include "sim/world/truth.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"

namespace fairlead::sim::world {

bool PodRow::BoundByFairlead() const { return absl::StartsWith(bound_by, "fairlead"); }

int64_t Workload::needed() const {
  const int64_t missing = std::max<int64_t>(1, min_member - active);
  return std::min<int64_t>(missing, static_cast<int64_t>(waiting.size()));
}

Truth::Truth(const EventQueue* time, ApiServer* server)
    : time_(time),
      server_(server),
      began_(time->now()),
      devices_(time),
      volumes_(time),
      pools_of_nodes_(time) {
  server->Listen([this](const ApiServer::Commit& commit) {
    switch (commit.type) {
      case ResourceType::kPods:
        return OnPod(commit);
      case ResourceType::kNodes:
        return OnNode(commit);
      case ResourceType::kQueues:
        return OnQueue(commit);
      case ResourceType::kPodGroups:
        return OnGroup(commit);
      case ResourceType::kPriorityClasses:
        return OnClass(commit);
      default:
        pools_of_nodes_.OnCommit(commit);
        devices_.OnCommit(commit);
        return volumes_.OnCommit(commit);
    }
  });
}

std::string Truth::QueueOf(const PodRow& row) const {
  if (row.facts.group.empty()) return row.facts.queue_label;
  const auto group = groups_.find(row.facts.ns + "/" + row.facts.group);
  if (group != groups_.end() && !group->second.facts.queue.empty()) {
    return group->second.facts.queue;
  }
  return row.queue.empty() ? row.facts.queue_label : row.queue;
}

void Truth::OnPod(const ApiServer::Commit& commit) {
  const PodFacts facts = ReadPod(commit.after != nullptr ? *commit.after : *commit.before);
  const std::string key = facts.key();
  if (commit.after == nullptr) {
    if (!facts.node.empty()) ++pods_ended_;
    NoteDeparture(facts);
    pods_.erase(key);
    return;
  }
  auto [it, added] = pods_.try_emplace(key);
  PodRow& row = it->second;
  const bool another = row.facts.uid != facts.uid;
  if (another) row = PodRow();
  if (added || another) {
    row.created = time_->now();
    ++pods_created_;
  }
  const std::string former_group = row.facts.group;
  const bool ordered_anew = row.facts.task_priority != facts.task_priority ||
                            row.facts.has_task_priority != facts.has_task_priority ||
                            row.facts.queue_label != facts.queue_label;
  if (row.facts.share != facts.share) row.share_changed_at = time_->now();
  row.regrouped |= !added && !another && former_group != facts.group;
  row.facts = facts;
  const bool ends = facts.terminal || facts.terminating;
  if (ends && row.ended_at == absl::InfinitePast()) row.ended_at = time_->now();
  if (facts.succeeded) row.succeeded_at = std::min(row.succeeded_at, time_->now());
  if (!facts.node.empty() && row.bound_by.empty()) {
    row.bound_by = std::string(commit.actor);
    row.bound_at = time_->now();
    row.started_under = QueueOf(row);
    row.started_for_good = GroupForbidsEvictions(facts.ns + "/" + facts.group);
    row.started_share = facts.share;
  }
  const std::string queue = QueueOf(row);
  if (queue != row.queue || facts.group != former_group || ordered_anew)
    row.moved_at = time_->now();
  row.queue = queue;
  if (facts.succeeded && !facts.group.empty()) {
    const auto group = groups_.find(facts.ns + "/" + facts.group);
    if (group != groups_.end()) group->second.any_succeeded = true;
  }
}

void Truth::NoteDeparture(const PodFacts& facts) {
  constexpr absl::Duration kRemembered = absl::Minutes(1);
  while (!departed_.empty() && departed_.front().at < time_->now() - kRemembered) {
    departed_.pop_front();
  }
  if (facts.app.empty() || facts.node.empty()) return;
  departed_.push_back({facts.ns, facts.app, facts.node, time_->now()});
}

Amounts NodeRow::MostSince(absl::Time time) const {
  Amounts most = facts.allocatable;
  for (const auto& [until, amounts] : former) {
    if (until < time) continue;
    most.cpu = std::max(most.cpu, amounts.cpu);
    most.memory = std::max(most.memory, amounts.memory);
    most.gpu = std::max(most.gpu, amounts.gpu);
  }
  return most;
}

void Truth::OnNode(const ApiServer::Commit& commit) {
  const NodeFacts facts = ReadNode(commit.after != nullptr ? *commit.after : *commit.before);
  if (commit.after == nullptr) {
    nodes_.erase(facts.name);
    nodes_changed_at_ = time_->now();
    return;
  }
  auto [it, added] = nodes_.try_emplace(facts.name);
  NodeRow& row = it->second;
  if (added || row.facts.uid != facts.uid) {
    row = NodeRow();
    nodes_changed_at_ = time_->now();
    // One of its name was there before: its labels may be what is known.
    if (!node_names_.insert(facts.name).second) row.labels_changed_at = time_->now();
  } else if (!(row.facts.allocatable == facts.allocatable)) {
    row.former.emplace_back(time_->now(), row.facts.allocatable);
  }
  if (!row.facts.name.empty() && row.facts.labels != facts.labels) {
    row.labels_changed_at = nodes_changed_at_ = time_->now();
  }
  const bool closed = facts.tainted_by_others || facts.unschedulable || !facts.ready;
  if (!closed) row.closed_since = absl::InfiniteFuture();
  if (closed && row.closed_since == absl::InfiniteFuture()) row.closed_since = time_->now();
  if (facts.removing && !row.facts.removing) row.removing_since = time_->now();
  if (!facts.removing) row.removing_since = absl::InfiniteFuture();
  row.facts = facts;
}

void Truth::OnQueue(const ApiServer::Commit& commit) {
  const QueueFacts facts = ReadQueue(commit.after != nullptr ? *commit.after : *commit.before);
  if (commit.after == nullptr || IsOfOtherShard(*commit.after)) {
    queues_.erase(facts.name);
    gone_queues_[facts.name] = time_->now();
    return;
  }
  QueueRow& row = queues_[facts.name];
  row.facts = facts;
  row.changed_at = time_->now();
}

void Truth::OnClass(const ApiServer::Commit& commit) {
  const Json& object = commit.after != nullptr ? *commit.after : *commit.before;
  ClassRow& row = classes_[TextAt(object, {"metadata", "name"})];
  row.exists = commit.after != nullptr;
  row.value = object.value("value", int64_t{0});
  row.changed_at = time_->now();
}

ClassRow Truth::ClassOf(const std::string& name) const {
  const auto found = classes_.find(name);
  return found == classes_.end() ? ClassRow{0, false, absl::InfinitePast()} : found->second;
}

void Truth::OnGroup(const ApiServer::Commit& commit) {
  const GroupFacts facts = ReadGroup(commit.after != nullptr ? *commit.after : *commit.before);
  const bool gone = commit.after == nullptr || IsOfOtherShard(*commit.after);
  const std::string key = facts.ns + "/" + facts.name;
  const auto former = groups_.find(key);
  const bool changed = gone || former == groups_.end() ||
                       former->second.facts.queue != facts.queue ||
                       former->second.facts.min_member != facts.min_member;
  const bool for_good = GroupForbidsEvictions(key);
  if (gone) {
    groups_.erase(key);
  } else {
    GroupRow& row = groups_[key];
    row.facts = facts;
    if (changed) row.changed_at = time_->now();
  }
  if (!changed) return;
  for (auto& [pod, row] : pods_) {
    if (row.facts.ns != facts.ns || row.facts.group != facts.name) continue;
    const std::string queue = QueueOf(row);
    row.moved_at = time_->now();
    row.queue = queue;
    if (gone) row.left_for_good = for_good && !row.bound_by.empty();
  }
}

Truth::Load Truth::LoadOf(const std::string& node,
                          const std::function<bool(const PodRow&)>& counts) const {
  Load load;
  for (const auto& [key, row] : pods_) {
    if (row.facts.node != node || row.facts.terminal || !counts(row)) continue;
    load.amounts += row.facts.requests;
    ++load.pods;
  }
  return load;
}

std::vector<std::string> Truth::Chain(const std::string& queue) const {
  std::vector<std::string> chain;
  for (std::string at = queue; !at.empty();) {
    const auto found = queues_.find(at);
    if (found == queues_.end()) return {};
    if (std::find(chain.begin(), chain.end(), at) != chain.end()) return {};
    chain.push_back(at);
    at = found->second.facts.parent;
  }
  return chain;
}

bool Truth::IsLeaf(const std::string& queue) const {
  return std::none_of(queues_.begin(), queues_.end(),
                      [&](const auto& entry) { return entry.second.facts.parent == queue; });
}

void Truth::ForEachActiveBelow(const std::string& queue,
                               const std::function<void(const PodFacts&)>& visit) const {
  std::map<std::string, bool> below;  // whether that queue is at or below `queue`
  for (const auto& [key, row] : pods_) {
    if (!row.facts.ours || !row.facts.active() || row.queue.empty()) continue;
    auto [it, added] = below.try_emplace(row.queue, row.queue == queue);
    if (added && !it->second) {
      const std::vector<std::string> chain = Chain(row.queue);
      it->second = std::find(chain.begin(), chain.end(), queue) != chain.end();
    }
    if (it->second) visit(row.facts);
  }
}

Amounts Truth::UseOf(const std::string& queue, bool terminating_too) const {
  Amounts use;
  ForEachActiveBelow(queue, [&](const PodFacts& pod) {
    if (!pod.terminating || terminating_too) use += pod.requests;
  });
  return use;
}

namespace {

std::string Exceeds(const std::string& queue, const char* what, const char* resource, int64_t used,
                    int64_t more, int64_t bound) {
  if (bound == kNoLimit || more <= 0 || used + more <= bound) return "";
  return absl::StrCat("queue ", queue, ": ", used, " of ", resource, " used, ", more, " more, ",
                      what, " ", bound);
}

std::string ExceedsLimit(const QueueFacts& queue, const Amounts& use, const Amounts& more) {
  for (const std::string& over :
       {Exceeds(queue.name, "limit", "milli-GPU", use.gpu, more.gpu, queue.gpu_limit),
        Exceeds(queue.name, "limit", "milli-CPU", use.cpu, more.cpu, queue.cpu_limit),
        Exceeds(queue.name, "limit", "bytes", use.memory, more.memory, queue.memory_limit)}) {
    if (!over.empty()) return over;
  }
  return "";
}

// It lacks nothing but room that there may be: no policy holds it, and no cap.
bool IsToldToWaitForCapacity(const Workload& workload) {
  static const auto* const kReasons = new std::set<std::string>{
      "Unschedulable", "InsufficientCapacity", "NodesRequested", "WaitingForVictims"};
  return std::any_of(workload.waiting.begin(), workload.waiting.end(),
                     [](const PodRow* row) { return kReasons->contains(row->facts.condition); });
}

}  // namespace

std::string Truth::OverLimit(const std::string& queue, const Amounts& more,
                             bool terminating_too) const {
  for (const std::string& name : Chain(queue)) {
    std::string over = ExceedsLimit(queues_.at(name).facts, UseOf(name, terminating_too), more);
    if (!over.empty()) return over;
  }
  return "";
}

namespace {

// Of a GPU, in thousandths: what a pod that shares one is charged at most.
int64_t MostOfShare(const PodFacts& pod) {
  if (!pod.shares_gpu) return 0;
  return pod.share > 0 ? pod.share : 1000;
}

}  // namespace

Amounts Truth::AwaitedBy(const std::string& queue, const std::string& but) const {
  Amounts awaited;
  for (const Workload& workload : Waiting()) {
    if (workload.key == but || !IsToldToWaitForCapacity(workload)) continue;
    const sim::world::PodFacts& first = workload.waiting.front()->facts;
    if (first.impossible || first.hopeless) continue;
    const std::vector<std::string> chain = Chain(workload.queue);
    if (std::find(chain.begin(), chain.end(), queue) == chain.end()) continue;
    for (const PodRow* row : workload.waiting) {
      awaited += row->facts.requests;
      awaited.gpu += MostOfShare(row->facts);
    }
  }
  return awaited;
}

int64_t Truth::SharedBy(const std::string& queue) const {
  int64_t gpu = 0;
  ForEachActiveBelow(queue, [&](const PodFacts& pod) { gpu += MostOfShare(pod); });
  return gpu;
}

std::string Truth::OverLimitBeside(const Workload& workload) const {
  Amounts more;
  for (int64_t i = 0; i < workload.needed(); ++i) {
    more += workload.waiting[static_cast<size_t>(i)]->facts.requests;
    more.gpu += MostOfShare(workload.waiting[static_cast<size_t>(i)]->facts);
  }
  for (const std::string& name : Chain(workload.queue)) {
    Amounts use = UseOf(name);
    use += AwaitedBy(name, workload.key);
    use.gpu += SharedBy(name);
    std::string over = ExceedsLimit(queues_.at(name).facts, use, more);
    if (!over.empty()) return over;
  }
  return "";
}

std::string Truth::OverQuota(const std::string& queue, const Amounts& more) const {
  for (const std::string& name : Chain(queue)) {
    const QueueFacts& facts = queues_.at(name).facts;
    const Amounts use = UseOf(name);
    for (const std::string& over :
         {Exceeds(name, "quota", "milli-GPU", use.gpu, more.gpu, facts.gpu_quota),
          Exceeds(name, "quota", "milli-CPU", use.cpu, more.cpu, facts.cpu_quota),
          Exceeds(name, "quota", "bytes", use.memory, more.memory, facts.memory_quota)}) {
      if (!over.empty()) return over;
    }
  }
  return "";
}

absl::Time Truth::PolicyChangedAt(const std::string& queue) const {
  absl::Time latest = absl::InfinitePast();
  const std::vector<std::string> chain = Chain(queue);
  for (const std::string& name : chain) {
    latest = std::max(latest, queues_.at(name).changed_at);
    const auto gone = gone_queues_.find(name);
    if (gone != gone_queues_.end()) latest = std::max(latest, gone->second);
  }
  // A sibling that comes or goes changes what is below a queue; a pod that moves changes its use.
  for (const auto& [name, row] : queues_) latest = std::max(latest, row.changed_at);
  for (const auto& [name, when] : gone_queues_) latest = std::max(latest, when);
  for (const auto& [key, row] : pods_) {
    if (row.facts.ours && row.facts.active() && row.moved_at > row.created) {
      latest = std::max(latest, row.moved_at);
    }
  }
  return latest;
}

namespace {

// They may run on the same nodes.
bool AreAlike(const PodFacts& a, const PodFacts& b) {
  const auto text = [](const PodFacts& pod) {
    return pod.placement == nullptr ? std::string() : pod.placement->text;
  };
  return a.requests == b.requests && a.app == b.app && text(a) == text(b) &&
         a.claims.empty() == b.claims.empty() && a.volumes.empty() == b.volumes.empty();
}

}  // namespace

bool Truth::GroupForbidsEvictions(const std::string& group) const {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return false;
  const ClassRow row = ClassOf(found->second.facts.priority_class);
  return row.changed_at == began_ && !row.IsPreemptible();
}

bool Truth::RunsForGood(const PodRow& row) const {
  if (!row.started_for_good || row.regrouped) return false;
  const std::string group = row.facts.ns + "/" + row.facts.group;
  return groups_.contains(group) ? GroupForbidsEvictions(group) : row.left_for_good;
}

std::vector<Workload> Truth::Waiting() const {
  std::map<std::string, Workload> by_key;
  for (const auto& [key, row] : pods_) {
    const PodFacts& facts = row.facts;
    if (!facts.ours || facts.terminal || facts.terminating) continue;
    const std::string group = facts.group.empty() ? "" : facts.ns + "/" + facts.group;
    const auto found = groups_.find(group);
    Workload& workload = by_key[found == groups_.end() ? "pod " + key : "group " + group];
    workload.key = found == groups_.end() ? key : group;
    workload.queue = row.queue;
    // Pods that differ: which of them decides is the product's choice, so the strict one does here.
    const ClassRow of_pod = ClassOf(facts.priority_class);
    workload.preemptible = workload.preemptible && of_pod.IsPreemptible();
    workload.class_changed_at = std::max(workload.class_changed_at, of_pod.changed_at);
    if (found != groups_.end()) {
      workload.group = &found->second;
      workload.min_member = std::max<int64_t>(1, found->second.facts.min_member);
      if (!found->second.facts.priority_class.empty()) {
        const ClassRow of_group = ClassOf(found->second.facts.priority_class);
        workload.preemptible = of_group.IsPreemptible();
        workload.class_changed_at = of_group.changed_at;
      }
    }
    ++workload.members;
    if (facts.active()) ++workload.active;
    if (facts.waiting()) workload.waiting.push_back(&row);
  }
  std::vector<Workload> out;
  for (auto& [key, workload] : by_key) {
    if (!workload.waiting.empty()) out.push_back(std::move(workload));
  }
  return out;
}

std::vector<Workload> Truth::IdleParts(const Workload& workload) const {
  std::vector<Workload> parts;
  if (workload.group == nullptr || workload.group->any_succeeded) return parts;
  for (const auto& [name, least] : workload.group->facts.parts) {
    Workload part = workload;
    part.group = nullptr;
    part.part = name;
    part.min_member = least;
    part.active = 0;
    std::erase_if(part.waiting,
                  [&](const PodRow* row) { return row->facts.sub_group != part.part; });
    const bool runs = std::any_of(pods_.begin(), pods_.end(), [&](const auto& entry) {
      const PodFacts& pod = entry.second.facts;
      return pod.ns == workload.group->facts.ns && pod.group == workload.group->facts.name &&
             pod.sub_group == part.part && pod.active();
    });
    part.members = static_cast<int64_t>(part.waiting.size());
    if (!runs && least > 0 && part.members >= least) parts.push_back(std::move(part));
  }
  return parts;
}

bool Truth::Entitled(const Workload& workload) const {
  constexpr absl::Duration kHeard = absl::Seconds(10);
  if (workload.group != nullptr && workload.group->facts.odd) return false;
  if (workload.group == nullptr && workload.part.empty() &&
      !workload.waiting.front()->facts.group.empty()) {
    return false;
  }
  if (workload.members < workload.min_member) return false;
  if (workload.class_changed_at >= time_->now() - kHeard) return false;
  const std::vector<std::string> chain = Chain(workload.queue);
  if (chain.empty() || !IsLeaf(workload.queue)) return false;
  for (const std::string& name : chain) {
    if (queues_.at(name).facts.odd) return false;
  }
  Amounts more;
  const int64_t needed = workload.needed();
  for (const PodRow* row : workload.waiting) {
    if (!row->facts.ordinary) return false;
    if (row->facts.placement != nullptr && row->facts.placement->names_pods() && needed > 1) {
      return false;  // whether all fit together is not judged
    }
    const std::string& part = row->facts.sub_group;
    if (workload.group != nullptr && !part.empty() && !workload.group->facts.parts.contains(part)) {
      return false;
    }
    // Pods that are not alike: which of them are needed is the product's choice.
    if (!AreAlike(row->facts, workload.waiting.front()->facts)) return false;
  }
  if (!KnowsClaims(workload) || !KnowsVolumes(workload)) return false;
  for (int64_t i = 0; i < needed; ++i) more += workload.waiting.front()->facts.requests;
  if (!OverLimit(workload.queue, more).empty()) return false;
  return workload.preemptible || OverQuota(workload.queue, more).empty();
}

bool Truth::FitsNow(const Workload& workload) const {
  const Amounts each = workload.waiting.front()->facts.requests;
  const PodFacts& first = workload.waiting.front()->facts;
  // A claim that pods share keeps them together on one node.
  const bool together =
      (!first.claims.empty() && !first.claims[0].generated) || SharesUnboundVolume(workload);
  int64_t left = workload.needed();
  for (const auto& [name, row] : nodes_) {
    const NodeFacts& node = row.facts;
    if (!node.ready || node.tainted || node.unschedulable) continue;
    if (!MayRunOn(*workload.waiting.front(), row)) continue;
    Load load = LoadOf(name, [](const PodRow&) { return true; });
    if (together) left = workload.needed();
    const int64_t places =
        std::min({left, DevicePlaces(workload, name), VolumePlaces(workload, name)});
    for (int64_t placed = 0; placed < places && load.pods < node.pods; ++placed) {
      load.amounts += each;
      if (!load.amounts.FitsIn(node.allocatable)) break;
      ++load.pods;
      --left;
    }
    if (left <= 0) return true;
  }
  return false;
}

bool Truth::CouldPreempt(const Workload& workload) const {
  constexpr absl::Duration kSettled = absl::Seconds(30);
  constexpr int64_t kDefaultPriority = 50;
  const PodRow& pod = *workload.waiting.front();
  const ClassRow own = ClassOf(pod.facts.priority_class);
  if (workload.group != nullptr || !pod.facts.plain || !own.exists) return false;
  const auto queue = queues_.find(pod.queue);
  if (queue != queues_.end() && queue->second.facts.may_buy) return false;
  if (own.value <= kDefaultPriority || !own.IsPreemptible()) return false;
  const auto is_lower = [&](const std::string& name) {
    const ClassRow other = ClassOf(name);
    return other.exists && other.value < own.value && other.IsPreemptible() &&
           other.changed_at < time_->now() - kSettled;
  };
  if (own.changed_at >= time_->now() - kSettled) return false;
  const auto may_go = [&](const PodRow& row) {
    return row.facts.ours && row.facts.plain && row.facts.group.empty() && row.facts.active() &&
           !row.facts.terminating && is_lower(row.facts.priority_class) &&
           row.facts.priority < pod.facts.priority && row.queue == pod.queue &&
           row.started_under == pod.queue && row.bound_at < time_->now() - kSettled &&
           server_->Find(ResourceType::kPodDisruptionBudgets, row.facts.ns, row.facts.job) ==
               nullptr;
  };
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& entry) {
    const NodeFacts& node = entry.second.facts;
    if (!node.ready || node.tainted || node.unschedulable) return false;
    Load load = LoadOf(entry.first, [&](const PodRow& row) { return !may_go(row); });
    load.amounts += pod.facts.requests;
    return load.amounts.FitsIn(node.allocatable) && load.pods < node.pods;
  });
}

std::string Truth::PolicyCode(const Workload& workload) const {
  if (workload.queue.empty()) return "";
  if (!queues_.contains(workload.queue)) {
    // What the pods themselves ask for wrongly is told first.
    const bool odd = std::any_of(workload.waiting.begin(), workload.waiting.end(),
                                 [](const PodRow* row) { return !row->facts.ordinary; });
    return odd ? "" : "QueueNotFound";
  }
  if (Chain(workload.queue).empty()) return "";
  for (const std::string& name : Chain(workload.queue)) {
    if (queues_.at(name).facts.odd) return "";
  }
  if (!IsLeaf(workload.queue)) return "QueueNotLeaf";
  if (workload.group != nullptr && workload.group->facts.odd) return "";
  for (const PodRow* row : workload.waiting) {
    if (row->facts.gated)
      return workload.waiting.size() == 1 && workload.min_member <= 1 ? "Gated" : "";
    if (!row->facts.ordinary || !row->facts.claims.empty() || !row->facts.volumes.empty()) {
      return "";
    }
  }
  if (workload.group != nullptr && workload.members < workload.min_member &&
      !workload.group->any_succeeded) {
    return "GangIncomplete";
  }
  return "";
}

}  // namespace fairlead::sim::world
