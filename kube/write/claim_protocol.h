// How a ReserveClaim is carried out: up to two patches, each with the last seen version of the
// claim as precondition.
//
//   finalizer  before the allocation, unless it is there.
//   status     the allocation, if it is to be made, and the pods.
//
// After a 409 (the claim has changed) and after every answer that leaves the outcome open, GET the
// claim:
// - another uid, being deleted, allocated differently than expected, or no place for so many pods:
//   FailedPrecondition, nothing is overwritten;
// - already as requested: OK;
// - else from the beginning with the new version, kClaimConflicts times, then Aborted.
// Once an outcome was open, only the claim itself decides.
//
// An OK comes with the version of the claim that shows the result. Thread-safety: none, as
// write_protocol.h.
#pragma once

#include <memory>

#include "kube/write/write_protocol.h"
#include "scheduler/model/action.h"

namespace fairlead::kube {

// How often the claim may have changed. Drivers and controllers write to it too.
inline constexpr int kClaimConflicts = 8;

std::unique_ptr<WriteProtocol> MakeClaimProtocol(model::ReserveClaim action);

}  // namespace fairlead::kube
