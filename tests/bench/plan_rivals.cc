#include "tests/bench/plan_rivals.h"

#include <algorithm>
#include <numeric>

#include "tests/bench/harness.h"

namespace fairlead::bench {
namespace {

using hook::InstanceType;

// What is left on a node of a type.
class NodeLeft {
 public:
  explicit NodeLeft(const InstanceType& type)
      : cpu_(type.cpu_milli - type.reserved_cpu_milli),
        memory_(type.memory_bytes - type.reserved_memory_bytes),
        pods_(type.max_pods),
        devices_(static_cast<size_t>(type.gpu_count), 1000) {}

  bool Add(const CostPods& pod) {
    if (pod.cpu_milli > cpu_ || pod.memory_mib * kMib > memory_ || pods_ < 1) return false;
    if (!AddDevices(pod)) return false;
    cpu_ -= pod.cpu_milli;
    memory_ -= pod.memory_mib * kMib;
    --pods_;
    return true;
  }

 private:
  bool AddDevices(const CostPods& pod) {
    if (pod.gpu_milli > 0) {
      auto best = devices_.end();
      for (auto it = devices_.begin(); it != devices_.end(); ++it) {
        if (*it >= pod.gpu_milli && (best == devices_.end() || *it < *best)) best = it;
      }
      if (best == devices_.end()) return false;
      *best -= pod.gpu_milli;
      return true;
    }
    if (std::count(devices_.begin(), devices_.end(), 1000) < pod.gpus) return false;
    int64_t left = pod.gpus;
    for (int64_t& device : devices_) {
      if (left == 0) break;
      if (device != 1000) continue;
      device = 0;
      --left;
    }
    return true;
  }

  int64_t cpu_, memory_, pods_;
  std::vector<int64_t> devices_;
};

bool Allowed(const CostPods& pod, const InstanceType& type) {
  return pod.models.empty() ||
         std::find(pod.models.begin(), pod.models.end(), type.gpu_model) != pod.models.end();
}

int64_t CheapestAlone(const CostPods& pod, const std::vector<const InstanceType*>& types) {
  int64_t cheapest = INT64_MAX;
  for (const InstanceType* type : types) {
    if (Allowed(pod, *type) && NodeLeft(*type).Add(pod)) {
      cheapest = std::min(cheapest, *type->on_demand_micro_usd);
    }
  }
  Require(cheapest != INT64_MAX, "a pod that fits no type");
  return cheapest;
}

// Classes, the largest first by CPU, then memory, then GPUs.
std::vector<size_t> Decreasing(const std::vector<CostPods>& pods) {
  std::vector<size_t> order(pods.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (pods[a].cpu_milli != pods[b].cpu_milli) return pods[a].cpu_milli > pods[b].cpu_milli;
    return pods[a].memory_mib > pods[b].memory_mib;
  });
  return order;
}

}  // namespace

int64_t OneInstancePerPod(const CostDemand& demand) {
  int64_t cost = 0;
  for (const CostPods& pod : demand.pods) {
    cost += pod.count * CheapestAlone(pod, TypesOf(demand));
  }
  return cost;
}

int64_t OneNodeGroupAtATime(const CostDemand& demand) {
  const std::vector<const InstanceType*> types = TypesOf(demand);
  std::vector<int64_t> left, alone;
  for (const CostPods& pod : demand.pods) {
    left.push_back(pod.count);
    alone.push_back(CheapestAlone(pod, types));
  }
  const std::vector<size_t> order = Decreasing(demand.pods);
  int64_t cost = 0;
  while (std::any_of(left.begin(), left.end(), [](int64_t n) { return n > 0; })) {
    double best_score = 0;
    int64_t best_cost = -1;
    std::vector<size_t> best_served;
    for (const InstanceType* type : types) {
      std::vector<NodeLeft> nodes;
      std::vector<size_t> served;
      int64_t worth = 0;
      for (const size_t c : order) {
        const CostPods& pod = demand.pods[c];
        if (left[c] == 0 || !Allowed(pod, *type) || !NodeLeft(*type).Add(pod)) continue;
        served.push_back(c);
        worth += left[c] * alone[c];
        size_t first = 0;  // an equal pod fits no earlier node
        for (int64_t n = 0; n < left[c]; ++n) {
          while (first < nodes.size() && !nodes[first].Add(pod)) ++first;
          if (first < nodes.size()) continue;
          nodes.emplace_back(*type);
          nodes.back().Add(pod);
        }
      }
      if (served.empty()) continue;
      const int64_t price = static_cast<int64_t>(nodes.size()) * *type->on_demand_micro_usd;
      const double score = static_cast<double>(price) / static_cast<double>(worth);
      if (best_cost >= 0 && score >= best_score) continue;
      best_score = score;
      best_cost = price;
      best_served = std::move(served);
    }
    Require(best_cost >= 0, "a pod that fits no type");
    cost += best_cost;
    for (const size_t c : best_served) left[c] = 0;
  }
  return cost;
}

int64_t KarpenterPacking(const CostDemand& demand) {
  const std::vector<const InstanceType*> types = TypesOf(demand);
  using Claim = std::vector<std::pair<const InstanceType*, NodeLeft>>;  // the types that are left
  const auto add = [](Claim& claim, const CostPods& pod) {
    Claim narrowed;
    for (const auto& [type, node] : claim) {
      if (!Allowed(pod, *type)) continue;
      NodeLeft with = node;
      if (with.Add(pod)) narrowed.emplace_back(type, std::move(with));
    }
    if (narrowed.empty()) return false;
    claim = std::move(narrowed);
    return true;
  };
  Claim fresh;
  for (const InstanceType* type : types) fresh.emplace_back(type, NodeLeft(*type));
  std::vector<Claim> claims;
  for (const size_t c : Decreasing(demand.pods)) {
    const CostPods& pod = demand.pods[c];
    size_t first = 0;  // an equal pod fits no earlier claim
    for (int64_t n = 0; n < pod.count; ++n) {
      while (first < claims.size() && !add(claims[first], pod)) ++first;
      if (first < claims.size()) continue;
      claims.push_back(fresh);
      Require(add(claims.back(), pod), "a pod that fits no type");
    }
  }
  int64_t cost = 0;
  for (const Claim& claim : claims) {
    int64_t cheapest = INT64_MAX;
    for (const auto& [type, node] : claim)
      cheapest = std::min(cheapest, *type->on_demand_micro_usd);
    cost += cheapest;
  }
  return cost;
}

}  // namespace fairlead::bench
