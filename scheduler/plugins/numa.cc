#include "scheduler/plugins/numa.h"

#include <algorithm>

#include "base/status_macros.h"
#include "scheduler/framework/score_tiers.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"
#include "scheduler/state/numa_zones.h"

namespace fairlead::plugins {
namespace {

using framework::Capacity;
using framework::Code;
using state::ZoneCapacity;

ZoneCapacity ToZoneCapacity(Capacity capacity) {
  switch (capacity) {
    case Capacity::kNow:
      return ZoneCapacity::kNow;
    case Capacity::kFuture:
      return ZoneCapacity::kFuture;
    case Capacity::kEmpty:
      return ZoneCapacity::kEmpty;
  }
  return ZoneCapacity::kNow;
}

constexpr char kNotAligned[] =
    "node(s) cannot give the pod what it requests on NUMA nodes as their Topology Manager demands";

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> Numa::Make(absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<Numa>();
}

bool Numa::Filter(const framework::Context& context, const state::NodeInfo& node,
                  framework::Status* why) const {
  if (node.numa == nullptr) return true;
  const state::AlignedUnits& units = *context.pod_class.aligned;
  if (state::FitsZones(*node.numa, units, ToZoneCapacity(context.capacity))) return true;
  if (why == nullptr) return false;
  const bool ever = state::FitsZones(*node.numa, units, ZoneCapacity::kEmpty);
  return Refuse(why, ever ? Code::kUnschedulable : Code::kUnschedulableAndUnresolvable,
                kNotAligned);
}

int64_t Numa::Score(const framework::Context& context, const state::NodeInfo& node) const {
  const auto most = static_cast<int64_t>(context.state.most_zones());
  if (most == 0) return 0;
  int64_t span = most;
  if (node.numa != nullptr) {
    span = static_cast<int64_t>(node.numa->zones.size());
    if (node.numa->policy != model::NumaPolicy::kNone) {
      const auto pick = state::PickZones(*node.numa, *context.pod_class.aligned,
                                         ToZoneCapacity(context.capacity));
      if (!pick.has_value()) return 0;
      span = std::max<int64_t>(1, static_cast<int64_t>(pick->size()));
    }
  }
  return kMostSpan - std::min(span, kMostSpan);
}

}  // namespace fairlead::plugins
