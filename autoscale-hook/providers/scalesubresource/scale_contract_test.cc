// The contract of providers (contract_testing.h) for the provider scale-subresource, with an
// annotation by which the controller chooses.
#include "autoscale-hook/providers/groups/remembered_provider_testing.h"
#include "autoscale-hook/providers/scalesubresource/fake_scale_testing.h"
#include "autoscale-hook/providers/scalesubresource/scale_groups.h"

namespace fairlead::hook {
namespace {

class ScaleWorld final : public RememberedWorld {
 public:
  ScaleWorld() : cluster_(&time) {
    for (const char* type : {kUsualType, kLateType, kNeverType, kNoneType}) {
      configs_.push_back(cluster_.AddPool(type, 0, 0, type == kNoneType ? 0 : 1000));
    }
    cluster_.behaviours[kLateType].node_after = absl::Minutes(4);
    cluster_.behaviours[kNeverType].node_after = absl::InfiniteDuration();
    // A round of reads counts as one call of the suite, by the read of one Scale.
    const std::string first = absl::StrCat("GET ", FakeScale::PoolPath(kUsualType), "/scale");
    cluster_.objects.transport = [this, first](const std::string& call,
                                               const FakeObjects::Work& work,
                                               const FakeObjects::Reply& reply) {
      const bool writes = absl::StartsWith(call, "PATCH");
      if (writes || call == first) return calls.Call(writes, work, reply);
      time.After(absl::Milliseconds(20), [work, reply] { reply(work()); });
    };
  }
  [[nodiscard]] ProviderTraits traits() const override {
    return {.watches = true, .labels_nodes = false, .sees_starts = false};
  }
  std::unique_ptr<Provider> MakeProvider() override {
    auto groups = std::make_unique<ScaleGroups>(configs_, nullptr, &cluster_.objects, &time);
    CloudGroups* const borrowed = groups.get();
    auto provider =
        Remember(ScaleSubresourceOptions(), std::move(groups), borrowed, "Pool/default/");
    // A user does what the message says: a node was lost before the controller acted.
    provider->on_refusal = [this](const std::string& message) {
      // A place that a process has left behind by its end.
      if (absl::StrContains(message, "lower the size yourself") &&
          absl::StrContains(message, kNeverType)) {
        cluster_.objects.Change(FakeScale::PoolPath(kNeverType), R"({"spec":{"replicas":0}})");
      }
      constexpr absl::string_view kAdvice = "take annotation fairlead.dev/removed-from off node ";
      const size_t at = message.find(std::string(kAdvice));
      if (at == std::string::npos) return;
      const std::string path = FakeScale::NodePath(message.substr(at + kAdvice.size()));
      if (!cluster_.objects.objects.contains(path)) return;
      cluster_.objects.Change(path,
                              R"({"metadata":{"annotations":{"fairlead.dev/removed-from":null}}})");
    };
    return provider;
  }
  // The controller makes another one, of no request.
  void Vanish(const std::string& request) override {
    for (const std::string& id : Machines(request)) {
      const std::string node = id.substr(id.rfind('/') + 1);
      cluster_.Lose(node, node.substr(0, node.rfind('-')));
    }
  }
  void AddForeigner(const std::string& name) override {
    cluster_.AddNode(kUsualType, name);
    cluster_.objects.Change(
        FakeScale::PoolPath(kUsualType),
        absl::StrCat(R"({"spec":{"replicas":)", cluster_.Replicas(kUsualType) + 1, "}}"));
    time.Advance(absl::Seconds(1));
  }
  bool HasForeigner(const std::string& name) override {
    return cluster_.Has(FakeScale::IdOfNode(name));
  }

 private:
  [[nodiscard]] bool Exists(const std::string& id) const override { return cluster_.Has(id); }

  FakeScale cluster_;
  std::vector<model::ScaleGroup> configs_;
};

std::unique_ptr<ContractWorld> MakeScaleWorld() { return std::make_unique<ScaleWorld>(); }

INSTANTIATE_TEST_SUITE_P(ScaleSubresource, ProviderContract, ::testing::Values(&MakeScaleWorld));

}  // namespace
}  // namespace fairlead::hook
