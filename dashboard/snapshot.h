// What the dashboard shows of one moment: queues, waiting workloads, nodes, purchases, money.
//
// GPUs in thousandths, prices in micro-dollars per hour. What fills it need not bound or escape
// anything: snapshot_json.h does.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace fairlead::dashboard {

struct QueueLine {
  std::string name, parent, problem;
  int depth = 0;  // lines come in tree order
  bool leaf = true;
  // None: unlimited.
  std::optional<int64_t> quota_gpu_milli, limit_gpu_milli, fair_share_gpu_milli;
  int64_t used_gpu_milli = 0, requested_gpu_milli = 0;
  int64_t waiting_workloads = 0, running_pods = 0;
  int64_t micro_usd_per_hour = 0;  // of the queue and of those below it
};

struct WaitingLine {
  std::string workload, queue;  // "namespace/name"
  bool is_group = false;
  int32_t priority = 0;
  std::string code, category;
  std::string sentence, message;   // verdict::Sentence, verdict::Message
  std::vector<std::string> helps;  // best first
  int64_t position = 0;            // in its queue, from 1; 0: unknown
  int64_t pods = 0;                // that wait
  absl::Time since;
  std::optional<absl::Time> expected_at;  // of the nodes that are requested for it
};

struct NodeLine {
  std::string name, pool, type, zone, status, capacity_type;
  bool ours = false;    // Fairlead has requested it
  bool coming = false;  // requested or starting: what it has cannot be used yet
  int64_t gpu_milli = 0, used_gpu_milli = 0, promised_gpu_milli = 0;
  int64_t pods = 0;
  int64_t micro_usd_per_hour = 0;  // 0: unknown, or not ours
  std::optional<absl::Time> unneeded_since;
};

// A NodeRequest.
struct PurchaseLine {
  std::string name, pool, type, zone, capacity_type, phase, queue, failure, message;
  std::vector<std::string> workloads;         // that needed it
  std::optional<int64_t> micro_usd_per_hour;  // none: unknown
  std::optional<absl::Time> requested_at;
};

struct Snapshot {
  absl::Time at;
  std::string version;
  bool leads = true;   // false: a standby, which decides nothing
  std::string leader;  // of a standby: the holder of the lease, if known
  bool synced = true;  // false: not every kind of object was listed yet
  std::vector<QueueLine> queues;
  std::vector<WaitingLine> waiting;  // in the order in which they are served
  std::vector<NodeLine> nodes;       // by name
  std::vector<PurchaseLine> purchases;
  int64_t micro_usd_per_hour = 0, idle_micro_usd_per_hour = 0;
};

}  // namespace fairlead::dashboard
