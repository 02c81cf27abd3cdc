// Queues and nodes for users and tools. The JSON fields are an interface (docs/commands.md): names
// stay, new ones may come.
//
// Amounts are Kubernetes quantities as strings ("unlimited" without a bound), prices dollars per
// hour as decimal strings, times RFC 3339 in UTC.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/view.h"
#include "document/json.h"

namespace fairlead::cmd {

enum class OutputFormat : uint8_t { kTable, kWide, kJson, kYaml };
// "table", "json", "yaml"; and "wide", a table with more columns, of commands that have one.
absl::StatusOr<OutputFormat> ParseOutputFormat(absl::string_view name, bool has_wide = false);
// The same for commands that have "table" and "json" alone.
absl::Status CheckTableOrJson(absl::string_view name);
inline bool IsTable(OutputFormat format) {
  return format == OutputFormat::kTable || format == OutputFormat::kWide;
}
// For kJson and kYaml.
std::string Render(const Json& tree, OutputFormat format);

// {"kind":"QueueList","history":{"asOf","problem"},"items":[{"name","parent","depth","leaf",
//   "priority","problem","waitingWorkloads","runningPods","resources":{name: {"quota","limit",
//   "fairShare","allocated","allocatedNonPreemptible","requested","recorded":{"allocated",
//   "allocatedNonPreemptible","requested"}}}}]}
// `history` is present if it counts in fair shares, or would without its problem. `recorded` is
// what KAI's queue controller has written into the status; absent without it.
Json QueuesJson(const core::View& view);
// One of the items.
Json QueueJson(const core::QueueRow& queue);
// `wide`: also priority, non-preemptible GPUs, quota and limit of CPU and memory.
std::string QueuesText(const core::View& view, bool wide = false);

// {"kind":"NodeList","pricePerHourUSD","gpusHeld","items":[{"name","instanceType","zone","status",
//  "nodeRequest","capacityType","pricePerHourUSD","pods","promised","unneededSince",
//  "allocatable":{},"used":{}}]}
Json NodesJson(const core::View& view);
// `wide`: also memory, every other resource that the node has, and its NodeRequest.
std::string NodesText(const core::View& view, bool wide = false);

// ---- parts that other commands use too
// A line if the Queue's status counts other GPUs than we do; else empty.
std::string DisagreementText(const core::QueueRow& queue);
// {"quota","limit",...} of a resource, as in QueuesJson.
Json AmountsJson(const core::QueueResourceRow& row);
std::string Rfc3339(absl::Time time);
std::string DollarsText(int64_t micro_usd);   // "$12.50", rounded to cents
std::string DollarsExact(int64_t micro_usd);  // "12.500000"
// "8", "0.5", "-" for unlimited.
std::string AmountCell(const std::string& resource, int64_t amount);
std::string QuantityOrUnlimited(const std::string& resource, int64_t amount);
// "45s", "12m", "3h5m", "2d4h"; never negative.
std::string AgeText(absl::Duration age);
// The row of a resource; zeros if the queue has none.
core::QueueResourceRow ResourceOf(const core::QueueRow& queue, absl::string_view resource);

}  // namespace fairlead::cmd
