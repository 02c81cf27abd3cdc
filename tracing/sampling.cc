#include "tracing/sampling.h"

namespace fairlead::tracing {

bool IsSampled(const TraceId& trace, int64_t rate_per_million) {
  constexpr uint64_t kRange = uint64_t{1} << 56;
  if (rate_per_million <= 0) return false;
  if (rate_per_million >= kSampleAll) return true;
  // Rounded down: at most a millionth of a millionth too many are kept.
  const uint64_t threshold = static_cast<uint64_t>(kSampleAll - rate_per_million) *
                             (kRange / static_cast<uint64_t>(kSampleAll));
  return (trace.low & (kRange - 1)) >= threshold;
}

}  // namespace fairlead::tracing
