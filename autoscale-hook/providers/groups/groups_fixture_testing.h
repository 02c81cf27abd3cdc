// A provider over a FakeCloud, and what it says. Thread-safety: one thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "autoscale-hook/machines/launch_set.h"
#include "autoscale-hook/providers/externalgrpc/externalgrpc_options.h"
#include "autoscale-hook/providers/groups/fake_cloud_testing.h"
#include "autoscale-hook/providers/groups/groups_provider.h"
#include "autoscale-hook/provisioning/failure.h"

namespace fairlead::hook {

class GroupsFixture : public ::testing::Test, public ProviderListener {
 protected:
  using Phase = model::NodeRequestPhase;
  struct Asked {
    int answers = 0;
    ProviderAnswer answer = absl::UnknownError("no answer yet");
  };
  struct Wanted {
    std::string name;
    std::string group = "g";
    Phase phase = Phase::kPending;
    std::string provider_id = {};
    std::string uid = {};  // empty: "u-" and the name
    bool whole = false;    // of the one atomic set of the call
  };

  void TearDown() override {
    for (const Asked& asked : asked_) EXPECT_LE(asked.answers, 1);
  }
  void Start() {
    options_.known_type = [this](absl::string_view name) { return configured_.Find(name); };
    provider_ = std::make_unique<GroupsProvider>(options_, &time_, &cloud_);
    provider_->Start(this);
  }
  std::vector<Asked*> LaunchSet(const std::vector<Wanted>& set) {
    std::vector<LaunchOrder> orders;
    std::vector<Asked*> made;
    for (const Wanted& wanted : set) {
      asked_.emplace_back();
      made.push_back(&asked_.back());
      model::LaunchNode launch;
      model::NodeRequest& request = launch.request.Own();
      request.meta.name = wanted.name;
      request.meta.uid = wanted.uid.empty() ? "u-" + wanted.name : wanted.uid;
      request.instance_type = wanted.group;
      request.phase = wanted.phase;
      request.provider_id = wanted.provider_id;
      orders.push_back({launch, [to = &asked_.back()](const ProviderAnswer& answer) {
                          ++to->answers;
                          to->answer = answer;
                        }});
    }
    std::vector<model::NodeRequest*> whole;
    for (size_t i = 0; i < set.size(); ++i) {
      if (set[i].whole) whole.push_back(&orders[i].launch.request.Own());
    }
    MarkLaunchSet(whole, /*atomic=*/true);
    provider_->Launch(std::move(orders));
    return made;
  }
  Asked* Launch(const Wanted& wanted) { return LaunchSet({wanted}).front(); }
  Asked* End(const std::string& name, const std::string& id = "") {
    asked_.emplace_back();
    provider_->Terminate({name, "externalgrpc", "node-of-" + name, id},
                         [to = &asked_.back()](const ProviderAnswer& answer) {
                           ++to->answers;
                           to->answer = answer;
                         });
    return &asked_.back();
  }
  void Pass(absl::Duration duration) { time_.Advance(duration); }

  void OnMachine(const MachineReport& report) override { reports_.push_back(report); }
  void OnOffers(absl::string_view, std::shared_ptr<const Catalog> offers) override {
    offers_.push_back(std::move(offers));
  }
  void OnProblem(absl::string_view, const absl::Status& problem) override {
    problems_.emplace_back(problem.message());
  }
  [[nodiscard]] std::vector<MachineReport> Reports(const std::string& name) const {
    std::vector<MachineReport> found;
    for (const MachineReport& report : reports_) {
      if (report.request_name == name) found.push_back(report);
    }
    return found;
  }
  // "i-0001" as the last report of the request tells it.
  [[nodiscard]] std::string IdOf(const std::string& name) const {
    const std::vector<MachineReport> found = Reports(name);
    return found.empty() ? "" : found.back().machine_id;
  }
  [[nodiscard]] std::optional<MachineState> StateOf(const std::string& name) const {
    const std::vector<MachineReport> found = Reports(name);
    if (found.empty()) return std::nullopt;
    return found.back().state;
  }
  // Does something else with the next calls of that name.
  using Behaviour = std::function<void(const FakeCloud::Work&, const FakeCloud::Reply&)>;
  void NextCalls(const std::string& call, const Behaviour& behaviour, int times = 1) {
    for (int i = 0; i < times; ++i) behaviours_[call].push_back(behaviour);
  }
  static Behaviour Fails(const absl::Status& status) {
    return [status](const FakeCloud::Work&, const FakeCloud::Reply& reply) { reply(status); };
  }
  static Behaviour LosesReply(const absl::Status& status) {
    return [status](const FakeCloud::Work& work, const FakeCloud::Reply& reply) {
      (void)work();
      reply(status);
    };
  }
  static Behaviour Never() {
    return [](const FakeCloud::Work&, const FakeCloud::Reply&) {};
  }
  static Behaviour Twice() {
    return [](const FakeCloud::Work& work, const FakeCloud::Reply& reply) {
      reply(work());
      reply(absl::OkStatus());
      reply(absl::PermissionDeniedError("late"));
    };
  }
  Behaviour Late(absl::Duration delay) {
    return [this, delay](const FakeCloud::Work& work, const FakeCloud::Reply& reply) {
      time_.After(delay, [work, reply] { reply(work()); });
    };
  }

  GroupsFixture() {
    cloud_.transport = [this, usual = cloud_.transport](const std::string& call,
                                                        const FakeCloud::Work& work,
                                                        const FakeCloud::Reply& reply) {
      std::deque<Behaviour>& behaviours = behaviours_[call];
      if (behaviours.empty()) return usual(call, work, reply);
      const Behaviour behaviour = behaviours.front();
      behaviours.pop_front();
      behaviour(work, reply);
    };
  }

  VirtualTime time_;
  FakeCloud cloud_{&time_};
  Catalog configured_ = Catalog::FromTypes({});
  GroupsOptions options_ = ExternalGrpcOptions();
  std::unique_ptr<GroupsProvider> provider_;
  std::deque<Asked> asked_;
  std::vector<MachineReport> reports_;
  std::vector<std::shared_ptr<const Catalog>> offers_;
  std::vector<std::string> problems_;
  std::map<std::string, std::deque<Behaviour>> behaviours_;
};

}  // namespace fairlead::hook
