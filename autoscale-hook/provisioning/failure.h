// Why a provider did not deliver, as a class that decides what is tried next, and its form as an
// absl::Status. The class is in the status code alone, so it survives a journal and the wire.
//
//   class     status code                                        consequence
//   Stockout  RESOURCE_EXHAUSTED                                 type+zone+capacity type backs off
//   Quota     OUT_OF_RANGE                                       the account's family backs off
//   Auth      PERMISSION_DENIED, UNAUTHENTICATED                 the provider backs off for long
//   Config    INVALID_ARGUMENT, FAILED_PRECONDITION, NOT_FOUND,  the type backs off in that pool
//             UNIMPLEMENTED                                      for long
//   Timeout   DEADLINE_EXCEEDED                                  as Stockout
//   Other     any other code                                     as Stockout
//   (unknown) UNAVAILABLE, ABORTED, CANCELLED                    outcome unknown: retried
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
// Absent for OK, AlreadyExists (the node of that name exists) and for an unknown outcome.
std::optional<FailureClass> ClassifyFailure(const absl::Status& status);
bool IsUnknownOutcome(const absl::Status& status);
// True if the provider refused for certain: no machine exists and none will come.
bool IsRefusal(FailureClass failure);

}  // namespace fairlead::hook
