#include "scheduler/plugins/volume_restrictions.h"

#include <algorithm>

#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {
namespace {

using framework::Capacity;
using framework::Code;
using framework::Context;

constexpr char kDiskInUse[] = "node(s) had no available disk";
constexpr char kClaimInUse[] =
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod";
constexpr char kDecidedElsewhere[] = "node(s) didn't find available persistent volumes to bind";

bool Collide(const model::InlineDisk& a, const model::InlineDisk& b) {
  using Kind = model::InlineDisk::Kind;
  if (a.kind != b.kind || a.id != b.id) return false;
  if (a.kind == Kind::kAwsElasticBlockStore) return true;
  if (a.read_only && b.read_only) return false;
  return a.kind != Kind::kRbd ||
         std::any_of(a.monitors.begin(), a.monitors.end(), [&](const std::string& monitor) {
           return std::find(b.monitors.begin(), b.monitors.end(), monitor) != b.monitors.end();
         });
}

bool DiskInUse(const Context& context, const state::NodeInfo& node) {
  const std::vector<model::InlineDisk>& wanted = context.pod_class.spec->inline_disks;
  if (wanted.empty()) return false;
  return std::any_of(node.pods.begin(), node.pods.end(), [&](state::PodId id) {
    const state::PodRecord& pod = context.state.pod(id);
    if (!InTheWay(pod, context.capacity)) return false;
    const model::PodSpec& spec = *context.state.pod_class(pod.pod_class).spec;
    return std::any_of(spec.inline_disks.begin(), spec.inline_disks.end(), [&](const auto& used) {
      return std::any_of(wanted.begin(), wanted.end(),
                         [&](const auto& disk) { return Collide(disk, used); });
    });
  });
}

bool ClaimInUse(const Context& context, const model::SharedVolumeNeed& need) {
  if (!need.once || context.capacity == Capacity::kEmpty) return false;
  const state::VolumeClaimRow* claim = context.state.volumes().FindClaim(need.claim);
  return claim != nullptr &&
         context.state.UsersWithNode(*claim, context.capacity == Capacity::kFuture) > 0;
}

bool DecidedElsewhere(const Context& context, const model::SharedVolumeNeed& need,
                      const state::NodeInfo& node) {
  if (!need.unbound) return false;
  const state::VolumeClaimRow* claim = context.state.volumes().FindClaim(need.claim);
  return claim != nullptr && !claim->decided.node.empty() && claim->decided.node != node.name();
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> VolumeRestrictions::Make(
    absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<VolumeRestrictions>();
}

bool VolumeRestrictions::Filter(const Context& context, const state::NodeInfo& node,
                                framework::Status* why) const {
  const model::VolumeNeeds& needs = *context.pod_class.spec->volume_needs;
  const std::string& fault = FaultOf(needs, kName);
  if (!fault.empty()) return Refuse(why, Code::kUnschedulableAndUnresolvable, fault);
  if (DiskInUse(context, node)) return Refuse(why, Code::kUnschedulable, kDiskInUse);
  const auto any_shared = [&](auto is_refused) {
    return std::any_of(needs.shared.begin(), needs.shared.end(), is_refused);
  };
  if (any_shared([&](const auto& need) { return ClaimInUse(context, need); })) {
    return Refuse(why, Code::kUnschedulable, kClaimInUse);
  }
  if (any_shared([&](const auto& need) { return DecidedElsewhere(context, need, node); })) {
    return Refuse(why, Code::kUnschedulableAndUnresolvable, kDecidedElsewhere);
  }
  return true;
}

}  // namespace fairlead::plugins
