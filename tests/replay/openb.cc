#include "tests/replay/openb.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "document/csv.h"
#include "scheduler/model/api_names.h"
#include "tests/replay/go_random.h"

namespace fairlead::replay {
namespace {

constexpr char kPodFilePrefix[] = "openb_pod_list_";
constexpr char kCsvSuffix[] = ".csv";
constexpr int64_t kMib = int64_t{1} << 20;

std::string TraceOf(absl::string_view workload) {
  absl::ConsumePrefix(&workload, kPodFilePrefix);
  return std::string(workload);
}

}  // namespace

std::string PodFile(const std::string& folder, absl::string_view trace) {
  return absl::StrCat(folder, "/", kPodFilePrefix, trace, kCsvSuffix);
}

std::string NodeFile(const std::string& folder) {
  return absl::StrCat(folder, "/openb_node_list_gpu_node.csv");
}

absl::StatusOr<std::vector<std::string>> TracesOf(const std::string& folder) {
  std::vector<std::string> traces;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    absl::string_view name = file;
    if (absl::ConsumePrefix(&name, kPodFilePrefix) && absl::ConsumeSuffix(&name, kCsvSuffix)) {
      traces.emplace_back(name);
    }
  }
  if (error) return absl::NotFoundError(absl::StrCat("cannot list ", folder));
  std::sort(traces.begin(), traces.end());
  return traces;
}

absl::StatusOr<std::vector<TraceNode>> ReadNodes(const std::string& file) {
  FAIRLEAD_ASSIGN_OR_RETURN(const Csv csv, Csv::Read(file));
  std::vector<TraceNode> nodes(csv.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    FAIRLEAD_ASSIGN_OR_RETURN(nodes[i].name, csv.Text(i, "sn"));
    FAIRLEAD_ASSIGN_OR_RETURN(nodes[i].gpu_model, csv.Text(i, "model"));
    FAIRLEAD_RETURN_IF_ERROR(csv.Number(i, "cpu_milli", nodes[i].cpu));
    FAIRLEAD_RETURN_IF_ERROR(csv.Number(i, "memory_mib", nodes[i].memory_mib));
    FAIRLEAD_RETURN_IF_ERROR(csv.Number(i, "gpu", nodes[i].gpus));
  }
  return nodes;
}

absl::StatusOr<std::vector<TracePod>> ReadPods(const std::string& file) {
  FAIRLEAD_ASSIGN_OR_RETURN(const Csv csv, Csv::Read(file));
  std::vector<TracePod> pods(csv.size());
  for (size_t i = 0; i < pods.size(); ++i) {
    TracePod& pod = pods[i];
    FAIRLEAD_ASSIGN_OR_RETURN(pod.name, csv.Text(i, "name"));
    FAIRLEAD_RETURN_IF_ERROR(csv.Number(i, "cpu_milli", pod.cpu));
    FAIRLEAD_RETURN_IF_ERROR(csv.Number(i, "memory_mib", pod.memory_mib));
    FAIRLEAD_RETURN_IF_ERROR(csv.Number(i, "num_gpu", pod.gpus));
    FAIRLEAD_RETURN_IF_ERROR(csv.Number(i, "gpu_milli", pod.gpu_milli));
    if (pod.gpu_milli > 1000 || (pod.gpus > 0 && pod.gpu_milli == 0)) {
      return absl::InvalidArgumentError(absl::StrCat(file, " line ", i + 2, ": gpu_milli ",
                                                     pod.gpu_milli, " is not between 1 and 1000"));
    }
    if (!csv.Has("gpu_spec")) continue;  // some variants lack it: every model is accepted
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string models, csv.Text(i, "gpu_spec"));
    pod.gpu_models = absl::StrSplit(models, '|', absl::SkipEmpty());
  }
  return pods;
}

std::vector<size_t> PublishedOrder(const std::vector<TracePod>& pods, int64_t seed,
                                   int64_t capacity_milli, int64_t percent) {
  std::vector<size_t> order(pods.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return pods[a].name < pods[b].name; });
  if (order.empty()) return order;
  GoRandom random(seed);
  random.Int63();  // drawn, and used for a log line only
  random.Shuffle(order);
  const auto originals = static_cast<int32_t>(order.size());
  const int64_t wanted = capacity_milli * percent / 100;
  int64_t demand = 0;
  for (const TracePod& pod : pods) demand += pod.Demand();
  const bool asks = demand > 0;
  while (asks && demand < wanted) {
    const size_t drawn = order[static_cast<size_t>(random.Intn(originals))];
    // The guard counts one device, the sum all of them, as in the published runs.
    if (demand + pods[drawn].gpu_milli > wanted) break;
    demand += pods[drawn].Demand();
    order.push_back(drawn);
  }
  return order;
}

absl::StatusOr<std::map<std::pair<std::string, int64_t>, PublishedCurves>> ReadPublished(
    const std::string& folder) {
  std::map<std::pair<std::string, int64_t>, PublishedCurves> all;
  const absl::StatusOr<Csv> csv = Csv::Read(absl::StrCat(folder, "/expected_allocation.csv"));
  if (absl::IsNotFound(csv.status())) return all;
  FAIRLEAD_RETURN_IF_ERROR(csv.status());
  for (size_t i = 0; i < csv->size(); ++i) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string workload, csv->Text(i, "workload"));
    FAIRLEAD_ASSIGN_OR_RETURN(const std::string policy, csv->Text(i, "sc_policy"));
    int64_t seed = 0;
    FAIRLEAD_RETURN_IF_ERROR(csv->Number(i, "seed", seed));
    std::vector<double>& curve = all[{TraceOf(workload), seed}][policy];
    for (const std::string& column : csv->header()) {
      size_t percent = 0;
      if (!absl::SimpleAtoi(column, &percent) || percent != curve.size()) continue;
      FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, csv->Text(i, column));
      double value = 0;
      if (!absl::SimpleAtod(text, &value)) break;
      curve.push_back(value);
    }
  }
  return all;
}

model::Node ToNode(const TraceNode& node, absl::string_view name) {
  model::Node out;
  out.meta.name = std::string(name);
  out.meta.uid = absl::StrCat("uid-", name);
  out.meta.labels.Set(model::kHostnameLabel, name);
  out.allocatable = {{model::kCpuName, node.cpu},
                     {model::kMemoryName, node.memory_mib * kMib},
                     {model::kPodsName, 100'000}};  // the trace has no bound
  if (node.gpus > 0) {
    model::Set(out.allocatable, model::kGpuName, node.gpus * 1000);
    out.meta.labels.Set(model::kGpuProductLabel, node.gpu_model);
    // A size in which every milli-GPU is a whole number of MiB, so that no share is rounded.
    out.meta.labels.Set(model::kGpuMemoryLabel, "100000");
  }
  return out;
}

model::Pod ToPod(const TracePod& pod, size_t number) {
  model::Pod out;
  out.meta.ns = "openb";
  out.meta.name = absl::StrCat(pod.name, "-", number);
  out.meta.uid = absl::StrCat("uid-", number);
  out.meta.creation = absl::FromUnixSeconds(static_cast<int64_t>(number));
  out.scheduler_name = model::kDefaultSchedulerName;
  out.spec.ns = out.meta.ns;
  out.spec.requests = {{model::kCpuName, pod.cpu}, {model::kMemoryName, pod.memory_mib * kMib}};
  if (pod.gpus > 0 && pod.gpu_milli == 1000) {
    model::Set(out.spec.requests, model::kGpuName, pod.gpus * 1000);
  } else if (pod.gpus > 0) {
    out.spec.gpu_share = {pod.gpu_milli, 0, pod.gpus};
  }
  if (pod.gpus > 0 && !pod.gpu_models.empty()) {
    out.spec.has_required_node_affinity = true;
    out.spec.required_node_terms = {
        {{{model::kGpuProductLabel, model::SelectorOperator::kIn, pod.gpu_models}}, {}}};
  }
  return out;
}

std::string TypicalArgs(const std::vector<TracePod>& pods) {
  std::map<std::tuple<int64_t, int64_t, int64_t, std::vector<std::string>>, int64_t> shapes;
  for (const TracePod& pod : pods) {
    ++shapes[{pod.cpu, pod.gpus, pod.gpu_milli,
              pod.gpus > 0 ? pod.gpu_models : std::vector<std::string>()}];
  }
  std::vector<std::string> items;
  for (const auto& [shape, count] : shapes) {
    const auto& [cpu, gpus, milli, models] = shape;
    std::string item =
        absl::StrCat(R"({"count":)", count, R"(,"cpu":")", cpu, R"(m","gpu":)", gpus);
    if (gpus > 0 && milli < 1000) absl::StrAppend(&item, R"(,"gpuFractionMilli":)", milli);
    if (!models.empty()) {
      absl::StrAppend(&item, R"(,"gpuProducts":[")", absl::StrJoin(models, R"(",")"), R"("])");
    }
    items.push_back(item + "}");
  }
  return absl::StrCat(R"({"typicalPods":[)", absl::StrJoin(items, ","), "]}");
}

}  // namespace fairlead::replay
