#include "scheduler/engine/gpu_models.h"

#include "absl/strings/match.h"
#include "queues/gpu_model.h"
#include "scheduler/model/api_names.h"

namespace fairlead::engine {
namespace {

absl::string_view OnlyProduct(const model::NodeSelectorTerm& term) {
  for (const model::SelectorRequirement& requirement : term.match_expressions) {
    if (requirement.key == model::kGpuProductLabel &&
        requirement.op == model::SelectorOperator::kIn && requirement.values.size() == 1) {
      return requirement.values.front();
    }
  }
  return "";
}

}  // namespace

std::vector<model::ResourceIndex> GpuModels(const queues::QueueTree& tree) {
  std::vector<model::ResourceIndex> models;
  for (const model::ResourceIndex resource : tree.resources()) {
    if (resource <= model::kGpu) continue;
    if (absl::StartsWith(tree.names().Name(resource), model::kGpuModelPrefix)) {
      models.push_back(resource);
    }
  }
  return models;
}

std::optional<model::ResourceIndex> ModelOf(const queues::QueueTree& tree,
                                            const state::NodeInfo& node) {
  if (tree.resources().size() <= model::kGpu + 1) return std::nullopt;
  return queues::FindGpuModel(tree, node.object.meta.labels.Get(model::kGpuProductLabel));
}

absl::string_view OnlyProduct(const model::PodSpec& spec) {
  const absl::string_view selected = spec.node_selector.Get(model::kGpuProductLabel);
  if (!selected.empty() || !spec.has_required_node_affinity) return selected;
  absl::string_view only;
  for (const model::NodeSelectorTerm& term : spec.required_node_terms) {
    const absl::string_view product = OnlyProduct(term);
    if (product.empty() || (!only.empty() && product != only)) return "";
    only = product;
  }
  return only;
}

}  // namespace fairlead::engine
