// PodGroup of scheduling.k8s.io/v1alpha2 (KEP-4671, KEP-5732, KEP-5710): as a group of KAI's.
//
//   schedulingPolicy.gang.minCount        minMember
//   schedulingPolicy.basic                minMember 1: its pods start one by one
//   schedulingConstraints.topology[0]     all pods in one domain of that node label
//   disruptionMode PodGroup               all its pods are evicted or none
//   label kai.scheduler/queue             queue
//
// Its verdict is in annotation fairlead.dev/verdict.
//
// What cannot be obeyed (claims of the group, several topologies) makes the group invalid: its pods
// wait, and their verdict names the field.
#include "absl/strings/str_cat.h"
#include "kube/codec/json_codec.h"
#include "scheduler/model/api_names.h"

namespace fairlead::kube::json {
namespace {

void ReadMinCount(JsonReader& reader, JsonValue value, const FieldPath& path,
                  std::optional<int32_t>& out) {
  const std::optional<int32_t> number = reader.Int32(value, path);
  if (!number.has_value()) return;
  if (*number < 1) {
    reader.problems().Add(path, absl::StrCat(*number, " must be greater than zero"));
  } else {
    out = number;
  }
}

void ReadPolicy(JsonReader& reader, JsonValue value, const FieldPath& path,
                model::NativePodGroup& out) {
  bool gang = false, basic = false;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    basic |= key == "basic";
    if (key != "gang") return;
    gang = true;
    reader.Fields(v, at, [&](absl::string_view field, JsonValue count) {
      if (field == "minCount") ReadMinCount(reader, count, at.Field(field), out.min_member);
    });
    if (!out.min_member.has_value()) {
      reader.problems().Add(at.Field("minCount"), "must be specified");
    }
  });
  if (gang == basic) {
    reader.problems().Add(path, "must have exactly one of basic, gang");
  }
}

void ReadConstraints(JsonReader& reader, JsonValue value, const FieldPath& path,
                     model::NativePodGroup& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key != "topology") return;
    const FieldPath topologies = path.Field(key);
    reader.Items(v, topologies, [&](size_t i, JsonValue item) {
      const FieldPath at = topologies.Item(i);
      if (i > 0) {
        reader.problems().Add(at, "a second topology is not supported");
        return;
      }
      reader.Fields(item, at, [&](absl::string_view field, JsonValue name) {
        if (field == "key") reader.String(name, at.Field(field), out.topology.required_level);
      });
      if (out.topology.required_level.empty()) {
        reader.problems().Add(at.Field("key"), "must be specified");
      } else {
        out.topology.topology = absl::StrCat(model::kTopologyOfLabel, out.topology.required_level);
      }
    });
  });
}

void ReadSpec(JsonReader& reader, JsonValue value, const FieldPath& path,
              model::NativePodGroup& out) {
  bool has_policy = false;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "schedulingPolicy") {
      has_policy = true;
      ReadPolicy(reader, v, at, out);
    } else if (key == "schedulingConstraints") {
      ReadConstraints(reader, v, at, out);
    } else if (key == "resourceClaims") {
      reader.Items(v, at, [&](size_t i, JsonValue) {
        if (i == 0) reader.problems().Add(at, "claims of a pod group are not supported");
      });
    } else if (key == "priorityClassName") {
      reader.String(v, at, out.priority_class_name);
    } else if (key == "disruptionMode") {
      const absl::string_view mode = reader.Text(v, at);
      out.disrupted_whole = mode == "PodGroup";
      if (mode != "Pod" && mode != "PodGroup") {
        reader.problems().Add(at, absl::StrCat(Quoted(mode), " is none of Pod, PodGroup"));
      }
    }
  });
  if (!has_policy) reader.problems().Add(path.Field("schedulingPolicy"), "must be specified");
}

// An invalid value in a status refuses no pod.
void ReadStatus(JsonReader& reader, JsonValue value, const FieldPath& path,
                model::NativePodGroup& out) {
  const Problems before = reader.problems();
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key != "conditions") return;
    std::vector<model::Condition> conditions;
    ReadConditions(reader, v, path.Field(key), conditions);
    const auto told = model::FindCondition(conditions, model::kPodGroupScheduledCondition);
    if (told == conditions.end()) return;
    out.scheduled_status = std::move(told->status);
    out.scheduled_reason = std::move(told->reason);
    out.scheduled_message = std::move(told->message);
  });
  reader.problems() = before;
}

}  // namespace

void Read(JsonReader& reader, JsonValue value, model::NativePodGroup& out) {
  const FieldPath root;
  bool has_spec = false;
  out.native = true;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "apiVersion") CheckApiGroup(reader, v, model::Kind::kNativePodGroup);
    if (key == "kind") CheckKind(reader, v, model::Kind::kNativePodGroup);
    if (key == "metadata") ReadMeta(reader, v, at, out.meta);
    if (key == "spec") {
      has_spec = true;
      ReadSpec(reader, v, at, out);
    }
    if (key == "status") ReadStatus(reader, v, at, out);
  });
  if (!has_spec) reader.problems().Add(root.Field("spec"), "must be specified");
  out.queue = std::string(out.meta.labels.Get(model::kQueueLabel));
  out.schedulability_hash =
      model::VerdictHashOf(out.meta.annotations.Get(model::kVerdictAnnotation));
  out.invalid = reader.problems().Text();
}

}  // namespace fairlead::kube::json
