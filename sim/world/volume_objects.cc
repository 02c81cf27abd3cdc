#include "sim/world/volume_objects.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "sim/world/api_json.h"

namespace fairlead::sim::world {
namespace {

constexpr char kHostLabel[] = "kubernetes.io/hostname";

Json AffinityTo(const char* label, const std::string& value) {
  const Json expression = {{"key", label}, {"operator", "In"}, {"values", Json::array({value})}};
  const Json term = {{"matchExpressions", Json::array({expression})}};
  return {{"required", {{"nodeSelectorTerms", Json::array({term})}}}};
}

std::string ValueOf(const Labels& node, const char* label) {
  const auto found = node.find(label);
  return found == node.end() ? "" : found->second;
}

Json VolumeClaimSpec(const Operation& fields, const std::string& mode) {
  return {
      {"accessModes", Json::array({mode})},
      {"storageClassName", fields.Text("volume_class")},
      {"volumeMode", "Filesystem"},
      {"resources",
       {{"requests", {{"storage", absl::StrCat(fields.Number("volume_gib", 1), "Gi")}}}}},
  };
}

Json MakeVolume(const std::string& name, Json spec) {
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolume"},
          {"metadata", {{"name", name}, {"finalizers", Json::array({kVolumeFinalizer})}}},
          {"spec", std::move(spec)},
          {"status", {{"phase", "Pending"}}}};
}

}  // namespace

Json MakeStorageClass(const Operation& fields) {
  const std::string where = fields.Text("where");
  const bool by_hand = where == "none";
  Json out = {{"apiVersion", "storage.k8s.io/v1"},
              {"kind", "StorageClass"},
              {"metadata", {{"name", fields.Text("name")}}},
              {"provisioner", by_hand ? "kubernetes.io/no-provisioner" : kVolumeDriver},
              {"reclaimPolicy", "Delete"},
              {"parameters", {{"where", where}}},
              {"volumeBindingMode",
               fields.Number("immediate") != 0 ? "Immediate" : "WaitForFirstConsumer"}};
  const std::string zones = fields.Text("zones");
  if (!zones.empty()) {
    const std::vector<std::string> values = absl::StrSplit(zones, ',');
    const Json expression = {{"key", kZoneLabel}, {"values", values}};
    out["allowedTopologies"] =
        Json::array({{{"matchLabelExpressions", Json::array({expression})}}});
  }
  return out;
}

Json MakeLocalVolume(const Operation& fields) {
  const std::string modes = fields.Text("modes");
  const std::vector<std::string> values =
      absl::StrSplit(modes.empty() ? "ReadWriteOnce,ReadWriteOncePod" : modes, ',');
  Json volume =
      MakeVolume(fields.Text("name"),
                 {{"storageClassName", fields.Text("class")},
                  {"capacity", {{"storage", absl::StrCat(fields.Number("gib", 1), "Gi")}}},
                  {"accessModes", values},
                  {"volumeMode", "Filesystem"},
                  {"persistentVolumeReclaimPolicy", "Delete"},
                  {"local", {{"path", absl::StrCat("/mnt/", fields.Text("name"))}}},
                  {"nodeAffinity", AffinityTo(kHostLabel, fields.Text("node"))}});
  volume["metadata"]["annotations"][kMadeByHand] = PrintOperation(fields);
  return volume;
}

Json MakeCsiNode(const std::string& node, int64_t volumes) {
  return {{"apiVersion", "storage.k8s.io/v1"},
          {"kind", "CSINode"},
          {"metadata", {{"name", node}}},
          {"spec",
           {{"drivers", Json::array({{{"name", kVolumeDriver},
                                      {"nodeID", node},
                                      {"allocatable", {{"count", volumes}}}}})}}}};
}

std::string ProvisionedVolumeName(const VolumeClaimFacts& claim) {
  return absl::StrCat("pvc-", claim.uid);
}

Json MakeProvisionedVolume(const VolumeClaimFacts& claim, const StorageClassFacts& storage_class,
                           const Labels& node) {
  const std::string name = ProvisionedVolumeName(claim);
  Json volume = MakeVolume(name, {{"storageClassName", storage_class.name},
                                  {"capacity", {{"storage", absl::StrCat(claim.ask.bytes)}}},
                                  {"accessModes", claim.ask.modes},
                                  {"volumeMode", "Filesystem"},
                                  {"persistentVolumeReclaimPolicy", "Delete"},
                                  {"csi", {{"driver", kVolumeDriver}, {"volumeHandle", name}}},
                                  {"claimRef",
                                   {{"apiVersion", "v1"},
                                    {"kind", "PersistentVolumeClaim"},
                                    {"namespace", claim.ns},
                                    {"name", claim.name},
                                    {"uid", claim.uid}}}});
  volume["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] = kVolumeDriver;
  const std::string zone = ValueOf(node, kZoneLabel);
  if (storage_class.where == "host") {
    volume["spec"]["nodeAffinity"] = AffinityTo(kHostLabel, ValueOf(node, kHostLabel));
  } else if (storage_class.where == "label") {
    if (!zone.empty()) volume["metadata"]["labels"][kZoneLabel] = zone;
  } else if (!zone.empty()) {
    volume["spec"]["nodeAffinity"] = AffinityTo(kZoneLabel, zone);
  }
  return volume;
}

Json MakeVolumeClaim(const std::string& ns, const std::string& name, Json spec) {
  return {
      {"apiVersion", "v1"},
      {"kind", "PersistentVolumeClaim"},
      {"metadata",
       {{"name", name}, {"namespace", ns}, {"finalizers", Json::array({kVolumeClaimFinalizer})}}},
      {"spec", std::move(spec)},
      {"status", {{"phase", "Pending"}}}};
}

std::string SharedVolumeClaimName(const std::string& job) { return absl::StrCat("shared-", job); }
std::string OwnVolumeClaimName(const std::string& pod) { return absl::StrCat("data-", pod); }

void AddVolumes(Json& pod, const Operation& fields, const std::string& name) {
  const std::string kind = fields.Text("volume");
  if (kind.empty()) return;
  Json volumes = Json::array(), specs = Json::object();
  const auto add = [&](const char* volume, const std::string& claim, const std::string& mode) {
    volumes.push_back({{"name", volume}, {"persistentVolumeClaim", {{"claimName", claim}}}});
    specs[claim] = VolumeClaimSpec(fields, mode);
  };
  if (kind == "ephemeral") {
    volumes.push_back(
        {{"name", "scratch"},
         {"ephemeral",
          {{"volumeClaimTemplate", {{"spec", VolumeClaimSpec(fields, "ReadWriteOnce")}}}}}});
  }
  if (kind == "own" || kind == "both") add("data", OwnVolumeClaimName(name), "ReadWriteOnce");
  if (kind == "shared" || kind == "both") {
    const std::string of = fields.Text("volume_of"), modes = fields.Text("volume_modes");
    add("shared", SharedVolumeClaimName(of.empty() ? fields.Text("name") : of),
        modes.empty() ? "ReadWriteMany" : modes);
  }
  pod["spec"]["volumes"] = std::move(volumes);
  pod["metadata"]["annotations"][kVolumeClaims] = specs.dump();
}

}  // namespace fairlead::sim::world
