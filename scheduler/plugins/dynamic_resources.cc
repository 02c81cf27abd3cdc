#include "scheduler/plugins/dynamic_resources.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"
#include "scheduler/state/device_placement.h"
#include "scheduler/state/extended_claims.h"
#include "scheduler/state/promised_devices.h"

namespace fairlead::plugins {
namespace {

using framework::Capacity;
using framework::Code;
using framework::Context;
using state::ClaimRow;
using state::NodeDevice;

constexpr char kNotHere[] = "resourceclaim not available on the node";
constexpr char kMixed[] =
    "node(s) have some of the pod's extended resources by device plugin and others by DRA";
constexpr char kTooMany[] = "resourceclaim has too many ways to choose devices of the node";

// Do all pods that the claim is reserved for terminate, or are they gone? Then it will be freed,
// and its devices may be promised to others already. The pod that its controller has made in the
// place of an evicted one must not join it: the devices would never be free, and the eviction would
// be repeated.
bool IsBeingLeft(const Context& context, const ClaimRow& row) {
  if (row.object.reserved_for.empty() || row.object.reserved_for_others) return false;
  return std::all_of(row.consumers.begin(), row.consumers.end(), [&](state::PodId id) {
    const state::PodRecord& pod = context.state.pod(id);
    if (pod.status == state::PodStatus::kReleasing || state::IsFinished(pod.status)) return true;
    return !state::HoldsNode(pod.status) && !row.object.IsReservedFor(pod.uid);
  });
}

// Is the claim held on the node, or will be where the pod may wait for that?
bool HeldOn(const Context& context, const ClaimRow& row, const state::NodeInfo& node) {
  if (context.capacity == Capacity::kNow && IsBeingLeft(context, row)) return false;
  if (row.object.allocated && !row.object.node_terms.empty()) {
    return std::any_of(row.object.node_terms.begin(), row.object.node_terms.end(),
                       [&](const model::NodeSelectorTerm& term) {
                         return term.Matches(node.object.meta.labels, node.name());
                       });
  }
  if (!row.devices.empty()) return context.state.devices().IsHeldOn(row, node.name());
  if (row.consumers.empty() || context.capacity == Capacity::kNow) return false;
  const state::PodRecord& carrier = context.state.pod(row.consumers.front());
  return carrier.node == node.id && state::IsAllocated(carrier.status);
}

// Can the pod have the device, which may be held by a claim?
bool CanHave(const Context& context, Capacity capacity, const NodeDevice& device) {
  if (capacity == Capacity::kEmpty) return true;
  if (capacity == Capacity::kFuture) return state::IsComing(context.state, device);
  return context.state.devices().HolderOf(device.key) == nullptr;
}

// What the pod asks for by claims that hold nothing yet.
model::ResourceList OpenDemands(const Context& context) {
  const state::DeviceAllocator& book = context.state.devices();
  model::ResourceList open;
  for (const auto& [name, amount] : context.pod_class.spec->requests) {
    if (state::IsDemand(name)) open.emplace_back(name, amount);
  }
  for (const std::string& key : context.pod_class.spec->claims_to_join) {
    const ClaimRow* row = book.Find(key);
    if (row == nullptr || !row->object.allocated || row->consumers.empty() ||
        context.state.class_of(row->consumers.front()).spec != context.pod_class.spec ||
        context.state.IsExtendedClaim(key, row->consumers.front())) {
      continue;
    }
    const auto held = book.AskOf(row->object);
    if (!held.ok()) continue;
    for (const state::RequestDemand& demand : *held) {
      model::Set(open, demand.demand,
                 std::max<int64_t>(0, model::Get(open, demand.demand) - demand.count));
    }
  }
  return open;
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> DynamicResources::Make(
    absl::string_view args_json) {
  std::string filter_timeout = "10s", binding_timeout = "10m";
  FAIRLEAD_RETURN_IF_ERROR(
      ReadArgs(kName, args_json,
               {{"filterTimeout", &filter_timeout}, {"bindingTimeout", &binding_timeout}}));
  absl::Duration timeout;
  if (!absl::ParseDuration(filter_timeout, &timeout) || timeout < absl::ZeroDuration()) {
    return BadArg("args.filterTimeout", "must be a duration, zero or positive");
  }
  if (!absl::ParseDuration(binding_timeout, &timeout) || timeout < absl::Seconds(1)) {
    return BadArg("args.bindingTimeout", "must be a duration of at least 1 second");
  }
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
  model::ResourceList open = OpenDemands(context);
  switch (state::SourceOf(node.object, *spec.extended)) {
    case state::DeviceSource::kPlugin:
      break;
    case state::DeviceSource::kMixed:
      return Refuse(why, Code::kUnschedulableAndUnresolvable, kMixed);
    case state::DeviceSource::kClaim:
      for (const auto& [name, amount] : spec.extended->demands) model::Add(open, name, amount);
      break;
  }
  if (open.empty() && spec.claims_to_join.empty()) return true;
  const state::DeviceAllocator& book = context.state.devices();
  state::DevicePromises promises;
  if (context.capacity != Capacity::kEmpty) {
    promises = state::PromisesOn(context.state, node, spec.claims_to_join);
  }
  if (open.empty() && promises.demands.empty()) return true;
  const auto can_have = [&](const NodeDevice& device) {
    return !promises.Keeps(book, device) && CanHave(context, context.capacity, device);
  };
  const auto can_come = [&](const NodeDevice& device) {
    return !promises.Keeps(book, device) && state::IsComing(context.state, device);
  };
  const state::PromisedBesides besides{promises.demands, can_come};
  const auto outcome = state::PlaceDevices(book, node.name(), open, can_have,
                                           promises.demands.empty() ? nullptr : &besides)
                           .outcome;
  switch (outcome) {
    case state::ChoiceOutcome::kFound:
      return true;
    case state::ChoiceOutcome::kNone:
      return Refuse(why, Code::kUnschedulable, kNotHere);
    case state::ChoiceOutcome::kGaveUp:
      return Refuse(why, Code::kUnschedulable, kTooMany);
  }
  return false;
}

}  // namespace fairlead::plugins
