#include "cmd/fairlead/app/owner_reader.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/groups/object_path.h"
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

absl::Status Unserved(const model::ReadObject& object, absl::string_view what) {
  return absl::NotFoundError(absl::StrCat(Title(object), ": the API server does not serve ", what,
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

// Subresources ("jobs/status") are of the kinds that they return.
OwnerReader::Resources OwnerReader::ResourcesOf(const Json& list) {
  Resources found;
  const Json* resources = list.Find("resources");
  if (resources == nullptr) return found;
  for (const Json& resource : resources->items()) {
    const std::string name = resource.TextAt({"name"});
    if (name.empty() || name.find('/') != std::string::npos) continue;
    found.emplace(resource.TextAt({"kind"}),
                  Resource{name, resource.TextAt({"namespaced"}) == "true"});
  }
  return found;
}

void OwnerReader::Read(const model::ReadObject& object, Done done) {
  const auto known = known_.find(object.api_version);
  if (known != known_.end() && known->second.contains(object.kind)) {
    return Get(object, known->second.at(object.kind), std::move(done));
  }
  // A kind that is not known may have been installed since.
  api_->Get(hook::ApiRoot(object.api_version), [this, object, done = std::move(done)](
                                                   const absl::StatusOr<Json>& list) {
    if (absl::IsNotFound(list.status())) {
      return done(Unserved(object, object.api_version));
    }
    if (!list.ok()) return done(About(object, list.status()));
    Resources& resources = known_[object.api_version] = ResourcesOf(*list);
    const auto found = resources.find(object.kind);
    if (found == resources.end()) {
      return done(Unserved(object, absl::StrCat("kind ", object.kind, " of ", object.api_version)));
    }
    Get(object, found->second, done);
  });
}

void OwnerReader::Get(const model::ReadObject& object, const Resource& resource, Done done) {
  const std::string path =
      absl::StrCat(hook::CollectionPathOf(hook::ApiRoot(object.api_version),
                                          resource.is_namespaced ? object.ns : "", resource.plural),
                   "/", hook::EscapePathPart(object.name));
  api_->Get(path, [object, plural = resource.plural,
                   done = std::move(done)](const absl::StatusOr<Json>& read) {
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
