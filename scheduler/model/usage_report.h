// The fraction of the cluster that queues have used over a window of time, as a time series
// database reports it: one whole answer. Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace fairlead::model {

struct UsageReport {
  struct Part {
    std::string queue, resource;  // by name; both may be unknown to the cluster
    int64_t nano = 0;             // of the cluster's capacity over the window, 0 .. 10^9
    friend bool operator==(const Part&, const Part&) = default;
  };
  absl::Time at;            // where the window ends
  std::vector<Part> parts;  // by queue, then resource; a pair occurs at most once; an absent pair
                            // used nothing
};

}  // namespace fairlead::model
