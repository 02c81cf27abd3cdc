// The contract of providers (contract_testing.h) for the provider cluster-api.
#include "autoscale-hook/providers/clusterapi/cluster_api_groups.h"
#include "autoscale-hook/providers/clusterapi/fake_cluster_api_testing.h"
#include "autoscale-hook/providers/groups/remembered_provider_testing.h"

namespace fairlead::hook {
namespace {

class ClusterApiWorld final : public RememberedWorld {
 public:
  ClusterApiWorld() : cluster_(&time) {
    for (const char* type : {kUsualType, kLateType, kNeverType, kNoneType}) {
      cluster_.AddDeployment(type, 0, 1000);
    }
    cluster_.behaviours[kLateType].node_after = absl::Minutes(4);
    cluster_.behaviours[kNeverType].node_after = absl::InfiniteDuration();
    cluster_.behaviours[kNoneType].failure_reason = "InsufficientResources";
    // A round of reads counts as one call of the suite, by its list of deployments: the suite
    // bounds rounds. An operation of several calls is late by the latency of each.
    cluster_.objects.transport = [this](const std::string& call, const FakeObjects::Work& work,
                                        const FakeObjects::Reply& reply) {
      const bool writes = absl::StartsWith(call, "PATCH") || absl::StartsWith(call, "DELETE");
      const bool begins =
          call == absl::StrCat("LIST ", FakeClusterApi::kRoot, "/machinedeployments");
      if (writes || begins) {
        return calls.Call(writes, work, reply);
      }
      time.After(absl::Milliseconds(20), [work, reply] { reply(work()); });
    };
  }
  [[nodiscard]] ProviderTraits traits() const override {
    return {.watches = true, .labels_nodes = false};
  }
  std::unique_ptr<Provider> MakeProvider() override {
    auto groups = std::make_unique<ClusterApiGroups>(ClusterApiScope(), &cluster_.objects, &time);
    CloudGroups* const borrowed = groups.get();
    return Remember(ClusterApiOptions(), std::move(groups), borrowed, "MachineDeployment/default/");
  }
  // Its MachineSet makes another one, of no request.
  void Vanish(const std::string& request) override {
    for (const std::string& id : Machines(request)) {
      cluster_.objects.BeginDeletion(cluster_.PathOfId(id));
    }
  }
  void AddForeigner(const std::string& name) override {
    const std::string path = FakeClusterApi::DeploymentPath(kUsualType);
    cluster_.objects.Change(
        path, absl::StrCat(R"({"spec":{"replicas":)", cluster_.Replicas(kUsualType) + 1, "}}"));
    time.Advance(absl::Minutes(1));  // one that is being created may be taken after a restart
    foreigners_[name] = cluster_.Machines(kUsualType).back();
  }
  bool HasForeigner(const std::string& name) override {
    const std::vector<std::string> machines = cluster_.Machines(kUsualType);
    return std::find(machines.begin(), machines.end(), foreigners_[name]) != machines.end();
  }

 private:
  [[nodiscard]] bool Exists(const std::string& id) const override { return cluster_.Has(id); }

  FakeClusterApi cluster_;
  std::map<std::string, std::string> foreigners_;
};

std::unique_ptr<ContractWorld> MakeClusterApiWorld() { return std::make_unique<ClusterApiWorld>(); }

INSTANTIATE_TEST_SUITE_P(ClusterApi, ProviderContract, ::testing::Values(&MakeClusterApiWorld));

}  // namespace
}  // namespace fairlead::hook
