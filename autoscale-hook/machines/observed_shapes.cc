#include "autoscale-hook/machines/observed_shapes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"
#include "scheduler/verdict/phrases.h"

namespace fairlead::hook {

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
  if (shape == nullptr) return false;
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
