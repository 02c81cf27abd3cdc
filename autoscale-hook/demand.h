// The engine's demand for nodes: workloads that capacity blocks and that policy permits, in the
// order in which the engine would place them. The engine has placed everything that fits on
// existing or ordered nodes and has clipped the rest at every queue limit. So the hook may
// provision for all of it (invariants I1, I2), and nothing in it is in flight already (I3).
//
// Thread-safety: plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/model/pod.h"
#include "scheduler/verdict/domains.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::hook {

struct DemandItem {
  std::string workload;  // "namespace/name"
  // How many workloads the item stands for: `workload` and others that follow it in queue order and
  // differ from it in name and age only. What the item says is said of each of them. 1 for pods
  // that depend on pods of other nodes, and with topology constraints.
  int64_t members = 1;
  bool is_group = false;
  std::string queue;
  int32_t priority = 0;
  // Identical pods; together they are one all-or-nothing unit if `atomic`.
  std::vector<verdict::DemandClass> classes;
  bool atomic = false;
  // The pods by their topology constraints; empty without constraints. Their minimum is one
  // all-or-nothing unit.
  verdict::DomainDemand domains;
  // True: the engine has reserved what the unit would charge to its queue. False: it has not,
  // because no nodes could be provisioned for the item. Then none are: the outcome says whether
  // they could be now.
  bool charged = true;
  friend bool operator==(const DemandItem&, const DemandItem&) = default;
};

// The number of pods.
inline int64_t PodsOf(const std::vector<verdict::DemandClass>& classes) {
  int64_t pods = 0;
  for (const verdict::DemandClass& pod_class : classes) pods += pod_class.count;
  return pods;
}

// All that a gang can be: each of the pods is needed, so no more of them are to be expected.
inline bool IsCompleteGang(bool is_group, const std::vector<verdict::DemandClass>& classes) {
  return is_group && PodsOf(classes) > 1 &&
         std::all_of(classes.begin(), classes.end(), [](const verdict::DemandClass& pod_class) {
           return pod_class.min_count == pod_class.count;
         });
}

// Other pods may affect where such a pod fits, or it may affect where they do.
inline bool LooksAtOtherPods(const model::PodSpec& spec) {
  return !spec.pod_affinity.empty() || !spec.pod_anti_affinity.empty() ||
         !spec.topology_spread.empty() || !spec.labels_for_affinity.empty() ||
         spec.selected_by_others || !spec.claims_to_join.empty();
}

// True if other pods do not affect whether its pods fit on a node that does not exist yet.
inline bool DependsOnItselfAlone(const DemandItem& item) {
  return std::all_of(item.classes.begin(), item.classes.end(), [](const auto& pod_class) {
    return pod_class.spec == nullptr || !LooksAtOtherPods(*pod_class.spec);
  });
}

// In queue order.
using Demand = std::vector<DemandItem>;

// The names of the workloads that items stand for. Only what is ordered, and what was ordered, is
// asked about. Needed if an item has several members.
class DemandMembers {
 public:
  virtual ~DemandMembers() = default;
  // The first `count` workloads of the item ("namespace/name"), in queue order.
  [[nodiscard]] virtual std::vector<std::string> Names(size_t item, int64_t count) const = 0;
  // An item of the demand that stands for the workload, or for one that is alike.
  [[nodiscard]] virtual std::optional<size_t> Find(bool is_group,
                                                   const std::string& workload) const = 0;
};

// What the demand stands for that the former one did not, or with fewer pods, and the reverse.
struct DemandChanges {
  struct Came {
    bool is_group = false;
    std::string workload;
    int64_t pods = 0;
    bool complete = false;  // IsCompleteGang() of what it demands
  };
  std::vector<Came> came;
  std::vector<std::pair<bool, std::string>> left;  // (is_group, workload)
  [[nodiscard]] bool empty() const { return came.empty() && left.empty(); }
};

// The result for one workload or several that follow each other in queue order, for their verdicts.
struct DemandOutcome {
  std::string workload;  // the first
  int64_t members = 1;
  // kNodesRequested, kGpuCapReached, kCostCapReached, kNoInstanceTypeFits, kInsufficientCapacity (a
  // provider cannot deliver at the moment: stock-out, quota, back-off).
  verdict::Code code = verdict::Code::kInsufficientCapacity;
  enum class Service : uint8_t {
    kServed,   // nodes are requested; for an item that is not charged: they could be
    kRefused,  // not now: nothing suits it, or a cap, a back-off or former purchases forbid it
    kOpen,     // not decided: it is gathered, beyond the rate, or left for the next step
  };
  Service service = Service::kOpen;
  std::vector<std::string> node_requests;  // kNodesRequested
  std::optional<absl::Time> expected_at;
  // kNoInstanceTypeFits: types on offer could run it but for its node selector or node affinity.
  bool selects_none = false;
  std::vector<std::string> details;  // "cheapest fitting type p5.48xlarge costs $55.04 an hour,
                                     //  the cap leaves $12.00"
};

}  // namespace fairlead::hook
