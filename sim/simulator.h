// Runs a scenario against core::DecisionLoop in virtual time: the loop of `fairlead run`, in a
// cluster of sim/cluster.h.
//
//   simulator.RunUntil(t)  -> view(), server(), recorder(), bill()
//
// Errors: InvalidArgument for an impossible scenario step (an object that exists already, a
// deletion of nothing); Internal for a broken invariant, with the time and the violation.
// Ownership: owns cluster and loop; the catalogue outlives it. Thread-safety: none, one thread.
// Determinism: same scenario and options give the same trace, byte for byte.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/hash.h"
#include "core/bill.h"
#include "core/decision_loop.h"
#include "core/options.h"
#include "core/view.h"
#include "sim/cluster.h"
#include "sim/invariants.h"
#include "sim/recorder.h"
#include "sim/scenario.h"

namespace fairlead::sim {

// A real cluster at one moment, with which a simulation begins.
struct Present {
  std::vector<Object> objects;    // as the API server has them, with uids, versions and status
  std::set<model::Kind> missing;  // kinds that the server lacks or does not show
  std::string usage;              // as stored (core/usage_store.h); empty: none
  // If the usage of queues is reported: the last report. It is repeated, so it does not get stale.
  std::optional<model::UsageReport> report;
};

struct SimulatorOptions {
  core::Options core;
  // Present: the cluster begins with it (Cluster::Adopt). Schedulers that are guests bind the pods
  // that they are granted.
  std::optional<Present> present;
  ClusterOptions cluster;
  // Checks everything after every step: slow, for tests.
  bool check_invariants = false;
  // For runs without faults: then every write must have an effect, too.
  bool expect_no_empty_writes = false;
  const hook::Catalog* catalog = nullptr;  // null: the built-in one
  // Told of all that decisions depend on; each restart begins another loop. Null: nothing is.
  core::InputLog* inputs = nullptr;
};

class Simulator {
 public:
  // The scenario's hook settings and provider override those in `options`.
  static absl::StatusOr<std::unique_ptr<Simulator>> Make(Scenario scenario,
                                                         SimulatorOptions options);

  // Runs until `when`, at most to the end of the scenario.
  absl::Status RunUntil(absl::Time when);
  absl::Status Run() { return RunUntil(scenario_.end); }

  // The scheduler's process dies and a new one starts.
  absl::Status Restart();

  [[nodiscard]] core::View view() const { return loop_->MakeView(now()); }
  [[nodiscard]] absl::Time now() const { return now_; }
  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  [[nodiscard]] const Recorder& recorder() const { return recorder_; }
  [[nodiscard]] core::BillTotals bill() const { return bill_.Totals(); }
  [[nodiscard]] const core::DecisionLoop::Stats& stats() const { return loop_->stats(); }
  Cluster& cluster() { return cluster_; }
  // Over every action and its time.
  [[nodiscard]] uint64_t trace_hash() const { return trace_.value(); }

  // Keeps all actions as text, one per line, from now on; for tests.
  void KeepTrace() { keep_trace_ = true; }
  [[nodiscard]] const std::string& trace() const { return trace_text_; }

 private:
  Simulator(Scenario scenario, SimulatorOptions options);

  void ScheduleTimeline();
  absl::Status DoStep(const ScenarioStep& step);
  absl::Status DoFault(const ScriptedFault& fault);
  absl::Status StartLoop();
  void TellUsage();
  void BindGuests();
  absl::Status Decide();
  // Answers what the decision loop awaits.
  void ListNodes();
  absl::Status CheckStep(const core::View& view, const std::vector<model::Action>& actions);
  absl::Status Broken(absl::string_view what) const;

  Scenario scenario_;
  SimulatorOptions options_;
  const hook::Catalog* catalog_;
  Cluster cluster_;
  std::unique_ptr<core::DecisionLoop> loop_;
  int life_ = 0;            // of the scheduler: grows with each restart
  uint64_t last_list_ = 0;  // of nodes, that this life has asked for
  Invariants invariants_;
  Recorder recorder_;
  core::Bill bill_;
  absl::Time now_, wake_at_ = absl::InfinitePast();
  absl::Status failure_;  // error of an event
  StableHash trace_;
  absl::Time usage_told_at_ = absl::InfinitePast();
  bool keep_trace_ = false;
  std::string trace_text_;
  int steps_at_this_instant_ = 0;
  int idle_calls_ = 0;  // steps in a row without actions that were due again at once
};

}  // namespace fairlead::sim
