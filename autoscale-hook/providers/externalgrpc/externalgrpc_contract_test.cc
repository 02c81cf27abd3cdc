// The contract of providers (contract_testing.h) for the provider externalgrpc.
#include "autoscale-hook/providers/externalgrpc/externalgrpc_options.h"
#include "autoscale-hook/providers/groups/fake_cloud_testing.h"
#include "autoscale-hook/providers/groups/remembered_provider_testing.h"

namespace fairlead::hook {
namespace {

class ExternalGrpcWorld final : public RememberedWorld {
 public:
  ExternalGrpcWorld() : cloud_(&time) {
    cloud_.AddGroup(kUsualType);
    cloud_.AddGroup(kLateType).runs_after = absl::Minutes(4);
    cloud_.AddGroup(kNeverType).runs_after = absl::InfiniteDuration();
    cloud_.AddGroup(kNoneType).error_code = "out-of-stock";
    // A round of reads counts as one call of the suite, by its Refresh: the suite bounds rounds.
    // Faults of the other reads are in the tests of reads.
    cloud_.transport = [this](const std::string& call, const FakeCloud::Work& work,
                              const FakeCloud::Reply& reply) {
      const bool writes = call == "NodeGroupIncreaseSize" || call == "NodeGroupDeleteNodes" ||
                          call == "NodeGroupDecreaseTargetSize";
      if (writes || call == "Refresh") return calls.Call(writes, work, reply);
      time.After(absl::Milliseconds(20), [work, reply] { reply(work()); });
    };
  }
  [[nodiscard]] ProviderTraits traits() const override {
    return {.watches = true, .labels_nodes = false};
  }
  std::unique_ptr<Provider> MakeProvider() override {
    return Remember(ExternalGrpcOptions(), nullptr, &cloud_, "");
  }
  void Vanish(const std::string& request) override {
    for (const std::string& id : Machines(request)) cloud_.Vanish(id);
  }
  void AddForeigner(const std::string& name) override {
    foreigners_[name] = cloud_.AddMachine(kUsualType);
  }
  bool HasForeigner(const std::string& name) override { return cloud_.Has(foreigners_[name]); }

 private:
  [[nodiscard]] bool Exists(const std::string& id) const override { return cloud_.Has(id); }

  FakeCloud cloud_;
  std::map<std::string, std::string> foreigners_;
};

std::unique_ptr<ContractWorld> MakeExternalGrpcWorld() {
  return std::make_unique<ExternalGrpcWorld>();
}

INSTANTIATE_TEST_SUITE_P(ExternalGrpc, ProviderContract, ::testing::Values(&MakeExternalGrpcWorld));

}  // namespace
}  // namespace fairlead::hook
