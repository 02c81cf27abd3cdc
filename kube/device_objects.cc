#include "kube/device_objects.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/json_codec.h"
#include "kube/json_writer.h"
#include "scheduler/model/quantity.h"

namespace fairlead::kube {
namespace {

// [{cel: {expression}}]
void ReadSelectors(JsonReader& reader, JsonValue value, const FieldPath& path,
                   std::vector<std::string>& out) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      if (key != "cel") return reader.problems().Add(at.Field(key), "is not understood");
      const FieldPath cel = at.Field(key);
      reader.Fields(v, cel, [&](absl::string_view field, JsonValue text) {
        if (field == "expression") reader.String(text, cel.Field(field), out.emplace_back());
      });
    });
  });
}

void ReadClassSpec(JsonReader& reader, JsonValue value, const FieldPath& path,
                   model::DeviceClass& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key == "selectors") ReadSelectors(reader, v, path.Field(key), out.selectors);
  });
}

void ReadAttribute(JsonReader& reader, JsonValue value, const FieldPath& path,
                   std::map<std::string, model::DeviceAttribute>& out, absl::string_view name) {
  model::DeviceAttribute& attribute = out[std::string(name)];
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "int") attribute.value = reader.Int64(v, at).value_or(0);
    if (key == "bool") {
      bool set = false;
      reader.Bool(v, at, set);
      attribute.value = set;
    }
    if (key == "string" || key == "version") {
      std::string text;
      reader.String(v, at, text);
      attribute.value = std::move(text);
    }
  });
}

void ReadCapacity(JsonReader& reader, JsonValue value, const FieldPath& path, int64_t& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key != "value") return;
    const FieldPath at = path.Field(key);
    const std::optional<absl::string_view> text = reader.NumberOrText(v, at);
    if (!text.has_value()) return;
    const absl::StatusOr<int64_t> amount = model::ParseQuantity(*text, 1);
    if (amount.ok()) {
      out = *amount;
    } else {
      reader.problems().Add(at, absl::StrCat(Quoted(*text), " is not an amount"));
    }
  });
}

void ReadDevice(JsonReader& reader, JsonValue value, const FieldPath& path, model::Device& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "name") reader.String(v, at, out.name);
    if (key == "attributes") {
      reader.Fields(v, at, [&](absl::string_view name, JsonValue attribute) {
        ReadAttribute(reader, attribute, at.Key(name), out.attributes, name);
      });
    }
    if (key == "capacity") {
      reader.Fields(v, at, [&](absl::string_view name, JsonValue amount) {
        ReadCapacity(reader, amount, at.Key(name), out.capacity[std::string(name)]);
      });
    }
  });
}

void ReadSliceSpec(JsonReader& reader, JsonValue value, const FieldPath& path,
                   model::ResourceSlice& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "driver") reader.String(v, at, out.driver);
    if (key == "nodeName") reader.String(v, at, out.node_name);
    if (key == "pool") {
      reader.Fields(v, at, [&](absl::string_view field, JsonValue item) {
        if (field == "name") reader.String(item, at.Field(field), out.pool);
        if (field == "generation") {
          out.generation = reader.Int64(item, at.Field(field)).value_or(0);
        }
      });
    }
    if (key == "devices") {
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        ReadDevice(reader, item, at.Item(i), out.devices.emplace_back());
      });
    }
  });
}

void ReadExactly(JsonReader& reader, JsonValue value, const FieldPath& path,
                 model::DeviceRequest& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "deviceClassName") return reader.String(v, at, out.device_class);
    if (key == "selectors") return ReadSelectors(reader, v, at, out.selectors);
    if (key == "count") {
      const std::optional<int64_t> count = reader.Int64(v, at);
      if (!count.has_value()) return;
      if (*count < 1 || *count > model::kMaxClaimDevices) {
        return reader.problems().Add(
            at, absl::StrCat(*count, " is not within 1 and ", model::kMaxClaimDevices));
      }
      out.count = *count;
    } else if (key == "allocationMode") {
      const absl::string_view mode = reader.Text(v, at);
      out.all = mode == "All";
      if (mode != "All" && mode != "ExactCount") {
        reader.problems().Add(at, absl::StrCat(Quoted(mode), " is not understood"));
      }
    } else if (key == "adminAccess") {
      bool admin = false;
      reader.Bool(v, at, admin);
      if (admin) reader.problems().Add(at, "is not placed yet");
    } else if (key == "capacity") {
      reader.problems().Add(at, "is not placed yet");
    }
  });
}

void ReadRequest(JsonReader& reader, JsonValue value, const FieldPath& path,
                 model::DeviceRequest& out) {
  bool exact = false;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "name") reader.String(v, at, out.name);
    if (key == "exactly") {
      exact = true;
      ReadExactly(reader, v, at, out);
    }
    if (key == "firstAvailable") reader.problems().Add(at, "is not placed yet: ask exactly");
  });
  if (!exact) reader.problems().Add(path.Field("exactly"), "must be specified");
}

void ReadClaimSpec(JsonReader& reader, JsonValue value, const FieldPath& path,
                   model::ResourceClaim& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key != "devices") return;
    const FieldPath at = path.Field(key);
    reader.Fields(v, at, [&](absl::string_view field, JsonValue list) {
      const FieldPath items = at.Field(field);
      if (field == "requests") {
        reader.Items(list, items, [&](size_t i, JsonValue item) {
          ReadRequest(reader, item, items.Item(i), out.requests.emplace_back());
        });
      } else if (field == "constraints") {
        reader.Items(list, items, [&](size_t i, JsonValue) {
          reader.problems().Add(items.Item(i), "constraints between devices are not placed yet");
        });
      }
    });
  });
}

void ReadResult(JsonReader& reader, JsonValue value, const FieldPath& path,
                model::AllocatedDevice& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "request") reader.String(v, at, out.request);
    if (key == "driver") reader.String(v, at, out.driver);
    if (key == "pool") reader.String(v, at, out.pool);
    if (key == "device") reader.String(v, at, out.device);
  });
}

void ReadAllocation(JsonReader& reader, JsonValue value, const FieldPath& path,
                    model::ResourceClaim& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key != "devices") return;
    const FieldPath at = path.Field(key);
    reader.Fields(v, at, [&](absl::string_view field, JsonValue list) {
      if (field != "results") return;
      const FieldPath results = at.Field(field);
      reader.Items(list, results, [&](size_t i, JsonValue item) {
        ReadResult(reader, item, results.Item(i), out.devices.emplace_back());
      });
    });
  });
}

void ReadClaimStatus(JsonReader& reader, JsonValue value, const FieldPath& path,
                     model::ResourceClaim& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "allocation") {
      out.allocated = true;
      ReadAllocation(reader, v, at, out);
    }
    if (key == "reservedFor") {
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        const FieldPath consumer = at.Item(i);
        reader.Fields(item, consumer, [&](absl::string_view field, JsonValue uid) {
          if (field == "uid") {
            reader.String(uid, consumer.Field(field), out.reserved_for.emplace_back());
          }
        });
      });
    }
  });
}

template <typename T, typename ReadSpec>
absl::StatusOr<model::DeviceObject> Decode(absl::string_view json, ReadSpec read_spec) {
  T out;
  const absl::Status status = ReadJson(json, [&](JsonReader& reader, JsonValue value) {
    const FieldPath root;
    reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
      const FieldPath at = root.Field(key);
      if (key == "metadata") json::ReadMeta(reader, v, at, out.meta);
      if (key == "spec") read_spec(reader, v, at, out);
      if constexpr (std::is_same_v<T, model::ResourceClaim>) {
        if (key == "status") ReadClaimStatus(reader, v, at, out);
      }
    });
    out.invalid = reader.problems().Text();
  });
  if (!status.ok()) return status;
  return model::DeviceObject(std::move(out));
}

}  // namespace

absl::StatusOr<model::DeviceObject> DecodeDeviceObject(absl::string_view json) {
  std::string kind;
  std::string version;
  const absl::Status status = ReadJson(json, [&](JsonReader& reader, JsonValue value) {
    const FieldPath root;
    reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
      if (key == "kind") reader.String(v, root.Field(key), kind);
      if (key == "apiVersion") reader.String(v, root.Field(key), version);
    });
  });
  if (!status.ok()) return status;
  if (version == "resource.k8s.io/v1") {
    if (kind == "DeviceClass") return Decode<model::DeviceClass>(json, ReadClassSpec);
    if (kind == "ResourceSlice") return Decode<model::ResourceSlice>(json, ReadSliceSpec);
    if (kind == "ResourceClaim") return Decode<model::ResourceClaim>(json, ReadClaimSpec);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(version, " ", kind, " is no device object of resource.k8s.io/v1"));
}

std::string EncodeClaimStatus(const model::ResourceClaim& claim, absl::string_view node) {
  JsonWriter json;
  json.BeginObject();
  if (claim.allocated) {
    json.Key("allocation").BeginObject().Key("devices").BeginObject().Key("results").BeginArray();
    for (const model::AllocatedDevice& device : claim.devices) {
      json.BeginObject()
          .Field("request", device.request)
          .Field("driver", device.driver)
          .Field("pool", device.pool)
          .Field("device", device.device)
          .EndObject();
    }
    json.EndArray().EndObject();
    json.Key("nodeSelector").BeginObject().Key("nodeSelectorTerms").BeginArray().BeginObject();
    json.Key("matchFields").BeginArray().BeginObject();
    json.Field("key", "metadata.name").Field("operator", "In").Key("values").BeginArray();
    json.String(node).EndArray().EndObject().EndArray();
    json.EndObject().EndArray().EndObject().EndObject();
  }
  if (!claim.reserved_for.empty()) {
    json.Key("reservedFor").BeginArray();
    for (const std::string& uid : claim.reserved_for) {
      json.BeginObject().Field("resource", "pods").Field("uid", uid).EndObject();
    }
    json.EndArray();
  }
  json.EndObject();
  return std::move(json).Take();
}

}  // namespace fairlead::kube
