// What DeviceAllocator gives to claims: devices of the node on which their pod was placed, and the
// allocation that has to be written for them.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "scheduler/state/device_allocator.h"
#include "scheduler/state/device_placement.h"

namespace fairlead::state {
namespace {

// Whether what a driver is told is about an option that was taken.
bool IsAbout(const model::DeviceConfig& config, const model::ResourceClaim& claim,
             const std::vector<DealtRequest>& dealt) {
  if (config.requests.empty()) return true;
  return std::any_of(config.requests.begin(), config.requests.end(), [&](const std::string& name) {
    for (size_t i = 0; i < dealt.size(); ++i) {
      if (name == claim.requests[i].name ||
          name == RequestName(claim.requests[i], dealt[i].option)) {
        return true;
      }
    }
    return false;
  });
}

// Adds the requirements that are not there yet.
void AddRequirements(const std::vector<model::SelectorRequirement>& from,
                     std::vector<model::SelectorRequirement>& to) {
  const auto values = [](const model::SelectorRequirement& of) {
    return std::set<std::string>(of.values.begin(), of.values.end());
  };
  for (const model::SelectorRequirement& more : from) {
    const bool known = std::any_of(to.begin(), to.end(), [&](const auto& requirement) {
      return requirement.key == more.key && requirement.op == more.op &&
             values(requirement) == values(more);
    });
    if (!known) to.push_back(more);
  }
}

// Where the devices can be used together, as status.allocation.nodeSelector: the node itself if
// one of them is of a single node or binds to it, else what all of them require; empty: anywhere.
// The API server lets a selector of a slice have one term.
// Source: createNodeSelector in k8s.io/dynamic-resource-allocation/structured.
std::vector<model::NodeSelectorTerm> NodesFor(const std::vector<DealtRequest>& dealt,
                                              const std::string& node) {
  model::NodeSelectorTerm term;
  for (const DealtRequest& request : dealt) {
    for (const NodeDevice* device : request.devices) {
      const model::NodeScope& nodes = device->nodes;
      if (!nodes.name.empty() || device->device.binds_to_node || nodes.terms.size() > 1) {
        return {model::TermOfNode(node)};
      }
      if (nodes.all || nodes.terms.empty()) continue;
      AddRequirements(nodes.terms.front().match_fields, term.match_fields);
      AddRequirements(nodes.terms.front().match_expressions, term.match_expressions);
    }
  }
  if (term.match_fields.empty() && term.match_expressions.empty()) return {};
  return {std::move(term)};
}

}  // namespace

model::ClaimAllocation DeviceAllocator::AllocationOf(absl::string_view key) const {
  model::ClaimAllocation out;
  const ClaimRow* row = Find(key);
  if (row == nullptr || !row->exists) return out;
  const model::ResourceClaim& claim = row->object;
  if (claim.allocated) {
    out.devices = claim.devices;
    out.node_terms = claim.node_terms;
    return out;
  }
  out.node = row->node;
  const std::optional<std::vector<DealtRequest>> dealt =
      DealDevices(*this, out.node, claim, row->devices);
  if (!dealt.has_value()) return out;
  out.node_terms = NodesFor(*dealt, out.node);
  for (size_t i = 0; i < dealt->size(); ++i) {
    const DealtRequest& taken = (*dealt)[i];
    const model::DeviceRequest& option = OptionOf(claim.requests[i], taken.option);
    const std::string name = RequestName(claim.requests[i], taken.option);
    for (const NodeDevice* device : taken.devices) {
      out.devices.push_back({name, device->driver, device->pool, device->device.name,
                             option.tolerations, option.admin_access,
                             device->device.binding_conditions,
                             device->device.binding_failure_conditions});
    }
    const auto device_class = classes_.find(option.device_class);
    if (device_class == classes_.end()) continue;
    for (const model::DeviceConfig& config : device_class->second.config) {
      out.config.push_back({true, {{name}, config.opaque}});
    }
  }
  for (const model::DeviceConfig& config : claim.config) {
    if (IsAbout(config, claim, *dealt)) out.config.push_back({false, config});
  }
  return out;
}

bool DeviceAllocator::IsWhole(absl::string_view key) const {
  const ClaimRow* row = Find(key);
  if (row == nullptr || !row->exists) return false;
  if (row->object.allocated) return true;
  return DealDevices(*this, row->node, row->object, row->devices).has_value();
}

void DeviceAllocator::Take(const std::vector<std::string>& keys, absl::string_view node,
                           const PromisedBesides* besides) {
  std::vector<std::string> open;
  for (const std::string& key : keys) {
    const ClaimRow& row = claims_.at(key);
    const bool wants = row.exists && !row.object.allocated && row.devices.empty();
    // Its shape may not be known yet: a pod can be seen on its node before its claims are looked
    // at.
    if (wants && std::find(open.begin(), open.end(), key) == open.end() &&
        DemandsOf(row.object).ok()) {
      open.push_back(key);
    }
  }
  if (open.empty()) return;
  if (ReuseLast(open, node, besides) || AllocateTogether(open, node, besides)) return;
  // The pod is there whatever we think: each of its claims gets what it can.
  if (besides != nullptr && AllocateTogether(open, node, nullptr)) return;
  for (const std::string& key : open) AllocateTogether({key}, node, nullptr);
}

bool DeviceAllocator::ReuseLast(const std::vector<std::string>& keys, absl::string_view node,
                                const PromisedBesides* besides) {
  std::set<std::string> taken;
  for (const std::string& key : keys) {
    const ClaimRow& row = claims_.at(key);
    for (const std::string& device : row.last) {
      if (!inventory_.IsOn(DeviceOfKey(device), node) || HolderOf(device) != nullptr ||
          !taken.insert(device).second) {
        return false;
      }
    }
    if (!DealDevices(*this, node, row.object, row.last).has_value()) return false;
  }
  if (besides != nullptr) {
    const auto are_left = [&](const NodeDevice& device) {
      return !taken.contains(device.key) && besides->can_have(device);
    };
    if (PlaceDevices(*this, node, besides->demands, are_left).outcome != ChoiceOutcome::kFound) {
      return false;
    }
  }
  for (const std::string& key : keys) Hold(key, claims_.at(key), claims_.at(key).last, node);
  return true;
}

bool DeviceAllocator::AllocateTogether(const std::vector<std::string>& keys, absl::string_view node,
                                       const PromisedBesides* besides) {
  model::ResourceList asks;
  for (const std::string& key : keys) {
    const absl::StatusOr<std::vector<RequestDemand>> asked = AskOf(claims_.at(key).object);
    if (!asked.ok()) return false;
    for (const RequestDemand& demand : *asked) model::Add(asks, demand.demand, demand.count);
  }
  const auto is_free = [this](const NodeDevice& device) { return HolderOf(device.key) == nullptr; };
  PlacedDevices placed = PlaceDevices(*this, node, asks, is_free, besides);
  if (placed.outcome != ChoiceOutcome::kFound) return false;
  std::map<std::string, std::vector<std::string>> left;  // by plain demand
  for (auto& [demand, devices] : placed.demands) left[demand] = std::move(devices);
  for (const std::string& key : keys) {
    ClaimRow& row = claims_.at(key);
    const ClaimShape shape = ShapeOf(row.object);
    std::vector<std::string> devices;
    if (IsPlain(shape)) {
      for (const auto& [demand, count] : ShapeDemands(shape)) {
        std::vector<std::string>& from = left[demand];
        devices.insert(devices.end(), from.begin(), from.begin() + count);
        from.erase(from.begin(), from.begin() + count);
      }
    } else {
      const auto mine = std::find_if(
          placed.claims.begin(), placed.claims.end(),
          [name = ShapeName(shape)](const auto& claim) { return claim.shape == name; });
      devices = std::move(mine->devices);
      placed.claims.erase(mine);
      for (std::string& device : devices) {
        const absl::string_view whole = DeviceOfKey(device);
        if (whole.size() < device.size()) device = ViewKey(whole, key);
      }
    }
    row.last = devices;
    Hold(key, row, std::move(devices), node);
  }
  return true;
}

}  // namespace fairlead::state
