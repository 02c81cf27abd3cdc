#include "scheduler/plugins/spread_args.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/qualified_name.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/pod_topology_spread.h"

namespace fairlead::plugins {
namespace {

using model::TopologySpreadConstraint;
using Constraints = std::vector<TopologySpreadConstraint>;

constexpr int64_t kMostInt32 = std::numeric_limits<int32_t>::max();

TopologySpreadConstraint Prefer(const char* key, int32_t max_skew) {
  TopologySpreadConstraint constraint;
  constraint.topology_key = key;
  constraint.max_skew = max_skew;
  constraint.do_not_schedule = false;
  return constraint;
}

absl::Status ReadConstraint(absl::string_view path, const JsonElement& value,
                            Constraints& constraints) {
  TopologySpreadConstraint constraint;
  int64_t max_skew = 0;
  int64_t min_domains = constraint.min_domains;
  std::string when, affinity = "Honor", taints = "Ignore";
  std::vector<std::string> label_keys;
  FAIRLEAD_RETURN_IF_ERROR(ReadFields(
      path, value,
      {{"maxSkew", &max_skew, 1, kMostInt32},
       {"topologyKey", &constraint.topology_key},
       {"whenUnsatisfiable", &when, 0, 0, {"DoNotSchedule", "ScheduleAnyway"}},
       {"minDomains", &min_domains, std::numeric_limits<int32_t>::min(), kMostInt32},
       {"nodeAffinityPolicy", &affinity, 0, 0, {"Honor", "Ignore"}},
       {"nodeTaintsPolicy", &taints, 0, 0, {"Honor", "Ignore"}},
       {"matchLabelKeys", &label_keys},
       {"labelSelector", [](absl::string_view at, const JsonElement&) {
          return BadArg(at,
                        "may not be given: each pod has the selector of its Services and of "
                        "its controller");
        }}}));
  if (max_skew == 0) return BadArg(absl::StrCat(path, ".maxSkew"), "must be given");
  if (!model::IsQualifiedName(constraint.topology_key)) {
    return BadArg(absl::StrCat(path, ".topologyKey"), "must be the key of a label");
  }
  if (when.empty()) return BadArg(absl::StrCat(path, ".whenUnsatisfiable"), "must be given");
  constraint.max_skew = static_cast<int32_t>(max_skew);
  constraint.min_domains = static_cast<int32_t>(min_domains);
  constraint.do_not_schedule = when == "DoNotSchedule";
  constraint.honor_node_affinity = affinity == "Honor";
  constraint.honor_node_taints = taints == "Honor";
  for (const TopologySpreadConstraint& other : constraints) {
    if (other.topology_key == constraint.topology_key &&
        other.do_not_schedule == constraint.do_not_schedule) {
      return BadArg(path,
                    absl::StrCat("is the second one of ", constraint.topology_key, ", ", when));
    }
  }
  constraints.push_back(std::move(constraint));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<state::SpreadDefaults> ReadSpreadDefaults(absl::string_view args_json) {
  state::SpreadDefaults defaults;
  std::string type = "System";
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(
      PodTopologySpread::kName, args_json,
      {{"defaultingType", &type, 0, 0, {"System", "List"}},
       {"defaultConstraints", [&](absl::string_view path, const JsonElement& value) {
          return ReadItems(path, value, [&](absl::string_view at, const JsonElement& item) {
            return ReadConstraint(at, item, defaults.constraints);
          });
        }}}));
  if (args_json.empty() || type == "List") return defaults;
  if (!defaults.constraints.empty()) {
    return BadArg("args.defaultConstraints", "must be empty with defaultingType System");
  }
  defaults.constraints = {Prefer(model::kHostnameLabel, 3), Prefer(model::kZoneLabel, 5)};
  defaults.origin = model::SpreadOrigin::kSystem;
  return defaults;
}

std::vector<state::SpreadDefaults> SpreadDefaultsOf(
    const std::vector<framework::Profile>& profiles) {
  std::vector<state::SpreadDefaults> all(profiles.size());
  bool any = false;
  for (size_t i = 0; i < profiles.size(); ++i) {
    for (const framework::ProfilePlugin& plugin : profiles[i].plugins) {
      if (plugin.name != PodTopologySpread::kName) continue;
      absl::StatusOr<state::SpreadDefaults> defaults = ReadSpreadDefaults(plugin.args_json);
      if (!defaults.ok()) continue;
      const bool scores = plugin.score && plugin.weight > 0;
      std::erase_if(defaults->constraints, [&](const TopologySpreadConstraint& each) {
        return each.do_not_schedule ? !plugin.filter : !scores;
      });
      any = any || !defaults->constraints.empty();
      all[i] = *std::move(defaults);
    }
  }
  if (!any) all.clear();
  return all;
}

}  // namespace fairlead::plugins
