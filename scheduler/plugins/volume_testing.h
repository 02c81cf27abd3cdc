// A small cluster with objects of storage, for the tests of the plugins of volumes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/plugins/plugin_test_util.h"

namespace fairlead::plugins {

using model::testing::kGiB;

class VolumeTest : public PluginTest {
 protected:
  using Binding = model::StorageClass::Binding;

  void Put(const model::VolumeObject& object) { state_.UpsertVolumeObject(object); }

  static model::StorageClass Class(absl::string_view name, absl::string_view provisioner,
                                   Binding binding = Binding::kWaitForFirstConsumer) {
    model::StorageClass out;
    out.meta.name = std::string(name);
    out.provisioner = std::string(provisioner);
    out.binding = binding;
    return out;
  }
  // Of namespace ns, ReadWriteOnce, not bound.
  static model::PersistentVolumeClaim Claim(absl::string_view name,
                                            absl::string_view storage_class) {
    model::PersistentVolumeClaim out;
    out.meta.ns = "ns";
    out.meta.name = std::string(name);
    out.meta.uid = absl::StrCat("uid-claim-", name);
    out.storage_class = std::string(storage_class);
    out.access_modes = model::kReadWriteOnce;
    out.has_request = true;
    out.requested_bytes = kGiB;
    return out;
  }
  // Free, for claims of that class.
  static model::PersistentVolume Volume(absl::string_view name, absl::string_view storage_class) {
    model::PersistentVolume out;
    out.meta.name = std::string(name);
    out.meta.uid = absl::StrCat("uid-volume-", name);
    out.storage_class = std::string(storage_class);
    out.capacity_bytes = kGiB;
    out.access_modes = model::kReadWriteOnce;
    out.available = true;
    return out;
  }
  // It can be used on nodes with one of the values alone.
  static model::PersistentVolume AtLabel(model::PersistentVolume volume, absl::string_view key,
                                         std::vector<std::string> values) {
    volume.has_node_affinity = true;
    volume.node_terms = {
        {{{std::string(key), model::SelectorOperator::kIn, std::move(values)}}, {}}};
    return volume;
  }
  static model::PersistentVolume OfDriver(model::PersistentVolume volume,
                                          absl::string_view driver) {
    volume.csi_driver = std::string(driver);
    volume.csi_handle = absl::StrCat("handle-", volume.meta.name);
    return volume;
  }
  // A claim "NAME" that is bound to the volume.
  void PutBound(absl::string_view name, model::PersistentVolume volume,
                model::AccessModes access_modes = model::kReadWriteOnce) {
    model::PersistentVolumeClaim claim = Claim(name, volume.storage_class);
    claim.access_modes = access_modes;
    claim.volume_name = volume.meta.name;
    claim.bind_completed = true;
    volume.claim = {claim.meta.ns, claim.meta.name, claim.meta.uid};
    volume.available = false;
    Put(volume);
    Put(claim);
  }

  static std::vector<model::VolumeClaimRef> Refs(const std::vector<std::string>& claims) {
    std::vector<model::VolumeClaimRef> refs;
    for (const std::string& claim : claims) refs.push_back({claim});
    return refs;
  }
  static model::Pod PodWith(absl::string_view name, const std::vector<std::string>& claims) {
    model::Pod pod = PodBuilder("ns", name);
    pod.spec.volume_claims = Refs(claims);
    return pod;
  }
  static model::Pod On(absl::string_view node, model::Pod pod) {
    pod.node_name = std::string(node);
    pod.phase = model::PodPhase::kRunning;
    return pod;
  }
  static model::Pod Deleting(model::Pod pod) {
    pod.meta.deletion = model::testing::At(5);
    return pod;
  }
  // The pod that is asked about names these claims.
  void WaitingWith(const std::vector<std::string>& claims) {
    model::PodSpec spec;
    spec.volume_claims = Refs(claims);
    Waiting(spec);
  }
};

}  // namespace fairlead::plugins
