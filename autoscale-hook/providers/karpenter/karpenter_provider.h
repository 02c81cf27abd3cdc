// Nodes by Karpenter: one NodeClaim (karpenter.sh/v1) per NodeRequest, of its name. Karpenter
// launches the machine, registers its node, and ends both when the claim is deleted.
//
// What it relies on (Karpenter's documentation and its tests of claims that others create):
//   - A claim without label karpenter.sh/nodepool is never disrupted: Fairlead owns the removal.
//   - Launched is True and status.providerID is set: the machine runs. Registered: its node is
//     there. Initialized: the node is ready, with the devices of spec.resources.requests.
//   - Karpenter deletes a claim that it cannot launch: at once if capacity is insufficient, else
//     after 5 minutes; and one whose node does not register within 15. That is its only sign of
//     failure. WhyNeverRegistered (claim_order.h) maps the last condition, or else the last event,
//     to a failure.
//   - A deleted claim exists until its machine is gone (finalizer). So Terminate answers OK when a
//     list shows no claim.
//
// A claim is Fairlead's if its label and its annotation name a request, and its name is the
// request's. Other claims are neither reported nor deleted. An order is refused
// (FailedPrecondition) if a claim of another request has its name.
//
// A creation of unknown outcome may still be carried out for kDoubtLasts (base/write_attempts.h).
// So may creations of a former process. Until then Terminate does not answer OK for an absent
// claim. A creation that the API server throttles is repeated for a minute, then answered
// Unavailable.
//
// Ownership: does not own its ports; they outlive it. Callbacks that arrive after its destruction
// are ignored; calls that wait for an answer get none. Thread-safety: none; ports call back on the
// same thread, possibly before a call returns. Complexity: O(log claims) per call, O(claims * log
// claims) per list. Errors name the claim.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "autoscale-hook/providers/karpenter/claim_api.h"
#include "autoscale-hook/providers/karpenter/claim_lists.h"
#include "autoscale-hook/providers/provider.h"
#include "autoscale-hook/providers/scheduler_port.h"
#include "base/write_attempts.h"

namespace fairlead::hook {

struct KarpenterOptions {
  model::NodeClassRef node_class;  // of pools that name none
  ClaimLists::Options lists;
  size_t writes_at_once = 10;
  Backoff write_backoff = {absl::Seconds(1), absl::Minutes(1)};
  absl::Duration creation_timeout = absl::Minutes(1);  // of a throttled creation
  // A claim whose launch fails for so long is deleted. Karpenter retries it for 5 minutes, and
  // provisions nothing of its own meanwhile: it waits for the claim's machine to be known.
  absl::Duration launch_patience = absl::Minutes(1);
};

class KarpenterProvider final : public Provider {
 public:
  KarpenterProvider(KarpenterOptions options, Scheduler* scheduler, ClaimApi* api);
  ~KarpenterProvider() override;

  [[nodiscard]] absl::string_view name() const override { return "karpenter"; }
  void Start(ProviderListener* listener) override;
  void ReportAll() override;
  void Launch(std::vector<LaunchOrder> orders) override;
  void Terminate(const model::TerminateNode& terminate, Answer answer) override;

 private:
  class State;
  std::shared_ptr<State> state_;
};

}  // namespace fairlead::hook
