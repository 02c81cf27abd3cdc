#include "scheduler/engine/outcome.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/sorted_merge.h"

namespace fairlead::engine {
namespace {

void Describe(const state::ClusterState& state, const state::Workload& workload,
              const StepNode& node, std::string& text) {
  const model::TopologyConstraint& topology = workload.sets[static_cast<size_t>(node.set)].topology;
  absl::StrAppend(&text, "(", topology.topology, "|", topology.required_level, "|",
                  topology.preferred_level, "|", node.needed);
  for (state::PodId pod : node.pods) absl::StrAppend(&text, ",", state.pod(pod).pod_class);
  for (const StepNode& child : node.children) Describe(state, workload, child, text);
  text += ")";
}

}  // namespace

verdict::Code CodeOf(const queues::LimitViolation& violation) {
  return violation.kind == queues::LimitKind::kLimit ? verdict::Code::kQueueLimitReached
                                                     : verdict::Code::kNonPreemptibleOverQuota;
}

StepKind KindOf(const state::ClusterState& state, const state::Workload& workload,
                const TasksToAllocate& step) {
  StepKind kind;
  const state::PodClassId first = state.pod(step.pods.front()).pod_class;
  bool uniform = workload.plain ||
                 (workload.sets.size() <= 1 && workload.sets.front().topology.topology.empty());
  for (size_t i = 1; uniform && i < step.pods.size(); ++i) {
    uniform = state.pod(step.pods[i]).pod_class == first;
  }
  if (uniform) {
    kind.pod_class = first;
  } else {
    Describe(state, workload, step.root, kind.text);
    // A gang that runs in part is bound to where it runs.
    if (workload.Active() > 0) absl::StrAppend(&kind.text, "@", workload.id);
  }
  return kind;
}

bool Outcome::HasResultOf(const Outcome& other, const state::ClusterState& state) const {
  const auto alike = [&state](const std::vector<state::PodId>& a,
                              const std::vector<state::PodId>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&state](auto x, auto y) {
      return state.pod(x).pod_class == state.pod(y).pod_class;
    });
  };
  if (room.has_value() != other.room.has_value()) return false;
  if (room.has_value() &&
      (room->values != other.room->values || !alike(room->others, other.room->others))) {
    return false;
  }
  return code == other.code && violation == other.violation && subject == other.subject &&
         details == other.details && until == other.until && alike(demanded, other.demanded) &&
         demanded_of_step == other.demanded_of_step && whole_demand == other.whole_demand &&
         uncharged == other.uncharged && keeper == other.keeper &&
         kept_beyond_cluster == other.kept_beyond_cluster && promises.empty() &&
         other.promises.empty();
}

Outcome OutcomeOfNext(const state::ClusterState& state, const Outcome& former,
                      const MemberRange& rest) {
  Outcome outcome = former;
  const state::Workload& workload = state.workload(rest.next->workload);
  outcome.workload = workload.id;
  outcome.failed_pod = workload.pods.front();
  if (!outcome.step.pods.empty()) outcome.step = NextStep(state, workload);
  outcome.rest = rest.Behind();
  return outcome;
}

Outcome& OutcomeTable::Of(const state::Workload& workload, queues::QueueId leaf) {
  const auto [it, added] = index_.try_emplace(workload.id, rows_.size());
  if (added) {
    rows_.emplace_back();
    rows_.back().workload = workload.id;
    rows_.back().leaf = leaf;
  }
  return rows_[it->second];
}

size_t OutcomeTable::StepForward(size_t position, const Outcome& before) {
  const MemberRange rest = std::exchange(rows_[position].rest, {});
  Append(OutcomeOfNext(state_, before, rest));
  MarkLate(rows_.back());
  return rows_.size() - 1;
}

QueueOrderKey OutcomeTable::KeyOf(const Outcome& outcome) const {
  const state::Workload& workload = state_.workload(outcome.workload);
  QueueOrderKey key = MakeQueueOrderKey(workload);
  if (outcome.promises.empty()) return key;
  // A promise counts as if it ran.
  std::vector<state::PodId> promised;
  for (const Waiting::PodPromise& promise : outcome.promises) promised.push_back(promise.pod);
  key.elastic_state = ElasticStateWithout(state_, workload, promised);
  return key;
}

void OutcomeTable::Sort() {
  if (!std::exchange(unsorted_, false)) return;
  std::vector<Outcome> all = Release();
  SortedMerge<queues::QueueId, Outcome*> late;
  for (Outcome& outcome : all) {
    if (outcome.stepped_forward) {
      late.Add(outcome.leaf, KeyOf(outcome), &outcome);
    } else {
      late.Expect(outcome.leaf);
    }
  }
  const auto append = [this](Outcome* outcome) {
    Append(std::move(*outcome));
    rows_.back().stepped_forward = false;
  };
  for (Outcome& outcome : all) {
    if (outcome.stepped_forward) continue;  // also of those that were moved out of `all`
    late.Advance(outcome.leaf, [&] { return KeyOf(outcome); }, [&] { append(&outcome); }, append);
  }
  late.Finish(append);
}

std::vector<Outcome> OutcomeTable::Release() {
  std::vector<Outcome> all = std::exchange(rows_, {});
  rows_.reserve(all.size());
  return all;
}

void OutcomeTable::Append(Outcome outcome) {
  index_[outcome.workload] = rows_.size();
  rows_.push_back(std::move(outcome));
}

void OutcomeTable::AssignPositions() {
  std::map<queues::QueueId, int64_t> positions;
  for (Outcome& outcome : rows_) {
    int64_t& position = positions[outcome.leaf];
    outcome.position = position + 1;
    position += 1 + outcome.rest.count;
  }
}

}  // namespace fairlead::engine
