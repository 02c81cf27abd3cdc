// ClusterApiGroups over a FakeClusterApi. Thread-safety: one thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autoscale-hook/providers/clusterapi/cluster_api_groups.h"
#include "autoscale-hook/providers/clusterapi/fake_cluster_api_testing.h"
#include "autoscale-hook/providers/groups/cloud_groups_fixture_testing.h"

namespace fairlead::hook {

class ClusterApiFixture : public CloudGroupsFixture {
 protected:
  static constexpr char kGroup[] = "MachineDeployment/default/workers";

  ClusterApiFixture() : CloudGroupsFixture(kGroup, absl::Seconds(1)) { Script(objects(), time_); }
  CloudGroups& groups() override { return groups_; }
  FakeObjects& objects() { return cluster_.objects; }

  static Behaviour Twice() {
    return [](const FakeObjects::Work& work, const FakeObjects::Reply& reply) {
      reply(work());
      reply(work());
    };
  }
  static Behaviour Never() {
    return [](const FakeObjects::Work&, const FakeObjects::Reply&) {};
  }
  Behaviour Late(absl::Duration delay) {
    return [this, delay](const FakeObjects::Work& work, const FakeObjects::Reply& reply) {
      time_.After(delay, [work, reply] { reply(work()); });
    };
  }

  void Rounds(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      EXPECT_EQ(Refresh(), absl::OkStatus());
      time_.Advance(absl::Seconds(2));
    }
  }
  absl::Status Remove(const std::string& instance, const std::string& group = "") {
    return DeleteNode({instance, "node"}, group);
  }
  std::vector<CloudGroup> Listed() {
    std::vector<CloudGroup> listed;
    groups_.Groups([&](absl::StatusOr<std::vector<CloudGroup>> list) { listed = *list; });
    return listed;
  }
  absl::StatusOr<std::vector<CloudInstance>> Instances(const std::string& group = "") {
    return ListedInstances(group);
  }
  // A deployment of that many machines that run, and its machines' names.
  std::vector<std::string> Running(int machines, int min_size = 0) {
    cluster_.AddDeployment("workers", min_size, 10, machines);
    time_.Advance(absl::Minutes(2));
    EXPECT_EQ(Refresh(), absl::OkStatus());
    objects().writes.clear();
    return cluster_.Machines("workers");
  }
  [[nodiscard]] std::string MarkOf(const std::string& machine) const {
    return cluster_.objects.TextOf(FakeClusterApi::MachinePath(machine),
                                   {"metadata", "annotations", kDeleteMachineAnnotation});
  }
  [[nodiscard]] int Replicas() const { return cluster_.Replicas("workers"); }
  static std::string Id(const std::string& machine) { return FakeClusterApi::IdOfMachine(machine); }

  const std::string deployment_ = FakeClusterApi::DeploymentPath("workers");
  const std::string patch_deployment_ = "PATCH " + deployment_;
  const std::string patch_machine_ = absl::StrCat("PATCH ", FakeClusterApi::MachinePath(""));
  FakeClusterApi cluster_{&time_};
  ClusterApiGroups groups_{ClusterApiScope(), &cluster_.objects, &time_};
};

}  // namespace fairlead::hook
