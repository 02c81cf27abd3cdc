// A state with two nodes that have devices, and what tests ask of it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "scheduler/model/testing/builders.h"
#include "scheduler/model/testing/device_builders.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/device_placement.h"
#include "scheduler/state/state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state::testing {

inline constexpr char kGpuClass[] = "gpu.nvidia.com";

// Devices 0..3 with the numa nodes 0, 1, 0, 1; the network cards of class "nic" are on n1 alone.
inline model::ResourceSlice MakeNumaSlice(absl::string_view node) {
  model::ResourceSlice slice = model::testing::MakeSlice(node, 4);
  for (size_t i = 0; i < slice.devices.size(); ++i) {
    slice.devices[i].attributes["numa"].value = int64_t(i % 2);
  }
  return slice;
}

class DeviceStateTest : public ::testing::Test {
 protected:
  DeviceStateTest() : state_(OurPods()) {
    for (const char* name : {"n0", "n1"}) {
      state_.UpsertNode(model::testing::MakeNode(name, 0));
      state_.UpsertDeviceObject(MakeNumaSlice(name));
    }
    state_.UpsertDeviceObject(model::testing::MakeSlice("n1", 1, "nic.io"));
    state_.UpsertDeviceObject(
        model::testing::MakeDeviceClass(kGpuClass, {"device.driver == \"gpu.nvidia.com\""}));
    state_.UpsertDeviceObject(
        model::testing::MakeDeviceClass("nic", {"device.driver == \"nic.io\""}));
  }
  ~DeviceStateTest() override { EXPECT_EQ(state_.CheckConsistency(), ""); }
  PodId Add(const std::string& name, std::vector<std::string> claims) {
    model::Pod pod = model::testing::PodBuilder("ns", name).Queue("q");
    pod.spec.resource_claims = std::move(claims);
    state_.UpsertPod(pod);
    return state_.FindPod("ns", name);
  }
  const model::PodSpec& Spec(PodId pod) { return *state_.class_of(pod).spec; }
  int64_t Charge(PodId pod) { return state_.class_of(pod).charge[model::kGpu]; }
  const std::vector<std::string>& Held(const char* claim) {
    return state_.devices().Find(claim)->devices;
  }
  // By numbers, as NodeResourcesFit does.
  bool Counts(PodId pod, const char* node) {
    return state_.class_of(pod).requests.FitsIn(state_.node(state_.FindNode(node)).Available());
  }
  // By devices, as DynamicResources does.
  ChoiceOutcome Choice(PodId pod, const char* node) {
    return PlaceDevices(
               state_.devices(), node, Spec(pod).requests,
               [&](const NodeDevice& d) { return state_.devices().HolderOf(d.key) == nullptr; })
        .outcome;
  }
  bool Suits(PodId pod, const char* node) {
    return Counts(pod, node) && Choice(pod, node) == ChoiceOutcome::kFound;
  }
  void Place(PodId pod, const char* node) {
    Transaction txn(state_);
    txn.Allocate(pod, state_.FindNode(node));
    txn.Commit();
  }

  // The API server has the binding.
  void Show(const std::string& name, const char* claim, const char* node) {
    model::Pod pod = model::testing::PodBuilder("ns", name).Queue("q").On(node);
    pod.spec.resource_claims = {claim};
    state_.UpsertPod(pod);
  }

  ClusterState state_;
};

}  // namespace fairlead::state::testing
