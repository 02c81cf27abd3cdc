#include "autoscale-hook/catalog_yaml.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "scheduler/model/quantity.h"

namespace fairlead::hook {
namespace {

constexpr int64_t kMicro = 1000000;

// What `defaults:` gives to every type that does not say otherwise.
struct Defaults {
  std::vector<std::string> zones;
  int64_t reserved_cpu_milli = 0;
  int64_t reserved_memory_bytes = 0;
  model::ResourceList extra;
};

class Reader {
 public:
  explicit Reader(absl::string_view file) : file_(file) {}

  absl::Status Error(const YAML::Mark& mark, absl::string_view field,
                     absl::string_view what) const {
    std::string place =
        mark.is_null() ? "" : absl::StrCat(":", mark.line + 1, ":", mark.column + 1);
    return absl::InvalidArgumentError(absl::StrCat(file_, place, ": ", field, ": ", what));
  }

  using Handler = std::function<absl::Status(const YAML::Node&)>;
  // Every key must have a handler and may occur once; `required` ones must occur.
  absl::Status Map(const YAML::Node& node, const std::string& field,
                   const std::map<std::string, Handler>& handlers,
                   const std::vector<std::string>& required = {}) const {
    if (!node.IsMap()) return Error(node.Mark(), field, "must be a mapping");
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return Error(entry.first.Mark(), field, "keys must be text");
      const std::string& key = entry.first.Scalar();
      auto handler = handlers.find(key);
      if (handler == handlers.end()) {
        return Error(entry.first.Mark(), Join(field, key), "unknown field");
      }
      if (!seen.insert(key).second) {
        return Error(entry.first.Mark(), Join(field, key), "given twice");
      }
      FAIRLEAD_RETURN_IF_ERROR(handler->second(entry.second));
    }
    for (const std::string& key : required) {
      if (!seen.contains(key)) return Error(node.Mark(), Join(field, key), "is missing");
    }
    return absl::OkStatus();
  }

  // Any keys, each once, with text values.
  absl::Status Texts(
      const YAML::Node& node, const std::string& field,
      const std::function<absl::Status(const std::string& key, const YAML::Node&)>& handle) const {
    if (!node.IsMap()) return Error(node.Mark(), field, "must be a mapping");
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return Error(entry.first.Mark(), field, "keys must be text");
      const std::string& key = entry.first.Scalar();
      if (!seen.insert(key).second) {
        return Error(entry.first.Mark(), Join(field, key), "given twice");
      }
      FAIRLEAD_RETURN_IF_ERROR(handle(key, entry.second));
    }
    return absl::OkStatus();
  }

  absl::Status Text(const YAML::Node& node, absl::string_view field, std::string* out) const {
    if (!node.IsScalar()) return Error(node.Mark(), field, "must be text");
    if (node.Scalar().empty()) return Error(node.Mark(), field, "must not be empty");
    *out = node.Scalar();
    return absl::OkStatus();
  }

  absl::Status TextList(const YAML::Node& node, const std::string& field,
                        std::vector<std::string>* out) const {
    if (!node.IsSequence()) return Error(node.Mark(), field, "must be a list");
    out->clear();
    for (const YAML::Node& item : node) {
      std::string text;
      FAIRLEAD_RETURN_IF_ERROR(Text(item, field, &text));
      if (std::find(out->begin(), out->end(), text) != out->end()) {
        return Error(item.Mark(), field, absl::StrCat("\"", text, "\" is given twice"));
      }
      out->push_back(std::move(text));
    }
    if (out->empty()) return Error(node.Mark(), field, "must not be empty");
    return absl::OkStatus();
  }

  absl::Status Number(const YAML::Node& node, absl::string_view field,
                      absl::StatusOr<int64_t> (*parse)(absl::string_view, int64_t),
                      int64_t units_per_one, int64_t minimum, int64_t* out) const {
    if (!node.IsScalar()) return Error(node.Mark(), field, "must be a number");
    absl::StatusOr<int64_t> value = parse(node.Scalar(), units_per_one);
    if (!value.ok()) return Error(node.Mark(), field, value.status().message());
    if (*value < minimum) {
      return Error(node.Mark(), field,
                   minimum == 0 ? "must not be negative" : "must be greater than zero");
    }
    *out = *value;
    return absl::OkStatus();
  }
  absl::Status Quantity(const YAML::Node& node, absl::string_view field, int64_t units_per_one,
                        int64_t minimum, int64_t* out) const {
    return Number(node, field, &model::ParseQuantity, units_per_one, minimum, out);
  }
  absl::Status Dollars(const YAML::Node& node, absl::string_view field,
                       std::optional<int64_t>* out) const {
    int64_t micro = 0;
    FAIRLEAD_RETURN_IF_ERROR(Number(node, field, &model::ParseDecimal, kMicro, 0, &micro));
    *out = micro;
    return absl::OkStatus();
  }

  absl::Status Reserved(const YAML::Node& node, const std::string& field, int64_t* cpu_milli,
                        int64_t* memory_bytes) const {
    return Map(
        node, field,
        {{"cpu",
          [&](const YAML::Node& n) { return Quantity(n, Join(field, "cpu"), 1000, 0, cpu_milli); }},
         {"memory", [&](const YAML::Node& n) {
            return Quantity(n, Join(field, "memory"), 1, 0, memory_bytes);
          }}});
  }

  absl::Status Extra(const YAML::Node& node, const std::string& field,
                     model::ResourceList* out) const {
    return Texts(node, field, [&](const std::string& key, const YAML::Node& value) {
      if (key == model::kCpuName || key == model::kMemoryName || key == model::kPodsName ||
          key == model::kGpuName) {
        return Error(value.Mark(), Join(field, key), "has a field of its own");
      }
      int64_t amount = 0;
      FAIRLEAD_RETURN_IF_ERROR(
          Quantity(value, Join(field, key), model::BaseUnitsPerUnit(key), 0, &amount));
      model::Set(*out, key, amount);
      return absl::OkStatus();
    });
  }

  absl::StatusOr<InstanceType> Type(const YAML::Node& node, const std::string& field,
                                    const Defaults& defaults) const;

  static std::string Join(const std::string& field, const std::string& key) {
    return field.empty() ? key : absl::StrCat(field, ".", key);
  }

 private:
  absl::Status Gpu(const YAML::Node& node, const std::string& field, InstanceType* type) const {
    return Map(
        node, field,
        {{"model",
          [&](const YAML::Node& n) { return Text(n, Join(field, "model"), &type->gpu_model); }},
         {"count",
          [&](const YAML::Node& n) {
            return Quantity(n, Join(field, "count"), 1, 1, &type->gpu_count);
          }},
         {"memory_mib",
          [&](const YAML::Node& n) {
            return Quantity(n, Join(field, "memory_mib"), 1, 1, &type->gpu_memory_mib);
          }}},
        {"model", "count"});
  }

  absl::string_view file_;
};

absl::StatusOr<InstanceType> Reader::Type(const YAML::Node& node, const std::string& field,
                                          const Defaults& defaults) const {
  InstanceType type;
  type.zones = defaults.zones;
  type.reserved_cpu_milli = defaults.reserved_cpu_milli;
  type.reserved_memory_bytes = defaults.reserved_memory_bytes;
  type.extra = defaults.extra;
  const auto f = [&](const char* key) { return Join(field, key); };
  FAIRLEAD_RETURN_IF_ERROR(Map(
      node, field,
      {{"name", [&](const YAML::Node& n) { return Text(n, f("name"), &type.name); }},
       {"arch", [&](const YAML::Node& n) { return Text(n, f("arch"), &type.architecture); }},
       {"cpu",
        [&](const YAML::Node& n) { return Quantity(n, f("cpu"), 1000, 1, &type.cpu_milli); }},
       {"memory",
        [&](const YAML::Node& n) { return Quantity(n, f("memory"), 1, 1, &type.memory_bytes); }},
       {"pods", [&](const YAML::Node& n) { return Quantity(n, f("pods"), 1, 1, &type.max_pods); }},
       {"gpu", [&](const YAML::Node& n) { return Gpu(n, f("gpu"), &type); }},
       {"zones", [&](const YAML::Node& n) { return TextList(n, f("zones"), &type.zones); }},
       {"price",
        [&](const YAML::Node& n) {
          return Map(n, f("price"),
                     {{"on_demand",
                       [&](const YAML::Node& p) {
                         return Dollars(p, f("price.on_demand"), &type.on_demand_micro_usd);
                       }},
                      {"spot", [&](const YAML::Node& p) {
                         return Dollars(p, f("price.spot"), &type.spot_micro_usd);
                       }}});
        }},
       {"labels",
        [&](const YAML::Node& n) {
          return Texts(n, f("labels"), [&](const std::string& key, const YAML::Node& value) {
            if (!value.IsScalar()) {
              return Error(value.Mark(), Join(f("labels"), key), "must be text");
            }
            type.labels.Set(key, value.Scalar());
            return absl::OkStatus();
          });
        }},
       {"extra", [&](const YAML::Node& n) { return Extra(n, f("extra"), &type.extra); }},
       {"reserved",
        [&](const YAML::Node& n) {
          return Reserved(n, f("reserved"), &type.reserved_cpu_milli, &type.reserved_memory_bytes);
        }}},
      {"name", "cpu", "memory"}));
  if (type.zones.empty()) return Error(node.Mark(), f("zones"), "is missing and has no default");
  if (type.reserved_cpu_milli >= type.cpu_milli) {
    return Error(node.Mark(), f("reserved.cpu"), "leaves nothing for pods");
  }
  if (type.reserved_memory_bytes >= type.memory_bytes) {
    return Error(node.Mark(), f("reserved.memory"), "leaves nothing for pods");
  }
  return type;
}

absl::StatusOr<CatalogFile> ReadDocument(const Reader& reader, const YAML::Node& root) {
  CatalogFile file;
  Defaults defaults;
  YAML::Node types;
  if (!root.IsMap()) return reader.Error(root.Mark(), "catalogue", "must be a mapping");
  FAIRLEAD_RETURN_IF_ERROR(reader.Map(
      root, "",
      {{"as_of", [&](const YAML::Node& n) { return reader.Text(n, "as_of", &file.as_of); }},
       {"source", [&](const YAML::Node& n) { return reader.Text(n, "source", &file.source); }},
       {"defaults",
        [&](const YAML::Node& node) {
          return reader.Map(node, "defaults",
                            {{"zones",
                              [&](const YAML::Node& n) {
                                return reader.TextList(n, "defaults.zones", &defaults.zones);
                              }},
                             {"reserved",
                              [&](const YAML::Node& n) {
                                return reader.Reserved(n, "defaults.reserved",
                                                       &defaults.reserved_cpu_milli,
                                                       &defaults.reserved_memory_bytes);
                              }},
                             {"extra", [&](const YAML::Node& n) {
                                return reader.Extra(n, "defaults.extra", &defaults.extra);
                              }}});
        }},
       // Read after the whole mapping: `defaults` may stand below it.
       {"types",
        [&](const YAML::Node& n) {
          types.reset(n);
          return absl::OkStatus();
        }}},
      {"types"}));
  if (!types.IsSequence()) return reader.Error(types.Mark(), "types", "must be a list");
  std::set<std::string> names;
  size_t index = 0;
  for (const YAML::Node& node : types) {
    const std::string field = absl::StrCat("types[", index++, "]");
    FAIRLEAD_ASSIGN_OR_RETURN(InstanceType type, reader.Type(node, field, defaults));
    if (!names.insert(type.name).second) {
      return reader.Error(node.Mark(), absl::StrCat(field, ".name"),
                          absl::StrCat("\"", type.name, "\" is given twice"));
    }
    file.types.push_back(std::move(type));
  }
  std::sort(file.types.begin(), file.types.end(),
            [](const InstanceType& a, const InstanceType& b) { return a.name < b.name; });
  return file;
}

}  // namespace

absl::StatusOr<CatalogFile> ReadCatalogYaml(absl::string_view yaml, absl::string_view file_name) {
  const Reader reader(file_name);
  // yaml-cpp reports by exceptions; none leaves this function.
  try {
    const YAML::Node root = YAML::Load(std::string(yaml));
    return ReadDocument(reader, root);
  } catch (const YAML::Exception& e) {
    return reader.Error(e.mark, "catalogue", e.msg);
  }
}

}  // namespace fairlead::hook
