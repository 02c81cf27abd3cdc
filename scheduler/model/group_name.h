// Which PodGroup a pod names.
// Thread-safety: a pure function. Complexity: O(log annotations).
#pragma once

#include "absl/strings/string_view.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/pod.h"

namespace fairlead::model {

// The PodGroup of the pod, in its namespace, of whichever API (core/native_groups.h); empty if the
// pod names none. KAI's annotation goes before the field of scheduling.k8s.io. Valid as long as the
// pod.
inline absl::string_view GroupNameOf(const Pod& pod) {
  const absl::string_view annotated = pod.meta.annotations.Get(kPodGroupAnnotation);
  return annotated.empty() ? absl::string_view(pod.scheduling_group) : annotated;
}

}  // namespace fairlead::model
