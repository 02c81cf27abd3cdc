#include "cmd/fairlead/inspect/show.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cmd/fairlead/terminal/table.h"
#include "scheduler/model/resources.h"
#include "scheduler/verdict/phrases.h"

namespace fairlead::cmd {
namespace {

constexpr int64_t kMicro = 1'000'000;

Json Quantities(const model::ResourceList& list) {
  Json json = Json::Object();
  for (const auto& [name, amount] : list) json.Set(name, model::FormatQuantity(name, amount));
  return json;
}

// The two columns "used/total" of a resource; empty if the node has none.
std::string UsedOf(const core::NodeRow& node, const std::string& resource) {
  const int64_t total = model::Get(node.allocatable, resource);
  if (total == 0) return "";
  return absl::StrCat(model::FormatAmount(resource, model::Get(node.used, resource)), "/",
                      model::FormatAmount(resource, total));
}

// "nvidia.com/mig-1g.5gb 1/7, ...": what has no column of its own.
std::string OthersOf(const core::NodeRow& node) {
  std::vector<std::string> others;
  for (const auto& [name, amount] : node.allocatable) {
    if (name == model::kCpuName || name == model::kMemoryName || name == model::kGpuName ||
        name == model::kPodsName || amount == 0) {
      continue;
    }
    others.push_back(absl::StrCat(name, " ", UsedOf(node, name)));
  }
  return absl::StrJoin(others, ", ");
}

}  // namespace

absl::Status CheckTableOrJson(absl::string_view name) {
  if (name == "table" || name == "json") return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--output ", name, ": must be table or json"));
}

absl::StatusOr<OutputFormat> ParseOutputFormat(absl::string_view name, bool has_wide) {
  if (name == "table") return OutputFormat::kTable;
  if (name == "wide" && has_wide) return OutputFormat::kWide;
  if (name == "json") return OutputFormat::kJson;
  if (name == "yaml") return OutputFormat::kYaml;
  return absl::InvalidArgumentError(absl::StrCat("--output ", name, ": must be table, ",
                                                 has_wide ? "wide, " : "", "json or yaml"));
}

std::string Render(const Json& tree, OutputFormat format) {
  return format == OutputFormat::kYaml ? tree.Yaml() : tree.Pretty();
}

std::string Rfc3339(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

std::string DollarsText(int64_t micro_usd) {
  const int64_t cents = (micro_usd + (micro_usd < 0 ? -5000 : 5000)) / 10000;
  return absl::StrFormat("%s$%d.%02d", cents < 0 ? "-" : "", std::abs(cents / 100),
                         std::abs(cents % 100));
}

std::string DollarsExact(int64_t micro_usd) {
  return absl::StrFormat("%s%d.%06d", micro_usd < 0 ? "-" : "", std::abs(micro_usd / kMicro),
                         std::abs(micro_usd % kMicro));
}

std::string AmountCell(const std::string& resource, int64_t amount) {
  return amount == model::kUnlimited ? "-" : model::FormatAmount(resource, amount);
}

std::string QuantityOrUnlimited(const std::string& resource, int64_t amount) {
  return amount == model::kUnlimited ? "unlimited" : model::FormatQuantity(resource, amount);
}

std::string AgeText(absl::Duration age) {
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(age));
  const auto two = [](int64_t big, const char* big_unit, int64_t small, const char* small_unit) {
    return absl::StrCat(big, big_unit, small == 0 ? "" : absl::StrCat(small, small_unit));
  };
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return two(seconds / 60, "m", seconds < 600 ? seconds % 60 : 0, "s");
  if (seconds < 86400) return two(seconds / 3600, "h", seconds % 3600 / 60, "m");
  return two(seconds / 86400, "d", seconds % 86400 / 3600, "h");
}

core::QueueResourceRow ResourceOf(const core::QueueRow& queue, absl::string_view resource) {
  for (const core::QueueResourceRow& row : queue.resources) {
    if (row.resource == resource) return row;
  }
  core::QueueResourceRow none;
  none.resource = std::string(resource);
  return none;
}

Json AmountsJson(const core::QueueResourceRow& row) {
  const auto quantity = [&row](int64_t amount) {
    return model::FormatQuantity(row.resource, amount);
  };
  Json amounts = Json::Object();
  amounts.Set("quota", QuantityOrUnlimited(row.resource, row.quota));
  amounts.Set("limit", QuantityOrUnlimited(row.resource, row.limit));
  amounts.Set("fairShare", QuantityOrUnlimited(row.resource, row.fair_share));
  amounts.Set("allocated", quantity(row.allocated));
  amounts.Set("allocatedNonPreemptible", quantity(row.allocated_non_preemptible));
  amounts.Set("requested", quantity(row.requested));
  if (row.recorded.has_value()) {
    Json recorded = Json::Object();
    recorded.Set("allocated", quantity(row.recorded->allocated));
    recorded.Set("allocatedNonPreemptible", quantity(row.recorded->allocated_non_preemptible));
    recorded.Set("requested", quantity(row.recorded->requested));
    amounts.Set("recorded", std::move(recorded));
  }
  return amounts;
}

Json QueueJson(const core::QueueRow& queue) {
  Json item = Json::Object();
  item.Set("name", queue.name).SetUnlessEmpty("parent", queue.parent);
  item.Set("depth", Json::Int(queue.depth)).Set("leaf", Json::Bool(queue.leaf));
  item.Set("priority", Json::Int(queue.priority)).SetUnlessEmpty("problem", queue.problem);
  item.Set("waitingWorkloads", Json::Int(queue.waiting_workloads));
  item.Set("runningPods", Json::Int(queue.running_pods));
  Json resources = Json::Object();
  for (const core::QueueResourceRow& row : queue.resources) {
    resources.Set(row.resource, AmountsJson(row));
  }
  return item.Set("resources", std::move(resources));
}

Json QueuesJson(const core::View& view) {
  Json items = Json::Array();
  for (const core::QueueRow& queue : view.queues) items.Add(QueueJson(queue));
  Json json = Json::Object();
  json.Set("kind", "QueueList");
  if (view.history.on) {
    Json history = Json::Object();
    if (view.history.as_of.has_value()) history.Set("asOf", Rfc3339(*view.history.as_of));
    json.Set("history", history.SetUnlessEmpty("problem", view.history.problem));
  }
  return json.Set("items", std::move(items));
}

std::string QueuesText(const core::View& view, bool wide) {
  if (view.queues.empty()) {
    return "No queues. Create one (scheduling.run.ai/v2 Queue) and give workloads the label "
           "kai.scheduler/queue.\n";
  }
  Table table({"QUEUE", ">GPUS", ">QUOTA", ">LIMIT", ">FAIR SHARE", ">REQUESTED", ">CPU", ">MEMORY",
               ">WAITING", ">PODS", ">PRIORITY", ">NON-PREEMPTIBLE", ">CPU QUOTA", ">CPU LIMIT",
               ">MEMORY QUOTA", ">MEMORY LIMIT", "PROBLEM"});
  for (const core::QueueRow& queue : view.queues) {
    const core::QueueResourceRow gpu = ResourceOf(queue, model::kGpuName);
    const core::QueueResourceRow cpu = ResourceOf(queue, model::kCpuName);
    const core::QueueResourceRow memory = ResourceOf(queue, model::kMemoryName);
    const std::string indent(static_cast<size_t>(queue.depth) * 2, ' ');
    table.AddRow(
        {absl::StrCat(indent, queue.name), AmountCell(model::kGpuName, gpu.allocated),
         AmountCell(model::kGpuName, gpu.quota), AmountCell(model::kGpuName, gpu.limit),
         AmountCell(model::kGpuName, gpu.fair_share), AmountCell(model::kGpuName, gpu.requested),
         AmountCell(model::kCpuName, cpu.allocated),
         AmountCell(model::kMemoryName, memory.allocated), absl::StrCat(queue.waiting_workloads),
         absl::StrCat(queue.running_pods), wide ? absl::StrCat(queue.priority) : "",
         wide ? AmountCell(model::kGpuName, gpu.allocated_non_preemptible) : "",
         wide ? AmountCell(model::kCpuName, cpu.quota) : "",
         wide ? AmountCell(model::kCpuName, cpu.limit) : "",
         wide ? AmountCell(model::kMemoryName, memory.quota) : "",
         wide ? AmountCell(model::kMemoryName, memory.limit) : "", queue.problem});
  }
  std::string out = absl::StrCat(
      table.Text(), "\nQuota, limit, fair share and requested count GPUs; - means unlimited.\n");
  if (!view.history.problem.empty()) {
    absl::StrAppend(&out, "Fair shares are divided without history: ", view.history.problem, ".\n");
  } else if (view.history.on && view.history.as_of.has_value()) {
    absl::StrAppend(&out, "Fair shares count what queues used before ",
                    Rfc3339(*view.history.as_of), ".\n");
  }
  for (const core::QueueRow& queue : view.queues) absl::StrAppend(&out, DisagreementText(queue));
  return out;
}

std::string DisagreementText(const core::QueueRow& queue) {
  const core::QueueResourceRow gpu = ResourceOf(queue, model::kGpuName);
  if (!gpu.recorded.has_value()) return "";
  std::vector<std::string> parts;
  const auto compare = [&](const char* what, int64_t here, int64_t there) {
    if (here == there) return;
    parts.push_back(absl::StrCat(what, " ", AmountCell(gpu.resource, there), ", here ",
                                 AmountCell(gpu.resource, here)));
  };
  compare("allocated", gpu.allocated, gpu.recorded->allocated);
  compare("of it non-preemptible", gpu.allocated_non_preemptible,
          gpu.recorded->allocated_non_preemptible);
  compare("requested", gpu.requested, gpu.recorded->requested);
  if (parts.empty()) return "";
  return absl::StrCat("status of queue ", queue.name,
                      " counts other GPUs: ", absl::StrJoin(parts, "; "), "\n");
}

Json NodesJson(const core::View& view) {
  Json items = Json::Array();
  for (const core::NodeRow& node : view.nodes) {
    Json item = Json::Object();
    item.Set("name", node.name).SetUnlessEmpty("instanceType", node.instance_type);
    item.SetUnlessEmpty("zone", node.zone).Set("status", node.status);
    if (!node.node_request.empty()) {
      item.Set("nodeRequest", node.node_request);
      item.Set("capacityType", node.capacity_type);
      item.Set("pricePerHourUSD", DollarsExact(node.price_micro_usd_per_hour));
    }
    item.Set("pods", Json::Int(node.pods)).Set("promised", Json::Int(node.promised));
    if (node.unneeded_since.has_value()) item.Set("unneededSince", Rfc3339(*node.unneeded_since));
    item.Set("allocatable", Quantities(node.allocatable)).Set("used", Quantities(node.used));
    items.Add(std::move(item));
  }
  Json json = Json::Object();
  json.Set("kind", "NodeList");
  json.Set("pricePerHourUSD", DollarsExact(view.price_micro_usd_per_hour));
  return json.Set("gpusHeld", Json::Int(view.gpus_held)).Set("items", std::move(items));
}

std::string NodesText(const core::View& view, bool wide) {
  if (view.nodes.empty()) return "No nodes.\n";
  Table table({"NODE", "TYPE", "ZONE", "STATUS", ">GPUS", ">CPU", ">PODS", ">PROMISED", ">$/H",
               "CAPACITY", "UNNEEDED", ">MEMORY", "OTHER RESOURCES", "NODE REQUEST"});
  for (const core::NodeRow& node : view.nodes) {
    const bool ours = !node.node_request.empty();
    table.AddRow(
        {node.name, node.instance_type, node.zone, node.status, UsedOf(node, model::kGpuName),
         UsedOf(node, model::kCpuName), absl::StrCat(node.pods), absl::StrCat(node.promised),
         ours ? DollarsText(node.price_micro_usd_per_hour) : "", ours ? node.capacity_type : "",
         node.unneeded_since.has_value() ? AgeText(view.at - *node.unneeded_since) : "",
         wide ? UsedOf(node, model::kMemoryName) : "", wide ? OthersOf(node) : "",
         wide ? node.node_request : ""});
  }
  return absl::StrCat(table.Text(), "\n",
                      verdict::Count(static_cast<int64_t>(view.nodes.size()), "node", "nodes"),
                      "; provisioned and ordered: ", verdict::Count(view.gpus_held, "GPU", "GPUs"),
                      ", ", DollarsText(view.price_micro_usd_per_hour), " an hour.\n");
}

}  // namespace fairlead::cmd
