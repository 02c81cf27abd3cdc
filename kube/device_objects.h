// ResourceClaim, ResourceSlice and DeviceClass (resource.k8s.io/v1) from JSON, as codec.h decodes
// the other kinds. They are not among model::Kind yet, as nothing watches them.
//
// Thread-safety: pure functions.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/devices.h"

namespace fairlead::kube {

// InvalidArgument for what is no JSON object, and for another kind or API group. What makes no
// sense within the object, or is not understood, is in its `invalid`.
absl::StatusOr<model::DeviceObject> DecodeDeviceObject(absl::string_view json);

// The JSON of a claim's status with this allocation. `node`: where its devices are.
std::string EncodeClaimStatus(const model::ResourceClaim& claim, absl::string_view node);

}  // namespace fairlead::kube
