#include <utility>

#include "absl/strings/str_cat.h"
#include "kube/codec/field_values.h"
#include "kube/codec/json_codec.h"

namespace fairlead::kube::json {
namespace {

void ReadOwner(JsonReader& reader, JsonValue value, const FieldPath& path,
               model::OwnerReference& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "apiVersion") return reader.String(v, at, out.api_version);
    if (key == "kind") return reader.String(v, at, out.kind);
    if (key == "name") return reader.String(v, at, out.name);
    if (key == "uid") return reader.String(v, at, out.uid);
    if (key == "controller") return reader.Bool(v, at, out.controller);
  });
}

// `other` is called for those that are not relevant.
void ReadAnnotations(JsonReader& reader, JsonValue value, const FieldPath& path,
                     model::StringMap& out, AnnotationReader other) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Key(key);
    if (!model::IsRelevantAnnotation(key)) return other(key, v, at);
    out.Set(key, reader.Text(v, at));
  });
}

void ReadWholeMeta(JsonReader& reader, JsonValue value, const FieldPath& path,
                   model::ObjectMeta& out, std::vector<std::string>* finalizers,
                   AnnotationReader other_annotation) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "name") return reader.String(v, at, out.name);
    if (key == "namespace") return reader.String(v, at, out.ns);
    if (key == "uid") return reader.String(v, at, out.uid);
    if (key == "resourceVersion") return reader.String(v, at, out.resource_version);
    if (key == "generation") {
      out.generation = reader.Int64(v, at).value_or(0);
      return;
    }
    if (key == "creationTimestamp") {
      std::optional<absl::Time> creation;
      reader.Time(v, at, creation);
      if (creation.has_value()) out.creation = *creation;
      return;
    }
    if (key == "deletionTimestamp") return reader.Time(v, at, out.deletion);
    if (key == "labels") return reader.Map(v, at, out.labels);
    if (key == "annotations") {
      return ReadAnnotations(reader, v, at, out.annotations, other_annotation);
    }
    if (key == "finalizers" && finalizers != nullptr) return reader.Strings(v, at, *finalizers);
    if (key == "ownerReferences") {
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        ReadOwner(reader, item, at.Item(i), out.owners.emplace_back());
      });
    }
  });
}

}  // namespace

void CheckKind(JsonReader& reader, JsonValue value, model::Kind kind) {
  const absl::string_view text = reader.Text(value, FieldPath());
  if (text == model::KindName(kind)) return;
  reader.Fail(absl::StrCat("expected a ", model::KindName(kind), ", got a ", Quoted(text)));
}

void CheckApiGroup(JsonReader& reader, JsonValue value, model::Kind kind) {
  const auto group = [](absl::string_view version) { return version.substr(0, version.find('/')); };
  const absl::string_view text = reader.Text(value, FieldPath());
  const absl::string_view wanted = model::TraitsOf(kind).api_version;
  if (group(text) == group(wanted)) return;
  reader.Fail(absl::StrCat("expected a ", model::KindName(kind), " of ", wanted, ", got one of ",
                           Quoted(text)));
}

void ReadMeta(JsonReader& reader, JsonValue value, const FieldPath& path, model::ObjectMeta& out,
              std::vector<std::string>* finalizers) {
  ReadWholeMeta(reader, value, path, out, finalizers,
                [](absl::string_view, JsonValue, const FieldPath&) {});
}

void ReadMeta(JsonReader& reader, JsonValue value, const FieldPath& path, model::ObjectMeta& out,
              AnnotationReader annotation) {
  ReadWholeMeta(reader, value, path, out, nullptr, annotation);
}

void ReadRequirements(JsonReader& reader, JsonValue value, const FieldPath& path, bool of_nodes,
                      std::vector<model::SelectorRequirement>& out) {
  const SelectorKind kind = of_nodes ? SelectorKind::kNodes : SelectorKind::kLabels;
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    model::SelectorRequirement& requirement = out.emplace_back();
    absl::string_view op;
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      if (key == "key") return reader.String(v, at.Field(key), requirement.key);
      if (key == "values") return reader.Strings(v, at.Field(key), requirement.values);
      if (key == "operator") op = reader.Text(v, at.Field(key));
    });
    if (reader.ok()) {
      SetOperator(op, kind, at.Field("operator"), reader.problems(), requirement.op);
    }
  });
}

void ReadLabelSelector(JsonReader& reader, JsonValue value, const FieldPath& path,
                       model::LabelSelector& out) {
  out.none = false;
  model::StringMap match_labels;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "matchLabels") return reader.Map(v, at, match_labels);
    if (key == "matchExpressions") {
      ReadRequirements(reader, v, at, /*of_nodes=*/false, out.requirements);
    }
  });
  if (!match_labels.empty()) PrependMatchLabels(match_labels, out);
}

void ReadTaints(JsonReader& reader, JsonValue value, const FieldPath& path,
                std::vector<model::Taint>& out) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    model::Taint& taint = out.emplace_back();
    absl::string_view effect;
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      if (key == "key") return reader.String(v, at.Field(key), taint.key);
      if (key == "value") return reader.String(v, at.Field(key), taint.value);
      if (key == "effect") effect = reader.Text(v, at.Field(key));
    });
    if (reader.ok()) SetTaintEffect(effect, at.Field("effect"), reader.problems(), taint.effect);
  });
}

}  // namespace fairlead::kube::json
