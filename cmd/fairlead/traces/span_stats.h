// What became of the spans of traces since the start. Thread-safety: a plain value.
#pragma once

#include <cstdint>

namespace fairlead::cmd {

struct SpanStats {
  int64_t sent = 0;     // and taken by the collector
  int64_t failed = 0;   // refused by the collector, or it did not take them in time
  int64_t dropped = 0;  // never sent: too many waited, or the process ended
};

}  // namespace fairlead::cmd
