#include "sim/scenario.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "document/fields.h"
#include "scheduler/model/quantity.h"

namespace fairlead::sim {
namespace {

constexpr int64_t kMicro = 1'000'000;

class ScenarioReader {
 public:
  explicit ScenarioReader(std::string directory)
      : directory_(std::move(directory)), file_(directory_ + "/scenario.yaml"), yaml_(file_) {}

  absl::StatusOr<Scenario> Read() {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, ReadFile(file_));
    FAIRLEAD_ASSIGN_OR_RETURN(const Json root, yaml_.Parse(text));
    scenario_.directory = directory_;
    absl::Duration duration = absl::ZeroDuration();
    std::string configuration, catalog;
    int64_t seed = 0, accelerate = 3600;
    const Handler hook = [this](auto& node, auto& at) { return ReadHook(node, at); };
    const Handler cloud = [this](auto& node, auto& at) { return ReadCloud(node, at); };
    const Handler timeline = [this](auto& node, auto& at) {
      return yaml_.List(node, at, [this](auto& n, auto& f) { return ReadStep(n, f); });
    };
    FAIRLEAD_RETURN_IF_ERROR(yaml_.Map(root, "",
                                       {{"name", yaml_.Text(&scenario_.name)},
                                        {"description", yaml_.Text(&scenario_.description)},
                                        {"start", yaml_.Time(&scenario_.start)},
                                        {"duration", yaml_.Duration(&duration)},
                                        {"seed", yaml_.Integer(&seed, 0)},
                                        {"accelerate", yaml_.Integer(&accelerate, 1)},
                                        {"configuration", yaml_.Text(&configuration)},
                                        {"catalog", yaml_.Text(&catalog)},
                                        {"hook", hook},
                                        {"cloud", cloud},
                                        {"timeline", timeline}},
                                       {"name", "start", "duration", "timeline"}));
    scenario_.end = scenario_.start + duration;
    scenario_.seed = static_cast<uint64_t>(seed);
    scenario_.accelerate = static_cast<double>(accelerate);
    if (!configuration.empty()) scenario_.configuration_file = InFolder(configuration);
    if (!catalog.empty()) scenario_.catalog_file = InFolder(catalog);
    for (const ScenarioStep& step : scenario_.timeline) {
      if (step.at > duration) {
        return yaml_.Error(root, "timeline",
                           absl::StrCat("step at ", absl::FormatDuration(step.at),
                                        " is after the end of the scenario"));
      }
    }
    std::stable_sort(scenario_.timeline.begin(), scenario_.timeline.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
    return std::move(scenario_);
  }

 private:
  using Handler = FieldReader::Handler;

  std::string InFolder(const std::string& file) const {
    return absl::StrCat(directory_, "/", file);
  }

  Handler Usd(std::optional<int64_t>* out) const {
    return [this, out](const Json& node, const std::string& field) {
      absl::StatusOr<int64_t> micro =
          node.is_text() ? model::ParseDecimal(node.text(), kMicro)
                         : absl::StatusOr<int64_t>(absl::InvalidArgumentError("not a number"));
      if (!micro.ok() || *micro < 0) return yaml_.Error(node, field, "must be dollars an hour");
      *out = *micro;
      return absl::OkStatus();
    };
  }
  Handler Duration(std::optional<absl::Duration>* out) const {
    return [this, out](const Json& node, const std::string& field) {
      return yaml_.Duration(&out->emplace())(node, field);
    };
  }

  absl::Status ReadHook(const Json& node, const std::string& field) {
    HookSettings& hook = scenario_.hook;
    const Handler cluster_limit = [&](auto& n, auto& at) {
      return yaml_.Integer(&hook.cluster_gpu_limit.emplace(), 0)(n, at);
    };
    const Handler limits = [&](auto& n, auto& at) {
      return yaml_.AnyMap(n, at, [&](auto& key, auto& value, auto& f) {
        return yaml_.Integer(&hook.gpu_limits[key], 0)(value, f);
      });
    };
    const Handler provider = [&](auto& n, auto& at) {
      return yaml_.Text(&hook.provider.emplace())(n, at);
    };
    return yaml_.Map(node, field,
                     {{"provider", provider},
                      {"clusterGPULimit", cluster_limit},
                      {"gpuLimits", limits},
                      {"costLimit", Usd(&hook.cost_limit_micro_usd_per_hour)},
                      {"unneededAfter", Duration(&hook.unneeded_after)},
                      {"launchTimeout", Duration(&hook.launch_timeout)},
                      {"readyTimeout", Duration(&hook.ready_timeout)}});
  }

  absl::Status ReadCloud(const Json& node, const std::string& field) {
    CloudOptions& cloud = scenario_.cloud;
    const Handler by_type = [&](auto& n, auto& at) {
      return yaml_.AnyMap(n, at, [&](auto& key, auto& value, auto& f) {
        return yaml_.Duration(&cloud.boot_delay_by_type[key])(value, f);
      });
    };
    std::string own_names = "false";
    const Handler names = [&](auto& n, auto& at) {
      FAIRLEAD_RETURN_IF_ERROR(yaml_.Text(&own_names)(n, at));
      cloud.own_node_names = own_names == "true";
      if (own_names == "true" || own_names == "false") return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat(at, ": must be true or false"));
    };
    return yaml_.Map(node, field,
                     {{"bootDelay", yaml_.Duration(&cloud.boot_delay)},
                      {"bootDelays", by_type},
                      {"ownNodeNames", names},
                      {"memoryPercent", yaml_.Integer(&cloud.memory_percent, 1)},
                      {"readyDelay", yaml_.Duration(&cloud.ready_delay)},
                      {"terminateDelay", yaml_.Duration(&cloud.terminate_delay)}});
  }

  absl::Status ReadStep(const Json& node, const std::string& field) {
    ScenarioStep step;
    const Handler apply = [&](auto& n, auto& at) {
      return yaml_.List(n, at, [&](auto& item, auto& f) { return ReadApply(item, f, step); });
    };
    const Handler remove = [&](auto& n, auto& at) {
      return yaml_.List(n, at, [&](auto& item, auto& f) -> absl::Status {
        std::string text;
        FAIRLEAD_RETURN_IF_ERROR(yaml_.Text(&text)(item, f));
        return Reference(item, f, text, step.remove.emplace_back());
      });
    };
    const Handler scale = [&](auto& n, auto& at) {
      return yaml_.AnyMap(n, at, [&](auto& key, auto& value, auto& f) -> absl::Status {
        auto& [ref, replicas] = step.scale.emplace_back();
        FAIRLEAD_RETURN_IF_ERROR(Reference(value, f, key, ref));
        return yaml_.Integer(&replicas, 0)(value, f);
      });
    };
    const Handler fault = [&](auto& n, auto& at) { return ReadFault(n, at, step); };
    FAIRLEAD_RETURN_IF_ERROR(yaml_.Map(node, field,
                                       {{"at", yaml_.Duration(&step.at)},
                                        {"note", yaml_.Text(&step.note)},
                                        {"apply", apply},
                                        {"delete", remove},
                                        {"scale", scale},
                                        {"fault", fault}},
                                       {"at"}));
    scenario_.timeline.push_back(std::move(step));
    return absl::OkStatus();
  }

  absl::Status Reference(const Json& node, const std::string& field, const std::string& text,
                         ObjectRef& out) const {
    absl::StatusOr<ObjectRef> ref = ParseObjectRef(text);
    if (!ref.ok()) return yaml_.Error(node, field, ref.status().message());
    out = *std::move(ref);
    return absl::OkStatus();
  }

  absl::Status ReadApply(const Json& node, const std::string& field, ScenarioStep& step) {
    std::string name;
    FAIRLEAD_RETURN_IF_ERROR(yaml_.Text(&name)(node, field));
    absl::StatusOr<std::string> text = ReadFile(InFolder(name));
    if (!text.ok()) return yaml_.Error(node, field, text.status().message());
    FAIRLEAD_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(*text, InFolder(name)));
    step.files.push_back(std::move(name));
    step.apply.push_back(std::move(manifest));
    return absl::OkStatus();
  }

  absl::Status ReadFault(const Json& node, const std::string& field, ScenarioStep& step) {
    // One mapping from the name of a fault to its settings; every fault accepts all of them.
    using Kind = ScriptedFault::Kind;
    const std::map<std::string, Kind> kinds = {{"stockout", Kind::kStockout},
                                               {"neverArrives", Kind::kNeverArrives},
                                               {"lateBoot", Kind::kLateBoot},
                                               {"loseNode", Kind::kLoseNode},
                                               {"breakWatches", Kind::kBreakWatches},
                                               {"slowAPI", Kind::kSlowApi},
                                               {"restart", Kind::kRestart}};
    return yaml_.AnyMap(node, field, [&](auto& key, auto& value, auto& at) -> absl::Status {
      auto kind = kinds.find(key);
      if (kind == kinds.end()) return yaml_.Error(value, at, "unknown fault");
      ScriptedFault& fault = step.faults.emplace_back();
      fault.kind = kind->second;
      std::vector<std::string> required;
      if (fault.kind == Kind::kStockout) required = {"instanceType", "for"};
      if (fault.kind == Kind::kLoseNode) required = {"target"};
      if (fault.kind == Kind::kBreakWatches) required = {"for"};
      if (fault.kind == Kind::kSlowApi) required = {"for", "delay"};
      return yaml_.Map(value, at,
                       {{"instanceType", yaml_.Text(&fault.instance_type)},
                        {"zone", yaml_.Text(&fault.zone)},
                        {"target", yaml_.Text(&fault.target)},
                        {"for", yaml_.Duration(&fault.duration)},
                        {"delay", yaml_.Duration(&fault.delay)},
                        {"count", yaml_.Integer(&fault.count, 1)},
                        {"factor", yaml_.Integer(&fault.factor, 1)}},
                       required);
    });
  }

  std::string directory_, file_;
  FieldReader yaml_;
  Scenario scenario_;
};

}  // namespace

void HookSettings::ApplyTo(hook::HookOptions& options) const {
  if (provider.has_value()) options.provider = *provider;
  if (cluster_gpu_limit.has_value()) options.cluster_gpu_limit = *cluster_gpu_limit;
  for (const auto& [gpu_model, limit] : gpu_limits) options.gpu_limit_by_model[gpu_model] = limit;
  if (cost_limit_micro_usd_per_hour.has_value()) {
    options.cost_limit_micro_usd_per_hour = *cost_limit_micro_usd_per_hour;
  }
  if (unneeded_after.has_value()) options.unneeded_after = *unneeded_after;
  if (ready_timeout.has_value()) options.ready_timeout = *ready_timeout;
  if (launch_timeout.has_value()) options.launch_timeout = *launch_timeout;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  return std::string(std::istreambuf_iterator<char>(in), {});
}

absl::StatusOr<Scenario> ReadScenario(const std::string& directory) {
  std::string folder = directory;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  return ScenarioReader(folder).Read();
}

}  // namespace fairlead::sim
