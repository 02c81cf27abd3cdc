// MachineDeployments, MachinePools and Machines of Cluster API, as far as Fairlead reads them:
// cluster.x-k8s.io/v1beta2, and v1beta1 with the same fields under their older names.
//
// Source: the CRDs of sigs.k8s.io/cluster-api v1.14, and cluster-autoscaler's documentation of its
// provider clusterapi for the annotations.
//
// Errors: InvalidArgument that names the object and the field. Thread-safety: plain values, pure
// functions. Complexity: linear in the object.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "document/json.h"

namespace fairlead::hook {

// Annotation of MachineDeployments and MachinePools: the smallest number of machines.
inline constexpr char kMinSizeAnnotation[] =
    "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size";
// Annotation of MachineDeployments and MachinePools: the largest number of machines.
inline constexpr char kMaxSizeAnnotation[] =
    "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
// Annotation of Machines, by Fairlead: the machine that goes when replicas are lowered.
inline constexpr char kDeleteMachineAnnotation[] = "cluster.x-k8s.io/delete-machine";
// Annotation of MachineDeployments and MachinePools: nothing is written to the object.
inline constexpr char kPausedAnnotation[] = "cluster.x-k8s.io/paused";
inline constexpr char kDeploymentNameLabel[] = "cluster.x-k8s.io/deployment-name";
inline constexpr char kPoolNameLabel[] = "cluster.x-k8s.io/pool-name";
inline constexpr char kClusterNameLabel[] = "cluster.x-k8s.io/cluster-name";
// Annotation of MachineDeployments and MachinePools, by Fairlead: uids of the Machines for which
// replicas were lowered, with commas. Written together with spec.replicas, so that a removal whose
// answer was lost is not done twice.
inline constexpr char kRemovedMachinesAnnotation[] = "fairlead.dev/removed-machines";
// Annotation of MachineDeployments and MachinePools: dollars per hour of one machine, a decimal
// number.
inline constexpr char kPriceAnnotation[] = "fairlead.dev/price-usd-per-hour";

// Sizes beyond that are an error.
inline constexpr int64_t kLargestSize = 100'000;

enum class ScalableKind : uint8_t { kMachineDeployment, kMachinePool };
const char* ScalableKindName(ScalableKind kind);  // "MachineDeployment"
const char* ScalablePlural(ScalableKind kind);    // "machinedeployments"

// A MachineDeployment or MachinePool.
struct Scalable {
  ScalableKind kind = ScalableKind::kMachineDeployment;
  std::string ns, name, uid, resource_version;
  int64_t min_size = 0, max_size = 0, replicas = 0;
  bool paused = false, deleting = false;
  std::set<std::string> removed;          // kRemovedMachinesAnnotation
  std::vector<std::string> provider_ids;  // of a MachinePool, in its order
  [[nodiscard]] std::string Id() const;   // "MachineDeployment/ns/name"
};
// Its annotations ask for a size by an autoscaler.
bool IsNodeGroup(const Json& object);
// "kind/ns/name"; empty if it has no name.
std::string GroupIdOf(ScalableKind kind, const Json& object);
absl::StatusOr<Scalable> DecodeScalable(ScalableKind kind, const Json& object);

struct ClusterMachine {
  std::string ns, name, uid, resource_version;
  std::string owner_kind, owner_name, owner_uid;  // of the controller
  std::string deployment;                         // label kDeploymentNameLabel
  std::string provider_id;                        // empty: not known yet
  bool deleting = false, annotated = false, has_node = false;
  // The provider of its infrastructure has given up. Empty: it has not.
  std::string failure_reason, failure_message;
  // A condition tells a problem that may pass. Empty: none does.
  std::string trouble_reason, trouble_message;

  [[nodiscard]] std::string PlaceId() const;  // of a machine without a provider id
  [[nodiscard]] std::string InstanceId() const {
    return provider_id.empty() ? PlaceId() : provider_id;
  }
};
absl::StatusOr<ClusterMachine> DecodeMachine(const Json& object);
// Returns the id of the only group of this kind for which IsMachineOf can be true.
std::string GroupIdOf(ScalableKind kind, const ClusterMachine& machine);
// It belongs to the group, by label and controller.
bool IsMachineOf(const ClusterMachine& machine, const Scalable& group);
// A reason in the words of clouds that are out of machines.
bool IsShortage(absl::string_view reason, absl::string_view message);

}  // namespace fairlead::hook
