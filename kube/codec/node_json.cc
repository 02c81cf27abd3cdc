#include <utility>

#include "kube/codec/field_values.h"
#include "kube/codec/json_codec.h"
#include "kube/codec/node_draft.h"

namespace fairlead::kube::json {
namespace {

void ReadConditions(JsonReader& reader, JsonValue value, const FieldPath& path, NodeDraft& draft) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    absl::string_view type;
    absl::string_view status;
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      if (key == "type") type = reader.Text(v, at.Field(key));
      if (key == "status") status = reader.Text(v, at.Field(key));
    });
    draft.AddCondition(type, status);
  });
}

void ReadImages(JsonReader& reader, JsonValue value, const FieldPath& path, NodeDraft& draft) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    ImageNames names;
    int64_t size_bytes = 0;
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      const FieldPath field = at.Field(key);
      if (key == "names") {
        reader.Items(v, field, [&](size_t number, JsonValue name) {
          names.push_back(reader.Text(name, field.Item(number)));
        });
      } else if (key == "sizeBytes") {
        size_bytes = reader.Int64(v, field).value_or(0);
      }
    });
    draft.AddImage(names, size_bytes);
  });
}

void ReadSpec(JsonReader& reader, JsonValue value, const FieldPath& path, model::Node& node) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "providerID") reader.String(v, at, node.provider_id);
    if (key == "unschedulable") reader.Bool(v, at, node.unschedulable);
    if (key == "taints") ReadTaints(reader, v, at, node.taints);
  });
}

void ReadStatus(JsonReader& reader, JsonValue value, const FieldPath& path, NodeDraft& draft) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "capacity") reader.Quantities(v, at, draft.capacity);
    if (key == "conditions") ReadConditions(reader, v, at, draft);
    if (key == "images") ReadImages(reader, v, at, draft);
    if (key == "declaredFeatures") {
      reader.Items(v, at, [&](size_t i, JsonValue name) {
        draft.node.declared_features |= model::NodeFeatureOf(reader.Text(name, at.Item(i)));
      });
    }
    if (key == "allocatable") reader.Quantities(v, at, draft.node.allocatable);
  });
}

}  // namespace

void Read(JsonReader& reader, JsonValue value, model::Node& out) {
  NodeDraft draft(out);
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kNode);
    if (key == "metadata") ReadMeta(reader, v, at, draft.node.meta);
    if (key == "spec") ReadSpec(reader, v, at, draft.node);
    if (key == "status") ReadStatus(reader, v, at, draft);
  });
  draft.problems = std::move(reader.problems());
  FinishNode(draft);
}

void Read(JsonReader& reader, JsonValue value, model::Namespace& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    if (key == "kind") CheckKind(reader, v, model::Kind::kNamespace);
    if (key == "metadata") ReadMeta(reader, v, root.Field(key), out.meta);
  });
}

void Read(JsonReader& reader, JsonValue value, model::PriorityClass& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kPriorityClass);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key == "value") out.value = reader.Int32(v, at).value_or(0);
    if (key == "globalDefault") reader.Bool(v, at, out.global_default);
    if (key == "preemptionPolicy") out.never_preempts = reader.Text(v, at) == kNeverPreempts;
  });
}

}  // namespace fairlead::kube::json
