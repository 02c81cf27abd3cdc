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
// Thread-safety: pure. Complexity: containers * resources.
#pragma once

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

// Of a pod of which something can be aligned to NUMA nodes, each container by itself, unless its
// effective requests say the same (model::PodSpec::containers).
std::vector<model::ContainerRequests> AlignedContainers(const PodResources& resources,
                                                        bool guaranteed);

// Without zero amounts and without "pods". Consumes the lists.
model::ResourceList EffectiveRequests(PodResources&& resources);

}  // namespace fairlead::kube
