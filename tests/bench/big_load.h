// Large clusters read from the API server's wire format, in a process of their own, so that earlier
// allocations do not count.
//
// Thread-safety: none. Errors end the benchmark (Require).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/model/kind.h"
#include "tests/bench/cluster.h"
#include "tests/bench/harness.h"

namespace fairlead::bench {

inline constexpr int64_t kBigPage = 500;  // the page size of a reflector

// Reads the first `count` nodes, pods or PodGroups of big_pods.h page by page, as the reflector
// does. Returns the seconds of decoding and applying; `count` is a multiple of kBigPage. `groups`:
// the pods name PodGroups.
double LoadBig(LoopCluster& cluster, model::Kind kind, int64_t count, bool groups = false);

// Samples by name of figure.
using ChildFigures = std::map<std::string, std::vector<double>>;
// Starts this program again with `--child NAME`, one process per repetition, and reads the line
// "figure=value ..." that each prints.
ChildFigures RunChildren(const std::string& name, int repetitions);

}  // namespace fairlead::bench
