// The provider over the client over a server on the loopback interface: from the offer to the end
// of a machine. Time is virtual; the answers of the server are waited for.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "autoscale-hook/providers/contract_testing.h"
#include "autoscale-hook/providers/externalgrpc/externalgrpc_options.h"
#include "external-grpc/client.h"
#include "external-grpc/server_testing.h"

namespace fairlead::external_grpc {
namespace {

// One group, "g"; a machine is created when it is listed, and runs when it is listed again.
class CloudServer final : public api::CloudProvider::Service {
 public:
  using Status = grpc::Status;
  using Context = grpc::ServerContext;

  Status Refresh(Context*, const api::RefreshRequest*, api::RefreshResponse*) override {
    return Status::OK;
  }
  Status NodeGroups(Context*, const api::NodeGroupsRequest*,
                    api::NodeGroupsResponse* response) override {
    api::NodeGroup& group = *response->add_node_groups();
    group.set_id("g");
    group.set_max_size(5);
    return Status::OK;
  }
  Status PricingNodePrice(Context*, const api::PricingNodePriceRequest*,
                          api::PricingNodePriceResponse* response) override {
    response->set_price(0.25);
    return Status::OK;
  }
  Status NodeGroupTemplateNodeInfo(Context*, const api::NodeGroupTemplateNodeInfoRequest*,
                                   api::NodeGroupTemplateNodeInfoResponse* response) override {
    kube::testing::core::Node node = TemplateOf();
    (*node.mutable_status()->mutable_allocatable())["memory"].set_string("16Gi");
    response->set_node(node.SerializeAsString());
    return Status::OK;
  }
  Status NodeGroupTargetSize(Context*, const api::NodeGroupTargetSizeRequest*,
                             api::NodeGroupTargetSizeResponse* response) override {
    const std::lock_guard lock(mutex_);
    response->set_target_size(target_);
    return Status::OK;
  }
  Status NodeGroupNodes(Context*, const api::NodeGroupNodesRequest*,
                        api::NodeGroupNodesResponse* response) override {
    const std::lock_guard lock(mutex_);
    while (machines_.size() < static_cast<size_t>(target_)) {
      machines_[absl::StrCat("cloud:///", ++last_)] = api::InstanceStatus::instanceCreating;
    }
    for (auto& [id, state] : machines_) {
      api::Instance& instance = *response->add_instances();
      instance.set_id(id);
      instance.mutable_status()->set_instance_state(state);
      state = api::InstanceStatus::instanceRunning;
    }
    return Status::OK;
  }
  Status NodeGroupIncreaseSize(Context*, const api::NodeGroupIncreaseSizeRequest* request,
                               api::NodeGroupIncreaseSizeResponse*) override {
    const std::lock_guard lock(mutex_);
    target_ += request->delta();
    return Status::OK;
  }
  Status NodeGroupDeleteNodes(Context*, const api::NodeGroupDeleteNodesRequest* request,
                              api::NodeGroupDeleteNodesResponse*) override {
    const std::lock_guard lock(mutex_);
    for (const api::ExternalGrpcNode& node : request->nodes()) {
      if (machines_.erase(node.provider_id()) > 0) --target_;
    }
    return Status::OK;
  }

 private:
  std::mutex mutex_;
  int32_t target_ = 0;
  int last_ = 0;
  std::map<std::string, api::InstanceStatus::InstanceState> machines_;
};

class OverGrpcTest : public ::testing::Test, public hook::ProviderListener {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ClientOptions options;
    options.address = absl::StrCat("127.0.0.1:", port);
    options.timeout = absl::Seconds(60);
    auto made = Client::Make(options, [this](std::function<void()> callback) {
      const std::lock_guard lock(mutex_);
      posted_.push_back(std::move(callback));
      is_posted_.notify_all();
    });
    ASSERT_TRUE(made.ok()) << made.status();
    client_ = *std::move(made);
    provider_ =
        std::make_unique<hook::GroupsProvider>(hook::ExternalGrpcOptions(), &time_, client_.get());
    provider_->Start(this);
  }
  void TearDown() override {
    provider_.reset();
    client_.reset();
  }
  // Each second of virtual time lasts until the server has answered everything.
  void Pass(absl::Duration duration) {
    for (absl::Duration t; t < duration; t += absl::Seconds(1)) {
      time_.Advance(absl::Seconds(1));
      for (;;) {
        std::function<void()> callback;
        {
          std::unique_lock lock(mutex_);
          if (posted_.empty() && client_->open() == 0 && posted_.empty()) break;
          is_posted_.wait_for(lock, std::chrono::milliseconds(1),
                              [this] { return !posted_.empty(); });
          if (posted_.empty()) continue;
          callback = std::move(posted_.front());
          posted_.pop_front();
        }
        callback();
      }
    }
  }
  void OnMachine(const hook::MachineReport& report) override { reports_.push_back(report); }
  void OnOffers(absl::string_view, std::shared_ptr<const hook::Catalog> offers) override {
    offers_ = std::move(offers);
  }
  void OnProblem(absl::string_view, const absl::Status& problem) override {
    ADD_FAILURE() << problem;
  }

  CloudServer service_;
  std::unique_ptr<grpc::Server> server_;
  hook::VirtualTime time_;
  std::mutex mutex_;
  std::condition_variable is_posted_;
  std::deque<std::function<void()>> posted_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<hook::GroupsProvider> provider_;
  std::vector<hook::MachineReport> reports_;
  std::shared_ptr<const hook::Catalog> offers_;
};

TEST_F(OverGrpcTest, FromTheOfferToTheEnd) {
  Pass(absl::Seconds(2));
  ASSERT_NE(offers_, nullptr);
  const hook::InstanceType* type = offers_->Find("g");
  ASSERT_NE(type, nullptr);
  EXPECT_EQ(type->gpu_count, 2);
  EXPECT_EQ(type->on_demand_micro_usd, 250'000);
  EXPECT_EQ(type->memory_bytes, int64_t{16} << 30);

  model::LaunchNode launch;
  launch.request.Own().meta.name = "fl-1";
  launch.request.Own().meta.uid = "u-1";
  launch.request.Own().instance_type = "g";
  absl::Status launched = absl::UnknownError("no answer");
  provider_->Launch({{launch, [&](const absl::Status& status) { launched = status; }}});
  Pass(absl::Seconds(30));
  EXPECT_TRUE(launched.ok()) << launched;
  ASSERT_EQ(reports_.size(), 2u);
  EXPECT_EQ(reports_[0].state, hook::MachineState::kStarting);
  EXPECT_EQ(reports_[1].state, hook::MachineState::kRunning);
  EXPECT_EQ(reports_[1].machine_id, "cloud:///1");

  absl::Status ended = absl::UnknownError("no answer");
  provider_->Terminate({"fl-1", "externalgrpc", "node-1", "cloud:///1"},
                       [&](const absl::Status& status) { ended = status; });
  Pass(absl::Seconds(10));
  EXPECT_TRUE(ended.ok()) << ended;
  EXPECT_EQ(reports_.back().state, hook::MachineState::kGone);
}

}  // namespace
}  // namespace fairlead::external_grpc
