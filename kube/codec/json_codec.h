// The JSON side of codec.h. Custom kinds come only as JSON; core kinds too, from manifests and from
// servers that answer in JSON.
//
// Readers of kinds fill `out` and add problems of content to reader.problems(); for kinds with an
// `invalid` field they also put the text there. Malformed JSON: reader.ok() is false and `out` is
// unspecified.
//
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/codec/codec.h"
#include "kube/codec/json_reader.h"

namespace fairlead::kube::json {

// ---- meta.v1 and friends (json_meta.cc)
// -------------------------------------------------------------
// `finalizers`, if not null, gets metadata.finalizers.
void ReadMeta(JsonReader& reader, JsonValue value, const FieldPath& path, model::ObjectMeta& out,
              std::vector<std::string>* finalizers = nullptr);
// Calls `annotation` for each annotation that `out` does not get (model::IsRelevantAnnotation).
using AnnotationReader =
    absl::FunctionRef<void(absl::string_view key, JsonValue value, const FieldPath& path)>;
void ReadMeta(JsonReader& reader, JsonValue value, const FieldPath& path, model::ObjectMeta& out,
              AnnotationReader annotation);
void ReadLabelSelector(JsonReader& reader, JsonValue value, const FieldPath& path,
                       model::LabelSelector& out);
// In, NotIn, ... for labels or node terms; appended.
void ReadRequirements(JsonReader& reader, JsonValue value, const FieldPath& path, bool of_nodes,
                      std::vector<model::SelectorRequirement>& out);
// core.v1.NodeSelector; appended.
void ReadNodeSelector(JsonReader& reader, JsonValue value, const FieldPath& path,
                      std::vector<model::NodeSelectorTerm>& out);
void ReadTaints(JsonReader& reader, JsonValue value, const FieldPath& path,
                std::vector<model::Taint>& out);

// status.conditions; appended.
void ReadConditions(JsonReader& reader, JsonValue value, const FieldPath& path,
                    std::vector<model::Condition>& out);

// Fails if an object says that it is of another kind.
void CheckKind(JsonReader& reader, JsonValue value, model::Kind kind);
// The same for the group of its apiVersion, where two kinds have one name.
void CheckApiGroup(JsonReader& reader, JsonValue value, model::Kind kind);

// ---- kinds (pod_json.cc, node_json.cc, workload_json.cc, fairlead_json.cc, disruption_budget.cc,
// device_objects.cc, node_topology_json.cc, volume_json.cc, spread_sources.cc,
// native_pod_group.cc, capacity_json.cc): one Read for the type of every kind
void Read(JsonReader& reader, JsonValue value, model::Pod& out);
void Read(JsonReader& reader, JsonValue value, model::Node& out);
void Read(JsonReader& reader, JsonValue value, model::PriorityClass& out);
void Read(JsonReader& reader, JsonValue value, model::Queue& out);
void Read(JsonReader& reader, JsonValue value, model::PodGroup& out);
void Read(JsonReader& reader, JsonValue value, model::Topology& out);
void Read(JsonReader& reader, JsonValue value, model::NodeRequest& out);
void Read(JsonReader& reader, JsonValue value, model::NodePool& out);
void Read(JsonReader& reader, JsonValue value, model::PodDisruptionBudget& out);
void Read(JsonReader& reader, JsonValue value, model::DeviceClass& out);
void Read(JsonReader& reader, JsonValue value, model::ResourceSlice& out);
void Read(JsonReader& reader, JsonValue value, model::ResourceClaim& out);
void Read(JsonReader& reader, JsonValue value, model::NodeResourceTopology& out);
void Read(JsonReader& reader, JsonValue value, model::Namespace& out);
void Read(JsonReader& reader, JsonValue value, model::PersistentVolumeClaim& out);
void Read(JsonReader& reader, JsonValue value, model::PersistentVolume& out);
void Read(JsonReader& reader, JsonValue value, model::StorageClass& out);
void Read(JsonReader& reader, JsonValue value, model::CsiNode& out);
void Read(JsonReader& reader, JsonValue value, model::CsiDriver& out);
void Read(JsonReader& reader, JsonValue value, model::CsiStorageCapacity& out);
void Read(JsonReader& reader, JsonValue value, model::VolumeAttachment& out);
void Read(JsonReader& reader, JsonValue value, model::Service& out);
void Read(JsonReader& reader, JsonValue value, model::ReplicationController& out);
void Read(JsonReader& reader, JsonValue value, model::ReplicaSet& out);
void Read(JsonReader& reader, JsonValue value, model::StatefulSet& out);
void Read(JsonReader& reader, JsonValue value, model::NativePodGroup& out);
void Read(JsonReader& reader, JsonValue value, model::PodTemplate& out);
void Read(JsonReader& reader, JsonValue value, model::CapacityBuffer& out);
void Read(JsonReader& reader, JsonValue value, model::ProvisioningRequest& out);
void Read(JsonReader& reader, JsonValue value, model::DeviceTaintRule& out);
void ReadObject(JsonReader& reader, model::Kind kind, JsonValue value, Object& out);

// ---- messages (json_codec.cc)
// ------------------------------------------------------------------------
absl::StatusOr<ListPage> DecodeList(model::Kind kind, absl::string_view body);
// `problems`, if not null, also gets the content problems of kinds that have no `invalid` field.
absl::StatusOr<Object> DecodeObject(model::Kind kind, absl::string_view body,
                                    std::string* problems = nullptr);
// The same with all problems of the content, those of an `invalid` field too.
absl::StatusOr<Object> DecodeObject(model::Kind kind, absl::string_view body, Problems& problems);
// False if the body is no Status.
bool DecodeStatus(absl::string_view body, ApiStatus& out);
// One line of a watch stream.
absl::Status DecodeWatchEvent(model::Kind kind, absl::string_view line, WatchEvent& out);

}  // namespace fairlead::kube::json
