#include "sim/world/api_writes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "sim/world/api_json.h"

namespace fairlead::sim::world {
namespace {

constexpr absl::Duration kEventLife = absl::Hours(1);  // --event-ttl

ApiResult Refused(ApiError error) {
  ApiResult result;
  result.error = std::move(error);
  return result;
}

ApiError CheckPreconditions(const ResourceRow& row, absl::string_view name, const Json& object,
                            const DeleteOptions& options) {
  const std::string uid = TextAt(object, {"metadata", "uid"});
  if (!options.uid.empty() && options.uid != uid) {
    return ConflictError(QualifiedResource(row), name,
                         absl::StrCat("the UID in the precondition (", options.uid,
                                      ") does not match the UID in record (", uid,
                                      "). The object might have been deleted and then recreated"));
  }
  const std::string version = TextAt(object, {"metadata", "resourceVersion"});
  if (!options.resource_version.empty() && options.resource_version != version) {
    return ConflictError(
        QualifiedResource(row), name,
        absl::StrCat("the ResourceVersion in the precondition (", options.resource_version,
                     ") does not match the ResourceVersion in record (", version,
                     "). The object might have been modified"));
  }
  return {};
}

// Pods alone are deleted gracefully, and only while a kubelet has them.
int64_t GraceOf(const ResourceRow& row, const Json& object, const DeleteOptions& options) {
  if (row.type != ResourceType::kPods) return 0;
  const std::string phase = TextAt(object, {"status", "phase"});
  if (TextAt(object, {"spec", "nodeName"}).empty() || phase == "Succeeded" || phase == "Failed") {
    return 0;
  }
  const int64_t grace =
      options.grace_seconds.value_or(IntAt(object, {"spec", "terminationGracePeriodSeconds"}, 30));
  return grace < 0 ? 1 : grace;
}

}  // namespace

DeleteOptions ReadDeleteOptions(const Json& body) {
  DeleteOptions options;
  options.uid = TextAt(body, {"preconditions", "uid"});
  options.resource_version = TextAt(body, {"preconditions", "resourceVersion"});
  const Json* const grace = At(body, {"gracePeriodSeconds"});
  if (grace != nullptr && grace->is_number_integer()) options.grace_seconds = grace->get<int64_t>();
  return options;
}

std::string ApiWriter::NextUid() {
  return absl::StrFormat("00000000-0000-4000-8000-%012x", ++last_uid_);
}

void ApiWriter::DropOldEvents() {
  while (!events_.empty() && events_.front().first + kEventLife <= now()) {
    store_->Drop(ResourceType::kEvents, events_.front().second);
    events_.pop_front();
  }
}

ApiResult ApiWriter::Create(const ResourceRow& row, Json object, WriteScope scope,
                            absl::string_view actor) {
  if (row.type == ResourceType::kEvents) DropOldEvents();
  const std::string uid = NextUid();
  ApiError error = PrepareForCreate(*store_, row, scope, now(), uid, object);
  if (!error.ok()) return Refused(std::move(error));
  const std::string key = ObjectKey(row, object);
  if (store_->Find(row.type, key) != nullptr) {
    return Refused(AlreadyExistsError(row, TextAt(object, {"metadata", "name"})));
  }
  if (row.type == ResourceType::kEvents) events_.emplace_back(now(), key);
  ApiResult result;
  result.object = store_->Put(row.type, std::move(object), actor);
  result.created = true;
  return result;
}

ApiResult ApiWriter::Update(const ResourceRow& row, absl::string_view ns, absl::string_view name,
                            WriteScope scope, const ChangeFunction& change,
                            absl::string_view actor) {
  const std::string key = ObjectKey(row, ns, name);
  const ObjectPtr old = store_->Find(row.type, key);
  if (old == nullptr) return Refused(NotFoundError(row, name));
  Json object = old->json();
  if (ApiError error = change(object); !error.ok()) return Refused(std::move(error));
  if (ApiError error = PrepareForUpdate(row, scope, old->json(), object); !error.ok()) {
    return Refused(std::move(error));
  }
  ApiResult result;
  if (object == old->json()) {
    result.object = old;
  } else if (IsFinished(object)) {
    result.object = old;
    result.removed = true;
    store_->Erase(row.type, key, actor);
  } else {
    result.object = store_->Put(row.type, std::move(object), actor);
  }
  return result;
}

ApiResult ApiWriter::Delete(const ResourceRow& row, absl::string_view ns, absl::string_view name,
                            const DeleteOptions& options, absl::string_view actor) {
  const std::string key = ObjectKey(row, ns, name);
  const ObjectPtr old = store_->Find(row.type, key);
  if (old == nullptr) return Refused(NotFoundError(row, name));
  if (ApiError error = CheckPreconditions(row, name, old->json(), options); !error.ok()) {
    return Refused(std::move(error));
  }
  ApiResult result;
  result.object = old;
  const int64_t grace = GraceOf(row, old->json(), options);
  const bool has_finalizers = HasItems(old->json(), {"metadata", "finalizers"});
  if (grace == 0 && !has_finalizers) {
    result.removed = true;
    store_->Erase(row.type, key, actor);
    return result;
  }
  const Json& former = old->json()["metadata"];
  const bool deleting = former.contains("deletionTimestamp");
  if (deleting && grace >= IntAt(former, {"deletionGracePeriodSeconds"})) return result;
  Json object = old->json();
  Json& meta = object["metadata"];
  meta["deletionTimestamp"] = TimeText(now() + absl::Seconds(grace));
  meta["deletionGracePeriodSeconds"] = grace;
  if (!deleting && meta.contains("generation")) {
    meta["generation"] = IntAt(former, {"generation"}) + 1;
  }
  result.object = store_->Put(row.type, std::move(object), actor);
  return result;
}

ApiResult ApiWriter::RemoveNow(const ResourceRow& row, absl::string_view ns, absl::string_view name,
                               absl::string_view actor) {
  const std::string key = ObjectKey(row, ns, name);
  ApiResult result;
  result.object = store_->Find(row.type, key);
  if (result.object == nullptr) return Refused(NotFoundError(row, name));
  result.removed = true;
  store_->Erase(row.type, key, actor);
  return result;
}

}  // namespace fairlead::sim::world
