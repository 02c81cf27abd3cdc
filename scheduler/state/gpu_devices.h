// GPUs that several pods share, and GPUs that are cut into MIG instances: how a node counts them.
//
// A *group* is one GPU of one node that shares are taken from (KAI's "gpu group", the value of
// label runai-gpu-group). As long as any pod is in it, it takes one whole GPU out of the node's
// nvidia.com/gpu, so that NodeInfo::used, releasing and pipelined stay right for whole GPUs:
//
//   pods in the group                          used   releasing   pipelined
//   one or more that run (or will)             1000   -           -
//   only terminating ones (or a reservation)   1000   1000        1000 if one is promised it
//   only promised ones                         -      -           1000
//
// A group that only a reservation pod holds, one that does not terminate, is there for the next
// pod: shares of it can be given at once, although for whole GPUs it is being released. One whose
// reservation pod terminates and does not go takes no pod, and is not being released.
//
// Sharing pods themselves add nothing to nvidia.com/gpu. A reservation pod (KAI's binder holds one
// for each group, with a real GPU) belongs to its group and counts its GPU nowhere else.
//
// Units: MiB of one GPU; milli-GPU for queues. Source: KAI's documentation (facts 3.3, 3.15).
// Thread-safety: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "scheduler/model/node.h"
#include "scheduler/model/pod.h"

namespace fairlead::state {

struct NodeInfo;
struct PodClass;

// The groups that a pod has a share of, one a device, all different. Empty for every other pod.
using GpuPick = std::vector<std::string>;

struct GpuGroup {
  std::string id;             // unique on its node
  int64_t used_mib = 0;       // by pods that hold the node, terminating ones included
  int64_t releasing_mib = 0;  // the part of it that terminating pods hold
  int64_t pipelined_mib = 0;  // promised
  int32_t active = 0;         // pods: kBinding, kBound, kRunning
  int32_t releasing = 0;
  int32_t pipelined = 0;
  int32_t reservations = 0;
  int32_t ending = 0;   // of the reservations, those that terminate
  int32_t stuck = 0;    // of these, those that have done so for too long (kStuckInReleasing)
  bool closed = false;  // no pod may join (ClusterState::CloseGpuGroup)
  [[nodiscard]] bool Empty() const { return active + releasing + pipelined + reservations == 0; }
  // No pod shares it, and a reservation pod holds it all the same.
  [[nodiscard]] bool Kept() const { return active == 0 && releasing == 0 && reservations > ending; }
  // Its reservation pod does not go, so that no other can be made: no pod learns the device.
  [[nodiscard]] bool Blocked() const { return stuck > 0 && reservations == ending; }
  // What the group takes of the node's whole GPUs, in milli-GPU: the table above.
  [[nodiscard]] int64_t WholeUsed() const {
    return active + releasing + reservations > 0 ? 1000 : 0;
  }
  [[nodiscard]] int64_t WholeReleasing() const {
    return active == 0 && stuck == 0 ? WholeUsed() : 0;
  }
  [[nodiscard]] int64_t WholePipelined() const { return active == 0 && pipelined > 0 ? 1000 : 0; }
  friend bool operator==(const GpuGroup&, const GpuGroup&) = default;
};

// Of one GPU of the node, from label nvidia.com/gpu.memory: MiB, or bytes if above 1 Ti of MiB;
// rounded down to a multiple of 100. 0 if the label is absent or makes no sense.
int64_t GpuMemoryOf(const model::Node& node);
// What shares are measured by if the label is absent. (Shares by memory are refused then.)
inline constexpr int64_t kNominalGpuMemoryMib = 100;
inline int64_t MemoryOrNominal(int64_t mib) { return mib > 0 ? mib : kNominalGpuMemoryMib; }

// Bounds of what is believed about GPUs, so that sums over all pods of a node stay exact: a share
// or a GPU of more memory counts as this (2^60 bytes), and a pod shares no more devices.
inline constexpr int64_t kMaxGpuMib = int64_t{1} << 40;
inline constexpr int64_t kMaxSharedDevices = 256;

// What one device of the share takes of a GPU with so much memory, rounded down, at least 1.
int64_t ShareMib(const model::GpuShare& share, int64_t gpu_memory_mib);
// What the whole share counts against a queue, in milli-GPU; by memory it is rounded up to 1/100 of
// a GPU for each device.
int64_t ShareMilli(const model::GpuShare& share, int64_t gpu_memory_mib);

// The GPU slices of one MIG instance: 2 of "nvidia.com/mig-2g.20gb"; 0 for any other resource.
int64_t MigSlices(absl::string_view resource_name);
bool IsMig(absl::string_view resource_name);
// What counts as GPUs for queues besides nvidia.com/gpu: AMD devices, and each slice of a MIG
// instance as one GPU; milli-GPU.
int64_t OtherGpusMilli(const model::ResourceList& resources);

// A group id that no other pod and no other node ever deals: from the pod's uid, the node and a
// number. A valid label value, at most 63 characters.
std::string GpuGroupId(absl::string_view pod_uid, absl::string_view node, int64_t number);

// Which capacity counts as free (as framework::Capacity).
enum class GpuCapacity : uint8_t { kNow, kFuture, kEmpty };
enum class GpuOrder : uint8_t {
  kPack,    // the fullest GPU that is shared already and has capacity; else a free one
  kSpread,  // a free one; else the emptiest that is shared
};

// Do all devices of the class's share find capacity on the node? Allocates nothing. True for
// classes without a share.
bool FitsGpus(const NodeInfo& node, const PodClass& pod_class, GpuCapacity room);
// How many of the devices could get capacity, up to what is asked for.
int64_t DevicesThatFit(const NodeInfo& node, const PodClass& pod_class, GpuCapacity room);
// How many GPUs would become shared: each needs a slot for its reservation pod. What the
// devices that fit need, if not all do.
int64_t NewGroupsNeeded(const NodeInfo& node, const PodClass& pod_class, GpuCapacity room);
// Some GPU is shared already and has, or will have, capacity for one device.
bool JoinsSharedGpu(const NodeInfo& node, const PodClass& pod_class);
// No more pods of the class than this find GPUs (an upper bound, exact for one device each).
int64_t SharePlaces(const NodeInfo& node, const PodClass& pod_class, GpuCapacity room);

// The groups for a pod of the class, those that exist and new ones with ids of their own; nothing
// if they do not fit. kNow: idle memory and idle GPUs. kFuture: also what is being released; the
// order decides even if that means waiting (KAI does so), see MustWait. kEmpty is not asked for.
// A GPU that all its pods are leaving comes after those that stay shared. Ties: a GPU that need not
// be waited for first, then the smaller group id. Complexity: O(groups log groups).
std::optional<GpuPick> PickGpus(const NodeInfo& node, const PodClass& pod_class,
                                absl::string_view pod_uid, GpuCapacity room, GpuOrder order);
// Whether some GPU of the pick has to be released first: then the pod can only be promised it.
bool MustWait(const NodeInfo& node, const PodClass& pod_class, const GpuPick& pick);

}  // namespace fairlead::state
