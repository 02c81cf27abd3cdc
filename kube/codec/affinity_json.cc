// core.v1.Affinity and TopologySpreadConstraint.
#include <utility>

#include "kube/codec/field_values.h"
#include "kube/codec/json_codec.h"
#include "kube/codec/pod_json_parts.h"

namespace fairlead::kube::json {
namespace {

constexpr char kRequired[] = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr char kPreferred[] = "preferredDuringSchedulingIgnoredDuringExecution";

void ReadNodeTerm(JsonReader& reader, JsonValue value, const FieldPath& path,
                  model::NodeSelectorTerm& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "matchExpressions") ReadRequirements(reader, v, at, true, out.match_expressions);
    if (key == "matchFields") ReadRequirements(reader, v, at, true, out.match_fields);
  });
}

void ReadRequiredNodeTerms(JsonReader& reader, JsonValue value, const FieldPath& path,
                           model::PodSpec& spec) {
  spec.has_required_node_affinity = true;
  ReadNodeSelector(reader, value, path, spec.required_node_terms);
}

void ReadPreferredNodeTerm(JsonReader& reader, JsonValue value, const FieldPath& path,
                           model::PreferredNodeTerm& out) {
  int64_t weight = 0;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key == "weight") weight = reader.Int32(v, path.Field(key)).value_or(0);
    if (key == "preference") ReadNodeTerm(reader, v, path.Field(key), out.term);
  });
  if (reader.ok()) SetWeight(weight, path.Field("weight"), reader.problems(), out.weight);
}

void ReadNodeAffinity(JsonReader& reader, JsonValue value, const FieldPath& path,
                      model::PodSpec& spec) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == kRequired) return ReadRequiredNodeTerms(reader, v, at, spec);
    if (key != kPreferred) return;
    reader.Items(v, at, [&](size_t i, JsonValue item) {
      ReadPreferredNodeTerm(reader, item, at.Item(i), spec.preferred_node_terms.emplace_back());
    });
  });
}

void KeepLabelKeys(LabelKeysDraft&& keys, LabelKeysDraft::Of of, size_t index, PodDraft& draft) {
  if (keys.match.empty() && keys.mismatch.empty()) return;
  keys.of = of;
  keys.index = index;
  draft.label_keys.push_back(std::move(keys));
}

void ReadPodAffinityTerm(JsonReader& reader, JsonValue value, const FieldPath& path,
                         model::PodAffinityTerm& out, LabelKeysDraft& keys) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "labelSelector") return ReadLabelSelector(reader, v, at, out.selector);
    if (key == "namespaces") return reader.Strings(v, at, out.namespaces);
    if (key == "topologyKey") return reader.String(v, at, out.topology_key);
    if (key == "namespaceSelector") {
      return ReadLabelSelector(reader, v, at, out.namespace_selector.emplace());
    }
    if (key == "matchLabelKeys") return reader.Strings(v, at, keys.match);
    if (key == "mismatchLabelKeys") return reader.Strings(v, at, keys.mismatch);
  });
}

void ReadWeightedTerm(JsonReader& reader, JsonValue value, const FieldPath& path,
                      model::PodAffinityTerm& out, LabelKeysDraft& keys) {
  int64_t weight = 0;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key == "weight") weight = reader.Int32(v, path.Field(key)).value_or(0);
    if (key == "podAffinityTerm") ReadPodAffinityTerm(reader, v, path.Field(key), out, keys);
  });
  if (reader.ok()) SetWeight(weight, path.Field("weight"), reader.problems(), out.weight);
}

// podAffinity and podAntiAffinity have the same shape.
void ReadPodAffinity(JsonReader& reader, JsonValue value, const FieldPath& path,
                     LabelKeysDraft::Of of, PodDraft& draft) {
  std::vector<model::PodAffinityTerm>& terms = of == LabelKeysDraft::Of::kAffinity
                                                   ? draft.pod.spec.pod_affinity
                                                   : draft.pod.spec.pod_anti_affinity;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key != kRequired && key != kPreferred) return;
    const bool required = key == kRequired;
    const FieldPath at = path.Field(key);
    reader.Items(v, at, [&](size_t i, JsonValue item) {
      LabelKeysDraft keys;
      model::PodAffinityTerm& term = terms.emplace_back();
      if (required) {
        ReadPodAffinityTerm(reader, item, at.Item(i), term, keys);
      } else {
        ReadWeightedTerm(reader, item, at.Item(i), term, keys);
      }
      KeepLabelKeys(std::move(keys), of, terms.size() - 1, draft);
    });
  });
}

void ReadConstraint(JsonReader& reader, JsonValue value, const FieldPath& path,
                    model::TopologySpreadConstraint& out, LabelKeysDraft& keys) {
  Problems& problems = reader.problems();
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "maxSkew") {
      if (auto n = reader.Int32(v, at)) SetPositive(*n, at, problems, out.max_skew);
    } else if (key == "minDomains") {
      if (auto n = reader.Int32(v, at)) SetPositive(*n, at, problems, out.min_domains);
    } else if (key == "topologyKey") {
      reader.String(v, at, out.topology_key);
    } else if (key == "whenUnsatisfiable") {
      SetWhenUnsatisfiable(reader.Text(v, at), at, problems, out);
    } else if (key == "labelSelector") {
      ReadLabelSelector(reader, v, at, out.selector);
    } else if (key == "nodeAffinityPolicy") {
      SetHonorPolicy(reader.Text(v, at), at, problems, out.honor_node_affinity);
    } else if (key == "nodeTaintsPolicy") {
      SetHonorPolicy(reader.Text(v, at), at, problems, out.honor_node_taints);
    } else if (key == "matchLabelKeys") {
      reader.Strings(v, at, keys.match);
    }
  });
}

}  // namespace

void ReadNodeSelector(JsonReader& reader, JsonValue value, const FieldPath& path,
                      std::vector<model::NodeSelectorTerm>& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key != "nodeSelectorTerms") return;
    const FieldPath terms = path.Field(key);
    reader.Items(v, terms, [&](size_t i, JsonValue item) {
      ReadNodeTerm(reader, item, terms.Item(i), out.emplace_back());
    });
  });
}

void ReadAffinity(JsonReader& reader, JsonValue value, const FieldPath& path, PodDraft& draft) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "nodeAffinity") return ReadNodeAffinity(reader, v, at, draft.pod.spec);
    if (key == "podAffinity") {
      return ReadPodAffinity(reader, v, at, LabelKeysDraft::Of::kAffinity, draft);
    }
    if (key == "podAntiAffinity") {
      return ReadPodAffinity(reader, v, at, LabelKeysDraft::Of::kAntiAffinity, draft);
    }
  });
}

void ReadTopologySpread(JsonReader& reader, JsonValue value, const FieldPath& path,
                        PodDraft& draft) {
  auto& constraints = draft.pod.spec.topology_spread;
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    LabelKeysDraft keys;
    ReadConstraint(reader, item, path.Item(i), constraints.emplace_back(), keys);
    KeepLabelKeys(std::move(keys), LabelKeysDraft::Of::kSpread, constraints.size() - 1, draft);
  });
}

}  // namespace fairlead::kube::json
