// The messages of the protocol as plain values. Thread-safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "autoscale-hook/providers/groups/cloud_groups.h"
#include "external-grpc/cloud_provider.pb.h"

namespace fairlead::external_grpc {

namespace api = clusterautoscaler::cloudprovider::v1::externalgrpc;

// What cluster-autoscaler would do with a group. Fairlead does not act on it.
struct GroupOptions {
  double scale_down_utilization_threshold = 0, scale_down_gpu_utilization_threshold = 0;
  absl::Duration scale_down_unneeded, scale_down_unready, max_node_provision, max_node_startup;
  bool zero_or_max_node_scaling = false, ignore_daemon_sets_utilization = false;
  bool allow_non_atomic_scale_up_to_max = false;
  friend bool operator==(const GroupOptions&, const GroupOptions&) = default;
};

api::ExternalGrpcNode ToMessage(const hook::CloudNode& node);
// Durations under the numbers of new servers and of old ones.
api::NodeGroupAutoscalingOptions ToMessage(const GroupOptions& options);
void SetTime(absl::Time time, google::protobuf::Timestamp& out);

hook::CloudGroup FromMessage(const api::NodeGroup& group);
std::vector<hook::CloudGroup> FromMessage(const api::NodeGroupsResponse& response);
std::vector<hook::CloudInstance> FromMessage(const api::NodeGroupNodesResponse& response);
GroupOptions FromMessage(const api::NodeGroupAutoscalingOptions& options);
// InvalidArgument if there is no node, or bytes that are none.
absl::StatusOr<model::Node> NodeIn(const api::NodeGroupTemplateNodeInfoResponse& response);

}  // namespace fairlead::external_grpc
