// Which traces are kept. The id alone decides, so that all spans of a trace are kept or none, and
// every program that sees the id decides alike.
//
// The rule is OpenTelemetry's consistent probability sampling with the randomness of the trace id:
// the last 56 bits of the id are a random number, and a trace is kept if that number is at least
// the threshold. So those bits must be well mixed.
//
// Thread-safety: pure function. Complexity: O(1).
#pragma once

#include <cstdint>

#include "tracing/span.h"

namespace fairlead::tracing {

inline constexpr int64_t kSampleAll = 1'000'000;

// `rate_per_million` from 0 (none) to kSampleAll.
bool IsSampled(const TraceId& trace, int64_t rate_per_million);

}  // namespace fairlead::tracing
