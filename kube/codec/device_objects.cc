// ResourceClaim, ResourceSlice and DeviceClass (resource.k8s.io/v1), and DeviceTaintRule
// (resource.k8s.io/v1beta2) from JSON.
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kube/codec/json_codec.h"
#include "scheduler/model/device_conditions.h"
#include "scheduler/model/devices.h"
#include "scheduler/model/quantity.h"

namespace fairlead::kube::json {
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

// The text of an object as it was written.
std::string RawObject(JsonReader& reader, JsonValue value, const FieldPath& path) {
  std::string raw;
  reader.RawFields(value, path, raw, [](absl::string_view, JsonValue) {});
  return raw;
}

void ReadTolerations(JsonReader& reader, JsonValue value, const FieldPath& path,
                     model::DeviceRequest& out) {
  out.tolerations.clear();
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    std::string raw;
    model::DeviceToleration& toleration = out.tolerates.emplace_back();
    reader.RawFields(item, at, raw, [&](absl::string_view key, JsonValue v) {
      const FieldPath field = at.Field(key);
      if (key == "key") reader.String(v, field, toleration.key);
      if (key == "value") reader.String(v, field, toleration.value);
      if (key == "effect") reader.String(v, field, toleration.effect);
      if (key != "operator") return;
      const absl::string_view op = reader.Text(v, field);
      toleration.exists = op == "Exists";
      if (!toleration.exists && op != "Equal" && !op.empty()) {
        reader.problems().Add(field, absl::StrCat(Quoted(op), " is not understood"));
      }
    });
    absl::StrAppend(&out.tolerations, out.tolerations.empty() ? "[" : ",", raw);
  });
  if (!out.tolerations.empty()) out.tolerations += "]";
}

// [{requests, opaque: {driver, parameters}}]
void ReadConfig(JsonReader& reader, JsonValue value, const FieldPath& path,
                std::vector<model::DeviceConfig>& out) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    model::DeviceConfig config;
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      if (key == "requests") reader.Strings(v, at.Field(key), config.requests);
      if (key == "opaque") config.opaque = RawObject(reader, v, at.Field(key));
    });
    if (!config.opaque.empty()) out.push_back(std::move(config));
  });
}

void ReadClassSpec(JsonReader& reader, JsonValue value, const FieldPath& path,
                   model::DeviceClass& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key == "selectors") ReadSelectors(reader, v, path.Field(key), out.selectors);
    if (key == "config") ReadConfig(reader, v, path.Field(key), out.config);
    if (key == "extendedResourceName") {
      reader.String(v, path.Field(key), out.extended_resource);
    }
  });
}

// A value of an unknown kind (a list) makes no attribute: it equals nothing.
void ReadAttribute(JsonReader& reader, JsonValue value, const FieldPath& path,
                   std::map<std::string, model::DeviceAttribute>& out, absl::string_view name) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    model::DeviceAttribute attribute;
    if (key == "int") {
      attribute.value = reader.Int64(v, at).value_or(0);
    } else if (key == "bool") {
      bool set = false;
      reader.Bool(v, at, set);
      attribute.value = set;
    } else if (key == "string" || key == "version") {
      std::string text;
      reader.String(v, at, text);
      if (key == "version") {
        attribute.value = model::DeviceVersion{std::move(text)};
      } else {
        attribute.value = std::move(text);
      }
    } else {
      return;
    }
    out[std::string(name)] = std::move(attribute);
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

void ReadDeviceTaint(JsonReader& reader, JsonValue value, const FieldPath& path,
                     model::DeviceTaint& out) {
  reader.Fields(value, path, [&](absl::string_view field, JsonValue v) {
    if (field == "key") reader.String(v, path.Field(field), out.key);
    if (field == "value") reader.String(v, path.Field(field), out.value);
    if (field == "effect") reader.String(v, path.Field(field), out.effect);
  });
}

// Those that keep claims away.
void ReadDeviceTaints(JsonReader& reader, JsonValue value, const FieldPath& path,
                      std::vector<model::DeviceTaint>& out) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    model::DeviceTaint taint;
    ReadDeviceTaint(reader, item, path.Item(i), taint);
    if (taint.KeepsAway()) out.push_back(std::move(taint));
  });
}

void ReadTaintRuleSpec(JsonReader& reader, JsonValue value, const FieldPath& path,
                       model::DeviceTaintRule& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "taint") ReadDeviceTaint(reader, v, at, out.taint);
    if (key != "deviceSelector") return;
    reader.Fields(v, at, [&](absl::string_view field, JsonValue text) {
      if (field == "driver") reader.String(text, at.Field(field), out.driver);
      if (field == "pool") reader.String(text, at.Field(field), out.pool);
      if (field == "device") reader.String(text, at.Field(field), out.device);
    });
  });
}

using CountersMilli = std::map<std::string, int64_t>;

// {name: {value: quantity}}
void ReadCounters(JsonReader& reader, JsonValue value, const FieldPath& path, CountersMilli& out) {
  reader.Fields(value, path, [&](absl::string_view name, JsonValue counter) {
    const FieldPath at = path.Key(name);
    reader.Fields(counter, at, [&](absl::string_view key, JsonValue v) {
      if (key != "value") return;
      const std::optional<absl::string_view> text = reader.NumberOrText(v, at.Field(key));
      if (!text.has_value()) return;
      const absl::StatusOr<int64_t> amount_milli = model::ParseQuantity(*text, 1000);
      if (amount_milli.ok() && *amount_milli >= 0) {
        out[std::string(name)] = *amount_milli;
        return;
      }
      reader.problems().Add(at.Field(key), absl::StrCat(Quoted(*text), " is not an amount"));
    });
  });
}

// [{`name_field`: set, counters}]
void ReadCounterSets(JsonReader& reader, JsonValue value, const FieldPath& path,
                     absl::string_view name_field,
                     absl::FunctionRef<void(std::string set, CountersMilli)> add) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    std::string set;
    CountersMilli counters;
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      if (key == name_field) reader.String(v, at.Field(key), set);
      if (key == "counters") ReadCounters(reader, v, at.Field(key), counters);
    });
    add(std::move(set), std::move(counters));
  });
}

// Of a device, or of a result of an allocation.
template <typename T>
void ReadBindingConditions(JsonReader& reader, absl::string_view key, JsonValue v,
                           const FieldPath& at, T& out) {
  if (key == "bindingConditions") reader.Strings(v, at, out.binding_conditions);
  if (key == "bindingFailureConditions") reader.Strings(v, at, out.binding_failure_conditions);
}

// One of the fields that say which nodes can use devices.
void ReadNodeScope(JsonReader& reader, absl::string_view key, JsonValue v, const FieldPath& at,
                   model::NodeScope& out) {
  if (key == "nodeName") reader.String(v, at, out.name);
  if (key == "allNodes") reader.Bool(v, at, out.all);
  if (key == "nodeSelector") ReadNodeSelector(reader, v, at, out.terms);
}

void ReadDevice(JsonReader& reader, JsonValue value, const FieldPath& path, model::Device& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    ReadBindingConditions(reader, key, v, at, out);
    if (key == "allowMultipleAllocations") reader.Bool(v, at, out.for_several);
    ReadNodeScope(reader, key, v, at, out.nodes);
    if (key == "bindsToNode") reader.Bool(v, at, out.binds_to_node);
    if (key == "name") reader.String(v, at, out.name);
    if (key == "taints") ReadDeviceTaints(reader, v, at, out.taints);
    if (key == "consumesCounters") {
      ReadCounterSets(reader, v, at, "counterSet",
                      [&](const std::string& set, const CountersMilli& counters) {
                        for (const auto& [counter, amount_milli] : counters) {
                          out.uses.push_back({set, counter, amount_milli});
                        }
                      });
    }
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
    ReadNodeScope(reader, key, v, at, out.nodes);
    if (key == "perDeviceNodeSelection") reader.Bool(v, at, out.per_device);
    if (key == "pool") {
      reader.Fields(v, at, [&](absl::string_view field, JsonValue item) {
        if (field == "name") reader.String(item, at.Field(field), out.pool);
        if (field == "generation") {
          out.generation = reader.Int64(item, at.Field(field)).value_or(0);
        }
        if (field == "resourceSliceCount") {
          out.slice_count = reader.Int64(item, at.Field(field)).value_or(0);
        }
      });
    }
    if (key == "sharedCounters") {
      ReadCounterSets(reader, v, at, "name", [&](std::string set, CountersMilli counters) {
        out.counters_milli[std::move(set)] = std::move(counters);
      });
    }
    if (key == "devices") {
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        ReadDevice(reader, item, at.Item(i), out.devices.emplace_back());
      });
    }
  });
}

// One field of `exactly`, or of an entry of `firstAvailable`.
void ReadAskedDevices(JsonReader& reader, absl::string_view key, JsonValue v, const FieldPath& at,
                      model::DeviceRequest& out) {
  if (key == "deviceClassName") return reader.String(v, at, out.device_class);
  if (key == "selectors") return ReadSelectors(reader, v, at, out.selectors);
  if (key == "tolerations") return ReadTolerations(reader, v, at, out);
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
    reader.Bool(v, at, out.admin_access);
  } else if (key == "capacity") {
    reader.problems().Add(at, "is not placed yet");
  }
}

void ReadSubRequest(JsonReader& reader, JsonValue value, const FieldPath& path,
                    model::DeviceRequest& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key == "name") return reader.String(v, path.Field(key), out.name);
    // The API has no such field.
    if (key == "adminAccess") return reader.problems().Add(path.Field(key), "is not understood");
    ReadAskedDevices(reader, key, v, path.Field(key), out);
  });
  if (out.name.empty()) reader.problems().Add(path.Field("name"), "must be specified");
}

void ReadRequest(JsonReader& reader, JsonValue value, const FieldPath& path,
                 model::DeviceRequest& out) {
  bool exact = false;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "name") reader.String(v, at, out.name);
    if (key == "exactly") {
      exact = true;
      reader.Fields(v, at, [&](absl::string_view field, JsonValue item) {
        ReadAskedDevices(reader, field, item, at.Field(field), out);
      });
    }
    if (key == "firstAvailable") {
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        ReadSubRequest(reader, item, at.Item(i), out.first_available.emplace_back());
      });
    }
  });
  if (exact != out.first_available.empty()) {
    reader.problems().Add(path, "must have one of exactly and firstAvailable");
  }
}

void ReadConstraint(JsonReader& reader, JsonValue value, const FieldPath& path,
                    model::DeviceConstraint& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "requests") return reader.Strings(v, at, out.requests);
    out.distinct = key == "distinctAttribute";
    if (!out.distinct && key != "matchAttribute") {
      return reader.problems().Add(at, "is not placed yet");
    }
    reader.String(v, at, out.attribute);
    if (!absl::StrContains(out.attribute, '/')) {
      reader.problems().Add(at, absl::StrCat(Quoted(out.attribute), " has no domain"));
    }
  });
  // A constraint of an unknown kind may not be ignored.
  if (out.attribute.empty()) {
    reader.problems().Add(path, "must have one of matchAttribute and distinctAttribute");
  }
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
        reader.Items(list, items, [&](size_t i, JsonValue item) {
          ReadConstraint(reader, item, items.Item(i), out.constraints.emplace_back());
        });
      } else if (field == "config") {
        ReadConfig(reader, list, items, out.config);
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
    if (key == "adminAccess") reader.Bool(v, at, out.admin_access);
    ReadBindingConditions(reader, key, v, at, out);
  });
}

void ReadReport(JsonReader& reader, JsonValue value, const FieldPath& path,
                model::DeviceReport& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "driver") reader.String(v, at, out.driver);
    if (key == "pool") reader.String(v, at, out.pool);
    if (key == "device") reader.String(v, at, out.device);
    if (key != "conditions") return;
    reader.Items(v, at, [&](size_t i, JsonValue item) {
      const FieldPath of = at.Item(i);
      model::DeviceCondition& condition = out.conditions.emplace_back();
      reader.Fields(item, of, [&](absl::string_view field, JsonValue text) {
        if (field == "type") reader.String(text, of.Field(field), condition.type);
        if (field == "status") condition.is_true = reader.Text(text, of.Field(field)) == "True";
        if (field == "reason") reader.String(text, of.Field(field), condition.reason);
        if (field == "message") reader.String(text, of.Field(field), condition.message);
      });
    });
  });
}

void ReadAllocation(JsonReader& reader, JsonValue value, const FieldPath& path,
                    model::ResourceClaim& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "nodeSelector") return ReadNodeSelector(reader, v, at, out.node_terms);
    if (key == "allocationTimestamp") return reader.Time(v, at, out.allocated_at);
    if (key != "devices") return;
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
    if (key == "devices") {
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        ReadReport(reader, item, at.Item(i), out.reports.emplace_back());
      });
    }
    if (key == "reservedFor") {
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        const FieldPath consumer = at.Item(i);
        std::string resource;
        reader.Fields(item, consumer, [&](absl::string_view field, JsonValue text) {
          if (field == "uid") {
            reader.String(text, consumer.Field(field), out.reserved_for.emplace_back());
          }
          if (field == "resource") reader.String(text, consumer.Field(field), resource);
        });
        if (resource != "pods") out.reserved_for_others = true;
      });
    }
  });
}

}  // namespace

void Read(JsonReader& reader, JsonValue value, model::DeviceClass& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kDeviceClass);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key == "spec") ReadClassSpec(reader, v, at, out);
  });
  out.invalid = reader.problems().Text();
}

void Read(JsonReader& reader, JsonValue value, model::ResourceSlice& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kResourceSlice);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key == "spec") ReadSliceSpec(reader, v, at, out);
  });
  out.invalid = reader.problems().Text();
}

void Read(JsonReader& reader, JsonValue value, model::DeviceTaintRule& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kDeviceTaintRule);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key == "spec") ReadTaintRuleSpec(reader, v, at, out);
  });
  out.invalid = reader.problems().Text();
}

void Read(JsonReader& reader, JsonValue value, model::ResourceClaim& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kResourceClaim);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta, &out.finalizers);
    if (key == "spec") ReadClaimSpec(reader, v, at, out);
    if (key == "status") ReadClaimStatus(reader, v, at, out);
  });
  model::KeepBindingConditions(out);
  out.invalid = reader.problems().Text();
}

}  // namespace fairlead::kube::json
