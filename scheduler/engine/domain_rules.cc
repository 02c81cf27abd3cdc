#include "scheduler/engine/domain_rules.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/topology.h"

namespace fairlead::engine {
namespace {

using verdict::DomainRule;

bool Binds(const model::TopologyConstraint& constraint) {
  return !constraint.topology.empty() &&
         !(constraint.required_level.empty() && constraint.preferred_level.empty());
}

bool IsAmong(const std::vector<std::string>& sorted, const std::string& label) {
  return std::binary_search(sorted.begin(), sorted.end(), label);
}

// The set, or one that it is below.
bool IsAtOrBelow(const state::Workload& workload, int32_t set, int32_t ancestor) {
  while (set >= 0 && set != ancestor) set = workload.sets[static_cast<size_t>(set)].parent;
  return set == ancestor;
}

}  // namespace

bool BoundToTopology(const state::Workload& workload) {
  return std::any_of(workload.sets.begin(), workload.sets.end(),
                     [](const state::GangSet& set) { return Binds(set.topology); });
}

DomainRules::DomainRules(const state::ClusterState& state, const state::Workload& workload,
                         const OfferedLabels& offered)
    : rule_of_(workload.sets.size(), -1), problem_of_(workload.sets.size()) {
  AddSet(state, workload, 0, -1, offered);
}

const DomainRules::Problem& DomainRules::ProblemOf(int32_t set) const {
  return problem_of_[static_cast<size_t>(set)];
}

// `around`: the innermost rule of the sets around it.
void DomainRules::AddSet(const state::ClusterState& state, const state::Workload& workload,
                         int32_t set, int32_t around, const OfferedLabels& offered) {
  const auto at = static_cast<size_t>(set);
  const state::GangSet& asked = workload.sets[at];
  if (asked.parent >= 0) problem_of_[at] = ProblemOf(asked.parent);
  rule_of_[at] = around;
  if (Binds(asked.topology)) {
    const model::Topology* topology = state.FindTopology(asked.topology.topology);
    Problem problem;
    if (topology == nullptr || !topology->invalid.empty()) {
      problem.what = absl::StrCat("topology ", asked.topology.topology, " does not exist");
    } else {
      DomainRule rule = MakeRule(*topology, asked, around);
      problem = FindProblem(*topology, asked.topology, rule, offered);
      if (problem.what.empty()) problem = Pin(state, workload, set, rule);
      rule_of_[at] = static_cast<int32_t>(rules_.size());
      rules_.push_back(std::move(rule));
    }
    if (ProblemOf(set).what.empty()) problem_of_[at] = std::move(problem);
  }
  for (const int32_t child : asked.children) {
    AddSet(state, workload, child, rule_of_[at], offered);
  }
}

DomainRule DomainRules::MakeRule(const model::Topology& topology, const state::GangSet& set,
                                 int32_t around) {
  DomainRule rule;
  rule.around = around;
  rule.what = absl::StrCat(set.name.empty() ? "" : absl::StrCat("sub-group ", set.name, ": "),
                           "topology ", topology.meta.name);
  for (const model::Topology::Level& level : topology.levels) {
    rule.labels.push_back(level.node_label);
  }
  rule.required = static_cast<int64_t>(DepthOf(topology, set.topology.required_level));
  rule.preferred = static_cast<int64_t>(DepthOf(topology, set.topology.preferred_level));
  if (rule.required > 0) {
    absl::StrAppend(&rule.what, ", required level ", set.topology.required_level);
  } else {
    absl::StrAppend(&rule.what, ", preferred level ", set.topology.preferred_level);
  }
  // Levels outside the required one are met anyway.
  if (rule.preferred <= rule.required) rule.preferred = 0;
  return rule;
}

DomainRules::Problem DomainRules::FindProblem(const model::Topology& topology,
                                              const model::TopologyConstraint& asked,
                                              const DomainRule& rule,
                                              const OfferedLabels& offered) {
  for (const std::string& level : {asked.required_level, asked.preferred_level}) {
    if (!level.empty() && DepthOf(topology, level) == 0) {
      return {absl::StrCat("topology ", topology.meta.name, " has no level ", level), ""};
    }
  }
  const bool some = std::any_of(offered.begin(), offered.end(), [&](const auto& labels) {
    return std::all_of(rule.labels.begin(), rule.labels.end(),
                       [&](const std::string& label) { return IsAmong(labels, label); });
  });
  if (some) return {};
  const auto unknown =
      std::find_if(rule.labels.begin(), rule.labels.end(), [&](const std::string& label) {
        return std::none_of(offered.begin(), offered.end(),
                            [&](const auto& labels) { return IsAmong(labels, label); });
      });
  if (unknown == rule.labels.end()) {
    return {absl::StrCat(rule.what, ": no node that may be bought has the labels of all levels"),
            absl::StrCat("give the nodes of a NodePool the labels of all levels of topology ",
                         topology.meta.name)};
  }
  return {absl::StrCat(rule.what, ": which ", *unknown,
                       " a new node would have is not known, so none is bought"),
          absl::StrCat("set ", *unknown,
                       " in spec.labels of a NodePool whose nodes all have one value of it")};
}

// Where pods of the set run, the others have to go.
DomainRules::Problem DomainRules::Pin(const state::ClusterState& state,
                                      const state::Workload& workload, int32_t set,
                                      DomainRule& rule) const {
  if (rule.required == 0) return {};
  bool runs = false;
  for (const state::PodId id : workload.pods) {
    const state::PodRecord& pod = state.pod(id);
    if (!state::IsAllocated(pod.status) || pod.node == state::kNoId) continue;
    if (!IsAtOrBelow(workload, pod.set, set)) continue;
    runs = true;
    const model::StringMap& labels = state.node(pod.node).object.meta.labels;
    const bool inside = std::all_of(rule.labels.begin(), rule.labels.end(),
                                    [&](const std::string& label) { return labels.Has(label); });
    if (!inside) continue;
    std::vector<std::string> values;
    for (int64_t i = 0; i < rule.required; ++i) {
      values.push_back(*labels.Find(rule.labels[static_cast<size_t>(i)]));
    }
    rule.pinned.push_back(std::move(values));
  }
  if (!runs) return {};
  std::sort(rule.pinned.begin(), rule.pinned.end());
  rule.pinned.erase(std::unique(rule.pinned.begin(), rule.pinned.end()), rule.pinned.end());
  if (rule.pinned.empty()) {
    return {absl::StrCat(rule.what,
                         ": pods of it run on nodes without the labels of all levels, a new node "
                         "would be elsewhere"),
            ""};
  }
  const bool each_a_domain =
      std::any_of(rule.labels.begin(), rule.labels.begin() + rule.required, verdict::NamesOneNode);
  if (!each_a_domain) return {};
  return {absl::StrCat(rule.what,
                       ": pods of it have a node already, and a new one would be another domain"),
          ""};
}

}  // namespace fairlead::engine
