// A fixed workload that measures the current speed of the machine: hashing, sorting and chasing
// pointers, like a scheduler. It must never change: all figures are compared through it.
//
// The index is the geometric mean, over the three parts, of the time of a part divided by its time
// in the quiet runs of docs/performance.md (kQuiet in reference.cc). 1: as quiet as then; 2:
// everything takes twice as long.
//
// Thread-safety: one thread. Cost: about 0.2 s at index 1.
#pragma once

namespace fairlead::bench {

// Seconds that each part took: the median of a few runs.
struct ReferenceTimes {
  double hashing = 0, sorting = 0, chasing = 0;
};
ReferenceTimes MeasureReference();
double IndexOf(const ReferenceTimes& times);

}  // namespace fairlead::bench
