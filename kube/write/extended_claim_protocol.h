// How a SetExtendedClaim is carried out. With a claim:
//
//   GET pod      for its containers; another uid: FailedPrecondition.
//   POST claim   409 AlreadyExists: GET the claim. Of this pod: as if it was made now, since it is
//                named after the pod's uid; of anything else: FailedPrecondition.
//   PATCH pod    status.extendedResourceClaimStatus. If the answer does not have it, the API server
//                drops the field (feature gate DRAExtendedResource is off): FailedPrecondition.
//
// Without a claim, the last step alone. Every step may be repeated, and nothing that was made is
// undone: the claim is the pod's, whatever becomes of the binding. Thread-safety: none, as
// write_protocol.h.
#pragma once

#include <memory>

#include "kube/write/write_protocol.h"
#include "scheduler/model/action.h"

namespace fairlead::kube {

std::unique_ptr<WriteProtocol> MakeExtendedClaimProtocol(model::SetExtendedClaim action);

}  // namespace fairlead::kube
