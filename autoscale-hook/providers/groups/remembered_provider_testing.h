// A provider of groups with what the hook keeps in NodeRequest.status, phase and provider id: the
// port has no tags, so after a restart the provider knows the machines that requests tell it. It
// adds both to orders that come again, repeats the orders that it has at the start of a process,
// and asks with the id after the provider has told it in a refusal. Thread-safety: one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/providers/contract_testing.h"
#include "autoscale-hook/providers/groups/groups_provider.h"

namespace fairlead::hook {

struct Remembered {
  std::string uid, type, id;
  bool launched = false, end_by_id = false;
};
using HookMemory = std::map<std::string, Remembered>;

class RememberedProvider final : public Provider, private ProviderListener {
 public:
  // A group's id is `prefix` and the type of the suite. `owners`: by machine id, the request.
  RememberedProvider(GroupsOptions options, Scheduler* time, std::unique_ptr<CloudGroups> owned,
                     CloudGroups* groups, std::string prefix, HookMemory* memory,
                     std::map<std::string, std::string>* owners)
      : prefix_(std::move(prefix)),
        memory_(memory),
        owners_(owners),
        owned_(std::move(owned)),
        provider_(std::move(options), time, groups) {}

  // Told each refusal of an end: what a user reads in NodeRequest.status.
  std::function<void(const std::string& message)> on_refusal = [](const std::string&) {};

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
      request.instance_type = absl::StrCat(prefix_, kept.type);  // a request does not change
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
      if (!given.status.ok()) on_refusal(std::string(given.status.message()));
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

  std::string prefix_;
  HookMemory* memory_;
  std::map<std::string, std::string>* owners_;
  ProviderListener* listener_ = nullptr;
  std::unique_ptr<CloudGroups> owned_;
  GroupsProvider provider_;
};

// The world of a provider of groups. The back end does not know requests, so the world remembers
// the request of each machine.
class RememberedWorld : public ContractWorld {
 public:
  std::set<std::string> Machines(const std::string& request) final {
    std::set<std::string> ids;
    for (const auto& [id, owner] : owners_) {
      if (owner == request && Exists(id)) ids.insert(id);
    }
    return ids;
  }

 protected:
  [[nodiscard]] virtual bool Exists(const std::string& id) const = 0;
  // Returns a provider with the memory of this world, which outlasts each provider.
  std::unique_ptr<RememberedProvider> Remember(GroupsOptions options,
                                               std::unique_ptr<CloudGroups> owned,
                                               CloudGroups* groups, std::string prefix) {
    return std::make_unique<RememberedProvider>(std::move(options), &time, std::move(owned), groups,
                                                std::move(prefix), &memory_, &owners_);
  }

 private:
  HookMemory memory_;
  std::map<std::string, std::string> owners_;  // by machine id, the request
};

}  // namespace fairlead::hook
