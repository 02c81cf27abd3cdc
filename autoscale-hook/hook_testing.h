// Shared by the tests of this module: builders, and a Placement of plain resource arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/catalog/catalog.h"
#include "autoscale-hook/demand.h"
#include "autoscale-hook/hook.h"
#include "autoscale-hook/planner/placement.h"
#include "base/testing/random.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/device_names.h"

namespace fairlead::hook::testing {

using fairlead::testing::Random;

inline constexpr int64_t kGiB = int64_t{1} << 30;
inline constexpr int64_t kDollar = 1000000;

inline std::shared_ptr<const model::PodSpec> Spec(int64_t cpu_milli, int64_t memory_gib,
                                                  int64_t gpus, model::StringMap selector = {}) {
  auto spec = std::make_shared<model::PodSpec>();
  spec->ns = "team";
  if (cpu_milli > 0) model::Set(spec->requests, model::kCpuName, cpu_milli);
  if (memory_gib > 0) model::Set(spec->requests, model::kMemoryName, memory_gib * kGiB);
  if (gpus > 0) model::Set(spec->requests, model::kGpuName, gpus * 1000);
  spec->node_selector = std::move(selector);
  return spec;
}

inline InstanceType Type(const std::string& name, int64_t cpus, int64_t memory_gib, int64_t gpus,
                         int64_t price_micro_usd, const std::string& gpu_model = "H100") {
  InstanceType type;
  type.name = name;
  type.cpu_milli = cpus * 1000;
  type.memory_bytes = memory_gib * kGiB;
  type.gpu_count = gpus;
  if (gpus > 0) type.gpu_model = gpu_model;
  type.zones = {"z1"};
  type.on_demand_micro_usd = price_micro_usd;
  return type;
}

inline DemandItem Item(const std::string& workload, std::shared_ptr<const model::PodSpec> spec,
                       int64_t count, bool atomic = false) {
  DemandItem item;
  item.workload = workload;
  item.queue = "q";
  item.is_group = atomic;
  item.atomic = atomic;
  verdict::DemandClass pod_class;
  pod_class.spec = std::move(spec);
  pod_class.count = count;
  item.classes.push_back(std::move(pod_class));
  return item;
}

// The watch of NodeRequests: the changes since `shown` (name -> uid).
inline void ShowRequests(Hook& hook, const std::map<std::string, model::NodeRequest>& requests,
                         std::map<std::string, std::string>& shown) {
  for (auto it = shown.begin(); it != shown.end();) {
    auto there = requests.find(it->first);
    if (there != requests.end() && there->second.meta.uid == it->second) {
      ++it;
      continue;
    }
    hook.ObserveGone(it->first, it->second);
    it = shown.erase(it);
  }
  for (const auto& [name, request] : requests) {
    hook.Observe(request);
    shown[name] = request.meta.uid;
  }
}

// Versions of nodes (StepInput::node_versions): a node keeps its own until something of it changes.
class NodeVersions {
 public:
  // Valid until the next call.
  const std::vector<uint64_t>* Of(const std::vector<NodeUse>& nodes) {
    versions_.clear();
    for (const NodeUse& node : nodes) {
      auto& [known, version] = known_[node.name];
      if (version == 0 || known != node) {
        known = node;
        version = ++last_;
      }
      versions_.push_back(version);
    }
    return &versions_;
  }

 private:
  std::map<std::string, std::pair<NodeUse, uint64_t>> known_;  // by name
  std::vector<uint64_t> versions_;
  uint64_t last_ = 0;
};

// Resources, node selector, wishes, NoSchedule taints, devices by driver (as amounts), and that
// pods that join a claim need the one that brings it; nothing else.
class ArithmeticPlacement : public Placement {
 public:
  int64_t CountThatFit(const model::Node& node, const std::vector<Load>& already,
                       const std::shared_ptr<const model::PodSpec>& spec, int64_t limit) override {
    ++questions;
    for (const auto& [key, value] : spec->node_selector) {
      if (node.meta.labels.Get(key) != value) return 0;
    }
    for (const model::Taint& taint : node.taints) {
      const bool tolerated =
          std::any_of(spec->tolerations.begin(), spec->tolerations.end(),
                      [&](const model::Toleration& t) { return t.Tolerates(taint); });
      if (taint.effect != model::TaintEffect::kPreferNoSchedule && !tolerated) return 0;
    }
    for (const std::string& claim : spec->claims_to_join) {
      const bool is_there = std::any_of(already.begin(), already.end(), [&](const Load& load) {
        return model::BringsClaim(*load.spec, claim);
      });
      if (!is_there) return 0;
    }
    const int64_t gpus = model::Get(node.allocatable, model::kGpuName) / 1000;
    if (!model::UnmetWish(*spec->wishes, node.meta.labels, gpus).empty()) return 0;
    int64_t pods = model::Get(node.allocatable, model::kPodsName);
    model::ResourceList left = node.allocatable;
    if (node.devices != nullptr) {
      for (const auto& [driver, count] : model::CountByDriver(*node.devices)) {
        model::Set(left, absl::StrCat(model::kDemandPrefix, driver), count);
      }
    }
    for (const Load& load : already) {
      pods -= load.count;
      for (const auto& [name, amount] : load.spec->requests) {
        model::Add(left, name, -model::SaturatingMultiply(amount, load.count));
      }
    }
    int64_t fits = std::min(limit, pods);
    for (const auto& [name, amount] : spec->requests) {
      if (amount > 0) fits = std::min(fits, model::Get(left, name) / amount);
    }
    return std::max<int64_t>(0, fits);
  }
  std::unique_ptr<Rehearsal> Rehearse() override { return nullptr; }
  int64_t questions = 0;
};

}  // namespace fairlead::hook::testing
