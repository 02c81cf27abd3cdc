// The NUMA nodes of a machine ("zones"): what pods have of them, and which ones a pod would get.
//
// Source: the kubelet's Topology Manager as KAI v0.17 models it (its plugin `numa`). A pod is
// aligned unit by unit. With scope "pod" it is one unit. With scope "container" each container is
// one: those that run together (containers and sidecars) take what they get one after the other; an
// init container only has to fit by itself. By policy a unit gets
//   single-numa-node  the first zone that has all of it
//   restricted        zones that have it together, the first such set in lexicographic order. Their
//                     number is the fewest zones whose allocatable amounts would suffice; it has to
//                     be the same for all resources of the unit
//   best-effort       zones that have it together, each time the one that covers most of what is
//                     missing; never refused
// What counts: resources that the zones report. CPUs, memory and huge pages are aligned for
// guaranteed pods alone, and CPUs only if a container asks for whole ones.
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "scheduler/model/node_topology.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/resources.h"

namespace fairlead::state {

// What a pod has of one zone, by index.
struct ZoneShare {
  int32_t zone = 0;
  absl::InlinedVector<std::pair<model::ResourceIndex, int64_t>, 2> amounts;
  friend bool operator==(const ZoneShare&, const ZoneShare&) = default;
};
using ZonePick = std::vector<ZoneShare>;  // by zone, each once

// What can be aligned of the pods of a class.
struct AlignedUnits {
  model::Resources pod;                    // scope "pod"
  std::vector<model::Resources> together;  // scope "container": what runs at the same time
  std::vector<model::Resources> first;     // init containers
};
// Null if nothing can be.
std::shared_ptr<const AlignedUnits> AlignedUnitsOf(const model::PodSpec& spec,
                                                   model::ResourceNames& names);

struct NumaNode {
  struct Zone {
    std::string name;
    model::Resources allocatable;
    model::ResourceSum used;       // by pods whose zones are known
    model::ResourceSum releasing;  // the part of it that terminating pods have
    model::ResourceSum pipelined;  // promised
  };
  model::NumaPolicy policy = model::NumaPolicy::kNone;
  model::NumaScope scope = model::NumaScope::kContainer;
  std::vector<model::ResourceIndex> resources;  // that zones report, ascending
  std::vector<Zone> zones;
  // By position in `resources`: what 1, 2, .. zones have at most together.
  std::vector<std::vector<int64_t>> most_of;

  // It refuses pods that cannot be aligned.
  [[nodiscard]] bool Refuses() const {
    return policy == model::NumaPolicy::kRestricted || policy == model::NumaPolicy::kSingleNumaNode;
  }
};
// Null if the topology is invalid or has no zones. Amounts above kMaxNodeAmount count as that.
std::unique_ptr<NumaNode> MakeNumaNode(const model::NodeResourceTopology& topology,
                                       model::ResourceNames& names);

// Which amounts count as free: without what is used and promised; the same with what is being
// released; everything.
enum class ZoneCapacity : uint8_t { kNow, kFuture, kEmpty };

// Would the kubelet admit a pod with these units? Complexity: O(zones x resources x units), and
// kMaxZoneSets for policy restricted; beyond, the answer is no.
bool FitsZones(const NumaNode& node, const AlignedUnits& units, ZoneCapacity capacity);
// What a pod with these units gets; no value if it would not be admitted. Empty: nothing of it is
// aligned there, or with best-effort there is not enough.
std::optional<ZonePick> PickZones(const NumaNode& node, const AlignedUnits& units,
                                  ZoneCapacity capacity);
// Whether these zones have these amounts when promises are kept (kFuture). O(amounts).
bool HaveRoomFor(const NumaNode& node, const ZonePick& pick);
// Sets of zones that are tried for one unit. (8 zones, the kubelet's own bound, have 70 sets of 4.)
inline constexpr int kMaxZoneSets = 4096;

}  // namespace fairlead::state
