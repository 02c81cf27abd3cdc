#include "scheduler/plugins/volume_binding.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {
namespace {

constexpr char kNoAffinity[] = "node(s) didn't match PersistentVolume's node affinity";
constexpr char kNoVolume[] = "node(s) didn't find available persistent volumes to bind";
constexpr char kNoSpace[] = "node(s) did not have enough free storage";

absl::StatusOr<absl::Duration> ReadBindTimeout(absl::string_view args_json) {
  int64_t seconds = absl::ToInt64Seconds(VolumeBinding::kDefaultBindTimeout);
  FAIRLEAD_RETURN_IF_ERROR(
      ReadArgs(VolumeBinding::kName, args_json,
               {{"bindTimeoutSeconds", &seconds, 0, std::numeric_limits<int64_t>::max()}}));
  return absl::Seconds(seconds);
}

bool IsUsableOn(const model::BoundVolumeNeed& need, const model::Node& node) {
  if (!need.has_node_affinity) return true;
  return std::any_of(
      need.node_terms.begin(), need.node_terms.end(),
      [&](const model::NodeSelectorTerm& term) { return term.MatchesLabels(node.meta.labels); });
}

// What becomes of the unbound claims on the node.
state::VolumeChoice ChoiceOn(const state::Volumes& volumes,
                             const std::vector<model::UnboundVolumeNeed>& unbound,
                             const model::Node& node) {
  const auto is_decided_here = [&](const model::UnboundVolumeNeed& need) {
    if (need.claim.empty()) return false;
    const state::VolumeClaimRow* row = volumes.FindClaim(need.claim);
    return row != nullptr && !row->decided.node.empty() && row->decided.node == node.meta.name;
  };
  if (std::none_of(unbound.begin(), unbound.end(), is_decided_here)) {
    return volumes.Choose(unbound, node);
  }
  std::vector<model::UnboundVolumeNeed> open;
  std::remove_copy_if(unbound.begin(), unbound.end(), std::back_inserter(open), is_decided_here);
  return volumes.Choose(open, node);
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> VolumeBinding::Make(
    absl::string_view args_json) {
  FAIRLEAD_ASSIGN_OR_RETURN(const absl::Duration bind_timeout, ReadBindTimeout(args_json));
  return std::make_unique<VolumeBinding>(bind_timeout);
}

bool VolumeBinding::FilterApplies(const state::PodClass& pod_class) const {
  const model::VolumeNeeds& needs = *pod_class.spec->volume_needs;
  return !needs.unbound.empty() ||
         std::any_of(needs.bound.begin(), needs.bound.end(),
                     [](const model::BoundVolumeNeed& need) { return need.has_node_affinity; }) ||
         !FaultOf(needs, kName).empty();
}

bool VolumeBinding::Filter(const framework::Context& context, const state::NodeInfo& node,
                           framework::Status* why) const {
  constexpr auto kNever = framework::Code::kUnschedulableAndUnresolvable;
  const model::VolumeNeeds& needs = *context.pod_class.spec->volume_needs;
  const std::string& fault = FaultOf(needs, kName);
  if (!fault.empty()) return Refuse(why, kNever, fault);
  const bool usable = std::all_of(
      needs.bound.begin(), needs.bound.end(),
      [&](const model::BoundVolumeNeed& need) { return IsUsableOn(need, node.object); });
  if (!usable && why == nullptr) return false;
  const state::VolumeChoice choice = ChoiceOn(context.state.volumes(), needs.unbound, node.object);
  if (usable && choice.Fits()) return true;
  if (why == nullptr) return false;
  std::vector<absl::string_view> reasons;
  if (!usable) reasons.emplace_back(kNoAffinity);
  if (!choice.found) reasons.emplace_back(kNoVolume);
  if (!choice.space) reasons.emplace_back(kNoSpace);
  return Refuse(why, kNever, absl::StrJoin(reasons, ", "));
}

absl::StatusOr<absl::Duration> BindTimeoutOf(const std::vector<framework::Profile>& profiles) {
  std::optional<absl::Duration> longest;
  for (const framework::Profile& profile : profiles) {
    for (const framework::ProfilePlugin& plugin : profile.plugins) {
      if (plugin.name != VolumeBinding::kName) continue;
      FAIRLEAD_ASSIGN_OR_RETURN(const absl::Duration timeout, ReadBindTimeout(plugin.args_json));
      longest = std::max(longest.value_or(timeout), timeout);
    }
  }
  return longest.value_or(VolumeBinding::kDefaultBindTimeout);
}

}  // namespace fairlead::plugins
