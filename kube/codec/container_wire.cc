// Containers and volumes: core.v1.Container, EnvVar, EnvFromSource, Volume.
#include <string>
#include <utility>

#include "kube/codec/pod_wire_parts.h"
#include "kube/codec/wire_codec.h"
#include "kube/codec/wire_reader.h"

namespace fairlead::kube::wire {
namespace {

bool ReadPort(absl::string_view bytes, PortDraft& out) {
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 2:
        out.host_port = r.Int32();
        break;
      case 3:
        out.container_port = r.Int32();
        break;
      case 4:
        out.protocol = r.String();
        break;
      case 5:
        out.host_ip = r.String();
        break;
      default:
        break;
    }
  }
  return r.ok();
}

void AddConfigMap(absl::string_view name, PodDraft& draft) {
  if (!name.empty()) draft.pod.spec.config_map_names.emplace_back(name);
}

// A message whose field `field` is a reference to a config map.
bool ReadConfigMapIn(absl::string_view bytes, uint32_t field, uint32_t optional_field,
                     PodDraft& draft) {
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() != field) continue;
    absl::string_view name;
    r.Check(ReadRequiredReference(r.Bytes(), optional_field, name));
    AddConfigMap(name, draft);
  }
  return r.ok();
}

bool ReadEnv(absl::string_view bytes, PodDraft& draft) {
  constexpr uint32_t kValueFrom = 3;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == kValueFrom) r.Check(ReadConfigMapIn(r.Bytes(), 3, 3, draft));
  }
  return r.ok();
}

bool ReadProjected(absl::string_view bytes, PodDraft& draft) {
  constexpr uint32_t kSources = 1;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == kSources) r.Check(ReadConfigMapIn(r.Bytes(), 3, 4, draft));
  }
  return r.ok();
}

// A disk that the pod names itself: its name in field `id_field`, readOnly in `read_only_field`.
bool ReadDisk(absl::string_view bytes, uint32_t id_field, uint32_t read_only_field,
              model::InlineDisk::Kind kind, PodDraft& draft) {
  model::InlineDisk& disk = draft.pod.spec.inline_disks.emplace_back();
  disk.kind = kind;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == id_field) {
      disk.id = r.String();
    } else if (r.field() == read_only_field) {
      disk.read_only = r.Bool();
    }
  }
  return r.ok();
}

bool ReadRbd(absl::string_view bytes, PodDraft& draft) {
  RbdDraft rbd;
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        rbd.monitors.push_back(r.String());
        break;
      case 2:
        rbd.image = r.String();
        break;
      case 4:
        rbd.pool = r.String();
        break;
      case 8:
        rbd.read_only = r.Bool();
        break;
      default:
        break;
    }
  }
  draft.pod.spec.inline_disks.push_back(ToDisk(std::move(rbd)));
  return r.ok();
}

bool ReadClaimName(absl::string_view bytes, std::string& out) {
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) out = r.String();
  }
  return r.ok();
}

bool ReadImageVolume(absl::string_view bytes, PodDraft& draft) {
  absl::string_view image;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) image = r.Bytes();
  }
  if (!image.empty()) draft.images.volumes.push_back(image);
  return r.ok();
}

bool ReadVolumeSource(absl::string_view bytes, PodDraft& draft, bool& ephemeral) {
  using Kind = model::InlineDisk::Kind;
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 3:  // gcePersistentDisk
        r.Check(ReadDisk(r.Bytes(), 1, 4, Kind::kGcePersistentDisk, draft));
        break;
      case 4:  // awsElasticBlockStore
        r.Check(ReadDisk(r.Bytes(), 1, 4, Kind::kAwsElasticBlockStore, draft));
        break;
      case 8:  // iscsi
        r.Check(ReadDisk(r.Bytes(), 2, 6, Kind::kIscsi, draft));
        break;
      case 10:  // persistentVolumeClaim
        r.Check(ReadClaimName(r.Bytes(), draft.pod.spec.volume_claims.emplace_back().name));
        break;
      case 11:  // rbd
        r.Check(ReadRbd(r.Bytes(), draft));
        break;
      case 19: {  // configMap
        absl::string_view name;
        r.Check(ReadRequiredReference(r.Bytes(), 4, name));
        AddConfigMap(name, draft);
        break;
      }
      case 26:
        r.Check(ReadProjected(r.Bytes(), draft));
        break;
      case 29:
        r.Bytes();  // only its presence counts
        ephemeral = true;
        break;
      case 30:
        r.Check(ReadImageVolume(r.Bytes(), draft));
        break;
      default:
        break;
    }
  }
  return r.ok();
}

}  // namespace

bool ReadRequiredReference(absl::string_view bytes, uint32_t optional_field,
                           absl::string_view& name) {
  bool optional = false;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) {
      WireReader reference(r.Bytes());
      while (reference.Next()) {
        if (reference.field() == 1) name = reference.Bytes();
      }
      r.Check(reference.ok());
    } else if (r.field() == optional_field) {
      optional = r.Bool();
    }
  }
  if (optional) name = {};
  return r.ok();
}

bool ReadResourceRequirements(absl::string_view bytes, const FieldPath& path, Problems& problems,
                              model::ResourceList& requests, model::ResourceList& limits) {
  const FieldPath limits_path = path.Field("limits");
  const FieldPath requests_path = path.Field("requests");
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) r.Check(ReadQuantityEntry(r.Bytes(), limits_path, problems, limits));
    if (r.field() == 2) r.Check(ReadQuantityEntry(r.Bytes(), requests_path, problems, requests));
  }
  return r.ok();
}

namespace {

bool ReadRestartRule(absl::string_view bytes, PodDraft& draft) {
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) draft.restarts_all_containers |= r.Bytes() == kRestartAllContainers;
  }
  return r.ok();
}

}  // namespace

bool ReadContainer(absl::string_view bytes, bool init, const FieldPath& list, PodDraft& draft) {
  auto& containers = init ? draft.resources.init_containers : draft.resources.containers;
  const size_t index = containers.size();
  ContainerResources& container = containers.emplace_back();
  const FieldPath path = list.Item(index);
  absl::string_view image;
  WireReader r(bytes);
  while (r.Next()) {
    switch (r.field()) {
      case 1:
        container.name = r.Bytes();
        break;
      case 2:
        image = r.Bytes();
        break;
      case 6: {
        PortDraft& port = draft.ports.emplace_back();
        port.of_init_container = init;
        port.container = index;
        r.Check(ReadPort(r.Bytes(), port));
        break;
      }
      case 7:
        r.Check(ReadEnv(r.Bytes(), draft));
        break;
      case 8:
        r.Check(ReadResourceRequirements(r.Bytes(), path.Field("resources"), draft.problems,
                                         container.requests, container.limits));
        break;
      case 19:  // envFrom{configMapRef=2}
        r.Check(ReadConfigMapIn(r.Bytes(), 2, 2, draft));
        break;
      case 24:
        container.sidecar = init && r.Bytes() == "Always";
        break;
      case 25:  // restartPolicyRules{action=1}
        r.Check(ReadRestartRule(r.Bytes(), draft));
        break;
      default:
        break;
    }
  }
  if (!image.empty()) {
    (init ? draft.images.init_containers : draft.images.containers).push_back(image);
  }
  return r.ok();
}

bool ReadContainerStatus(absl::string_view bytes, const FieldPath& path, PodDraft& draft) {
  StatusResources status;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) status.name = r.Bytes();
    if (r.field() == 10 || r.field() == 11) {
      r.Check(ReadStatusResources(r.field() == 11, r.Bytes(), path, draft.problems, status));
    }
  }
  if (status.reported) draft.resources.statuses.push_back(std::move(status));
  return r.ok();
}

bool ReadStatusResources(bool in_force, absl::string_view bytes, const FieldPath& path,
                         Problems& problems, StatusResources& out) {
  if (!in_force) {
    return ReadQuantityEntry(bytes, path.Field("allocatedResources"), problems, out.allocated);
  }
  out.reported = true;
  model::ResourceList limits;
  return ReadResourceRequirements(bytes, path.Field("resources"), problems, out.in_force, limits);
}

bool ReadVolume(absl::string_view bytes, PodDraft& draft) {
  absl::string_view name;
  bool ephemeral = false;
  WireReader r(bytes);
  while (r.Next()) {
    if (r.field() == 1) name = r.Bytes();
    if (r.field() == 2) r.Check(ReadVolumeSource(r.Bytes(), draft, ephemeral));
  }
  if (ephemeral) draft.pod.spec.volume_claims.push_back({std::string(name), /*ephemeral=*/true});
  return r.ok();
}

}  // namespace fairlead::kube::wire
