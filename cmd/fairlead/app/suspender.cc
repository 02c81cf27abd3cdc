#include "cmd/fairlead/app/suspender.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "grouping/table.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/object_meta.h"

namespace fairlead::cmd {
namespace {

std::string BodyOf(const model::Suspendable& object, bool suspended) {
  Json labels = Json::Object(), annotations = Json::Object();
  const auto text = [&](const std::string& value) {
    return suspended ? Json::String(value) : Json();
  };
  labels.Set(model::kSuspendedLabel, text("true"));
  annotations.Set(model::kSuspendedByAnnotation, text(object.by));
  annotations.Set(model::kSuspendedForAnnotation, text(object.reason));
  Json metadata = Json::Object();
  metadata.Set("uid", object.uid).Set("resourceVersion", object.resource_version);
  metadata.Set("labels", std::move(labels)).Set("annotations", std::move(annotations));
  const std::vector<std::string> path = absl::StrSplit(object.path, '.');
  Json value = Json::Bool(suspended);
  for (size_t i = path.size(); i-- > 1;) {
    Json outer = Json::Object();
    outer.Set(path[i], std::move(value));
    value = std::move(outer);
  }
  Json body = Json::Object();
  body.Set("metadata", std::move(metadata));
  body.Set(path.front(), std::move(value));
  return body.Compact();
}

absl::Status About(absl::string_view object, const absl::Status& status, absl::string_view group,
                   absl::string_view plural) {
  if (status.ok()) return status;
  const std::string help =
      absl::IsPermissionDenied(status)
          ? absl::StrCat("\nadd this rule to a ClusterRole of Fairlead's service account: ",
                         "{apiGroups: [\"", group, "\"], resources: [", plural,
                         "], verbs: [get, list, patch]}")
          : "";
  return {status.code(), absl::StrCat(object, ": ", status.message(), help)};
}

Json Outline(const Json& object, const std::string& kind) {
  Json metadata = Json::Object();
  if (const Json* all = object.Find("metadata"); all != nullptr) {
    for (const char* field : {"namespace", "name", "uid", "labels", "annotations"}) {
      if (const Json* value = all->Find(field); value != nullptr) metadata.Set(field, *value);
    }
  }
  Json out = Json::Object();
  out.Set("apiVersion", object.TextAt({"apiVersion"})).Set("kind", kind);
  out.Set("metadata", std::move(metadata));
  return out;
}

}  // namespace

void Suspender::Set(const model::SetSuspended& set, Done done) {
  const model::Suspendable& object = set.object;
  const std::string title = absl::StrCat(set.suspended ? "suspend " : "release ", object.kind, " ",
                                         model::Key(object.ns, object.name));
  const std::string group(grouping::GroupOfVersion(object.api_version));
  kinds_->Find(
      object.api_version, object.kind,
      [this, set, title, group, done = std::move(done)](const absl::StatusOr<ServedKind>& kind) {
        const model::Suspendable& wanted = set.object;
        if (!kind.ok()) return done(About(title, kind.status(), group, wanted.kind));
        api_->Patch(
            kind->Path(wanted.ns, wanted.name), BodyOf(wanted, set.suspended),
            [title, group, plural = kind->plural, done](const absl::StatusOr<Json>& patched) {
              done(About(title, patched.status(), group, plural));
            });
      });
}

void Suspender::List(const model::ListSuspended& list, ListDone done) {
  const std::string title = absl::StrCat("suspended objects of kind ", list.kind);
  kinds_->FindPreferred(
      list.group, list.kind,
      [this, list, title, done = std::move(done)](const absl::StatusOr<ServedKind>& kind) {
        if (absl::IsNotFound(kind.status())) return done(Json::Array());
        if (!kind.ok()) return done(About(title, kind.status(), list.group, list.kind));
        api_->List(kind->Collection(""), absl::StrCat(model::kSuspendedLabel, "=true"),
                   [list, title, plural = kind->plural, done](const absl::StatusOr<Json>& objects) {
                     if (!objects.ok()) {
                       return done(About(title, objects.status(), list.group, plural));
                     }
                     Json out = Json::Array();
                     for (const Json& object : objects->items())
                       out.Add(Outline(object, list.kind));
                     done(std::move(out));
                   });
      });
}

}  // namespace fairlead::cmd
