// Statistics of the process, as plain values; metrics.h formats them for Prometheus. Thread-safety:
// values.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/decision_loop.h"
#include "core/plugin_probe.h"
#include "core/view.h"
#include "kube/leader/lease.h"
#include "kube/watch/event_queue.h"
#include "kube/watch/reflector.h"
#include "kube/write/executor.h"

namespace fairlead::cmd {

// Available without the owner's thread.
struct AppStats {
  std::vector<kube::ReflectorStats> kinds;
  absl::Duration stale_after = absl::ZeroDuration();
  kube::ExecutorStats writes;
  kube::EventQueue::Stats queue;
  bool elects = false;  // else it always leads
  kube::LeaseStats lease;
  bool leader = false;
  absl::Duration owner_silent_for = absl::ZeroDuration();  // 0: it answers
};

// Counted by the owner's thread.
struct AppCounters {
  kube::LatencyHistogram decisions;                                // steps that decided
  core::PluginProbe probe;                                         // after some of these
  std::map<std::pair<std::string, std::string>, int64_t> results;  // {action, code} -> answers
  int64_t evictions = 0, nodes_terminated = 0;
  int64_t reconfigurations = 0;
};

// Available from the owner's thread alone.
struct OwnerStats {
  bool known = false;  // it has answered once
  absl::Time at = absl::InfinitePast();
  bool synced = false, reading = false;
  core::DecisionLoop::Stats loop;
  AppCounters counters;
  core::Totals totals;
  bool kai_status = false;  // core::Options::kai_status: metrics as KAI's, too
};

}  // namespace fairlead::cmd
