// The protobuf side of codec.h: from the wire format of k8s.io/api straight into model values.
// Field numbers are those of upstream's generated.proto files (v0.36); unknown fields are skipped.
//
// Functions that return bool say whether the bytes are well-formed; problems of content go into the
// object's `invalid`.
//
// Thread-safety: pure functions. Complexity: one pass; skipped fields cost their tag and length.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "kube/codec/codec.h"
#include "kube/codec/field_problems.h"

namespace fairlead::kube::wire {

// ---- meta.v1 and friends (wire_meta.cc)
// ------------------------------------------------------------
// The keys of labels are those of `keys`, if it is there.
[[nodiscard]] bool ReadMeta(absl::string_view bytes, model::ObjectMeta& out,
                            model::TextPool* keys = nullptr);
// meta.v1.Time. An empty message is Go's zero time: not set.
[[nodiscard]] bool ReadTime(absl::string_view bytes, std::optional<absl::Time>& out);
// A map<string, string> entry, or string -> Quantity.
struct MapEntry {
  absl::string_view key, value;
};
[[nodiscard]] bool ReadMapEntry(absl::string_view bytes, MapEntry& out);
[[nodiscard]] bool ReadQuantityEntry(absl::string_view bytes, const FieldPath& path,
                                     Problems& problems, model::ResourceList& out);
[[nodiscard]] bool ReadLabelSelector(absl::string_view bytes, const FieldPath& path,
                                     Problems& problems, model::LabelSelector& out);

// ---- kinds (pod_wire.cc, node_wire.cc, disruption_budget.cc, spread_sources.cc): one Read for the
// type of every kind that has protobuf
[[nodiscard]] bool Read(absl::string_view bytes, model::Pod& out, model::TextPool* keys);
[[nodiscard]] bool Read(absl::string_view bytes, model::Node& out, model::TextPool* keys);
[[nodiscard]] bool Read(absl::string_view bytes, model::PriorityClass& out, model::TextPool* keys);
[[nodiscard]] bool Read(absl::string_view bytes, model::PodDisruptionBudget& out,
                        model::TextPool* keys);
[[nodiscard]] bool Read(absl::string_view bytes, model::Service& out, model::TextPool* keys);
[[nodiscard]] bool Read(absl::string_view bytes, model::ReplicationController& out,
                        model::TextPool* keys);
[[nodiscard]] bool Read(absl::string_view bytes, model::ReplicaSet& out, model::TextPool* keys);
[[nodiscard]] bool Read(absl::string_view bytes, model::StatefulSet& out, model::TextPool* keys);
// False also for a kind that the server does not offer as protobuf.
[[nodiscard]] bool ReadObject(model::Kind kind, absl::string_view bytes, Object& out,
                              model::TextPool* keys = nullptr);

// ---- messages (wire_codec.cc)
// ------------------------------------------------------------------------ True if the bytes begin
// like an enveloped object ("k8s\0").
bool HasMagic(absl::string_view body);
absl::StatusOr<ListPage> DecodeList(model::Kind kind, absl::string_view body);
absl::StatusOr<Object> DecodeObject(model::Kind kind, absl::string_view body);
// False if the body is no Status.
bool DecodeStatus(absl::string_view body, ApiStatus& out);
// One frame without its length.
absl::Status DecodeWatchEvent(model::Kind kind, absl::string_view frame, WatchEvent& out);

}  // namespace fairlead::kube::wire
