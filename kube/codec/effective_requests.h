// What a pod requests of a node, computed from its containers.
//
// Source: k8s.io/component-helpers/resource (PodRequests, AggregateContainerRequests) and the
// defaulting of k8s.io/kubernetes/pkg/apis/core/v1 (an absent request is the limit; an absent
// pod-level request is the sum of the containers, else the pod-level limit). Applying it to a pod
// that the server has defaulted changes nothing.
//
//   running      = sum over containers and sidecars
//   starting(i)  = init container i + the sidecars before it
//   requests     = max(running, starting(i) for all i), pod-level cpu, memory and hugepages instead
//                  where set, + overhead
//
// While a pod is resized in place (KEP-1287), a container or sidecar whose status has resources
// counts, resource by resource, as the most of what its spec asks for, what the kubelet has granted
// (allocatedResources) and what is in force (resources); without the first if the kubelet says that
// the resize is infeasible. So does the pod as a whole where it has pod-level requests. An init
// container counts by its spec.
//   scoring      = cpu and memory as above; but if each container that says nothing of one of them
//                  requested kUnrequested of it, and
//                  - of a pod that waits, without pod-level requests
//                  - of a pod on a node, if it has pod-level resources: only of what `requests`
//                    does not name
//
// Source of `scoring`: upstream's calculatePodResourceRequest
// (noderesources/resource_allocation.go, which NodeResourcesFit tells to skip pod-level resources),
// and getNonMissingContainerRequests (framework/types.go). They differ, so a pod counts otherwise
// once it has its node.
//
// Thread-safety: pure. Complexity: containers * resources.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/resources.h"

namespace fairlead::kube {

struct ContainerResources {
  bool sidecar = false;  // an init container with restartPolicy Always
  model::ResourceList requests, limits;
  absl::string_view name = {};  // a view into the message
};

// What a status says of a container's resources, or of the pod's.
struct StatusResources {
  absl::string_view name;  // of the container; a view into the message
  bool reported = false;   // `resources` is there
  model::ResourceList in_force, allocated;
};

struct PodResources {
  std::vector<ContainerResources> containers, init_containers;
  model::ResourceList overhead;
  model::ResourceList pod_requests, pod_limits;
  std::vector<StatusResources> statuses = {};  // those that report resources
  StatusResources pod_status = {};
  bool resize_infeasible = false;  // condition PodResizePending has that reason
};

// What a container that says nothing of it counts as for scores.
inline constexpr model::ScoringRequests kUnrequested{100, int64_t{200} << 20};

struct PodRequests {
  model::ResourceList requests;  // without zero amounts and without "pods"
  model::ScoringRequests scoring;
};

// Of a pod of which something can be aligned to NUMA nodes, each container by itself, unless its
// effective requests say the same (model::PodSpec::containers).
std::vector<model::ContainerRequests> AlignedContainers(const PodResources& resources,
                                                        bool guaranteed);

// Consumes the lists.
PodRequests EffectiveRequests(PodResources&& resources);

}  // namespace fairlead::kube
