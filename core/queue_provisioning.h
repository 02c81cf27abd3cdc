// What may be provisioned for queues, as annotations of Queue objects say:
//
//   fairlead.dev/provisioned-gpu-limit: "16"               GPUs, in devices
//   fairlead.dev/provisioned-cost-limit-per-hour: "50.00"  dollars
//   fairlead.dev/over-quota: "BuyNodes"                    or "Evict", "Weigh": what the queue does
//                                                          for what it holds above its quota
//
// The last one is inherited: of the nearest queue above that says something, else as configured.
//
// A value that is wrong changes nothing: the last right one of the object stays in force. Where
// there was no right cap nothing is provisioned for the queue, because a cap was meant. It is told
// in an event. Not kept over a restart.
//
// Thread-safety: the owner's thread. Complexity: O(log queues) per object, O(queues below) per cap.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autoscale-hook/planner/queue_caps.h"
#include "queues/tree.h"
#include "scheduler/engine/over_quota.h"
#include "scheduler/model/action.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::core {

// Annotation of Queues: GPUs that may be provisioned for the queue, in devices.
inline constexpr char kProvisionedGpuLimit[] = "fairlead.dev/provisioned-gpu-limit";
// Annotation of Queues: dollars per hour of what may be provisioned for the queue.
inline constexpr char kProvisionedCostLimit[] = "fairlead.dev/provisioned-cost-limit-per-hour";
// Annotation of Queues: what the queue does for what it holds above its quota: Evict, BuyNodes or
// Weigh.
inline constexpr char kOverQuota[] = "fairlead.dev/over-quota";
inline constexpr char kOverQuotaValues[] = "Evict, BuyNodes or Weigh";

std::optional<engine::OverQuota> ParseOverQuota(absl::string_view text);

class QueueProvisioning {
 public:
  // True if other caps are in force, or there is something to tell.
  bool Upsert(const model::Queue& queue);
  bool Remove(const std::string& queue) { return rows_.erase(queue) > 0; }

  // By name of the queue.
  [[nodiscard]] std::vector<hook::QueueCap> InForce(const queues::QueueTree& tree) const;
  // The leaf queues that do not only evict.
  [[nodiscard]] std::map<std::string, engine::OverQuota> OverQuotaOfLeaves(
      const queues::QueueTree& tree, engine::OverQuota configured) const;
  // Once for each fault of an object.
  std::vector<model::EmitEvent> TakeEvents() { return std::exchange(events_, {}); }

 private:
  struct Row {
    std::string uid, fault;
    int64_t gpus = model::kUnlimited, micro_usd_per_hour = model::kUnlimited;
    std::optional<engine::OverQuota> over_quota;  // absent: inherited
  };
  void AddLeaves(const queues::QueueTree& tree, queues::QueueId queue, engine::OverQuota inherited,
                 std::map<std::string, engine::OverQuota>& leaves) const;

  std::map<std::string, Row> rows_;  // queues with an annotation
  std::vector<model::EmitEvent> events_;
};

}  // namespace fairlead::core
