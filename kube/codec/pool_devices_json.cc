#include "kube/codec/pool_devices_json.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/model/device_names.h"
#include "scheduler/model/qualified_name.h"
#include "scheduler/model/quantity.h"

namespace fairlead::kube::json {
namespace {

constexpr size_t kMostPoolEntries = 16;

void ReadPoolAttribute(JsonReader& reader, JsonValue value, const FieldPath& path,
                       model::DeviceAttribute& out) {
  int kinds = 0;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    ++kinds;
    if (key == "int") {
      out.value = reader.Int64(v, at).value_or(0);
    } else if (key == "bool") {
      bool set = false;
      reader.Bool(v, at, set);
      out.value = set;
    } else if (key == "string") {
      std::string text;
      reader.String(v, at, text);
      out.value = std::move(text);
    } else if (key == "version") {
      model::DeviceVersion version;
      reader.String(v, at, version.text);
      out.value = std::move(version);
    } else {
      --kinds;
    }
  });
  if (kinds != 1) reader.problems().Add(path, "must have one of string, int, bool, version");
}

void ReadPoolCapacity(JsonReader& reader, JsonValue value, const FieldPath& path, int64_t& out) {
  const std::optional<absl::string_view> text = reader.NumberOrText(value, path);
  if (!text.has_value()) return;
  const absl::StatusOr<int64_t> amount = model::ParseQuantity(*text, 1);
  if (!amount.ok() || *amount < 0) {
    return reader.problems().Add(path, "must be a quantity that is not negative");
  }
  out = *amount;
}

// Caps count the GPUs that the type has, so nothing else can say how many they are.
void CheckPoolDevices(JsonReader& reader, const FieldPath& path, const model::PoolDevices& entry) {
  const auto add = [&](absl::string_view field, absl::string_view problem) {
    reader.problems().Add(path.Field(field), problem);
  };
  if (entry.driver.empty() || entry.driver.size() > 63 || !model::IsDnsSubdomain(entry.driver)) {
    return add("driver", "must be the name of a DRA driver, as gpu.nvidia.com");
  }
  const bool gpus = model::IsGpuDriver(entry.driver);
  if (gpus && entry.count.has_value()) {
    add("count", "must be left out: each GPU of the instance type is one");
  } else if (!gpus && !entry.count.has_value()) {
    add("count", "must be set");
  } else if (entry.count.value_or(1) < 1 || entry.count.value_or(1) > model::kMostDeclaredDevices) {
    add("count", absl::StrCat("must be from 1 to ", model::kMostDeclaredDevices));
  }
}

}  // namespace

void ReadPoolDevices(JsonReader& reader, JsonValue value, const FieldPath& path,
                     std::vector<model::PoolDevices>& out) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    model::PoolDevices& entry = out.emplace_back();
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      const FieldPath field = at.Field(key);
      if (key == "driver") reader.String(v, field, entry.driver);
      if (key == "count") entry.count = reader.Int64(v, field).value_or(0);
      if (key == "attributes") {
        reader.Fields(v, field, [&](absl::string_view name, JsonValue attribute) {
          ReadPoolAttribute(reader, attribute, field.Key(name),
                            entry.attributes[std::string(name)]);
        });
      }
      if (key == "capacity") {
        reader.Fields(v, field, [&](absl::string_view name, JsonValue amount) {
          ReadPoolCapacity(reader, amount, field.Key(name), entry.capacity[std::string(name)]);
        });
      }
    });
    CheckPoolDevices(reader, at, entry);
  });
  if (out.size() > kMostPoolEntries) {
    reader.problems().Add(path, absl::StrCat("must have ", kMostPoolEntries, " entries at most"));
  }
}

}  // namespace fairlead::kube::json
