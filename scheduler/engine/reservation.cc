#include "scheduler/engine/reservation.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/scarcity.h"
#include "scheduler/state/parts.h"
#include "scheduler/verdict/text.h"

namespace fairlead::engine {
namespace {

// A pod that has just started is taken to run at least this long.
constexpr absl::Duration kLeastGuess = absl::Minutes(1);

// The resources that are divided among queues and kept on nodes.
constexpr auto& kCore = model::kScarcestFirst;

int64_t Free(const state::NodeInfo& node, model::ResourceIndex resource,
             framework::Capacity capacity) {
  int64_t free = model::SaturatingAdd(node.allocatable[resource], -node.used[resource]);
  if (capacity != framework::Capacity::kNow)
    free = model::SaturatingAdd(free, node.releasing[resource]);
  return model::SaturatingAdd(free, -node.pipelined[resource]);
}

// Holds room that is not being released already.
bool Stays(const state::PodRecord& pod) {
  return pod.status == state::PodStatus::kBinding || pod.status == state::PodStatus::kBound ||
         pod.status == state::PodStatus::kRunning;
}

// When one node has room for 1, 2, ... further pods of a class.
class NodeTimeline {
 public:
  explicit NodeTimeline(const state::NodeInfo& node) : free_(node.Future()) {}
  void AddEnd(absl::Time end, const model::Resources& amount) { ends_.emplace_back(end, amount); }
  void Close() {
    std::sort(ends_.begin(), ends_.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  void Take(const model::Resources& amount) { free_ -= amount; }
  // When something ends next after that; infinite future: never.
  [[nodiscard]] absl::Time EndAfter(absl::Time at) const {
    const auto next =
        std::find_if(ends_.begin(), ends_.end(), [at](const auto& end) { return end.first > at; });
    return next == ends_.end() ? absl::InfiniteFuture() : next->first;
  }
  // Infinite future: never.
  [[nodiscard]] absl::Time ReadyFor(const model::Resources& amount) const {
    model::Resources free = free_;
    absl::Time at = absl::InfinitePast();
    for (auto end = ends_.begin(); !Covers(free, amount); ++end) {
      if (end == ends_.end() || end->first == absl::InfiniteFuture()) {
        return absl::InfiniteFuture();
      }
      free += end->second;
      at = end->first;
    }
    return at;
  }

 private:
  static bool Covers(const model::Resources& free, const model::Resources& amount) {
    for (size_t i = 0; i < amount.size(); ++i) {
      const auto resource = static_cast<model::ResourceIndex>(i);
      if (amount[resource] > 0 && amount[resource] > free[resource]) return false;
    }
    return true;
  }
  model::Resources free_;
  std::vector<std::pair<absl::Time, model::Resources>> ends_;
};

}  // namespace

absl::Time Reservations::EndOf(const state::PodRecord& pod, Guess guess) const {
  if (!pod.ours || pod.daemon || pod.started_at == absl::InfinitePast()) {
    return absl::InfiniteFuture();
  }
  const absl::Time said = pod.started_at + pod.details->expected_duration;
  if (said != absl::InfiniteFuture() && said > now_) return said;
  if (guess == Guess::kEarliest) return now_;
  return now_ + std::max(now_ - pod.started_at, kLeastGuess);
}

Reservations::Requester Reservations::RequesterOf(const state::Workload& workload) const {
  Requester asker;
  asker.workload = &workload;
  asker.leaf = tree_.Find(workload.queue).value_or(PendingIndex::kNoQueue);
  absl::Duration longest = absl::ZeroDuration();
  for (const state::PodId pod : workload.pods) {
    longest = std::max(longest, state_.pod(pod).details->expected_duration);
  }
  if (!workload.pods.empty()) asker.end = now_ + longest;
  return asker;
}

bool Reservations::Exempt(const Requester& asker, const Reservation& reservation) const {
  if (asker.workload->id == reservation.owner) return true;
  if (EndsInTime(asker, reservation)) return true;
  return asker.leaf == reservation.leaf && MakeQueueOrderKey(*asker.workload) < reservation.key;
}

bool Reservations::IsFirstOfEquals(const Requester& asker) const {
  return std::none_of(held_.begin(), held_.end(), [&](const Reservation& reservation) {
    return Exempt(asker, reservation) && !EndsInTime(asker, reservation);
  });
}

bool Reservations::Served(const Reservation& reservation) const {
  return state_.workload(reservation.owner).Active() > 0;
}

bool Reservations::IsOrdinary(const Requester& asker) const {
  return std::none_of(held_.begin(), held_.end(),
                      [&](const Reservation& reservation) { return Exempt(asker, reservation); });
}

state::WorkloadId Reservations::KeptFor(const Requester& asker, const state::PodClass& pod_class,
                                        const state::NodeInfo& node,
                                        framework::Capacity capacity) const {
  const auto at = by_node_.find(node.id);
  if (at == by_node_.end()) return state::kNoId;
  const Reservation& reservation = held_[at->second.first];
  const Target& target = reservation.targets[at->second.second];
  if (!target.active || Served(reservation) || Exempt(asker, reservation)) return state::kNoId;
  for (size_t i = 0; i < target.need.size(); ++i) {
    const auto resource = static_cast<model::ResourceIndex>(i);
    const int64_t taken = pod_class.requests[resource];
    if (target.need[resource] <= 0 || taken <= 0) continue;
    if (Free(node, resource, capacity) - taken < target.need[resource]) return reservation.owner;
  }
  return state::kNoId;
}

state::WorkloadId Reservations::BehindOf(const Requester& asker,
                                         const model::Resources& request) const {
  for (const Reservation& reservation : held_) {
    if (reservation.leaf != asker.leaf || Served(reservation) || Exempt(asker, reservation)) {
      continue;
    }
    for (const model::ResourceIndex resource : kCore) {
      if (request[resource] <= 0 || reservation.request[resource] <= 0) continue;
      const int64_t share = queues::AllocatableShare(tree_, *shares_, reservation.leaf, resource);
      if (share == model::kUnlimited) continue;
      const int64_t together = ledger_->allocated(reservation.leaf, resource) + request[resource] +
                               reservation.request[resource];
      if (together > share) return reservation.owner;
    }
  }
  return state::kNoId;
}

bool Reservations::WithinShare(queues::QueueId leaf, const model::Resources& amount,
                               bool beside_allocated) const {
  for (const queues::QueueId queue : tree_.Ancestors(leaf)) {
    for (const model::ResourceIndex resource : kCore) {
      if (amount[resource] <= 0) continue;
      const int64_t share = queues::AllocatableShare(tree_, *shares_, queue, resource);
      if (share == model::kUnlimited) continue;
      const int64_t held = beside_allocated ? ledger_->allocated(queue, resource) : 0;
      if (held + amount[resource] > share) return false;
    }
  }
  return true;
}

model::Resources Reservations::KeptOn(const Target& target) const {
  model::Resources kept;
  const state::NodeInfo& node = state_.node(target.node);
  for (size_t i = 0; i < target.need.size(); ++i) {
    const auto resource = static_cast<model::ResourceIndex>(i);
    const int64_t idle = Free(node, resource, framework::Capacity::kFuture);
    const int64_t amount =
        std::clamp<int64_t>(idle, 0, std::max<int64_t>(0, target.need[resource]));
    if (amount > 0) kept.Set(resource, amount);
  }
  return kept;
}

bool Reservations::StillWanted(const Reservation& reservation) const {
  const state::Workload& owner = state_.workload(reservation.owner);
  if (owner.id != reservation.owner || owner.uid != reservation.uid ||
      !owner.details->invalid.empty() || owner.Active() > 0 ||
      tree_.Find(owner.queue) != reservation.leaf) {
    return false;
  }
  for (const state::PodId pod : reservation.pods) {
    const state::PodRecord& record = state_.pod(pod);
    if (record.workload != reservation.owner || record.status != state::PodStatus::kPending) {
      return false;
    }
  }
  return WithinShare(reservation.leaf, reservation.request, /*beside_allocated=*/false);
}

void Reservations::Activate(Reservation& reservation) {
  model::Resources kept;
  for (Target& target : reservation.targets) {
    const model::Resources here = KeptOn(target);
    const bool was = target.active;
    target.active = WithinShare(reservation.leaf, kept + here, /*beside_allocated=*/true);
    if (target.active) kept += here;
    if (target.active != was) ++version_;
  }
}

void Reservations::IndexTargets() {
  by_node_.clear();
  for (size_t i = 0; i < held_.size(); ++i) {
    for (size_t j = 0; j < held_[i].targets.size(); ++j) {
      by_node_[held_[i].targets[j].node] = {i, j};
    }
  }
}

bool Reservations::FitsAt(Hypothesis& what_if, state::PodClassId pod_class, state::NodeId node,
                          absl::Time when) const {
  const Hypothesis::Checkpoint mark = what_if.Mark();
  for (const state::PodId pod : std::vector<state::PodId>(state_.node(node).pods)) {
    const state::PodRecord& record = state_.pod(pod);
    if (Stays(record) && EndOf(record, Guess::kLikely) <= when) what_if.Remove(pod);
  }
  if (what_if.Place(pod_class, node, 1) == 1) return true;
  what_if.RollbackTo(mark);
  return false;
}

std::optional<Reservations::Plan> Reservations::Choose(const std::vector<state::PodId>& pods,
                                                       state::WorkloadId owner) const {
  std::map<state::NodeId, NodeTimeline> timelines;
  std::map<state::NodeId, model::Resources> needs;
  Plan plan;
  // Pods of one class together, in the order in which classes come up.
  std::vector<std::pair<state::PodClassId, int64_t>> classes;
  for (const state::PodId pod : pods) {
    const state::PodClassId pod_class = state_.pod(pod).pod_class;
    const auto known = std::find_if(classes.begin(), classes.end(),
                                    [&](const auto& entry) { return entry.first == pod_class; });
    if (known != classes.end()) {
      ++known->second;
    } else {
      classes.emplace_back(pod_class, 1);
    }
  }
  for (const auto& [name, id] : state_.nodes_by_name()) {
    const state::NodeInfo& node = state_.node(id);
    if (!node.exists || !node.TakesBindings()) continue;
    const auto taken = by_node_.find(id);
    if (taken != by_node_.end() && held_[taken->second.first].owner != owner) continue;
    NodeTimeline& timeline = timelines.emplace(id, NodeTimeline(node)).first->second;
    for (const state::PodId pod : node.pods) {
      const state::PodRecord& record = state_.pod(pod);
      if (!Stays(record)) continue;
      timeline.AddEnd(EndOf(record, Guess::kLikely), state_.class_of(pod).requests);
    }
    timeline.Close();
  }
  Hypothesis what_if(state_, framework_, state::PartsOrder::kPack);
  for (const auto& [pod_class, count] : classes) {
    const state::PodClass& row = state_.pod_class(pod_class);
    // (when, name, node) of the next pod that each node could take.
    std::set<std::tuple<absl::Time, absl::string_view, state::NodeId>> next;
    const auto offer = [&](state::NodeId id, absl::Time not_before = absl::InfinitePast()) {
      const absl::Time ready = std::max(not_before, timelines.at(id).ReadyFor(row.requests));
      if (ready != absl::InfiniteFuture()) next.emplace(ready, state_.node(id).name(), id);
    };
    for (const auto& [id, timeline] : timelines) {
      if (what_if.Fits(pod_class, id, framework::Capacity::kEmpty)) offer(id);
    }
    for (int64_t placed = 0; placed < count;) {
      if (next.empty()) return std::nullopt;
      const auto [ready, name, id] = *next.begin();
      next.erase(next.begin());
      if (!FitsAt(what_if, pod_class, id, ready)) {
        // There is room, but something that runs there is in its way: not before that has ended.
        offer(id, timelines.at(id).EndAfter(ready));
        continue;
      }
      ++placed;
      plan.ready = std::max(plan.ready, ready);
      if (!needs.contains(id)) plan.targets.push_back({id, {}, false});
      needs[id] += row.requests;
      timelines.at(id).Take(row.requests);
      offer(id);
    }
  }
  for (Target& target : plan.targets) target.need = needs.at(target.node);
  plan.ready = std::max(plan.ready, now_);
  return plan;
}

absl::Time Reservations::ReadyOf(const Reservation& reservation, Guess guess) const {
  absl::Time ready = now_;
  for (const Target& target : reservation.targets) {
    const state::NodeInfo& node = state_.node(target.node);
    NodeTimeline timeline(node);
    for (const state::PodId pod : node.pods) {
      if (!Stays(state_.pod(pod))) continue;
      timeline.AddEnd(EndOf(state_.pod(pod), guess), state_.class_of(pod).requests);
    }
    timeline.Close();
    ready = std::max(ready, timeline.ReadyFor(target.need));
  }
  return ready;
}

void Reservations::Review(Reservation& reservation) {
  bool valid = !reservation.targets.empty();
  for (const Target& target : reservation.targets) {
    const state::NodeInfo& node = state_.node(target.node);
    valid = valid && node.id == target.node && node.exists && node.TakesBindings();
  }
  if (valid && now_ < reservation.next_review) return;
  reservation.next_review = now_ + kReview;
  if (valid) reservation.ready = ReadyOf(reservation, Guess::kLikely);
  std::optional<Plan> plan = Choose(reservation.pods, reservation.owner);
  if (!plan.has_value()) {
    if (!valid) reservation.targets.clear();
    return;
  }
  if (valid && 2 * (plan->ready - now_) > reservation.ready - now_) return;
  reservation.targets = std::move(plan->targets);
  reservation.ready = plan->ready;
  ++version_;
}

void Reservations::Follow(Reservation& reservation, const UnmetRequest& lack) {
  std::map<state::NodeId, model::Resources> needs;
  for (const auto& [pod, node] : lack.promised) {
    // A node of another reservation stays that one's.
    const auto taken = by_node_.find(node);
    if (taken != by_node_.end() && held_[taken->second.first].owner != reservation.owner) continue;
    needs[node] += state_.class_of(pod).requests;
  }
  if (needs.empty()) return;
  reservation.targets.clear();
  for (auto& [node, need] : needs) reservation.targets.push_back({node, std::move(need), false});
  reservation.ready = now_;
  reservation.next_review = now_ + kReview;
  ++version_;
}

void Reservations::Begin(absl::Time now, const queues::QueueLedger& ledger,
                         const queues::FairShares& shares) {
  now_ = now;
  ledger_ = &ledger;
  shares_ = &shares;
  if (held_.empty()) return;
  const size_t before = held_.size();
  held_.erase(std::remove_if(held_.begin(), held_.end(),
                             [&](const Reservation& r) { return !StillWanted(r); }),
              held_.end());
  if (held_.size() != before) ++version_;
  IndexTargets();
  for (Reservation& reservation : held_) {
    Review(reservation);
    IndexTargets();
  }
  for (Reservation& reservation : held_) {
    reservation.earliest = ReadyOf(reservation, Guess::kEarliest);
    Activate(reservation);
  }
}

bool Reservations::Reservable(const UnmetRequest& lack) const {
  if (!lack.only_room || !lack.may_reserve || lack.pods->empty()) return false;
  if (state_.workload(lack.workload).Active() > 0) return false;
  const bool big = lack.pods->size() > 1 || (*lack.request)[model::kScarcest] >=
                                                options_.reserve_min_devices * state::kWholeDevice;
  if (!big) return false;
  return std::all_of(lack.pods->begin(), lack.pods->end(), [&](state::PodId pod) {
    const state::PodClass& row = state_.class_of(pod);
    return !state::TakesParts(row) && framework_.NodeLocal(row);
  });
}

void Reservations::Update(const std::vector<UnmetRequest>& lacks) {
  wake_at_ = absl::InfiniteFuture();
  if (!options_.on) return;
  absl::flat_hash_map<state::WorkloadId, size_t> held;
  for (size_t i = 0; i < held_.size(); ++i) held[held_[i].owner] = i;
  std::set<state::WorkloadId> lacking;
  std::map<queues::QueueId, std::pair<QueueOrderKey, const UnmetRequest*>> first;  // of each leaf
  for (const UnmetRequest& lack : lacks) {
    const auto known = held.find(lack.workload);
    if (known != held.end() && (lack.only_room || !lack.promised.empty())) {
      lacking.insert(lack.workload);
    }
    if (!Reservable(lack)) continue;
    QueueOrderKey key = MakeQueueOrderKey(state_.workload(lack.workload));
    auto [it, added] = first.try_emplace(lack.leaf, key, &lack);
    if (!added && key < it->second.first) it->second = {std::move(key), &lack};
  }
  const size_t before = held_.size();
  // A workload that lacks no capacity any more, or was overtaken in its queue, keeps nothing.
  held_.erase(std::remove_if(held_.begin(), held_.end(),
                             [&](const Reservation& reservation) {
                               if (!lacking.contains(reservation.owner)) return true;
                               const auto head = first.find(reservation.leaf);
                               return head != first.end() && head->second.first < reservation.key;
                             }),
              held_.end());
  if (held_.size() != before) {
    ++version_;
    // The workloads that it held have not been tried since.
    wake_at_ = now_;
  }
  IndexTargets();
  for (const UnmetRequest& lack : lacks) {
    if (lack.promised.empty()) continue;
    for (Reservation& reservation : held_) {
      if (reservation.owner == lack.workload) Follow(reservation, lack);
    }
  }
  IndexTargets();
  for (const UnmetRequest& lack : lacks) {
    const auto head = first.find(lack.leaf);
    if (head == first.end() || head->second.second != &lack) continue;
    const bool has_one = std::any_of(held_.begin(), held_.end(),
                                     [&](const Reservation& r) { return r.leaf == lack.leaf; });
    const state::Workload& workload = state_.workload(lack.workload);
    const absl::Time from = workload.turn + options_.reserve_after;
    if (has_one || !WithinShare(lack.leaf, *lack.request, /*beside_allocated=*/false)) continue;
    if (from > now_) {
      wake_at_ = std::min(wake_at_, from);
      continue;
    }
    if (static_cast<int64_t>(held_.size()) >= options_.max_reservations) continue;
    Reservation reservation;
    reservation.owner = lack.workload;
    reservation.uid = workload.uid;
    reservation.leaf = lack.leaf;
    reservation.key = head->second.first;
    reservation.pods = *lack.pods;
    reservation.request = *lack.request;
    Review(reservation);
    if (reservation.targets.empty()) continue;
    reservation.earliest = ReadyOf(reservation, Guess::kEarliest);
    held_.push_back(std::move(reservation));
    ++version_;
    IndexTargets();
    Activate(held_.back());
  }
  for (const Reservation& reservation : held_) {
    wake_at_ = std::min(wake_at_, std::max(reservation.next_review, now_ + absl::Seconds(1)));
  }
}

std::vector<state::WorkloadId> Reservations::Owners() const {
  std::vector<state::WorkloadId> owners;
  for (const Reservation& reservation : held_) owners.push_back(reservation.owner);
  return owners;
}

std::vector<state::NodeId> Reservations::Nodes() const {
  std::vector<state::NodeId> nodes;
  for (const Reservation& reservation : held_) {
    for (const Target& target : reservation.targets) {
      if (target.active) nodes.push_back(target.node);
    }
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::string Reservations::Describe(state::WorkloadId workload) const {
  for (const Reservation& reservation : held_) {
    if (reservation.owner != workload) continue;
    int64_t kept = 0;
    int64_t nodes = 0;
    for (const Target& target : reservation.targets) {
      if (!target.active) continue;
      kept += KeptOn(target)[model::kScarcest];
      ++nodes;
    }
    if (nodes == 0) {
      return "room will be kept for it as soon as its queue holds less than its fair share";
    }
    const std::string& name = state_.resource_names().Name(model::kScarcest);
    return absl::StrCat("room is being kept: ", model::FormatAmount(name, kept), " of ",
                        model::FormatAmount(name, reservation.request[model::kScarcest]), " ",
                        verdict::ResourceNoun(name), " on ", nodes,
                        nodes == 1 ? " node" : " nodes");
  }
  return "";
}

std::string Reservations::DescribeHold(state::WorkloadId kept_for) const {
  const state::Workload& workload = state_.workload(kept_for);
  return absl::StrCat("held: kept for gang ", workload.ns, "/", workload.name);
}

}  // namespace fairlead::engine
