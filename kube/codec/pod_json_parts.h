// The pieces of a PodSpec in JSON, shared by pod_json.cc (the pod), container_json.cc and
// affinity_json.cc. Thread-safety: pure functions.
#pragma once

#include "kube/codec/json_reader.h"
#include "kube/codec/pod_draft.h"

namespace fairlead::kube::json {

void ReadContainers(JsonReader& reader, JsonValue value, const FieldPath& path, bool init,
                    PodDraft& draft);
void ReadResourceRequirements(JsonReader& reader, JsonValue value, const FieldPath& path,
                              model::ResourceList& requests, model::ResourceList& limits);
// Reads `resources` or `allocatedResources` of a container's status or the pod's; false for any
// other key.
bool ReadStatusResources(JsonReader& reader, absl::string_view key, JsonValue v,
                         const FieldPath& at, StatusResources& out);
void ReadContainerStatuses(JsonReader& reader, JsonValue value, const FieldPath& path,
                           PodDraft& draft);
void ReadVolumes(JsonReader& reader, JsonValue value, const FieldPath& path, PodDraft& draft);
void ReadAffinity(JsonReader& reader, JsonValue value, const FieldPath& path, PodDraft& draft);
void ReadTopologySpread(JsonReader& reader, JsonValue value, const FieldPath& path,
                        PodDraft& draft);

}  // namespace fairlead::kube::json
