#include "scheduler/engine/pending.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/prefetch.h"

namespace fairlead::engine {

using state::PodStatus;

QueueOrderKey MakeQueueOrderKey(const state::Workload& workload) {
  QueueOrderKey key;
  key.sort_key = workload.details->sort_key;
  key.minus_priority = -static_cast<int64_t>(workload.priority);
  key.elastic_state = ElasticStateOf(workload);
  key.turn_ns = absl::ToUnixNanos(workload.turn);
  key.uid = workload.uid;
  key.workload = workload.id;
  if (!workload.pods.empty()) key.first_pod = workload.pods.front();
  return key;
}

namespace {

// The pod waits, and nothing but its class and its name could tell it from others.
bool IsOrdinary(const state::ClusterState& state, const state::PodRecord& pod) {
  // A claim is the pod's own, and so is the node that was promised to it.
  const model::PodSpec& spec = *state.pod_class(pod.pod_class).spec;
  return pod.status == PodStatus::kPending && pod.details->invalid.empty() &&
         pod.details->nominated_node.empty() && spec.resource_claims.empty() &&
         spec.claim_templates.empty() && !spec.extended->Any();
}

// Nothing is odd about the workload but, perhaps, its pods.
bool HasOrdinaryDetails(const state::Workload& workload) {
  const state::WorkloadDetails& details = *workload.details;
  return details.invalid.empty() && details.warning.empty() && details.notes == nullptr &&
         details.failed_attempt == nullptr && details.stale_since == absl::InfiniteFuture();
}

// The group waits as a whole, and nothing but its shape and its name could tell it from others.
bool IsOrdinaryGroup(const state::ClusterState& state, const state::Workload& workload) {
  if (workload.group == nullptr || !HasOrdinaryDetails(workload)) return false;
  return std::all_of(workload.pods.begin(), workload.pods.end(), [&](state::PodId id) {
    return state.pod(id).set != state::kNoSet && IsOrdinary(state, state.pod(id));
  });
}

// What is the same of groups that every decision treats alike, the class of the first pod apart.
std::string ShapeOf(const state::ClusterState& state, const state::Workload& workload) {
  std::string shape = workload.group->mark_unschedulable ? "g" : "q";
  if (workload.group->scheduling_backoff != model::kTryForEver) shape += "o";
  for (const state::GangSet& set : workload.sets) {
    absl::StrAppend(&shape, set.min_member);
    if (workload.sets.size() == 1 && set.topology.topology.empty()) break;
    absl::StrAppend(&shape, "s", set.min_sub_group.value_or(-1), "p", set.parent, "n",
                    set.name.size(), set.name);
    for (const std::string* text :
         {&set.topology.topology, &set.topology.required_level, &set.topology.preferred_level}) {
      absl::StrAppend(&shape, "t", text->size(), *text);
    }
  }
  // Runs of equal pods, in task order.
  for (size_t i = 0; i < workload.pods.size();) {
    const state::PodRecord& first = state.pod(workload.pods[i]);
    size_t end = i + 1;
    while (end < workload.pods.size() &&
           state.pod(workload.pods[end]).pod_class == first.pod_class &&
           state.pod(workload.pods[end]).set == first.set) {
      ++end;
    }
    if (i > 0 || first.set > 0) absl::StrAppend(&shape, "c", first.pod_class, "s", first.set);
    absl::StrAppend(&shape, "x", end - i);
    i = end;
  }
  return shape;
}

}  // namespace

EquivalenceKey MakeEquivalenceKey(const state::ClusterState& state, const state::Workload& workload,
                                  bool by_duration, int64_t now_ns) {
  EquivalenceKey key;
  key.alone = workload.id;
  if (workload.pods.empty()) return key;
  const state::PodRecord& pod = state.pod(workload.pods.front());
  if (workload.is_group) {
    // A gang of several pods may come to have capacity reserved for it, one of a class as well as
    // another.
    if ((by_duration && workload.pods.size() > 1) || !IsOrdinaryGroup(state, workload)) return key;
    key.generation = workload.generation;
    key.shape = ShapeOf(state, workload);
  } else {
    if (!IsOrdinary(state, pod) || (!workload.plain && !HasOrdinaryDetails(workload))) return key;
    key.generation = pod.generation;
  }
  key.alone = state::kNoId;
  if (const absl::Time end = workload.PreemptionDelayEnd(); end > absl::InfinitePast()) {
    const int64_t end_ns = absl::ToUnixNanos(end);
    if (end_ns > now_ns) key.delay_end_ns = end_ns;
  }
  if (by_duration) key.expected_ns = absl::ToInt64Nanoseconds(pod.details->expected_duration);
  key.minus_priority = -static_cast<int64_t>(workload.priority);
  key.pod_class = pod.pod_class;
  key.preemptible = workload.preemptible;
  key.may_preempt = workload.may_preempt;
  return key;
}

PendingLeaf::Place PendingLeaf::Insert(const EquivalenceKey& equivalence_key, QueueOrderKey key,
                                       uint64_t& next_id) {
  ++size_;
  bool added = false;
  if (last_ == nullptr || last_->key != equivalence_key) {
    const auto place = equivalence_classes_.try_emplace(equivalence_key);
    added = place.second;
    last_ = &place.first->second;
  }
  EquivalenceClass& equivalence_class = *last_;
  if (added) {
    equivalence_class.id = next_id++;
    equivalence_class.key = equivalence_key;
  }
  if (!added && *equivalence_class.members.begin() < key) {
    // Workloads mostly come in the order of their age: then this is O(1).
    return {&equivalence_class, equivalence_class.members.emplace_hint(
                                    equivalence_class.members.end(), std::move(key))};
  }
  TakeOut(equivalence_class);
  const auto position = equivalence_class.members.insert(std::move(key)).first;
  return {&equivalence_class, position};
}

void PendingLeaf::TakeOut(EquivalenceClass& equivalence_class) {
  if (equivalence_class.moved_at != EquivalenceClass::kNotMoved) return;
  if (!equivalence_class.members.empty()) in_order_.erase(&equivalence_class);
  equivalence_class.moved_at = moved_.size();
  moved_.push_back(&equivalence_class);
}

void PendingLeaf::PlaceMoved() const {
  for (EquivalenceClass* equivalence_class : moved_) {
    if (equivalence_class == nullptr) continue;
    equivalence_class->moved_at = EquivalenceClass::kNotMoved;
    in_order_.insert(equivalence_class);
  }
  moved_.clear();
}

void PendingLeaf::Erase(const Place& place) {
  --size_;
  EquivalenceClass& equivalence_class = *place.equivalence_class;
  if (place.position != equivalence_class.members.begin()) {
    equivalence_class.members.erase(place.position);
    return;
  }
  TakeOut(equivalence_class);
  equivalence_class.members.erase(place.position);
  if (!equivalence_class.members.empty()) return;
  moved_[equivalence_class.moved_at] = nullptr;
  if (last_ == &equivalence_class) last_ = nullptr;
  equivalence_classes_.erase(EquivalenceKey(equivalence_class.key));
}

PendingIndex::Filing PendingIndex::FilingOf(const state::Workload& workload) const {
  Filing filing;
  filing.queue = tree_.Find(workload.queue).value_or(kNoQueue);
  filing.key = MakeQueueOrderKey(workload);
  if (filing.queue != kNoQueue && !alone_.contains(workload.id)) {
    filing.equivalence_key = MakeEquivalenceKey(state_, workload, by_duration_, now_ns_);
  } else {
    // Workloads without a queue may name different ones that do not exist.
    filing.equivalence_key.alone = workload.id;
  }
  return filing;
}

void PendingIndex::Refresh(const state::Workload& workload) {
  if (!Waits(workload)) {
    Remove(workload.id);
    return;
  }
  if (workload.id >= filed_.size()) filed_.resize(workload.id + 1);
  Filed& filed = filed_[workload.id];
  Filing now = FilingOf(workload);
  if (filed.place.equivalence_class != nullptr && filed.queue == now.queue &&
      *filed.place.position == now.key &&
      filed.place.equivalence_class->key == now.equivalence_key) {
    // Its pods may be others than before, though equal ones.
    if (workload.is_group && !changes_.all) changes_.came.push_back(workload.id);
    return;
  }
  Remove(workload.id);
  filed.queue = now.queue;
  filed.place = leaves_[now.queue].Insert(now.equivalence_key, std::move(now.key), next_class_);
  const EquivalenceClass& equivalence_class = *filed.place.equivalence_class;
  if (const int64_t end_ns = equivalence_class.key.delay_end_ns; end_ns != 0) {
    delays_.emplace(end_ns, workload.id);
  }
  if (equivalence_class.IsPlain() && equivalence_class.members.size() == 1) {
    filed.place.equivalence_class->one_pod = IsOnePod(state_, workload);
    plain_.try_emplace(equivalence_class.id, &equivalence_class);
  }
  if (!changes_.all) changes_.came.push_back(workload.id);
  ++size_;
}

void PendingIndex::Remove(state::WorkloadId workload) {
  if (EquivalenceClassOf(workload) == nullptr) return;
  Filed& filed = filed_[workload];
  auto leaf = leaves_.find(filed.queue);
  if (const int64_t end_ns = filed.place.equivalence_class->key.delay_end_ns; end_ns != 0) {
    delays_.erase({end_ns, workload});
  }
  if (filed.place.equivalence_class->members.size() == 1)
    plain_.erase(filed.place.equivalence_class->id);
  leaf->second.Erase(filed.place);
  if (leaf->second.size() == 0) leaves_.erase(leaf);
  filed = {};
  if (!changes_.all) changes_.left.push_back(workload);
  --size_;
}

void PendingIndex::SetAlone(state::WorkloadId workload, bool alone) {
  if (alone) {
    alone_.insert(workload);
  } else {
    alone_.erase(workload);
  }
  if (EquivalenceClassOf(workload) != nullptr) Refresh(state_.workload(workload));
}

void PendingIndex::EndDelays(absl::Time now) {
  now_ns_ = std::max(now_ns_, absl::ToUnixNanos(now));
  while (!delays_.empty() && delays_.begin()->first <= now_ns_) {
    const state::WorkloadId id = delays_.begin()->second;
    delays_.erase(delays_.begin());
    Refresh(state_.workload(id));
  }
}

void PendingIndex::Clear() {
  leaves_.clear();
  plain_.clear();
  delays_.clear();
  filed_.assign(filed_.size(), {});
  size_ = 0;
  changes_ = {};
  changes_.all = true;
}

const EquivalenceClass* PendingIndex::FindEquivalenceClass(uint64_t id) const {
  const auto found = plain_.find(id);
  return found == plain_.end() ? nullptr : found->second;
}

const EquivalenceClass* PendingIndex::EquivalenceClassOf(state::WorkloadId workload) const {
  return workload < filed_.size() ? filed_[workload].place.equivalence_class : nullptr;
}

const QueueOrderKey* PendingIndex::KeyOf(state::WorkloadId workload) const {
  return EquivalenceClassOf(workload) == nullptr ? nullptr : &*filed_[workload].place.position;
}

std::string PendingIndex::CheckConsistency(
    absl::FunctionRef<bool(state::WorkloadId)> changed) const {
  size_t filed = 0;
  for (const auto& [queue, leaf] : leaves_) {
    for (const EquivalenceClass* equivalence_class : leaf.equivalence_classes()) {
      for (const QueueOrderKey& key : equivalence_class->members) {
        ++filed;
        if (changed(key.workload)) continue;
        const state::Workload& workload = state_.workload(key.workload);
        const Filing now = FilingOf(workload);
        const bool gone = workload.id != key.workload || !Waits(workload);
        const char* wrong = nullptr;
        if (gone) {
          wrong = "status";
        } else if (now.queue != queue) {
          wrong = "queue";
        } else if (now.key != key) {
          wrong = "place in the queue order";
        } else if (now.equivalence_key != equivalence_class->key) {
          wrong = "equivalence class";
        } else if (equivalence_class->IsPlain() &&
                   equivalence_class->one_pod != IsOnePod(state_, workload)) {
          wrong = "number of pods";
        }
        if (wrong != nullptr) {
          return absl::StrCat("workload ", key.workload, " is filed by a former ", wrong);
        }
      }
    }
  }
  if (filed != size_) return absl::StrCat(filed, " workloads are filed, and ", size_, " counted");
  std::string wrong;
  state_.ForEachWorkload([&](const state::Workload& workload) {
    if (changed(workload.id) || !Waits(workload)) return;
    if (EquivalenceClassOf(workload.id) == nullptr) {
      wrong = absl::StrCat("workload ", workload.id, " waits and is not filed");
    }
  });
  return wrong;
}

WaitingChanges PendingIndex::TakeChanges() { return std::exchange(changes_, {}); }

void PendingIndex::MarkChanged(const MemberRange& range) {
  if (changes_.all) return;
  for (auto it = range.next; it != range.end; ++it) changes_.came.push_back(it->workload);
}

MemberRange MemberRange::Behind() const {
  if (count <= 1) return {};
  return {equivalence_class, std::next(next), end, count - 1};
}

MemberRange TakeBefore(MemberRange& rest, const QueueOrderKey* bound) {
  MemberRange taken = rest;
  const EquivalenceClass::Members& members = rest.equivalence_class->members;
  const bool all = bound == nullptr ||
                   (rest.end == members.end() ? *members.rbegin() < *bound : !(*bound < *rest.end));
  if (all) {
    rest = {};
    return taken;
  }
  taken.end = members.lower_bound(*bound);
  taken.count = std::distance(taken.next, taken.end);
  rest.next = taken.end;
  rest.count -= taken.count;
  if (rest.empty()) rest = {};
  return taken;
}

MemberRange BehindFirst(const EquivalenceClass& equivalence_class) {
  const EquivalenceClass::Members& members = equivalence_class.members;
  return MemberRange{&equivalence_class, members.begin(), members.end(),
                     static_cast<int64_t>(members.size())}
      .Behind();
}

JobIterator::JobIterator(const PendingIndex& index) : state_(index.state()) {
  for (const auto& [queue, leaf] : index.leaves()) {
    Cursor& cursor = cursors_[queue];
    cursor.untouched = leaf.equivalence_classes().begin();
    cursor.end = leaf.equivalence_classes().end();
  }
}

void JobIterator::Cursor::Normalize() {
  if (popped_from.count > 0) {
    met.push_back(popped_from);
    std::push_heap(met.begin(), met.end(), Later());
  }
  popped_from = {};
  const bool meets =
      untouched != end && (met.empty() || *(*untouched)->members.begin() < *met.front().next);
  if (!meets) return;
  const EquivalenceClass& equivalence_class = **untouched;
  met.push_back({&equivalence_class, equivalence_class.members.begin(),
                 equivalence_class.members.end(),
                 static_cast<int64_t>(equivalence_class.members.size())});
  std::push_heap(met.begin(), met.end(), Later());
  ++untouched;
}

void JobIterator::Cursor::PrefetchNext(const state::ClusterState& state) const {
  if (popped_from.count == 0) return;
  Prefetch(state.workload(popped_from.next->workload));
  Prefetch(state.pod(popped_from.next->first_pod));
}

const QueueOrderKey* JobIterator::Cursor::First() const {
  if (FromPutBack()) return &*put_back.begin();
  return met.empty() ? nullptr : &*met.front().next;
}

bool JobIterator::Cursor::FromPutBack() const {
  return !put_back.empty() && (met.empty() || *put_back.begin() < *met.front().next);
}

const QueueOrderKey* JobIterator::Cursor::FirstLeftOut() const {
  if (left_out.empty()) return nullptr;
  const QueueOrderKey* until = First();
  const QueueOrderKey& first = *left_out.front().rest.next;
  return until == nullptr || *until < first ? nullptr : &first;
}

int64_t JobIterator::PassLeftOut(queues::QueueId leaf, int64_t most) {
  Cursor& cursor = cursors_.at(leaf);
  cursor.Normalize();
  std::vector<LeftOut>& heap = cursor.left_out;
  const QueueOrderKey* until = cursor.First();
  int64_t passed = 0;
  while (!heap.empty() && (until == nullptr || *heap.front().rest.next < *until)) {
    if (most != model::kUnlimited && passed == most) break;
    std::pop_heap(heap.begin(), heap.end(), Later());
    MemberRange& rest = heap.back().rest;
    if (most != model::kUnlimited) {
      ++passed;
      ++rest.next;
      --rest.count;
    } else {
      rest.next = until == nullptr ? rest.end : rest.equivalence_class->members.lower_bound(*until);
    }
    if (rest.next == rest.end) {
      heap.pop_back();
    } else {
      std::push_heap(heap.begin(), heap.end(), Later());
    }
  }
  return passed;
}

bool JobIterator::IsLeftOut(queues::QueueId leaf) const {
  return cursors_.at(leaf).FirstLeftOut() != nullptr;
}

state::WorkloadId JobIterator::Peek(queues::QueueId leaf) {
  const auto it = cursors_.find(leaf);
  if (it == cursors_.end()) return state::kNoId;
  it->second.Normalize();
  const QueueOrderKey* first = it->second.FirstLeftOut();
  if (first == nullptr) first = it->second.First();
  return first == nullptr ? state::kNoId : first->workload;
}

JobIterator::Peeked JobIterator::ClassOfPeeked(queues::QueueId leaf) const {
  const Cursor& cursor = cursors_.at(leaf);
  if (cursor.FirstLeftOut() != nullptr || cursor.FromPutBack() || cursor.met.empty()) return {};
  const MemberRange& first = cursor.met.front();
  if (!first.equivalence_class->IsPlain()) return {};
  return {first.equivalence_class, &*first.next};
}

void JobIterator::Pop(queues::QueueId leaf) {
  Cursor& cursor = cursors_.at(leaf);
  cursor.Normalize();
  if (cursor.FromPutBack()) {
    cursor.put_back.erase(cursor.put_back.begin());
    return;
  }
  std::pop_heap(cursor.met.begin(), cursor.met.end(), Later());
  cursor.popped_from = cursor.met.back();
  cursor.met.pop_back();
  ++cursor.popped_from.next;
  --cursor.popped_from.count;
  cursor.PrefetchNext(state_);
}

void JobIterator::Requeue(queues::QueueId leaf, QueueOrderKey key) {
  cursors_.at(leaf).put_back.insert(std::move(key));
}

MemberRange JobIterator::LeaveOutRest(queues::QueueId leaf, bool in_turn) {
  Cursor& cursor = cursors_.at(leaf);
  MemberRange rest = std::exchange(cursor.popped_from, {});
  if (rest.count == 0) return {};
  if (in_turn) {
    cursor.left_out.push_back({rest, std::prev(rest.next)->workload});
    std::push_heap(cursor.left_out.begin(), cursor.left_out.end(), Later());
  }
  return rest;
}

}  // namespace fairlead::engine
