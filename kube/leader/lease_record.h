// coordination.k8s.io/v1 Lease for leader election, from and to JSON.
//
// Timestamps are MicroTime: the server parses exactly six digits of a second. Decisions never use
// them (the clocks of two machines differ). They are written for people and other clients, and read
// only to detect that a record has changed.
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fairlead::kube {

struct LeaseRecord {
  std::string resource_version;
  std::string holder;  // empty: released
  int64_t duration_s = 0;
  std::string acquire_time, renew_time;  // as the server has them
  int64_t transitions = 0;
};

// InvalidArgument if the text is not a Lease.
absl::StatusOr<LeaseRecord> ParseLease(absl::string_view json);

// The body of a creation.
std::string EncodeNewLease(absl::string_view ns, absl::string_view name, const LeaseRecord& record);
// A JSON merge patch of the spec, with record.resource_version as precondition; fields of other
// programs are unchanged.
std::string EncodeLeasePatch(const LeaseRecord& record);

}  // namespace fairlead::kube
