#include "scheduler/plugins/dynamic_resources.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {
namespace {

using framework::Code;
using framework::Context;
using framework::Room;
using state::ClaimRow;
using state::NodeDevice;

constexpr char kNotHere[] = "resourceclaim not available on the node";

// Is the claim held on the node, or will be where the pod may wait for that?
bool HeldOn(const Context& context, const ClaimRow& row, const state::NodeInfo& node) {
  if (row.object.allocated && !row.object.node_terms.empty()) {
    return std::any_of(row.object.node_terms.begin(), row.object.node_terms.end(),
                       [&](const model::NodeSelectorTerm& term) {
                         return term.Matches(node.object.meta.labels, node.name());
                       });
  }
  if (!row.devices.empty()) {
    return context.state.devices().NodeOf(row.devices.front()) == node.name();
  }
  if (row.consumers.empty() || context.room == Room::kNow) return false;
  const state::PodRecord& carrier = context.state.pod(row.consumers.front());
  return carrier.node == node.id && state::IsAllocated(carrier.status);
}

// Can the pod have the device, which may be held by a claim?
bool CanHave(const Context& context, const NodeDevice& device) {
  if (context.room == Room::kEmpty) return true;
  const state::DeviceBook& book = context.state.devices();
  const std::string* holder = book.HolderOf(device.key);
  if (holder == nullptr) return true;
  const std::vector<std::string>& own = context.pod_class.spec->claims_to_join;
  if (std::find(own.begin(), own.end(), *holder) != own.end()) return true;
  if (context.room != Room::kFuture) return false;
  // Promised another place in this cycle, or terminating: it gives back what it holds.
  const ClaimRow* row = book.Find(*holder);
  return !row->consumers.empty() &&
         std::all_of(row->consumers.begin(), row->consumers.end(), [&](state::PodId id) {
           const state::PodStatus status = context.state.pod(id).status;
           return status == state::PodStatus::kReleasing ||
                  status == state::PodStatus::kPipelined || state::IsFinished(status);
         });
}

bool DevicesSuffice(const Context& context, const state::NodeInfo& node) {
  const state::DeviceBook& book = context.state.devices();
  const std::vector<NodeDevice>& devices = book.DevicesOf(node.name());
  std::vector<bool> dealt(devices.size(), false);
  for (const auto& [demand, count] : context.pod_class.spec->requests) {
    if (!state::IsDemand(demand)) continue;
    int64_t missing = count;
    for (size_t i = 0; i < devices.size() && missing > 0; ++i) {
      if (dealt[i] || !book.Satisfies(devices[i], demand) || !CanHave(context, devices[i]))
        continue;
      dealt[i] = true;
      --missing;
    }
    if (missing > 0) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> DynamicResources::Make(
    absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadArgs(kName, args_json, {}));
  return std::make_unique<DynamicResources>();
}

bool DynamicResources::Filter(const Context& context, const state::NodeInfo& node,
                              framework::Status* why) const {
  const model::PodSpec& spec = *context.pod_class.spec;
  if (!spec.claim_problem.empty()) {
    return Refuse(why, Code::kUnschedulableAndUnresolvable, spec.claim_problem);
  }
  for (const std::string& key : spec.claims_to_join) {
    const ClaimRow* row = context.state.devices().Find(key);
    if (row == nullptr || !HeldOn(context, *row, node)) {
      return Refuse(why, Code::kUnschedulable, kNotHere);
    }
  }
  return DevicesSuffice(context, node) || Refuse(why, Code::kUnschedulable, kNotHere);
}

}  // namespace fairlead::plugins
