// Nodes by the provider externalgrpc: the real process, the real API server, and a server of
// cluster-autoscaler's protocol whose machines register as nodes of the cloud's own names.
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "external-grpc/cloud_provider.grpc.pb.h"
#include "kube/codec/codec.h"
#include "kube/codec/testing/core_subset.pb.h"
#include "scheduler/model/api_names.h"
#include "tests/integration/fixture.h"

namespace fairlead::integration {
namespace {

namespace proto = ::clusterautoscaler::cloudprovider::v1::externalgrpc;

struct CloudGroup {
  std::string id;
  int gpus = 8, max_size = 4;
  double price = 24;
  int target = 0;
};

// A machine registers its node as soon as it is ordered.
class CloudServer final : public proto::CloudProvider::Service {
 public:
  using Status = grpc::Status;
  using Context = grpc::ServerContext;

  CloudServer(Api* api, std::vector<CloudGroup> groups) : api_(api), groups_(std::move(groups)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~CloudServer() override { server_->Shutdown(); }

  [[nodiscard]] int port() const { return port_; }
  std::vector<std::string> calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  int machines() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(machines_.size());
  }

 private:
  Status Refresh(Context*, const proto::RefreshRequest*, proto::RefreshResponse*) override {
    return Status::OK;
  }
  Status NodeGroups(Context*, const proto::NodeGroupsRequest*,
                    proto::NodeGroupsResponse* response) override {
    for (const CloudGroup& group : groups_) {
      proto::NodeGroup& told = *response->add_node_groups();
      told.set_id(group.id);
      told.set_max_size(group.max_size);
    }
    return Status::OK;
  }
  Status GPULabel(Context*, const proto::GPULabelRequest*,
                  proto::GPULabelResponse* response) override {
    response->set_label("cloud/gpu");
    return Status::OK;
  }
  Status PricingNodePrice(Context*, const proto::PricingNodePriceRequest* request,
                          proto::PricingNodePriceResponse* response) override {
    for (const CloudGroup& group : groups_) {
      if (absl::StrContains(request->node().name(), group.id)) response->set_price(group.price);
    }
    return Status::OK;
  }
  Status NodeGroupTemplateNodeInfo(Context*, const proto::NodeGroupTemplateNodeInfoRequest* request,
                                   proto::NodeGroupTemplateNodeInfoResponse* response) override {
    const CloudGroup* const group = Find(request->id());
    if (group == nullptr) return {grpc::StatusCode::NOT_FOUND, "no such group"};
    kube::testing::core::Node node;
    node.mutable_metadata()->set_name(absl::StrCat(group->id, "-template"));
    auto& amounts = *node.mutable_status()->mutable_allocatable();
    amounts["cpu"].set_string(absl::StrCat(8 * group->gpus));
    amounts["memory"].set_string(absl::StrCat(64 * group->gpus, "Gi"));
    amounts["pods"].set_string("110");
    amounts["nvidia.com/gpu"].set_string(absl::StrCat(group->gpus));
    response->set_node(node.SerializeAsString());
    return Status::OK;
  }
  Status NodeGroupTargetSize(Context*, const proto::NodeGroupTargetSizeRequest* request,
                             proto::NodeGroupTargetSizeResponse* response) override {
    const std::lock_guard lock(mutex_);
    if (const CloudGroup* group = Find(request->id())) response->set_target_size(group->target);
    return Status::OK;
  }
  Status NodeGroupIncreaseSize(Context*, const proto::NodeGroupIncreaseSizeRequest* request,
                               proto::NodeGroupIncreaseSizeResponse*) override {
    const std::lock_guard lock(mutex_);
    CloudGroup* const group = Find(request->id());
    if (group == nullptr) return {grpc::StatusCode::NOT_FOUND, "no such group"};
    calls_.push_back(absl::StrCat("increase ", group->id, " ", request->delta()));
    group->target += request->delta();
    for (int i = 0; i < request->delta(); ++i) Register(*group);
    return Status::OK;
  }
  Status NodeGroupDeleteNodes(Context*, const proto::NodeGroupDeleteNodesRequest* request,
                              proto::NodeGroupDeleteNodesResponse*) override {
    const std::lock_guard lock(mutex_);
    CloudGroup* const group = Find(request->id());
    for (const auto& node : request->nodes()) {
      calls_.push_back(absl::StrCat("delete ", node.provider_id()));
      const auto machine = machines_.find(node.provider_id());
      if (group == nullptr || machine == machines_.end()) continue;
      api_->Call("DELETE", absl::StrCat(kNodes, "/", machine->second.second));
      machines_.erase(machine);
      --group->target;
    }
    return Status::OK;
  }
  Status NodeGroupNodes(Context*, const proto::NodeGroupNodesRequest* request,
                        proto::NodeGroupNodesResponse* response) override {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, machine] : machines_) {
      if (machine.first != request->id()) continue;
      proto::Instance& instance = *response->add_instances();
      instance.set_id(id);
      instance.mutable_status()->set_instance_state(proto::InstanceStatus::instanceRunning);
    }
    return Status::OK;
  }

  CloudGroup* Find(const std::string& id) {
    const auto found = std::find_if(groups_.begin(), groups_.end(),
                                    [&](const CloudGroup& group) { return group.id == id; });
    return found == groups_.end() ? nullptr : &*found;
  }
  void Register(const CloudGroup& group) {
    model::Node node;
    node.meta.name = absl::StrCat("ip-10-0-0-", ++last_);
    node.provider_id = absl::StrCat("cloud:///", group.id, "/", last_);
    node.meta.labels.Set(model::kHostnameLabel, node.meta.name);
    model::Set(node.allocatable, model::kCpuName, 8'000 * group.gpus);
    model::Set(node.allocatable, model::kMemoryName, (int64_t{64} << 30) * group.gpus);
    model::Set(node.allocatable, model::kPodsName, 110);
    model::Set(node.allocatable, model::kGpuName, 1'000 * group.gpus);
    RegisterNode(*api_, node);
    machines_[node.provider_id] = {group.id, node.meta.name};
  }

  Api* api_;
  std::mutex mutex_;
  std::vector<CloudGroup> groups_;
  std::map<std::string, std::pair<std::string, std::string>> machines_;  // id -> group, node
  std::vector<std::string> calls_;
  int last_ = 0, port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class CloudServerTest : public IntegrationTest {
 protected:
  void TearDown() override {
    IntegrationTest::TearDown();
    server_.reset();
  }
  ChildProcess& StartWith(std::vector<CloudGroup> groups) {
    server_ = std::make_unique<CloudServer>(&api(), std::move(groups));
    MakeQueue("team", -1, -1);
    ChildProcess& process = Start(
        {.hook = true,
         .provider = "externalgrpc",
         .unneeded_after = "1s",
         .more = absl::StrCat("externalgrpc: {address: \"127.0.0.1:", server_->port(), "\"}\n")});
    EXPECT_TRUE(Says(process, "offers of a provider"));
    return process;
  }
  // Nodes are known by it: they have no label of ours.
  ::testing::AssertionResult EachRequestHasItsMachine() {
    return Eventually("each request has the id of its machine", [this] {
      const std::vector<Json> requests = api().List(kRequests);
      return std::all_of(requests.begin(), requests.end(), [](const Json& request) {
        return !request.TextAt({"status", "providerID"}).empty();
      });
    });
  }
  ::testing::AssertionResult NoMachineIsLeft() {
    return Eventually("every machine is deleted",
                      [this] { return server_->machines() == 0 && api().List(kRequests).empty(); });
  }
  std::unique_ptr<CloudServer> server_;
};

TEST_F(CloudServerTest, AGangRunsOnMachinesOfAGroupAndTheyAreGivenBack) {
  StartWith({{"gpus"}});
  MakeGroup("gang", 2);
  for (const char* name : {"g1", "g2"}) MakePod({.name = name, .gpus = 8, .group = "gang"});
  ASSERT_TRUE(Bound({"g1", "g2"}));
  EXPECT_EQ(server_->calls(), std::vector<std::string>{"increase gpus 2"});
  EXPECT_TRUE(EachRequestHasItsMachine());
  for (const Json& request : api().List(kRequests)) {
    const std::string id = request.TextAt({"status", "providerID"});
    EXPECT_TRUE(id == "cloud:///gpus/1" || id == "cloud:///gpus/2") << request.Compact();
    EXPECT_EQ(request.TextAt({"spec", "instanceType"}), "gpus");
    EXPECT_EQ(request.TextAt({"spec", "priceUsdPerHour"}), "24");
  }
  for (const char* name : {"g1", "g2"}) api().Delete(Path(kPods, name));
  EXPECT_TRUE(NoMachineIsLeft());
}

TEST_F(CloudServerTest, AFullGroupIsNotRaised) {
  StartWith({{.id = "cheap", .max_size = 0, .price = 1}, {.id = "dear", .price = 30}});
  MakePod({.name = "pod", .gpus = 8});
  ASSERT_TRUE(Bound({"pod"}));
  EXPECT_EQ(server_->calls(), std::vector<std::string>{"increase dear 1"});
}

// A part of a gang's machines is of no use: the group that has room for one is not raised at all.
TEST_F(CloudServerTest, AGangThatAGroupCannotTakeWholeGetsAnotherOne) {
  StartWith({{.id = "cheap", .max_size = 1, .price = 1}, {.id = "dear", .price = 30}});
  MakeGroup("gang", 2);
  for (const char* name : {"g1", "g2"}) MakePod({.name = name, .gpus = 8, .group = "gang"});
  ASSERT_TRUE(Bound({"g1", "g2"}));
  EXPECT_EQ(server_->calls(), std::vector<std::string>{"increase dear 2"});
}

// The next process knows the machine by its id.
TEST_F(CloudServerTest, ANewProcessGoesOnWithItsMachines) {
  ChildProcess& process = StartWith({{"gpus"}});
  MakePod({.name = "pod", .gpus = 8});
  ASSERT_TRUE(Bound({"pod"}));
  ASSERT_TRUE(EachRequestHasItsMachine());
  process.Kill();
  Start({.hook = true,
         .provider = "externalgrpc",
         .unneeded_after = "1s",
         .more = absl::StrCat("externalgrpc: {address: \"127.0.0.1:", server_->port(), "\"}\n")});
  MakePod({.name = "second", .gpus = 8});
  ASSERT_TRUE(Bound({"second"}));
  EXPECT_EQ(server_->machines(), 2);
  for (const char* name : {"pod", "second"}) api().Delete(Path(kPods, name));
  EXPECT_TRUE(NoMachineIsLeft());
}

}  // namespace
}  // namespace fairlead::integration
