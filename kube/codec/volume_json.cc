// PersistentVolumeClaim and PersistentVolume (v1), StorageClass, CSINode, CSIDriver,
// CSIStorageCapacity and VolumeAttachment (storage.k8s.io/v1) from JSON.
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kube/codec/json_codec.h"
#include "scheduler/model/quantity.h"
#include "scheduler/model/volumes.h"

namespace fairlead::kube::json {
namespace {

constexpr size_t kMaxQuantityBytes = 64;

// A quantity in whole bytes, rounded up; no value if it is none.
std::optional<int64_t> ReadBytes(JsonReader& reader, JsonValue value, const FieldPath& path) {
  const std::optional<absl::string_view> text = reader.NumberOrText(value, path);
  if (!text.has_value()) return std::nullopt;
  const absl::StatusOr<int64_t> bytes =
      text->size() > kMaxQuantityBytes
          ? absl::InvalidArgumentError(absl::StrCat(Quoted(*text), " is not a quantity"))
          : model::ParseQuantity(*text, 1);
  if (!bytes.ok()) {
    reader.problems().Add(path, bytes.status().message());
  } else if (*bytes < 0) {
    reader.problems().Add(path, absl::StrCat(Quoted(*text), " must not be negative"));
  } else {
    return *bytes;
  }
  return std::nullopt;
}

// "storage" of a map of quantities.
std::optional<int64_t> ReadStorage(JsonReader& reader, JsonValue value, const FieldPath& path) {
  std::optional<int64_t> bytes;
  reader.Fields(value, path, [&](absl::string_view name, JsonValue amount) {
    if (name == "storage") bytes = ReadBytes(reader, amount, path.Key(name));
  });
  return bytes;
}

// Unknown modes are left out.
void ReadAccessModes(JsonReader& reader, JsonValue value, const FieldPath& path,
                     model::AccessModes& out) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const absl::string_view mode = reader.Text(item, path.Item(i));
    if (mode == "ReadWriteOnce") out |= model::kReadWriteOnce;
    if (mode == "ReadOnlyMany") out |= model::kReadOnlyMany;
    if (mode == "ReadWriteMany") out |= model::kReadWriteMany;
    if (mode == "ReadWriteOncePod") out |= model::kReadWriteOncePod;
  });
}

void ReadVolumeMode(JsonReader& reader, JsonValue value, const FieldPath& path, bool& block) {
  if (!reader.Is(value, JsonType::string, path)) return;
  const absl::string_view mode = reader.Text(value, path);
  block = mode == "Block";
  if (!block && mode != "Filesystem") {
    reader.problems().Add(path, absl::StrCat(Quoted(mode), " is none of Filesystem, Block"));
  }
}

// A selector that upstream refuses to use is a problem: no rule says what it matches.
void ReadSelector(JsonReader& reader, JsonValue value, const FieldPath& path,
                  model::LabelSelector& out) {
  if (!reader.Is(value, JsonType::object, path)) return;
  ReadLabelSelector(reader, value, path, out);
  for (const model::SelectorRequirement& requirement : out.requirements) {
    const bool compares = requirement.op == model::SelectorOperator::kIn ||
                          requirement.op == model::SelectorOperator::kNotIn;
    if (compares == requirement.values.empty()) {
      reader.problems().Add(path,
                            absl::StrCat("the requirement on ", Quoted(requirement.key), " must ",
                                         compares ? "have" : "not have", " values"));
    }
  }
}

// The names of storage classes that one object has.
struct ClassNames {
  std::optional<std::string> annotation;
  std::string field;
  // The annotation goes before the field, also if it is empty.
  std::string Take() { return std::move(annotation.has_value() ? *annotation : field); }
};

void ReadClaimMeta(JsonReader& reader, JsonValue value, const FieldPath& path, ClassNames& names,
                   model::PersistentVolumeClaim& out) {
  ReadMeta(reader, value, path, out.meta,
           [&](absl::string_view key, JsonValue v, const FieldPath& at) {
             if (key == model::kStorageClassAnnotation) {
               reader.String(v, at, names.annotation.emplace());
             } else if (key == model::kBindCompletedAnnotation) {
               out.bind_completed = true;
             } else if (key == model::kSelectedNodeAnnotation) {
               reader.String(v, at, out.selected_node);
             }
           });
}

void ReadClaimSpec(JsonReader& reader, JsonValue value, const FieldPath& path, ClassNames& names,
                   model::PersistentVolumeClaim& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "storageClassName") return reader.String(v, at, names.field);
    if (key == "volumeName") return reader.String(v, at, out.volume_name);
    if (key == "accessModes") return ReadAccessModes(reader, v, at, out.access_modes);
    if (key == "volumeMode") return ReadVolumeMode(reader, v, at, out.block);
    if (key == "selector") return ReadSelector(reader, v, at, out.selector);
    if (key == "volumeAttributesClassName") return reader.String(v, at, out.attributes_class);
    if (key != "resources") return;
    reader.Fields(v, at, [&](absl::string_view field, JsonValue amounts) {
      if (field != "requests") return;
      const std::optional<int64_t> bytes = ReadStorage(reader, amounts, at.Field(field));
      out.has_request = bytes.has_value();
      out.requested_bytes = bytes.value_or(0);
    });
  });
}

void ReadVolumeMeta(JsonReader& reader, JsonValue value, const FieldPath& path, ClassNames& names,
                    model::PersistentVolume& out) {
  ReadMeta(reader, value, path, out.meta,
           [&](absl::string_view key, JsonValue v, const FieldPath& at) {
             if (key == model::kStorageClassAnnotation) {
               reader.String(v, at, names.annotation.emplace());
             }
           });
}

void ReadClaimRef(JsonReader& reader, JsonValue value, const FieldPath& path,
                  model::PersistentVolume::ClaimRef& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "namespace") reader.String(v, at, out.ns);
    if (key == "name") reader.String(v, at, out.name);
    if (key == "uid") reader.String(v, at, out.uid);
  });
}

void ReadVolumeSpec(JsonReader& reader, JsonValue value, const FieldPath& path, ClassNames& names,
                    model::PersistentVolume& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "storageClassName") return reader.String(v, at, names.field);
    if (key == "accessModes") return ReadAccessModes(reader, v, at, out.access_modes);
    if (key == "volumeMode") return ReadVolumeMode(reader, v, at, out.block);
    if (key == "volumeAttributesClassName") return reader.String(v, at, out.attributes_class);
    if (key == "claimRef") return ReadClaimRef(reader, v, at, out.claim.emplace());
    if (key == "capacity") {
      out.capacity_bytes = ReadStorage(reader, v, at).value_or(0);
    } else if (key == "nodeAffinity") {
      reader.Fields(v, at, [&](absl::string_view field, JsonValue selector) {
        if (field != "required") return;
        out.has_node_affinity = true;
        ReadNodeSelector(reader, selector, at.Field(field), out.node_terms);
      });
    } else if (key == "csi") {
      reader.Fields(v, at, [&](absl::string_view field, JsonValue item) {
        if (field == "driver") reader.String(item, at.Field(field), out.csi_driver);
        if (field == "volumeHandle") reader.String(item, at.Field(field), out.csi_handle);
      });
    }
  });
}

// True if status.phase is `wanted`.
void ReadPhase(JsonReader& reader, JsonValue value, const FieldPath& path, absl::string_view wanted,
               bool& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key == "phase") out = reader.Text(v, path.Field(key)) == wanted;
  });
}

void ReadBindingMode(JsonReader& reader, JsonValue value, const FieldPath& path,
                     model::StorageClass& out) {
  if (!reader.Is(value, JsonType::string, path)) return;
  const absl::string_view mode = reader.Text(value, path);
  if (mode == "Immediate") {
    out.binding = model::StorageClass::Binding::kImmediate;
  } else if (mode == "WaitForFirstConsumer") {
    out.binding = model::StorageClass::Binding::kWaitForFirstConsumer;
  } else {
    reader.problems().Add(
        path, absl::StrCat(Quoted(mode), " is none of Immediate, WaitForFirstConsumer"));
  }
}

// [{key, values}]: each of operator In.
void ReadTopologyTerm(JsonReader& reader, JsonValue value, const FieldPath& path,
                      model::NodeSelectorTerm& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key != "matchLabelExpressions") return;
    const FieldPath list = path.Field(key);
    reader.Items(v, list, [&](size_t i, JsonValue item) {
      const FieldPath at = list.Item(i);
      model::SelectorRequirement& requirement = out.match_expressions.emplace_back();
      reader.Fields(item, at, [&](absl::string_view field, JsonValue entry) {
        if (field == "key") reader.String(entry, at.Field(field), requirement.key);
        if (field == "values") reader.Strings(entry, at.Field(field), requirement.values);
      });
    });
  });
}

void ReadDriver(JsonReader& reader, JsonValue value, const FieldPath& path,
                model::CsiNode::Driver& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "name") return reader.String(v, at, out.name);
    if (key != "allocatable") return;
    reader.Fields(v, at, [&](absl::string_view field, JsonValue count) {
      if (field == "count") out.limit = reader.Int64(count, at.Field(field));
    });
  });
}

void ReadAttachmentSpec(JsonReader& reader, JsonValue value, const FieldPath& path,
                        model::VolumeAttachment& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "attacher") reader.String(v, at, out.driver);
    if (key == "nodeName") reader.String(v, at, out.node_name);
    if (key != "source") return;
    reader.Fields(v, at, [&](absl::string_view field, JsonValue name) {
      if (field == "persistentVolumeName") reader.String(name, at.Field(field), out.volume_name);
    });
  });
}

}  // namespace

void Read(JsonReader& reader, JsonValue value, model::PersistentVolumeClaim& out) {
  const FieldPath root;
  ClassNames names;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kPersistentVolumeClaim);
    if (key == "metadata") ReadClaimMeta(reader, v, at, names, out);
    if (key == "spec") ReadClaimSpec(reader, v, at, names, out);
    if (key == "status") ReadPhase(reader, v, at, "Lost", out.lost);
  });
  out.storage_class = names.Take();
  out.invalid = reader.problems().Text();
}

void Read(JsonReader& reader, JsonValue value, model::PersistentVolume& out) {
  const FieldPath root;
  ClassNames names;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kPersistentVolume);
    if (key == "metadata") ReadVolumeMeta(reader, v, at, names, out);
    if (key == "spec") ReadVolumeSpec(reader, v, at, names, out);
    if (key == "status") ReadPhase(reader, v, at, "Available", out.available);
  });
  out.storage_class = names.Take();
  out.invalid = reader.problems().Text();
}

void Read(JsonReader& reader, JsonValue value, model::StorageClass& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kStorageClass);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key == "provisioner") reader.String(v, at, out.provisioner);
    if (key == "volumeBindingMode") ReadBindingMode(reader, v, at, out);
    if (key == "allowedTopologies") {
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        ReadTopologyTerm(reader, item, at.Item(i), out.allowed_topologies.emplace_back());
      });
    }
  });
  out.invalid = reader.problems().Text();
}

void Read(JsonReader& reader, JsonValue value, model::CsiNode& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kCsiNode);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key != "spec") return;
    reader.Fields(v, at, [&](absl::string_view field, JsonValue list) {
      if (field != "drivers") return;
      const FieldPath drivers = at.Field(field);
      reader.Items(list, drivers, [&](size_t i, JsonValue item) {
        ReadDriver(reader, item, drivers.Item(i), out.drivers.emplace_back());
      });
    });
  });
}

void Read(JsonReader& reader, JsonValue value, model::CsiDriver& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kCsiDriver);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key != "spec") return;
    reader.Fields(v, at, [&](absl::string_view field, JsonValue set) {
      if (field == "storageCapacity") reader.Bool(set, at.Field(field), out.storage_capacity);
    });
  });
}

void Read(JsonReader& reader, JsonValue value, model::CsiStorageCapacity& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kCsiStorageCapacity);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key == "storageClassName") reader.String(v, at, out.storage_class);
    if (key == "nodeTopology") ReadSelector(reader, v, at, out.node_topology);
    if (key == "capacity") out.capacity_bytes = ReadBytes(reader, v, at);
    if (key == "maximumVolumeSize") out.largest_bytes = ReadBytes(reader, v, at);
  });
  out.invalid = reader.problems().Text();
}

void Read(JsonReader& reader, JsonValue value, model::VolumeAttachment& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kVolumeAttachment);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key == "spec") ReadAttachmentSpec(reader, v, at, out);
  });
}

}  // namespace fairlead::kube::json
