// The data that users and tools see of the core: queues, nodes, waiting workloads with reasons.
// DecisionLoop::MakeView makes it; the command line, the live screen, the simulator and the
// dashboard print it. Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/model/resources.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::core {

// Of one resource, in base units.
struct QueueAmounts {
  int64_t allocated = 0;
  int64_t allocated_non_preemptible = 0;
  int64_t requested = 0;
  friend bool operator==(const QueueAmounts&, const QueueAmounts&) = default;
};

struct QueueResourceRow {
  std::string resource;  // "nvidia.com/gpu", "cpu", "memory"
  int64_t quota = 0;     // base units; kUnlimited
  int64_t limit = 0;
  int64_t fair_share = 0;
  int64_t allocated = 0;
  int64_t requested = 0;  // allocated + waiting
  int64_t allocated_non_preemptible = 0;
  // The counts of KAI's queue controller, if the Queue has a status: GPUs of every vendor and MIG
  // slices together, as here.
  std::optional<QueueAmounts> recorded = {};
};

struct QueueRow {
  std::string name, parent;
  int depth = 0;  // rows come in tree order
  bool leaf = true;
  int32_t priority = 100;
  std::string problem;                      // orphan, cycle, ...; empty: none
  std::vector<QueueResourceRow> resources;  // gpu, cpu, memory, then others
  int64_t waiting_workloads = 0;
  int64_t running_pods = 0;
};

struct NodeRow {
  std::string name, instance_type, zone;
  // "Ready", "NotReady", "Cordoned", "Ordered", "Starting", "Removing"
  std::string status;
  std::string node_request;   // empty: not provisioned by the hook
  std::string capacity_type;  // "on-demand", "spot", "reserved"; empty: not ours
  // False: its NodeRequest was sent and has not been seen; it costs nothing yet and may never
  // exist.
  bool confirmed = true;
  int64_t price_micro_usd_per_hour = 0;  // 0: unknown or not ours
  model::ResourceList allocatable, used;
  int64_t pods = 0;                // ours and other schedulers', DaemonSets included
  int64_t promised = 0;            // pods that will go there
  int64_t promised_gpu_milli = 0;  // what these request, as RunningRow::gpu_milli
  std::string pool = {};           // NodePool; empty: the built-in one, or not ours
  std::optional<absl::Time> unneeded_since;
};

struct WaitingRow {
  std::string workload;  // "namespace/name"
  bool is_group = false;
  std::string queue;
  int32_t priority = 0;
  absl::Time since;  // when this code was first given
  verdict::Verdict verdict;
  std::string message;            // verdict::Message
  std::vector<std::string> pods;  // that wait: "namespace/name"
};

struct RunningRow {
  std::string pod;  // "namespace/name"
  std::string workload, queue, node;
  std::string status;  // "Binding", "Bound", "Running", "Releasing"
  // What it requests: whole NVIDIA GPUs and fractions of them, milli-CPUs, bytes.
  int64_t gpu_milli = 0, cpu_milli = 0, memory_bytes = 0;
};

// The past usage of queues, as far as fair shares take it into account.
struct HistoryRow {
  bool on = false;
  std::string problem;              // why shares are divided without it; empty: history counts
  std::optional<absl::Time> as_of;  // of the last sample or report, stale ones included
};

struct View {
  absl::Time at;
  HistoryRow history;
  std::vector<QueueRow> queues;          // tree order: parent before children, by age then name
  std::vector<NodeRow> nodes;            // by name, ordered ones included
  std::vector<WaitingRow> waiting;       // in queue order
  std::vector<RunningRow> running;       // ours, by pod
  int64_t price_micro_usd_per_hour = 0;  // of the hook's nodes, in flight included
  int64_t gpus_held = 0;                 // devices on the hook's nodes, in flight included
};

// The numbers of a View alone, for metrics. Workloads behind a row of waiting ones
// (engine::Waiting) are counted with it, as of the last decision.
struct Totals {
  struct Waiting {
    int64_t workloads = 0, pods = 0;
  };
  HistoryRow history;
  std::vector<QueueRow> queues;  // as in View
  std::map<verdict::Code, Waiting> waiting;
  // Waiting pods, by each plugin that keeps them from starting (a filter that refuses nodes, or
  // SchedulingGates) and by their scheduler name: {plugin, name}.
  std::map<std::pair<std::string, std::string>, int64_t> unschedulable_pods;
  std::map<std::string, int64_t> nodes;  // by NodeRow::status
  int64_t price_micro_usd_per_hour = 0;
  int64_t gpus_held = 0;
  int64_t assumed_pods = 0;         // that have a node, and whose binding is not confirmed
  int64_t suspended_workloads = 0;  // instead of evicted, and not released
};

}  // namespace fairlead::core
