#include "sim/world/json_patch.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "document/json_pointer.h"
#include "sim/world/api_json.h"

namespace fairlead::sim::world {
namespace {

// ---- JSON patch ---------------------------------------------------------------------------------

// Where an operation acts: a container and the last step of the pointer.
struct Place {
  Json* parent = nullptr;
  std::string last;
};

bool IndexOf(const Json& array, const std::string& step, size_t& out) {
  uint64_t index = 0;
  if (!absl::SimpleAtoi(step, &index)) return false;
  out = index;
  return index < array.size();
}

Json* Child(Json& parent, const std::string& step) {
  if (parent.is_object()) {
    const auto found = parent.find(step);
    return found == parent.end() ? nullptr : &*found;
  }
  size_t index = 0;
  return parent.is_array() && IndexOf(parent, step, index) ? &parent[index] : nullptr;
}

bool Locate(Json& root, const std::string& pointer, Place& out) {
  if (pointer.empty() || pointer[0] != '/') return false;
  std::vector<std::string> steps = absl::StrSplit(pointer.substr(1), '/');
  for (std::string& step : steps) step = UnescapePointerStep(step);
  Json* at = &root;
  for (size_t i = 0; i + 1 < steps.size(); ++i) {
    at = Child(*at, steps[i]);
    if (at == nullptr) return false;
  }
  if (!at->is_structured()) return false;
  out.parent = at;
  out.last = steps.back();
  return true;
}

Json* Value(const Place& place) { return Child(*place.parent, place.last); }

bool Insert(const Place& place, const Json& value) {
  if (place.parent->is_object()) {
    (*place.parent)[place.last] = value;
    return true;
  }
  if (place.last == "-") {
    place.parent->push_back(value);
    return true;
  }
  uint64_t index = 0;
  if (!absl::SimpleAtoi(place.last, &index) || index > place.parent->size()) return false;
  place.parent->insert(place.parent->begin() + static_cast<std::ptrdiff_t>(index), value);
  return true;
}

bool Remove(const Place& place) {
  if (place.parent->is_object()) return place.parent->erase(place.last) > 0;
  size_t index = 0;
  if (!IndexOf(*place.parent, place.last, index)) return false;
  place.parent->erase(index);
  return true;
}

std::string Missing(const std::string& operation, const std::string& path) {
  return absl::StrCat(operation, " operation does not apply: doc is missing path: ", path,
                      ": missing value");
}

std::string ApplyTest(Json& target, const std::string& path, const Json& wanted) {
  Place place;
  const Json* const found = Locate(target, path, place) ? Value(place) : nullptr;
  const bool same = found == nullptr ? wanted.is_null() : *found == wanted;
  return same ? "" : absl::StrCat("testing value ", path, " failed: test failed");
}

std::string ApplyOperation(const Json& operation, Json& target) {
  const std::string op = TextAt(operation, {"op"});
  const std::string path = TextAt(operation, {"path"});
  const Json* const value = At(operation, {"value"});
  Place place;
  if (op == "test") return ApplyTest(target, path, value == nullptr ? Json() : *value);
  if (op == "copy" || op == "move") {
    const std::string from = TextAt(operation, {"from"});
    Place source;
    if (!Locate(target, from, source) || Value(source) == nullptr) return Missing(op, from);
    const Json moved = *Value(source);
    if (op == "move") Remove(source);
    return Locate(target, path, place) && Insert(place, moved) ? "" : Missing(op, path);
  }
  if (op != "add" && op != "remove" && op != "replace") {
    return absl::StrCat("Unexpected kind: ", op);
  }
  if (!Locate(target, path, place)) return Missing(op, path);
  if (op == "remove") return Remove(place) ? "" : Missing(op, path);
  const Json given = value == nullptr ? Json() : *value;
  if (op == "add") return Insert(place, given) ? "" : Missing(op, path);
  Json* const found = Value(place);
  if (found == nullptr) return Missing(op, path);
  *found = given;
  return "";
}

// ---- strategic merge patch ----------------------------------------------------------------------

constexpr char kDirective[] = "$patch";

std::string MergeObject(const ResourceRow& row, const Json& patch, Json& target);

// A value without the nulls and directives that only a patch means something by.
Json Plain(const Json& value) {
  if (value.is_array()) {
    Json out = Json::array();
    for (const Json& item : value) out.push_back(Plain(item));
    return out;
  }
  if (!value.is_object()) return value;
  Json out = Json::object();
  for (auto it = value.begin(); it != value.end(); ++it) {
    if (!it->is_null() && it.key()[0] != '$') out[it.key()] = Plain(*it);
  }
  return out;
}

std::string MergeList(const ResourceRow& row, const std::string& key, const Json& patch,
                      Json& target) {
  if (!target.is_array()) target = Json::array();
  for (const Json& item : patch) {
    const Json* const id = At(item, {key.c_str()});
    if (id == nullptr) {
      return absl::StrCat("map: ", Dump(item), " does not contain declared merge key: ", key);
    }
    const auto found = std::find_if(target.begin(), target.end(), [&](const Json& existing) {
      const Json* const other = At(existing, {key.c_str()});
      return other != nullptr && *other == *id;
    });
    if (TextAt(item, {kDirective}) == "delete") {
      if (found != target.end()) target.erase(found);
    } else if (found == target.end()) {
      target.push_back(Plain(item));
    } else if (const std::string error = MergeObject(row, item, *found); !error.empty()) {
      return error;
    }
  }
  return "";
}

void MergeSet(const Json& patch, Json& target) {
  if (!target.is_array()) target = Json::array();
  for (const Json& item : patch) {
    if (std::find(target.begin(), target.end(), item) == target.end()) target.push_back(item);
  }
}

std::string MergeField(const ResourceRow& row, const std::string& field, const Json& patch,
                       Json& target) {
  if (patch.is_object()) return MergeObject(row, patch, target);
  const std::string key = patch.is_array() ? MergeKeyOf(row, field) : std::string();
  if (key.empty()) {
    target = Plain(patch);
  } else if (key == "=") {
    MergeSet(patch, target);
  } else {
    return MergeList(row, key, patch, target);
  }
  return "";
}

std::string MergeObject(const ResourceRow& row, const Json& patch, Json& target) {
  if (!target.is_object()) target = Json::object();
  const std::string directive = TextAt(patch, {kDirective});
  if (directive == "replace") {
    target = Plain(patch);
    return "";
  }
  for (auto it = patch.begin(); it != patch.end(); ++it) {
    if (it.key()[0] == '$') continue;
    if (it->is_null() || (it->is_object() && TextAt(*it, {kDirective}) == "delete")) {
      target.erase(it.key());
    } else if (const std::string error = MergeField(row, it.key(), *it, target[it.key()]);
               !error.empty()) {
      return error;
    }
  }
  return "";
}

}  // namespace

std::string ApplyJsonPatch(const Json& operations, Json& target) {
  if (!operations.is_array()) return "json: cannot unmarshal object into a patch";
  for (const Json& operation : operations) {
    std::string error = ApplyOperation(operation, target);
    if (!error.empty()) return error;
  }
  return "";
}

void ApplyMergePatch(const Json& patch, Json& target) { target.merge_patch(patch); }

std::string MergeKeyOf(const ResourceRow& row, const std::string& field) {
  if (field == "conditions" || field == "addresses") return "type";
  if (field == "ownerReferences") return "uid";
  if (field == "finalizers") return "=";
  if (field == "reservedFor" && row.type == ResourceType::kResourceClaims) return "uid";
  if (row.type == ResourceType::kPods) {
    if (field == "containers" || field == "initContainers" || field == "volumes" ||
        field == "schedulingGates" || field == "resourceClaims" ||
        field == "resourceClaimStatuses" || field == "env") {
      return "name";
    }
    if (field == "topologySpreadConstraints") return "topologyKey";
  }
  return "";
}

std::string ApplyStrategicMergePatch(const ResourceRow& row, const Json& patch, Json& target) {
  if (!patch.is_object()) return "the patch must be an object";
  return MergeObject(row, patch, target);
}

}  // namespace fairlead::sim::world
