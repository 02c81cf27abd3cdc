// Runs work in its own process: the caller survives its crashes and learns of them.
//
// The child is a fork: call it from a process with one thread. POSIX.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace fairlead::conformance {

// The text that `work` returns. Aborted if the child was ended by a signal or ended by itself
// before it had answered, DeadlineExceeded (and the child is killed) if it takes longer than
// `limit`.
absl::StatusOr<std::string> RunIsolated(absl::Duration limit,
                                        const std::function<std::string()>& work);

}  // namespace fairlead::conformance
