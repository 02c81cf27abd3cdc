// A fixture for implementations of CloudGroups over FakeObjects: makes a call, lets virtual time
// pass until the call is answered, and returns the answer. Thread-safety: one thread.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autoscale-hook/providers/groups/cloud_groups.h"
#include "autoscale-hook/providers/groups/fake_objects_testing.h"

namespace fairlead::hook {

class CloudGroupsFixture : public ::testing::Test, protected ScriptedCalls {
 protected:
  // `group`: the id for calls that name no group. `step`: the virtual time between two looks for an
  // answer; controllers act in that time.
  CloudGroupsFixture(std::string group, absl::Duration step)
      : group_(std::move(group)), step_(step) {}

  // The implementation under test.
  virtual CloudGroups& groups() = 0;

  absl::Status Write(const std::function<void(CloudGroups::Done)>& call) {
    const auto answer = std::make_shared<std::optional<absl::Status>>();
    call([answer](const absl::Status& status) {
      EXPECT_FALSE(answer->has_value()) << "answered twice";
      *answer = status;
    });
    const absl::Duration end = time_.now() + absl::Minutes(2);
    while (time_.now() < end && !answer->has_value()) time_.Advance(step_);
    return answer->value_or(absl::UnknownError("no answer"));
  }
  absl::Status Refresh() {
    return Write([this](auto done) { groups().Refresh(std::move(done)); });
  }
  absl::Status Increase(int64_t delta, const std::string& group = "") {
    return Write([&](auto done) { groups().IncreaseSize(Named(group), {delta}, std::move(done)); });
  }
  absl::Status Decrease(int64_t delta, const std::string& group = "") {
    return Write(
        [&](auto done) { groups().DecreaseTargetSize(Named(group), delta, std::move(done)); });
  }
  absl::Status DeleteNode(const CloudNode& node, const std::string& group = "") {
    return Write([&](auto done) { groups().DeleteNodes(Named(group), {node}, std::move(done)); });
  }
  absl::StatusOr<int64_t> Target(const std::string& group = "") {
    return Read<int64_t>([&](auto answer) { groups().TargetSize(Named(group), answer); });
  }
  absl::StatusOr<std::vector<CloudInstance>> ListedInstances(const std::string& group = "") {
    return Read<std::vector<CloudInstance>>(
        [&](auto answer) { groups().Nodes(Named(group), answer); });
  }
  absl::StatusOr<model::Node> Template(const std::string& group = "") {
    return Read<model::Node>([&](auto answer) { groups().TemplateNode(Named(group), answer); });
  }

  VirtualTime time_;

 private:
  [[nodiscard]] const std::string& Named(const std::string& group) const {
    return group.empty() ? group_ : group;
  }
  // Lets time pass only if the answer needs calls to the API.
  template <typename T>
  absl::StatusOr<T> Read(const std::function<void(CloudGroups::Answer<T>)>& call) {
    const auto read = std::make_shared<std::optional<absl::StatusOr<T>>>();
    call([read](absl::StatusOr<T> answer) { *read = std::move(answer); });
    if (!read->has_value()) time_.Advance(absl::Seconds(1));
    return read->value_or(absl::UnknownError("no answer"));
  }

  const std::string group_;
  const absl::Duration step_;
};

}  // namespace fairlead::hook
