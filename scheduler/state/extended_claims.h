// Extended resources that devices back (KEP-5004; upstream: extendeddynamicresources.go of plugin
// DynamicResources). A pod requests "example.com/gpu: 2" of its containers; a DeviceClass says that
// it gives that resource (spec.extendedResourceName, or by its name). A node whose device plugin
// gives the resource gives it as ever. Any other node gives devices of the class, by a claim that
// is the pod's own: the *extended claim*.
//
// The claim is made when the pod is bound to such a node. Until then the state has an *implied*
// claim in its place (ClaimRow::implied), so that devices are decided as for any other claim. The
// resource itself stays among the pod's requests, and counts on both kinds of nodes: one without a
// device plugin has as much of it as it has devices that suit the class. So queues are charged
// once, by the resource.
//
// All extended resources of a pod that classes give come from one side on a node: by device plugin,
// or by the claim. (Upstream makes a claim for a part of them, too.)
//
// Thread-safety: pure functions.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "scheduler/model/pod.h"
#include "scheduler/state/records.h"

namespace fairlead::state {

// Of the claim of a pod: at most 253 characters. No other pod has it.
std::string ExtendedClaimName(absl::string_view pod, absl::string_view uid);

// The node's device plugin gives some of it.
bool HasDevicePlugin(const model::Node& node, absl::string_view resource);

enum class DeviceSource : uint8_t { kPlugin, kClaim, kMixed };
// What would give the resources on the node; kPlugin if there are none.
DeviceSource SourceOf(const model::Node& node, const model::ExtendedDevices& extended);

}  // namespace fairlead::state
