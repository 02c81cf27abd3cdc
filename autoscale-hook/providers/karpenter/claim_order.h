// From an order to the NodeClaim that it becomes, and from a NodeClaim that Karpenter has deleted
// to the reason. Sources: Karpenter's documentation; facts about its conditions.
//
// Errors: InvalidArgument that names the claim and the setting. Thread-safety: pure functions.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autoscale-hook/providers/karpenter/claim.h"
#include "scheduler/model/action.h"

namespace fairlead::hook {

// One claim per NodeRequest, of its name. It has
// - the labels of the expected node that the node has from its registration on. Not among them:
//   labels that Karpenter, Kubernetes or the cloud set (IsRestrictedLabel), the hostname, and the
//   labels about GPUs, which NVIDIA's discovery sets;
// - annotation kNodeRequestUidAnnotation;
// - of a reserved machine karpenter.sh/capacity-type reserved, and the reservation's labels that
//   Karpenter or the cloud set (karpenter.k8s.aws/capacity-reservation-id), as requirements;
// - no label karpenter.sh/nodepool: Karpenter then never ends its node by itself;
// - the node's extended resources as requests: Initialized waits for their devices.
// `configured`: the node class of orders that name none.
absl::StatusOr<NewNodeClaim> ClaimOfOrder(const model::LaunchNode& launch,
                                          const model::NodeClassRef& configured);

// True if Karpenter does not pass the label on to a node, or sets it itself.
bool IsRestrictedLabel(absl::string_view key);

// Why Karpenter has deleted a claim whose node never registered, as it was seen last; a status of
// provisioning/failure.h. `warning`: of the last event about it; it counts if no condition tells.
absl::Status WhyNeverRegistered(const NodeClaim& last, absl::string_view warning = "");
// True if a condition of the claim tells why it is gone.
bool TellsWhy(const NodeClaim& last);
// `now` is the same claim, read later. A launch that failed is retried, and says nothing meanwhile:
// its condition is kept for WhyNeverRegistered.
void KeepLaunchFailure(const NodeClaim& before, NodeClaim& now);

}  // namespace fairlead::hook
