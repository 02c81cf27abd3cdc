#include "sim/simulate_command.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "core/configuration.h"
#include "document/json.h"
#include "document/yaml.h"
#include "kube/codec/codec.h"
#include "sim/simulator.h"

namespace fairlead::sim {
namespace {

// The interval of --live, in virtual time.
constexpr absl::Duration kLiveStep = absl::Minutes(1);

std::string InFolderOf(const std::string& file, const std::string& name) {
  return absl::StrCat(file.substr(0, file.rfind('/')), "/", name);
}

// The scenario's own configuration overrides the command line's.
absl::StatusOr<core::Configuration> Configuration(const SimulateOptions& options,
                                                  const Scenario& scenario) {
  core::Configuration configuration;
  configuration.options = options.core;
  if (scenario.configuration_file.empty()) return configuration;
  const std::string& file = scenario.configuration_file;
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  absl::StatusOr<std::vector<std::string>> documents = YamlToJson(text);
  absl::StatusOr<core::Configuration> read =
      documents.ok() ? core::ReadConfiguration(*documents, options.core.plugins)
                     : absl::StatusOr<core::Configuration>(documents.status());
  if (!read.ok()) {
    return absl::Status(read.status().code(), absl::StrCat(file, ": ", read.status().message()));
  }
  return read;
}

// A journal has the configuration of its loop as documents: core::KwokOptions() with the scenario's
// hook settings as one.
std::string DocumentOf(const HookSettings& settings) {
  Json hook = Json::Object();
  hook.Set("enabled", Json::Bool(true)).Set("provider", settings.provider.value_or("kwok"));
  if (settings.cluster_gpu_limit.has_value()) {
    hook.Set("clusterGPULimit", Json::Int(*settings.cluster_gpu_limit));
  }
  if (!settings.gpu_limits.empty()) {
    Json limits = Json::Object();
    for (const auto& [gpu_model, limit] : settings.gpu_limits) {
      limits.Append(gpu_model, Json::Int(limit));
    }
    hook.Set("gpuLimits", std::move(limits));
  }
  if (const auto cost = settings.cost_limit_micro_usd_per_hour; cost.has_value()) {
    hook.Set("costLimitPerHour", absl::StrFormat("%d.%06d", *cost / 1'000'000, *cost % 1'000'000));
  }
  const std::pair<const char*, std::optional<absl::Duration>> spans[] = {
      {"unneededAfter", settings.unneeded_after},
      {"readyTimeout", settings.ready_timeout},
      {"launchTimeout", settings.launch_timeout}};
  for (const auto& [field, span] : spans) {
    if (span.has_value()) hook.Set(field, absl::FormatDuration(*span));
  }
  Json document = Json::Object();
  document.Set("apiVersion", "config.fairlead.dev/v1alpha1").Set("kind", "FairleadConfiguration");
  return document.Set("hook", std::move(hook)).Compact();
}

// The player of the journal gets the configuration that was simulated.
absl::Status RecordOptions(const SimulateOptions& options, const Scenario& scenario,
                           SimulatorOptions& settings) {
  settings.inputs = options.inputs;
  if (options.inputs == nullptr) return absl::OkStatus();
  std::vector<std::string>& documents = settings.core.documents;
  if (documents.empty()) {
    documents = {DocumentOf(scenario.hook)};
    return absl::OkStatus();
  }
  if (scenario.hook.IsEmpty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      scenario.name, ": hook: a journal cannot have it beside a configuration; move it there"));
}

absl::StatusOr<hook::Catalog> CatalogOf(const Scenario& scenario,
                                        const core::Configuration& configuration) {
  std::string file = scenario.catalog_file;
  if (file.empty() && !configuration.catalog_file.empty()) {
    file = InFolderOf(scenario.configuration_file, configuration.catalog_file);
  }
  if (file.empty()) return hook::Catalog::BuiltIn();
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  return hook::Catalog::Parse(text, file);
}

absl::Status RunLive(Simulator& simulator, const SimulateOptions& options, std::ostream& out) {
  const Scenario& scenario = simulator.scenario();
  size_t shown = 0;
  while (simulator.now() < scenario.end) {
    const absl::Time next = std::min(scenario.end, simulator.now() + kLiveStep);
    const absl::Duration passed = next - simulator.now();
    FAIRLEAD_RETURN_IF_ERROR(simulator.RunUntil(next));
    const std::vector<TimelineEvent>& timeline = simulator.recorder().timeline();
    out << LogText({timeline.begin() + static_cast<std::ptrdiff_t>(shown), timeline.end()})
        << std::flush;
    shown = timeline.size();
    if (options.sleep != nullptr) options.sleep(passed / scenario.accelerate);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Report> Simulate(const SimulateOptions& options, std::ostream* live_out) {
  FAIRLEAD_ASSIGN_OR_RETURN(Scenario scenario, ReadScenario(options.scenario_directory));
  SimulatorOptions settings;
  FAIRLEAD_ASSIGN_OR_RETURN(const core::Configuration configuration,
                            Configuration(options, scenario));
  settings.core = configuration.options;
  settings.check_invariants = options.check;
  FAIRLEAD_RETURN_IF_ERROR(RecordOptions(options, scenario, settings));
  FAIRLEAD_ASSIGN_OR_RETURN(const hook::Catalog catalog, CatalogOf(scenario, configuration));
  settings.catalog = &catalog;
  FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<Simulator> simulator,
                            Simulator::Make(std::move(scenario), std::move(settings)));
  if (live_out != nullptr) {
    FAIRLEAD_RETURN_IF_ERROR(RunLive(*simulator, options, *live_out));
  } else {
    FAIRLEAD_RETURN_IF_ERROR(simulator->Run());
  }
  Report report;
  report.name = simulator->scenario().name;
  report.description = simulator->scenario().description;
  report.start = simulator->scenario().start;
  report.timeline = simulator->recorder().timeline();
  report.episodes = simulator->recorder().Episodes();
  report.end = simulator->view();
  report.bill = simulator->bill();
  report.stats = simulator->stats();
  report.nodes_bought = simulator->recorder().nodes_bought();
  report.evictions = simulator->recorder().evictions();
  return report;
}

absl::Status RunSimulate(const SimulateOptions& options, std::ostream& out) {
  const bool live = options.live && !options.json;
  FAIRLEAD_ASSIGN_OR_RETURN(const Report report, Simulate(options, live ? &out : nullptr));
  if (options.json) {
    out << ReportJson(report);
  } else if (live) {
    out << "\n" << ViewText(report.end) << "\n" << BillText(report);
  } else {
    out << ReportText(report);
  }
  return absl::OkStatus();
}

}  // namespace fairlead::sim
