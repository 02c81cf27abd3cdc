// Parts shared by several encoders of codec.h. Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "base/json_writer.h"
#include "kube/codec/codec.h"

namespace fairlead::kube {

// The limit of a message, in bytes: that of an Event's note, used for conditions too.
inline constexpr size_t kMaxMessageBytes = 1024;

// Percent-encodes all but unreserved characters (RFC 3986, 2.3), so that a name cannot escape its
// path segment.
std::string EscapeSegment(absl::string_view text);

// "/api/v1/namespaces/{ns}/pods/{name}", with "/{subresource}" if there is one.
std::string PodPath(absl::string_view ns, absl::string_view name,
                    absl::string_view subresource = {});
// CollectionPath of a cluster-scoped kind, and an object of it.
std::string ObjectPath(model::Kind kind, absl::string_view name,
                       absl::string_view subresource = {});
// Path of an object of a namespaced kind.
std::string NamespacedPath(model::Kind kind, absl::string_view ns, absl::string_view name,
                           absl::string_view subresource = {});
// Of an object of any kind; `ns` is not read if the kind is cluster-scoped.
std::string PathOf(model::Kind kind, absl::string_view ns, absl::string_view name,
                   absl::string_view subresource = {});
// "scheduling.run.ai/v2", "v1".
absl::string_view ApiVersion(model::Kind kind);

// "metadata":{"uid":...}; the server refuses the write if the object's uid differs. An empty uid
// writes nothing: no precondition.
void WriteUid(JsonWriter& json, absl::string_view uid);
// "key":{...}, nothing if empty.
void WriteMap(JsonWriter& json, absl::string_view key, const model::StringMap& map);
// "key":[...], also if empty.
void WriteStrings(JsonWriter& json, absl::string_view key, const std::vector<std::string>& values);
void WriteTaints(JsonWriter& json, absl::string_view key, const std::vector<model::Taint>& taints);

EncodedWrite EncodeDelete(std::string path, absl::string_view uid);

}  // namespace fairlead::kube
