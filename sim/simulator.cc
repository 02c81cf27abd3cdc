#include "sim/simulator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sim/action_text.h"

namespace fairlead::sim {
namespace {

// More steps at one instant are an endless loop.
constexpr int kMaxStepsAtOneInstant = 1000;

// The pace at which the last report of usage is repeated.
constexpr absl::Duration kUsageReports = absl::Minutes(1);

bool OnlyEvents(const std::vector<model::Action>& actions) {
  return std::all_of(actions.begin(), actions.end(), [](const model::Action& action) {
    return std::holds_alternative<model::EmitEvent>(action.what);
  });
}

SimulatorOptions WithScenario(const Scenario& scenario, SimulatorOptions options) {
  scenario.hook.ApplyTo(options.core.hook);
  options.cluster.cloud = scenario.cloud;
  if (options.cluster.faults.seed == 0) options.cluster.faults.seed = scenario.seed;
  return options;
}

}  // namespace

Simulator::Simulator(Scenario scenario, SimulatorOptions options)
    : scenario_(std::move(scenario)),
      options_(WithScenario(scenario_, std::move(options))),
      catalog_(options_.catalog != nullptr ? options_.catalog : &hook::Catalog::BuiltIn()),
      cluster_(options_.cluster, scenario_.start),
      invariants_(&cluster_, catalog_, options_.core.hook, options_.core.state.scheduler_names),
      bill_(catalog_, options_.core.hook.unneeded_after),
      now_(scenario_.start) {
  cluster_.executor().Observe([this](const model::Action& action, const absl::Status& status) {
    recorder_.OnCommit(cluster_.queue().now(), action, status);
    if (options_.check_invariants && failure_.ok()) {
      if (const auto* terminate = std::get_if<model::TerminateNode>(&action.what)) {
        const std::string problem = invariants_.BeforeTermination(*terminate);
        if (!problem.empty()) failure_ = Broken(problem);
      }
    }
  });
  cluster_.server().Listen([this](ChangeType type, const Object& object) {
    recorder_.OnChange(cluster_.queue().now(), type, object);
  });
}

absl::StatusOr<std::unique_ptr<Simulator>> Simulator::Make(Scenario scenario,
                                                           SimulatorOptions options) {
  std::unique_ptr<Simulator> simulator(new Simulator(std::move(scenario), std::move(options)));
  if (std::optional<Present>& present = simulator->options_.present; present.has_value()) {
    FAIRLEAD_RETURN_IF_ERROR(simulator->cluster_.Adopt(std::exchange(present->objects, {})));
  }
  simulator->ScheduleTimeline();
  FAIRLEAD_RETURN_IF_ERROR(simulator->StartLoop());
  return simulator;
}

void Simulator::ScheduleTimeline() {
  for (const ScenarioStep& step : scenario_.timeline) {
    cluster_.queue().At(scenario_.start + step.at, [this, &step] {
      if (failure_.ok()) failure_ = DoStep(step);
    });
  }
}

absl::Status Simulator::DoStep(const ScenarioStep& step) {
  if (!step.note.empty()) recorder_.OnNote(cluster_.queue().now(), step.note);
  for (size_t i = 0; i < step.apply.size(); ++i) {
    const absl::Status status = cluster_.Apply(step.apply[i]);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(step.files[i], ": ", status.message()));
    }
  }
  for (const ObjectRef& ref : step.remove) FAIRLEAD_RETURN_IF_ERROR(cluster_.Delete(ref));
  for (const auto& [ref, replicas] : step.scale) {
    FAIRLEAD_RETURN_IF_ERROR(cluster_.Scale(ref, replicas));
  }
  for (const ScriptedFault& fault : step.faults) FAIRLEAD_RETURN_IF_ERROR(DoFault(fault));
  return absl::OkStatus();
}

absl::Status Simulator::DoFault(const ScriptedFault& fault) {
  const absl::Time until = cluster_.queue().now() + fault.duration;
  switch (fault.kind) {
    case ScriptedFault::Kind::kStockout:
      cluster_.cloud().AddStockout(fault.instance_type, fault.zone, until);
      return absl::OkStatus();
    case ScriptedFault::Kind::kNeverArrives:
      cluster_.cloud().LoseNextLaunches(fault.count);
      return absl::OkStatus();
    case ScriptedFault::Kind::kLateBoot:
      cluster_.cloud().DelayNextLaunches(fault.count, fault.factor);
      return absl::OkStatus();
    case ScriptedFault::Kind::kLoseNode: {
      const auto* pod = cluster_.server().Find<model::Pod>(fault.target);
      return cluster_.cloud().Kill(pod != nullptr ? pod->node_name : fault.target);
    }
    case ScriptedFault::Kind::kBreakWatches:
      for (model::Kind kind : model::kAllKinds) cluster_.watch().Break(kind, fault.duration);
      return absl::OkStatus();
    case ScriptedFault::Kind::kSlowApi:
      cluster_.executor().SlowDown(fault.delay, until);
      return absl::OkStatus();
    case ScriptedFault::Kind::kRestart:
      return Restart();
  }
  return absl::OkStatus();
}

absl::Status Simulator::StartLoop() {
  core::Options options = options_.core;
  if (options.engine.usage.has_value()) {
    options.usage_store.name = "usage";
    // In a cluster that is simulated from its beginning only the loop counts usage.
    if (!options_.present.has_value()) options.engine.usage->reported = false;
  }
  FAIRLEAD_ASSIGN_OR_RETURN(loop_, core::DecisionLoop::Make(options, catalog_));
  if (options_.inputs != nullptr) {
    options_.inputs->Started(options, *catalog_, /*continues=*/false);
    loop_->SetInputLog(options_.inputs);
  }
  std::string usage = cluster_.executor().writes().stored_usage();
  if (usage.empty() && options_.present.has_value()) usage = options_.present->usage;
  FAIRLEAD_RETURN_IF_ERROR(loop_->RestoreUsage(usage));
  cluster_.Connect([this](const model::ClusterEvent& event) {
    const auto* synced = std::get_if<model::Synced>(&event);
    if (synced != nullptr && options_.present.has_value() &&
        options_.present->missing.contains(synced->kind)) {
      return loop_->Apply(model::Synced{synced->kind, /*missing=*/true});
    }
    loop_->Apply(event);
  });
  usage_told_at_ = absl::InfinitePast();
  wake_at_ = absl::InfinitePast();
  ++life_;
  last_list_ = 0;
  return absl::OkStatus();
}

absl::Status Simulator::Restart() {
  recorder_.OnNote(cluster_.queue().now(), "the scheduler restarts", "restarted");
  return StartLoop();
}

absl::Status Simulator::RunUntil(absl::Time when) {
  const absl::Time end = std::min(when, scenario_.end);
  while (true) {
    const absl::Time next = std::max(now_, std::min(cluster_.queue().next(), wake_at_));
    if (next > end) break;
    steps_at_this_instant_ = next == now_ ? steps_at_this_instant_ + 1 : 0;
    if (steps_at_this_instant_ > kMaxStepsAtOneInstant) return Broken("time stands still");
    cluster_.queue().RunUntil(next);
    now_ = next;
    FAIRLEAD_RETURN_IF_ERROR(failure_);
    FAIRLEAD_RETURN_IF_ERROR(Decide());
    FAIRLEAD_RETURN_IF_ERROR(failure_);
  }
  cluster_.queue().RunUntil(end);
  now_ = std::max(now_, end);
  bill_.AdvanceTo(now_);
  if (!options_.check_invariants || end != scenario_.end || cluster_.Busy())
    return absl::OkStatus();
  const std::string problem = invariants_.Settled(view());
  return problem.empty() ? absl::OkStatus() : Broken(problem);
}

void Simulator::ListNodes() {
  const uint64_t number = loop_->AwaitedNodeList();
  if (number <= last_list_) return;
  last_list_ = number;
  cluster_.executor().ListNodes(
      [this, number, life = life_](absl::StatusOr<std::vector<hook::ListedNode>> nodes) {
        if (life == life_) loop_->NodesListed(number, std::move(nodes));
      });
}

void Simulator::TellUsage() {
  if (!options_.present.has_value() || !options_.present->report.has_value()) return;
  if (now_ < usage_told_at_ + kUsageReports) return;
  model::UsageReport& report = *options_.present->report;
  report.at = std::max(report.at, usage_told_at_ = now_);
  loop_->Apply(report);
}

// The other scheduler does not exist here; it would bind the pod where it may.
void Simulator::BindGuests() {
  if (!options_.present.has_value()) return;
  for (const core::GuestGrant& grant : loop_->TakeGrants()) {
    cluster_.queue().After(options_.cluster.executor.write_latency, [this, grant] {
      const std::string key = model::Key(grant.ns, grant.name);
      const auto* pod = cluster_.server().Find<model::Pod>(key);
      if (pod == nullptr || pod->meta.uid != grant.uid || !pod->node_name.empty()) return;
      cluster_.server().Modify<model::Pod>(key, [&](model::Pod& p) {
        p.node_name = grant.node;
        p.scheduled = {"True", ""};
      });
    });
  }
}

absl::Status Simulator::Decide() {
  TellUsage();
  core::StepResult result = loop_->Step(now_);
  BindGuests();
  wake_at_ = result.wake_at;
  ListNodes();
  for (const model::Action& action : result.actions) {
    const std::string text = ActionText(action);
    trace_.Add(absl::ToUnixNanos(now_)).Add(text);
    if (keep_trace_) absl::StrAppend(&trace_text_, absl::FormatTime(now_), " ", text, "\n");
  }
  if (!result.decided && result.actions.empty()) {
    return options_.check_invariants ? CheckStep(view(), {}) : absl::OkStatus();
  }
  const core::View after = view();
  recorder_.OnView(after);
  bill_.Observe(after, result.actions);
  if (options_.check_invariants) FAIRLEAD_RETURN_IF_ERROR(CheckStep(after, result.actions));
  cluster_.executor().Execute(std::move(result.actions));
  return absl::OkStatus();
}

absl::Status Simulator::CheckStep(const core::View& view,
                                  const std::vector<model::Action>& actions) {
  // Once is permitted: the next step plans again what a step gave up.
  idle_calls_ = actions.empty() && wake_at_ <= now_ ? idle_calls_ + 1 : 0;
  if (idle_calls_ > 1) return Broken("steps that do nothing want to be called again at once");
  if (std::string problem = loop_->CheckConsistency(); !problem.empty()) return Broken(problem);
  if (std::string problem = invariants_.AllocationTracker(); !problem.empty())
    return Broken(problem);
  if (std::string problem = invariants_.AfterStep(view, actions); !problem.empty()) {
    return Broken(problem);
  }
  const ApiWrites& writes = cluster_.executor().writes();
  if (options_.expect_no_empty_writes && writes.empty_writes() > 0) {
    return Broken(absl::StrCat("a write changed nothing: ", writes.last_empty_write()));
  }
  // A failed write is retried within the longest back-off: until then nothing has settled.
  const absl::Time next = std::min(cluster_.queue().next(), wake_at_);
  const bool quiet = OnlyEvents(actions) && !cluster_.Busy() && loop_->synced() && next > now_ &&
                     wake_at_ > now_ + options_.core.engine.bind_backoff_max;
  if (!quiet) return absl::OkStatus();
  std::string problem = invariants_.Settled(view);
  return problem.empty() ? absl::OkStatus() : Broken(problem);
}

absl::Status Simulator::Broken(absl::string_view what) const {
  return absl::InternalError(absl::StrCat(
      absl::FormatTime("%H:%M:%E3S", cluster_.queue().now(), absl::UTCTimeZone()), ": ", what));
}

}  // namespace fairlead::sim
