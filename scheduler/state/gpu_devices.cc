#include "scheduler/state/gpu_devices.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/hash.h"
#include "scheduler/model/api_names.h"
#include "scheduler/state/device_allocator.h"
#include "scheduler/state/records.h"

namespace fairlead::state {
namespace {

constexpr int64_t kMibPerTi = int64_t{1} << 20;
constexpr int64_t kBytesPerMib = int64_t{1} << 20;

int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Whole GPUs that are free.
int64_t FreeGpus(const NodeInfo& node, GpuCapacity room) {
  int64_t free = node.gpus_by_claim ? 0 : node.allocatable[model::kGpu];
  if (room != GpuCapacity::kEmpty) {
    free = model::SaturatingAdd(free, -node.used[model::kGpu]);
    if (room == GpuCapacity::kFuture)
      free = model::SaturatingAdd(free, node.releasing[model::kGpu]);
    free = model::SaturatingAdd(free, -node.pipelined[model::kGpu]);
  }
  return std::max<int64_t>(0, free) / 1000;
}

int64_t FreeMib(const GpuGroup& group, int64_t memory_mib, GpuCapacity room) {
  const int64_t free = memory_mib - group.used_mib - group.pipelined_mib;
  return room == GpuCapacity::kFuture ? free + group.releasing_mib : free;
}

// No pod that stays holds it: it is given back as a whole unless a pod is promised a share of it.
bool Ends(const GpuGroup& group) { return group.active == 0 && group.pipelined == 0; }
// Whether a share of it takes one of the node's free GPUs. Now, those that are kept are not free.
bool TakesWhole(const GpuGroup& group, GpuCapacity room) {
  return Ends(group) && !(room == GpuCapacity::kNow && group.Kept());
}

// Whether a pod may join it at all.
bool IsOpen(const GpuGroup& group, GpuCapacity room) {
  if (group.closed || group.Blocked()) return false;
  return room != GpuCapacity::kNow || group.active > 0 || group.Kept();
}

// Has room for one device.
bool Joinable(const GpuGroup& group, int64_t memory_mib, int64_t need_mib, GpuCapacity room) {
  return IsOpen(group, room) && need_mib <= FreeMib(group, memory_mib, room);
}

// How many kept groups can be given out now: for whole GPUs they are being released, and what is
// promised of that stays promised.
int64_t KeptToGive(const NodeInfo& node) {
  return FreeGpus(node, GpuCapacity::kFuture) - FreeGpus(node, GpuCapacity::kNow);
}

// Numbers of devices that could be had, each up to `wanted`.
struct Supply {
  int64_t kept = 0;   // in groups that stay
  int64_t ended = 0;  // in groups that are given back otherwise: each takes one of `whole`
  int64_t whole = 0;  // free GPUs
};

Supply SupplyOf(const NodeInfo& node, const model::GpuShare& share, GpuCapacity room) {
  Supply supply;
  supply.whole = FreeGpus(node, room);
  const int64_t memory_mib = MemoryOrNominal(node.gpu_memory_mib);
  const int64_t need_mib = ShareMib(share, memory_mib);
  if (need_mib > memory_mib) supply.whole = 0;
  if (room == GpuCapacity::kEmpty) return supply;
  int64_t to_give = room == GpuCapacity::kNow ? KeptToGive(node) : 0;
  for (const GpuGroup& group : node.gpu_groups) {
    if (!Joinable(group, memory_mib, need_mib, room)) continue;
    if (room == GpuCapacity::kNow && Ends(group) && to_give-- <= 0) continue;
    ++(TakesWhole(group, room) ? supply.ended : supply.kept);
  }
  return supply;
}

}  // namespace

int64_t GpuMemoryOf(const model::Node& node) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(node.meta.labels.Get(model::kGpuMemoryLabel), &value) || value <= 0)
    return 0;
  if (value > kMibPerTi) value /= kBytesPerMib;
  return std::min(value, kMaxGpuMib) / 100 * 100;
}

int64_t ShareMib(const model::GpuShare& share, int64_t gpu_memory_mib) {
  if (share.memory_mib > 0) return std::min(share.memory_mib, kMaxGpuMib);
  return std::max<int64_t>(
      1, model::SaturatingMultiply(share.fraction_milli, MemoryOrNominal(gpu_memory_mib)) / 1000);
}

int64_t ShareMilli(const model::GpuShare& share, int64_t gpu_memory_mib) {
  int64_t each = share.fraction_milli;
  if (share.memory_mib > 0) {
    each = model::SaturatingMultiply(10, CeilDiv(model::SaturatingMultiply(share.memory_mib, 100),
                                                 MemoryOrNominal(gpu_memory_mib)));
  }
  return model::SaturatingMultiply(each, share.devices);
}

bool IsMig(absl::string_view resource_name) {
  return absl::StartsWith(resource_name, model::kMigPrefix);
}

int64_t MigSlices(absl::string_view resource_name) {
  if (!absl::ConsumePrefix(&resource_name, model::kMigPrefix)) return 0;
  // "1c.3g.20gb": a compute instance within a GPU instance counts as its GPU instance.
  const auto number = [&](char unit) -> int64_t {
    size_t digits = 0;
    while (digits < resource_name.size() && absl::ascii_isdigit(resource_name[digits])) ++digits;
    int64_t value = 0;
    if (digits + 1 >= resource_name.size() || resource_name[digits] != unit ||
        resource_name[digits + 1] != '.' ||
        !absl::SimpleAtoi(resource_name.substr(0, digits), &value)) {
      return 0;
    }
    resource_name.remove_prefix(digits + 2);
    return value;
  };
  number('c');
  return number('g');
}

int64_t OtherGpusMilli(const model::ResourceList& resources) {
  int64_t milli = 0;
  for (const auto& [name, amount] : resources) {
    if (amount <= 0) continue;
    if (name == model::kAmdGpuName) {
      milli = model::SaturatingAdd(milli, amount);
    } else if (const int64_t slices = MigSlices(name); slices > 0) {
      milli = model::SaturatingAdd(
          milli, model::SaturatingMultiply(amount, model::SaturatingMultiply(slices, 1000)));
    } else if (IsGpuDemand(name)) {
      milli = model::SaturatingAdd(milli, model::SaturatingMultiply(amount, 1000));
    }
  }
  return milli;
}

std::string GpuGroupId(absl::string_view pod_uid, absl::string_view node, int64_t number) {
  // Uids that API servers deal fit; whatever else comes is kept valid as a label by its hash.
  constexpr size_t kUuidLength = 36;
  const bool plain = !pod_uid.empty() && pod_uid.size() <= kUuidLength &&
                     absl::ascii_isalnum(pod_uid.front()) &&
                     std::all_of(pod_uid.begin(), pod_uid.end(),
                                 [](char c) { return absl::ascii_isalnum(c) || c == '-'; });
  const std::string uid = plain ? std::string(pod_uid) : StableHash().Add(pod_uid).Hex();
  return absl::StrCat(uid, "-", StableHash().Add(node).Hex().substr(0, 8), "-", number);
}

int64_t DevicesThatFit(const NodeInfo& node, const PodClass& pod_class, GpuCapacity room) {
  const model::GpuShare& share = pod_class.spec->gpu_share;
  if (!share.IsSet()) return 0;
  const Supply supply = SupplyOf(node, share, room);
  return std::min(share.devices, supply.kept + supply.whole);
}

bool FitsGpus(const NodeInfo& node, const PodClass& pod_class, GpuCapacity room) {
  const model::GpuShare& share = pod_class.spec->gpu_share;
  return !share.IsSet() || DevicesThatFit(node, pod_class, room) == share.devices;
}

int64_t NewGroupsNeeded(const NodeInfo& node, const PodClass& pod_class, GpuCapacity room) {
  const model::GpuShare& share = pod_class.spec->gpu_share;
  if (!share.IsSet()) return 0;
  const Supply supply = SupplyOf(node, share, room);
  const int64_t joins = supply.kept + std::min(supply.ended, supply.whole);
  return std::max<int64_t>(0, std::min(share.devices, supply.kept + supply.whole) - joins);
}

bool JoinsSharedGpu(const NodeInfo& node, const PodClass& pod_class) {
  const model::GpuShare& share = pod_class.spec->gpu_share;
  if (!share.IsSet() || node.gpu_groups.empty()) return false;
  const Supply supply = SupplyOf(node, share, GpuCapacity::kFuture);
  return supply.kept + std::min(supply.ended, supply.whole) > 0;
}

int64_t SharePlaces(const NodeInfo& node, const PodClass& pod_class, GpuCapacity room) {
  const model::GpuShare& share = pod_class.spec->gpu_share;
  if (!share.IsSet()) return INT64_MAX;
  const int64_t memory_mib = MemoryOrNominal(node.gpu_memory_mib);
  const int64_t need_mib = ShareMib(share, memory_mib);
  const int64_t on_each = memory_mib / need_mib;
  int64_t places = model::SaturatingMultiply(FreeGpus(node, room), on_each);
  if (room != GpuCapacity::kEmpty) {
    for (const GpuGroup& group : node.gpu_groups) {
      if (!IsOpen(group, room) || TakesWhole(group, room)) continue;
      places = model::SaturatingAdd(
          places, std::max<int64_t>(0, FreeMib(group, memory_mib, room)) / need_mib);
    }
  }
  return places / share.devices;
}

std::optional<GpuPick> PickGpus(const NodeInfo& node, const PodClass& pod_class,
                                absl::string_view pod_uid, GpuCapacity room, GpuOrder order) {
  const model::GpuShare& share = pod_class.spec->gpu_share;
  GpuPick pick;
  if (!share.IsSet()) return pick;
  if (!FitsGpus(node, pod_class, room)) return std::nullopt;
  const int64_t memory_mib = MemoryOrNominal(node.gpu_memory_mib);
  const int64_t need_mib = ShareMib(share, memory_mib);
  int64_t whole = FreeGpus(node, room);
  const auto wanted = static_cast<size_t>(share.devices);

  // (about to be free altogether, fullness in the order asked for, must wait, id)
  std::vector<std::tuple<bool, int64_t, bool, const GpuGroup*>> shared;
  for (const GpuGroup& group : node.gpu_groups) {
    if (!Joinable(group, memory_mib, need_mib, room)) continue;
    const int64_t full = group.used_mib + group.pipelined_mib;
    const bool waits = !Joinable(group, memory_mib, need_mib, GpuCapacity::kNow);
    shared.emplace_back(group.active + group.pipelined == 0,
                        order == GpuOrder::kPack ? -full : full, waits, &group);
  }
  // Groups are in the order of their ids, and so are equal ones after a stable sort.
  std::stable_sort(shared.begin(), shared.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a)) <
           std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b));
  });

  const auto known = [&](const std::string& id) {
    return std::any_of(node.gpu_groups.begin(), node.gpu_groups.end(),
                       [&](const GpuGroup& group) { return group.id == id; });
  };
  int64_t number = 0;
  const auto take_new = [&](int64_t from) {
    for (; from > 0 && whole > 0 && pick.size() < wanted; --from, --whole) {
      std::string id = GpuGroupId(pod_uid, node.name(), number++);
      while (known(id)) id = GpuGroupId(pod_uid, node.name(), number++);
      pick.push_back(std::move(id));
    }
  };
  if (order == GpuOrder::kSpread) take_new(FreeGpus(node, GpuCapacity::kNow));
  int64_t to_give = KeptToGive(node);
  for (const auto& [ends, full, waits, group] : shared) {
    if (pick.size() == wanted) break;
    if (room == GpuCapacity::kNow && Ends(*group) && to_give-- <= 0) continue;
    if (TakesWhole(*group, room)) {
      if (whole == 0) continue;
      --whole;
    }
    pick.push_back(group->id);
  }
  take_new(whole);
  return pick;
}

bool MustWait(const NodeInfo& node, const PodClass& pod_class, const GpuPick& pick) {
  const model::GpuShare& share = pod_class.spec->gpu_share;
  const int64_t memory_mib = MemoryOrNominal(node.gpu_memory_mib);
  const int64_t need_mib = ShareMib(share, memory_mib);
  int64_t fresh = 0;
  for (const std::string& id : pick) {
    const auto group = std::find_if(node.gpu_groups.begin(), node.gpu_groups.end(),
                                    [&](const GpuGroup& g) { return g.id == id; });
    if (group == node.gpu_groups.end()) {
      ++fresh;
    } else if (!Joinable(*group, memory_mib, need_mib, GpuCapacity::kNow)) {
      return true;
    }
  }
  return fresh > FreeGpus(node, GpuCapacity::kNow);
}

}  // namespace fairlead::state
