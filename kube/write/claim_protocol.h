// How a ReserveClaim is carried out: up to two patches, each bound to the version of the claim that
// was seen last.
//
//   finalizer  before the allocation, unless it is there.
//   status     the allocation, if it is to be made, and the pods.
//
// 409 (somebody has changed the claim since), and every answer that leaves the outcome open: GET
// the claim and look. Another uid, being deleted, allocated otherwise than we take it to be, or no
// place for so many pods: FailedPrecondition, nothing of ours is written over it. Already as it is
// to be: OK. Else from the beginning with the version read, kClaimConflicts times, then Aborted.
// Once an outcome was open, only a look at the claim decides.
//
// An OK comes with the version of the claim that shows what was done.
// Thread-safety: none, as write_protocol.h.
#pragma once

#include <memory>

#include "kube/write/write_protocol.h"
#include "scheduler/model/action.h"

namespace fairlead::kube {

// How often the claim may turn out to have changed. Drivers and controllers write to it as well.
inline constexpr int kClaimConflicts = 8;

std::unique_ptr<WriteProtocol> MakeClaimProtocol(model::ReserveClaim action);

}  // namespace fairlead::kube
