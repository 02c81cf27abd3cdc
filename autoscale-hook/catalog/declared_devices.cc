#include "autoscale-hook/catalog/declared_devices.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "scheduler/model/pool_devices.h"
#include "scheduler/model/qualified_name.h"
#include "scheduler/model/quantity.h"

namespace fairlead::hook {
namespace {

// Of resource.k8s.io/v1: attributes and capacities of a device together, and sizes of texts.
constexpr size_t kMostAttributes = 32;
constexpr size_t kLongestDriver = 63;
constexpr size_t kLongestValue = 64;

// "name" or "domain/name", where the name is an identifier of C.
bool IsAttributeName(absl::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash != absl::string_view::npos) {
    const absl::string_view domain = name.substr(0, slash);
    if (domain.size() > kLongestDriver || !model::IsDnsSubdomain(domain)) return false;
    name.remove_prefix(slash + 1);
  }
  if (name.empty() || name.size() > 32 || absl::ascii_isdigit(name.front())) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

// "1.2.3" with or without more behind it.
bool IsVersion(absl::string_view text) {
  if (text.size() > kLongestValue) return false;
  const std::vector<absl::string_view> numbers =
      absl::StrSplit(text.substr(0, text.find_first_of("-+")), '.');
  uint64_t number = 0;
  return numbers.size() == 3 &&
         std::all_of(numbers.begin(), numbers.end(), [&](absl::string_view part) {
           return absl::SimpleAtoi(part, &number) && (part == "0" || part.front() != '0');
         });
}

class DeviceReader {
 public:
  explicit DeviceReader(const FieldReader& fields) : fields_(fields) {}

  absl::Status Entry(const Json& node, const std::string& field, model::NodeDevices& out) const {
    std::string driver;
    int64_t count = 0;
    model::Device device;
    FAIRLEAD_RETURN_IF_ERROR(fields_.Map(node, field,
                                         {{"driver", fields_.Text(&driver)},
                                          {"count", fields_.Integer(&count, 1)},
                                          {"attributes", Attributes(device)},
                                          {"capacity", Capacity(device)}},
                                         {"driver", "count"}));
    if (driver.size() > kLongestDriver || !model::IsDnsSubdomain(driver)) {
      return fields_.Error(node, absl::StrCat(field, ".driver"),
                           "must be the name of a DRA driver, as gpu.nvidia.com");
    }
    if (device.attributes.size() + device.capacity.size() > kMostAttributes) {
      return fields_.Error(
          node, field,
          absl::StrCat("a device has ", kMostAttributes, " attributes and capacities at most"));
    }
    size_t before = 0;
    for (const model::ResourceSlice& known : out.slices) before += known.devices.size();
    if (count > model::kMostDeclaredDevices - static_cast<int64_t>(before)) {
      return fields_.Error(
          node, absl::StrCat(field, ".count"),
          absl::StrCat("a type has ", model::kMostDeclaredDevices, " devices at most"));
    }
    model::AddDevices(driver, device, count, out);
    return absl::OkStatus();
  }

 private:
  FieldReader::Handler Attributes(model::Device& device) const {
    return [this, &device](const Json& node, const std::string& field) {
      return fields_.AnyMap(
          node, field,
          [&](const std::string& key, const Json& value, const std::string& at) -> absl::Status {
            if (!IsAttributeName(key)) {
              return fields_.ErrorAt(value.key_place(), at, "is no name of an attribute");
            }
            return Value(value, at, device.attributes[key]);
          });
    };
  }
  absl::Status Value(const Json& node, const std::string& field,
                     model::DeviceAttribute& out) const {
    std::string type = "string";
    const Json* value = &node;
    if (node.is_object()) {
      if (node.fields().size() != 1) {
        return fields_.Error(node, field, "must have one of string, int, bool, version");
      }
      type = node.fields().front().first;
      value = &node.fields().front().second;
    }
    if (!value->is_text()) return fields_.Error(*value, field, "must be a plain value");
    const std::string text(value->text());
    if (type == "string" && text.size() <= kLongestValue) {
      out.value = text;
    } else if (int64_t number = 0; type == "int" && absl::SimpleAtoi(text, &number)) {
      out.value = number;
    } else if (type == "bool" && (text == "true" || text == "false")) {
      out.value = text == "true";
    } else if (type == "version" && IsVersion(text)) {
      out.value = model::DeviceVersion{text};
    } else {
      return fields_.Error(*value, field,
                           "must be {string: TEXT} of at most 64 characters, {int: 3}, "
                           "{bool: true} or {version: 1.2.3}");
    }
    return absl::OkStatus();
  }
  FieldReader::Handler Capacity(model::Device& device) const {
    return [this, &device](const Json& node, const std::string& field) {
      return fields_.AnyMap(
          node, field,
          [&](const std::string& key, const Json& value, const std::string& at) -> absl::Status {
            if (!IsAttributeName(key)) {
              return fields_.ErrorAt(value.key_place(), at, "is no name of a capacity");
            }
            if (!value.is_text()) return fields_.Error(value, at, "must be a quantity");
            const absl::StatusOr<int64_t> amount = model::ParseQuantity(value.text(), 1);
            if (!amount.ok()) return fields_.Error(value, at, amount.status().message());
            if (*amount < 0) return fields_.Error(value, at, "must not be negative");
            device.capacity[key] = *amount;
            return absl::OkStatus();
          });
    };
  }

  const FieldReader& fields_;
};

}  // namespace

FieldReader::Handler ReadDeclaredDevices(const FieldReader& reader,
                                         std::shared_ptr<const model::NodeDevices>* out) {
  return [&reader, out](const Json& node, const std::string& field) -> absl::Status {
    auto devices = std::make_shared<model::NodeDevices>();
    const DeviceReader entries(reader);
    FAIRLEAD_RETURN_IF_ERROR(reader.List(node, field, [&](const Json& item, const std::string& at) {
      return entries.Entry(item, at, *devices);
    }));
    if (devices->slices.empty()) return reader.Error(node, field, "must not be empty");
    *out = std::move(devices);
    return absl::OkStatus();
  };
}

}  // namespace fairlead::hook
