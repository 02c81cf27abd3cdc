#include "sim/world/api_schema.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "sim/world/api_json.h"

namespace fairlead::sim::world {
namespace {

using Fields = std::vector<InvalidField>;

// One field of an object of a schema. `values`: the closed list, separated by '|'; "time" for RFC
// 3339, "int" for whole numbers; empty: any text.
struct FieldRule {
  const char* name;
  bool required = false;
  const char* values = "";
};

constexpr FieldRule kRequestSpec[] = {{"provider", true}, {"instanceType", true}};
constexpr FieldRule kRequestStatus[] = {
    {"phase", false, "Pending|Launched|Registered|Ready|Draining|Failed|Gone"},
    {"nodeName"},
    {"message"},
    {"failure", false, "|Stockout|Quota|Auth|Config|Timeout|Other|Unhelpful"},
    {"launchedAt", false, "time"},
    {"registeredAt", false, "time"},
    {"readyAt", false, "time"},
    {"unneededSince", false, "time"},
    {"failedAt", false, "time"}};
constexpr FieldRule kSchedulability[] = {
    {"v", true, "int"},
    {"code", true},
    {"category", true, "capacity|policy|impossible"},
    {"scope", false, "pod|gang|queue|cluster"},
    {"resolvableBy", false, "NodeScaleUp|QueueChange|Preemption|UserChange|Time"},
    {"hash", true},
    {"queue"},
    {"position", false, "int"},
    {"podsWaiting", false, "int"},
    {"podsRunning", false, "int"},
    {"minMember", false, "int"},
    {"observedGeneration", false, "int"},
    {"subject"},
    {"until", false, "time"},
    {"expectedAt", false, "time"}};
constexpr FieldRule kSchedulingCondition[] = {{"type", true},
                                              {"status"},
                                              {"nodePool"},
                                              {"reason"},
                                              {"message"},
                                              {"transitionID"},
                                              {"lastTransitionTime", false, "time"}};

void CheckValue(const FieldRule& rule, const std::string& path, const Json& value, Fields& out) {
  const absl::string_view values = rule.values;
  if (values == "int") {
    if (value.is_number_integer()) return;
    out.push_back({path, "FieldValueTypeInvalid",
                   absl::StrCat("Invalid value: ", Dump(value), ": must be of type integer")});
    return;
  }
  if (!value.is_string()) {
    out.push_back({path, "FieldValueTypeInvalid",
                   absl::StrCat("Invalid value: ", Dump(value), ": must be of type string")});
    return;
  }
  const std::string& text = value.get_ref<const std::string&>();
  if (values == "time") {
    absl::Time time;
    std::string error;
    if (absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return;
    out.push_back({path, "FieldValueInvalid",
                   absl::StrCat("Invalid value: ", Dump(value), ": must be of type date-time")});
    return;
  }
  if (values.empty()) return;
  const std::vector<std::string> allowed = absl::StrSplit(values, '|');
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return;
  out.push_back({path, "FieldValueNotSupported",
                 absl::StrCat("Unsupported value: ", Dump(value), ": supported values: \"",
                              absl::StrJoin(allowed, "\", \""), "\"")});
}

template <size_t N>
void CheckObject(const FieldRule (&rules)[N], const std::string& path, const Json& object,
                 Fields& out) {
  for (const FieldRule& rule : rules) {
    const Json* const value = At(object, {rule.name});
    const std::string field = absl::StrCat(path, ".", rule.name);
    const bool missing = value == nullptr || (rule.required && *value == "");
    if (!missing) {
      CheckValue(rule, field, *value, out);
    } else if (rule.required) {
      out.push_back({field, "FieldValueRequired", "Required value"});
    }
  }
}

constexpr const char* kCounts[] = {"allocated", "allocatedNonPreemptible", "requested"};

// x-kubernetes-int-or-string.
void CheckCounts(const std::string& path, const Json& of, Fields& out) {
  for (const char* name : kCounts) {
    const Json* const amounts = At(of, {name});
    if (amounts == nullptr) continue;
    const std::string field = absl::StrCat(path, ".", name);
    if (!amounts->is_object()) {
      out.push_back({field, "FieldValueTypeInvalid",
                     absl::StrCat("Invalid value: ", Dump(*amounts), ": must be of type object")});
      continue;
    }
    for (auto it = amounts->begin(); it != amounts->end(); ++it) {
      if (it->is_string() || it->is_number_integer()) continue;
      out.push_back(
          {absl::StrCat(field, ".", it.key()), "FieldValueTypeInvalid",
           absl::StrCat("Invalid value: ", Dump(*it), ": must be of type int-or-string")});
    }
  }
}

void CheckQueueStatus(const Json& status, Fields& out) {
  CheckCounts("status", status, out);
  const Json* const children = At(status, {"childQueues"});
  if (children == nullptr) return;
  const bool names =
      children->is_array() && std::all_of(children->begin(), children->end(),
                                          [](const Json& child) { return child.is_string(); });
  if (names) return;
  out.push_back({"status.childQueues", "FieldValueTypeInvalid",
                 absl::StrCat("Invalid value: ", Dump(*children), ": must be a list of strings")});
}

void KeepOnly(const std::vector<std::string>& known, Json& object) {
  if (!object.is_object()) return;
  for (auto it = object.begin(); it != object.end();) {
    const bool kept = std::find(known.begin(), known.end(), it.key()) != known.end();
    it = kept ? std::next(it) : object.erase(it);
  }
}

void CheckNodeRequest(const Json* old, const Json& request, Fields& out) {
  const Json nothing = Json::object();
  const Json* const spec = At(request, {"spec"});
  const Json* const before = old == nullptr ? nullptr : At(*old, {"spec"});
  const bool same = before != nullptr && spec != nullptr && *before == *spec;
  if (!same) CheckObject(kRequestSpec, "spec", spec == nullptr ? nothing : *spec, out);
  if (before != nullptr && spec != nullptr && !same) {
    out.push_back({"spec", "FieldValueInvalid",
                   "Invalid value: \"object\": the spec of a NodeRequest cannot be changed"});
  }
}

void CheckPodGroupStatus(const Json& status, Fields& out) {
  if (const Json* const verdict = At(status, {"schedulability"})) {
    CheckObject(kSchedulability, "status.schedulability", *verdict, out);
  }
  if (const Json* const counts = At(status, {"resourcesStatus"})) {
    CheckCounts("status.resourcesStatus", *counts, out);
  }
  const Json* const conditions = At(status, {"schedulingConditions"});
  if (conditions == nullptr || !conditions->is_array()) return;
  for (size_t i = 0; i < conditions->size(); ++i) {
    CheckObject(kSchedulingCondition, absl::StrCat("status.schedulingConditions[", i, "]"),
                (*conditions)[i], out);
  }
}

}  // namespace

void CheckSchema(const ResourceRow& row, const Json* old, const Json& object,
                 std::vector<InvalidField>& out) {
  if (row.type == ResourceType::kNodeRequests) CheckNodeRequest(old, object, out);
  const Json* const status = At(object, {"status"});
  const Json* const before = old == nullptr ? nullptr : At(*old, {"status"});
  if (status == nullptr || (before != nullptr && *before == *status)) return;
  if (row.type == ResourceType::kNodeRequests) {
    CheckObject(kRequestStatus, "status", *status, out);
  } else if (row.type == ResourceType::kPodGroups) {
    CheckPodGroupStatus(*status, out);
  } else if (row.type == ResourceType::kQueues) {
    CheckQueueStatus(*status, out);
  }
}

void PruneStatus(const ResourceRow& row, Json& object) {
  const auto status = object.find("status");
  if (status == object.end() || !status->is_object()) return;
  std::vector<std::string> known(std::begin(kCounts), std::end(kCounts));
  if (row.type == ResourceType::kQueues) {
    known.insert(known.end(), {"childQueues", "conditions"});
    KeepOnly(known, *status);
  } else if (row.type == ResourceType::kPodGroups && status->contains("resourcesStatus")) {
    KeepOnly(known, (*status)["resourcesStatus"]);
  }
}

}  // namespace fairlead::sim::world
