#include "core/engine_placement.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "scheduler/engine/hypothesis.h"

namespace fairlead::core {
namespace {

class EngineRehearsal final : public hook::Rehearsal {
 public:
  EngineRehearsal(const state::ClusterState& state, std::unique_ptr<engine::Hypothesis> what_if,
                  const EnginePlacement::Promises& promises)
      : state_(state), what_if_(std::move(what_if)) {
    for (const auto& [pod, node] : promises) {
      if (state_.pod(pod).status == state::PodStatus::kPending) what_if_->Promise(pod, node);
    }
    start_ = what_if_->Mark();
  }

  int AddNode(const model::Node& node) override {
    const size_t mark = Mark();
    nodes_.push_back({what_if_->AddNode(node), mark});
    return static_cast<int>(nodes_.size()) - 1;
  }
  int64_t Place(const std::shared_ptr<const model::PodSpec>& spec, int node,
                int64_t count) override {
    return what_if_->Place(what_if_->ClassOf(spec), IdOf(node), count);
  }
  std::vector<std::pair<int, int64_t>> PlaceBest(const std::shared_ptr<const model::PodSpec>& spec,
                                                 int64_t count, const std::vector<int>& nodes,
                                                 bool present) override {
    const state::PodClassId wanted = what_if_->ClassOf(spec);
    std::vector<std::pair<int, int64_t>> placed;
    for (int64_t i = 0; i < count; ++i) {
      const std::pair<int, state::NodeId> best = Best(wanted, nodes, present);
      if (best.second == state::kNoId || what_if_->Place(wanted, best.second, 1) == 0) break;
      if (placed.empty() || placed.back().first != best.first) placed.emplace_back(best.first, 0);
      ++placed.back().second;
    }
    return placed;
  }
  std::string WhyNot(const std::shared_ptr<const model::PodSpec>& spec, int node) override {
    framework::Status why;
    if (what_if_->Fits(what_if_->ClassOf(spec), IdOf(node), engine::Hypothesis::kPromised, &why)) {
      return "";
    }
    return why.reason;
  }
  [[nodiscard]] size_t Mark() const override { return what_if_->Mark() - start_; }
  void RollbackTo(size_t mark) override {
    what_if_->RollbackTo(start_ + mark);
    while (!nodes_.empty() && nodes_.back().mark >= mark) nodes_.pop_back();
  }

 private:
  struct Node {
    state::NodeId id;
    size_t mark;  // before it was added
  };
  // As the engine's Placer chooses, when all of the nodes are usable.
  [[nodiscard]] std::pair<int, state::NodeId> Best(state::PodClassId wanted,
                                                   const std::vector<int>& nodes,
                                                   bool present) const {
    std::pair<int, state::NodeId> best = {kPresent, state::kNoId};
    int64_t best_score = 0;
    const auto look = [&](int number, state::NodeId id) {
      if (!what_if_->Fits(wanted, id, engine::Hypothesis::kPromised)) return;
      const int64_t score = what_if_->ScoreOf(wanted, id);
      if (best.second != state::kNoId && score <= best_score) return;
      best = {number, id};
      best_score = score;
    };
    if (present) {
      for (const auto& [name, id] : state_.nodes_by_name()) {
        if (state_.node(id).kind != state::NodeKind::kVirtual) look(kPresent, id);
      }
    }
    for (const int node : nodes) look(node, IdOf(node));
    return best;
  }
  [[nodiscard]] state::NodeId IdOf(int node) const { return nodes_[static_cast<size_t>(node)].id; }

  const state::ClusterState& state_;
  std::unique_ptr<engine::Hypothesis> what_if_;
  engine::Hypothesis::Checkpoint start_ = 0;
  std::vector<Node> nodes_;  // by number
};

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
      if (pods.spec == nullptr || ReadsOwnLabels(*pods.spec)) {
        classes.push_back(pods);
      } else {
        Split(entry, pods, classes);
      }
    }
    return classes;
  }

 private:
  static bool ReadsOwnLabels(const model::PodSpec& spec) {
    return !spec.pod_affinity.empty() || !spec.pod_anti_affinity.empty() ||
           !spec.topology_spread.empty();
  }

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
    if (pod.labels != nullptr && terms_.MaySelect(*pod.labels)) {
      for (const std::string& key : terms_.keys) {
        if (const std::string* value = pod.labels->Find(key)) labels.Set(key, *value);
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

}  // namespace

int64_t EnginePlacement::CountThatFit(const model::Node& node, const std::vector<Load>& already,
                                      const std::shared_ptr<const model::PodSpec>& spec,
                                      int64_t limit) {
  std::vector<engine::Engine::Load> loads;
  loads.reserve(already.size());
  for (const Load& load : already) loads.push_back({load.spec, load.count});
  return engine_.CountThatFit(node, loads, spec, limit);
}

std::unique_ptr<hook::Rehearsal> EnginePlacement::Rehearse() {
  return std::make_unique<EngineRehearsal>(state_, engine_.WhatIf(), promises_);
}

bool WantsNodes(const engine::Waiting& entry) {
  return entry.wants_nodes && !entry.verdict.demand.empty();
}

hook::Demand DemandOf(const state::ClusterState& state,
                      const std::vector<engine::Waiting>& entries) {
  const Terms terms = TermsOf(entries);
  Labelling labelling(state, terms);
  hook::Demand demand;
  for (const engine::Waiting& entry : entries) {
    if (!WantsNodes(entry)) continue;
    const state::Workload& workload = state.workload(entry.workload);
    hook::DemandItem item;
    item.workload = model::Key(workload.ns, workload.name);
    item.is_group = workload.is_group;
    item.queue = workload.queue;
    item.priority = workload.priority;
    const bool as_is = terms.selectors.empty() || !entry.domains.empty();
    item.classes = as_is ? entry.verdict.demand : labelling.Of(entry);
    item.atomic = entry.verdict.min_member > 1 && entry.verdict.pods_running == 0;
    item.domains = entry.domains;
    demand.push_back(std::move(item));
  }
  return demand;
}

}  // namespace fairlead::core
