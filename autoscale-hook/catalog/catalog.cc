#include "autoscale-hook/catalog/catalog.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/catalog/catalog_yaml.h"
#include "base/check.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {

absl::StatusOr<Catalog> Catalog::Parse(absl::string_view yaml, absl::string_view file_name) {
  absl::StatusOr<CatalogFile> file = ReadCatalogYaml(yaml, file_name);
  if (!file.ok()) return file.status();
  Catalog catalog = FromTypes(std::move(file->types));
  catalog.as_of_ = std::move(file->as_of);
  catalog.source_ = std::move(file->source);
  return catalog;
}

const Catalog& Catalog::BuiltIn() {
  static const Catalog* const catalog = [] {
    absl::StatusOr<Catalog> parsed = Parse(kBuiltInCatalogYaml, "catalog/default.yaml");
    FAIRLEAD_CHECK(parsed.ok(), parsed.status().ToString());
    return new Catalog(*std::move(parsed));
  }();
  return *catalog;
}

Catalog Catalog::FromTypes(std::vector<InstanceType> types) {
  std::sort(types.begin(), types.end(),
            [](const InstanceType& a, const InstanceType& b) { return a.name < b.name; });
  Catalog catalog;
  catalog.types_ = std::move(types);
  catalog.has_reservations_ =
      std::any_of(catalog.types_.begin(), catalog.types_.end(),
                  [](const InstanceType& type) { return !type.reservations.empty(); });
  return catalog;
}

const InstanceType* Catalog::Find(absl::string_view name) const {
  auto it = std::lower_bound(
      types_.begin(), types_.end(), name,
      [](const InstanceType& type, absl::string_view wanted) { return type.name < wanted; });
  return it != types_.end() && it->name == name ? &*it : nullptr;
}

const Reservation* InstanceType::FindReservation(absl::string_view wanted) const {
  for (const Reservation& reservation : reservations) {
    if (reservation.name == wanted) return &reservation;
  }
  return nullptr;
}

std::optional<int64_t> InstanceType::PriceOf(bool spot, absl::string_view reservation) const {
  if (reservation.empty()) return spot ? spot_micro_usd : on_demand_micro_usd;
  const Reservation* found = FindReservation(reservation);
  if (found == nullptr) return std::nullopt;
  return found->price_micro_usd_per_hour;
}

int64_t Offer::PriceOfChoice() const {
  constexpr int64_t kPart = 1000;
  if (reservation == nullptr) return price_micro_usd_per_hour;
  const int64_t worth =
      type->on_demand_micro_usd.value_or(type->spot_micro_usd.value_or(price_micro_usd_per_hour));
  return std::max<int64_t>(1, worth / kPart);
}

namespace {

using model::SaturatingMultiply;

bool GpusAreDevices(const model::Node& node) {
  return node.devices != nullptr && model::CountGpus(*node.devices) > 0;
}

int64_t GpuMilli(const InstanceType& type) { return SaturatingMultiply(type.gpu_count, 1000); }

// What the device plugin and feature discovery make of the GPUs of a node.
void DivideGpus(const model::GpuPartition& sharing, const InstanceType& type, model::Node& node) {
  using Strategy = model::GpuPartition::Strategy;
  if (type.gpu_count == 0 || GpusAreDevices(node)) return;
  if (sharing.strategy == Strategy::kNone) return;
  model::StringMap& labels = node.meta.labels;
  model::Set(node.allocatable, model::kGpuName,
             SaturatingMultiply(GpuMilli(type), sharing.CountOfEach()));
  if (sharing.SharesTime()) {
    labels.Set("nvidia.com/gpu.replicas", absl::StrCat(sharing.replicas));
    labels.Set("nvidia.com/gpu.sharing-strategy",
               sharing.strategy == Strategy::kMps ? "mps" : "time-slicing");
    if (sharing.renamed) {
      model::Set(node.allocatable, "nvidia.com/gpu.shared",
                 SaturatingMultiply(GpuMilli(type), sharing.replicas));
    } else {
      labels.Set(model::kGpuProductLabel, absl::StrCat(type.gpu_model, "-SHARED"));
    }
    return;
  }
  const bool single = sharing.strategy == Strategy::kMigSingle;
  labels.Set("nvidia.com/mig.strategy", single ? "single" : "mixed");
  for (const auto& [profile, count] : sharing.instances) {
    if (single) {
      labels.Set(model::kGpuProductLabel, absl::StrCat(type.gpu_model, "-MIG-", profile));
      labels.Set(model::kGpuCountLabel, absl::StrCat(SaturatingMultiply(type.gpu_count, count)));
    } else {
      model::Set(node.allocatable, absl::StrCat(model::kMigPrefix, profile),
                 SaturatingMultiply(GpuMilli(type), count));
    }
  }
}

}  // namespace

std::shared_ptr<const model::NodeDevices> DeclaredDevices(const InstanceType& type,
                                                          const model::NodePool* pool) {
  if (pool == nullptr || pool->devices.empty()) return type.devices;
  auto devices = std::make_shared<model::NodeDevices>();
  if (type.devices != nullptr) *devices = *type.devices;
  for (const model::PoolDevices& entry : pool->devices) {
    std::erase_if(devices->slices, [&](const auto& slice) { return slice.driver == entry.driver; });
  }
  for (const model::PoolDevices& entry : pool->devices) {
    const int64_t count = entry.count.value_or(type.gpu_count);
    if (count < 1 || count > model::kMostDeclaredDevices) continue;
    model::Device device;
    device.attributes = entry.attributes;
    device.capacity = entry.capacity;
    model::AddDevices(entry.driver, device, count, *devices);
  }
  return devices->empty() ? nullptr : std::move(devices);
}

model::Node TemplateNode(const Offer& offer, absl::string_view name) {
  model::Node node = UsableNode(offer, name);
  if (offer.pool != nullptr) {
    node.taints.insert(node.taints.end(), offer.pool->startup_taints.begin(),
                       offer.pool->startup_taints.end());
  }
  return node;
}

model::Node UsableNode(const Offer& offer, absl::string_view name) {
  const InstanceType& type = *offer.type;
  model::Node node;
  node.meta.name = std::string(name);
  node.declared_features = model::kAllNodeFeatures;  // unknown: no catalogue says
  model::StringMap& labels = node.meta.labels;
  labels.Set(model::kOsLabel, "linux");
  labels.Set(model::kArchLabel, type.architecture);
  labels.Set(model::kInstanceTypeLabel, type.name);
  if (!offer.zone.empty()) labels.Set(model::kZoneLabel, offer.zone);
  labels.Set(model::kCapacityTypeLabel, offer.reservation != nullptr ? "reserved"
                                        : offer.spot                 ? "spot"
                                                                     : "on-demand");
  if (!name.empty()) {
    labels.Set(model::kHostnameLabel, name);
    labels.Set(model::kNodeRequestLabel, name);
  }
  node.devices = DeclaredDevices(type, offer.pool);
  if (type.gpu_count > 0) {
    labels.Set(model::kGpuProductLabel, type.gpu_model);
    labels.Set(model::kGpuCountLabel, absl::StrCat(type.gpu_count));
    if (type.gpu_memory_mib > 0) {
      labels.Set(model::kGpuMemoryLabel, absl::StrCat(type.gpu_memory_mib));
    }
    if (!GpusAreDevices(node)) model::Set(node.allocatable, model::kGpuName, GpuMilli(type));
  }
  for (const auto& [key, value] : type.labels) labels.Set(key, value);
  if (offer.reservation != nullptr) {
    labels.Set(model::kReservationLabel, offer.reservation->name);
    for (const auto& [key, value] : offer.reservation->labels) labels.Set(key, value);
  }
  model::Set(node.allocatable, model::kCpuName,
             std::max<int64_t>(0, type.cpu_milli - type.reserved_cpu_milli));
  model::Set(node.allocatable, model::kMemoryName,
             std::max<int64_t>(0, type.memory_bytes - type.reserved_memory_bytes));
  model::Set(node.allocatable, model::kPodsName, type.max_pods);
  for (const auto& [resource, amount] : type.extra) model::Set(node.allocatable, resource, amount);
  node.taints = type.taints;
  if (offer.pool != nullptr) {
    DivideGpus(offer.pool->gpu_sharing, type, node);
    if (!offer.pool->meta.name.empty()) labels.Set(model::kPoolLabel, offer.pool->meta.name);
    for (const auto& [key, value] : offer.pool->labels) labels.Set(key, value);
    node.taints.insert(node.taints.end(), offer.pool->taints.begin(), offer.pool->taints.end());
  }
  return node;
}

}  // namespace fairlead::hook
