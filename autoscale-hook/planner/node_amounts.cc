#include "autoscale-hook/planner/node_amounts.h"

#include <algorithm>
#include <set>

namespace fairlead::hook {
namespace {

// Clouds and tenants name any amount: nothing here may overflow.
using model::SaturatingAdd;
using model::SaturatingMultiply;

int64_t Sum(int64_t a, int64_t b, int64_t times) {
  return SaturatingAdd(a, SaturatingMultiply(b, times));
}
int64_t Rest(int64_t a, int64_t b, int64_t times) {
  return SaturatingAdd(a, -SaturatingMultiply(b, times));
}

constexpr int64_t kPerMilli = NodeAmounts::kDevice / 1000;

// Of a share in thousandths, in units of a device.
int64_t DualFeasible(int64_t milli, int64_t order) {
  const int64_t times = SaturatingMultiply(order + 1, milli);
  if (times % 1000 == 0) return SaturatingMultiply(milli, kPerMilli);
  return SaturatingMultiply(times / 1000, NodeAmounts::kDevice / order);
}

bool IsGpu(const std::string& name) { return name == model::kGpuName; }

}  // namespace

NodeAmounts::NodeAmounts(const std::vector<model::Node>& nodes) {
  std::set<std::string> names;
  for (const model::Node& node : nodes) {
    for (const auto& [name, amount] : node.allocatable) {
      if (!IsGpu(name) && name != model::kPodsName) names.insert(name);
    }
  }
  names_.assign(names.begin(), names.end());
  for (const model::Node& node : nodes) {
    Amounts capacity;
    for (const std::string& name : names_) capacity.push_back(model::Get(node.allocatable, name));
    capacity.push_back(model::Get(node.allocatable, model::kPodsName));
    const int64_t devices = model::Get(node.allocatable, model::kGpuName) / 1000;
    for (int i = 0; i < 4; ++i) capacity.push_back(SaturatingMultiply(devices, kDevice));
    capacity_.push_back(std::move(capacity));
  }
}

NodeAmounts::Amounts NodeAmounts::RequestOf(const model::PodSpec& spec) const {
  Amounts request;
  for (const std::string& name : names_) request.push_back(model::Get(spec.requests, name));
  request.push_back(1);
  const int64_t whole = SaturatingMultiply(model::Get(spec.requests, model::kGpuName), kPerMilli);
  const int64_t share = spec.gpu_share.fraction_milli, devices = spec.gpu_share.devices;
  request.push_back(Sum(whole, SaturatingMultiply(share, kPerMilli), devices));
  for (int64_t order = 1; order <= 3; ++order) {
    request.push_back(Sum(whole, DualFeasible(share, order), devices));
  }
  return request;
}

bool NodeAmounts::AddClass(const std::vector<Placement::Load>& pods) {
  Amounts sum(dimensions(), 0);
  bool known = true;
  int64_t share_milli = 0, whole = 0;
  for (const Placement::Load& load : pods) {
    for (const auto& [name, amount] : load.spec->requests) {
      known = known && (amount <= 0 || IsGpu(name) ||
                        std::binary_search(names_.begin(), names_.end(), name));
    }
    share_milli = load.spec->gpu_share.fraction_milli;
    whole = Sum(whole, model::Get(load.spec->requests, model::kGpuName) / 1000, load.count);
    const Amounts one = RequestOf(*load.spec);
    for (size_t d = 0; d < sum.size(); ++d) sum[d] = Sum(sum[d], one[d], load.count);
  }
  request_.push_back(std::move(sum));
  share_milli_.push_back(share_milli);
  whole_.push_back(whole);
  return known;
}

int64_t NodeAmounts::Count(int node, const std::vector<std::pair<int, int64_t>>& load,
                           int pod_class, int64_t limit) const {
  const Amounts& has = capacity(node);
  const Amounts& wanted = request(pod_class);
  int64_t count = limit;
  bool shares = share_milli_[static_cast<size_t>(pod_class)] > 0;
  for (const auto& [loaded, unused] : load) {
    shares = shares || share_milli_[static_cast<size_t>(loaded)] > 0;
  }
  for (size_t d = 0; d < has.size() && count > 0; ++d) {
    if (wanted[d] <= 0) continue;
    int64_t left = has[d];
    for (const auto& [loaded, pods] : load) left = Rest(left, request(loaded)[d], pods);
    count = left < wanted[d] ? 0 : std::min(count, left / wanted[d]);
  }
  return shares && count > 0 && (wanted[has.size() - 4] > 0)
             ? CountShares(node, load, pod_class, count)
             : count;
}

bool NodeAmounts::SharesFit(const std::vector<Shares>& shares, int64_t devices) {
  // No pod takes more than one device, so a node of billions of them needs no list of billions.
  int64_t useful = 0;
  for (const Shares& s : shares) useful = SaturatingAdd(useful, s.pods);
  std::vector<int64_t> left(static_cast<size_t>(std::clamp<int64_t>(devices, 0, useful)), 1000);
  for (const Shares& s : shares) {
    for (int64_t n = 0; n < s.pods; ++n) {
      int64_t* best = nullptr;
      for (int64_t& device : left) {
        if (device >= s.milli && (best == nullptr || device < *best)) best = &device;
      }
      if (best == nullptr) return false;
      *best -= s.milli;
    }
  }
  return true;
}

int64_t NodeAmounts::CountShares(int node, const std::vector<std::pair<int, int64_t>>& load,
                                 int pod_class, int64_t limit) const {
  const auto c = static_cast<size_t>(pod_class);
  std::vector<Shares> shares;
  int64_t devices = capacity(node).back() / kDevice;
  for (const auto& [loaded, pods] : load) {
    const auto l = static_cast<size_t>(loaded);
    devices = Rest(devices, whole_[l], pods);
    if (share_milli_[l] > 0) shares.push_back({loaded, share_milli_[l], pods});
  }
  auto mine = std::find_if(shares.begin(), shares.end(),
                           [&](const Shares& s) { return s.pod_class >= pod_class; });
  if (share_milli_[c] > 0 && (mine == shares.end() || mine->pod_class != pod_class)) {
    mine = shares.insert(mine, {pod_class, share_milli_[c], 0});
  }
  const int64_t before = share_milli_[c] > 0 ? mine->pods : 0;
  for (; limit > 0; --limit) {
    if (share_milli_[c] > 0) mine->pods = before + limit;
    if (SharesFit(shares, Rest(devices, whole_[c], limit))) break;
  }
  return limit;
}

FitsBy WhatDecides(const model::PodSpec& spec) {
  if (spec.gpu_share.memory_mib > 0 || (spec.gpu_share.IsSet() && spec.gpu_share.devices != 1)) {
    return FitsBy::kOther;
  }
  model::PodSpec rest = spec;
  rest.ns.clear();
  rest.requests.clear();
  rest.gpu_share = {};
  rest.scoring_requests = {};
  rest.guaranteed = false;
  rest.containers.clear();
  rest.preferred_node_terms.clear();
  rest.tolerations.clear();
  rest.profile = 0;
  rest.images = {};
  if (rest == model::PodSpec()) return FitsBy::kAmounts;
  rest.node_selector = {};
  rest.has_required_node_affinity = false;
  rest.required_node_terms.clear();
  return rest == model::PodSpec() ? FitsBy::kLabels : FitsBy::kOther;
}

}  // namespace fairlead::hook
