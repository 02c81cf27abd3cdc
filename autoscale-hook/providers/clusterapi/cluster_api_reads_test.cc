// What ClusterApiGroups reads: groups, instances, templates.
#include "autoscale-hook/providers/clusterapi/cluster_api_fixture_testing.h"
#include "autoscale-hook/providers/groups/group_offer.h"

namespace fairlead::hook {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ClusterApiReads : public ClusterApiFixture {
 protected:
  std::string PutMachine(const std::string& name, const std::string& spec,
                         const std::string& status, const std::string& more_meta = "",
                         const std::string& set = "set-1") {
    objects().Put(
        FakeClusterApi::MachinePath(name),
        absl::StrCat(R"({"apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{)", more_meta,
                     R"("labels":{"cluster.x-k8s.io/deployment-name":"workers"},"finalizers":["f"],
      "ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachineSet","name":"s",
      "uid":")",
                     set, R"("}]},"spec":{)", spec, R"(},"status":{)", status, "}}"));
    return name;
  }
  // The controllers do not act.
  void Still() {
    objects().on_change = [](const std::string&) {};
  }
};

TEST_F(ClusterApiReads, GroupsAreObjectsWithBothAnnotations) {
  cluster_.AddDeployment("workers", 1, 7, 2);
  objects().Put(FakeClusterApi::DeploymentPath("other"), R"({"metadata":{"annotations":{
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size":"3"}},"spec":{"replicas":1}})");
  objects().Put(FakeClusterApi::DeploymentPath("ending"), R"({"metadata":{
      "deletionTimestamp":"2026-01-01T00:00:00Z","annotations":{
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size":"0",
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size":"3"}},"spec":{"replicas":1}})");
  ASSERT_EQ(Refresh(), absl::OkStatus());
  const std::vector<CloudGroup> listed = Listed();
  ASSERT_THAT(listed, SizeIs(1));
  EXPECT_EQ(listed[0].id, kGroup);
  EXPECT_EQ(listed[0].min_size, 1);
  EXPECT_EQ(listed[0].max_size, 7);
  EXPECT_TRUE(listed[0].wrong.ok());
  int64_t target = -1;
  groups_.TargetSize(kGroup, [&](const absl::StatusOr<int64_t>& size) { target = *size; });
  EXPECT_EQ(target, 2);
}

TEST_F(ClusterApiReads, WrongSizesNameObjectAndField) {
  const struct {
    const char *min, *max, *replicas, *problem;
  } cases[] = {
      {"\"x\"", "\"3\"", "0", "group-min-size]: \"x\" is not a whole number"},
      {"\"-1\"", "\"3\"", "0", "group-min-size]: -1 is negative"},
      {"\"1.5\"", "\"3\"", "0", "group-min-size]: \"1.5\" is not"},
      {"\"0\"", "\"\"", "0", "group-max-size]: \"\" is not a whole number"},
      {"\"0\"", "\"99999999999999999999999\"", "0", "group-max-size]: \"99999999999999999999999\""},
      {"\"0\"", "\"1000000\"", "0", "1000000 is more than 100000"},
      {"\"4\"", "\"3\"", "0", "4 is more than the maximum of 3"},
      {"\"0\"", "\"3\"", "-2", "spec.replicas: -2 is negative"},
      {"\"0\"", "\"3\"", "null", "spec.replicas: \"\" is not a whole number"},
      {"{}", "\"3\"", "1", "group-min-size]: \"\" is not a whole number"}};
  for (const auto& c : cases) {
    objects().Put(deployment_, absl::StrCat(R"({"metadata":{"annotations":{
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size":)",
                                            c.min, R"(,
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size":)",
                                            c.max, R"(}},"spec":{"replicas":)", c.replicas, "}}"));
    ASSERT_EQ(Refresh(), absl::OkStatus());
    const std::vector<CloudGroup> listed = Listed();
    ASSERT_THAT(listed, SizeIs(1)) << c.problem;
    EXPECT_TRUE(absl::IsInvalidArgument(listed[0].wrong));
    EXPECT_THAT(listed[0].wrong.message(), HasSubstr(std::string(kGroup) + ": "));
    EXPECT_THAT(listed[0].wrong.message(), HasSubstr(c.problem));
    EXPECT_FALSE(Instances().ok());
    EXPECT_FALSE(Increase(1).ok());
  }
  EXPECT_THAT(objects().writes, IsEmpty());
}

TEST_F(ClusterApiReads, OlderServersHaveV1beta1) {
  objects().objects["/apis/cluster.x-k8s.io"] =
      *Json::Parse(R"({"versions":[{"version":"v1beta1"}]})");
  objects().Put("/apis/cluster.x-k8s.io/v1beta1/namespaces/default/machinedeployments/workers",
                R"({"metadata":{"annotations":{
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size":"0",
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size":"3"}},"spec":{"replicas":1}})");
  ASSERT_EQ(Refresh(), absl::OkStatus());
  EXPECT_THAT(Listed(), SizeIs(1));
  EXPECT_EQ(Increase(1), absl::OkStatus());
}

TEST_F(ClusterApiReads, AServerWithoutClusterApi) {
  objects().objects.erase("/apis/cluster.x-k8s.io");
  EXPECT_TRUE(absl::IsNotFound(Refresh()));
  EXPECT_THAT(Refresh().message(), HasSubstr("is Cluster API installed?"));
  objects().objects["/apis/cluster.x-k8s.io"] = *Json::Parse(R"({"versions":7})");
  EXPECT_TRUE(absl::IsNotFound(Refresh()));
}

TEST_F(ClusterApiReads, EachFailedReadFailsTheRound) {
  cluster_.AddDeployment("workers", 0, 7, 1);
  objects().Put(absl::StrCat(FakeClusterApi::kRoot, "/namespaces/default/machinepools/p"),
                R"({"metadata":{"annotations":{
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size":"0",
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size":"3"}},"spec":{"replicas":1}})");
  for (const char* call : {"GET /apis/cluster", "LIST /apis/cluster.x-k8s.io/v1beta2/machined",
                           "LIST /apis/cluster.x-k8s.io/v1beta2/machinep",
                           "LIST /apis/cluster.x-k8s.io/v1beta2/machines"}) {
    NextCalls(call, Fails(absl::PermissionDeniedError("403")));
    EXPECT_TRUE(absl::IsPermissionDenied(Refresh())) << call;
  }
  EXPECT_EQ(Refresh(), absl::OkStatus());
  EXPECT_THAT(Listed(), SizeIs(2));
  objects().missing_collections.insert(absl::StrCat(FakeClusterApi::kRoot, "/machinepools"));
  EXPECT_EQ(Refresh(), absl::OkStatus()) << "MachinePools may be missing";
}

TEST_F(ClusterApiReads, MachinesAreInstances) {
  Still();
  cluster_.AddDeployment("workers", 0, 7, 4);
  PutMachine("a", R"("providerID":"aws:///a")", R"("nodeRef":{"name":"n"})");
  PutMachine("b", R"("providerID":"aws:///b")", "");
  PutMachine("c", "", "");
  PutMachine("d", R"("providerID":"aws:///d")", R"("nodeRef":{"name":"n"})",
             R"("deletionTimestamp":"2026-01-01T00:00:00Z",)");
  PutMachine("e", "", R"("deprecated":{"v1beta1":{"failureReason":"InsufficientResources",
      "failureMessage":"none left"}})");
  PutMachine("f", "", R"("phase":"Failed")");
  // Not of the group: without the controller, and of another deployment.
  objects().Put(FakeClusterApi::MachinePath("x"),
                R"({"metadata":{"labels":{"cluster.x-k8s.io/deployment-name":"workers"}}})");
  ASSERT_EQ(Refresh(), absl::OkStatus());
  const auto instances = Instances();
  ASSERT_TRUE(instances.ok()) << instances.status();
  const std::string place = "machine.cluster.x-k8s.io://default/";
  EXPECT_THAT(
      *instances,
      ElementsAre(
          CloudInstance{
              .id = "aws:///a", .state = InstanceState::kRunning, .former_id = place + "a"},
          CloudInstance{
              .id = "aws:///b", .state = InstanceState::kCreating, .former_id = place + "b"},
          CloudInstance{.id = place + "c", .state = InstanceState::kCreating, .placeholder = true},
          CloudInstance{
              .id = "aws:///d", .state = InstanceState::kDeleting, .former_id = place + "d"},
          CloudInstance{.id = place + "e",
                        .state = InstanceState::kCreating,
                        .error_code = "InsufficientResources",
                        .error_message = "none left",
                        .error_class = kOutOfResources,
                        .placeholder = true},
          CloudInstance{.id = place + "f",
                        .state = InstanceState::kCreating,
                        .error_code = "Failed",
                        .placeholder = true}));
}

TEST_F(ClusterApiReads, AMachineIsOfTheGroupWithItsNamespaceKindAndName) {
  Still();
  const std::string here = absl::StrCat(FakeClusterApi::kRoot, "/namespaces/default/");
  const std::string there = absl::StrCat(FakeClusterApi::kRoot, "/namespaces/other/");
  cluster_.AddDeployment("workers", 0, 7, 1);
  cluster_.AddDeployment("more", 0, 7, 1);
  const std::string group = objects().objects[deployment_].Compact();
  objects().Put(there + "machinedeployments/workers", group);
  objects().Put(here + "machinepools/workers", group);
  PutMachine("a", "", "");
  const std::string machine = objects().objects[FakeClusterApi::MachinePath("a")].Compact();
  objects().Put(there + "machines/b", machine);
  objects().Put(here + "machines/c",
                R"({"metadata":{"labels":{"cluster.x-k8s.io/pool-name":"workers"},
      "ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachinePool",
      "name":"workers","uid":"u"}]}})");
  ASSERT_EQ(Refresh(), absl::OkStatus());
  const std::string place = "machine.cluster.x-k8s.io://";
  const std::string other = "MachineDeployment/other/workers";
  const std::string pool = "MachinePool/default/workers";
  EXPECT_THAT(*Instances(), ElementsAre(Field(&CloudInstance::id, place + "default/a")));
  EXPECT_THAT(*Instances(other), ElementsAre(Field(&CloudInstance::id, place + "other/b")));
  EXPECT_THAT(*Instances(pool), ElementsAre(Field(&CloudInstance::id, place + "default/c")));
  EXPECT_THAT(*Instances("MachineDeployment/default/more"), IsEmpty());
  // A Machine that cannot be decoded may belong to any group of its kind.
  objects().objects[here + "machines/d"] = *Json::Parse(
      R"({"metadata":{"name":"d","labels":{"cluster.x-k8s.io/deployment-name":"workers"}}})");
  ASSERT_EQ(Refresh(), absl::OkStatus());
  for (const std::string& id : {std::string(kGroup), other}) {
    EXPECT_THAT(Instances(id).status().message(), HasSubstr("/d: metadata.uid: missing")) << id;
  }
  EXPECT_TRUE(Instances(pool).ok());
}

TEST_F(ClusterApiReads, AConditionThatLastsIsAnError) {
  Still();
  cluster_.AddDeployment("workers", 0, 7, 1);
  PutMachine("a", "", R"("conditions":[{"type":"InfrastructureReady","status":"False",
      "reason":"InstanceProvisionFailed","message":"quota exceeded"}])");
  PutMachine("b", "", R"("conditions":[{"type":"InfrastructureReady","status":"False",
      "reason":"NotReady","message":"in progress"},7,{"type":3}])");
  Rounds(2);
  EXPECT_EQ((*Instances())[0].error_code, "");
  Rounds(1);
  EXPECT_EQ((*Instances())[0].error_code, "InstanceProvisionFailed");
  EXPECT_EQ((*Instances())[0].error_class, kOutOfResources);
  EXPECT_EQ((*Instances())[1].error_code, "");
  objects().Change(FakeClusterApi::MachinePath("a"), R"({"status":{"conditions":[]}})");
  Rounds(1);
  EXPECT_EQ((*Instances())[0].error_code, "") << "it has passed";
}

TEST_F(ClusterApiReads, HostileMachinesDoNotCrash) {
  Still();
  cluster_.AddDeployment("workers", 0, 7, 1);
  const std::string path = FakeClusterApi::MachinePath("m");
  for (const char* text :
       {"{}", R"({"metadata":7})", R"({"metadata":{"labels":[]}})",
        R"({"metadata":{"labels":{"cluster.x-k8s.io/deployment-name":{}}},"spec":[],"status":7})",
        R"({"metadata":{"labels":{"cluster.x-k8s.io/deployment-name":"workers"},
            "ownerReferences":{"kind":"MachineSet"}},"status":{"conditions":{"a":1}}})"}) {
    objects().objects[path] = *Json::Parse(text);
    (void)Refresh();
    (void)Instances();
  }
}

TEST_F(ClusterApiReads, TheScopeIsANamespaceAndACluster) {
  cluster_.AddDeployment("workers", 0, 7, 1);
  objects().Change(deployment_, R"({"metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"c"}}})");
  for (const auto& [scope, groups] : {std::pair(ClusterApiScope{"default", "c"}, 1u),
                                      {ClusterApiScope{"other", ""}, 0u},
                                      {ClusterApiScope{"", "d"}, 0u}}) {
    ClusterApiGroups scoped(scope, &objects(), &time_);
    EXPECT_EQ(Write([&](auto done) { scoped.Refresh(std::move(done)); }), absl::OkStatus());
    size_t listed = 99;
    scoped.Groups(
        [&](const absl::StatusOr<std::vector<CloudGroup>>& list) { listed = list->size(); });
    EXPECT_EQ(listed, groups) << scope.ns << " " << scope.cluster_name;
  }
}

TEST_F(ClusterApiReads, PricesAndTemplatesOfAnnotations) {
  cluster_.AddDeployment("workers", 0, 7, 1);
  ASSERT_EQ(Refresh(), absl::OkStatus());
  const auto node = Template();
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(model::Get(node->allocatable, "cpu"), 4000);
  EXPECT_EQ(node->meta.name, kGroup);
  absl::StatusOr<double> price = 0.0;
  groups_.NodePrice({"", kGroup}, [&](const absl::StatusOr<double>& told) { price = told; });
  EXPECT_EQ(*price, 1.5);
  const std::string before = Listed()[0].debug;
  objects().Change(deployment_,
                   R"({"metadata":{"annotations":{"fairlead.dev/price-usd-per-hour":"dear"}}})");
  ASSERT_EQ(Refresh(), absl::OkStatus());
  EXPECT_NE(Listed()[0].debug, before) << "the template is read again";
  groups_.NodePrice({"", kGroup}, [&](const absl::StatusOr<double>& told) { price = told; });
  EXPECT_THAT(price.status().message(), HasSubstr("price-usd-per-hour]: \"dear\" is not a number"));
  objects().Change(deployment_,
                   R"({"metadata":{"annotations":{"fairlead.dev/price-usd-per-hour":null}}})");
  ASSERT_EQ(Refresh(), absl::OkStatus());
  groups_.NodePrice({"", kGroup}, [&](const absl::StatusOr<double>& told) { price = told; });
  EXPECT_TRUE(absl::IsUnimplemented(price.status()));
}

TEST_F(ClusterApiReads, CapacityOfTheMachineTemplate) {
  cluster_.AddDeployment("workers", 0, 7, 0);
  objects().Change(deployment_, R"({"metadata":{"annotations":{
      "capacity.cluster-autoscaler.kubernetes.io/cpu":null}},"spec":{"template":{"spec":{
      "infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"AWSMachineTemplate",
      "name":"big"}}}}})");
  ASSERT_EQ(Refresh(), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(Template().status())) << "the API group is missing";
  objects().objects["/apis/infrastructure.cluster.x-k8s.io"] =
      *Json::Parse(R"({"preferredVersion":{"version":"v1beta2"}})");
  EXPECT_TRUE(absl::IsFailedPrecondition(Template().status()));
  EXPECT_THAT(Template().status().message(), HasSubstr("/cpu]: missing, and the machine template"));
  objects().Put(
      "/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default/awsmachinetemplates/big",
      R"({"kind":"AWSMachineTemplate","status":{"capacity":{"cpu":"96","memory":"2Ti",
          "nvidia.com/gpu":"8"},"nodeInfo":{"architecture":"arm64"}}})");
  const auto node = Template();
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(model::Get(node->allocatable, "cpu"), 96000);
  EXPECT_EQ(model::Get(node->allocatable, "memory"), int64_t{16} << 30) << "the annotation counts";
  EXPECT_EQ(model::Get(node->allocatable, "nvidia.com/gpu"), 8000);
  EXPECT_EQ(node->meta.labels.Get("kubernetes.io/arch"), "arm64");
  NextCalls("GET /apis/infrastructure.cluster.x-k8s.io/v1beta2",
            Fails(absl::PermissionDeniedError("403")));
  EXPECT_TRUE(absl::IsPermissionDenied(Template().status()));
}

}  // namespace
}  // namespace fairlead::hook
