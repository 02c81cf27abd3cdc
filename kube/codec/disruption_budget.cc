// PodDisruptionBudget (policy/v1) in both forms. Of its spec only the selector and the policy about
// unhealthy pods are read: the status says what it allows (model/disruption_budget.h).
#include <algorithm>

#include "kube/codec/json_codec.h"
#include "kube/codec/wire_codec.h"
#include "kube/codec/wire_reader.h"

namespace fairlead::kube {
namespace {

constexpr char kAlwaysAllow[] = "AlwaysAllow";

}  // namespace

namespace json {
namespace {

void ReadStatus(JsonReader& reader, JsonValue value, const FieldPath& path,
                model::PodDisruptionBudget& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "observedGeneration") {
      out.observed_generation = reader.Int64(v, at).value_or(0);
    } else if (key == "disruptionsAllowed") {
      out.disruptions_allowed = reader.Int32(v, at).value_or(0);
    } else if (key == "currentHealthy") {
      out.current_healthy = reader.Int32(v, at).value_or(0);
    } else if (key == "desiredHealthy") {
      out.desired_healthy = reader.Int32(v, at).value_or(0);
    } else if (key == "disruptedPods") {
      reader.Fields(v, at, [&](absl::string_view pod, JsonValue) {
        out.disrupted_pods.emplace_back(pod.data(), pod.size());
      });
    }
  });
}

}  // namespace

void Read(JsonReader& reader, JsonValue value, model::PodDisruptionBudget& out) {
  const FieldPath root;
  const FieldPath spec = root.Field("spec");
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    if (key == "kind") CheckKind(reader, v, model::Kind::kPodDisruptionBudget);
    if (key == "metadata") ReadMeta(reader, v, root.Field(key), out.meta);
    if (key == "status") ReadStatus(reader, v, root.Field(key), out);
    if (key != "spec") return;
    reader.Fields(v, spec, [&](absl::string_view field, JsonValue item) {
      if (field == "selector") ReadLabelSelector(reader, item, spec.Field(field), out.selector);
      if (field == "unhealthyPodEvictionPolicy") {
        out.always_allow = reader.Text(item, spec.Field(field)) == kAlwaysAllow;
      }
    });
  });
  std::sort(out.disrupted_pods.begin(), out.disrupted_pods.end());
  out.invalid = reader.problems().Text();
}

}  // namespace json

namespace wire {
namespace {

// PodDisruptionBudgetStatus{observedGeneration=1, disruptedPods=2, disruptionsAllowed=3,
// currentHealthy=4, desiredHealthy=5}.
bool ReadStatus(absl::string_view bytes, model::PodDisruptionBudget& out) {
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        out.observed_generation = r.Int64();
        break;
      case 2: {
        MapEntry entry;
        r.Check(ReadMapEntry(r.Bytes(), entry));
        out.disrupted_pods.emplace_back(entry.key.data(), entry.key.size());
        break;
      }
      case 3:
        out.disruptions_allowed = r.Int32();
        break;
      case 4:
        out.current_healthy = r.Int32();
        break;
      case 5:
        out.desired_healthy = r.Int32();
        break;
      default:
        break;
    }
  }
  return r.ok();
}

}  // namespace

// PodDisruptionBudget{metadata=1, spec=2{selector=2, unhealthyPodEvictionPolicy=4}, status=3}.
bool Read(absl::string_view bytes, model::PodDisruptionBudget& out, model::TextPool* keys) {
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
        if (fields.field() == 2) {
          fields.Check(ReadLabelSelector(fields.Bytes(), selector, problems, out.selector));
        } else if (fields.field() == 4) {
          out.always_allow = fields.Bytes() == kAlwaysAllow;
        }
      }
      r.Check(fields.ok());
    } else if (r.field() == 3) {
      r.Check(ReadStatus(r.Bytes(), out));
    }
  }
  if (!r.ok()) return false;
  std::sort(out.disrupted_pods.begin(), out.disrupted_pods.end());
  out.invalid = problems.Text();
  return true;
}

}  // namespace wire
}  // namespace fairlead::kube
