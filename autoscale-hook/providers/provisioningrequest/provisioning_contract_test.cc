// The contract of providers (contract_testing.h) for the provider provisioning-request.
#include "autoscale-hook/providers/groups/remembered_provider_testing.h"
#include "autoscale-hook/providers/provisioningrequest/fake_autoscaler_testing.h"
#include "autoscale-hook/providers/provisioningrequest/provisioning_groups.h"

namespace fairlead::hook {
namespace {

class ProvisioningWorld final : public RememberedWorld {
 public:
  ProvisioningWorld() : cluster_(&time) {
    settings_.ns = FakeAutoscaler::kNamespace;
    settings_.arrival_timeout = absl::Minutes(5);
    for (const char* type : {kUsualType, kLateType, kNeverType, kNoneType}) {
      settings_.groups.push_back(cluster_.AddPool(type, 1000));
    }
    cluster_.behaviours[kLateType].node_after = absl::Minutes(4);
    cluster_.behaviours[kNeverType].node_after = absl::InfiniteDuration();
    cluster_.behaviours[kNoneType].stock = 0;
    // A round of reads counts as one call of the suite, by its list of requests.
    const std::string first = absl::StrCat("LIST ", FakeAutoscaler::RequestsPath());
    cluster_.objects.transport = [this, first](const std::string& call,
                                               const FakeObjects::Work& work,
                                               const FakeObjects::Reply& reply) {
      const bool reads = absl::StartsWith(call, "LIST") || absl::StartsWith(call, "GET");
      if (!reads || call == first) return calls.Call(!reads, work, reply);
      time.After(absl::Milliseconds(20), [work, reply] { reply(work()); });
    };
  }
  [[nodiscard]] ProviderTraits traits() const override {
    return {.watches = true, .labels_nodes = false};
  }
  std::unique_ptr<Provider> MakeProvider() override {
    auto groups =
        std::make_unique<ProvisioningGroups>(settings_, nullptr, &cluster_.objects, &time);
    CloudGroups* const borrowed = groups.get();
    return Remember(ProvisioningRequestOptions(), std::move(groups), borrowed,
                    "ProvisioningRequest/");
  }
  // A node is lost, or the capacity of one that has not come is taken back. It is not replaced.
  void Vanish(const std::string& request) override {
    const std::set<std::string> machines = Machines(request);
    for (const std::string& id : machines) cluster_.objects.Erase(cluster_.NodeOfId(id));
    const std::string path = cluster_.RequestOf(request);
    if (machines.empty() && !path.empty()) cluster_.Revoke(path);
  }
  void AddForeigner(const std::string& name) override { cluster_.AddNode(kUsualType, name); }
  bool HasForeigner(const std::string& name) override {
    return cluster_.objects.objects.contains(FakeAutoscaler::NodePath(name));
  }

 private:
  [[nodiscard]] bool Exists(const std::string& id) const override {
    return !cluster_.NodeOfId(id).empty();
  }

  FakeAutoscaler cluster_;
  model::ProvisioningSettings settings_;
};

std::unique_ptr<ContractWorld> MakeProvisioningWorld() {
  return std::make_unique<ProvisioningWorld>();
}

INSTANTIATE_TEST_SUITE_P(ProvisioningRequest, ProviderContract,
                         ::testing::Values(&MakeProvisioningWorld));

}  // namespace
}  // namespace fairlead::hook
