#include <utility>

#include "kube/codec/field_values.h"
#include "kube/codec/json_codec.h"
#include "kube/codec/pod_json_parts.h"
#include "scheduler/model/api_names.h"

namespace fairlead::kube::json {
namespace {

void ReadTolerations(JsonReader& reader, JsonValue value, const FieldPath& path,
                     std::vector<model::Toleration>& out) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath toleration_path = path.Item(i);
    model::Toleration& toleration = out.emplace_back();
    reader.Fields(item, toleration_path, [&](absl::string_view key, JsonValue v) {
      const FieldPath at = toleration_path.Field(key);
      if (key == "key") return reader.String(v, at, toleration.key);
      if (key == "value") return reader.String(v, at, toleration.value);
      if (key == "operator") {
        return SetTolerationOperator(reader.Text(v, at), at, reader.problems(), toleration);
      }
      if (key == "effect") {
        return SetTolerationEffect(reader.Text(v, at), at, reader.problems(), toleration);
      }
    });
  });
}

// The field `field` of every object of a list.
void ReadNames(JsonReader& reader, JsonValue value, const FieldPath& path, absl::string_view field,
               std::vector<std::string>& out) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      if (key == field) reader.String(v, at.Field(key), out.emplace_back());
    });
  });
}

void ReadResourceClaims(JsonReader& reader, JsonValue value, const FieldPath& path,
                        PodDraft& draft) {
  model::PodSpec& out = draft.pod.spec;
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    std::string name;
    std::string from_template;
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      if (key == "name") reader.String(v, at.Field(key), name);
      if (key == "resourceClaimName") {
        reader.String(v, at.Field(key), out.resource_claims.emplace_back());
      } else if (key == "resourceClaimTemplateName") {
        reader.String(v, at.Field(key), from_template);
      }
    });
    if (from_template.empty()) return;
    out.claim_templates.push_back(from_template);
    draft.template_claims.emplace_back(std::move(name), std::move(from_template));
  });
}

// An entry without a name means that no claim was needed.
void ReadGeneratedClaims(JsonReader& reader, JsonValue value, const FieldPath& path,
                         PodDraft& draft) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    std::string& name = draft.pod.generated_claims.emplace_back();
    std::string& of = draft.made_claims.emplace_back();
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      if (key == "name") reader.String(v, at.Field(key), of);
      if (key == "resourceClaimName") reader.String(v, at.Field(key), name);
    });
  });
}

// The parts of the spec that are lists of objects; false if it is none of them.
bool ReadSpecList(JsonReader& reader, absl::string_view key, JsonValue v, const FieldPath& at,
                  PodDraft& draft) {
  model::PodSpec& spec = draft.pod.spec;
  if (key == "containers") {
    ReadContainers(reader, v, at, /*init=*/false, draft);
  } else if (key == "initContainers") {
    ReadContainers(reader, v, at, /*init=*/true, draft);
  } else if (key == "volumes") {
    ReadVolumes(reader, v, at, draft);
  } else if (key == "tolerations") {
    ReadTolerations(reader, v, at, spec.tolerations);
  } else if (key == "topologySpreadConstraints") {
    ReadTopologySpread(reader, v, at, draft);
  } else if (key == "schedulingGates") {
    ReadNames(reader, v, at, "name", draft.pod.scheduling_gates);
  } else if (key == "resourceClaims") {
    ReadResourceClaims(reader, v, at, draft);
  } else {
    return false;
  }
  return true;
}

void ReadSpec(JsonReader& reader, JsonValue value, const FieldPath& path, PodDraft& draft) {
  model::Pod& pod = draft.pod;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (ReadSpecList(reader, key, v, at, draft)) return;
    if (key == "nodeSelector") return reader.Map(v, at, pod.spec.node_selector);
    if (key == "nodeName") return reader.String(v, at, pod.node_name);
    if (key == "hostNetwork") return reader.Bool(v, at, draft.host_network);
    if (key == "hostUsers") return reader.Bool(v, at, draft.host_users);
    if (key == "affinity") return ReadAffinity(reader, v, at, draft);
    if (key == "schedulerName") return reader.String(v, at, pod.scheduler_name);
    if (key == "priorityClassName") return reader.String(v, at, pod.priority_class_name);
    if (key == "overhead") return reader.Quantities(v, at, draft.resources.overhead);
    if (key == "priority") {
      pod.priority = reader.Int32(v, at);
      return;
    }
    if (key == "preemptionPolicy") {
      pod.never_preempts = reader.Text(v, at) == kNeverPreempts;
      return;
    }
    if (key == "restartPolicy") {
      pod.runs_to_end = RunsToEnd(reader.Text(v, at));
      return;
    }
    if (key == "activeDeadlineSeconds") {
      pod.active_deadline_s = reader.Int64(v, at).value_or(0);
      return;
    }
    if (key == "resources") {
      return ReadResourceRequirements(reader, v, at, draft.resources.pod_requests,
                                      draft.resources.pod_limits);
    }
    if (key == "schedulingGroup") {
      reader.Fields(v, at, [&](absl::string_view field, JsonValue name) {
        if (field == "podGroupName") reader.String(name, at.Field(field), pod.scheduling_group);
      });
    }
  });
}

void ReadConditions(JsonReader& reader, JsonValue value, const FieldPath& path, PodDraft& draft) {
  model::Pod& pod = draft.pod;
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    absl::string_view type;
    absl::string_view status;
    absl::string_view reason;
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      if (key == "type") type = reader.Text(v, at.Field(key));
      if (key == "status") status = reader.Text(v, at.Field(key));
      if (key == "reason") reason = reader.Text(v, at.Field(key));
    });
    if (type == kPodResizePending) draft.resources.resize_infeasible = reason == kResizeInfeasible;
    if (type == model::kReadyCondition) pod.ready = status == "True";
    if (type != model::kPodScheduledCondition) return;
    pod.scheduled.status = std::string(status);
    pod.scheduled.reason = std::string(reason);
  });
}

void ReadStatus(JsonReader& reader, JsonValue value, const FieldPath& path, PodDraft& draft) {
  model::Pod& pod = draft.pod;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (ReadStatusResources(reader, key, v, at, draft.resources.pod_status)) return;
    if (key == "containerStatuses" || key == "initContainerStatuses") {
      ReadContainerStatuses(reader, v, at, draft);
    }
    if (key == "phase") pod.phase = ParsePodPhase(reader.Text(v, at));
    if (key == "conditions") ReadConditions(reader, v, at, draft);
    if (key == "qosClass") pod.spec.guaranteed = reader.Text(v, at) == kGuaranteed;
    if (key == "startTime") {
      std::optional<absl::Time> start;
      reader.Time(v, at, start);
      if (start.has_value()) pod.start_time = *start;
    }
    if (key == "nominatedNodeName") reader.String(v, at, pod.nominated_node_name);
    if (key == "resourceClaimStatuses") ReadGeneratedClaims(reader, v, at, draft);
    if (key == "extendedResourceClaimStatus") {
      reader.Fields(v, at, [&](absl::string_view field, JsonValue name) {
        if (field != "resourceClaimName") return;
        reader.String(name, at.Field(field), pod.extended_claim);
      });
    }
  });
}

}  // namespace

void Read(JsonReader& reader, JsonValue value, model::Pod& out) {
  PodDraft draft(out);
  const FieldPath root;
  reader.Fields(value, root, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = root.Field(key);
    if (key == "kind") CheckKind(reader, v, model::Kind::kPod);
    if (key == "metadata") ReadMeta(reader, v, at, draft.pod.meta);
    if (key == "spec") ReadSpec(reader, v, at, draft);
    if (key == "status") ReadStatus(reader, v, at, draft);
  });
  draft.problems = std::move(reader.problems());
  FinishPod(draft);
  reader.problems() = std::move(draft.problems);
}

}  // namespace fairlead::kube::json
