// The pieces of a PodSpec in wire format, shared by pod_wire.cc (the pod), container_wire.cc and
// affinity_wire.cc. Each reads one message and returns whether its bytes are well-formed.
// Thread-safety: pure functions.
#pragma once

#include "absl/strings/string_view.h"
#include "kube/codec/field_problems.h"
#include "kube/codec/pod_draft.h"

namespace fairlead::kube::wire {

// Appends to containers or init_containers, and to the ports and config map names.
[[nodiscard]] bool ReadContainer(absl::string_view bytes, bool init, const FieldPath& list,
                                 PodDraft& draft);
[[nodiscard]] bool ReadResourceRequirements(absl::string_view bytes, const FieldPath& path,
                                            Problems& problems, model::ResourceList& requests,
                                            model::ResourceList& limits);
// An element of containerStatuses or initContainerStatuses: its resources, if there are any.
[[nodiscard]] bool ReadContainerStatus(absl::string_view bytes, const FieldPath& path,
                                       PodDraft& draft);
// The `resources` of a container's status or the pod's if `in_force`, else one entry of its
// `allocatedResources`.
[[nodiscard]] bool ReadStatusResources(bool in_force, absl::string_view bytes,
                                       const FieldPath& path, Problems& problems,
                                       StatusResources& out);
// LocalObjectReference in field 1 and `optional` in field `optional_field`: the name, or "" if the
// reference is optional.
[[nodiscard]] bool ReadRequiredReference(absl::string_view bytes, uint32_t optional_field,
                                         absl::string_view& name);
[[nodiscard]] bool ReadVolume(absl::string_view bytes, PodDraft& draft);

[[nodiscard]] bool ReadAffinity(absl::string_view bytes, const FieldPath& path, PodDraft& draft);
[[nodiscard]] bool ReadTopologySpread(absl::string_view bytes, const FieldPath& list,
                                      PodDraft& draft);

}  // namespace fairlead::kube::wire
