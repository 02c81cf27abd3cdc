#include "cmd/fairlead/app/kind_paths.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/groups/object_path.h"

namespace fairlead::cmd {
namespace {

absl::Status Unserved(absl::string_view what) {
  return absl::NotFoundError(absl::StrCat("the API server does not serve ", what));
}

// Subresources ("jobs/status") are of the kinds that they return.
std::map<std::string, ServedKind> KindsOf(const std::string& api_version, const Json& list) {
  std::map<std::string, ServedKind> found;
  const Json* resources = list.Find("resources");
  if (resources == nullptr) return found;
  for (const Json& resource : resources->items()) {
    std::string plural = resource.TextAt({"name"});
    if (plural.empty() || plural.find('/') != std::string::npos) continue;
    const std::string kind = resource.TextAt({"kind"});
    found.emplace(kind, ServedKind{api_version, kind, std::move(plural),
                                   resource.TextAt({"namespaced"}) == "true"});
  }
  return found;
}

}  // namespace

std::string ServedKind::Collection(absl::string_view ns) const {
  return hook::CollectionPathOf(hook::ApiRoot(api_version), is_namespaced ? ns : "", plural);
}

std::string ServedKind::Path(absl::string_view ns, absl::string_view name) const {
  return absl::StrCat(Collection(ns), "/", hook::EscapePathPart(name));
}

void KindPaths::Find(const std::string& api_version, const std::string& kind, const Done& done) {
  const auto known = known_.find(api_version);
  if (known != known_.end() && known->second.contains(kind)) return done(known->second.at(kind));
  api_->Get(hook::ApiRoot(api_version),
            [this, api_version, kind, done](const absl::StatusOr<Json>& list) {
              if (absl::IsNotFound(list.status())) return done(Unserved(api_version));
              if (!list.ok()) return done(list.status());
              auto& kinds = known_[api_version] = KindsOf(api_version, *list);
              const auto found = kinds.find(kind);
              if (found != kinds.end()) return done(found->second);
              done(Unserved(absl::StrCat("kind ", kind, " of ", api_version)));
            });
}

void KindPaths::FindPreferred(const std::string& group, const std::string& kind, const Done& done) {
  if (group.empty()) return Find("v1", kind, done);
  api_->Get(absl::StrCat("/apis/", hook::EscapePathPart(group)),
            [this, group, kind, done](const absl::StatusOr<Json>& found) {
              if (absl::IsNotFound(found.status())) return done(Unserved(group));
              if (!found.ok()) return done(found.status());
              const std::string version = found->TextAt({"preferredVersion", "groupVersion"});
              if (version.empty()) return done(Unserved(absl::StrCat("a version of ", group)));
              Find(version, kind, done);
            });
}

}  // namespace fairlead::cmd
