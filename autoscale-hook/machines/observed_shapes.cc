#include "autoscale-hook/machines/observed_shapes.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/device_names.h"
#include "scheduler/verdict/phrases.h"

namespace fairlead::hook {
namespace {

// Of each driver at least as many.
bool HasAllOf(const model::NodeDevices& devices, const model::NodeDevices& others) {
  const std::map<std::string, int64_t> counts = model::CountByDriver(devices);
  for (const auto& [driver, count] : model::CountByDriver(others)) {
    const auto found = counts.find(driver);
    if (found == counts.end() || found->second < count) return false;
  }
  return true;
}

// "8 x gpu.nvidia.com instead of 16 x gpu.nvidia.com"; empty if nothing is missing of `declared`.
std::string DescribeLack(const model::NodeDevices& there,
                         const std::shared_ptr<const model::NodeDevices>& declared) {
  if (declared == nullptr || HasAllOf(there, *declared)) return "";
  return absl::StrCat(model::DescribeDevices(there), " instead of ",
                      model::DescribeDevices(*declared));
}

}  // namespace

bool ObservedShapes::Learn(const std::string& type, const std::string& pool,
                           const model::ResourceList& promised, const model::ResourceList& observed,
                           absl::Time ready_at) {
  Shape& shape = shapes_[{type, pool}];
  if (ready_at < shape.ready_at) return false;
  model::ResourceList less, of;
  for (const auto& [name, amount] : promised) {
    const int64_t there = model::Get(observed, name);
    if (there >= amount) continue;
    model::Set(less, name, there);
    model::Set(of, name, amount);
  }
  const bool news = less != shape.less;
  shape = {ready_at, std::move(less), std::move(of)};
  return news;
}

const ObservedShapes::Shape* ObservedShapes::Find(const model::Node& node) const {
  if (shapes_.empty()) return nullptr;
  auto it = shapes_.find({std::string(node.meta.labels.Get(model::kInstanceTypeLabel)),
                          std::string(node.meta.labels.Get(model::kPoolLabel))});
  return it == shapes_.end() || it->second.less.empty() ? nullptr : &it->second;
}

ObservedShapes::Kind ObservedShapes::KindOf(const model::Node& node) {
  return {std::string(node.meta.labels.Get(model::kInstanceTypeLabel)),
          std::string(node.meta.labels.Get(model::kPoolLabel))};
}

bool ObservedShapes::LearnDevices(const std::string& type, const std::string& pool,
                                  const std::string& node, absl::Time ready_at,
                                  const std::shared_ptr<const model::NodeDevices>& devices) {
  if (devices == nullptr) return false;
  Devices& known = devices_[{type, pool}];
  const std::pair<absl::Time, std::string> source{ready_at, node};
  if (source < known.source) return false;
  const bool again = source == known.source;
  known.source = source;
  if (known.published != nullptr) {
    if (*known.published == *devices || (again && !HasAllOf(*devices, *known.published))) {
      return false;
    }
  }
  known.published = known.counted = devices;
  known.gpus = model::CountGpus(*devices);
  if (known.gpus == 0) return true;
  auto counted = std::make_shared<model::NodeDevices>(*devices);
  std::erase_if(counted->slices,
                [](const auto& slice) { return model::IsGpuDriver(slice.driver); });
  known.counted = std::move(counted);
  return true;
}

const ObservedShapes::Devices* ObservedShapes::DevicesOf(const model::Node& node) const {
  if (devices_.empty()) return nullptr;
  const auto it = devices_.find(KindOf(node));
  return it == devices_.end() ? nullptr : &it->second;
}

const std::shared_ptr<const model::NodeDevices>& ObservedShapes::Counted(const Devices& devices,
                                                                         const model::Node& node) {
  int64_t gpus = 0;
  if (!absl::SimpleAtoi(node.meta.labels.Get(model::kGpuCountLabel), &gpus)) gpus = 0;
  return devices.gpus > gpus ? devices.counted : devices.published;
}

bool ObservedShapes::LearnOverhead(const std::vector<NodeOverhead>& nodes) {
  const auto raise = [](model::ResourceList& most, const model::ResourceList& requests) {
    if (most == requests) return;  // the same DaemonSets
    for (const auto& [name, amount] : requests) {
      if (amount > model::Get(most, name)) model::Set(most, name, amount);
    }
  };
  std::map<std::pair<absl::string_view, absl::string_view>, model::ResourceList> by_type;
  std::map<std::pair<absl::string_view, bool>, model::ResourceList> by_pool;
  for (const NodeOverhead& node : nodes) {
    raise(by_type[{node.type, node.pool}], *node.requests);
    raise(by_pool[{node.pool, node.has_gpus}], *node.requests);
  }
  bool news = false;
  const auto take = [&news](model::ResourceList& known, model::ResourceList& seen) {
    if (known == seen) return;
    known = std::move(seen);
    news = true;
  };
  for (auto& [key, requests] : by_type) {
    take(overhead_[{std::string(key.first), std::string(key.second)}], requests);
  }
  for (auto& [key, requests] : by_pool) {
    take(pool_overhead_[{std::string(key.first), key.second}], requests);
  }
  return news;
}

const model::ResourceList* ObservedShapes::OverheadOf(const model::Node& node) const {
  if (pool_overhead_.empty()) return nullptr;
  const std::string pool(node.meta.labels.Get(model::kPoolLabel));
  const auto known =
      overhead_.find({std::string(node.meta.labels.Get(model::kInstanceTypeLabel)), pool});
  if (known != overhead_.end()) return known->second.empty() ? nullptr : &known->second;
  const bool has_gpus = node.meta.labels.Has(model::kGpuProductLabel);
  const auto of_pool = pool_overhead_.find({pool, has_gpus});
  if (of_pool == pool_overhead_.end() || of_pool->second.empty()) return nullptr;
  return &of_pool->second;
}

bool ObservedShapes::ApplySize(model::Node& node) const {
  const Shape* shape = Find(node);
  const Devices* devices = DevicesOf(node);
  if (devices != nullptr) node.devices = Counted(*devices, node);
  if (shape == nullptr) return devices != nullptr;
  for (const auto& [name, amount] : shape->less) {
    model::Set(node.allocatable, name, std::min(amount, model::Get(node.allocatable, name)));
  }
  return true;
}

bool ObservedShapes::Apply(model::Node& node) const {
  const model::ResourceList* overhead = OverheadOf(node);
  const bool smaller = ApplySize(node);
  if (overhead == nullptr) return smaller;
  for (const auto& [name, amount] : *overhead) {
    const int64_t has = model::Get(node.allocatable, name);
    if (has > 0) model::Set(node.allocatable, name, std::max<int64_t>(0, has - amount));
  }
  return true;
}

std::string ObservedShapes::Describe(const model::Node& node) const {
  const Shape* shape = Find(node);
  const model::ResourceList* overhead = OverheadOf(node);
  const absl::string_view type = node.meta.labels.Get(model::kInstanceTypeLabel);
  std::string on_them;
  for (size_t i = 0; overhead != nullptr && i < overhead->size(); ++i) {
    const auto& [name, amount] = (*overhead)[i];
    if (name == model::kPodsName) continue;
    absl::StrAppend(&on_them, on_them.empty() ? "" : ", ", verdict::AmountText(name, amount));
  }
  if (!on_them.empty()) {
    on_them =
        absl::StrCat("DaemonSets and static pods take ", on_them, " of a node of type ", type);
  }
  std::string devices;
  if (const Devices* known = DevicesOf(node); known != nullptr) {
    devices = DescribeLack(*Counted(*known, node), node.devices);
    if (Counted(*known, node) != known->published) {
      absl::StrAppend(&devices, devices.empty() ? "" : " and ", "more GPUs (", known->gpus,
                      ") than the catalogue counts, which are not planned with");
    }
  }
  if (!devices.empty()) {
    devices = absl::StrCat("nodes of type ", type, " have the devices ", devices);
    on_them = on_them.empty() ? devices : absl::StrCat(devices, "; ", on_them);
  }
  if (shape == nullptr) return on_them;
  std::string text = absl::StrCat("nodes of type ", type, " have ");
  for (size_t i = 0; i < shape->less.size(); ++i) {
    const auto& [name, amount] = shape->less[i];
    absl::StrAppend(&text, i == 0 ? "" : ", ", verdict::AmountText(name, amount), " instead of ",
                    verdict::AmountText(name, model::Get(shape->promised, name)));
  }
  if (!on_them.empty()) absl::StrAppend(&text, "; ", on_them);
  return text;
}

}  // namespace fairlead::hook
