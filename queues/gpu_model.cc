#include "queues/gpu_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::queues {

std::string GpuModelResource(absl::string_view product) {
  return absl::StrCat(model::kGpuModelPrefix, product);
}

std::optional<model::ResourceIndex> FindGpuModel(const QueueTree& tree, absl::string_view product) {
  // Only CPU, memory and GPU: no queue names another resource.
  if (product.empty() || tree.resources().size() <= model::kGpu + 1) return std::nullopt;
  const std::optional<model::ResourceIndex> index = tree.names().Find(GpuModelResource(product));
  if (!index) return std::nullopt;
  const auto resources = tree.resources();
  if (!std::binary_search(resources.begin(), resources.end(), *index)) return std::nullopt;
  return index;
}

model::Resources WithGpuModel(const QueueTree& tree, model::Resources charge,
                              absl::string_view product) {
  const int64_t gpus = charge[model::kGpu];
  if (gpus == 0) return charge;
  if (const auto index = FindGpuModel(tree, product)) charge.Set(*index, gpus);
  return charge;
}

}  // namespace fairlead::queues
