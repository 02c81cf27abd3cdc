// The resources that a node was announced with when its request was made. They are kept with the
// request, in an annotation, because another catalogue may announce something else by the time that
// the node comes: "cpu=8000,memory=34359738368,nvidia.com/gpu=1000", in base units, by name. And
// why the node has another GPU model than the first that its pods name.
//
// Thread-safety: pure functions. Complexity: O(resources).
#pragma once

#include <optional>

#include "scheduler/model/workload_objects.h"

namespace fairlead::hook {

// Annotation of NodeRequests, by Fairlead: the resources that the node was announced with.
inline constexpr char kAnnouncedAnnotation[] = "fairlead.dev/announced";
// Annotation of NodeRequests, by Fairlead: why the node has another GPU model than the first one
// that its pods name.
inline constexpr char kAlternativeAnnotation[] = "fairlead.dev/gpu-alternative";

void SetAnnounced(const model::ResourceList& allocatable, model::NodeRequest& request);
// None if the request does not tell (an older one, or an adopted node), or not in this form.
std::optional<model::ResourceList> Announced(const model::NodeRequest& request);

}  // namespace fairlead::hook
