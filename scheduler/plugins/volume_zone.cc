#include "scheduler/plugins/volume_zone.h"

#include <algorithm>
#include <iterator>

#include "base/status_macros.h"
#include "scheduler/model/api_names.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {
namespace {

constexpr char kBetaZoneLabel[] = "failure-domain.beta.kubernetes.io/zone";
constexpr char kBetaRegionLabel[] = "failure-domain.beta.kubernetes.io/region";
constexpr char kRegionLabel[] = "topology.kubernetes.io/region";
constexpr const char* kLabels[] = {kBetaZoneLabel, kBetaRegionLabel, model::kZoneLabel,
                                   kRegionLabel};

// The node's value of a volume's label; null: it has none.
const std::string* ValueOf(const model::Node& node, const std::string& key) {
  const std::string* value = node.meta.labels.Find(key);
  if (value != nullptr) return value;
  if (key == kBetaZoneLabel) return node.meta.labels.Find(model::kZoneLabel);
  if (key == kBetaRegionLabel) return node.meta.labels.Find(kRegionLabel);
  return nullptr;
}

bool Reaches(const model::VolumeZoneLabel& label, const model::Node& node) {
  const std::string* value = ValueOf(node, label.key);
  return value != nullptr && std::binary_search(label.values.begin(), label.values.end(), *value);
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> VolumeZone::Make(absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<VolumeZone>();
}

bool VolumeZone::FilterApplies(const state::PodClass& pod_class) const {
  const model::VolumeNeeds& needs = *pod_class.spec->volume_needs;
  return std::any_of(needs.bound.begin(), needs.bound.end(),
                     [](const model::BoundVolumeNeed& need) { return !need.zones.empty(); }) ||
         !FaultOf(needs, kName).empty();
}

bool VolumeZone::Filter(const framework::Context& context, const state::NodeInfo& node,
                        framework::Status* why) const {
  constexpr auto kNever = framework::Code::kUnschedulableAndUnresolvable;
  const model::VolumeNeeds& needs = *context.pod_class.spec->volume_needs;
  const std::string& fault = FaultOf(needs, kName);
  if (!fault.empty()) return Refuse(why, kNever, fault);
  if (std::none_of(std::begin(kLabels), std::end(kLabels), [&](const char* label) {
        return node.object.meta.labels.Find(label) != nullptr;
      })) {
    return true;
  }
  const bool reached =
      std::all_of(needs.bound.begin(), needs.bound.end(), [&](const model::BoundVolumeNeed& need) {
        return std::all_of(
            need.zones.begin(), need.zones.end(),
            [&](const model::VolumeZoneLabel& label) { return Reaches(label, node.object); });
      });
  return reached || Refuse(why, kNever, "node(s) had no available volume zone");
}

}  // namespace fairlead::plugins
