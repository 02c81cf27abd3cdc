#include "tests/bench/plan_demands.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "autoscale-hook/planner/offers.h"
#include "scheduler/model/api_names.h"
#include "tests/bench/harness.h"

namespace fairlead::bench {
namespace {

constexpr int64_t kDevice = 12'000;  // one GPU, so that u1 to u4 of thousandths are whole
constexpr int64_t kOrders = 4;

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  // Each doubling is as likely as the next one.
  int64_t Scaled(int64_t low, int64_t high) {
    const double unit = static_cast<double>(random_() >> 11) * 0x1p-53;
    return static_cast<int64_t>(
        std::llround(static_cast<double>(low) *
                     std::pow(static_cast<double>(high) / static_cast<double>(low), unit)));
  }
  template <typename T>
  T OneOf(const std::vector<T>& list) {
    return list[static_cast<size_t>(Between(0, static_cast<int64_t>(list.size()) - 1))];
  }

 private:
  std::mt19937_64 random_;
};

hook::InstanceType TypeOf(std::string name, int64_t cpus, int64_t memory_gib) {
  hook::InstanceType type;
  type.name = std::move(name);
  type.cpu_milli = cpus * 1000;
  type.memory_bytes = memory_gib * 1024 * kMib;
  type.zones = {"zone-a"};
  type.reserved_cpu_milli = 200;
  type.reserved_memory_bytes = 2048 * kMib;
  return type;
}

// Families of machines: three ratios of memory to CPU, and GPUs in up to four models.
std::shared_ptr<const hook::Catalog> GeneratedCatalog(Dice& dice) {
  std::vector<hook::InstanceType> types;
  const int64_t generations = dice.Between(1, 3);
  for (int64_t generation = 0; generation < generations; ++generation) {
    for (const int64_t ratio : {2, 4, 8}) {
      const int64_t cpu_price = dice.Between(30'000, 45'000),
                    gib_price = dice.Between(3'000, 6'000);
      for (const int64_t cpus : {2, 4, 8, 16, 32, 48, 64, 96}) {
        hook::InstanceType type =
            TypeOf(absl::StrCat("cpu", generation, ".", ratio, "x", cpus), cpus, cpus * ratio);
        type.on_demand_micro_usd = cpus * cpu_price + type.memory_bytes / (1024 * kMib) * gib_price;
        types.push_back(std::move(type));
      }
    }
  }
  const int64_t models = dice.Between(1, 4);
  for (int64_t m = 0; m < models; ++m) {
    const int64_t gpu_price = dice.Scaled(300'000, 6'000'000);
    const int64_t cpus_per_gpu = dice.OneOf<int64_t>({4, 8, 12, 24});
    for (const int64_t gpus : {1, 1, 2, 4, 8}) {
      const int64_t cpus = cpus_per_gpu * gpus * dice.OneOf<int64_t>({1, 1, 2});
      const std::string name = absl::StrCat("gpu", m, ".", gpus, "x", types.size());
      hook::InstanceType type = TypeOf(name, cpus, cpus * dice.OneOf<int64_t>({4, 8}));
      type.gpu_model = absl::StrCat("Model-", m);
      type.gpu_count = gpus;
      type.gpu_memory_mib = 24'000;
      type.on_demand_micro_usd =
          gpus * gpu_price * dice.Between(90, 115) / 100 + cpus * dice.Between(30'000, 45'000);
      types.push_back(std::move(type));
    }
  }
  return std::make_shared<hook::Catalog>(hook::Catalog::FromTypes(std::move(types)));
}

CostPods Service(Dice& dice) {
  const int64_t cpu = dice.Scaled(2, 80) * 50;
  return {cpu, cpu * dice.Between(1, 6) * 1024 / 1000 + 64, 0, 0, {}, 0, 1};
}

CostPods Training(Dice& dice) {
  const int64_t gpus = dice.OneOf<int64_t>({1, 1, 1, 2, 2, 4, 8});
  CostPods pods{gpus * dice.OneOf<int64_t>({2000, 3000, 6000, 10'000}),
                gpus * dice.OneOf<int64_t>({8, 14, 32, 60}) * 1024,
                gpus,
                0,
                {},
                0,
                1};
  pods.gang = dice.OneOf<int64_t>({1, 1, 2, 4, 8});
  return pods;
}

CostPods Inference(Dice& dice) {
  CostPods pods{dice.Between(1, 8) * 500, dice.Between(2, 24) * 1024, 0, 0, {}, 0, 1};
  pods.gpu_milli = dice.OneOf<int64_t>({0, 100, 200, 250, 300, 400, 500, 500, 600, 700});
  pods.gpus = pods.gpu_milli == 0 ? 1 : 0;
  return pods;
}

CostPods MemoryHeavy(Dice& dice) {
  const int64_t cpu = dice.Scaled(2, 32) * 250;
  return {cpu, cpu * dice.Between(8, 24) * 1024 / 1000, 0, 0, {}, 0, 1};
}

CostPods Large(Dice& dice) {
  return {dice.Between(6, 60) * 1000, dice.Between(16, 240) * 1024, 0, 0, {}, 0, 1};
}

CostPods OfMix(Dice& dice, int64_t mix, const std::vector<std::string>& models) {
  switch (mix) {
    case 0:
      return Service(dice);
    case 1:
      return Training(dice);
    case 2:
      return Inference(dice);
    case 3:
      return MemoryHeavy(dice);
    case 4: {
      CostPods pods = dice.Between(0, 2) == 0 ? Inference(dice) : Training(dice);
      if (dice.Between(0, 3) > 0) pods.models = {dice.OneOf(models)};
      return pods;
    }
    case 5:
      return Large(dice);
    case 6:
      return dice.Between(0, 1) == 0 ? Service(dice) : Training(dice);
    default:
      return OfMix(dice, dice.Between(0, 5), models);
  }
}

bool Accepts(const CostPods& pods, const hook::InstanceType& type) {
  return pods.models.empty() || std::count(pods.models.begin(), pods.models.end(), type.gpu_model);
}

// A share through Fekete and Schepers' function of order k: in units of a device.
int64_t DualFeasible(int64_t share_milli, int64_t k) {
  const int64_t times = (k + 1) * share_milli;
  return times % 1000 == 0 ? share_milli * kDevice / 1000 : times / 1000 * (kDevice / k);
}

// A share through Fekete and Schepers' function with a threshold of at most a half of a device:
// what is above the rest of a device counts as one device, what is below the threshold as nothing.
int64_t Threshold(int64_t share_milli, int64_t threshold_milli) {
  if (share_milli > 1000 - threshold_milli) return kDevice;
  return share_milli < threshold_milli ? 0 : share_milli * kDevice / 1000;
}

// The thresholds at which some share begins to count, or to count as a device.
std::set<int64_t> ThresholdsOf(const std::vector<CostPods>& all) {
  std::set<int64_t> thresholds;
  for (const CostPods& pods : all) {
    const int64_t share = pods.gpu_milli;
    if (share > 0 && share < 1000) thresholds.insert(share <= 500 ? share : 1001 - share);
  }
  return thresholds;
}

std::vector<int64_t> RequestOf(const CostPods& pods, const std::set<int64_t>& thresholds) {
  std::vector<int64_t> request = {pods.cpu_milli, pods.memory_mib * kMib, 1,
                                  pods.gpus * kDevice + pods.gpu_milli * kDevice / 1000};
  for (int64_t k = 1; k <= kOrders; ++k) {
    request.push_back(pods.gpus * kDevice + DualFeasible(pods.gpu_milli, k));
  }
  for (const int64_t threshold : thresholds) {
    request.push_back(pods.gpus * kDevice + Threshold(pods.gpu_milli, threshold));
  }
  return request;
}

// Leaves out pods that fit no type, and adds equal ones up.
void Settle(CostDemand& demand, std::vector<CostPods> wanted) {
  std::map<CostPods, int64_t> counts;
  for (CostPods& pods : wanted) {
    const int64_t count = std::exchange(pods.count, 0);
    counts[pods] += count;
  }
  for (const auto& [pods, count] : counts) {
    demand.pods.push_back(pods);
    demand.pods.back().count = count;
  }
  const PackingProblem problem = ProblemOf(demand);
  std::vector<CostPods> kept;
  for (size_t c = 0; c < demand.pods.size(); ++c) {
    if (FitsSomewhere(problem, c)) {
      kept.push_back(demand.pods[c]);
    } else {
      demand.left_out += demand.pods[c].count;
    }
  }
  demand.pods = std::move(kept);
}

std::shared_ptr<const hook::Catalog> BuiltIn() {
  return {std::shared_ptr<const void>(), &hook::Catalog::BuiltIn()};
}

std::shared_ptr<const model::NodePool> AnyPool() {
  auto pool = std::make_shared<model::NodePool>();
  pool->meta.name = "default";
  return pool;
}

}  // namespace

int64_t CostDemand::Pods() const {
  int64_t sum = 0;
  for (const CostPods& p : pods) sum += p.count;
  return sum;
}

CostDemand GeneratedDemand(uint64_t seed) {
  Dice dice(seed);
  CostDemand demand;
  const auto mix = static_cast<int64_t>(seed % std::size(kMixes));
  demand.name = absl::StrCat("seed-", seed);
  demand.mix = kMixes[mix];
  demand.catalog = seed % 3 == 2 ? GeneratedCatalog(dice) : BuiltIn();
  demand.pool = AnyPool();
  std::set<std::string> models;
  for (const hook::InstanceType& type : demand.catalog->types()) {
    if (type.gpu_count > 0) models.insert(type.gpu_model);
  }
  const int64_t classes = mix == 6 ? dice.Between(1, 3) : dice.Scaled(2, 40);
  int64_t left = std::max(classes, dice.Scaled(5, mix == 6 ? 5000 : 3000));
  std::vector<CostPods> wanted;
  for (int64_t c = 0; c < classes; ++c) {
    CostPods pods = OfMix(dice, mix, {models.begin(), models.end()});
    const int64_t share = c + 1 == classes ? left : std::max<int64_t>(1, left / (classes - c));
    pods.count = dice.Between(1, std::max<int64_t>(1, 2 * share - 1));
    pods.count = (pods.count + pods.gang - 1) / pods.gang * pods.gang;
    left = std::max<int64_t>(1, left - pods.count);
    wanted.push_back(std::move(pods));
  }
  Settle(demand, std::move(wanted));
  return demand;
}

std::optional<std::string> TraceFolder() {
  const char* shared = std::getenv("FAIRLEAD_SHARED");
  const std::string folder =
      absl::StrCat(shared != nullptr && *shared != '\0' ? shared : "../shared", "/data/openb");
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return std::nullopt;
  return folder;
}

std::vector<CostDemand> TraceDemands(const std::string& file, const std::string& name,
                                     int64_t piece) {
  // The trace hides some models behind G2 and G3; the catalogue has no P100.
  static const auto* const kModels = new std::map<std::string, std::string, std::less<>>{
      {"T4", "Tesla-T4"},     {"P100", "NVIDIA-L4"},
      {"G2", "NVIDIA-A10G"},  {"V100M16", "Tesla-V100-SXM2-16GB"},
      {"G3", "NVIDIA-L40S"},  {"V100M32", "NVIDIA-A100-SXM4-40GB"},
      {"A10", "NVIDIA-A10G"},
  };
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line)) return {};
  std::map<std::string, size_t> column;
  const std::vector<std::string> head = absl::StrSplit(absl::StripSuffix(line, "\r"), ',');
  for (size_t i = 0; i < head.size(); ++i) column[head[i]] = i;
  std::vector<std::pair<int64_t, CostPods>> pods;
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = absl::StrSplit(absl::StripSuffix(line, "\r"), ',');
    const auto number = [&](const char* key) {
      int64_t value = 0;
      Require(column.contains(key) && column[key] < cells.size() &&
                  absl::SimpleAtoi(cells[column[key]], &value),
              absl::StrCat(file, ": no number ", key, " in: ", line));
      return value;
    };
    CostPods pod{number("cpu_milli"), number("memory_mib"), number("num_gpu"), 0, {}, 1, 1};
    if (pod.gpus == 1 && number("gpu_milli") < 1000) {
      pod.gpu_milli = number("gpu_milli");
      pod.gpus = 0;
    }
    if (column.contains("gpu_spec") && column["gpu_spec"] < cells.size()) {
      std::set<std::string> accepted;
      for (const absl::string_view model :
           absl::StrSplit(cells[column["gpu_spec"]], '|', absl::SkipEmpty())) {
        const auto it = kModels->find(std::string(model));
        Require(it != kModels->end(), absl::StrCat(file, ": unknown model ", model));
        accepted.insert(it->second);
      }
      if (pod.gpus + pod.gpu_milli > 0) pod.models = {accepted.begin(), accepted.end()};
    }
    // Some files have no times: then their order is that of arrival.
    pods.push_back(
        {column.contains("creation_time") ? number("creation_time") : 0, std::move(pod)});
  }
  std::stable_sort(pods.begin(), pods.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<CostDemand> demands;
  const auto add = [&](size_t begin, size_t end, const std::string& as) {
    CostDemand demand{as, "openb", BuiltIn(), AnyPool(), {}, 0};
    std::vector<CostPods> wanted;
    for (size_t i = begin; i < end; ++i) wanted.push_back(pods[i].second);
    Settle(demand, std::move(wanted));
    demands.push_back(std::move(demand));
  };
  add(0, pods.size(), name);
  const auto size = static_cast<size_t>(piece);
  for (size_t begin = 0; piece > 0 && begin < pods.size(); begin += size) {
    add(begin, std::min(pods.size(), begin + size), absl::StrCat(name, "/from-", begin));
  }
  return demands;
}

hook::Demand DemandOf(const CostDemand& demand) {
  hook::Demand wanted;
  for (const CostPods& pods : demand.pods) {
    auto spec = std::make_shared<model::PodSpec>();
    spec->ns = "bench";
    model::Set(spec->requests, model::kCpuName, pods.cpu_milli);
    model::Set(spec->requests, model::kMemoryName, pods.memory_mib * kMib);
    if (pods.gpus > 0) model::Set(spec->requests, model::kGpuName, pods.gpus * 1000);
    if (pods.gpu_milli > 0) spec->gpu_share = {pods.gpu_milli, 0, 1};
    if (pods.models.size() == 1) {
      spec->node_selector.Set(model::kGpuProductLabel, pods.models[0]);
    } else if (!pods.models.empty()) {
      spec->has_required_node_affinity = true;
      model::NodeSelectorTerm term;
      term.match_expressions.push_back(
          {std::string(model::kGpuProductLabel), model::SelectorOperator::kIn, pods.models});
      spec->required_node_terms.push_back(std::move(term));
    }
    for (int64_t begin = 0; begin < pods.count; begin += pods.gang) {
      hook::DemandItem item;
      item.workload = absl::StrCat("bench/job-", wanted.size());
      item.queue = "team";
      const int64_t size = std::min(pods.gang, pods.count - begin);
      item.atomic = item.is_group = size > 1;
      item.classes.push_back({spec, size, size});
      wanted.push_back(std::move(item));
    }
  }
  return wanted;
}

std::vector<hook::Offer> OffersOf(const CostDemand& demand) {
  return hook::MakeOffers(hook::Catalogs(demand.catalog.get()), {demand.pool.get()});
}

std::vector<const hook::InstanceType*> TypesOf(const CostDemand& demand) {
  std::vector<const hook::InstanceType*> types;
  for (const hook::InstanceType& type : demand.catalog->types()) {
    if (type.on_demand_micro_usd.has_value()) types.push_back(&type);
  }
  return types;
}

PackingProblem ProblemOf(const CostDemand& demand) {
  PackingProblem problem;
  const std::vector<const hook::InstanceType*> types = TypesOf(demand);
  const std::set<int64_t> thresholds = ThresholdsOf(demand.pods);
  for (const hook::InstanceType* type : types) {
    std::vector<int64_t> capacity = {type->cpu_milli - type->reserved_cpu_milli,
                                     type->memory_bytes - type->reserved_memory_bytes,
                                     type->max_pods};
    capacity.resize(capacity.size() + 1 + kOrders + thresholds.size(), type->gpu_count * kDevice);
    problem.types.push_back({*type->on_demand_micro_usd, std::move(capacity)});
  }
  for (const CostPods& pods : demand.pods) {
    PackingProblem::Class k{pods.count, RequestOf(pods, thresholds), {}};
    for (const hook::InstanceType* type : types) k.allowed.push_back(Accepts(pods, *type));
    problem.classes.push_back(std::move(k));
  }
  return problem;
}

}  // namespace fairlead::bench
