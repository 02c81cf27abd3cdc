// The node that a MachineDeployment or MachinePool will make, for a group that may be empty: from
// the annotations of cluster-autoscaler's provider clusterapi, and from what providers of
// infrastructure tell in status.capacity of their machine templates.
//
//   capacity.cluster-autoscaler.kubernetes.io/
//     cpu, memory, ephemeral-disk   quantities: "16", "64Gi"
//     maxPods, gpu-count            whole numbers
//     gpu-type                      the name of the resource; nvidia.com/gpu without it
//     dra-driver                    the GPUs are devices of this DRA driver, and no resource; each
//                                   has the attribute `type`, "gpu"
//     labels                        "key=value,key2=value2"
//     taints                        "key=value:NoSchedule,key2:NoExecute"
//
// Amounts of the annotations replace those of status.capacity. Labels and taints: first those of
// spec.template that Cluster API puts on nodes (prefixes node-role.kubernetes.io,
// node-restriction.kubernetes.io and node.cluster.x-k8s.io), then those of the annotations. The
// zone is the label topology.kubernetes.io/zone, else the failure domain.
//
// Sources: cluster-autoscaler's documentation of the provider clusterapi; Cluster API's "Metadata
// propagation" and proposal "Opt-in Autoscaling from Zero". Errors: InvalidArgument with the field;
// FailedPrecondition if no amount is told. Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "document/json.h"
#include "scheduler/model/node.h"

namespace fairlead::hook {

// Everything that MakeCapacityTemplate reads of the object, as one text: equal texts, equal
// templates.
std::string CapacityInputs(const Json& object);

// spec.template.spec.infrastructureRef.
struct InfrastructureRef {
  std::string group, version, kind, ns, name;  // the version is empty in v1beta2
};
// The machine template whose status.capacity is needed, because annotations do not tell CPU and
// memory; absent: none is needed or named.
std::optional<InfrastructureRef> NeededInfrastructure(const Json& object);

// `infrastructure`: that machine template; null: there is none.
absl::StatusOr<model::Node> MakeCapacityTemplate(const Json& object, const Json* infrastructure);

// kPriceAnnotation in dollars; absent: there is none.
absl::StatusOr<std::optional<double>> PriceOf(const Json& object);

}  // namespace fairlead::hook
