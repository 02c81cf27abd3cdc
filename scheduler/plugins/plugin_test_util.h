// A small cluster around one plugin, for the tests of this module.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/framework/framework.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/state/transaction.h"

namespace fairlead::plugins {

using framework::Capacity;
using framework::Code;
using model::testing::MakeNode;
using model::testing::PodBuilder;

class PluginTest : public ::testing::Test {
 protected:
  PluginTest() : state_(Options()) { EXPECT_TRUE(RegisterAll(registry_).ok()); }
  static state::StateOptions Options() {
    state::StateOptions options;
    options.scheduler_names = {"fairlead"};
    options.keep_images = true;
    options.sum_scoring_requests = true;
    return options;
  }

  // The one plugin of a framework; fails the test if the args are refused.
  std::unique_ptr<framework::Framework> Only(absl::string_view name, absl::string_view args = "") {
    auto made = framework::Framework::Make({"test", {{std::string(name), 1, std::string(args)}}},
                                           registry_);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : nullptr;
  }
  // The same for pods that share GPUs, which a profile without GpuSharing refuses: it is asked
  // last.
  std::unique_ptr<framework::Framework> OnlyForShares(absl::string_view name) {
    auto made =
        framework::Framework::Make({"test", {{std::string(name)}, {"GpuSharing"}}}, registry_);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : nullptr;
  }
  void AddNode(const model::Node& node) { state_.UpsertNode(node); }
  void AddPod(const model::Pod& pod) { state_.UpsertPod(pod); }
  // A waiting pod with this spec; its class is what Ctx() asks about.
  void Waiting(model::PodSpec spec) {
    model::Pod pod = PodBuilder("ns", "waiting");
    spec.ns = "ns";
    pod.spec = std::move(spec);
    state_.UpsertPod(pod);
  }
  framework::Context Ctx(Capacity capacity = Capacity::kNow) {
    const state::PodRecord& pod = state_.pod(state_.FindPod("ns", "waiting"));
    return {state_, state_.pod_class(pod.pod_class), pod.pod_class, capacity};
  }
  const state::NodeInfo& Node(absl::string_view name) {
    const state::NodeId id = state_.FindNode(name);
    EXPECT_NE(id, state::kNoId) << name;
    return state_.node(id);
  }
  // "" if the node passes, else the code's letter and the reason: "U ..", or "X .." if
  // unresolvable. Also checks that the answer without a status is the same.
  std::string Why(const framework::Framework& framework, absl::string_view node,
                  Capacity capacity = Capacity::kNow) {
    framework::Status why;
    const bool yes = framework.Filter(Ctx(capacity), Node(node), &why);
    EXPECT_EQ(framework.Filter(Ctx(capacity), Node(node), nullptr), yes);
    if (yes) return "";
    return (why.code == Code::kUnschedulableAndUnresolvable ? "X " : "U ") + why.reason +
           (why.detail.empty() ? "" : " " + why.detail);
  }
  // Where all nodes that exist are to be chosen from.
  int64_t Score(const framework::Framework& framework, absl::string_view node,
                Capacity capacity = Capacity::kNow) {
    const framework::Context context = Ctx(capacity);
    std::vector<framework::Kind> kinds;
    size_t at = 0;
    for (const auto& [name, id] : state_.nodes_by_name()) {
      if (!state_.node(id).exists) continue;
      if (name == node) at = kinds.size();
      kinds.push_back({&state_.node(id), 1});
    }
    return framework.Score(context, Node(node)) + framework.ScoreKinds(context, kinds)[at];
  }

  framework::Registry registry_;
  state::ClusterState state_;
};

}  // namespace fairlead::plugins
