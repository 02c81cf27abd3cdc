// The objects of the provider provisioning-request: ProvisioningRequests and PodTemplates as
// Fairlead writes them, and what it reads of them and of nodes.
//
// A ProvisioningRequest that Fairlead makes has a place for each machine that it asks for. Its
// annotation fairlead.dev/places has one character for each: '.' no node has come yet, '+' one has,
// '-' none is waited for any more. A node that has come has the annotation
// fairlead.dev/provisioning-request with the request's name and its place, so each tells which
// machine it is after any restart.
//
// Source: the API autoscaling.x-k8s.io/v1 and the conditions of cluster-autoscaler
// (cluster-autoscaler/provisioningrequest); GKE's documentation of queued provisioning.
//
// Errors: InvalidArgument that names the object and the field. Thread-safety: plain values, pure
// functions. Complexity: linear in the object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "autoscale-hook/providers/groups/cloud_groups.h"
#include "autoscale-hook/provisioning/failure.h"
#include "document/json.h"
#include "scheduler/model/node.h"
#include "scheduler/model/provisioning_group.h"

namespace fairlead::hook {

inline constexpr char kRequestsRoot[] = "/apis/autoscaling.x-k8s.io/v1";
// Annotation of ProvisioningRequests, by Fairlead: what became of each place.
inline constexpr char kPlacesAnnotation[] = "fairlead.dev/places";
// Annotation of nodes, by Fairlead: NAME/PLACE of the ProvisioningRequest for which the node has
// come.
inline constexpr char kCameForAnnotation[] = "fairlead.dev/provisioning-request";
// Annotation of ProvisioningRequests and nodes, by Fairlead: the NodeRequests for which the request
// was made, in the order of its places, with commas; on a node the one of its place. Owners are not
// enough, as the API server forgets those that are gone.
inline constexpr char kOrderedByAnnotation[] = "fairlead.dev/ordered-by";
// Label of ProvisioningRequests, by Fairlead: name of the node group.
inline constexpr char kProvisioningGroupLabel[] = "fairlead.dev/provisioning-group";
// Annotation of nodes, by Fairlead on nodes of ProvisioningRequests: "true" keeps the node;
// cluster-autoscaler and GKE honour it too.
inline constexpr char kHoldAnnotation[] = "cluster-autoscaler.kubernetes.io/scale-down-disabled";
// A request for more is refused: each machine is an owner in its metadata.
inline constexpr int64_t kMostPlaces = 1000;

// What the conditions of a request say.
enum class RequestStage : uint8_t {
  kWaiting,      // nothing yet, or something that does not decide
  kNoCapacity,   // Provisioned is False for CapacityIsNotFound; it may change
  kFound,        // Provisioned is True for CapacityIsFound: no node will come
  kProvisioned,  // Provisioned is True: nodes will come
  kFailed        // Failed or CapacityRevoked is True: no more nodes will come
};

struct BoughtRequest {
  std::string name, uid, resource_version;
  std::string group;  // kProvisioningGroupLabel
  absl::Time creation;
  bool deleting = false;
  std::string recorded_places;          // kPlacesAnnotation
  std::string places;                   // the same, with what is known besides
  std::vector<std::string> ordered_by;  // by place; empty: unknown
  RequestStage stage = RequestStage::kWaiting;
  // Of kNoCapacity, kFound and kFailed.
  std::string reason, message;
  FailureClass failure = FailureClass::kStockout;

  [[nodiscard]] bool HasOpenPlace() const { return places.find('.') != std::string::npos; }
};
absl::StatusOr<BoughtRequest> DecodeBoughtRequest(const Json& object);

// The id under which a place is listed until its node has come.
std::string PlaceId(absl::string_view request, size_t place);
// "REQUEST/PLACE" of kCameForAnnotation and of a PlaceId.
std::string PlaceName(absl::string_view request, size_t place);
std::optional<std::pair<std::string, size_t>> ParsePlaceName(absl::string_view text);
std::optional<std::pair<std::string, size_t>> ParsePlaceId(absl::string_view id);

// The body of a PodTemplate whose pods each fill a machine of the group: all of its GPUs, and more
// than half of its CPU and memory, so that no two are on one. Not all of it: the autoscaler may
// know of DaemonSets of which the configuration does not. Its name is made of the group's name and
// of its content.
struct MachinePod {
  std::string name, body;
};
MachinePod MakeMachinePod(const model::ProvisioningSettings& settings,
                          const model::ProvisioningGroup& group, const model::Node& node);
// The name, made of the token, and the body of the ProvisioningRequest for an increase.
std::string RequestName(absl::string_view token);
std::string MakeRequestBody(const model::ProvisioningSettings& settings,
                            const model::ProvisioningGroup& group, const std::string& pod_template,
                            const Increase& increase);

}  // namespace fairlead::hook
