// A hook with a world around it that tests control by hand. Header only; never part of the product.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook.h"
#include "autoscale-hook/hook_testing.h"
#include "gtest/gtest.h"

namespace fairlead::hook::testing {

inline const absl::Time kStart = absl::FromUnixSeconds(1800000000);

using Service = DemandOutcome::Service;

// Of one outcome, each followed by "; ".
inline std::string DetailsOf(const DemandOutcome& outcome) {
  std::string all;
  for (const std::string& detail : outcome.details) all += detail + "; ";
  return all;
}

// The API server's objects and the engine's knowledge, changed by hand.
class HookTest : public ::testing::Test {
 protected:
  HookTest() {
    options_.provider = "kwok";
    options_.known_providers = {"aws", "kwok"};
    options_.gathering_quiet = absl::ZeroDuration();  // tests of gathering set it
    Restart();
  }
  void Restart() {
    hook_ = std::make_unique<Hook>(options_, &catalog_);
    shown_.clear();
  }
  // The configuration is read again.
  void Reload() {
    auto next = std::make_unique<Hook>(options_, &catalog_);
    next->Continue(*hook_);
    hook_ = std::move(next);
    shown_.clear();
  }
  void Show() { ShowRequests(*hook_, requests_, shown_); }

  StepOutput Step(const Demand& demand = {}) {
    Show();
    StepInput input;
    input.now = now_;
    input.demand = &demand;
    for (const model::NodePool& pool : pools_) input.pools.push_back(&pool);
    std::vector<NodeUse> uses;
    uses.reserve(nodes_.size());
    for (const auto& [name, node] : nodes_) uses.push_back(node);
    input.nodes = &uses;
    input.node_versions = versions_.Of(uses);
    input.evacuation = evacuation_;
    input.queue_caps = &queue_caps_;
    StepOutput out = hook_->Step(input, placement_);
    if (answer_lists_ && AnswerList(out, absl::OkStatus())) {
      static const Demand kNone;  // it was planned for already
      input.demand = &kNone;
      const StepOutput more = hook_->Step(input, placement_);
      out.actions.insert(out.actions.end(), more.actions.begin(), more.actions.end());
      out.ends.insert(out.ends.end(), more.ends.begin(), more.ends.end());
      out.withdrawn.insert(out.withdrawn.end(), more.withdrawn.begin(), more.withdrawn.end());
      out.wake_at = more.wake_at;
    }
    asked_.insert(asked_.end(), out.ends.begin(), out.ends.end());
    return out;
  }
  // Answers the list of nodes in `out`; without one, false. The nodes of the test are those that
  // the watch has shown.
  bool AnswerList(const StepOutput& out, const absl::Status& status,
                  const std::vector<ListedNode>& unseen = {}) {
    if (out.node_list == 0) return false;
    ++lists_;
    hook_->OnNodesListed(out.node_list, status, unseen, now_);
    return true;
  }
  // The effect of the actions on the API server; the engine learns of ordered nodes.
  void Apply(const StepOutput& out) {
    for (const model::Action& action : out.actions) {
      if (const auto* create = std::get_if<model::CreateNodeRequest>(&action.what)) {
        model::NodeRequest request = create->request;
        request.meta.uid = absl::StrCat("uid-", ++uids_);
        request.meta.creation = now_;
        EXPECT_TRUE(requests_.emplace(request.meta.name, request).second) << "name taken";
      } else if (const auto* update = std::get_if<model::UpdateNodeRequestStatus>(&action.what)) {
        requests_.at(update->request->meta.name) = update->request;
      } else if (const auto* remove = std::get_if<model::DeleteNodeRequest>(&action.what)) {
        EXPECT_EQ(requests_.at(remove->name).meta.uid, remove->uid);
        requests_.erase(remove->name);
        nodes_.erase(remove->name);
      } else if (const auto* taint = std::get_if<model::SetNodeTaint>(&action.what)) {
        EXPECT_EQ(taint->taint.key, model::kRemovalTaint);
        EXPECT_EQ(taint->taint.effect, model::TaintEffect::kNoSchedule);
        nodes_.at(taint->node).removal_tainted = taint->present;
      }
    }
    for (const std::string& name : out.withdrawn) {
      auto it = nodes_.find(name);
      if (it != nodes_.end() && !it->second.registered) nodes_.erase(it);
    }
    for (const StepOutput::NewNode& created : out.created) {
      if (created.adopted) continue;  // its node is there
      NodeUse use;
      use.name = use.node_request = created.request.meta.name;
      use.needed = true;
      nodes_[use.name] = use;
    }
  }
  StepOutput StepAndApply(const Demand& demand = {}) {
    StepOutput out = Step(demand);
    Apply(out);
    return out;
  }
  template <typename T>
  static std::vector<T> All(const StepOutput& out) {
    std::vector<T> all;
    for (const model::Action& action : out.actions) {
      if (const T* what = std::get_if<T>(&action.what)) all.push_back(*what);
    }
    return all;
  }
  std::string TheName() const { return requests_.size() == 1 ? requests_.begin()->first : "?"; }
  model::NodeRequest& The() { return requests_.begin()->second; }
  model::NodeRequestPhase ThePhase() { return The().phase; }
  // The provider's answer to the launch of the one request, or to all ends asked for since the last
  // answer.
  void Answer(bool launch, const absl::Status& status, const std::string& machine_id = "") {
    if (launch) {
      return hook_->OnProviderResult({TheName(), The().meta.uid, "", true}, status, now_,
                                     machine_id);
    }
    for (const ProviderCall& end : std::exchange(asked_, {})) {
      hook_->OnProviderResult(end, status, now_, machine_id);
    }
  }
  void Launched(const model::LaunchNode& launch) {
    const model::ObjectMeta& request = launch.request->meta;
    hook_->OnProviderResult({request.name, request.uid, "", true}, absl::OkStatus(), now_);
  }
  // Provisions one node and launches it at the provider.
  void Buy() {
    StepAndApply({Item("team/a", Spec(1000, 4, 1), 1)});
    ASSERT_EQ(requests_.size(), 1u);
    ASSERT_EQ(All<model::LaunchNode>(StepAndApply()).size(), 1u);
  }
  void BuyLaunched() {
    Buy();
    Answer(true, absl::OkStatus());
    StepAndApply();
  }
  void BuyReady() {
    BuyLaunched();
    nodes_.at(TheName()).registered = true;
    nodes_.at(TheName()).uid = "node-uid";
    nodes_.at(TheName()).ready = true;
    StepAndApply();
    ASSERT_EQ(ThePhase(), model::NodeRequestPhase::kReady);
  }
  // A request that the provider launched twice.
  void BuyTwo() {
    BuyReady();
    nodes_.at(TheName()).provider_id = "cloud://1";
    nodes_["ip-2"] = Arrived("ip-2", TheName());
    nodes_["ip-2"].uid = "uid-ip-2";
    nodes_["ip-2"].provider_id = "cloud://2";
    StepAndApply();
  }
  // Runs two steps: the first decides and writes, the second acts.
  StepOutput StepTwice() {
    StepAndApply();
    return StepAndApply();
  }
  // Leaves the node unneeded for so long that it has the taint.
  void LeaveUnneeded() {
    nodes_.at(TheName()).needed = false;
    StepAndApply();
    now_ += options_.unneeded_after;
    StepAndApply();
  }
  // The same for a node that has not come: its request is cancelled.
  void CancelUnneeded() {
    nodes_.at(TheName()).needed = false;
    StepAndApply();
    now_ += options_.cancel_after;
    StepAndApply();
    ASSERT_EQ(ThePhase(), model::NodeRequestPhase::kDraining);
  }
  // A node that came for the request, or without a request.
  static NodeUse Arrived(const std::string& name, const std::string& node_request) {
    NodeUse node;
    node.name = name;
    node.node_request = node_request;
    node.registered = node.ready = true;
    return node;
  }

  Catalog catalog_ =
      Catalog::FromTypes({Type("g.1", 4, 16, 1, kDollar), Type("h.1", 4, 16, 1, 2 * kDollar)});
  HookOptions options_;
  std::unique_ptr<Hook> hook_;
  ArithmeticPlacement placement_;
  Evacuation* evacuation_ = nullptr;
  std::vector<QueueCap> queue_caps_;
  absl::Time now_ = kStart;
  std::map<std::string, model::NodeRequest> requests_;
  std::map<std::string, std::string> shown_;  // to the hook: name -> uid
  std::map<std::string, NodeUse> nodes_;
  NodeVersions versions_;
  std::vector<model::NodePool> pools_;
  std::vector<ProviderCall> asked_;  // ends without an answer
  int uids_ = 0;
  bool answer_lists_ = true;  // at once, with what the watch has shown
  int lists_ = 0;             // that were answered
};

}  // namespace fairlead::hook::testing
