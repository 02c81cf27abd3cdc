#include "tests/behaviours/object_ref.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace fairlead::behaviours {
namespace {

constexpr char kDefaultNamespace[] = "default";

struct ApiKind {
  std::string name, api_version, resource;
  bool is_namespaced = false;
};

std::optional<ApiKind> FindKind(absl::string_view name) {
  if (name == "RuntimeClass") return ApiKind{"RuntimeClass", "node.k8s.io/v1", "runtimeclasses"};
  for (const model::KindTraits& traits : model::kKindTraits) {
    if (name == traits.name) {
      return ApiKind{traits.name, traits.api_version, traits.resource, traits.is_namespaced};
    }
  }
  return std::nullopt;
}

absl::Status UnknownKind(absl::string_view kind) {
  return absl::InvalidArgumentError(absl::StrCat("unknown kind \"", kind, "\""));
}

}  // namespace

std::string ObjectRef::Text() const { return absl::StrCat(kind, "/", Key()); }

std::string ObjectRef::Key() const { return ns.empty() ? name : absl::StrCat(ns, "/", name); }

std::optional<model::Kind> ObjectRef::ModelKind() const {
  for (const model::KindTraits& traits : model::kKindTraits) {
    if (kind == traits.name) return traits.kind;
  }
  return std::nullopt;
}

std::string ObjectRef::CollectionPath() const {
  const std::optional<ApiKind> known = FindKind(kind);
  if (!known.has_value()) return "";
  const bool core = !absl::StrContains(known->api_version, '/');
  return absl::StrCat(core ? "/api/" : "/apis/", known->api_version,
                      ns.empty() ? "" : absl::StrCat("/namespaces/", ns), "/", known->resource);
}

std::string ObjectRef::Path() const { return absl::StrCat(CollectionPath(), "/", name); }

absl::StatusOr<ObjectRef> ParseObjectRef(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  const std::optional<ApiKind> known = FindKind(parts[0]);
  if (!known.has_value()) return UnknownKind(parts[0]);
  const bool has_namespace = parts.size() == 3;
  const bool is_empty =
      std::any_of(parts.begin(), parts.end(), [](const std::string& part) { return part.empty(); });
  if (parts.size() < 2 || parts.size() > 3 || is_empty ||
      (has_namespace && !known->is_namespaced)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text, "\" is not ", parts[0], "/name",
        known->is_namespaced ? absl::StrCat(" or ", parts[0], "/namespace/name") : ""));
  }
  return ObjectRef{parts[0],
                   has_namespace          ? parts[1]
                   : known->is_namespaced ? kDefaultNamespace
                                          : "",
                   parts.back()};
}

absl::StatusOr<ObjectRef> RefOf(const Json& manifest) {
  const std::string kind = manifest.TextAt({"kind"});
  const std::string name = manifest.TextAt({"metadata", "name"});
  const std::string ns = manifest.TextAt({"metadata", "namespace"});
  const std::optional<ApiKind> known = FindKind(kind);
  if (!known.has_value()) return UnknownKind(kind);
  if (manifest.TextAt({"apiVersion"}) != known->api_version) {
    return absl::InvalidArgumentError(
        absl::StrCat("apiVersion of a ", kind, " must be ", known->api_version));
  }
  if (name.empty()) return absl::InvalidArgumentError("metadata.name is missing");
  return ParseObjectRef(ns.empty() ? absl::StrCat(kind, "/", name)
                                   : absl::StrCat(kind, "/", ns, "/", name));
}

std::string PodKey(absl::string_view text) {
  return absl::StrContains(text, '/') ? std::string(text)
                                      : absl::StrCat(kDefaultNamespace, "/", text);
}

Json MergePatch(const Json& target, const Json& patch) {
  if (!patch.is_object()) return patch;
  Json merged = Json::Object();
  for (const auto& [key, value] : target.fields()) {
    const Json* const change = patch.Find(key);
    if (change == nullptr) {
      merged.Append(key, value);
    } else if (!change->is_null()) {
      merged.Append(key, MergePatch(value, *change));
    }
  }
  for (const auto& [key, value] : patch.fields()) {
    if (target.Find(key) == nullptr && !value.is_null()) {
      merged.Append(key, MergePatch(Json(), value));
    }
  }
  return merged;
}

}  // namespace fairlead::behaviours
