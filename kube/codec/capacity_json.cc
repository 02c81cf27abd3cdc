// PodTemplate, and CapacityBuffer and ProvisioningRequest of autoscaling.x-k8s.io: the fields and
// rules of their schemas (kubernetes/autoscaler, cluster-autoscaler/apis).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kube/codec/json_codec.h"

namespace fairlead::kube::json {
namespace {

constexpr int64_t kMostPods = 1'000'000;  // of one object: more is a slip of the pen
constexpr size_t kMostPodSets = 32;

void ReadTemplateRef(JsonReader& reader, JsonValue value, const FieldPath& path, std::string& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key == "name") reader.String(v, path.Field(key), out);
  });
  if (out.empty()) reader.problems().Add(path.Field("name"), "must be set");
}

std::optional<int64_t> ReadCount(JsonReader& reader, JsonValue value, const FieldPath& path,
                                 int64_t least) {
  const std::optional<int32_t> number = reader.Int32(value, path);
  if (!number.has_value()) return std::nullopt;
  if (*number < least || *number > kMostPods) {
    reader.problems().Add(path, absl::StrCat(*number, " is not within ", least, "-", kMostPods));
    return std::nullopt;
  }
  return *number;
}

void ReadBufferSpec(JsonReader& reader, JsonValue value, const FieldPath& path,
                    model::CapacityBuffer& out) {
  bool limited = false;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "provisioningStrategy") return reader.String(v, at, out.strategy);
    if (key == "podTemplateRef") return ReadTemplateRef(reader, v, at, out.pod_template);
    if (key == "replicas") {
      out.replicas = ReadCount(reader, v, at, 0);
    } else if (key == "percentage") {
      static_cast<void>(ReadCount(reader, v, at, 0));  // of what scalableRef names
    } else if (key == "scalableRef") {
      out.by_scalable = true;
    } else if (key == "limits") {
      limited = true;
      reader.Quantities(v, at, out.limits);
    }
  });
  if (out.by_scalable != out.pod_template.empty()) {
    reader.problems().Add(path, "must have exactly one of podTemplateRef, scalableRef");
  } else if (!out.by_scalable && !out.replicas.has_value() && !limited) {
    reader.problems().Add(path, "must have replicas or limits");
  }
}

// What other controllers write there; a value that is wrong is as if it were not there.
void ReadBufferStatus(JsonReader& reader, JsonValue value, const FieldPath& path,
                      model::CapacityBuffer& out) {
  const Problems before = reader.problems();
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "podTemplateRef") ReadTemplateRef(reader, v, at, out.resolved_template);
    if (key == "replicas") out.resolved_replicas = ReadCount(reader, v, at, 0);
    if (key == "podTemplateGeneration") {
      out.resolved_generation = reader.Int64(v, at).value_or(0);
    }
    if (key == "conditions") ReadConditions(reader, v, at, out.conditions);
  });
  reader.problems() = before;
}

void ReadPodSet(JsonReader& reader, JsonValue value, const FieldPath& path,
                model::ProvisioningRequest::PodSet& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "podTemplateRef") ReadTemplateRef(reader, v, at, out.pod_template);
    if (key == "count") out.count = ReadCount(reader, v, at, 1).value_or(0);
  });
  if (out.pod_template.empty()) reader.problems().Add(path.Field("podTemplateRef"), "must be set");
  if (out.count == 0) reader.problems().Add(path.Field("count"), "must be set");
}

void ReadRequestSpec(JsonReader& reader, JsonValue value, const FieldPath& path,
                     model::ProvisioningRequest& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "provisioningClassName") reader.String(v, at, out.class_name);
    if (key == "parameters") reader.Map(v, at, out.parameters);
    if (key != "podSets") return;
    reader.Items(v, at, [&](size_t i, JsonValue item) {
      ReadPodSet(reader, item, at.Item(i), out.pod_sets.emplace_back());
    });
  });
  if (out.class_name.empty()) {
    reader.problems().Add(path.Field("provisioningClassName"), "must be set");
  }
  if (out.pod_sets.empty() || out.pod_sets.size() > kMostPodSets) {
    reader.problems().Add(path.Field("podSets"),
                          absl::StrCat("must have 1 to ", kMostPodSets, " entries"));
  }
}

}  // namespace

void ReadConditions(JsonReader& reader, JsonValue value, const FieldPath& path,
                    std::vector<model::Condition>& out) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    model::Condition& condition = out.emplace_back();
    const FieldPath of = path.Item(i);
    reader.Fields(item, of, [&](absl::string_view key, JsonValue v) {
      const FieldPath at = of.Field(key);
      if (key == "type") return reader.String(v, at, condition.type);
      if (key == "status") return reader.String(v, at, condition.status);
      if (key == "reason") return reader.String(v, at, condition.reason);
      if (key == "message") return reader.String(v, at, condition.message);
      if (key == "lastTransitionTime") return reader.Time(v, at, condition.since);
      if (key == "observedGeneration") {
        condition.observed_generation = reader.Int64(v, at).value_or(0);
      }
    });
  });
}

void Read(JsonReader& reader, JsonValue value, model::PodTemplate& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    if (key == "kind") CheckKind(reader, v, model::Kind::kPodTemplate);
    if (key == "metadata") ReadMeta(reader, v, root.Field(key), out.meta);
    if (key == "template") Read(reader, v, out.pod);
  });
  // The template has no namespace of its own, and the API server writes metadata in any place.
  out.pod.meta.ns = out.meta.ns;
  out.pod.spec.ns = out.meta.ns;
  if (!out.pod.invalid.empty()) out.pod.invalid = absl::StrCat("template.", out.pod.invalid);
}

void Read(JsonReader& reader, JsonValue value, model::CapacityBuffer& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kCapacityBuffer);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key == "spec") ReadBufferSpec(reader, v, at, out);
    if (key == "status") ReadBufferStatus(reader, v, at, out);
  });
  out.invalid = reader.problems().Text();
}

void Read(JsonReader& reader, JsonValue value, model::ProvisioningRequest& out) {
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kProvisioningRequest);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key == "spec") ReadRequestSpec(reader, v, at, out);
    if (key != "status") return;
    const Problems before = reader.problems();
    reader.Fields(v, at, [&](absl::string_view field, JsonValue entries) {
      if (field == "conditions") ReadConditions(reader, entries, at.Field(field), out.conditions);
    });
    reader.problems() = before;
  });
  out.invalid = reader.problems().Text();
}

}  // namespace fairlead::kube::json
