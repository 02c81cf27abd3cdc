// A server of the protocol for tests: it answers by the id of the group, and notes what it is
// asked. Thread-safety: calls come on threads of gRPC; the fields are set before the first call.
#pragma once

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "external-grpc/cloud_provider.grpc.pb.h"
#include "external-grpc/messages.h"
#include "kube/codec/testing/core_subset.pb.h"

namespace fairlead::external_grpc {

inline kube::testing::core::Node TemplateOf() {
  kube::testing::core::Node node;
  node.mutable_metadata()->set_name("template");
  (*node.mutable_metadata()->mutable_labels())["tier"] = "fast";
  kube::testing::core::Taint& taint = *node.mutable_spec()->add_taints();
  taint.set_key("k");
  taint.set_effect("NoExecute");
  (*node.mutable_status()->mutable_allocatable())["cpu"].set_string("3920m");
  (*node.mutable_status()->mutable_allocatable())["nvidia.com/gpu"].set_string("2");
  (*node.mutable_status()->mutable_capacity())["cpu"].set_string("4");
  return node;
}

// Notes what it is asked. Serves no GetAvailableGPUTypes.
class TestServer final : public api::CloudProvider::Service {
 public:
  using Status = grpc::Status;
  using Context = grpc::ServerContext;

  Status Refresh(Context* context, const api::RefreshRequest*, api::RefreshResponse*) override {
    if (hangs) {
      asked_to_hang.Notify();
      while (!context->IsCancelled()) usleep(1000);
      return Status::CANCELLED;
    }
    return refusal;
  }
  Status Cleanup(Context*, const api::CleanupRequest*, api::CleanupResponse*) override {
    Note("Cleanup");
    return Status::OK;
  }
  Status NodeGroups(Context*, const api::NodeGroupsRequest*,
                    api::NodeGroupsResponse* response) override {
    for (const char* id : {"g", "h"}) {
      api::NodeGroup& group = *response->add_node_groups();
      group.set_id(id);
      group.set_min_size(-1);
      group.set_max_size(7);
      group.set_debug(std::string(debug_bytes, 'x'));
    }
    return Status::OK;
  }
  Status NodeGroupForNode(Context*, const api::NodeGroupForNodeRequest* request,
                          api::NodeGroupForNodeResponse* response) override {
    Note(request->ShortDebugString());
    response->mutable_node_group()->set_id(request->node().name() == "n1" ? "g" : "");
    return Status::OK;
  }
  Status GPULabel(Context*, const api::GPULabelRequest*, api::GPULabelResponse* response) override {
    response->set_label("cloud/gpu");
    return Status::OK;
  }
  Status PricingNodePrice(Context*, const api::PricingNodePriceRequest* request,
                          api::PricingNodePriceResponse* response) override {
    Note(request->node().ShortDebugString());
    const bool old = request->start_before_1_35().seconds() == request->start().seconds() &&
                     request->end_before_1_35().seconds() == request->end().seconds();
    const auto seconds = static_cast<double>(request->end().seconds() - request->start().seconds());
    response->set_price(old ? 2.5 * seconds / 3600 : -1);
    return Status::OK;
  }
  Status PricingPodPrice(Context*, const api::PricingPodPriceRequest* request,
                         api::PricingPodPriceResponse* response) override {
    response->set_price(request->pod() == "pod" && request->pod_before_1_35() == "pod" ? 0.5 : -1);
    return Status::OK;
  }
  Status NodeGroupTargetSize(Context*, const api::NodeGroupTargetSizeRequest* request,
                             api::NodeGroupTargetSizeResponse* response) override {
    response->set_target_size(request->id() == "g" ? 42 : -1);
    return Status::OK;
  }
  Status NodeGroupIncreaseSize(Context*, const api::NodeGroupIncreaseSizeRequest* request,
                               api::NodeGroupIncreaseSizeResponse*) override {
    Note(absl::StrCat("increase ", request->ShortDebugString()));
    return Status::OK;
  }
  Status NodeGroupDecreaseTargetSize(Context*,
                                     const api::NodeGroupDecreaseTargetSizeRequest* request,
                                     api::NodeGroupDecreaseTargetSizeResponse*) override {
    Note(absl::StrCat("decrease ", request->ShortDebugString()));
    return Status::OK;
  }
  Status NodeGroupDeleteNodes(Context*, const api::NodeGroupDeleteNodesRequest* request,
                              api::NodeGroupDeleteNodesResponse*) override {
    Note(absl::StrCat("delete ", request->ShortDebugString()));
    return Status::OK;
  }
  Status NodeGroupNodes(Context*, const api::NodeGroupNodesRequest* request,
                        api::NodeGroupNodesResponse* response) override {
    if (request->id() != "g") return Status::OK;
    using State = api::InstanceStatus;
    for (const auto state : {State::unspecified, State::instanceRunning, State::instanceCreating,
                             State::instanceDeleting}) {
      api::Instance& instance = *response->add_instances();
      instance.set_id(absl::StrCat("i-", static_cast<int>(state)));
      instance.mutable_status()->set_instance_state(state);
    }
    response->add_instances()->set_id("i-4");
    response->mutable_instances(4)->mutable_status()->set_instance_state(
        static_cast<State::InstanceState>(77));
    api::InstanceErrorInfo& error =
        *response->mutable_instances(2)->mutable_status()->mutable_error_info();
    error.set_error_code("E1");
    error.set_error_message("no stock");
    error.set_instance_error_class(1);
    return Status::OK;
  }
  Status NodeGroupTemplateNodeInfo(Context*, const api::NodeGroupTemplateNodeInfoRequest* request,
                                   api::NodeGroupTemplateNodeInfoResponse* response) override {
    const std::string& id = request->id();
    if (id == "new" || id == "both") response->set_node(TemplateOf().SerializeAsString());
    if (id == "old") response->set_node_before_1_35(TemplateOf().SerializeAsString());
    if (id == "both") response->set_node_before_1_35("\xff");
    if (id == "broken") response->set_node("\x0a\x7f");
    return Status::OK;
  }
  Status NodeGroupGetOptions(Context*, const api::NodeGroupAutoscalingOptionsRequest* request,
                             api::NodeGroupAutoscalingOptionsResponse* response) override {
    *response->mutable_options() = request->defaults();
    if (request->id() == "old") {
      response->mutable_options()->clear_scale_down_unneeded();
      response->mutable_options()->clear_scale_down_unready();
      response->mutable_options()->clear_max_node_provision();
    }
    return Status::OK;
  }
  std::vector<std::string> notes() {
    const std::lock_guard lock(mutex_);
    return notes_;
  }
  bool hangs = false;
  absl::Notification asked_to_hang;
  Status refusal;
  size_t debug_bytes = 3;

 private:
  void Note(const std::string& what) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(what);
  }
  std::mutex mutex_;
  std::vector<std::string> notes_;
};

}  // namespace fairlead::external_grpc
