#include "scheduler/state/numa_zones.h"

#include <algorithm>
#include <functional>

#include "absl/strings/match.h"
#include "scheduler/state/records.h"

namespace fairlead::state {
namespace {

using model::ContainerRequests;
using model::NumaPolicy;
using model::ResourceIndex;
using model::Resources;

bool IsGuaranteedOnly(absl::string_view name) {
  return name == model::kCpuName || name == model::kMemoryName ||
         absl::StartsWith(name, "hugepages-");
}

// What the kubelet aligns of these requests of a container.
model::ResourceList Aligned(const model::ResourceList& requests, bool guaranteed) {
  constexpr int64_t kMilliPerCpu = 1000;
  model::ResourceList aligned;
  for (const auto& [name, amount] : requests) {
    if (amount <= 0 || name == model::kPodsName || name == model::kEphemeralStorageName) continue;
    if (IsGuaranteedOnly(name) && !guaranteed) continue;
    // A part of a CPU comes out of the shared pool.
    if (name == model::kCpuName && amount % kMilliPerCpu != 0) continue;
    aligned.emplace_back(name, amount);
  }
  return aligned;
}

// The CPUs of the pod that are aligned: as its effective request, of whole CPUs alone.
int64_t WholeCpus(const std::vector<ContainerRequests>& containers) {
  int64_t sidecars = 0, starting = 0, running = 0;
  for (const ContainerRequests& container : containers) {
    const int64_t cpus =
        model::Get(Aligned(container.requests, /*guaranteed=*/true), model::kCpuName);
    switch (container.role) {
      case ContainerRequests::Role::kSidecar:
        sidecars = model::SaturatingAdd(sidecars, cpus);
        break;
      case ContainerRequests::Role::kInit:
        starting = std::max(starting, model::SaturatingAdd(sidecars, cpus));
        break;
      case ContainerRequests::Role::kMain:
        running = model::SaturatingAdd(running, cpus);
        break;
    }
  }
  return std::max(starting, model::SaturatingAdd(sidecars, running));
}

int64_t FreeOf(const NumaNode::Zone& zone, ResourceIndex resource, ZoneCapacity capacity) {
  int64_t free = zone.allocatable[resource];
  if (capacity != ZoneCapacity::kEmpty) {
    free = model::SaturatingAdd(free, -zone.used[resource]);
    free = model::SaturatingAdd(free, -zone.pipelined[resource]);
  }
  if (capacity == ZoneCapacity::kFuture) {
    free = model::SaturatingAdd(free, zone.releasing[resource]);
  }
  return std::max<int64_t>(0, free);
}

// Free amounts while a pod is being aligned, by zone and position in NumaNode::resources.
class Room {
 public:
  Room(const NumaNode& node, ZoneCapacity capacity) : width_(node.resources.size()) {
    free_.reserve(node.zones.size() * width_);
    for (const NumaNode::Zone& zone : node.zones) {
      for (const ResourceIndex resource : node.resources) {
        free_.push_back(FreeOf(zone, resource, capacity));
      }
    }
  }
  int64_t& At(size_t zone, size_t resource) { return free_[zone * width_ + resource]; }

 private:
  size_t width_;
  absl::InlinedVector<int64_t, 32> free_;
};

using ZoneSet = absl::InlinedVector<int32_t, 8>;

class Aligner {
 public:
  Aligner(const NumaNode& node, ZoneCapacity capacity) : node_(node), room_(node, capacity) {}

  // The zones for one unit; none: the policy refuses it.
  std::optional<ZoneSet> ZonesFor(const Resources& unit) {
    switch (node_.policy) {
      case NumaPolicy::kNone:
        return ZoneSet();
      case NumaPolicy::kSingleNumaNode:
        return FirstSet(unit, 1);
      case NumaPolicy::kRestricted: {
        const std::optional<size_t> width = PreferredWidth(unit);
        if (!width.has_value()) return std::nullopt;
        return *width == 0 ? ZoneSet() : FirstSet(unit, *width);
      }
      case NumaPolicy::kBestEffort:
        return Greedy(unit);
    }
    return std::nullopt;
  }

  // Takes the unit out of these zones, the first ones first.
  void Take(const Resources& unit, const ZoneSet& zones, std::vector<Resources>& taken) {
    for (size_t r = 0; r < node_.resources.size(); ++r) {
      int64_t missing = unit[node_.resources[r]];
      for (const int32_t zone : zones) {
        int64_t& free = room_.At(static_cast<size_t>(zone), r);
        const int64_t amount = std::min(missing, free);
        if (amount <= 0) continue;
        free -= amount;
        missing -= amount;
        Resources& of = taken[static_cast<size_t>(zone)];
        of.Set(node_.resources[r], of[node_.resources[r]] + amount);
      }
    }
  }

 private:
  bool HaveTogether(const Resources& unit, const ZoneSet& zones) {
    for (size_t r = 0; r < node_.resources.size(); ++r) {
      const int64_t needed = unit[node_.resources[r]];
      if (needed <= 0) continue;
      int64_t free = 0;
      for (const int32_t zone : zones) {
        free = model::SaturatingAdd(free, room_.At(static_cast<size_t>(zone), r));
      }
      if (free < needed) return false;
    }
    return true;
  }

  // Of the sets of that many zones, in lexicographic order.
  std::optional<ZoneSet> FirstSet(const Resources& unit, size_t width) {
    const auto count = static_cast<int32_t>(node_.zones.size());
    const auto size = static_cast<int32_t>(width);
    if (size > count) return std::nullopt;
    ZoneSet set;
    for (int32_t zone = 0; zone < size; ++zone) set.push_back(zone);
    for (int tried = 0; tried < kMaxZoneSets; ++tried) {
      if (HaveTogether(unit, set)) return set;
      int32_t i = size - 1;
      while (i >= 0 && set[static_cast<size_t>(i)] == count - size + i) --i;
      if (i < 0) return std::nullopt;
      ++set[static_cast<size_t>(i)];
      for (int32_t j = i + 1; j < size; ++j) {
        set[static_cast<size_t>(j)] = set[static_cast<size_t>(j) - 1] + 1;
      }
    }
    return std::nullopt;
  }

  // How many zones all resources of the unit prefer; none: they differ, or the machine is too
  // small.
  [[nodiscard]] std::optional<size_t> PreferredWidth(const Resources& unit) const {
    size_t width = 0;
    for (size_t r = 0; r < node_.resources.size(); ++r) {
      const int64_t needed = unit[node_.resources[r]];
      if (needed <= 0) continue;
      const std::vector<int64_t>& most = node_.most_of[r];
      const auto enough = std::lower_bound(most.begin(), most.end(), needed);
      if (enough == most.end()) return std::nullopt;
      const size_t preferred = static_cast<size_t>(enough - most.begin()) + 1;
      if (width != 0 && width != preferred) return std::nullopt;
      width = preferred;
    }
    return width;
  }

  ZoneSet Greedy(const Resources& unit) {
    std::vector<int64_t> missing;
    for (const ResourceIndex resource : node_.resources) missing.push_back(unit[resource]);
    std::vector<bool> chosen(node_.zones.size(), false);
    ZoneSet set;
    while (std::any_of(missing.begin(), missing.end(), [](int64_t m) { return m > 0; })) {
      size_t best = node_.zones.size();
      int64_t best_cover = 0;
      for (size_t zone = 0; zone < node_.zones.size(); ++zone) {
        if (chosen[zone]) continue;
        int64_t cover = 0;
        for (size_t r = 0; r < missing.size(); ++r) {
          if (missing[r] <= 0) continue;
          cover = model::SaturatingAdd(cover, std::min(missing[r], room_.At(zone, r)));
        }
        if (cover > best_cover) {
          best = zone;
          best_cover = cover;
        }
      }
      if (best == node_.zones.size()) return {};
      chosen[best] = true;
      set.push_back(static_cast<int32_t>(best));
      for (size_t r = 0; r < missing.size(); ++r) missing[r] -= room_.At(best, r);
    }
    return set;
  }

  const NumaNode& node_;
  Room room_;
};

}  // namespace

std::shared_ptr<const AlignedUnits> AlignedUnitsOf(const model::PodSpec& spec,
                                                   model::ResourceNames& names) {
  const auto to_resources = [&](const model::ResourceList& requests) {
    return Resources::FromRequests(Aligned(requests, spec.guaranteed), names);
  };
  AlignedUnits units;
  units.pod = to_resources(spec.requests);
  if (spec.containers.empty()) {
    units.together.push_back(units.pod);
  } else {
    units.pod.Set(model::kCpu, spec.guaranteed ? WholeCpus(spec.containers) : 0);
    for (const ContainerRequests& container : spec.containers) {
      const bool first = container.role == ContainerRequests::Role::kInit;
      (first ? units.first : units.together).push_back(to_resources(container.requests));
    }
  }
  const auto nothing = [](const Resources& unit) { return unit.IsZero(); };
  const bool none = units.pod.IsZero() &&
                    std::all_of(units.together.begin(), units.together.end(), nothing) &&
                    std::all_of(units.first.begin(), units.first.end(), nothing);
  return none ? nullptr : std::make_shared<const AlignedUnits>(std::move(units));
}

std::unique_ptr<NumaNode> MakeNumaNode(const model::NodeResourceTopology& topology,
                                       model::ResourceNames& names) {
  if (!topology.invalid.empty() || topology.zones.empty()) return nullptr;
  auto node = std::make_unique<NumaNode>();
  node->policy = topology.policy;
  node->scope = topology.scope;
  for (const model::NumaZone& zone : topology.zones) {
    NumaNode::Zone& added = node->zones.emplace_back();
    added.name = zone.name;
    for (const auto& [name, amount] : zone.allocatable) {
      const ResourceIndex resource = names.Intern(name);
      added.allocatable.Set(resource, std::clamp<int64_t>(amount, 0, kMaxNodeAmount));
      node->resources.push_back(resource);
    }
  }
  std::sort(node->resources.begin(), node->resources.end());
  node->resources.erase(std::unique(node->resources.begin(), node->resources.end()),
                        node->resources.end());
  for (const ResourceIndex resource : node->resources) {
    std::vector<int64_t>& most = node->most_of.emplace_back();
    for (const NumaNode::Zone& zone : node->zones) most.push_back(zone.allocatable[resource]);
    std::sort(most.begin(), most.end(), std::greater<>());
    for (size_t i = 1; i < most.size(); ++i) most[i] += most[i - 1];
  }
  return node;
}

bool HaveRoomFor(const NumaNode& node, const ZonePick& pick) {
  return std::all_of(pick.begin(), pick.end(), [&](const ZoneShare& share) {
    const NumaNode::Zone& zone = node.zones[static_cast<size_t>(share.zone)];
    return std::all_of(share.amounts.begin(), share.amounts.end(), [&](const auto& amount) {
      return amount.second <= FreeOf(zone, amount.first, ZoneCapacity::kFuture);
    });
  });
}

bool FitsZones(const NumaNode& node, const AlignedUnits& units, ZoneCapacity capacity) {
  return !node.Refuses() || PickZones(node, units, capacity).has_value();
}

std::optional<ZonePick> PickZones(const NumaNode& node, const AlignedUnits& units,
                                  ZoneCapacity capacity) {
  if (node.policy == NumaPolicy::kNone) return ZonePick();
  const bool whole = node.scope == model::NumaScope::kPod;
  Aligner aligner(node, capacity);
  if (!whole) {
    for (const Resources& unit : units.first) {
      if (!aligner.ZonesFor(unit).has_value()) return std::nullopt;
    }
  }
  std::vector<Resources> taken(node.zones.size());
  const auto place = [&](const Resources& unit) {
    const std::optional<ZoneSet> zones = aligner.ZonesFor(unit);
    if (zones.has_value()) aligner.Take(unit, *zones, taken);
    return zones.has_value();
  };
  if (whole) {
    if (!place(units.pod)) return std::nullopt;
  } else if (!std::all_of(units.together.begin(), units.together.end(), place)) {
    return std::nullopt;
  }
  ZonePick pick;
  for (size_t zone = 0; zone < taken.size(); ++zone) {
    if (taken[zone].IsZero()) continue;
    ZoneShare& share = pick.emplace_back();
    share.zone = static_cast<int32_t>(zone);
    for (const ResourceIndex resource : node.resources) {
      if (taken[zone][resource] > 0) share.amounts.emplace_back(resource, taken[zone][resource]);
    }
  }
  return pick;
}

}  // namespace fairlead::state
