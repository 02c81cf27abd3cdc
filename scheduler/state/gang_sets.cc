#include "scheduler/state/gang_sets.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/strings.h"

namespace fairlead::state {
namespace {

int64_t NotNegative(const std::optional<int32_t>& number, int64_t if_absent) {
  return number.has_value() ? std::max<int64_t>(0, *number) : if_absent;
}

// A PodGroup: what it says, and its "namespace/name".
struct Subject {
  const model::PodGroupSpec& spec;
  absl::string_view key;
};

// "PodGroup ns/name: spec.subGroups[3].parent: what is wrong"; index 0 is the group itself.
std::string Message(const Subject& group, size_t index, absl::string_view field,
                    absl::string_view what) {
  const std::string item = index == 0 ? "" : absl::StrCat("subGroups[", index - 1, "].");
  return absl::StrCat("PodGroup ", group.key, ": spec.", item, field, ": ", what);
}

// Of the first set that lies too deep, or hangs on a cycle; or empty.
std::string CheckDepth(const Subject& group, const std::vector<GangSet>& sets) {
  // What the root does not reach hangs on a cycle.
  std::vector<int> levels(sets.size(), -1);
  std::vector<int32_t> open = {0};
  levels[0] = 0;
  while (!open.empty()) {
    const auto at = static_cast<size_t>(open.back());
    open.pop_back();
    if (levels[at] > kMaxSubGroupLevels) {
      return Message(group, at, "parent",
                     absl::StrCat("at most ", kMaxSubGroupLevels,
                                  " levels of sub-groups are allowed, and this is one more"));
    }
    for (const int32_t child : sets[at].children) {
      levels[static_cast<size_t>(child)] = levels[at] + 1;
      open.push_back(child);
    }
  }
  const auto lost = std::find(levels.begin(), levels.end(), -1);
  if (lost == levels.end()) return "";
  auto at = static_cast<size_t>(lost - levels.begin());
  // After as many steps as there are sets it is certainly on the cycle itself.
  for (size_t step = 0; step < sets.size(); ++step) at = static_cast<size_t>(sets[at].parent);
  return Message(group, at, "parent",
                 absl::StrCat(Quoted(group.spec.sub_groups[at - 1].parent), " makes a cycle"));
}

// Names, parents and children; the problem, or empty.
std::string Connect(const Subject& group, std::vector<GangSet>& sets) {
  absl::flat_hash_map<absl::string_view, int32_t> index;
  for (size_t i = 1; i < sets.size(); ++i) {
    const std::string& name = group.spec.sub_groups[i - 1].name;
    if (name.empty()) return Message(group, i, "name", "must be specified");
    if (!index.emplace(name, static_cast<int32_t>(i)).second) {
      return Message(group, i, "name", absl::StrCat(Quoted(name), " is there twice"));
    }
  }
  for (size_t i = 1; i < sets.size(); ++i) {
    const std::string& parent = group.spec.sub_groups[i - 1].parent;
    auto found = index.find(parent);
    if (!parent.empty() && found == index.end()) {
      return Message(group, i, "parent", absl::StrCat(Quoted(parent), " is no sub-group"));
    }
    sets[i].parent = parent.empty() ? 0 : found->second;
    sets[static_cast<size_t>(sets[i].parent)].children.push_back(static_cast<int32_t>(i));
  }
  return CheckDepth(group, sets);
}

// The minimums of one set whose children are known; the problem, or empty.
std::string ReadMinimums(const Subject& group, size_t index, GangSets& out) {
  const bool root = index == 0;
  const std::optional<int32_t>& member =
      root ? group.spec.min_member : group.spec.sub_groups[index - 1].min_member;
  const std::optional<int32_t>& sub_group =
      root ? group.spec.min_sub_group : group.spec.sub_groups[index - 1].min_sub_group;
  GangSet& set = out.sets[index];
  const size_t children = set.children.size();
  if (sub_group.has_value() && *sub_group > static_cast<int64_t>(children)) {
    return Message(
        group, index, "minSubGroup",
        absl::StrCat(*sub_group, " is more than the ", children, " sub-groups below it"));
  }
  if (member.has_value() && sub_group.has_value() && out.warning.empty()) {
    out.warning = Message(group, index, "minMember",
                          absl::StrCat("excludes minSubGroup; ",
                                       children > 0 ? "minMember" : "minSubGroup", " is ignored"));
  }
  if (children == 0) {
    set.min_member = NotNegative(member, 1);
    return "";
  }
  if (sub_group.has_value()) {
    set.min_sub_group = NotNegative(sub_group, 0);
  } else if (!root) {
    set.min_member = NotNegative(member, 0);
  }
  return "";
}

}  // namespace

GangSets ReadGangSets(const model::PodGroupSpec& spec, absl::string_view key) {
  const Subject group{spec, key};
  GangSets out;
  if (group.spec.sub_groups.size() > kMaxSubGroups) {
    out.problem =
        absl::StrCat("PodGroup ", group.key, ": spec.subGroups: ", group.spec.sub_groups.size(),
                     " items, at most ", kMaxSubGroups, " are allowed");
  } else {
    out.sets.resize(group.spec.sub_groups.size() + 1);
    out.sets[0].topology = group.spec.topology;
    for (size_t i = 1; i < out.sets.size(); ++i) {
      out.sets[i].name = group.spec.sub_groups[i - 1].name;
      out.sets[i].topology = group.spec.sub_groups[i - 1].topology;
    }
    out.problem = Connect(group, out.sets);
  }
  for (size_t i = 0; i < out.sets.size() && out.problem.empty(); ++i) {
    out.problem = ReadMinimums(group, i, out);
  }
  if (!out.problem.empty()) {
    out.warning.clear();
    out.sets = SingleSet();
    out.sets[0].min_member = NotNegative(group.spec.min_member, 1);
    out.sets[0].topology = group.spec.topology;
  }
  return out;
}

std::vector<GangSet> SingleSet() {
  std::vector<GangSet> sets(1);
  sets[0].min_member = 1;
  return sets;
}

GangTree::GangTree(std::vector<GangSet> sets) {
  if (sets != Single()) sets_ = Shared<std::vector<GangSet>>(std::move(sets));
}

const std::vector<GangSet>& GangTree::Single() {
  static const auto& single = *new std::vector<GangSet>(SingleSet());
  return single;
}

int32_t SetOfLabel(const Workload& workload, absl::string_view label) {
  if (label.empty() || workload.group == nullptr) return 0;
  if (workload.details->notes != nullptr && !workload.details->notes->sets_problem.empty())
    return 0;
  for (size_t i = 1; i < workload.sets.size(); ++i) {
    if (workload.sets[i].name == label) return static_cast<int32_t>(i);
  }
  return kNoSet;
}

}  // namespace fairlead::state
