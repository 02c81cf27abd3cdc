// Containers and volumes: core.v1.Container, EnvVar, EnvFromSource, Volume.
#include <string>
#include <utility>
#include <vector>

#include "kube/codec/pod_json_parts.h"

namespace fairlead::kube::json {
namespace {

void ReadPort(JsonReader& reader, JsonValue value, const FieldPath& path, PortDraft& out) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "hostPort") out.host_port = reader.Int32(v, at).value_or(0);
    if (key == "containerPort") out.container_port = reader.Int32(v, at).value_or(0);
    if (key == "protocol") reader.String(v, at, out.protocol);
    if (key == "hostIP") reader.String(v, at, out.host_ip);
  });
}

// Reads {name, optional}; adds a config map that must exist.
void ReadConfigMap(JsonReader& reader, JsonValue value, const FieldPath& path, PodDraft& draft) {
  std::string name;
  bool optional = false;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key == "name") reader.String(v, path.Field(key), name);
    if (key == "optional") reader.Bool(v, path.Field(key), optional);
  });
  if (!optional && !name.empty()) draft.pod.spec.config_map_names.push_back(std::move(name));
}

// A list of objects whose field `field` is a reference to a config map.
void ReadConfigMapsIn(JsonReader& reader, JsonValue list, const FieldPath& path,
                      absl::string_view field, PodDraft& draft) {
  reader.Items(list, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      if (key == field) ReadConfigMap(reader, v, at.Field(key), draft);
    });
  });
}

void ReadEnv(JsonReader& reader, JsonValue list, const FieldPath& path, PodDraft& draft) {
  reader.Items(list, path, [&](size_t i, JsonValue item) {
    const FieldPath at = path.Item(i);
    reader.Fields(item, at, [&](absl::string_view key, JsonValue v) {
      if (key != "valueFrom") return;
      const FieldPath from = at.Field(key);
      reader.Fields(v, from, [&](absl::string_view source, JsonValue reference) {
        if (source == "configMapKeyRef") {
          ReadConfigMap(reader, reference, from.Field(source), draft);
        }
      });
    });
  });
}

void ReadContainer(JsonReader& reader, JsonValue value, const FieldPath& path, bool init,
                   size_t index, PodDraft& draft) {
  auto& containers = init ? draft.resources.init_containers : draft.resources.containers;
  ContainerResources& container = containers.emplace_back();
  absl::string_view image;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "resources") {
      ReadResourceRequirements(reader, v, at, container.requests, container.limits);
    } else if (key == "name") {
      container.name = reader.Text(v, at);
    } else if (key == "image") {
      image = reader.Text(v, at);
    } else if (key == "ports") {
      reader.Items(v, at, [&](size_t i, JsonValue item) {
        PortDraft& port = draft.ports.emplace_back();
        port.of_init_container = init;
        port.container = index;
        ReadPort(reader, item, at.Item(i), port);
      });
    } else if (key == "env") {
      ReadEnv(reader, v, at, draft);
    } else if (key == "envFrom") {
      ReadConfigMapsIn(reader, v, at, "configMapRef", draft);
    } else if (key == "restartPolicy") {
      container.sidecar = init && reader.Text(v, at) == "Always";
    } else if (key == "restartPolicyRules") {
      reader.Items(v, at, [&](size_t i, JsonValue rule) {
        reader.Fields(rule, at.Item(i), [&](absl::string_view field, JsonValue action) {
          if (field != "action") return;
          draft.restarts_all_containers |=
              reader.Text(action, at.Item(i).Field(field)) == kRestartAllContainers;
        });
      });
    }
  });
  if (image.empty()) return;
  (init ? draft.images.init_containers : draft.images.containers).push_back(image);
}

// A disk that the pod names itself: its name in field `id_field`.
void ReadDisk(JsonReader& reader, JsonValue value, const FieldPath& path,
              absl::string_view id_field, model::InlineDisk::Kind kind, PodDraft& draft) {
  model::InlineDisk& disk = draft.pod.spec.inline_disks.emplace_back();
  disk.kind = kind;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key == id_field) reader.String(v, path.Field(key), disk.id);
    if (key == "readOnly") reader.Bool(v, path.Field(key), disk.read_only);
  });
}

void ReadRbd(JsonReader& reader, JsonValue value, const FieldPath& path, PodDraft& draft) {
  RbdDraft rbd;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "monitors") reader.Strings(v, at, rbd.monitors);
    if (key == "image") reader.String(v, at, rbd.image);
    if (key == "pool") reader.String(v, at, rbd.pool);
    if (key == "readOnly") reader.Bool(v, at, rbd.read_only);
  });
  draft.pod.spec.inline_disks.push_back(ToDisk(std::move(rbd)));
}

void ReadImageVolume(JsonReader& reader, JsonValue value, const FieldPath& path, PodDraft& draft) {
  absl::string_view image;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key == "reference") image = reader.Text(v, path.Field(key));
  });
  if (!image.empty()) draft.images.volumes.push_back(image);
}

// A source that is no disk is skipped.
void ReadDiskSource(JsonReader& reader, absl::string_view key, JsonValue v, const FieldPath& at,
                    PodDraft& draft) {
  using Kind = model::InlineDisk::Kind;
  if (key == "gcePersistentDisk") {
    ReadDisk(reader, v, at, "pdName", Kind::kGcePersistentDisk, draft);
  } else if (key == "awsElasticBlockStore") {
    ReadDisk(reader, v, at, "volumeID", Kind::kAwsElasticBlockStore, draft);
  } else if (key == "iscsi") {
    ReadDisk(reader, v, at, "iqn", Kind::kIscsi, draft);
  } else if (key == "rbd") {
    ReadRbd(reader, v, at, draft);
  }
}

void ReadVolume(JsonReader& reader, JsonValue value, const FieldPath& path, PodDraft& draft) {
  std::vector<model::VolumeClaimRef>& claims = draft.pod.spec.volume_claims;
  absl::string_view volume_name;
  bool ephemeral = false;
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    const FieldPath at = path.Field(key);
    if (key == "name") {
      volume_name = reader.Text(v, at);
    } else if (key == "configMap") {
      ReadConfigMap(reader, v, at, draft);
    } else if (key == "persistentVolumeClaim") {
      std::string& claim = claims.emplace_back().name;
      reader.Fields(v, at, [&](absl::string_view field, JsonValue name) {
        if (field == "claimName") reader.String(name, at.Field(field), claim);
      });
    } else if (key == "ephemeral") {
      ephemeral = true;
    } else if (key == "image") {
      ReadImageVolume(reader, v, at, draft);
    } else if (key == "projected") {
      reader.Fields(v, at, [&](absl::string_view field, JsonValue sources) {
        if (field == "sources") {
          ReadConfigMapsIn(reader, sources, at.Field(field), "configMap", draft);
        }
      });
    } else {
      ReadDiskSource(reader, key, v, at, draft);
    }
  });
  if (ephemeral) claims.push_back({std::string(volume_name), /*ephemeral=*/true});
}

}  // namespace

void ReadResourceRequirements(JsonReader& reader, JsonValue value, const FieldPath& path,
                              model::ResourceList& requests, model::ResourceList& limits) {
  reader.Fields(value, path, [&](absl::string_view key, JsonValue v) {
    if (key == "requests") reader.Quantities(v, path.Field(key), requests);
    if (key == "limits") reader.Quantities(v, path.Field(key), limits);
  });
}

void ReadContainers(JsonReader& reader, JsonValue value, const FieldPath& path, bool init,
                    PodDraft& draft) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    ReadContainer(reader, item, path.Item(i), init, i, draft);
  });
}

bool ReadStatusResources(JsonReader& reader, absl::string_view key, JsonValue v,
                         const FieldPath& at, StatusResources& out) {
  if (key == "allocatedResources") {
    reader.Quantities(v, at, out.allocated);
    return true;
  }
  if (key != "resources") return false;
  out.reported = true;
  model::ResourceList limits;
  ReadResourceRequirements(reader, v, at, out.in_force, limits);
  return true;
}

void ReadContainerStatuses(JsonReader& reader, JsonValue value, const FieldPath& path,
                           PodDraft& draft) {
  reader.Items(value, path, [&](size_t i, JsonValue item) {
    StatusResources status;
    const FieldPath of_item = path.Item(i);
    reader.Fields(item, of_item, [&](absl::string_view key, JsonValue v) {
      const FieldPath at = of_item.Field(key);
      if (ReadStatusResources(reader, key, v, at, status)) return;
      if (key == "name") status.name = reader.Text(v, at);
    });
    if (status.reported) draft.resources.statuses.push_back(std::move(status));
  });
}

void ReadVolumes(JsonReader& reader, JsonValue value, const FieldPath& path, PodDraft& draft) {
  reader.Items(value, path,
               [&](size_t i, JsonValue item) { ReadVolume(reader, item, path.Item(i), draft); });
}

}  // namespace fairlead::kube::json
