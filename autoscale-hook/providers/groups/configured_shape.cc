#include "autoscale-hook/providers/groups/configured_shape.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autoscale-hook/catalog/catalog.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {

absl::StatusOr<model::Node> TemplateOfShape(const model::MachineShape& shape,
                                            const KnownType& known_type, const std::string& name) {
  model::Node node;
  if (shape.instance_type.empty()) {
    node.allocatable = shape.allocatable;
  } else {
    const InstanceType* const type =
        known_type == nullptr ? nullptr : known_type(shape.instance_type);
    if (type == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          "instanceType: the catalogue has no type \"", shape.instance_type, "\"; add it"));
    }
    Offer offer;
    offer.type = type;
    node = UsableNode(offer, "");
  }
  for (const auto& [key, value] : shape.node_selector) node.meta.labels.Set(key, value);
  for (const auto& [key, value] : shape.labels) node.meta.labels.Set(key, value);
  node.taints.insert(node.taints.end(), shape.taints.begin(), shape.taints.end());
  if (!shape.zone.empty()) node.meta.labels.Set(model::kZoneLabel, shape.zone);
  node.meta.name = name;
  return node;
}

CloudGroup GroupOfShape(const model::MachineShape& shape, const KnownType& known_type,
                        const std::string& id, int64_t min_size, int64_t max_size) {
  CloudGroup group{id, min_size, max_size};
  const absl::StatusOr<model::Node> node = TemplateOfShape(shape, known_type, id);
  if (!node.ok()) return group;
  for (const auto& [name, amount] : node->allocatable) {
    absl::StrAppend(&group.debug, name, "=", amount, " ");
  }
  return group;
}

absl::StatusOr<double> PriceOfShape(const model::MachineShape& shape) {
  const std::optional<int64_t>& price = shape.price_micro_usd_per_hour;
  if (!price.has_value()) return absl::UnimplementedError("no price is configured");
  return static_cast<double>(*price) / 1e6;
}

std::string SelectorText(const model::StringMap& labels) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : labels) parts.push_back(absl::StrCat(key, "=", value));
  return absl::StrJoin(parts, ",");
}

}  // namespace fairlead::hook
