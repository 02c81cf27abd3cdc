#include "core/options.h"

#include <algorithm>

#include "scheduler/model/api_names.h"
#include "scheduler/plugins/image_locality.h"
#include "scheduler/plugins/node_resources_fit.h"
#include "scheduler/plugins/numa.h"
#include "scheduler/plugins/spread_args.h"

namespace fairlead::core {

namespace {

// Whether a plugin of some profile is one that `is` says.
template <typename Is>
bool AnyPlugin(const Options& options, Is is) {
  return std::any_of(options.profiles.begin(), options.profiles.end(),
                     [&](const framework::Profile& profile) {
                       return std::any_of(profile.plugins.begin(), profile.plugins.end(), is);
                     });
}

bool Scores(const Options& options, absl::string_view plugin) {
  return AnyPlugin(options, [plugin](const framework::ProfilePlugin& entry) {
    return entry.name == plugin && entry.score && entry.weight > 0;
  });
}

}  // namespace

bool Reads(const Options& options, model::Kind kind) {
  if (model::IsSpreadSource(kind)) return !plugins::SpreadDefaultsOf(options.profiles).empty();
  const bool buffers = options.hook.enabled && options.capacity.buffers;
  const bool requests = options.hook.enabled && options.capacity.provisioning_requests;
  if (kind == model::Kind::kCapacityBuffer) return buffers;
  if (kind == model::Kind::kProvisioningRequest) return requests;
  if (kind == model::Kind::kPodTemplate) return buffers || requests;
  return kind != model::Kind::kNodeResourceTopology ||
         AnyPlugin(options, [](const auto& entry) { return entry.name == plugins::Numa::kName; });
}

state::StateOptions StateOptionsFor(const Options& options) {
  state::StateOptions state = options.state;
  state.align_to_numa_nodes = Reads(options, model::Kind::kNodeResourceTopology);
  state.keep_images = Scores(options, plugins::ImageLocality::kName);
  state.sum_scoring_requests = Scores(options, plugins::NodeResourcesFit::kName);
  state.spread_defaults = plugins::SpreadDefaultsOf(options.profiles);
  state.profiles.clear();
  state.priority_rules.clear();
  for (size_t i = 0; i < options.profiles.size(); ++i) {
    state.profiles.emplace(options.profiles[i].scheduler_name, static_cast<uint16_t>(i));
    state.priority_rules.push_back(options.profiles[i].priority_rules);
  }
  return state;
}

Options KwokOptions() {
  Options options;
  options.state.scheduler_names = {model::kDefaultSchedulerName, model::kKaiSchedulerName};
  options.hook.enabled = true;
  options.hook.provider = "kwok";
  return options;
}

}  // namespace fairlead::core
