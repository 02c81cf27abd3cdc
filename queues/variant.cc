#include "queues/variant.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::queues {
namespace {

constexpr model::ResourceIndex kWithVariants = model::kGpu;

absl::string_view OnlyProductOf(const model::NodeSelectorTerm& term) {
  for (const model::SelectorRequirement& requirement : term.match_expressions) {
    if (requirement.key == model::kGpuProductLabel &&
        requirement.op == model::SelectorOperator::kIn && requirement.values.size() == 1) {
      return requirement.values.front();
    }
  }
  return "";
}

// Empty if it may be any of several. Valid as long as the spec.
absl::string_view OnlyProductOf(const model::PodSpec& spec) {
  const absl::string_view selected = spec.node_selector.Get(model::kGpuProductLabel);
  if (!selected.empty() || !spec.has_required_node_affinity) return selected;
  absl::string_view only;
  for (const model::NodeSelectorTerm& term : spec.required_node_terms) {
    const absl::string_view product = OnlyProductOf(term);
    if (product.empty() || (!only.empty() && product != only)) return "";
    only = product;
  }
  return only;
}

}  // namespace

std::string GpuModelResource(absl::string_view product) {
  return absl::StrCat(model::kGpuModelPrefix, product);
}

bool MayNameVariants(const QueueTree& tree) {
  // All queues have CPU, memory and GPU.
  return tree.resources().size() > model::kGpu + 1;
}

Variant FindGpuModel(const QueueTree& tree, absl::string_view product) {
  if (product.empty() || !MayNameVariants(tree)) return std::nullopt;
  const Variant index = tree.names().Find(GpuModelResource(product));
  if (!index) return std::nullopt;
  const auto resources = tree.resources();
  if (!std::binary_search(resources.begin(), resources.end(), *index)) return std::nullopt;
  return index;
}

std::vector<model::ResourceIndex> Variants(const QueueTree& tree) {
  std::vector<model::ResourceIndex> variants;
  if (!MayNameVariants(tree)) return variants;
  for (const model::ResourceIndex resource : tree.resources()) {
    if (resource > kWithVariants &&
        absl::StartsWith(tree.names().Name(resource), model::kGpuModelPrefix)) {
      variants.push_back(resource);
    }
  }
  return variants;
}

Variant VariantOfNode(const QueueTree& tree, const model::StringMap& node_labels) {
  if (!MayNameVariants(tree)) return std::nullopt;
  return FindGpuModel(tree, node_labels.Get(model::kGpuProductLabel));
}

Variant OnlyVariantOf(const QueueTree& tree, const model::PodSpec& spec) {
  if (!MayNameVariants(tree)) return std::nullopt;
  return FindGpuModel(tree, OnlyProductOf(spec));
}

bool NamesVariant(const model::PodSpec& spec) { return !OnlyProductOf(spec).empty(); }

int64_t AmountWithVariants(const model::Resources& amount) { return amount[kWithVariants]; }

model::Resources OfVariant(const Variant& variant, int64_t amount) {
  model::Resources of;
  if (variant.has_value()) of.Set(*variant, amount);
  return of;
}

model::Resources WithVariant(model::Resources charge, const Variant& variant) {
  const int64_t amount = charge[kWithVariants];
  if (variant.has_value() && amount != 0) charge.Set(*variant, amount);
  return charge;
}

model::Resources WithVariant(model::Resources charge, const Variant& variant, int64_t amount) {
  charge.Set(kWithVariants, amount);
  if (variant.has_value()) charge.Set(*variant, amount);
  return charge;
}

absl::string_view NoVariantNamed() {
  return "no GPU model is requested, and nodes of one model must not be provisioned for it";
}

}  // namespace fairlead::queues
