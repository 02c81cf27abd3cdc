#include "core/bill.h"

#include <algorithm>
#include <set>
#include <utility>

namespace fairlead::core {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr int64_t kNanosPerHour = 3600 * kNanosPerSecond;

int64_t Rounded(absl::uint128 value, int64_t divisor) {
  return static_cast<int64_t>((value + static_cast<absl::uint128>(divisor / 2)) /
                              static_cast<absl::uint128>(divisor));
}

// The resources that a pod uses on a node, shared GPUs included.
model::ResourceList RequestsOf(const model::PodSpec& spec) {
  model::ResourceList requests = spec.requests;
  model::Add(requests, model::kPodsName, 1);
  if (spec.gpu_share.IsSet()) {
    // A share by memory is charged as a whole device: the size of the device is not known here.
    const int64_t milli = spec.gpu_share.fraction_milli > 0 ? spec.gpu_share.fraction_milli : 1000;
    model::Add(requests, model::kGpuName, milli * spec.gpu_share.devices);
  }
  return requests;
}

bool Fits(const model::ResourceList& requests, const model::ResourceList& free) {
  return std::all_of(requests.begin(), requests.end(), [&](const auto& request) {
    return request.second <= model::Get(free, request.first);
  });
}

model::ResourceList Capacity(const hook::InstanceType& type) {
  model::ResourceList capacity = type.extra;
  model::Set(capacity, model::kCpuName, type.cpu_milli - type.reserved_cpu_milli);
  model::Set(capacity, model::kMemoryName, type.memory_bytes - type.reserved_memory_bytes);
  model::Set(capacity, model::kPodsName, type.max_pods);
  model::Set(capacity, model::kGpuName, type.gpu_count * 1000);
  return capacity;
}

}  // namespace

bool ForbidsNodes(verdict::Code code) {
  return code != verdict::Code::kNone && code != verdict::Code::kGpuCapReached &&
         code != verdict::Code::kCostCapReached && code != verdict::Code::kBindingRefused &&
         verdict::CategoryOf(code) == verdict::Category::kPolicy;
}

void Bill::AdvanceTo(absl::Time now) {
  if (now_ != absl::InfinitePast() && now > now_) {
    const absl::uint128 elapsed = static_cast<absl::uint128>(absl::ToInt64Nanoseconds(now - now_));
    for (auto& [name, node] : nodes_) {
      if (node.present) node.nanoseconds += elapsed;
    }
    for (auto& [queue, nodes] : reactive_) {
      std::vector<ReactiveNode> kept;
      for (ReactiveNode& node : nodes) {
        const absl::Time paid_until =
            node.pods.empty() ? std::min(now, node.empty_since + unneeded_after_) : now;
        if (paid_until > now_) {
          reactive_cost_ += static_cast<absl::uint128>(*node.type->on_demand_micro_usd) *
                            static_cast<absl::uint128>(absl::ToInt64Nanoseconds(paid_until - now_));
        }
        if (!node.pods.empty() || node.empty_since + unneeded_after_ > now) {
          kept.push_back(std::move(node));
        }
      }
      nodes = std::move(kept);
    }
  }
  now_ = std::max(now_, now);
}

void Bill::Observe(const View& view, const std::vector<model::Action>& actions) {
  AdvanceTo(view.at);
  CountRequests(view, actions);
  CountNodes(view);
  UpdateReactive(view);
}

void Bill::CountRequests(const View& view, const std::vector<model::Action>& actions) {
  std::set<std::string> blocked;
  for (const WaitingRow& row : view.waiting) {
    if (!ForbidsNodes(row.verdict.code)) continue;
    blocked.insert(row.workload);
    blocked.insert(row.pods.begin(), row.pods.end());
  }
  for (const model::Action& action : actions) {
    const auto* create = std::get_if<model::CreateNodeRequest>(&action.what);
    if (create == nullptr) continue;
    const model::NodeRequest& request = create->request;
    asked_[request.meta.name] =
        std::any_of(request.reason_workloads.begin(), request.reason_workloads.end(),
                    [&](const std::string& workload) { return blocked.contains(workload); });
  }
}

void Bill::CountNodes(const View& view) {
  for (auto& [name, node] : nodes_) node.present = false;
  std::map<std::string, std::string> request_of_node;
  for (const NodeRow& row : view.nodes) {
    if (row.node_request.empty() || !row.confirmed) continue;
    BoughtNode& node = nodes_[row.node_request];
    node.present = true;
    auto asked = asked_.find(row.node_request);
    if (asked != asked_.end()) {
      node.policy_blocked = asked->second;
      asked_.erase(asked);
    }
    node.price_micro_usd_per_hour = row.price_micro_usd_per_hour;
    node.was_ready |= row.status == "Ready";
    request_of_node[row.name] = row.node_request;
  }
  for (const RunningRow& row : view.running) {
    auto found = request_of_node.find(row.node);
    if (found != request_of_node.end()) nodes_[found->second].ran_pods = true;
  }
}

void Bill::UpdateReactive(const View& view) {
  std::vector<BlockedPod> blocked;
  std::set<std::string> names;
  for (const WaitingRow& row : view.waiting) {
    if (!ForbidsNodes(row.verdict.code) || row.verdict.code == verdict::Code::kGated) continue;
    size_t next = 0;
    for (const verdict::DemandClass& demand : row.verdict.demand) {
      for (int64_t i = 0; i < demand.count && next < row.pods.size(); ++i, ++next) {
        blocked.push_back({row.pods[next], row.queue, demand.spec.get()});
        names.insert(row.pods[next]);
      }
    }
  }
  std::set<std::string> placed;
  for (auto& [queue, nodes] : reactive_) {
    for (ReactiveNode& node : nodes) {
      const bool had_pods = !node.pods.empty();
      for (auto pod = node.pods.begin(); pod != node.pods.end();) {
        if (names.contains(pod->first)) {
          placed.insert(pod->first);
          ++pod;
          continue;
        }
        model::AddAll(node.free, pod->second);
        pod = node.pods.erase(pod);
      }
      if (had_pods && node.pods.empty()) node.empty_since = view.at;
    }
  }
  for (const BlockedPod& pod : blocked) {
    if (pod.spec != nullptr && !placed.contains(pod.pod)) BuyReactive(pod);
  }
}

void Bill::BuyReactive(const BlockedPod& pod) {
  const model::ResourceList requests = RequestsOf(*pod.spec);
  std::vector<ReactiveNode>& nodes = reactive_[pod.queue];
  auto node = std::find_if(nodes.begin(), nodes.end(), [&](const ReactiveNode& candidate) {
    return Fits(requests, candidate.free);
  });
  if (node == nodes.end()) {
    const hook::InstanceType* cheapest = nullptr;
    for (const hook::InstanceType& type : catalog_->types()) {  // sorted by name
      if (!type.on_demand_micro_usd.has_value() || !Fits(requests, Capacity(type))) continue;
      if (cheapest == nullptr || *type.on_demand_micro_usd < *cheapest->on_demand_micro_usd) {
        cheapest = &type;
      }
    }
    if (cheapest == nullptr) return;  // no type fits, so no node could be provisioned
    ++reactive_nodes_;
    nodes.push_back({cheapest, Capacity(*cheapest), {}, absl::InfinitePast()});
    node = nodes.end() - 1;
  }
  node->pods.emplace(pod.pod, requests);
  for (const auto& [resource, amount] : requests) model::Add(node->free, resource, -amount);
}

BillTotals Bill::Totals() const {
  BillTotals totals;
  absl::uint128 nanoseconds = 0, cost = 0, blocked_cost = 0;
  for (const auto& [name, node] : nodes_) {
    const absl::uint128 node_cost =
        node.nanoseconds * static_cast<absl::uint128>(node.price_micro_usd_per_hour);
    nanoseconds += node.nanoseconds;
    cost += node_cost;
    ++totals.nodes_requested;
    if (node.policy_blocked) {
      ++totals.policy_blocked_nodes;
      blocked_cost += node_cost;
    }
    if (!node.present && node.was_ready && !node.ran_pods) ++totals.duplicate_nodes;
  }
  totals.node_seconds = Rounded(nanoseconds, kNanosPerSecond);
  totals.cost_micro_usd = Rounded(cost, kNanosPerHour);
  totals.policy_blocked_cost_micro_usd = Rounded(blocked_cost, kNanosPerHour);
  totals.reactive_nodes = reactive_nodes_;
  totals.reactive_cost_micro_usd = Rounded(cost + reactive_cost_, kNanosPerHour);
  return totals;
}

}  // namespace fairlead::core
