#include "autoscale-hook/catalog/catalog_yaml.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "autoscale-hook/catalog/declared_devices.h"
#include "base/status_macros.h"
#include "document/fields.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/qualified_name.h"
#include "scheduler/model/quantity.h"

namespace fairlead::hook {
namespace {

constexpr int64_t kMicro = 1000000;

// The values of `defaults:`, for types that do not set their own.
struct Defaults {
  std::vector<std::string> zones;
  int64_t reserved_cpu_milli = 0;
  int64_t reserved_memory_bytes = 0;
  model::ResourceList extra;
};

// FieldReader with handlers for the values of catalogues.
class Reader : public FieldReader {
 public:
  using FieldReader::FieldReader;

  absl::StatusOr<CatalogFile> ReadFile(const Json& root) const;

 private:
  using Parser = absl::StatusOr<int64_t> (*)(absl::string_view, int64_t);

  Handler Number(Parser parse, int64_t units_per_one, int64_t minimum, int64_t* out) const {
    return [=, this](const Json& node, const std::string& field) {
      if (!node.is_text()) return Error(node, field, "must be a number");
      const absl::StatusOr<int64_t> value = parse(node.text(), units_per_one);
      if (!value.ok()) return Error(node, field, value.status().message());
      if (*value < minimum) {
        return Error(node, field,
                     minimum == 0 ? "must not be negative" : "must be greater than zero");
      }
      *out = *value;
      return absl::OkStatus();
    };
  }
  Handler Quantity(int64_t units_per_one, int64_t minimum, int64_t* out) const {
    return Number(&model::ParseQuantity, units_per_one, minimum, out);
  }
  Handler GpuCount(int64_t* out) const {
    return [=, this](const Json& node, const std::string& field) -> absl::Status {
      FAIRLEAD_RETURN_IF_ERROR(Quantity(1, 1, out)(node, field));
      if (*out <= kMostGpusOfAMachine) return absl::OkStatus();
      return Error(node, field, absl::StrCat("must be ", kMostGpusOfAMachine, " at most"));
    };
  }
  Handler Dollars(std::optional<int64_t>* out) const {
    return [=, this](const Json& node, const std::string& field) {
      return Number(&model::ParseDecimal, kMicro, 0, &out->emplace())(node, field);
    };
  }
  // At least one zone, each once; replaces the former value.
  Handler Zones(std::vector<std::string>* out) const {
    return [=, this](const Json& node, const std::string& field) -> absl::Status {
      out->clear();
      FAIRLEAD_RETURN_IF_ERROR(TextList(out)(node, field));
      if (out->empty()) return Error(node, field, "must not be empty");
      for (size_t i = 0; i < out->size(); ++i) {
        if (std::find(out->begin(), out->begin() + static_cast<ptrdiff_t>(i), (*out)[i]) ==
            out->begin() + static_cast<ptrdiff_t>(i)) {
          continue;
        }
        return Error(node.items()[i], field, absl::StrCat("\"", (*out)[i], "\" is given twice"));
      }
      return absl::OkStatus();
    };
  }
  Handler Reserved(int64_t* cpu_milli, int64_t* memory_bytes) const {
    return [=, this](const Json& node, const std::string& field) {
      return Map(node, field,
                 {{"cpu", Quantity(1000, 0, cpu_milli)}, {"memory", Quantity(1, 0, memory_bytes)}});
    };
  }
  Handler Extra(model::ResourceList* out) const {
    return [=, this](const Json& node, const std::string& field) {
      return AnyMap(
          node, field,
          [&](const std::string& key, const Json& value, const std::string& at) -> absl::Status {
            if (key == model::kCpuName || key == model::kMemoryName || key == model::kPodsName ||
                key == model::kGpuName) {
              return Error(value, at, "has a field of its own");
            }
            int64_t amount = 0;
            FAIRLEAD_RETURN_IF_ERROR(Quantity(model::BaseUnitsPerUnit(key), 0, &amount)(value, at));
            model::Set(*out, key, amount);
            return absl::OkStatus();
          });
    };
  }
  Handler Labels(model::StringMap* out) const {
    return [=, this](const Json& node, const std::string& field) {
      return AnyMap(node, field,
                    [&](const std::string& key, const Json& value, const std::string& at) {
                      if (!value.is_text()) return Error(value, at, "must be text");
                      out->Set(key, value.text());
                      return absl::OkStatus();
                    });
    };
  }
  Handler Gpu(InstanceType* type) const {
    return [=, this](const Json& node, const std::string& field) {
      return Map(node, field,
                 {{"model", Text(&type->gpu_model)},
                  {"count", GpuCount(&type->gpu_count)},
                  {"memory_mib", Quantity(1, 1, &type->gpu_memory_mib)}},
                 {"model", "count"});
    };
  }
  Handler Price(InstanceType* type) const {
    return [=, this](const Json& node, const std::string& field) {
      return Map(node, field,
                 {{"on_demand", Dollars(&type->on_demand_micro_usd)},
                  {"spot", Dollars(&type->spot_micro_usd)}});
    };
  }
  // Labels that nodes have whatever a reservation says.
  Handler ReservationLabels(model::StringMap* out) const {
    return [=, this](const Json& node, const std::string& field) {
      return AnyMap(
          node, field,
          [&](const std::string& key, const Json& value, const std::string& at) -> absl::Status {
            for (const char* known :
                 {model::kCapacityTypeLabel, model::kReservationLabel, model::kHostnameLabel,
                  model::kNodeRequestLabel, model::kPoolLabel, model::kInstanceTypeLabel,
                  model::kZoneLabel, model::kArchLabel, model::kOsLabel}) {
              if (key == known) return Error(value, at, "is set by Fairlead, for each node");
            }
            if (!model::IsQualifiedName(key)) return Error(value, at, "is no key of a label");
            if (!value.is_text() || !model::IsLabelValue(value.text())) {
              return Error(value, at, "must be the value of a label");
            }
            out->Set(key, value.text());
            return absl::OkStatus();
          });
    };
  }
  Handler ReservationName(std::string* out) const {
    return [=, this](const Json& node, const std::string& field) -> absl::Status {
      FAIRLEAD_RETURN_IF_ERROR(Text(out)(node, field));
      if (!out->empty() && model::IsLabelValue(*out)) return absl::OkStatus();
      return Error(node, field,
                   "must be the value of a label: at most 63 letters, digits, '-', '_' and '.'");
    };
  }
  Handler Reservations(std::vector<Reservation>* out) const;
  Handler ReadDefaults(Defaults* out) const {
    return [=, this](const Json& node, const std::string& field) {
      return Map(node, field,
                 {{"zones", Zones(&out->zones)},
                  {"reserved", Reserved(&out->reserved_cpu_milli, &out->reserved_memory_bytes)},
                  {"extra", Extra(&out->extra)}});
    };
  }
  absl::StatusOr<InstanceType> Type(const Json& node, const std::string& field,
                                    const Defaults& defaults) const;
};

FieldReader::Handler Reader::Reservations(std::vector<Reservation>* out) const {
  return [=, this](const Json& node, const std::string& field) -> absl::Status {
    const auto read = [&](const Json& item, const std::string& at) -> absl::Status {
      Reservation reservation;
      std::optional<int64_t> price;
      FAIRLEAD_RETURN_IF_ERROR(Map(item, at,
                                   {{"name", ReservationName(&reservation.name)},
                                    {"zone", Text(&reservation.zone)},
                                    {"count", Quantity(1, 1, &reservation.count)},
                                    {"price", Dollars(&price)},
                                    {"labels", ReservationLabels(&reservation.labels)}},
                                   {"name", "count", "price"}));
      if (reservation.count > kMostReserved) {
        return Error(item, absl::StrCat(at, ".count"),
                     absl::StrCat("must be ", kMostReserved, " at most"));
      }
      reservation.price_micro_usd_per_hour = *price;
      out->push_back(std::move(reservation));
      return absl::OkStatus();
    };
    FAIRLEAD_RETURN_IF_ERROR(List(node, field, read));
    std::sort(out->begin(), out->end(),
              [](const Reservation& a, const Reservation& b) { return a.name < b.name; });
    return absl::OkStatus();
  };
}

absl::StatusOr<InstanceType> Reader::Type(const Json& node, const std::string& field,
                                          const Defaults& defaults) const {
  InstanceType type;
  type.zones = defaults.zones;
  type.reserved_cpu_milli = defaults.reserved_cpu_milli;
  type.reserved_memory_bytes = defaults.reserved_memory_bytes;
  type.extra = defaults.extra;
  FAIRLEAD_RETURN_IF_ERROR(
      Map(node, field,
          {{"name", Text(&type.name)},
           {"arch", Text(&type.architecture)},
           {"cpu", Quantity(1000, 1, &type.cpu_milli)},
           {"memory", Quantity(1, 1, &type.memory_bytes)},
           {"pods", Quantity(1, 1, &type.max_pods)},
           {"gpu", Gpu(&type)},
           {"zones", Zones(&type.zones)},
           {"price", Price(&type)},
           {"reservations", Reservations(&type.reservations)},
           {"labels", Labels(&type.labels)},
           {"extra", Extra(&type.extra)},
           {"devices", ReadDeclaredDevices(*this, &type.devices)},
           {"reserved", Reserved(&type.reserved_cpu_milli, &type.reserved_memory_bytes)}},
          {"name", "cpu", "memory"}));
  const auto at = [&](const char* key) { return absl::StrCat(field, ".", key); };
  if (type.zones.empty()) return Error(node, at("zones"), "is missing and has no default");
  for (const Reservation& reservation : type.reservations) {
    const auto& zones = type.zones;
    if (reservation.zone.empty() ||
        std::find(zones.begin(), zones.end(), reservation.zone) != zones.end()) {
      continue;
    }
    return Error(node, at("reservations"),
                 absl::StrCat("\"", reservation.name, "\": zone \"", reservation.zone,
                              "\" is no zone of the type"));
  }
  const int64_t gpus = type.devices == nullptr ? 0 : model::CountGpus(*type.devices);
  if (gpus > 0 && gpus != type.gpu_count) {
    return Error(node, at("devices"),
                 absl::StrCat("GPUs: ", gpus, ", but gpu.count is ", type.gpu_count,
                              ", which is what caps count"));
  }
  if (type.reserved_cpu_milli >= type.cpu_milli) {
    return Error(node, at("reserved.cpu"), "leaves nothing for pods");
  }
  if (type.reserved_memory_bytes >= type.memory_bytes) {
    return Error(node, at("reserved.memory"), "leaves nothing for pods");
  }
  return type;
}

absl::StatusOr<CatalogFile> Reader::ReadFile(const Json& root) const {
  CatalogFile file;
  Defaults defaults;
  const Json* types = nullptr;
  if (!root.is_object()) return Error(root, "catalogue", "must be a mapping");
  // Types are read after the whole mapping: `defaults` may come after them.
  const Handler find_types = [&](const Json& node, const std::string&) {
    types = &node;
    return absl::OkStatus();
  };
  FAIRLEAD_RETURN_IF_ERROR(Map(root, "",
                               {{"as_of", Text(&file.as_of)},
                                {"source", Text(&file.source)},
                                {"defaults", ReadDefaults(&defaults)},
                                {"types", find_types}},
                               {"types"}));
  std::set<std::string> names, reservations;
  FAIRLEAD_RETURN_IF_ERROR(
      List(*types, "types", [&](const Json& node, const std::string& field) -> absl::Status {
        FAIRLEAD_ASSIGN_OR_RETURN(InstanceType type, Type(node, field, defaults));
        if (!names.insert(type.name).second) {
          return Error(node, absl::StrCat(field, ".name"),
                       absl::StrCat("\"", type.name, "\" is given twice"));
        }
        for (const Reservation& reservation : type.reservations) {
          if (reservations.insert(reservation.name).second) continue;
          return Error(node, absl::StrCat(field, ".reservations"),
                       absl::StrCat("\"", reservation.name, "\" is given twice"));
        }
        file.types.push_back(std::move(type));
        return absl::OkStatus();
      }));
  std::sort(file.types.begin(), file.types.end(),
            [](const InstanceType& a, const InstanceType& b) { return a.name < b.name; });
  return file;
}

}  // namespace

absl::StatusOr<CatalogFile> ReadCatalogYaml(absl::string_view yaml, absl::string_view file_name) {
  const Reader reader(file_name);
  FAIRLEAD_ASSIGN_OR_RETURN(const Json root, reader.Parse(yaml));
  return reader.ReadFile(root);
}

}  // namespace fairlead::hook
