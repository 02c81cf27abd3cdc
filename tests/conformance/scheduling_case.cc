#include "tests/conformance/scheduling_case.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "scheduler/model/quantity.h"

namespace fairlead::conformance {
namespace {

constexpr const char* kActions[] = {"allocate", "consolidation", "reclaim", "preempt",
                                    "stalegangeviction"};
constexpr const char* kStatuses[] = {"Pending", "Gated",     "Pipelined", "Binding",
                                     "Bound",   "Running",   "Releasing", "StuckInReleasing",
                                     "Failed",  "Succeeded", "Allocated"};
constexpr int64_t kMaxRounds = 1000;

template <size_t N>
bool OneOf(const std::string& text, const char* const (&names)[N]) {
  return std::find(std::begin(names), std::end(names), text) != std::end(names);
}

std::optional<int64_t> Scaled(const JsonView& value, double scale) {
  if (!value.present()) return std::nullopt;
  const double number = value.Number() * scale;
  if (std::fabs(number) > 9e18) {
    value.Fault("is out of range");
    return std::nullopt;
  }
  return std::llround(number);
}

std::string Status(const JsonView& value) {
  std::string status = value.Text();
  if (!status.empty() && !OneOf(status, kStatuses)) {
    value.Fault(absl::StrCat("unknown status ", status));
  }
  return status;
}

void ReadRounds(const JsonView& root, SchedulingCase& out) {
  const JsonView mode = root.Need("mode");
  const std::string text = mode.Text();
  out.rounds = text == "rounds";
  if (!out.rounds && text != "single") mode.Fault("must be \"single\" or \"rounds\"");
  const JsonView rounds = root.At("rounds");
  out.until_match = rounds.At("untilMatch").Integer(1);
  out.after_match = rounds.At("afterMatch").Integer(0);
  if (out.until_match < 1 || out.until_match > kMaxRounds || out.after_match < 0 ||
      out.after_match > kMaxRounds) {
    rounds.Fault("there must be 1 to 1000 rounds until the match, and 0 to 1000 after it");
  }
}

void ReadActions(const JsonView& list, std::vector<std::string>& out) {
  for (const JsonView& item : list.Items()) {
    out.push_back(item.Text());
    if (!OneOf(out.back(), kActions)) item.Fault(absl::StrCat("unknown action ", out.back()));
  }
}

void ReadTime(const JsonView& value, absl::Time& out) {
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, value.Text(), &out, &error)) {
    value.Fault(absl::StrCat("not a time: ", error));
  }
}

void ReadPlugins(const JsonView& conf, SchedulerSettings& out) {
  auto& plugins = out.plugins.emplace();
  for (const JsonView& tier : conf.Need("tiers").Items()) {
    for (const JsonView& plugin : tier.At("plugins").Items()) {
      ConfiguredPlugin& added = plugins.emplace_back();
      added.name = plugin.Need("name").Text();
      for (const auto& [key, value] : plugin.At("arguments").Members()) {
        added.arguments[key] = value.Text();
      }
    }
  }
}

void ReadSettings(const JsonView& config, SchedulingCase& out) {
  for (const auto& [key, value] : config.Members()) {
    if (key == "schedulerConf") {
      ReadPlugins(value, out.settings);
    } else if (key == "stalenessGracePeriod") {
      if (!absl::ParseDuration(value.Text(), &out.settings.staleness_grace_period)) {
        value.Fault("not a duration");
      }
    } else if (key == "followUpCycle") {
      out.settings.follow_up_cycle = value.Text() == "true";
    } else if (key != "predicatesPluginLoaded") {  // on or off, the outcome is the same
      out.notes.push_back(absl::StrCat("schedulerConfig.", key, " is not known here"));
    }
  }
}

void ReadState(const JsonView& state, SchedulingCase& out) {
  for (const auto& [name, pod] : state.At("pods").Members()) {
    StartState& start = out.start[name];
    start.status = Status(pod.At("status"));
    start.node = pod.At("node").Text();
    start.gpu_groups = pod.At("gpuGroups").Texts();
    start.legacy_mig = pod.At("legacyMig").Flag();
  }
  for (const auto& [name, job] : state.At("jobs").Members()) {
    if (job.At("staysReleasing").Flag()) out.stays_releasing.insert(name);
  }
}

void ReadExpectations(const JsonView& expect, Expectations& out) {
  for (const auto& [name, pod] : expect.Need("pods").Members()) {
    ExpectedPod& expected = out.pods[name];
    expected.status = Status(pod.Need("status"));
    const JsonView exact = pod.At("kaiStatus");
    if (exact.present()) expected.status = Status(exact);
    const JsonView node = pod.At("node");
    if (node.present()) expected.node = node.Text();
    const JsonView zones = pod.At("numaZones");
    if (!zones.present()) continue;
    expected.numa_zones.emplace();
    for (const JsonView& zone : zones.Items()) {
      expected.numa_zones->push_back(zone.Integer());
    }
  }
  for (const auto& [name, job] : expect.At("jobs").Members()) {
    ExpectedJob& expected = out.jobs[name];
    expected.milli_gpus = Scaled(job.At("gpusRequired"), 1000);
    expected.accepted_milli_gpus = Scaled(job.At("gpusAccepted"), 1000);
    expected.milli_cpus = Scaled(job.At("milliCpuRequired"), 1);
    expected.memory_bytes = Scaled(job.At("memoryRequired"), 1);
    expected.error_message = job.At("errorMessage").Text();
    const JsonView older = job.At("lastStartOlderThanSeconds");
    if (older.present()) expected.last_start_older_than = absl::Seconds(older.Number());
  }
  for (const auto& [name, node] : expect.At("nodes").Members()) {
    ExpectedNode& expected = out.nodes[name];
    expected.idle_milli_gpus = Scaled(node.At("idleGpus"), 1000);
    expected.releasing_milli_gpus = Scaled(node.At("releasingGpus"), 1000);
    for (const auto& [position, amounts] : node.At("numaZonesAvailable").Members()) {
      int64_t zone = 0;
      if (!absl::SimpleAtoi(position, &zone)) amounts.Fault("is not the position of a NUMA node");
      for (const auto& [resource, amount] : amounts.Members()) {
        const absl::StatusOr<int64_t> parsed =
            model::ParseResourceQuantity(resource, amount.Text());
        if (!parsed.ok()) amount.Fault(parsed.status().message());
        if (parsed.ok()) model::Set(expected.numa_available[zone], resource, *parsed);
      }
    }
  }
  const JsonView limits = expect.At("limits");
  out.limits = {Scaled(limits.At("bindCountMax"), 1), Scaled(limits.At("evictCountMax"), 1),
                Scaled(limits.At("pipelineCountMax"), 1)};
}

}  // namespace

absl::StatusOr<SchedulingCase> ReadSchedulingCase(const Json& json) {
  absl::Status error;
  const JsonView root(&json, "", &error);
  SchedulingCase out;
  out.name = root.At("name").Text();
  out.source = root.Need("source").Text();
  ReadRounds(root, out);
  ReadActions(root.Need("actions"), out.actions);
  ReadTime(root.Need("now"), out.now);
  ReadSettings(root.At("schedulerConfig"), out);
  for (const JsonView& object : root.Need("objects").Items())
    out.objects.push_back(*object.value());
  ReadState(root.At("state"), out);
  ReadExpectations(root.Need("expect"), out.expect);
  if (const Json* pods = root.At("observed").At("pods").value()) out.observed_pods = *pods;
  if (!error.ok()) return error;
  return out;
}

}  // namespace fairlead::conformance
