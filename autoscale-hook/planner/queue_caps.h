// The most that the hook may hold for one queue and all queues below it. What is provisioned counts
// for the queue of the first workload that it was provisioned for (NodeRequest.queue), whatever
// runs there later.
//
// Thread-safety: plain values. Bounds are model::kUnlimited where there is none.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "scheduler/model/resources.h"

namespace fairlead::hook {

struct QueueCap {
  std::string queue;             // that has the cap
  std::set<std::string> queues;  // itself and all below it
  int64_t gpus = model::kUnlimited;
  int64_t micro_usd_per_hour = model::kUnlimited;
};

}  // namespace fairlead::hook
