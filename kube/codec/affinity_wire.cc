// core.v1.Affinity and TopologySpreadConstraint.
#include <utility>

#include "kube/codec/field_values.h"
#include "kube/codec/pod_wire_parts.h"
#include "kube/codec/wire_codec.h"
#include "kube/codec/wire_reader.h"

namespace fairlead::kube::wire {
namespace {

constexpr char kRequired[] = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr char kPreferred[] = "preferredDuringSchedulingIgnoredDuringExecution";

bool ReadNodeRequirement(absl::string_view bytes, const FieldPath& list, Problems& problems,
                         std::vector<model::SelectorRequirement>& out) {
  const FieldPath path = list.Item(out.size());
  model::SelectorRequirement& requirement = out.emplace_back();
  absl::string_view op;
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        requirement.key = r.String();
        break;
      case 2:
        op = r.Bytes();
        break;
      case 3:
        requirement.values.push_back(r.String());
        break;
      default:
        break;
    }
  }
  if (!r.ok()) return false;
  SetOperator(op, SelectorKind::kNodes, path.Field("operator"), problems, requirement.op);
  return true;
}

bool ReadNodeTerm(absl::string_view bytes, const FieldPath& path, Problems& problems,
                  model::NodeSelectorTerm& out) {
  const FieldPath expressions = path.Field("matchExpressions");
  const FieldPath fields = path.Field("matchFields");
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) {
      r.Check(ReadNodeRequirement(r.Bytes(), expressions, problems, out.match_expressions));
    } else if (r.field() == 2) {
      r.Check(ReadNodeRequirement(r.Bytes(), fields, problems, out.match_fields));
    }
  }
  return r.ok();
}

bool ReadPreferredNodeTerm(absl::string_view bytes, const FieldPath& path, Problems& problems,
                           model::PreferredNodeTerm& out) {
  int64_t weight = 0;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) weight = r.Int32();
    if (r.field() == 2) {
      r.Check(ReadNodeTerm(r.Bytes(), path.Field("preference"), problems, out.term));
    }
  }
  if (!r.ok()) return false;
  SetWeight(weight, path.Field("weight"), problems, out.weight);
  return true;
}

bool ReadNodeAffinity(absl::string_view bytes, const FieldPath& path, PodDraft& draft) {
  model::PodSpec& spec = draft.pod.spec;
  const FieldPath required = path.Field(kRequired);
  const FieldPath terms = required.Field("nodeSelectorTerms");
  const FieldPath preferred = path.Field(kPreferred);
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) {
      spec.has_required_node_affinity = true;
      WireReader selector(r.Bytes());
      while (selector.Next()) {
        if (selector.field() != 1) continue;
        const FieldPath item = terms.Item(spec.required_node_terms.size());
        selector.Check(ReadNodeTerm(selector.Bytes(), item, draft.problems,
                                    spec.required_node_terms.emplace_back()));
      }
      r.Check(selector.ok());
    } else if (r.field() == 2) {
      const FieldPath item = preferred.Item(spec.preferred_node_terms.size());
      r.Check(ReadPreferredNodeTerm(r.Bytes(), item, draft.problems,
                                    spec.preferred_node_terms.emplace_back()));
    }
  }
  return r.ok();
}

void KeepLabelKeys(LabelKeysDraft&& keys, LabelKeysDraft::Of of, size_t index, PodDraft& draft) {
  if (keys.match.empty() && keys.mismatch.empty()) return;
  keys.of = of;
  keys.index = index;
  draft.label_keys.push_back(std::move(keys));
}

bool ReadPodAffinityTerm(absl::string_view bytes, const FieldPath& path, Problems& problems,
                         model::PodAffinityTerm& out, LabelKeysDraft& keys) {
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Check(ReadLabelSelector(r.Bytes(), path.Field("labelSelector"), problems, out.selector));
        break;
      case 2:
        out.namespaces.push_back(r.String());
        break;
      case 3:
        out.topology_key = r.String();
        break;
      case 4:
        r.Check(ReadLabelSelector(r.Bytes(), path.Field("namespaceSelector"), problems,
                                  out.namespace_selector.emplace()));
        break;
      case 5:
        keys.match.push_back(r.String());
        break;
      case 6:
        keys.mismatch.push_back(r.String());
        break;
      default:
        break;
    }
  }
  return r.ok();
}

// PodAffinity and PodAntiAffinity have the same shape.
bool ReadPodAffinity(absl::string_view bytes, const FieldPath& path, LabelKeysDraft::Of of,
                     PodDraft& draft) {
  model::PodSpec& spec = draft.pod.spec;
  std::vector<model::PodAffinityTerm>& terms =
      of == LabelKeysDraft::Of::kAffinity ? spec.pod_affinity : spec.pod_anti_affinity;
  const FieldPath required = path.Field(kRequired);
  const FieldPath preferred = path.Field(kPreferred);
  size_t required_count = 0;
  size_t preferred_count = 0;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() != 1 && r.field() != 2) continue;
    LabelKeysDraft keys;
    model::PodAffinityTerm& term = terms.emplace_back();
    if (r.field() == 1) {
      const FieldPath item = required.Item(required_count++);
      r.Check(ReadPodAffinityTerm(r.Bytes(), item, draft.problems, term, keys));
    } else {
      const FieldPath item = preferred.Item(preferred_count++);
      int64_t weight = 0;
      WireReader weighted(r.Bytes());
      while (weighted.Next()) {
        if (weighted.field() == 1) weight = weighted.Int32();
        if (weighted.field() == 2) {
          weighted.Check(ReadPodAffinityTerm(weighted.Bytes(), item.Field("podAffinityTerm"),
                                             draft.problems, term, keys));
        }
      }
      r.Check(weighted.ok());
      SetWeight(weight, item.Field("weight"), draft.problems, term.weight);
    }
    KeepLabelKeys(std::move(keys), of, terms.size() - 1, draft);
  }
  return r.ok();
}

}  // namespace

bool ReadAffinity(absl::string_view bytes, const FieldPath& path, PodDraft& draft) {
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Check(ReadNodeAffinity(r.Bytes(), path.Field("nodeAffinity"), draft));
        break;
      case 2:
        r.Check(ReadPodAffinity(r.Bytes(), path.Field("podAffinity"), LabelKeysDraft::Of::kAffinity,
                                draft));
        break;
      case 3:
        r.Check(ReadPodAffinity(r.Bytes(), path.Field("podAntiAffinity"),
                                LabelKeysDraft::Of::kAntiAffinity, draft));
        break;
      default:
        break;
    }
  }
  return r.ok();
}

bool ReadTopologySpread(absl::string_view bytes, const FieldPath& list, PodDraft& draft) {
  std::vector<model::TopologySpreadConstraint>& constraints = draft.pod.spec.topology_spread;
  const FieldPath path = list.Item(constraints.size());
  model::TopologySpreadConstraint& out = constraints.emplace_back();
  Problems& problems = draft.problems;
  LabelKeysDraft keys;
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        SetPositive(r.Int32(), path.Field("maxSkew"), problems, out.max_skew);
        break;
      case 2:
        out.topology_key = r.String();
        break;
      case 3:
        SetWhenUnsatisfiable(r.Bytes(), path.Field("whenUnsatisfiable"), problems, out);
        break;
      case 4:
        r.Check(ReadLabelSelector(r.Bytes(), path.Field("labelSelector"), problems, out.selector));
        break;
      case 5:
        SetPositive(r.Int32(), path.Field("minDomains"), problems, out.min_domains);
        break;
      case 6:
        SetHonorPolicy(r.Bytes(), path.Field("nodeAffinityPolicy"), problems,
                       out.honor_node_affinity);
        break;
      case 7:
        SetHonorPolicy(r.Bytes(), path.Field("nodeTaintsPolicy"), problems, out.honor_node_taints);
        break;
      case 8:
        keys.match.push_back(r.String());
        break;
      default:
        break;
    }
  }
  KeepLabelKeys(std::move(keys), LabelKeysDraft::Of::kSpread, constraints.size() - 1, draft);
  return r.ok();
}

}  // namespace fairlead::kube::wire
