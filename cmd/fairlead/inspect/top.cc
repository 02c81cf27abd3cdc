#include "cmd/fairlead/inspect/top.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/terminal/table.h"
#include "scheduler/model/api_names.h"

namespace fairlead::cmd {
namespace {

constexpr int64_t kWhole = 1'000'000;  // weights are millionths of a node

struct OrderName {
  TopOrder order;
  const char* name;
};
constexpr OrderName kOrders[] = {
    {TopOrder::kGpus, "gpus"},   {TopOrder::kCpu, "cpu"},   {TopOrder::kMemory, "memory"},
    {TopOrder::kPrice, "price"}, {TopOrder::kPods, "pods"}, {TopOrder::kWaiting, "waiting"},
    {TopOrder::kName, "name"},
};

int64_t PartOf(int64_t amount, int64_t whole) {
  if (whole <= 0 || amount <= 0) return 0;
  if (amount >= whole) return kWhole;
  return static_cast<int64_t>(absl::int128(amount) * kWhole / whole);
}

int64_t WeightOn(const core::NodeRow& node, const core::RunningRow& pod) {
  const auto part = [&](const char* resource, int64_t amount) {
    return PartOf(amount, model::Get(node.allocatable, resource));
  };
  return std::max({part(model::kGpuName, pod.gpu_milli), part(model::kCpuName, pod.cpu_milli),
                   part(model::kMemoryName, pod.memory_bytes)});
}

int64_t KeyOf(const Holder& holder, TopOrder order) {
  switch (order) {
    case TopOrder::kGpus:
      return holder.gpu_milli;
    case TopOrder::kCpu:
      return holder.cpu_milli;
    case TopOrder::kMemory:
      return holder.memory_bytes;
    case TopOrder::kPrice:
      return holder.price_micro_usd_per_hour;
    case TopOrder::kPods:
      return holder.pods;
    case TopOrder::kWaiting:
      return holder.waiting_pods;
    case TopOrder::kName:
      break;
  }
  return 0;
}

std::vector<Holder> Sorted(const std::map<std::string, Holder>& holders, TopOrder order) {
  std::vector<Holder> sorted;
  for (const auto& [name, holder] : holders) sorted.push_back(holder);
  std::stable_sort(sorted.begin(), sorted.end(), [order](const Holder& a, const Holder& b) {
    return KeyOf(a, order) > KeyOf(b, order);
  });
  return sorted;
}

// Counts both of the workload and of its queue.
class Counter {
 public:
  template <typename Fn>
  void Add(const std::string& workload, const std::string& queue, Fn count) {
    Holder& own = workloads_[workload];
    own.name = workload;
    own.queue = queue;
    count(own);
    Holder& all = queues_[queue];
    all.name = queue;
    count(all);
  }
  [[nodiscard]] const std::map<std::string, Holder>& queues() const { return queues_; }
  [[nodiscard]] const std::map<std::string, Holder>& workloads() const { return workloads_; }

 private:
  std::map<std::string, Holder> queues_, workloads_;
};

Json HolderJson(const Holder& holder) {
  Json used = Json::Object();
  used.Set(model::kCpuName, model::FormatQuantity(model::kCpuName, holder.cpu_milli));
  used.Set(model::kMemoryName, model::FormatQuantity(model::kMemoryName, holder.memory_bytes));
  used.Set(model::kGpuName, model::FormatQuantity(model::kGpuName, holder.gpu_milli));
  Json json = Json::Object();
  json.Set("name", holder.name).SetUnlessEmpty("queue", holder.queue);
  json.Set("pods", Json::Int(holder.pods)).Set("waitingPods", Json::Int(holder.waiting_pods));
  json.Set("used", std::move(used));
  return json.Set("pricePerHourUSD", DollarsExact(holder.price_micro_usd_per_hour));
}

std::vector<std::string> Cells(const Holder& holder) {
  return {AmountCell(model::kGpuName, holder.gpu_milli),
          AmountCell(model::kCpuName, holder.cpu_milli),
          AmountCell(model::kMemoryName, holder.memory_bytes),
          absl::StrCat(holder.pods),
          absl::StrCat(holder.waiting_pods),
          DollarsText(holder.price_micro_usd_per_hour)};
}

}  // namespace

absl::StatusOr<TopOrder> ParseTopOrder(absl::string_view name) {
  for (const OrderName& known : kOrders) {
    if (name == known.name) return known.order;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--sort ", name, ": must be gpus, cpu, memory, price, pods, waiting or name"));
}

Top TopOf(const core::View& view, TopOrder order) {
  std::map<std::string, const core::NodeRow*> nodes;
  for (const core::NodeRow& node : view.nodes) nodes.emplace(node.name, &node);
  const auto weight_of = [&](const core::RunningRow& row) -> int64_t {
    const auto node = nodes.find(row.node);
    return node == nodes.end() ? 0 : WeightOn(*node->second, row);
  };
  std::map<std::string, int64_t> weights;  // by node
  for (const core::RunningRow& row : view.running) weights[row.node] += weight_of(row);
  Top top;
  top.order = order;
  top.price_micro_usd_per_hour = top.idle_micro_usd_per_hour = view.price_micro_usd_per_hour;
  Counter counter;
  for (const core::RunningRow& row : view.running) {
    const auto node = nodes.find(row.node);
    int64_t price = 0;
    if (node != nodes.end()) {
      price = static_cast<int64_t>(absl::int128(node->second->price_micro_usd_per_hour) *
                                   weight_of(row) / std::max(kWhole, weights[row.node]));
    }
    top.idle_micro_usd_per_hour -= price;
    counter.Add(row.workload, row.queue, [&](Holder& holder) {
      ++holder.pods;
      holder.price_micro_usd_per_hour += price;
      holder.gpu_milli += row.gpu_milli;
      holder.cpu_milli += row.cpu_milli;
      holder.memory_bytes += row.memory_bytes;
    });
  }
  for (const core::WaitingRow& row : view.waiting) {
    counter.Add(row.workload, row.queue, [&](Holder& holder) {
      holder.waiting_pods += static_cast<int64_t>(row.pods.size());
    });
  }
  top.queues = Sorted(counter.queues(), order);
  top.workloads = Sorted(counter.workloads(), order);
  return top;
}

std::string TopText(const Top& top, size_t rows) {
  if (top.workloads.empty()) return "No workload of Fairlead runs or waits.\n";
  const auto row = [](std::vector<std::string> first, const Holder& holder) {
    for (std::string& cell : Cells(holder)) first.push_back(std::move(cell));
    return first;
  };
  Table queues({"QUEUE", ">GPUS", ">CPU", ">MEMORY", ">PODS", ">WAITING", ">$/H"});
  for (const Holder& queue : top.queues) {
    queues.AddRow(row({queue.name.empty() ? "(none)" : queue.name}, queue));
  }
  Table workloads({"WORKLOAD", "QUEUE", ">GPUS", ">CPU", ">MEMORY", ">PODS", ">WAITING", ">$/H"});
  for (size_t i = 0; i < std::min(rows, top.workloads.size()); ++i) {
    workloads.AddRow(row({top.workloads[i].name, top.workloads[i].queue}, top.workloads[i]));
  }
  return absl::StrCat(
      queues.Text(), "\n", workloads.Text(),
      top.workloads.size() > rows
          ? absl::StrCat("... and ", top.workloads.size() - rows, " more; --limit shows more\n")
          : "",
      "\nProvisioned nodes: ", DollarsText(top.price_micro_usd_per_hour), " an hour, of it ",
      DollarsText(top.idle_micro_usd_per_hour), " idle.\n");
}

Json TopJson(const Top& top) {
  Json json = Json::Object();
  json.Set("kind", "Top");
  for (const OrderName& known : kOrders) {
    if (known.order == top.order) json.Set("sort", known.name);
  }
  json.Set("pricePerHourUSD", DollarsExact(top.price_micro_usd_per_hour));
  json.Set("idlePricePerHourUSD", DollarsExact(top.idle_micro_usd_per_hour));
  Json queues = Json::Array(), workloads = Json::Array();
  for (const Holder& queue : top.queues) queues.Add(HolderJson(queue));
  for (const Holder& workload : top.workloads) workloads.Add(HolderJson(workload));
  return json.Set("queues", std::move(queues)).Set("workloads", std::move(workloads));
}

}  // namespace fairlead::cmd
