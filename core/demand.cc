#include "core/demand.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace fairlead::core {
namespace {

// The terms by which a pod of these depends on others: the pods and the labels that they select.
struct Terms {
  std::vector<model::LabelSelector> selectors;
  std::set<std::string> keys;
  [[nodiscard]] bool MaySelect(const model::StringMap& labels) const {
    return std::any_of(selectors.begin(), selectors.end(),
                       [&](const auto& selector) { return selector.Matches(labels); });
  }
};

Terms TermsOf(const std::vector<engine::Waiting>& entries) {
  Terms terms_of_all;
  const auto read = [&terms_of_all](const model::LabelSelector& selector) {
    std::vector<model::LabelSelector>& known = terms_of_all.selectors;
    if (std::find(known.begin(), known.end(), selector) != known.end()) return;
    known.push_back(selector);
    for (const auto& requirement : selector.requirements) {
      terms_of_all.keys.insert(requirement.key);
    }
  };
  std::set<const model::PodSpec*> seen;
  for (const engine::Waiting& entry : entries) {
    if (!WantsNodes(entry)) continue;
    for (const verdict::DemandClass& pods : entry.verdict.demand) {
      if (pods.spec == nullptr || !seen.insert(pods.spec.get()).second) continue;
      for (const auto* terms : {&pods.spec->pod_affinity, &pods.spec->pod_anti_affinity}) {
        for (const model::PodAffinityTerm& term : *terms) {
          if (term.weight == 0) read(term.selector);
        }
      }
      for (const model::TopologySpreadConstraint& spread : pods.spec->topology_spread) {
        if (spread.do_not_schedule) read(spread.selector);
      }
    }
  }
  return terms_of_all;
}

// Gives specs the labels that are read.
class Labelling {
 public:
  Labelling(const state::ClusterState& state, const Terms& terms) : state_(state), terms_(terms) {}

  // The entry's demand, its classes taken apart by the labels of their pods.
  std::vector<verdict::DemandClass> Of(const engine::Waiting& entry) {
    std::vector<verdict::DemandClass> classes;
    for (const verdict::DemandClass& pods : entry.verdict.demand) {
      if (pods.spec == nullptr || pods.spec->HasAllLabels()) {
        classes.push_back(pods);
      } else {
        Split(entry, pods, classes);
      }
    }
    return classes;
  }

 private:
  // The pods that are demanded are the first of the class that were promised nothing.
  void Split(const engine::Waiting& entry, const verdict::DemandClass& pods,
             std::vector<verdict::DemandClass>& classes) {
    const size_t first = classes.size();
    int64_t left = pods.count, minimum = pods.min_count;
    for (const engine::Waiting::PodPromise& promise : entry.pods) {
      if (left == 0) break;
      if (promise.node != state::kNoId) continue;
      if (state_.class_of(promise.pod).spec != pods.spec) continue;
      const auto spec = Labelled(pods.spec, state_.pod(promise.pod));
      auto known = std::find_if(classes.begin() + static_cast<ptrdiff_t>(first), classes.end(),
                                [&](const auto& made) { return made.spec == spec; });
      if (known == classes.end()) known = classes.insert(classes.end(), {spec, 0, 0});
      ++known->count;
      if (minimum-- > 0) ++known->min_count;
      --left;
    }
    // Not to be found among the entry's pods: as it is.
    if (left > 0) classes.push_back({pods.spec, left, std::max<int64_t>(0, minimum)});
  }

  std::shared_ptr<const model::PodSpec> Labelled(const std::shared_ptr<const model::PodSpec>& spec,
                                                 const state::PodRecord& pod) {
    model::StringMap labels = spec->labels_for_affinity;
    if (terms_.MaySelect(pod.labels)) {
      for (const std::string& key : terms_.keys) {
        if (const std::string* value = pod.labels.Find(key)) labels.Set(key, *value);
      }
    }
    if (labels == spec->labels_for_affinity) return spec;
    auto& made = made_[{spec.get(), labels}];
    if (made == nullptr) {
      auto copy = std::make_shared<model::PodSpec>(*spec);
      copy->labels_for_affinity = std::move(labels);
      made = std::move(copy);
    }
    return made;
  }

  const state::ClusterState& state_;
  const Terms& terms_;
  absl::flat_hash_map<std::pair<const model::PodSpec*, model::StringMap>,
                      std::shared_ptr<const model::PodSpec>>
      made_;  // never iterated
};

// Other pods make no difference to the nodes that its pods need.
bool IsIndependent(const engine::Waiting& entry) {
  return entry.domains.empty() &&
         std::all_of(entry.verdict.demand.begin(), entry.verdict.demand.end(),
                     [](const verdict::DemandClass& pods) {
                       return pods.spec == nullptr || !hook::LooksAtOtherPods(*pods.spec);
                     });
}

bool IsAtomic(const engine::Waiting& entry) {
  return entry.verdict.min_member > 1 && entry.verdict.pods_running == 0;
}

}  // namespace

bool WantsNodes(const engine::Waiting& entry) {
  return entry.wants_nodes && !entry.verdict.demand.empty();
}

void ExpandDependent(const engine::Engine& engine, std::vector<engine::Waiting>& entries) {
  bool several = false, dependent = false;
  for (const engine::Waiting& entry : entries) {
    if (!WantsNodes(entry)) continue;
    several = several || entry.behind > 0;
    dependent = dependent || !IsIndependent(entry);
  }
  if (several && dependent) entries = engine.ExpandEquivalents(std::move(entries));
}

EngineDemand::EngineDemand(const state::ClusterState& state, const engine::Engine& engine,
                           const std::vector<engine::Waiting>& entries)
    : state_(state), engine_(engine), entries_(entries) {
  const Terms terms = TermsOf(entries);
  Labelling labelling(state, terms);
  runs_ = engine.RunsInOrder(entries, WantsNodes);
  items_.reserve(runs_.size());
  for (const engine::EntryRun& run : runs_) {
    const engine::Waiting& entry = entries[run.entry];
    const state::Workload& workload = state.workload(run.workload);
    hook::DemandItem item;
    item.workload = model::Key(workload.ns, workload.name);
    item.members = run.count;
    item.is_group = workload.is_group;
    item.queue = workload.queue;
    item.priority = workload.priority;
    const bool as_is = terms.selectors.empty() || !entry.domains.empty();
    item.classes = as_is ? entry.verdict.demand : labelling.Of(entry);
    item.atomic = IsAtomic(entry);
    item.charged = !entry.uncharged;
    item.domains = entry.domains;
    items_.push_back(std::move(item));
  }
}

std::vector<std::string> EngineDemand::Names(size_t item, int64_t count) const {
  const engine::EntryRun& run = runs_[item];
  std::vector<std::string> names;
  engine_.ForEachOf(entries_[run.entry], run.first, std::min(count, run.count),
                    [&](state::WorkloadId id) {
                      const state::Workload& workload = state_.workload(id);
                      names.push_back(model::Key(workload.ns, workload.name));
                    });
  return names;
}

state::WorkloadId FindWorkload(const state::ClusterState& state, bool is_group,
                               const std::string& workload) {
  const size_t slash = workload.find('/');
  if (slash == std::string::npos) return state::kNoId;
  const std::string ns = workload.substr(0, slash), name = workload.substr(slash + 1);
  if (is_group) return state.FindGroup(ns, name);
  const state::PodId pod = state.FindPod(ns, name);
  if (pod == state::kNoId) return state::kNoId;
  const state::WorkloadId id = state.pod(pod).workload;
  return id == state::kNoId || state.workload(id).is_group ? state::kNoId : id;
}

std::optional<size_t> EngineDemand::Find(bool is_group, const std::string& workload) const {
  if (own_.empty()) {
    for (size_t item = 0; item < runs_.size(); ++item) {
      const engine::Waiting& entry = entries_[runs_[item].entry];
      own_.try_emplace(entry.workload, item);
      if (entry.behind > 0) behind_.try_emplace(entry.equivalence_class, item);
    }
  }
  const state::WorkloadId id = FindWorkload(state_, is_group, workload);
  if (id == state::kNoId) return std::nullopt;
  if (const auto own = own_.find(id); own != own_.end()) return own->second;
  const auto behind = behind_.find(engine_.EquivalenceClassOf(id));
  if (behind == behind_.end()) return std::nullopt;
  return behind->second;
}

hook::DemandChanges DemandTracker::Update(const state::ClusterState& state,
                                          const engine::Engine& engine,
                                          const std::vector<engine::Waiting>& entries) {
  const engine::WaitingChanges since = std::exchange(changes_, {});
  absl::flat_hash_map<state::WorkloadId, const engine::Waiting*> own;
  absl::flat_hash_map<uint64_t, const engine::Waiting*> behind;
  for (const engine::Waiting& entry : entries) {
    own.emplace(entry.workload, &entry);
    if (entry.behind > 0 && WantsNodes(entry)) behind.emplace(entry.equivalence_class, &entry);
  }
  hook::DemandChanges changes;
  const auto left = [&](Known& known) {
    changes.left.emplace_back(known.is_group, std::move(known.workload));
  };
  const auto look = [&](state::WorkloadId id) {
    const engine::Waiting* entry = nullptr;
    uint64_t range = 0;
    if (const auto found = own.find(id); found != own.end()) {
      entry = WantsNodes(*found->second) ? found->second : nullptr;
    } else if (range = engine.EquivalenceClassOf(id); range != 0) {
      const auto row = behind.find(range);
      entry = row == behind.end() ? nullptr : row->second;
    }
    auto known = known_.find(id);
    const state::Workload& workload = state.workload(id);
    const std::string name = entry == nullptr ? "" : model::Key(workload.ns, workload.name);
    if (known != known_.end() &&
        (known->second.workload != name || known->second.is_group != workload.is_group)) {
      left(known->second);
      known_.erase(known);
      known = known_.end();
    }
    if (entry == nullptr) return;
    const int64_t pods = hook::PodsOf(entry->verdict.demand);
    if (known == known_.end() || known->second.pods != pods) {
      changes.came.push_back({workload.is_group, name, pods,
                              hook::IsCompleteGang(workload.is_group, entry->verdict.demand)});
    }
    known_[id] = {workload.is_group, name, pods, range};
  };
  // What was behind an entry that demands nothing now, or is gone.
  std::set<state::WorkloadId> again;
  const bool lost = std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& range) {
    return range.second != kNotDemanded && !behind.contains(range.first);
  });
  for (const auto& [id, known] : known_) {
    if (!since.all && !lost) break;
    if (since.all || (known.range != 0 && !behind.contains(known.range))) again.insert(id);
  }
  for (const state::WorkloadId id : again) look(id);
  for (const state::WorkloadId id : own_) look(id);
  for (const state::WorkloadId id : since.left) look(id);
  for (const state::WorkloadId id : since.came) look(id);
  own_.clear();
  absl::flat_hash_map<uint64_t, int64_t> ranges;
  for (const engine::Waiting& entry : entries) {
    own_.push_back(entry.workload);
    look(entry.workload);
    if (entry.behind == 0) continue;
    const int64_t pods = WantsNodes(entry) ? hook::PodsOf(entry.verdict.demand) : kNotDemanded;
    const auto before = ranges_.find(entry.equivalence_class);
    const bool same = !since.all && before != ranges_.end() && before->second == pods;
    if (!same) engine.ForEachBehind(entry, look);
    ranges.emplace(entry.equivalence_class, pods);
  }
  ranges_ = std::move(ranges);
  return changes;
}

}  // namespace fairlead::core
