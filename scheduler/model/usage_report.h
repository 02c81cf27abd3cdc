// What queues have used of the cluster over a window of time, as a time series database tells it:
// one answer of it, whole. Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace fairlead::model {

struct UsageReport {
  struct Part {
    std::string queue, resource;  // by name; both may be unknown here
    int64_t nano = 0;             // of the cluster's capacity over the window, 0 .. 10^9
    friend bool operator==(const Part&, const Part&) = default;
  };
  absl::Time at;            // where the window ends
  std::vector<Part> parts;  // by queue, then resource; a pair at most once, absent: nothing used
};

}  // namespace fairlead::model
