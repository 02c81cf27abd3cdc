#include <utility>

#include "kube/codec/field_values.h"
#include "kube/codec/pod_draft.h"
#include "kube/codec/pod_wire_parts.h"
#include "kube/codec/wire_codec.h"
#include "kube/codec/wire_reader.h"
#include "scheduler/model/api_names.h"

namespace fairlead::kube::wire {
namespace {

bool ReadToleration(absl::string_view bytes, const FieldPath& path, Problems& problems,
                    model::Toleration& out) {
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        out.key = r.String();
        break;
      case 2:
        SetTolerationOperator(r.Bytes(), path.Field("operator"), problems, out);
        break;
      case 3:
        out.value = r.String();
        break;
      case 4:
        SetTolerationEffect(r.Bytes(), path.Field("effect"), problems, out);
        break;
      default:
        break;
    }
  }
  return r.ok();
}

// The string in field 1 of a message; no other field is read.
bool ReadName(absl::string_view bytes, std::string& out) {
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) out = r.String();
  }
  return r.ok();
}

bool ReadResourceClaim(absl::string_view bytes, PodDraft& draft) {
  std::string name;
  std::string claim;
  std::string from_template;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) name = r.String();
    if (r.field() == 3) claim = r.String();
    if (r.field() == 4) from_template = r.String();
  }
  model::PodSpec& spec = draft.pod.spec;
  if (!claim.empty()) spec.resource_claims.push_back(std::move(claim));
  if (!from_template.empty()) {
    spec.claim_templates.push_back(from_template);
    draft.template_claims.emplace_back(std::move(name), std::move(from_template));
  }
  return r.ok();
}

bool ReadGeneratedClaim(absl::string_view bytes, PodDraft& draft) {
  std::string of;
  std::string name;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) of = r.String();
    if (r.field() == 2) name = r.String();
  }
  draft.made_claims.push_back(std::move(of));
  draft.pod.generated_claims.push_back(std::move(name));
  return r.ok();
}

bool ReadExtendedClaim(absl::string_view bytes, model::Pod& pod) {
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 2) pod.extended_claim = r.String();
  }
  return r.ok();
}

bool ReadSpec(absl::string_view bytes, const FieldPath& path, PodDraft& draft) {
  model::Pod& pod = draft.pod;
  model::PodSpec& spec = pod.spec;
  const FieldPath containers = path.Field("containers");
  const FieldPath init_containers = path.Field("initContainers");
  const FieldPath tolerations = path.Field("tolerations");
  const FieldPath spread = path.Field("topologySpreadConstraints");
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Check(ReadVolume(r.Bytes(), draft));
        break;
      case 2:
        r.Check(ReadContainer(r.Bytes(), /*init=*/false, containers, draft));
        break;
      case 3:
        pod.runs_to_end = RunsToEnd(r.Bytes());
        break;
      case 5:
        pod.active_deadline_s = r.Int64();
        break;
      case 7: {
        MapEntry entry;
        r.Check(ReadMapEntry(r.Bytes(), entry));
        spec.node_selector.Set(entry.key, entry.value);
        break;
      }
      case 10:
        pod.node_name = r.String();
        break;
      case 11:
        draft.host_network = r.Bool();
        break;
      case 18:
        r.Check(ReadAffinity(r.Bytes(), path.Field("affinity"), draft));
        break;
      case 19:
        pod.scheduler_name = r.String();
        break;
      case 20:
        r.Check(ReadContainer(r.Bytes(), /*init=*/true, init_containers, draft));
        break;
      case 22: {
        // The API server gives every pod two: not-ready and unreachable.
        if (spec.tolerations.empty()) spec.tolerations.reserve(2);
        const FieldPath item = tolerations.Item(spec.tolerations.size());
        r.Check(ReadToleration(r.Bytes(), item, draft.problems, spec.tolerations.emplace_back()));
        break;
      }
      case 24:
        pod.priority_class_name = r.String();
        break;
      case 25:
        pod.priority = r.Int32();
        break;
      case 37:
        draft.host_users = r.Bool();
        break;
      case 31:
        pod.never_preempts = r.Bytes() == kNeverPreempts;
        break;
      case 32:
        r.Check(ReadQuantityEntry(r.Bytes(), path.Field("overhead"), draft.problems,
                                  draft.resources.overhead));
        break;
      case 33:
        r.Check(ReadTopologySpread(r.Bytes(), spread, draft));
        break;
      case 38:
        r.Check(ReadName(r.Bytes(), pod.scheduling_gates.emplace_back()));
        break;
      case 39:
        r.Check(ReadResourceClaim(r.Bytes(), draft));
        break;
      case 40:
        r.Check(ReadResourceRequirements(r.Bytes(), path.Field("resources"), draft.problems,
                                         draft.resources.pod_requests, draft.resources.pod_limits));
        break;
      case 43:
        r.Check(ReadName(r.Bytes(), pod.scheduling_group));
        break;
      default:
        break;
    }
  }
  return r.ok();
}

bool ReadCondition(absl::string_view bytes, PodDraft& draft) {
  model::Pod& pod = draft.pod;
  absl::string_view type;
  absl::string_view status;
  absl::string_view reason;
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        type = r.Bytes();
        break;
      case 2:
        status = r.Bytes();
        break;
      case 5:
        reason = r.Bytes();
        break;
      default:
        break;
    }
  }
  if (r.ok() && type == model::kReadyCondition) pod.ready = status == "True";
  if (r.ok() && type == model::kPodScheduledCondition) {
    pod.scheduled.status = std::string(status);
    pod.scheduled.reason = std::string(reason);
  }
  if (type == kPodResizePending) draft.resources.resize_infeasible = reason == kResizeInfeasible;
  return r.ok();
}

bool ReadStatus(absl::string_view bytes, const FieldPath& path, PodDraft& draft) {
  model::Pod& pod = draft.pod;
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        pod.phase = ParsePodPhase(r.Bytes());
        break;
      case 2:
        r.Check(ReadCondition(r.Bytes(), draft));
        break;
      case 7: {
        std::optional<absl::Time> start;
        r.Check(ReadTime(r.Bytes(), start));
        if (start.has_value()) pod.start_time = *start;
        break;
      }
      case 8:
        r.Check(ReadContainerStatus(r.Bytes(), path.Field("containerStatuses"), draft));
        break;
      case 9:
        pod.spec.guaranteed = r.Bytes() == kGuaranteed;
        break;
      case 10:
        r.Check(ReadContainerStatus(r.Bytes(), path.Field("initContainerStatuses"), draft));
        break;
      case 11:
        pod.nominated_node_name = r.String();
        break;
      case 15:
        r.Check(ReadGeneratedClaim(r.Bytes(), draft));
        break;
      case 18:
        r.Check(ReadExtendedClaim(r.Bytes(), pod));
        break;
      case 19:
      case 20:
        r.Check(ReadStatusResources(r.field() == 20, r.Bytes(), path, draft.problems,
                                    draft.resources.pod_status));
        break;
      default:
        break;
    }
  }
  return r.ok();
}

}  // namespace

bool Read(absl::string_view bytes, model::Pod& out, model::TextPool* keys) {
  PodDraft draft(out);
  const FieldPath root;
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        r.Check(ReadMeta(r.Bytes(), draft.pod.meta, keys));
        break;
      case 2:
        r.Check(ReadSpec(r.Bytes(), root.Field("spec"), draft));
        break;
      case 3:
        r.Check(ReadStatus(r.Bytes(), root.Field("status"), draft));
        break;
      default:
        break;
    }
  }
  if (!r.ok()) return false;
  FinishPod(draft);
  return true;
}

}  // namespace fairlead::kube::wire
