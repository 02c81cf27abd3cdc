// Formats a simulated (or real) day: a log and a bill for people, JSON for tools. Thread-safety:
// pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/bill.h"
#include "core/decision_loop.h"
#include "core/view.h"
#include "sim/recorder.h"

namespace fairlead::sim {

struct Report {
  std::string name, description;
  absl::Time start;
  std::vector<TimelineEvent> timeline;
  std::vector<WaitEpisode> episodes;
  core::View end;
  core::BillTotals bill;
  core::DecisionLoop::Stats stats;
  std::map<std::string, int64_t> nodes_bought;  // by instance type
  int64_t evictions = 0;
};

// Queues, nodes, waiting workloads with reasons, dollars per hour.
std::string ViewText(const core::View& view);
// Equal events at one time share a line: "08:00:00  6 pods wait ...".
std::string LogText(const std::vector<TimelineEvent>& timeline);
std::string BillText(const Report& report);
// Log, last view, bill.
std::string ReportText(const Report& report);

// {"scenario","timeline":[{"time","event","object","text",..}],"waiting":[{"pod","queue","code",
//  "since"}],"waited":[{"pod","queue","code","since","until"}],"bill":{"node_hours","cost_usd",
//  "policy_blocked_nodes","policy_blocked_cost_usd","duplicate_nodes","reactive_cost_usd",
//  "reactive_nodes"},"nodes_at_end","nodes_bought":{type: count},"requests","evictions",
//  "decisions","bindings","verdicts"}
// Times are RFC 3339 in UTC. "waiting" is what waits at the end; "waited" every stretch of waiting
// with one code, the lasting ones without "until". "nodes_at_end" counts the hook's nodes.
std::string ReportJson(const Report& report);

}  // namespace fairlead::sim
