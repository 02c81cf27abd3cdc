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

#include "scheduler/model/pod.h"
#include "scheduler/model/resources.h"

namespace fairlead::kube {

struct ContainerResources {
  bool sidecar = false;  // an init container with restartPolicy Always
  model::ResourceList requests, limits;
};

struct PodResources {
  std::vector<ContainerResources> containers, init_containers;
  model::ResourceList overhead;
  model::ResourceList pod_requests, pod_limits;
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
