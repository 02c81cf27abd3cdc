#include "scheduler/engine/gang.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace fairlead::engine {
namespace {

using state::GangSet;
using state::PodId;
using state::PodRecord;
using state::PodStatus;
using state::Workload;

// More pods than there can be: this set cannot be satisfied.
constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 4;

// The sum of the `count` smallest; kNever if there are fewer, or one of them is kNever.
int64_t SumOfSmallest(std::vector<int64_t> values, int64_t count) {
  if (count > static_cast<int64_t>(values.size())) return kNever;
  std::sort(values.begin(), values.end());
  int64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum = std::min(kNever, sum + values[static_cast<size_t>(i)]);
  return sum;
}

// The tree of a workload with some number of active pods in each set.
class Tree {
 public:
  explicit Tree(const Workload& workload) : Tree(workload, workload.active) {}
  Tree(const Workload& workload, absl::Span<const int32_t> active)
      : sets_(workload.sets.list()), active_(active.begin(), active.end()) {}

  [[nodiscard]] const GangSet& set(int32_t i) const { return sets_[static_cast<size_t>(i)]; }
  [[nodiscard]] int64_t& active(int32_t i) { return active_[static_cast<size_t>(i)]; }
  [[nodiscard]] int64_t active(int32_t i) const { return active_[static_cast<size_t>(i)]; }

  // How many children have to be satisfied.
  [[nodiscard]] int64_t Wanted(int32_t i) const {
    return set(i).min_sub_group.value_or(static_cast<int64_t>(set(i).children.size()));
  }
  // The smallest number of pods that satisfies it.
  [[nodiscard]] int64_t Minimum(int32_t i) const {
    std::vector<int64_t> of_children;
    for (int32_t child : set(i).children) of_children.push_back(Minimum(child));
    return set(i).min_member + SumOfSmallest(std::move(of_children), Wanted(i));
  }
  [[nodiscard]] int64_t SatisfiedChildren(int32_t i) const {
    return std::count_if(set(i).children.begin(), set(i).children.end(),
                         [this](int32_t child) { return Satisfied(child); });
  }
  [[nodiscard]] bool Satisfied(int32_t i) const {
    return active(i) >= set(i).min_member && SatisfiedChildren(i) >= Wanted(i);
  }
  [[nodiscard]] int64_t ActiveBelow(int32_t i) const {
    int64_t sum = active(i);
    for (int32_t child : set(i).children) sum += ActiveBelow(child);
    return sum;
  }
  struct Part {
    bool satisfied;
    int64_t active;
  };
  // Appends the sets at or below it that are not satisfied although something of them is active.
  Part FindBelowMinimum(int32_t i, std::vector<int32_t>& below) const {
    int64_t active_in_all = active(i);
    int64_t satisfied_children = 0;
    for (int32_t child : set(i).children) {
      const Part part = FindBelowMinimum(child, below);
      active_in_all += part.active;
      satisfied_children += part.satisfied ? 1 : 0;
    }
    const bool satisfied = active(i) >= set(i).min_member && satisfied_children >= Wanted(i);
    if (!satisfied && active_in_all > 0) below.push_back(i);
    return {satisfied, active_in_all};
  }
  // Children in KAI's order: below their threshold first, required before optional, lower ratio of
  // active pods to the minimum (an optional set as if it were 1), name.
  [[nodiscard]] std::vector<int32_t> Ordered(int32_t i) const {
    struct Rank {
      bool satisfied, optional;
      int64_t active, minimum;
      int32_t index;
    };
    std::vector<Rank> ranks;
    for (int32_t child : set(i).children) {
      const int64_t minimum = Minimum(child);
      ranks.push_back({Satisfied(child), minimum == 0, ActiveBelow(child),
                       std::max<int64_t>(1, minimum), child});
    }
    std::sort(ranks.begin(), ranks.end(), [this](const Rank& a, const Rank& b) {
      if (a.satisfied != b.satisfied) return b.satisfied;
      if (a.optional != b.optional) return b.optional;
      const int64_t left = a.active * b.minimum;
      const int64_t right = b.active * a.minimum;
      if (left != right) return left < right;
      return set(a.index).name < set(b.index).name;
    });
    std::vector<int32_t> order;
    for (const Rank& rank : ranks) order.push_back(rank.index);
    return order;
  }

 private:
  const std::vector<GangSet>& sets_;
  std::vector<int64_t> active_;
};

// What waits for a promised place gives the promise.
bool CanBeTaken(const PodRecord& pod, const std::set<PodId>* fresh) {
  return pod.status == PodStatus::kBound || pod.status == PodStatus::kRunning ||
         pod.status == PodStatus::kPipelined ||
         (pod.status == PodStatus::kBinding && fresh != nullptr && fresh->contains(pod.id));
}

// Takes units away, as long as there are any above the minimum.
class Peeler {
 public:
  Peeler(const state::ClusterState& state, const Workload& workload, const std::set<PodId>* fresh)
      : tree_(workload), takeable_(workload.sets.size()) {
    for (PodId id : workload.pods) {
      const PodRecord& pod = state.pod(id);
      if (!CanBeTaken(pod, fresh)) continue;
      if (pod.set == state::kNoSet) {
        strays_.push_back(id);
      } else {
        takeable_[static_cast<size_t>(pod.set)].push_back(id);
      }
    }
  }

  // Empty when nothing more is above the minimum.
  std::vector<PodId> TakeExtra() {
    if (strays_.empty()) return Surplus(0);
    const PodId id = strays_.back();
    strays_.pop_back();
    return {id};
  }

 private:
  // A unit that its set (and all below it) does without.
  std::vector<PodId> Surplus(int32_t i) {
    std::vector<int32_t> order = tree_.Ordered(i);
    std::reverse(order.begin(), order.end());
    const int64_t satisfied = tree_.SatisfiedChildren(i);
    const int64_t wanted = tree_.Wanted(i);
    for (int32_t child : order) {
      if (satisfied < wanted || tree_.Satisfied(child)) continue;
      if (const PodId id = Any(child); id != state::kNoId) return {id};
    }
    for (int32_t child : order) {
      if (std::vector<PodId> unit = Surplus(child); !unit.empty()) return unit;
    }
    // As it was started, so it goes: whole.
    for (int32_t child : order) {
      if (satisfied <= wanted || !tree_.Satisfied(child)) continue;
      std::vector<PodId> unit;
      for (PodId id = Any(child); id != state::kNoId; id = Any(child)) unit.push_back(id);
      if (!unit.empty()) return unit;
    }
    if (tree_.active(i) <= tree_.set(i).min_member) return {};
    const PodId id = Own(i);
    return id == state::kNoId ? std::vector<PodId>{} : std::vector<PodId>{id};
  }

  // Any pod at or below a set that is not needed, the last of its own sets first.
  PodId Any(int32_t i) {
    std::vector<int32_t> order = tree_.Ordered(i);
    std::reverse(order.begin(), order.end());
    for (int32_t child : order) {
      if (const PodId id = Any(child); id != state::kNoId) return id;
    }
    return Own(i);
  }

  PodId Own(int32_t i) {
    std::vector<PodId>& pods = takeable_[static_cast<size_t>(i)];
    if (pods.empty()) return state::kNoId;
    const PodId id = pods.back();
    pods.pop_back();
    --tree_.active(i);
    return id;
  }

  Tree tree_;
  std::vector<std::vector<PodId>> takeable_;  // by set, in task order
  std::vector<PodId> strays_;
};

}  // namespace

// Pods that wait, by set.
class AllocationSequence::Builder {
 public:
  Builder(const state::ClusterState& state, const Workload& workload)
      : tree_(workload),
        waiting_(workload.sets.size()),
        gated_(workload.sets.size()),
        promised_(workload.sets.size()) {
    for (PodId id : workload.pods) {
      const PodRecord& pod = state.pod(id);
      if (pod.status == PodStatus::kPending || pod.status == PodStatus::kGated) anything_ = true;
      if (pod.set == state::kNoSet) continue;
      const auto set = static_cast<size_t>(pod.set);
      if (pod.status == PodStatus::kPipelined) ++promised_[set];
      if (!pod.details->invalid.empty()) continue;
      if (pod.status == PodStatus::kPending) waiting_[set].push_back(id);
      if (pod.status == PodStatus::kGated) ++gated_[set];
    }
  }

  [[nodiscard]] Readiness Ready() const {
    const bool waits = std::any_of(waiting_.begin(), waiting_.end(),
                                   [](const std::vector<PodId>& pods) { return !pods.empty(); });
    const bool gated = std::any_of(gated_.begin(), gated_.end(), [](int64_t n) { return n > 0; });
    const int64_t missing = Missing(0, false);
    if (missing == 0) {
      if (HasExtra(0, false)) return Readiness::kReady;
      if (HasExtra(0, true)) return Readiness::kGated;
      // Pods of optional sets that are below their own minimum.
      return waits || gated ? Readiness::kIncomplete : Readiness::kNothingWaits;
    }
    if (missing != kNever) return Readiness::kReady;
    if (!anything_) return Readiness::kNothingWaits;
    return Missing(0, true) != kNever ? Readiness::kGated : Readiness::kIncomplete;
  }

  [[nodiscard]] TasksToAllocate Next() const {
    TasksToAllocate step;
    if (Ready() != Readiness::kReady) return step;
    step.extra = Missing(0, false) == 0;
    Require(0, step.root);
    if (step.extra) AddExtra(0, step.root);
    List(step.root, step.pods);
    return step;
  }

  // From now on they count as active.
  void Place(const StepNode& node) {
    std::vector<PodId>& waiting = waiting_[static_cast<size_t>(node.set)];
    for (const PodId pod : node.pods) {
      waiting.erase(std::find(waiting.begin(), waiting.end(), pod));
      ++tree_.active(node.set);
    }
    for (const StepNode& child : node.children) Place(child);
  }

 private:
  // The smallest number of waiting pods that makes it satisfied.
  [[nodiscard]] int64_t Missing(int32_t i, bool with_gated) const {
    const auto at = static_cast<size_t>(i);
    const int64_t own = std::max<int64_t>(0, tree_.set(i).min_member - tree_.active(i));
    const int64_t have =
        static_cast<int64_t>(waiting_[at].size()) + (with_gated ? gated_[at] : int64_t{0});
    if (own > have) return kNever;
    std::vector<int64_t> of_children;
    for (int32_t child : tree_.set(i).children) of_children.push_back(Missing(child, with_gated));
    return std::min(kNever, own + SumOfSmallest(std::move(of_children), tree_.Wanted(i)));
  }

  // How many pods have to get real room, promises of this cycle not counted as such.
  [[nodiscard]] int64_t OwnNeeded(int32_t i) const {
    const int64_t real = tree_.active(i) - promised_[static_cast<size_t>(i)];
    return std::max<int64_t>(0, tree_.set(i).min_member - real);
  }
  [[nodiscard]] int64_t Needed(int32_t i) const {
    std::vector<int64_t> of_children;
    for (int32_t child : tree_.set(i).children) of_children.push_back(Needed(child));
    return OwnNeeded(i) + SumOfSmallest(std::move(of_children), tree_.Wanted(i));
  }

  // Holds capacity in vain.
  [[nodiscard]] bool IsHalfStarted(int32_t i) const {
    return !tree_.Satisfied(i) && tree_.ActiveBelow(i) > 0;
  }

  // The children that are to be satisfied, in KAI's order: those that are, then those that run in
  // part, then the first that can be.
  [[nodiscard]] std::vector<int32_t> Chosen(int32_t i) const {
    const std::vector<int32_t> order = tree_.Ordered(i);
    // Satisfied or not, pods that need real room (of satisfied ones; of others whether nothing runs
    // yet), place.
    std::vector<std::tuple<bool, int64_t, size_t>> ranks;
    for (size_t k = 0; k < order.size(); ++k) {
      if (tree_.Satisfied(order[k])) {
        ranks.emplace_back(false, Needed(order[k]), k);
      } else if (Missing(order[k], false) != kNever) {
        ranks.emplace_back(true, IsHalfStarted(order[k]) ? 0 : 1, k);
      }
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.resize(static_cast<size_t>(tree_.Wanted(i)));
    std::vector<size_t> places;
    for (const auto& [below, needed, place] : ranks) places.push_back(place);
    std::sort(places.begin(), places.end());
    std::vector<int32_t> chosen;
    for (size_t place : places) chosen.push_back(order[place]);
    return chosen;
  }

  // Fills a node with what satisfies its set.
  void Require(int32_t i, StepNode& node) const {
    node.set = i;
    node.needed = OwnNeeded(i);
    const int64_t own = std::max<int64_t>(0, tree_.set(i).min_member - tree_.active(i));
    const std::vector<PodId>& waiting = waiting_[static_cast<size_t>(i)];
    node.pods.assign(waiting.begin(), waiting.begin() + own);
    for (int32_t child : Chosen(i)) {
      StepNode of_child;
      Require(child, of_child);
      const bool nothing =
          of_child.pods.empty() && of_child.children.empty() && of_child.needed == 0;
      if (!nothing) node.children.push_back(std::move(of_child));
    }
  }

  // True if AddExtra() finds a unit at or below this satisfied set.
  [[nodiscard]] bool HasExtra(int32_t i, bool with_gated) const {
    const auto at = static_cast<size_t>(i);
    if (!waiting_[at].empty() || (with_gated && gated_[at] > 0)) return true;
    const std::vector<int32_t>& children = tree_.set(i).children;
    return std::any_of(children.begin(), children.end(), [&](int32_t child) {
      return tree_.Satisfied(child) ? HasExtra(child, with_gated)
                                    : Missing(child, with_gated) != kNever;
    });
  }

  // Adds one unit to the satisfied tree: a waiting pod of a satisfied set, or what satisfies an
  // optional set that is below its own minimum. False if there is none at or below this set.
  bool AddExtra(int32_t i, StepNode& node) const {
    const std::vector<PodId>& waiting = waiting_[static_cast<size_t>(i)];
    if (!waiting.empty()) {
      node.pods.push_back(waiting.front());
      return true;
    }
    std::vector<int32_t> order = tree_.Ordered(i);
    std::stable_partition(order.begin(), order.end(),
                          [this](int32_t child) { return IsHalfStarted(child); });
    for (int32_t child : order) {
      auto known = std::find_if(node.children.begin(), node.children.end(),
                                [child](const StepNode& n) { return n.set == child; });
      if (known != node.children.end()) {
        if (AddExtra(child, *known)) return true;
        continue;
      }
      StepNode of_child;
      of_child.set = child;
      if (tree_.Satisfied(child)) {
        if (!AddExtra(child, of_child)) continue;
      } else {
        if (Missing(child, false) == kNever) continue;
        Require(child, of_child);
      }
      node.children.push_back(std::move(of_child));
      return true;
    }
    return false;
  }

  static void List(const StepNode& node, std::vector<PodId>& pods) {
    pods.insert(pods.end(), node.pods.begin(), node.pods.end());
    for (const StepNode& child : node.children) List(child, pods);
  }

  Tree tree_;
  std::vector<std::vector<PodId>> waiting_;  // in task order
  std::vector<int64_t> gated_, promised_;
  bool anything_ = false;  // waits or is gated, also what is refused
};

AllocationSequence::AllocationSequence(const state::ClusterState& state, const Workload& workload)
    : builder_(std::make_unique<Builder>(state, workload)) {}
AllocationSequence::~AllocationSequence() = default;
TasksToAllocate AllocationSequence::Next() const { return builder_->Next(); }
void AllocationSequence::Place(const TasksToAllocate& step) { builder_->Place(step.root); }

// Most workloads are one pod, alone or in a group of its own: they need no tree.
bool IsOnePod(const state::ClusterState& state, const Workload& workload) {
  if (workload.plain) return true;
  if (workload.pods.size() != 1 || workload.sets.size() != 1 || workload.sets[0].min_member != 1) {
    return false;
  }
  const PodRecord& pod = state.pod(workload.pods.front());
  return pod.set != state::kNoSet && pod.details->invalid.empty();
}

bool IsSatisfied(const Workload& workload) {
  if (workload.plain) return workload.Active() > 0;
  if (workload.sets.size() == 1) return workload.active[0] >= workload.sets[0].min_member;
  return Tree(workload).Satisfied(0);
}

Readiness ReadinessOf(const state::ClusterState& state, const Workload& workload) {
  if (workload.Count(PodStatus::kPending) + workload.Count(PodStatus::kGated) == 0) {
    return Readiness::kNothingWaits;
  }
  if (!IsOnePod(state, workload)) return AllocationSequence::Builder(state, workload).Ready();
  return workload.Count(PodStatus::kPending) > 0 ? Readiness::kReady : Readiness::kGated;
}

TasksToAllocate NextStep(const state::ClusterState& state, const Workload& workload) {
  TasksToAllocate step;
  NextStep(state, workload, step);
  return step;
}

void NextStep(const state::ClusterState& state, const Workload& workload, TasksToAllocate& step) {
  if (!IsOnePod(state, workload)) {
    step = AllocationSequence(state, workload).Next();
    return;
  }
  if (workload.Count(PodStatus::kPending) == 0) {
    step = {};
  } else {
    StepOfOnePod(workload.pods.front(), step);
  }
}

void StepOfOnePod(PodId pod, TasksToAllocate& step) {
  step.pods.assign(1, pod);
  step.root.set = 0;
  step.root.pods.assign(1, pod);
  step.root.needed = 1;
  step.root.children.clear();
  step.extra = false;
}

namespace {

// `active`: pods by set.
template <typename Counts>
int ElasticStateBy(const Workload& workload, const Counts& active) {
  int state = 1;
  for (size_t i = 0; i < workload.sets.size(); ++i) {
    if (active[i] < workload.sets[i].min_member) return 0;
    if (active[i] > workload.sets[i].min_member) state = 2;
  }
  return state;
}

}  // namespace

int ElasticStateOf(const Workload& workload) {
  if (workload.plain) return workload.Active() > 0 ? 1 : 0;
  return ElasticStateBy(workload, workload.active);
}

int ElasticStateWithout(const state::ClusterState& state, const Workload& workload,
                        absl::Span<const PodId> pods) {
  if (workload.plain) return workload.Active() > pods.size() ? 1 : 0;
  std::vector<int64_t> active(workload.active.begin(), workload.active.end());
  for (const PodId id : pods) {
    const state::PodRecord& pod = state.pod(id);
    if (pod.set != state::kNoSet && state::IsAllocated(pod.status)) {
      --active[static_cast<size_t>(pod.set)];
    }
  }
  return ElasticStateBy(workload, active);
}

int64_t GangMinimum(const Workload& workload, int32_t set) {
  return workload.sets.size() == 1 ? workload.sets[0].min_member : Tree(workload).Minimum(set);
}

std::vector<std::vector<PodId>> EvictionUnits(const state::ClusterState& state,
                                              const Workload& workload, bool core,
                                              const std::set<PodId>* fresh) {
  std::vector<std::vector<PodId>> units;
  std::vector<PodId> taken;
  const bool whole = workload.group != nullptr && workload.group->disrupted_whole;
  Peeler peeler(state, workload, fresh);
  for (auto unit = whole ? std::vector<PodId>() : peeler.TakeExtra(); !unit.empty();
       unit = peeler.TakeExtra()) {
    taken.insert(taken.end(), unit.begin(), unit.end());
    units.push_back(std::move(unit));
  }
  if (!core) return units;
  std::sort(taken.begin(), taken.end());
  std::vector<PodId> rest;
  for (auto it = workload.pods.rbegin(); it != workload.pods.rend(); ++it) {
    if (!CanBeTaken(state.pod(*it), fresh)) continue;
    if (!std::binary_search(taken.begin(), taken.end(), *it)) rest.push_back(*it);
  }
  if (!rest.empty()) units.push_back(std::move(rest));
  return units;
}

namespace {

// Of the workload with these active pods by set.
std::vector<int32_t> BelowMinimumWith(const Workload& workload, absl::Span<const int32_t> active) {
  std::vector<int32_t> below;
  if (workload.plain || !workload.details->invalid.empty() || workload.Active() == 0 ||
      workload.Count(PodStatus::kSucceeded) > 0) {
    return below;
  }
  const GangSet& root = workload.sets.front();
  if (workload.sets.size() == 1 && !root.min_sub_group.has_value() &&
      active.front() >= root.min_member) {
    return below;
  }
  const bool satisfied = Tree(workload, active).FindBelowMinimum(0, below).satisfied;
  // What runs may all be of no set.
  if (!satisfied && below.empty()) below.push_back(0);
  std::sort(below.begin(), below.end());
  return below;
}

}  // namespace

std::vector<int32_t> BelowMinimum(const Workload& workload) {
  return BelowMinimumWith(workload, workload.active);
}

bool WouldBeBelowMinimum(const Workload& workload, absl::Span<const int32_t> active) {
  return !BelowMinimumWith(workload, active).empty();
}

}  // namespace fairlead::engine
