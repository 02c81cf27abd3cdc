// A provider of groups of equal machines (cloud_groups.h): externalgrpc, cluster-api,
// scale-subresource and provisioning-request, which differ in their port, name and words. It offers
// each group as an instance type of the group's id, raises the sizes of groups, and deletes named
// machines. order_tracker.h has the rules by which a machine belongs to an order, and what they
// cannot exclude.
//
// It reads all groups every `poll`, or every `poll_open` while something is expected to change;
// orders and ends start a round at once, and are carried out in the writes of that round. Orders of
// one group that come in one round make one increase, or one for each atomic set and each order of
// no such set (`one_increase_per_set`), cut to the group's maximum; the others are answered
// ResourceExhausted. After a failed round the pauses grow to `longest_pause`. A deletion
// that would take the group below its minimum is answered FailedPrecondition: many servers do not
// check that.
//
// Answers: gRPC's codes, as provisioning/failure.h reads them. Reads that fail for other reasons
// than authorisation are Unavailable, because nothing was done. Of an increase, Unavailable and
// DeadlineExceeded mean that its outcome was unknown, and that the target size has not shown it for
// `doubt`.
//
// Ownership: does not own its ports; they outlive it. Callbacks that arrive after its destruction
// are ignored. Thread-safety: none; ports call back on the same thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/providers/groups/cloud_groups.h"
#include "autoscale-hook/providers/groups/group_reader.h"
#include "autoscale-hook/providers/groups/group_words.h"
#include "autoscale-hook/providers/provider.h"
#include "autoscale-hook/providers/scheduler_port.h"

namespace fairlead::hook {

struct GroupsOptions {
  GroupWords words;  // with the provider's name
  absl::Duration poll = absl::Seconds(10), poll_open = absl::Seconds(2);
  absl::Duration longest_pause = absl::Minutes(1);
  absl::Duration doubt = absl::Seconds(30);
  // What is increased at once is had whole or not at all.
  bool one_increase_per_set = false;
  // A call without an answer for so long has failed, whatever the port promises.
  absl::Duration patience = absl::Minutes(2);
  // Prices and GPU models that the port does not tell. Null: there is no catalogue. What it
  // returns is read before the next call.
  KnownType known_type = nullptr;
};

class GroupsProvider final : public Provider {
 public:
  GroupsProvider(GroupsOptions options, Scheduler* scheduler, CloudGroups* groups);
  ~GroupsProvider() override;

  [[nodiscard]] absl::string_view name() const override { return name_; }
  void Start(ProviderListener* listener) override;
  void ReportAll() override;
  void Launch(std::vector<LaunchOrder> orders) override;
  void Terminate(const model::TerminateNode& terminate, Answer answer) override;

 private:
  class State;
  const std::string name_;
  std::shared_ptr<State> state_;
};

}  // namespace fairlead::hook
