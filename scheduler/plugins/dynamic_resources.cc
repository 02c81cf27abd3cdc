#include "scheduler/plugins/dynamic_resources.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "scheduler/plugins/args.h"
#include "scheduler/plugins/common.h"
#include "scheduler/plugins/normalize.h"
#include "scheduler/state/device_placement.h"
#include "scheduler/state/extended_claims.h"
#include "scheduler/state/left_out_devices.h"
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

// Is a pod that brings the claim along promised the node, which is one of a what-if?
bool IsBroughtTo(const Context& context, absl::string_view key, const state::NodeInfo& node) {
  return std::any_of(node.pods.begin(), node.pods.end(), [&](state::PodId id) {
    return model::BringsClaim(*context.state.class_of(id).spec, key);
  });
}

// Is the claim held on the node, or will be where the pod may wait for that?
bool HeldOn(const Context& context, absl::string_view key, const ClaimRow& row,
            const state::NodeInfo& node) {
  if (context.capacity == Capacity::kNow && IsBeingLeft(context, row)) return false;
  if (row.object.allocated && !row.object.node_terms.empty()) {
    return std::any_of(row.object.node_terms.begin(), row.object.node_terms.end(),
                       [&](const model::NodeSelectorTerm& term) {
                         return term.Matches(node.object.meta.labels, node.name());
                       });
  }
  if (!row.devices.empty()) return context.state.devices().IsHeldOn(row, node.name());
  // The pods that are planned there stand for those that wait.
  if (node.kind == state::NodeKind::kVirtual) {
    const bool open = !row.object.allocated && context.capacity == Capacity::kEmpty;
    return open || IsBroughtTo(context, key, node);
  }
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

// The devices of the node that the pod would get, beside what other pods are promised there. An
// error: the node has some of its extended resources by device plugin and others by DRA.
absl::StatusOr<state::PlacedDevices> Place(const Context& context, const state::NodeInfo& node) {
  const model::PodSpec& spec = *context.pod_class.spec;
  state::PlacedDevices placed;
  model::ResourceList open = OpenDemands(context);
  switch (state::SourceOf(node.object, *spec.extended)) {
    case state::DeviceSource::kPlugin:
      break;
    case state::DeviceSource::kMixed:
      return absl::FailedPreconditionError(kMixed);
    case state::DeviceSource::kClaim:
      for (const auto& [name, amount] : spec.extended->demands) model::Add(open, name, amount);
      break;
  }
  placed.outcome = state::ChoiceOutcome::kFound;
  if (open.empty() && spec.claims_to_join.empty()) return placed;
  const state::DeviceAllocator& book = context.state.devices();
  state::DevicePromises promises;
  if (context.capacity != Capacity::kEmpty) {
    promises = state::PromisesOn(context.state, node, spec.claims_to_join);
  }
  if (open.empty() && promises.demands.empty()) return placed;
  const auto can_have = [&](const NodeDevice& device) {
    return !promises.Keeps(book, device) && CanHave(context, context.capacity, device);
  };
  const auto can_come = [&](const NodeDevice& device) {
    return !promises.Keeps(book, device) && state::IsComing(context.state, device);
  };
  const state::PromisedBesides besides{promises.demands, can_come};
  return state::PlaceDevices(book, node.name(), open, can_have,
                             promises.demands.empty() ? nullptr : &besides);
}

// Of what the node has for the pod: the devices that are given to no claim.
std::string LeftOut(const Context& context, const state::NodeInfo& node) {
  std::string detail;
  for (const auto& [name, amount] : OpenDemands(context)) {
    detail = state::LeftOutOn(context.state.devices(), node.name(), name);
    if (!detail.empty()) break;
  }
  return detail;
}

// Of a request with alternatives (FirstAvailableDeviceRequestMaxSize of resource.k8s.io/v1, the
// most that one may list).
constexpr int64_t kMostAlternatives = 8;

int64_t WorthOf(const state::ClaimShape& shape, const std::vector<size_t>& options) {
  int64_t worth = 0;
  for (size_t i = 0; i < options.size(); ++i) {
    if (shape.requests[i].first_available) {
      worth += kMostAlternatives - static_cast<int64_t>(options[i]);
    }
  }
  return worth;
}

// The same of a claim that holds its devices.
int64_t WorthOf(const state::DeviceAllocator& book, const ClaimRow& row) {
  int64_t worth = 0;
  if (!row.object.allocated) {
    const auto dealt = state::DealDevices(book, row.node, row.object, row.devices);
    if (!dealt.has_value()) return 0;
    std::vector<size_t> options;
    for (const state::DealtRequest& request : *dealt) options.push_back(request.option);
    return WorthOf(state::ShapeOf(row.object), options);
  }
  for (const model::DeviceRequest& request : row.object.requests) {
    for (size_t i = 0; i < request.first_available.size(); ++i) {
      const bool has = std::any_of(
          row.object.devices.begin(), row.object.devices.end(),
          [name = state::RequestName(request, i)](const auto& of) { return of.request == name; });
      if (has) worth += kMostAlternatives - static_cast<int64_t>(i);
    }
  }
  return worth;
}

// Before it is normalised.
int64_t WorthOf(const Context& context, const state::NodeInfo& node) {
  const absl::StatusOr<state::PlacedDevices> placed = Place(context, node);
  if (!placed.ok() || placed->outcome != state::ChoiceOutcome::kFound) return 0;
  const state::DeviceAllocator& book = context.state.devices();
  int64_t worth = 0;
  for (const state::PlacedDevices::Claim& claim : placed->claims) {
    worth += WorthOf(*book.FindShape(claim.shape), claim.options);
  }
  for (const std::string& key : context.pod_class.spec->claims_to_join) {
    if (const ClaimRow* row = book.Find(key); row != nullptr) worth += WorthOf(book, *row);
  }
  return worth;
}

// Of the arguments, which are checked.
absl::StatusOr<absl::Duration> ReadBindingTimeout(absl::string_view args_json) {
  std::string filter_timeout = "10s";
  std::string binding_timeout = absl::FormatDuration(DynamicResources::kDefaultBindingTimeout);
  FAIRLEAD_RETURN_IF_ERROR(
      ReadArgs(DynamicResources::kName, args_json,
               {{"filterTimeout", &filter_timeout}, {"bindingTimeout", &binding_timeout}}));
  absl::Duration timeout;
  if (!absl::ParseDuration(filter_timeout, &timeout) || timeout < absl::ZeroDuration()) {
    return BadArg("args.filterTimeout", "must be a duration, zero or positive");
  }
  if (!absl::ParseDuration(binding_timeout, &timeout) || timeout < absl::Seconds(1)) {
    return BadArg("args.bindingTimeout", "must be a duration of at least 1 second");
  }
  return timeout;
}

}  // namespace

absl::StatusOr<std::unique_ptr<framework::Plugin>> DynamicResources::Make(
    absl::string_view args_json) {
  FAIRLEAD_RETURN_IF_ERROR(ReadBindingTimeout(args_json).status());
  return std::make_unique<DynamicResources>();
}

absl::StatusOr<absl::Duration> DeviceTimeoutOf(const std::vector<framework::Profile>& profiles) {
  std::optional<absl::Duration> longest;
  for (const framework::Profile& profile : profiles) {
    for (const framework::ProfilePlugin& plugin : profile.plugins) {
      if (plugin.name != DynamicResources::kName) continue;
      FAIRLEAD_ASSIGN_OR_RETURN(const absl::Duration timeout, ReadBindingTimeout(plugin.args_json));
      longest = std::max(longest.value_or(timeout), timeout);
    }
  }
  return longest.value_or(DynamicResources::kDefaultBindingTimeout);
}

bool DynamicResources::Filter(const Context& context, const state::NodeInfo& node,
                              framework::Status* why) const {
  const model::PodSpec& spec = *context.pod_class.spec;
  if (!spec.claim_problem.empty()) {
    return Refuse(why, Code::kUnschedulableAndUnresolvable, spec.claim_problem);
  }
  for (const std::string& key : spec.claims_to_join) {
    const ClaimRow* row = context.state.devices().Find(key);
    if (row == nullptr || !HeldOn(context, key, *row, node)) {
      return Refuse(why, Code::kUnschedulable, kNotHere);
    }
  }
  const absl::StatusOr<state::PlacedDevices> placed = Place(context, node);
  if (!placed.ok()) return Refuse(why, Code::kUnschedulableAndUnresolvable, kMixed);
  switch (placed->outcome) {
    case state::ChoiceOutcome::kFound:
      return true;
    case state::ChoiceOutcome::kNone:
      if (why != nullptr) why->detail = LeftOut(context, node);
      return Refuse(why, Code::kUnschedulable, kNotHere);
    case state::ChoiceOutcome::kGaveUp:
      return Refuse(why, Code::kUnschedulable, kTooMany);
  }
  return false;
}

bool DynamicResources::ScoreApplies(const state::PodClass& pod_class) const {
  const model::ResourceList& requests = pod_class.spec->requests;
  return std::any_of(requests.begin(), requests.end(),
                     [](const auto& request) { return state::IsShape(request.first); });
}

bool DynamicResources::ScoresVary(const Context& context) const {
  const model::ResourceList& requests = context.pod_class.spec->requests;
  return std::any_of(requests.begin(), requests.end(), [&](const auto& request) {
    const state::ClaimShape* shape =
        state::IsShape(request.first) ? context.state.devices().FindShape(request.first) : nullptr;
    return shape != nullptr && std::any_of(shape->requests.begin(), shape->requests.end(),
                                           [](const auto& of) { return of.first_available; });
  });
}

void DynamicResources::AddMarks(const Context& context, const state::NodeInfo& node,
                                const framework::TopologyKeys&, framework::Marks& marks) const {
  marks.push_back(WorthOf(context, node));
}

void DynamicResources::ScoreKinds(const Context& context, absl::Span<const framework::Kind> kinds,
                                  absl::Span<int64_t> scores) const {
  for (size_t i = 0; i < kinds.size(); ++i) scores[i] = WorthOf(context, *kinds[i].node);
  NormalizeByMost(kinds, scores, /*reverse=*/false);
}

}  // namespace fairlead::plugins
