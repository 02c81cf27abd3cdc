// Objects of a behaviour file by kind and name, and the changes that a step makes to them.
//
// A reference is written Kind/name or Kind/namespace/name; a kind with namespaces has the namespace
// "default" unless it is written. Known kinds: those that Fairlead reads, and RuntimeClass, which
// only the API server's admission reads.
// Thread-safety: plain values, pure functions. Errors: InvalidArgument that quotes the reference.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "document/json.h"
#include "scheduler/model/kind.h"

namespace fairlead::behaviours {

struct ObjectRef {
  std::string kind, ns, name;  // ns is empty for a kind without namespaces
  // "Pod/default/web", "Node/a".
  [[nodiscard]] std::string Text() const;
  // "default/web", "a".
  [[nodiscard]] std::string Key() const;
  // The kind among those that Fairlead reads.
  [[nodiscard]] std::optional<model::Kind> ModelKind() const;
  // Of the object's collection and of the object, on an API server.
  [[nodiscard]] std::string CollectionPath() const;
  [[nodiscard]] std::string Path() const;
  friend bool operator==(const ObjectRef&, const ObjectRef&) = default;
  friend auto operator<=>(const ObjectRef&, const ObjectRef&) = default;
};

absl::StatusOr<ObjectRef> ParseObjectRef(absl::string_view text);
// The reference of a manifest; its apiVersion must be the one that Fairlead reads.
absl::StatusOr<ObjectRef> RefOf(const Json& manifest);
// "namespace/name" of a pod that is written "name" or "namespace/name".
std::string PodKey(absl::string_view text);

// RFC 7386: null removes a field, a mapping is merged, everything else replaces.
Json MergePatch(const Json& target, const Json& patch);

}  // namespace fairlead::behaviours
