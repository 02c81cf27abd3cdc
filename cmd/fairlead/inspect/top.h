// Who holds what now: `fairlead top`. Amounts are what pods request, on nodes that they have or are
// being bound to; prices are those of provisioned nodes.
//
// A node's price is divided among the pods on it. A pod's weight is its largest share of the node's
// allocatable CPU, memory or GPUs; it pays price * weight, or price * weight / (sum of weights) if
// they exceed the node together. What no pod pays for is idle. Nodes that were not provisioned have
// no price.
//
// The JSON (docs/commands.md; names stay, new ones may come):
//  {"kind":"Top","sort","pricePerHourUSD","idlePricePerHourUSD",
//   "queues":[{"name","pods","waitingPods","used":{"cpu","memory","nvidia.com/gpu"},
//              "pricePerHourUSD"}],
//   "workloads":[{"name","queue","pods","waitingPods","used","pricePerHourUSD"}]}
//
// Thread-safety: pure functions. Complexity: O(rows of the view).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/view.h"
#include "document/json.h"

namespace fairlead::cmd {

struct Holder {
  std::string name, queue;  // of a queue: no queue
  int64_t pods = 0, waiting_pods = 0;
  int64_t gpu_milli = 0, cpu_milli = 0, memory_bytes = 0;
  int64_t price_micro_usd_per_hour = 0;
};

enum class TopOrder : uint8_t { kGpus, kCpu, kMemory, kPrice, kPods, kWaiting, kName };
// "gpus", "cpu", "memory", "price", "pods", "waiting", "name".
absl::StatusOr<TopOrder> ParseTopOrder(absl::string_view name);

struct Top {
  TopOrder order = TopOrder::kGpus;
  std::vector<Holder> queues, workloads;  // largest first, equals by name; kName: by name
  int64_t price_micro_usd_per_hour = 0, idle_micro_usd_per_hour = 0;
};

Top TopOf(const core::View& view, TopOrder order);

// At most `rows` workloads.
std::string TopText(const Top& top, size_t rows);
Json TopJson(const Top& top);

}  // namespace fairlead::cmd
