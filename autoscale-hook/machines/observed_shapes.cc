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

bool ObservedShapes::Apply(model::Node& node) const {
  const Shape* shape = Find(node);
  if (shape == nullptr) return false;
  for (const auto& [name, amount] : shape->less) {
    model::Set(node.allocatable, name, std::min(amount, model::Get(node.allocatable, name)));
  }
  return true;
}

std::string ObservedShapes::Describe(const model::Node& node) const {
  const Shape* shape = Find(node);
  if (shape == nullptr) return "";
  std::string text =
      absl::StrCat("nodes of type ", node.meta.labels.Get(model::kInstanceTypeLabel), " have ");
  for (size_t i = 0; i < shape->less.size(); ++i) {
    const auto& [name, amount] = shape->less[i];
    absl::StrAppend(&text, i == 0 ? "" : ", ", verdict::AmountText(name, amount), " instead of ",
                    verdict::AmountText(name, model::Get(shape->promised, name)));
  }
  return text;
}

}  // namespace fairlead::hook
