#include "cmd/simtest/catalogue.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace fairlead::simtest {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

hook::InstanceType Type(std::string name, int64_t cpus, int64_t memory_gib, int64_t gpus,
                        double dollars) {
  hook::InstanceType type;
  type.name = std::move(name);
  type.cpu_milli = cpus * 1000;
  type.memory_bytes = memory_gib * kGiB;
  type.gpu_count = gpus;
  if (gpus > 0) {
    type.gpu_model = "Sim-GPU";
    type.gpu_memory_mib = 40'000;
  }
  type.zones = {"zone-a", "zone-b"};
  type.on_demand_micro_usd = static_cast<int64_t>(dollars * kMicroPerUsd);
  return type;
}

}  // namespace

const hook::Catalog& WorldCatalog(int version) {
  const auto make = [](int64_t gpus_of_gpu4, bool more) {
    std::vector<hook::InstanceType> types = {
        Type("cpu8", 8, 32, 0, 0.4),
        Type("gpu1", 8, 32, 1, 1.0),
        Type("gpu4", 32, 128, gpus_of_gpu4, 3.2),
        Type("gpu8", 64, 256, 8, 6.0),
    };
    if (more) {
      types.push_back(Type("gpu2", 16, 64, 2, 2.1));
      types[0].reservations = {{"cr-cpu", "zone-b", 1, 0, {}}};
      types[1].reservations = {{"cr-gpu", "", 2, 300'000, {{"example.com/contract", "c7"}}}};
    }
    return new hook::Catalog(hook::Catalog::FromTypes(std::move(types)));
  };
  static const auto* const kVersions =
      new std::vector<const hook::Catalog*>{make(4, false), make(6, false), make(4, true)};
  return *(*kVersions)[static_cast<size_t>(version) % kVersions->size()];
}

int64_t CheapestMicroUsdFor(int64_t gpus) {
  std::vector<int64_t> best(static_cast<size_t>(gpus) + 1, 0);
  for (int64_t n = 1; n <= gpus; ++n) {
    int64_t cheapest = std::numeric_limits<int64_t>::max();
    for (const hook::InstanceType& type : WorldCatalog().types()) {
      if (type.gpu_count == 0) continue;
      const int64_t rest = std::max<int64_t>(0, n - type.gpu_count);
      cheapest = std::min(cheapest, *type.on_demand_micro_usd + best[static_cast<size_t>(rest)]);
    }
    best[static_cast<size_t>(n)] = cheapest;
  }
  return best.back();
}

}  // namespace fairlead::simtest
