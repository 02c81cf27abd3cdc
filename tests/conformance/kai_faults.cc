#include "tests/conformance/kai_faults.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/quantity.h"

namespace fairlead::conformance {
namespace {

using Placed = std::map<std::string, std::pair<std::string, std::string>>;  // pod -> status, node

constexpr char kGroupAnnotation[] = "pod-group-name";

template <typename Use>
void ForEach(const Json& test, absl::string_view kind, const Use& use) {
  const Json* objects = test.Find("objects");
  if (objects == nullptr) return;
  for (const Json& object : objects->items) {
    if (object.TextAt({"kind"}) == kind) use(object);
  }
}

std::string NameOf(const Json& object) { return object.TextAt({"metadata", "name"}); }

std::string LabelOf(const Json& object, absl::string_view label) {
  return object.TextAt({"metadata", "labels", label});
}

int64_t AmountOf(const Json* amounts, absl::string_view resource) {
  const Json* amount = amounts == nullptr ? nullptr : amounts->Find(resource);
  if (amount == nullptr) return 0;
  return model::ParseResourceQuantity(resource, amount->text).value_or(0);
}

int64_t RequestOf(const Json& pod, absl::string_view resource) {
  const Json* spec = pod.Find("spec");
  const Json* containers = spec == nullptr ? nullptr : spec->Find("containers");
  int64_t sum = 0;
  if (containers == nullptr) return 0;
  for (const Json& container : containers->items) {
    const Json* resources = container.Find("resources");
    sum += AmountOf(resources == nullptr ? nullptr : resources->Find("requests"), resource);
  }
  return sum;
}

bool HoldsItsNode(absl::string_view status) {
  return status == "Binding" || status == "Bound" || status == "Running" || status == "Releasing" ||
         status == "StuckInReleasing";
}

// Allocatable less what the pods there request.
int64_t FreeOn(const Json& test, const Json& node, const Placed& placed,
               absl::string_view resource) {
  const Json* status = node.Find("status");
  int64_t free = AmountOf(status == nullptr ? nullptr : status->Find("allocatable"), resource);
  ForEach(test, "Pod", [&](const Json& pod) {
    const auto at = placed.find(NameOf(pod));
    if (at == placed.end() || at->second.second != NameOf(node)) return;
    if (HoldsItsNode(at->second.first)) free -= RequestOf(pod, resource);
  });
  return free;
}

Placed ObservedIn(const Json& test) {
  Placed placed;
  const Json* observed = test.Find("observed");
  const Json* pods = observed == nullptr ? nullptr : observed->Find("pods");
  if (pods == nullptr) return placed;
  for (const auto& [name, row] : pods->members) {
    placed[name] = {row.TextAt({"status"}), row.TextAt({"node"})};
  }
  return placed;
}

std::vector<std::string> LevelsOf(const Json& topology) {
  std::vector<std::string> levels;
  const Json* spec = topology.Find("spec");
  const Json* list = spec == nullptr ? nullptr : spec->Find("levels");
  if (list == nullptr) return levels;
  for (const Json& level : list->items) levels.push_back(level.TextAt({"nodeLabel"}));
  return levels;
}

// "z0.r1": the node's domain down to the level; empty if the node lacks a label.
std::string DomainOf(const Json& node, const std::vector<std::string>& levels,
                     absl::string_view down_to) {
  std::vector<std::string> path;
  for (const std::string& level : levels) {
    path.push_back(LabelOf(node, level));
    if (path.back().empty()) return "";
    if (level == down_to) break;
  }
  return absl::StrJoin(path, ".");
}

std::string EmptyDomainFault(const Json& test) {
  const Json* observed = test.Find("observed");
  const Json* errors = observed == nullptr ? nullptr : observed->Find("jobFitErrors");
  if (errors == nullptr) return "";
  const Placed placed = ObservedIn(test);
  std::string fault;
  ForEach(test, "Topology", [&](const Json& topology) {
    const std::vector<std::string> levels = LevelsOf(topology);
    ForEach(test, "Node", [&](const Json& node) {
      if (FreeOn(test, node, placed, "cpu") <= 0) return;
      for (const std::string& level : levels) {
        const std::string domain = DomainOf(node, levels, level);
        if (domain.empty()) continue;
        const std::string claim =
            absl::StrCat(" ", domain, " didn't have enough resources: CPU cores, requested: ");
        for (const auto& [job, text] : errors->members) {
          const size_t at = text.text.find(claim);
          if (at == std::string::npos) continue;
          absl::string_view rest = absl::string_view(text.text).substr(at + claim.size());
          rest = rest.substr(0, rest.find("didn't"));
          if (!absl::StrContains(rest, ", available: 0,")) continue;
          fault = absl::StrCat("job ", job, " was told that domain ", domain,
                               " has no CPU, and node ", NameOf(node), " in it has");
        }
      }
    });
  });
  return fault;
}

// Pods of the group that are placed, in the domains of the level; `sub_group` empty: all of them.
std::set<std::string> DomainsUsed(const Json& test, const Placed& placed, const Json& constraint,
                                  const std::string& group, const std::string& sub_group) {
  std::set<std::string> domains;
  const std::string level = constraint.TextAt({"requiredTopologyLevel"});
  if (level.empty()) return domains;
  std::map<std::string, std::string> domain_of;
  ForEach(test, "Topology", [&](const Json& topology) {
    if (NameOf(topology) != constraint.TextAt({"topology"})) return;
    ForEach(test, "Node", [&](const Json& node) {
      domain_of[NameOf(node)] = DomainOf(node, LevelsOf(topology), level);
    });
  });
  ForEach(test, "Pod", [&](const Json& pod) {
    const auto at = placed.find(NameOf(pod));
    if (at == placed.end() || at->second.second.empty()) return;
    if (pod.TextAt({"metadata", "annotations", kGroupAnnotation}) != group) return;
    if (!sub_group.empty() && LabelOf(pod, model::kSubGroupLabel) != sub_group) return;
    domains.insert(domain_of[at->second.second]);
  });
  return domains;
}

// For the group and each of its sub-groups with a constraint.
void ForEachConstraint(const Json& group,
                       const std::function<void(const Json&, const std::string& sub_group)>& use) {
  const Json* spec = group.Find("spec");
  if (spec == nullptr) return;
  if (const Json* own = spec->Find("topologyConstraint")) use(*own, "");
  const Json* subs = spec->Find("subGroups");
  if (subs == nullptr) return;
  for (const Json& sub : subs->items) {
    if (const Json* own = sub.Find("topologyConstraint")) use(*own, sub.TextAt({"name"}));
  }
}

std::string BrokenLevelFault(const Json& test) {
  const Placed placed = ObservedIn(test);
  std::string fault;
  ForEach(test, "PodGroup", [&](const Json& group) {
    ForEachConstraint(group, [&](const Json& constraint, const std::string& sub_group) {
      const auto used = DomainsUsed(test, placed, constraint, NameOf(group), sub_group);
      if (used.size() < 2) return;
      fault = absl::StrCat("pods of job ", NameOf(group), " are in domains ",
                           absl::StrJoin(used, ", "), ", and it requires one of level ",
                           constraint.TextAt({"requiredTopologyLevel"}));
    });
  });
  return fault;
}

int64_t NumberAt(const Json& object, absl::string_view key, int64_t otherwise) {
  const Json* value = object.Find(key);
  int64_t number = otherwise;
  return value != nullptr && absl::SimpleAtoi(value->text, &number) ? number : otherwise;
}

// Groups without nested sub-groups.
void CheckGang(const Json& test, const Json& group, const Placed& placed,
               std::vector<std::string>& problems) {
  std::map<std::string, int64_t> count;
  int64_t all = 0;
  ForEach(test, "Pod", [&](const Json& pod) {
    const auto at = placed.find(NameOf(pod));
    if (pod.TextAt({"metadata", "annotations", kGroupAnnotation}) != NameOf(group)) return;
    if (at == placed.end() || at->second.second.empty()) return;
    ++count[LabelOf(pod, model::kSubGroupLabel)];
    ++all;
  });
  const Json* spec = group.Find("spec");
  if (all == 0 || spec == nullptr) return;
  const Json* subs = spec->Find("subGroups");
  if (subs == nullptr || subs->items.empty()) {
    if (all < NumberAt(*spec, "minMember", 1)) {
      problems.push_back(absl::StrCat("gang ", NameOf(group), " is placed in part"));
    }
    return;
  }
  int64_t satisfied = 0;
  for (const Json& sub : subs->items) {
    const std::string name = sub.TextAt({"name"});
    const int64_t minimum = NumberAt(sub, "minMember", 1);
    if (count[name] >= minimum) {
      ++satisfied;
    } else if (count[name] > 0) {
      problems.push_back(
          absl::StrCat("sub-group ", name, " of ", NameOf(group), " is placed in part"));
    }
  }
  if (satisfied < NumberAt(*spec, "minSubGroup", static_cast<int64_t>(subs->items.size()))) {
    problems.push_back(absl::StrCat("too few sub-groups of ", NameOf(group), " are placed"));
  }
}

}  // namespace

std::string KaiFaultIn(const Json& test) {
  if (test.TextAt({"mode"}) != "single") return "";
  std::string fault = EmptyDomainFault(test);
  return fault.empty() ? BrokenLevelFault(test) : fault;
}

std::vector<std::string> PlacementProblems(const Json& test,
                                           const std::map<std::string, PodOutcome>& pods) {
  std::vector<std::string> problems;
  Placed placed;
  for (const auto& [key, pod] : pods) {
    placed[key.substr(key.find('/') + 1)] = {pod.status, pod.node};
  }
  ForEach(test, "Node", [&](const Json& node) {
    for (const char* resource : {model::kGpuName, model::kCpuName, model::kMemoryName}) {
      if (FreeOn(test, node, placed, resource) < 0) {
        problems.push_back(
            absl::StrCat("node ", NameOf(node), " has less ", resource, " than its pods request"));
      }
    }
  });
  ForEach(test, "Pod", [&](const Json& pod) {
    const auto at = placed.find(NameOf(pod));
    if (pod.TextAt({"status", "phase"}) != "Running") return;
    if (at == placed.end() || at->second.first != "Running") {
      problems.push_back(absl::StrCat("pod ", NameOf(pod), " ran and does not"));
    }
  });
  ForEach(test, "PodGroup", [&](const Json& group) {
    CheckGang(test, group, placed, problems);
    ForEachConstraint(group, [&](const Json& constraint, const std::string& sub_group) {
      if (DomainsUsed(test, placed, constraint, NameOf(group), sub_group).size() > 1) {
        problems.push_back(absl::StrCat("group ", NameOf(group), " ", sub_group,
                                        " is in several domains of its required level"));
      }
    });
  });
  return problems;
}

}  // namespace fairlead::conformance
