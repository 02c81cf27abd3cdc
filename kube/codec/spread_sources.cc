// Service and ReplicationController (v1), ReplicaSet and StatefulSet (apps/v1) in both forms. Of
// their specs only the selector is read (model/spread_sources.h).
#include "kube/codec/json_codec.h"
#include "kube/codec/wire_codec.h"
#include "kube/codec/wire_reader.h"

namespace fairlead::kube {
namespace json {
namespace {

// The selector of a Service or a ReplicationController is a map, that of the others a
// LabelSelector.
void ReadSourceSelector(JsonReader& reader, JsonValue value, const FieldPath& path,
                        model::StringMap& out) {
  reader.Map(value, path, out);
}
void ReadSourceSelector(JsonReader& reader, JsonValue value, const FieldPath& path,
                        model::LabelSelector& out) {
  ReadLabelSelector(reader, value, path, out);
}

template <typename T>
void ReadSource(JsonReader& reader, JsonValue value, T& out) {
  const FieldPath root;
  const FieldPath spec = root.Field("spec");
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    if (key == "kind") CheckKind(reader, v, model::KindOf<T>());
    if (key == "metadata") ReadMeta(reader, v, root.Field(key), out.meta);
    if (key != "spec") return;
    reader.Fields(v, spec, [&](absl::string_view field, JsonValue item) {
      if (field == "selector") ReadSourceSelector(reader, item, spec.Field(field), out.selector);
    });
  });
  out.invalid = reader.problems().Text();
}

}  // namespace

void Read(JsonReader& reader, JsonValue value, model::Service& out) {
  ReadSource(reader, value, out);
}
void Read(JsonReader& reader, JsonValue value, model::ReplicationController& out) {
  ReadSource(reader, value, out);
}
void Read(JsonReader& reader, JsonValue value, model::ReplicaSet& out) {
  ReadSource(reader, value, out);
}
void Read(JsonReader& reader, JsonValue value, model::StatefulSet& out) {
  ReadSource(reader, value, out);
}

}  // namespace json

namespace wire {
namespace {

bool ReadSourceSelector(absl::string_view bytes, const FieldPath&, Problems&, model::TextPool* keys,
                        model::StringMap& out) {
  MapEntry entry;
  if (!ReadMapEntry(bytes, entry)) return false;
  out.Set(entry.key, entry.value, keys);
  return true;
}
bool ReadSourceSelector(absl::string_view bytes, const FieldPath& path, Problems& problems,
                        model::TextPool*, model::LabelSelector& out) {
  return ReadLabelSelector(bytes, path, problems, out);
}

// All four: {metadata=1, spec=2{selector=2}}; a map's entries are fields of their own.
template <typename T>
bool ReadSource(absl::string_view bytes, T& out, model::TextPool* keys) {
  const FieldPath root;
  const FieldPath spec = root.Field("spec");
  const FieldPath selector = spec.Field("selector");
  Problems problems;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) {
      r.Check(ReadMeta(r.Bytes(), out.meta, keys));
    } else if (r.field() == 2) {
      WireReader fields(r.Bytes());
      while (fields.Next()) {
        if (fields.field() != 2) continue;
        fields.Check(ReadSourceSelector(fields.Bytes(), selector, problems, keys, out.selector));
      }
      r.Check(fields.ok());
    }
  }
  if (!r.ok()) return false;
  out.invalid = problems.Text();
  return true;
}

}  // namespace

bool Read(absl::string_view bytes, model::Service& out, model::TextPool* keys) {
  return ReadSource(bytes, out, keys);
}
bool Read(absl::string_view bytes, model::ReplicationController& out, model::TextPool* keys) {
  return ReadSource(bytes, out, keys);
}
bool Read(absl::string_view bytes, model::ReplicaSet& out, model::TextPool* keys) {
  return ReadSource(bytes, out, keys);
}
bool Read(absl::string_view bytes, model::StatefulSet& out, model::TextPool* keys) {
  return ReadSource(bytes, out, keys);
}

}  // namespace wire
}  // namespace fairlead::kube
