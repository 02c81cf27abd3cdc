#include "autoscale-hook/providers/groups/group_offer.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/instance_facts.h"

namespace fairlead::hook {
namespace {

absl::Status WrongField(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

// Of one node, or written by the catalogue.
bool IsOwnLabel(absl::string_view key) {
  return key == model::kHostnameLabel || key == model::kNodeRequestLabel ||
         key == model::kPoolLabel || key == model::kCapacityTypeLabel ||
         key == model::kGpuProductLabel || key == model::kGpuCountLabel ||
         key == model::kGpuMemoryLabel || key == model::kZoneLabel || key == model::kArchLabel;
}

// Taints that controllers take away when a node has started.
bool IsTransient(const model::Taint& taint) {
  return absl::StartsWith(taint.key, "node.kubernetes.io/") ||
         taint.key == "node.cloudprovider.kubernetes.io/uninitialized";
}

// Those of the template, else of the catalogue's type.
void SetDevices(const OfferParts& parts, InstanceType& type) {
  type.devices = parts.node->devices;
  if (type.devices == nullptr && parts.known != nullptr) type.devices = parts.known->devices;
}

void SetGpus(const OfferParts& parts, InstanceType& type) {
  const model::StringMap& labels = parts.node->meta.labels;
  type.gpu_count = model::Get(parts.node->allocatable, model::kGpuName) / 1000;
  const int64_t by_claim = type.devices == nullptr ? 0 : model::CountGpus(*type.devices);
  if (type.gpu_count == 0) type.gpu_count = by_claim;
  // A template with GPUs of a device plugin knows better than the catalogue.
  if (by_claim > 0 && by_claim != type.gpu_count) type.devices = nullptr;
  if (type.gpu_count == 0) return;
  type.gpu_model = std::string(labels.Get(model::kGpuProductLabel));
  if (type.gpu_model.empty() && parts.known != nullptr) type.gpu_model = parts.known->gpu_model;
  if (type.gpu_model.empty() && !parts.gpu_label.empty()) {
    type.gpu_model = std::string(labels.Get(parts.gpu_label));
  }
  int64_t memory_mib = 0;
  if (absl::SimpleAtoi(labels.Get(model::kGpuMemoryLabel), &memory_mib) && memory_mib > 0) {
    type.gpu_memory_mib = memory_mib;
  } else if (parts.known != nullptr) {
    type.gpu_memory_mib = parts.known->gpu_memory_mib;
  }
}

auto FieldsOf(const InstanceType& t) {
  return std::tie(t.name, t.architecture, t.cpu_milli, t.memory_bytes, t.max_pods, t.gpu_model,
                  t.gpu_count, t.gpu_memory_mib, t.zones, t.on_demand_micro_usd, t.spot_micro_usd,
                  t.labels, t.taints, t.extra, t.reserved_cpu_milli, t.reserved_memory_bytes);
}

}  // namespace

absl::Status CheckGroup(const CloudGroup& group) {
  if (group.min_size < 0) return WrongField("minSize", absl::StrCat(group.min_size));
  if (group.max_size < group.min_size) {
    return WrongField("maxSize",
                      absl::StrCat(group.max_size, " is less than minSize ", group.min_size));
  }
  return absl::OkStatus();
}

absl::Status CheckTargetSize(int64_t target) {
  return target < 0 ? WrongField("targetSize", absl::StrCat(target)) : absl::OkStatus();
}

absl::StatusOr<InstanceMap> CheckInstances(std::vector<CloudInstance> instances) {
  if (instances.size() > kMostInstances) {
    return WrongField("instances", absl::StrCat(instances.size(), " are more than the ",
                                                kMostInstances, " that a group may have"));
  }
  InstanceMap checked;
  for (CloudInstance& instance : instances) {
    if (instance.id.empty()) return WrongField("instances", "an id is empty");
    const auto [place, added] = checked.try_emplace(instance.id);
    if (!added) return WrongField("instances", absl::StrCat(instance.id, " is there twice"));
    place->second = std::move(instance);
  }
  return checked;
}

absl::Status CheckTemplate(const model::Node& node) {
  if (!node.invalid.empty()) return WrongField("template", node.invalid);
  for (const auto& [name, amount] : node.allocatable) {
    if (amount < 0) return WrongField("template", absl::StrCat(name, " is negative"));
  }
  for (const char* name : {model::kCpuName, model::kMemoryName}) {
    if (model::Get(node.allocatable, name) == 0) {
      return WrongField("template", absl::StrCat("allocatable ", name, " is 0"));
    }
  }
  if (model::Get(node.allocatable, model::kGpuName) / 1000 > kMostGpusOfAMachine) {
    return WrongField("template",
                      absl::StrCat(model::kGpuName, " is more than ", kMostGpusOfAMachine));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int64_t>> CheckPrice(double dollars_per_hour) {
  if (!std::isfinite(dollars_per_hour) || dollars_per_hour < 0 ||
      dollars_per_hour > kHighestPriceUsd) {
    return WrongField("price", absl::StrCat(dollars_per_hour, " dollars per hour"));
  }
  const int64_t price = std::llround(dollars_per_hour * 1'000'000);
  return price == 0 ? std::nullopt : std::optional(price);
}

InstanceType MakeInstanceType(const OfferParts& parts) {
  const model::StringMap& labels = parts.node->meta.labels;
  InstanceType type;
  type.name = parts.group;
  if (labels.Has(model::kArchLabel)) type.architecture = std::string(labels.Get(model::kArchLabel));
  type.zones = {std::string(labels.Get(model::kZoneLabel))};
  for (const auto& [key, value] : labels) {
    if (!IsOwnLabel(key)) type.labels.Set(key, value);
  }
  for (const model::Taint& taint : parts.node->taints) {
    if (!IsTransient(taint)) type.taints.push_back(taint);
  }
  for (const auto& [name, amount] : parts.node->allocatable) {
    if (name == model::kCpuName) {
      type.cpu_milli = amount;
    } else if (name == model::kMemoryName) {
      type.memory_bytes = amount;
    } else if (name == model::kPodsName) {
      type.max_pods = amount;
    } else if (name != model::kGpuName) {
      type.extra.emplace_back(name, amount);
    }
  }
  SetDevices(parts, type);
  SetGpus(parts, type);
  const bool spot = model::IsSpotNode(labels);
  std::optional<int64_t> price = parts.price;
  if (!price.has_value() && parts.known != nullptr) {
    price = spot ? parts.known->spot_micro_usd : parts.known->on_demand_micro_usd;
  }
  (spot ? type.spot_micro_usd : type.on_demand_micro_usd) = price;
  return type;
}

bool HasPrice(const InstanceType& type) {
  return type.on_demand_micro_usd.has_value() || type.spot_micro_usd.has_value();
}

bool SameTypes(const std::vector<InstanceType>& a, const std::vector<InstanceType>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const InstanceType& x, const InstanceType& y) {
                      return FieldsOf(x) == FieldsOf(y) && model::SameDevices(x.devices, y.devices);
                    });
}

}  // namespace fairlead::hook
