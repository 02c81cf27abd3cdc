#include "grouping/sub_groups.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/model/qualified_name.h"

namespace fairlead::grouping {
namespace {

class Maker {
 public:
  explicit Maker(const Scope& owner) : owner_(owner) {}

  absl::Status AddRow(const SubGroupRow& row);
  absl::Status Enclose();
  SubGroups Take() && { return std::move(made_); }

 private:
  struct Enclosing {
    std::string name, field;
    std::vector<std::string> names;
  };
  absl::Status AddOne(const SubGroupRow& row, const Scope& scope);
  absl::Status Add(model::SubGroup sub_group, const std::string& field);
  absl::Status AddParts(const PartsRow& row, model::SubGroup parent, bool has_pod,
                        const Scope& scope);
  absl::StatusOr<bool> HasPod(const SubGroupRow& row, const Scope& scope) const;
  absl::StatusOr<bool> NamesPod(const Path& references, const Scope& scope) const;

  const Scope& owner_;
  SubGroups made_;
  std::map<std::string, size_t> by_name_;
  std::vector<Enclosing> enclosing_;
};

absl::Status Maker::Add(model::SubGroup sub_group, const std::string& field) {
  // As the webhook of PodGroups has it.
  if (!model::IsDnsLabel(sub_group.name)) {
    return Wrong(field, absl::StrCat(Shown(sub_group.name), " cannot name a sub-group"));
  }
  if (made_.list.size() == kMostSubGroups) {
    return Wrong(field, absl::StrCat("there are more than ", kMostSubGroups, " sub-groups"));
  }
  if (!by_name_.emplace(sub_group.name, made_.list.size()).second) {
    return Wrong(field, absl::StrCat("two sub-groups have the name ", Shown(sub_group.name)));
  }
  made_.list.push_back(std::move(sub_group));
  return absl::OkStatus();
}

// References of another namespace are refused: such a pod is another tenant's.
absl::StatusOr<bool> Maker::NamesPod(const Path& references, const Scope& scope) const {
  bool named = false;
  FAIRLEAD_RETURN_IF_ERROR(ForEach(references, scope, [&](const Scope& entry) -> absl::Status {
    const std::string ns = entry.object.TextAt({"namespace"});
    if (!ns.empty() && ns != entry.pod.meta.ns) {
      return Wrong(absl::StrCat(entry.at, ".namespace"),
                   absl::StrCat(Shown(ns), " is not the namespace of the pods"));
    }
    named = named || entry.object.TextAt({"name"}) == entry.pod.meta.name;
    return absl::OkStatus();
  }));
  return named;
}

absl::StatusOr<bool> Maker::HasPod(const SubGroupRow& row, const Scope& scope) const {
  if (!row.pod_names.empty()) return NamesPod(row.pod_names, scope);
  for (const auto& [label, text] : row.labels) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string value, text.Get(scope));
    if (value.empty() || scope.pod.meta.labels.Get(label) != value) return false;
  }
  return !row.labels.empty();
}

// ---- parts --------------------------------------------------------------------------------------

// How many parts there are, and how many pods each has.
struct Division {
  int64_t count = 0, size = 0, pods = 0;  // size 0: the pods name their part
  int64_t first_extra = 0;                // pods that part 0 has more
};

absl::StatusOr<std::optional<Division>> Divide(const PartsRow& row, const Scope& scope) {
  Division division;
  if (!row.size.has_value()) {
    FAIRLEAD_ASSIGN_OR_RETURN(division.count, row.count.Get(scope));
    return division;
  }
  FAIRLEAD_ASSIGN_OR_RETURN(const std::optional<int64_t> size, row.size->Find(scope));
  if (!size.has_value()) return std::nullopt;
  if (*size == 0) return Wrong(row.size->Field(scope), "must be at least 1");
  FAIRLEAD_ASSIGN_OR_RETURN(division.pods, row.of->Get(scope));
  if (*size > division.pods) {
    return Wrong(row.size->Field(scope),
                 absl::StrCat(*size, " is more than all pods of the sub-group: ", division.pods));
  }
  division.size = *size;
  if (row.first_joins && division.pods > 1 && (division.pods - 1) % *size == 0) {
    division.first_extra = 1;
  }
  division.count = (division.pods - division.first_extra + *size - 1) / *size;
  return division;
}

int64_t PodsOfPart(const Division& division, int64_t part) {
  const int64_t others = division.pods - division.first_extra;
  const int64_t own = std::min(division.size, others - part * division.size);
  return part == 0 ? own + division.first_extra : own;
}

// The part of the scope's pod.
absl::StatusOr<int64_t> PartOfPod(const PartsRow& row, const Division& division,
                                  const Scope& scope) {
  const absl::string_view label = scope.pod.meta.labels.Get(row.label);
  const std::string field = absl::StrCat("pod label ", row.label);
  int64_t index = 0;
  if (!absl::SimpleAtoi(label, &index)) {
    return Wrong(field, absl::StrCat(Shown(label), " is not an index"));
  }
  // A difference of two indexes of tenants could overflow.
  const bool in_range = index >= row.first_index && index - row.first_index < kMostPods;
  index -= in_range ? row.first_index : 0;
  const bool shifted = division.first_extra > 0 && index > 0;
  const int64_t part = division.size == 0 ? index : (index - (shifted ? 1 : 0)) / division.size;
  if (in_range && part < division.count) return part;
  return Wrong(field, absl::StrCat(Shown(label), ": there are ", division.count, " parts"));
}

absl::Status Maker::AddParts(const PartsRow& row, model::SubGroup parent, bool has_pod,
                             const Scope& scope) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::optional<Division> division, Divide(row, scope));
  const std::string field = scope.at.empty() ? parent.name : scope.at;
  if (!division.has_value()) {
    if (has_pod) made_.of_pod = parent.name;
    return Add(std::move(parent), field);
  }
  model::SubGroup part;
  part.parent = parent.name;
  if (row.topology.has_value()) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::optional<model::TopologyConstraint> topology,
                              ReadTopologyOf(*row.topology, scope));
    part.topology = topology.value_or(model::TopologyConstraint());
  }
  if (row.min_member.has_value()) {
    FAIRLEAD_ASSIGN_OR_RETURN(const int64_t minimum, row.min_member->Get(scope));
    part.min_member = static_cast<int32_t>(minimum);
  }
  // The parts have the pods: what the row says as minimum of all of them is met by all parts.
  parent.min_member.reset();
  parent.min_sub_group = static_cast<int32_t>(division->count);
  FAIRLEAD_RETURN_IF_ERROR(Add(std::move(parent), field));
  const std::string prefix = absl::StrCat(part.parent, "-", row.infix);
  for (int64_t i = 0; i < division->count; ++i) {
    part.name = absl::StrCat(prefix, i);
    if (division->size > 0) part.min_member = static_cast<int32_t>(PodsOfPart(*division, i));
    FAIRLEAD_RETURN_IF_ERROR(Add(part, field));
  }
  if (!has_pod) return absl::OkStatus();
  FAIRLEAD_ASSIGN_OR_RETURN(const int64_t of_pod, PartOfPod(row, *division, scope));
  made_.of_pod = absl::StrCat(prefix, of_pod);
  return absl::OkStatus();
}

// ---- rows ---------------------------------------------------------------------------------------

absl::Status Maker::AddOne(const SubGroupRow& row, const Scope& scope) {
  if (row.when.has_value()) {
    FAIRLEAD_ASSIGN_OR_RETURN(const bool holds, row.when->Holds(scope));
    if (!holds) return absl::OkStatus();
  }
  model::SubGroup sub_group;
  FAIRLEAD_ASSIGN_OR_RETURN(sub_group.name, row.name.Get(scope));
  if (row.topology.has_value()) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::optional<model::TopologyConstraint> topology,
                              ReadTopologyOf(*row.topology, scope));
    sub_group.topology = topology.value_or(model::TopologyConstraint());
  }
  const std::string field = scope.at.empty() ? sub_group.name : scope.at;
  if (!row.encloses.empty()) {
    Enclosing enclosing{sub_group.name, row.encloses.Field(scope), {}};
    FAIRLEAD_RETURN_IF_ERROR(ForEach(row.encloses, scope, [&](const Scope& name) {
      enclosing.names.push_back(name.object.text());
      return absl::OkStatus();
    }));
    if (enclosing.names.empty()) return absl::OkStatus();
    sub_group.min_sub_group = static_cast<int32_t>(enclosing.names.size());
    enclosing_.push_back(std::move(enclosing));
    return Add(std::move(sub_group), field);
  }
  if (row.min_member.has_value()) {
    FAIRLEAD_ASSIGN_OR_RETURN(const int64_t minimum, row.min_member->Get(scope));
    if (minimum == 0 && row.skip_empty) return absl::OkStatus();
    sub_group.min_member = static_cast<int32_t>(minimum);
  }
  FAIRLEAD_ASSIGN_OR_RETURN(const bool has_pod, HasPod(row, scope));
  const bool first = has_pod && !made_.of_pod.has_value();
  if (row.parts.has_value()) return AddParts(*row.parts, std::move(sub_group), first, scope);
  if (first) made_.of_pod = sub_group.name;
  return Add(std::move(sub_group), field);
}

absl::Status Maker::AddRow(const SubGroupRow& row) {
  if (row.for_each.empty()) return AddOne(row, owner_);
  return ForEach(row.for_each, owner_, [&](const Scope& entry) { return AddOne(row, entry); });
}

absl::Status Maker::Enclose() {
  for (const Enclosing& enclosing : enclosing_) {
    for (const std::string& name : enclosing.names) {
      const auto found = by_name_.find(name);
      if (found == by_name_.end() || name == enclosing.name) {
        return Wrong(enclosing.field, absl::StrCat(Shown(name), " is no other sub-group"));
      }
      model::SubGroup& child = made_.list[found->second];
      if (!child.parent.empty()) {
        return Wrong(enclosing.field, absl::StrCat(Shown(name), " is in two sub-groups"));
      }
      child.parent = enclosing.name;
    }
  }
  for (const Enclosing& enclosing : enclosing_) {
    size_t levels = 0;
    for (std::string name = enclosing.name; !name.empty();
         name = made_.list[by_name_.find(name)->second].parent) {
      if (++levels <= enclosing_.size()) continue;
      return Wrong(enclosing.field, absl::StrCat(Shown(enclosing.name), " encloses itself"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<model::TopologyConstraint>> ReadTopologyOf(const TopologyRow& row,
                                                                        const Scope& scope) {
  model::TopologyConstraint out;
  FAIRLEAD_ASSIGN_OR_RETURN(out.required_level, row.required.Get(scope));
  FAIRLEAD_ASSIGN_OR_RETURN(out.preferred_level, row.preferred.Get(scope));
  // A topology without a level constrains nothing.
  if (out.required_level.empty() && out.preferred_level.empty()) return std::nullopt;
  FAIRLEAD_ASSIGN_OR_RETURN(out.topology, row.topology.Get(scope));
  if (out.topology.empty()) {
    return Wrong(
        row.topology.list.front().Field(scope),
        absl::StrCat("is missing: level ",
                     Shown(out.required_level.empty() ? out.preferred_level : out.required_level),
                     " is of no topology"));
  }
  return out;
}

absl::StatusOr<SubGroups> MakeSubGroups(const std::vector<SubGroupRow>& rows, const Scope& scope) {
  Maker maker(scope);
  for (const SubGroupRow& row : rows) FAIRLEAD_RETURN_IF_ERROR(maker.AddRow(row));
  FAIRLEAD_RETURN_IF_ERROR(maker.Enclose());
  return std::move(maker).Take();
}

}  // namespace fairlead::grouping
