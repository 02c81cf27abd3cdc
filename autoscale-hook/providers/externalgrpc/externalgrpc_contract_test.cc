// The contract of providers (contract_testing.h) for ExternalGrpcProvider.
//
// The protocol has no tags: after a restart the provider knows the machines that requests tell it.
// So the world has what the hook keeps in NodeRequest.status, phase and provider id: it adds both
// to orders that come again, repeats the orders that it has at the start of a process, and asks
// with the id after the provider has told it in a refusal.
#include "autoscale-hook/providers/externalgrpc/externalgrpc_provider.h"
#include "autoscale-hook/providers/externalgrpc/fake_cloud_testing.h"

namespace fairlead::hook {
namespace {

struct Remembered {
  std::string uid, type, id;
  bool launched = false, end_by_id = false;
};
using HookMemory = std::map<std::string, Remembered>;

class RememberedProvider final : public Provider, private ProviderListener {
 public:
  RememberedProvider(VirtualTime* time, FakeCloud* cloud, HookMemory* memory,
                     std::map<std::string, std::string>* owners)
      : memory_(memory), owners_(owners), provider_(Options(), time, cloud) {}

  [[nodiscard]] absl::string_view name() const override { return provider_.name(); }
  void Start(ProviderListener* listener) override {
    listener_ = listener;
    provider_.Start(this);
    std::vector<LaunchOrder> orders;
    for (const auto& [name, kept] : *memory_) {
      if (!kept.launched) continue;
      orders.emplace_back();
      orders.back().launch.request.Own().meta.name = name;
      orders.back().launch.request.Own().meta.uid = kept.uid;
      orders.back().launch.request.Own().instance_type = kept.type;
      orders.back().answer = [](const ProviderAnswer&) {};
    }
    Launch(std::move(orders));
  }
  void ReportAll() override { provider_.ReportAll(); }
  void Launch(std::vector<LaunchOrder> orders) override {
    for (LaunchOrder& order : orders) {
      model::NodeRequest& request = order.launch.request.Own();
      Remembered& kept = (*memory_)[request.meta.name];
      if (kept.uid != request.meta.uid) kept = {request.meta.uid, request.instance_type, ""};
      request.instance_type = kept.type;  // a request does not change
      if (kept.launched) request.phase = model::NodeRequestPhase::kLaunched;
      request.provider_id = kept.id;
      order.answer = [this, name = request.meta.name,
                      answer = std::move(order.answer)](const ProviderAnswer& given) {
        if (given.status.ok()) (*memory_)[name].launched = true;
        Keep(name, given.machine_id);
        answer(given);
      };
    }
    provider_.Launch(std::move(orders));
  }
  void Terminate(const model::TerminateNode& terminate, Answer answer) override {
    model::TerminateNode asked = terminate;
    const std::string name = terminate.request_name;
    const auto kept = memory_->find(name);
    if (asked.provider_id.empty() && kept != memory_->end() && kept->second.end_by_id) {
      asked.provider_id = kept->second.id;
    }
    provider_.Terminate(asked, [this, name, id = asked.provider_id,
                                answer](const ProviderAnswer& given) {
      const auto known = memory_->find(name);
      if (known != memory_->end() && absl::IsFailedPrecondition(given.status)) {
        Keep(name, given.machine_id);
        known->second.end_by_id = !given.machine_id.empty();
      }
      if (known != memory_->end() && given.status.ok() && (id.empty() || id == known->second.id)) {
        memory_->erase(known);
      }
      answer(given);
    });
  }

 private:
  static ExternalGrpcOptions Options() { return {}; }
  void Keep(const std::string& name, const std::string& id) {
    if (id.empty()) return;
    (*memory_)[name].id = id;
    (*owners_)[id] = name;
  }
  void OnMachine(const MachineReport& report) override {
    Keep(report.request_name, report.machine_id);
    if (report.state == MachineState::kGone) memory_->erase(report.request_name);
    listener_->OnMachine(report);
  }
  void OnOffers(absl::string_view provider, std::shared_ptr<const Catalog> offers) override {
    listener_->OnOffers(provider, std::move(offers));
  }
  void OnProblem(absl::string_view provider, const absl::Status& problem) override {
    listener_->OnProblem(provider, problem);
  }

  HookMemory* memory_;
  std::map<std::string, std::string>* owners_;
  ProviderListener* listener_ = nullptr;
  ExternalGrpcProvider provider_;
};

class ExternalGrpcWorld final : public ContractWorld {
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
    return std::make_unique<RememberedProvider>(&time, &cloud_, &memory_, &owners_);
  }
  std::set<std::string> Machines(const std::string& request) override {
    std::set<std::string> ids;
    for (const auto& [id, owner] : owners_) {
      if (owner == request && cloud_.Has(id)) ids.insert(id);
    }
    return ids;
  }
  void Vanish(const std::string& request) override {
    for (const std::string& id : Machines(request)) cloud_.Vanish(id);
  }
  void AddForeigner(const std::string& name) override {
    foreigners_[name] = cloud_.AddMachine(kUsualType);
  }
  bool HasForeigner(const std::string& name) override { return cloud_.Has(foreigners_[name]); }

 private:
  FakeCloud cloud_;
  HookMemory memory_;
  std::map<std::string, std::string> owners_;  // id -> request
  std::map<std::string, std::string> foreigners_;
};

std::unique_ptr<ContractWorld> MakeExternalGrpcWorld() {
  return std::make_unique<ExternalGrpcWorld>();
}

INSTANTIATE_TEST_SUITE_P(ExternalGrpc, ProviderContract, ::testing::Values(&MakeExternalGrpcWorld));

}  // namespace
}  // namespace fairlead::hook
