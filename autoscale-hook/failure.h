// Why a provider did not deliver, as a class that decides what is tried next, and its form as an
// absl::Status: the class is in the status code alone, so that it survives a journal and the wire.
//
//   class     status code                                        what follows
//   Stockout  RESOURCE_EXHAUSTED                                 this type, zone and capacity type
//   rest Quota     OUT_OF_RANGE                                       the account's limit: the
//   family rests Auth      PERMISSION_DENIED, UNAUTHENTICATED                 the provider rests,
//   for long Config    INVALID_ARGUMENT, FAILED_PRECONDITION, NOT_FOUND,  the type rests in that
//   pool, for long
//             UNIMPLEMENTED
//   Timeout   DEADLINE_EXCEEDED                                  as Stockout
//   Other     any other code                                     as Stockout
//   (unknown) UNAVAILABLE, ABORTED, CANCELLED                    nobody knows: asked again
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace fairlead::hook {

enum class FailureClass : uint8_t { kStockout, kQuota, kAuth, kConfig, kTimeout, kOther };

absl::string_view FailureName(FailureClass failure);  // "Stockout", as in NodeRequest.failure
std::optional<FailureClass> ParseFailure(absl::string_view name);

absl::Status FailureStatus(FailureClass failure, absl::string_view message);
// Absent for OK, AlreadyExists (the node of that name is there) and for an unknown outcome.
std::optional<FailureClass> ClassifyFailure(const absl::Status& status);
bool IsUnknownOutcome(const absl::Status& status);
// The provider said a definite no: no machine exists and none will come.
bool IsRefusal(FailureClass failure);

}  // namespace fairlead::hook
