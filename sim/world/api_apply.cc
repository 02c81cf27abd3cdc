#include "sim/world/api_apply.h"

#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/json_patch.h"

namespace fairlead::sim::world {
namespace {

// Takes away what `former` had and `wanted` has not. Lists go whole, but for those merged by key.
void TakeAway(const Json& former, const Json& wanted, Json& live) {
  for (auto it = former.begin(); it != former.end(); ++it) {
    const auto found = live.find(it.key());
    if (found == live.end()) continue;
    const auto kept = wanted.find(it.key());
    if (it->is_object() && found->is_object()) {
      const Json nothing = Json::object();
      TakeAway(*it, kept == wanted.end() ? nothing : *kept, *found);
      if (found->empty()) live.erase(found);
    } else if (kept == wanted.end()) {
      live.erase(found);
    }
  }
}

// The fields that an apply may own: what identifies the object is not among them.
Json OwnableFields(const Json& wanted) {
  Json fields = wanted;
  for (const char* field : {"name", "namespace", "uid", "resourceVersion"}) {
    Erase(fields, {"metadata"}, field);
  }
  fields.erase("apiVersion");
  fields.erase("kind");
  return fields;
}

}  // namespace

ApiResult Applier::Apply(const ResourceRow& row, const std::string& ns, const std::string& name,
                         const Json& wanted, const std::string& manager, absl::string_view actor) {
  ApiResult result;
  if (TextAt(wanted, {"kind"}) != row.kind || TextAt(wanted, {"apiVersion"}) != row.group_version) {
    result.error = BadRequestError("invalid object type: apiVersion and kind must match the URL");
    return result;
  }
  const Json fields = OwnableFields(wanted);
  const ObjectPtr live = writer_->store().Find(row.type, ObjectKey(row, ns, name));
  if (live == nullptr) {
    Json object = wanted;
    MakeObject(object, {"metadata"})["name"] = name;
    if (row.namespaced) object["metadata"]["namespace"] = ns;
    result = writer_->Create(row, std::move(object), WriteScope::kObject, actor);
  } else {
    const auto key = std::make_pair(TextAt(live->json(), {"metadata", "uid"}), manager);
    const auto former = applied_.find(key);
    result = writer_->Update(
        row, ns, name, WriteScope::kObject,
        [&](Json& object) -> ApiError {
          if (former != applied_.end()) TakeAway(former->second, fields, object);
          const std::string error = ApplyStrategicMergePatch(row, fields, object);
          const std::string uid = TextAt(wanted, {"metadata", "uid"});
          if (!uid.empty()) object["metadata"]["uid"] = uid;
          return error.empty() ? ApiError() : BadRequestError(error);
        },
        actor);
  }
  if (result.error.ok() && result.object != nullptr) {
    applied_[{TextAt(result.object->json(), {"metadata", "uid"}), manager}] = fields;
  }
  return result;
}

}  // namespace fairlead::sim::world
