// The openb traces: nodes and pods of a GPU cluster as CSV files, the order in which the published
// experiments let the pods arrive, and their allocations.
//
// Units: milli-CPU, MiB, milli-GPU. Thread-safety: pure functions. Errors: NotFound for a missing
// file; InvalidArgument names file and line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/node.h"
#include "scheduler/model/pod.h"

namespace fairlead::replay {

struct TraceNode {
  std::string name;
  int64_t cpu = 0, memory_mib = 0, gpus = 0;
  std::string gpu_model;
};

struct TracePod {
  std::string name;
  int64_t cpu = 0, memory_mib = 0;
  int64_t gpus = 0, gpu_milli = 0;      // devices, and the part of each
  std::vector<std::string> gpu_models;  // accepted; empty: any
  [[nodiscard]] int64_t Demand() const { return gpus * gpu_milli; }
};

absl::StatusOr<std::vector<TraceNode>> ReadNodes(const std::string& file);
absl::StatusOr<std::vector<TracePod>> ReadPods(const std::string& file);
// Files openb_pod_list_*.csv of the folder: the part of the name after that, sorted.
absl::StatusOr<std::vector<std::string>> TracesOf(const std::string& folder);
std::string PodFile(const std::string& folder, absl::string_view trace);
std::string NodeFile(const std::string& folder);

// Indexes of the pods in the order of arrival of the published runs with that seed: sorted by name,
// shuffled, then copies of random pods until the demand is `percent` of the capacity. A trace with
// more demand continues to its end; the replay stops at the percentage.
std::vector<size_t> PublishedOrder(const std::vector<TracePod>& pods, int64_t seed,
                                   int64_t capacity_milli, int64_t percent);

// The published results: allocation in percent by policy, at whole percents of arrived demand, for
// the seed and trace; empty if unknown.
using PublishedCurves = std::map<std::string, std::vector<double>>;
absl::StatusOr<std::map<std::pair<std::string, int64_t>, PublishedCurves>> ReadPublished(
    const std::string& folder);

model::Node ToNode(const TraceNode& node, absl::string_view name);
// `number` makes name and uid of the arrival unique.
model::Pod ToPod(const TracePod& pod, size_t number);
// Args of plugin GpuFragmentation: the shapes of the trace with their counts.
std::string TypicalArgs(const std::vector<TracePod>& pods);

}  // namespace fairlead::replay
