#include "external-grpc/messages.h"

#include "absl/strings/match.h"
#include "kube/codec/wire_codec.h"

namespace fairlead::external_grpc {
namespace {

template <typename Map>
void CopyTo(const model::StringMap& from, Map& to) {
  for (const auto& [key, value] : from) to[key] = value;
}

void SetDuration(absl::Duration from, google::protobuf::Duration& to,
                 api::DurationBefore_1_35& to_old) {
  const int64_t seconds = absl::IDivDuration(from, absl::Seconds(1), &from);
  to.set_seconds(seconds);
  to.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(from)));
  to_old.set_nanoseconds(absl::ToInt64Nanoseconds(absl::Seconds(seconds) + from));
}

absl::Duration DurationIn(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

hook::InstanceState StateIn(api::InstanceStatus::InstanceState state) {
  switch (state) {
    case api::InstanceStatus::instanceRunning:
      return hook::InstanceState::kRunning;
    case api::InstanceStatus::instanceCreating:
      return hook::InstanceState::kCreating;
    case api::InstanceStatus::instanceDeleting:
      return hook::InstanceState::kDeleting;
    default:
      return hook::InstanceState::kUnspecified;
  }
}

// A place that AWS's server lists for a machine that does not exist yet.
bool IsPlaceholder(absl::string_view instance_id) {
  return absl::StrContains(instance_id, "i-placeholder");
}

}  // namespace

api::ExternalGrpcNode ToMessage(const hook::CloudNode& node) {
  api::ExternalGrpcNode message;
  message.set_provider_id(node.provider_id);
  message.set_name(node.name);
  CopyTo(node.labels, *message.mutable_labels());
  CopyTo(node.annotations, *message.mutable_annotations());
  return message;
}

void SetTime(absl::Time time, google::protobuf::Timestamp& out) {
  const int64_t seconds = absl::ToUnixSeconds(time);
  out.set_seconds(seconds);
  out.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
}

api::NodeGroupAutoscalingOptions ToMessage(const GroupOptions& options) {
  api::NodeGroupAutoscalingOptions message;
  message.set_scale_down_utilization_threshold(options.scale_down_utilization_threshold);
  message.set_scale_down_gpu_utilization_threshold(options.scale_down_gpu_utilization_threshold);
  message.set_zero_or_max_node_scaling(options.zero_or_max_node_scaling);
  message.set_ignore_daemon_sets_utilization(options.ignore_daemon_sets_utilization);
  message.set_allow_non_atomic_scale_up_to_max(options.allow_non_atomic_scale_up_to_max);
  SetDuration(options.scale_down_unneeded, *message.mutable_scale_down_unneeded(),
              *message.mutable_scale_down_unneeded_before_1_35());
  SetDuration(options.scale_down_unready, *message.mutable_scale_down_unready(),
              *message.mutable_scale_down_unready_before_1_35());
  SetDuration(options.max_node_provision, *message.mutable_max_node_provision(),
              *message.mutable_max_node_provision_before_1_35());
  api::DurationBefore_1_35 unused;
  SetDuration(options.max_node_startup, *message.mutable_max_node_startup(), unused);
  return message;
}

hook::CloudGroup FromMessage(const api::NodeGroup& group) {
  return {group.id(), group.min_size(), group.max_size(), group.debug()};
}

std::vector<hook::CloudGroup> FromMessage(const api::NodeGroupsResponse& response) {
  std::vector<hook::CloudGroup> groups;
  for (const api::NodeGroup& group : response.node_groups()) groups.push_back(FromMessage(group));
  return groups;
}

std::vector<hook::CloudInstance> FromMessage(const api::NodeGroupNodesResponse& response) {
  std::vector<hook::CloudInstance> instances;
  instances.reserve(static_cast<size_t>(response.instances_size()));
  for (const api::Instance& instance : response.instances()) {
    const api::InstanceErrorInfo& error = instance.status().error_info();
    instances.push_back({instance.id(), StateIn(instance.status().instance_state()),
                         error.error_code(), error.error_message(), error.instance_error_class(),
                         IsPlaceholder(instance.id())});
  }
  return instances;
}

GroupOptions FromMessage(const api::NodeGroupAutoscalingOptions& options) {
  GroupOptions out;
  out.scale_down_utilization_threshold = options.scale_down_utilization_threshold();
  out.scale_down_gpu_utilization_threshold = options.scale_down_gpu_utilization_threshold();
  out.zero_or_max_node_scaling = options.zero_or_max_node_scaling();
  out.ignore_daemon_sets_utilization = options.ignore_daemon_sets_utilization();
  out.allow_non_atomic_scale_up_to_max = options.allow_non_atomic_scale_up_to_max();
  const auto either = [](bool has, const google::protobuf::Duration& duration,
                         const api::DurationBefore_1_35& old) {
    return has ? DurationIn(duration) : absl::Nanoseconds(old.nanoseconds());
  };
  out.scale_down_unneeded = either(options.has_scale_down_unneeded(), options.scale_down_unneeded(),
                                   options.scale_down_unneeded_before_1_35());
  out.scale_down_unready = either(options.has_scale_down_unready(), options.scale_down_unready(),
                                  options.scale_down_unready_before_1_35());
  out.max_node_provision = either(options.has_max_node_provision(), options.max_node_provision(),
                                  options.max_node_provision_before_1_35());
  out.max_node_startup = DurationIn(options.max_node_startup());
  return out;
}

absl::StatusOr<model::Node> NodeIn(const api::NodeGroupTemplateNodeInfoResponse& response) {
  const std::string& bytes =
      response.node().empty() ? response.node_before_1_35() : response.node();
  if (bytes.empty()) return absl::InvalidArgumentError("template: the answer has no node");
  model::Node node;
  if (!kube::wire::Read(bytes, node, nullptr)) {
    return absl::InvalidArgumentError("template: the bytes of the node do not decode");
  }
  return node;
}

}  // namespace fairlead::external_grpc
