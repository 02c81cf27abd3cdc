#include "cmd/fairlead/app/owner_reader.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grouping/table.h"

namespace fairlead::cmd {
namespace {

std::string Title(const model::ReadObject& object) {
  return absl::StrCat(object.api_version, " ", object.kind, " ",
                      model::Key(object.ns, object.name));
}

absl::Status About(const model::ReadObject& object, const absl::Status& status) {
  return {status.code(), absl::StrCat(Title(object), ": ", status.message())};
}

absl::Status Unserved(const model::ReadObject& object, const absl::Status& status) {
  return absl::NotFoundError(absl::StrCat(Title(object), ": ", status.message(),
                                          "\ninstall the definition of that kind, or correct the "
                                          "owner reference of the pod"));
}

Json Without(absl::string_view field, const Json& object) {
  Json out = Json::Object();
  for (const Json::Field& each : object.fields()) {
    if (each.first != field) out.Append(each.first, each.second);
  }
  return out;
}

Json Trimmed(const Json& object) {
  Json out = Without("status", object);
  if (Json* metadata = out.Find("metadata"); metadata != nullptr && metadata->is_object()) {
    *metadata = Without("managedFields", *metadata);
  }
  return out;
}

}  // namespace

void OwnerReader::Read(const model::ReadObject& object, Done done) {
  kinds_->Find(object.api_version, object.kind,
               [this, object, done = std::move(done)](const absl::StatusOr<ServedKind>& kind) {
                 if (kind.ok()) return Get(object, *kind, done);
                 done(absl::IsNotFound(kind.status()) ? Unserved(object, kind.status())
                                                      : About(object, kind.status()));
               });
}

void OwnerReader::Get(const model::ReadObject& object, const ServedKind& kind, Done done) {
  api_->Get(kind.Path(object.ns, object.name), [object, plural = kind.plural,
                                                done = std::move(done)](
                                                   const absl::StatusOr<Json>& read) {
    if (read.ok()) return done(Trimmed(*read));
    if (absl::IsNotFound(read.status())) {
      return done(absl::NotFoundError(absl::StrCat(Title(object), " is gone")));
    }
    if (!absl::IsPermissionDenied(read.status())) return done(About(object, read.status()));
    const std::string group(grouping::GroupOfVersion(object.api_version));
    done(absl::PermissionDeniedError(absl::StrCat(
        Title(object), ": may not be read\nadd this rule to a ClusterRole of Fairlead's service ",
        "account: {apiGroups: [\"", group, "\"], resources: [", plural, "], verbs: [get]}")));
  });
}

}  // namespace fairlead::cmd
