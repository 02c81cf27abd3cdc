// The claim that gives a pod its extended resources, as kube-scheduler makes it and as the kubelet
// reads it (KEP-5004; createRequestsAndMappings in extendeddynamicresources.go of plugin
// DynamicResources): one request for each container and resource, and in the pod's status which
// request is whose.
//
// Containers that run at the same time (main containers, sidecars) have devices of their own. An
// init container that ends before the others run uses theirs; where that is not enough, all such
// init containers have one more request in common.
//
// Thread-safety: pure functions. Complexity: O(containers² x resources).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kube/codec/codec.h"
#include "scheduler/model/action.h"
#include "scheduler/model/resources.h"

namespace fairlead::kube {

struct PodContainer {
  std::string name;
  bool ends_first = false;  // an init container that is no sidecar
  model::ResourceList requests;
};

struct ExtendedRequests {
  struct Request {
    std::string name, device_class;
    int64_t count = 0;
    friend bool operator==(const Request&, const Request&) = default;
  };
  struct Mapping {
    std::string container, resource, request;
    friend bool operator==(const Mapping&, const Mapping&) = default;
  };
  std::vector<Request> requests;  // by name
  std::vector<Mapping> mappings;
};

// Init containers first. InvalidArgument if the text is no pod, or a quantity cannot be read.
absl::StatusOr<std::vector<PodContainer>> DecodeContainers(absl::string_view pod_json);

ExtendedRequests MakeExtendedRequests(
    const std::vector<PodContainer>& containers,
    const std::vector<model::SetExtendedClaim::Resource>& resources);

// The claim, owned by its pod.
EncodedWrite EncodeExtendedClaim(const model::SetExtendedClaim& action,
                                 const std::vector<ExtendedRequests::Request>& requests);
// Without a claim: status.extendedResourceClaimStatus is removed.
EncodedWrite EncodeExtendedClaimStatus(const model::SetExtendedClaim& action,
                                       const std::vector<ExtendedRequests::Mapping>& mappings);

}  // namespace fairlead::kube
