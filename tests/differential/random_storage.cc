#include "tests/differential/random_storage.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "tests/differential/random_terms.h"

namespace fairlead::differential {
namespace {

constexpr int kClaimsPerNamespace = 8;
constexpr int kFreeVolumes = 16;
constexpr int kCapacities = 6;

const std::vector<std::string> kDrivers = {"csi.fast", "csi.slow"};
// Those of which a claim waits for its first consumer.
const std::vector<std::string> kDelayed = {"local", "fast", "slow"};
const std::vector<std::string> kSizes = {"1Gi", "2G", "5Gi", "12Gi", "30Gi"};
constexpr char kZone[] = "topology.kubernetes.io/zone";
constexpr char kRegion[] = "topology.kubernetes.io/region";
constexpr char kBetaZone[] = "failure-domain.beta.kubernetes.io/zone";
constexpr char kBetaRegion[] = "failure-domain.beta.kubernetes.io/region";
constexpr char kHostname[] = "kubernetes.io/hostname";
constexpr char kDeletion[] = "2026-01-01T00:00:00Z";

}  // namespace

RandomStorage::RandomStorage(Dice& dice, std::vector<std::string> namespaces, int nodes)
    : dice_(dice), nodes_(nodes) {
  for (int i = 0; i < kFreeVolumes; ++i) {
    Json volume = Volume(dice_.Pick({"local", "local", "fast", "slow", ""}));
    if (dice_.OneIn(8)) volume["status"]["phase"] = dice_.Pick({"Pending", "Failed"});
    if (dice_.OneIn(8)) {
      volume["status"]["phase"] = dice_.Pick({"Released", "Bound"});
      volume["spec"]["claimRef"] = {{"namespace", "blue"}, {"name", "gone"}, {"uid", "gone"}};
    }
    volumes_.push_back(volume);
  }
  for (const std::string& ns : namespaces) {
    for (int i = 0; i < kClaimsPerNamespace; ++i) {
      AddClaim(ns, absl::StrCat("data-", i), Json());
    }
  }
}

void RandomStorage::MoveInto(Json& world) {
  AddAttachments(world["pods"]);
  world["persistentVolumes"] = std::move(volumes_);
  world["persistentVolumeClaims"] = std::move(claims_);
  world["volumeAttachments"] = std::move(attachments_);
  world["storageClasses"] = Json::array(
      {Class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
       Class("fast", "csi.fast", "WaitForFirstConsumer"),
       Class("slow", "csi.slow", "WaitForFirstConsumer"), Class("now", "csi.fast", "Immediate")});
  world["csiNodes"] = Json::array();
  for (int i = 0; i < nodes_; ++i) {
    if (!dice_.OneIn(8)) world["csiNodes"].push_back(CsiNode(i));
  }
  world["csiDrivers"] = Json::array();
  for (const std::string& driver : kDrivers) {
    if (!dice_.OneIn(4)) world["csiDrivers"].push_back(CsiDriver(driver));
  }
  world["csiStorageCapacities"] = Json::array();
  for (int i = 0; i < kCapacities; ++i) world["csiStorageCapacities"].push_back(Capacity(i));
}

Json RandomStorage::Meta(const std::string& name, const std::string& ns) {
  Json meta = {{"name", name}, {"uid", ns.empty() ? name : absl::StrCat(ns, "-", name)}};
  if (!ns.empty()) meta["namespace"] = ns;
  return meta;
}

std::string RandomStorage::NodeName() {
  return absl::StrCat("node-", dice_.Between(0, nodes_ - 1));
}

std::string RandomStorage::ZoneKey() {
  return dice_.Pick({kZone, kZone, kRegion, kBetaZone, kBetaRegion});
}

void RandomStorage::AddZoneLabels(Json& labels) {
  if (!dice_.OneIn(4)) labels[kZone] = dice_.Pick(kZones);
  if (dice_.OneIn(2)) labels[kRegion] = dice_.Pick({"a", "b"});
  if (dice_.OneIn(4)) labels[kBetaZone] = dice_.Pick(kZones);
  if (dice_.OneIn(6)) labels[kBetaRegion] = dice_.Pick({"a", "b"});
}

// ---- what says where volumes can be made

Json RandomStorage::Class(const std::string& name, const std::string& provisioner,
                          const std::string& mode) {
  Json storage_class = {{"apiVersion", "storage.k8s.io/v1"},
                        {"kind", "StorageClass"},
                        {"metadata", Meta(name)},
                        {"provisioner", provisioner},
                        {"reclaimPolicy", "Delete"},
                        {"volumeBindingMode", mode}};
  if (dice_.OneIn(3)) storage_class["allowedTopologies"] = AllowedTopologies();
  return storage_class;
}

Json RandomStorage::AllowedTopologies() {
  Json terms = Json::array();
  do {
    Json term = Json::object();
    if (!dice_.OneIn(8)) {
      term["matchLabelExpressions"].push_back(
          {{"key", dice_.Pick({kZone, kZone, "zone", kBetaZone})},
           {"values", {dice_.Pick(kZones), dice_.Pick(kZones)}}});
    }
    if (dice_.OneIn(6)) {
      term["matchLabelExpressions"].push_back(
          {{"key", kHostname}, {"values", {NodeName(), NodeName(), NodeName(), NodeName()}}});
    }
    terms.push_back(term);
  } while (dice_.OneIn(3));
  return terms;
}

Json RandomStorage::CsiNode(int number) {
  const std::string name = absl::StrCat("node-", number);
  Json drivers = Json::array();
  for (const std::string& driver : kDrivers) {
    if (dice_.OneIn(4)) continue;
    Json entry = {{"name", driver}, {"nodeID", name}};
    if (!dice_.OneIn(4)) entry["allocatable"]["count"] = dice_.Between(0, 3);
    drivers.push_back(entry);
  }
  return {{"apiVersion", "storage.k8s.io/v1"},
          {"kind", "CSINode"},
          {"metadata", Meta(name)},
          {"spec", {{"drivers", drivers}}}};
}

Json RandomStorage::CsiDriver(const std::string& name) {
  Json spec = {{"attachRequired", true}};
  if (!dice_.OneIn(3)) spec["storageCapacity"] = !dice_.OneIn(3);
  return {{"apiVersion", "storage.k8s.io/v1"},
          {"kind", "CSIDriver"},
          {"metadata", Meta(name)},
          {"spec", spec}};
}

Json RandomStorage::Capacity(int number) {
  Json capacity = {{"apiVersion", "storage.k8s.io/v1"},
                   {"kind", "CSIStorageCapacity"},
                   {"metadata", Meta(absl::StrCat("capacity-", number), "blue")},
                   {"storageClassName", dice_.Pick({"fast", "slow", "now"})}};
  switch (dice_.Between(0, 5)) {
    case 0:
      break;  // of no node
    case 1:
      capacity["nodeTopology"] = Json::object();
      break;
    case 2:
      capacity["nodeTopology"]["matchLabels"] = {{kHostname, NodeName()}};
      break;
    case 3:
      capacity["nodeTopology"]["matchExpressions"] = {
          {{"key", kZone}, {"operator", dice_.Pick({"Exists", "DoesNotExist"})}}};
      break;
    default:
      capacity["nodeTopology"]["matchExpressions"] = {{{"key", dice_.Pick({kZone, "zone"})},
                                                       {"operator", dice_.Pick({"In", "NotIn"})},
                                                       {"values", {dice_.Pick(kZones)}}}};
  }
  if (!dice_.OneIn(6)) capacity["capacity"] = dice_.Pick(kSizes);
  if (dice_.OneIn(4)) capacity["maximumVolumeSize"] = dice_.Pick(kSizes);
  return capacity;
}

Json RandomStorage::Attachment(int number, const std::string& volume, const std::string& node) {
  std::string driver = dice_.Pick(kDrivers);
  for (const Json& each : volumes_) {
    if (each["metadata"]["name"] == volume && each["spec"].contains("csi")) {
      driver = each["spec"]["csi"]["driver"];
    }
  }
  return {
      {"apiVersion", "storage.k8s.io/v1"},
      {"kind", "VolumeAttachment"},
      {"metadata", Meta(absl::StrCat("attachment-", number))},
      {"spec",
       {{"attacher", driver}, {"nodeName", node}, {"source", {{"persistentVolumeName", volume}}}}},
      {"status", {{"attached", true}}}};
}

// Most of what pods use on their nodes, and volumes that no pod of that node uses.
void RandomStorage::AddAttachments(const Json& pods) {
  int number = 0;
  const auto add = [&](const std::string& volume, const std::string& node) {
    attachments_.push_back(Attachment(number++, volume, node));
  };
  for (const Json& pod : pods) {
    if (!pod["spec"].contains("volumes")) continue;
    for (const Json& volume : pod["spec"]["volumes"]) {
      if (!volume.contains("persistentVolumeClaim")) continue;
      const auto found =
          volume_of_.find({pod["metadata"]["namespace"].get<std::string>(),
                           volume["persistentVolumeClaim"]["claimName"].get<std::string>()});
      if (found == volume_of_.end() || dice_.OneIn(4)) continue;
      add(found->second, pod["spec"]["nodeName"]);
    }
  }
  for (const auto& [claim, volume] : volume_of_) {
    if (dice_.OneIn(2)) add(volume, NodeName());
  }
  for (int i = 0; i < kFreeVolumes; i += 4) add(absl::StrCat("pv-", i), NodeName());
  add("pv-none", NodeName());
}

// ---- volumes

void RandomStorage::SetClass(Json& object, const std::string& name) {
  if (dice_.OneIn(10)) {
    object["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"] = name;
    if (dice_.OneIn(2)) object["spec"]["storageClassName"] = dice_.Pick(kDelayed);
  } else if (!name.empty() || dice_.OneIn(2)) {
    object["spec"]["storageClassName"] = name;
  }
}

Json RandomStorage::AccessModes(bool of_volume) {
  if (of_volume) {
    Json modes = Json::array({"ReadWriteOnce"});
    if (dice_.OneIn(3)) modes.push_back("ReadOnlyMany");
    if (dice_.OneIn(3)) modes.push_back("ReadWriteMany");
    if (dice_.OneIn(2)) modes.push_back("ReadWriteOncePod");
    return modes;
  }
  if (dice_.OneIn(6)) return Json::array({"ReadWriteOncePod"});
  Json modes = Json::array({dice_.Pick({"ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany"})});
  if (dice_.OneIn(8)) modes.push_back("ReadOnlyMany");
  return modes;
}

Json RandomStorage::NodeTerm() {
  Json term = Json::object();
  switch (dice_.Between(0, 8)) {
    case 0:
      return term;  // matches no node
    case 1:
      term["matchExpressions"] = {{{"key", dice_.Pick({kZone, "rack", "disk"})},
                                   {"operator", dice_.Pick({"Exists", "DoesNotExist"})}}};
      break;
    case 2:
      term["matchExpressions"] = {{{"key", dice_.Pick({"cores", "disk"})},
                                   {"operator", dice_.Pick({"Gt", "NotIn"})},
                                   {"values", {dice_.Pick({"8", "ssd"})}}}};
      break;
    case 3:
      term["matchExpressions"] = {{{"key", dice_.Pick({kZone, kRegion, "zone"})},
                                   {"operator", "In"},
                                   {"values", {dice_.Pick(kZones), dice_.Pick(kZones)}}}};
      break;
    case 4:
      term["matchExpressions"] = {{{"key", kHostname},
                                   {"operator", dice_.Pick({"In", "In", "NotIn"})},
                                   {"values", {NodeName(), NodeName()}}}};
      break;
    default:
      term["matchExpressions"] = {
          {{"key", kHostname}, {"operator", "In"}, {"values", {NodeName()}}}};
  }
  if (dice_.OneIn(6)) {
    term["matchExpressions"].push_back(
        {{"key", kZone}, {"operator", "In"}, {"values", {"a", dice_.Pick(kZones)}}});
  }
  if (dice_.OneIn(16)) {
    term["matchFields"] = {
        {{"key", "metadata.name"}, {"operator", "In"}, {"values", {NodeName()}}}};
  }
  return term;
}

void RandomStorage::AddNodeAffinity(Json& spec) {
  Json terms = Json::array({NodeTerm()});
  while (dice_.OneIn(4)) terms.push_back(NodeTerm());
  spec["nodeAffinity"]["required"]["nodeSelectorTerms"] = terms;
}

Json RandomStorage::Volume(const std::string& storage_class) {
  const auto number = static_cast<int64_t>(volumes_.size());
  const std::string name = absl::StrCat("pv-", number);
  Json spec = {{"accessModes", AccessModes(true)},
               {"persistentVolumeReclaimPolicy", "Retain"},
               {"volumeMode", dice_.OneIn(6) ? "Block" : "Filesystem"}};
  // Up to 41 GiB in an order that is not that of the names, and no two alike.
  spec["capacity"]["storage"] = absl::StrCat((number * 7 % 41 + 1) * 1024 + number, "Mi");
  const bool local = storage_class == "local";
  if (local || dice_.OneIn(3)) AddNodeAffinity(spec);
  if (local) {
    spec["local"] = {{"path", "/disk"}};
  } else if (dice_.OneIn(6)) {
    spec["nfs"] = {{"server", "files"}, {"path", "/"}};
  } else {
    spec["csi"] = {{"driver", storage_class == "slow" ? "csi.slow" : "csi.fast"},
                   {"volumeHandle", name}};
  }
  if (dice_.OneIn(12)) spec["volumeAttributesClassName"] = "gold";
  Json volume = {{"apiVersion", "v1"},
                 {"kind", "PersistentVolume"},
                 {"metadata", Meta(name)},
                 {"spec", spec},
                 {"status", {{"phase", "Available"}}}};
  Json& labels = volume["metadata"]["labels"] = Json::object();
  if (dice_.OneIn(2)) labels["tier"] = dice_.Pick({"gold", "tin"});
  while (dice_.OneIn(3)) {
    labels[ZoneKey()] = dice_.Pick({"a", "b", "c", "a__b", "b__c__a", "a____b", ""});
  }
  SetClass(volume, storage_class);
  if (dice_.OneIn(16)) volume["metadata"]["deletionTimestamp"] = kDeletion;
  return volume;
}

// ---- claims

Json RandomStorage::Selector() {
  Json selector = Json::object();
  if (dice_.OneIn(2)) selector["matchLabels"]["tier"] = dice_.Pick({"gold", "tin"});
  if (dice_.OneIn(3)) {
    selector["matchExpressions"] = {
        {{"key", "tier"}, {"operator", dice_.Pick({"Exists", "DoesNotExist"})}}};
  }
  return selector;
}

void RandomStorage::AddClaim(const std::string& ns, const std::string& name, const Json& owner) {
  const int64_t kind = dice_.Between(1, 100);
  if (kind <= 3) return;  // it does not exist
  Json claim = {{"apiVersion", "v1"},
                {"kind", "PersistentVolumeClaim"},
                {"metadata", Meta(name, ns)},
                {"spec",
                 {{"accessModes", AccessModes(false)},
                  {"volumeMode", dice_.OneIn(8) ? "Block" : "Filesystem"}}},
                {"status", {{"phase", "Pending"}}}};
  if (!owner.is_null()) claim["metadata"]["ownerReferences"] = Json::array({owner});
  if (!dice_.OneIn(12)) {
    claim["spec"]["resources"]["requests"]["storage"] =
        dice_.OneIn(8) && !volumes_.empty()
            ? volumes_[static_cast<size_t>(dice_.Between(0, kFreeVolumes - 1))]["spec"]["capacity"]
                      ["storage"]
                          .get<std::string>()
            : dice_.Pick(kSizes);
  }
  if (dice_.OneIn(12)) claim["spec"]["volumeAttributesClassName"] = "gold";
  if (dice_.OneIn(40)) claim["metadata"]["deletionTimestamp"] = kDeletion;
  if (kind <= 50) {
    Bind(claim, dice_.Pick({"local", "fast", "fast", "slow", ""}));
  } else {
    MakeUnbound(claim);
  }
  claims_.push_back(claim);
}

void RandomStorage::Bind(Json& claim, const std::string& storage_class) {
  const std::string ns = claim["metadata"]["namespace"];
  const std::string name = claim["metadata"]["name"];
  SetClass(claim, storage_class);
  claim["status"]["phase"] = "Bound";
  claim["metadata"]["annotations"]["pv.kubernetes.io/bind-completed"] = "yes";
  // Of an ephemeral volume kube-scheduler would say it of each node, and not before.
  const bool ephemeral = claim["metadata"].contains("ownerReferences");
  if (dice_.OneIn(14)) {
    claim["spec"]["volumeName"] = "pv-none";
    if (ephemeral || dice_.OneIn(3)) claim["status"]["phase"] = "Lost";
    return;
  }
  Json volume = Volume(storage_class);
  volume["spec"]["claimRef"] = {
      {"namespace", ns}, {"name", name}, {"uid", claim["metadata"]["uid"]}};
  volume["status"]["phase"] = "Bound";
  claim["spec"]["volumeName"] = volume["metadata"]["name"];
  volume_of_[{ns, name}] = volume["metadata"]["name"].get<std::string>();
  volumes_.push_back(volume);
  // The user has chosen the volume, and the controller has not bound it yet.
  if (dice_.OneIn(30)) claim["metadata"]["annotations"].erase("pv.kubernetes.io/bind-completed");
}

void RandomStorage::MakeUnbound(Json& claim) {
  if (dice_.OneIn(20)) {
    SetClass(claim, dice_.Pick({"now", "gone", ""}));
    return;
  }
  const std::string storage_class = dice_.Pick(kDelayed);
  SetClass(claim, storage_class);
  if (dice_.OneIn(4)) claim["spec"]["selector"] = Selector();
  if (dice_.OneIn(6)) {
    claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] =
        dice_.OneIn(4) ? "node-none" : NodeName();
  }
  if (dice_.OneIn(6)) Prebind(claim, storage_class);
}

// A volume that names the claim, or a former one of its name.
void RandomStorage::Prebind(const Json& claim, const std::string& storage_class) {
  Json volume = Volume(dice_.OneIn(5) ? dice_.Pick(kDelayed) : storage_class);
  const Json& meta = claim["metadata"];
  Json& ref =
      volume["spec"]["claimRef"] = {{"namespace", meta["namespace"]}, {"name", meta["name"]}};
  if (dice_.OneIn(2)) ref["uid"] = dice_.OneIn(4) ? Json("gone") : meta["uid"];
  volume["status"]["phase"] = dice_.Pick({"Available", "Bound", "Released"});
  volumes_.push_back(volume);
}

// ---- volumes of pods

Json RandomStorage::InlineDisk() {
  const bool read_only = dice_.OneIn(2);
  const std::string id = dice_.Pick({"disk-0", "disk-0", "disk-1"});
  switch (dice_.Between(0, 3)) {
    case 0:
      return {{"gcePersistentDisk", {{"pdName", id}, {"readOnly", read_only}}}};
    case 1:
      return {{"awsElasticBlockStore", {{"volumeID", id}, {"readOnly", read_only}}}};
    case 2:
      return {{"iscsi",
               {{"targetPortal", dice_.Pick({"10.0.0.1:3260", "10.0.0.2:3260"})},
                {"iqn", id},
                {"lun", dice_.Between(0, 1)},
                {"readOnly", read_only}}}};
    default:
      return {{"rbd",
               {{"monitors", {dice_.Pick({"m1", "m2"}), dice_.Pick({"m2", "m3"})}},
                {"pool", dice_.Pick({"rbd", "other"})},
                {"image", id},
                {"readOnly", read_only}}}};
  }
}

// Claims are named in the order of their names, which is that of Fairlead: of several faults
// kube-scheduler tells the first in the order of the pod.
void RandomStorage::AddVolumes(Json& pod, bool bound) {
  if (!dice_.OneIn(3)) return;
  Json& volumes = pod["spec"]["volumes"] = Json::array();
  const std::string ns = pod["metadata"]["namespace"];
  const std::string pod_name = pod["metadata"]["name"];
  const auto add = [&](const std::string& name, Json source) {
    source["name"] = name;
    volumes.push_back(source);
  };
  std::set<std::string> claims;
  for (bool more = !dice_.OneIn(5); more; more = dice_.OneIn(3)) {
    claims.insert(absl::StrCat("data-", dice_.Between(0, kClaimsPerNamespace - 1)));
  }
  for (const std::string& claim : claims) {
    add(claim, {{"persistentVolumeClaim", {{"claimName", claim}}}});
    // For a claim that is not bound and is named twice, kube-scheduler wants two volumes.
    if (volume_of_.contains({ns, claim}) && dice_.OneIn(12)) {
      add(claim + "-again", {{"persistentVolumeClaim", {{"claimName", claim}}}});
    }
  }
  if (dice_.OneIn(5)) {
    Json owner = {{"apiVersion", "v1"},
                  {"kind", "Pod"},
                  {"name", pod_name},
                  {"uid", pod["metadata"]["uid"]},
                  {"controller", true}};
    if (!bound && dice_.OneIn(8)) owner["uid"] = "another";
    if (!bound && dice_.OneIn(12)) owner["controller"] = false;
    AddClaim(ns, absl::StrCat(pod_name, "-scratch"), owner);
    add("scratch", {{"ephemeral",
                     {{"volumeClaimTemplate",
                       {{"spec",
                         {{"accessModes", {"ReadWriteOnce"}},
                          {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}}}}}});
  }
  if (dice_.OneIn(2)) add("disk", InlineDisk());
  if (volumes.empty() || dice_.OneIn(4)) add("tmp", {{"emptyDir", Json::object()}});
}

}  // namespace fairlead::differential
