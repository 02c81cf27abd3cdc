// The storage of a random cluster: claims, volumes, storage classes, and what CSI drivers say of
// nodes, as the JSON that the API server would answer; and the volumes of pods.
//
// No two volumes are of one size, because kube-scheduler takes any of the smallest that match. Nor
// is anything generated about which its plugins answer an error instead of a refusal, such as a pod
// on a node whose ephemeral volume has the claim of another pod.
//
// Thread-safety: the dice's.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/differential/dice.h"

namespace fairlead::differential {

using Json = nlohmann::json;

class RandomStorage {
 public:
  // Makes the claims of the namespaces. The dice must outlive it.
  RandomStorage(Dice& dice, std::vector<std::string> namespaces, int nodes);

  // Labels by the well-known keys, which say zone and region of a node.
  void AddZoneLabels(Json& labels);
  // The volumes of a pod, and the claims of those that are ephemeral. `bound`: it is on a node.
  void AddVolumes(Json& pod, bool bound);
  // All objects, and attachments of what the pods of the world use. Once, at the end.
  void MoveInto(Json& world);

 private:
  Json Meta(const std::string& name, const std::string& ns = "");
  std::string NodeName();
  std::string ZoneKey();

  Json Class(const std::string& name, const std::string& provisioner, const std::string& mode);
  Json AllowedTopologies();
  Json CsiNode(int number);
  Json CsiDriver(const std::string& name);
  Json Capacity(int number);
  Json Attachment(int number, const std::string& volume, const std::string& node);
  void AddAttachments(const Json& pods);

  Json AccessModes(bool of_volume);
  Json NodeTerm();
  void AddNodeAffinity(Json& spec);
  Json Volume(const std::string& storage_class);
  // The storage class of a claim or volume, in either of two places.
  void SetClass(Json& object, const std::string& name);
  Json Selector();
  // Makes the claim, unless it is one that does not exist; `owner`: the pod of an ephemeral volume.
  void AddClaim(const std::string& ns, const std::string& name, const Json& owner);
  void Bind(Json& claim, const std::string& storage_class);
  void MakeUnbound(Json& claim);
  void Prebind(const Json& claim, const std::string& storage_class);
  Json InlineDisk();

  Dice& dice_;
  const int nodes_;
  Json volumes_ = Json::array();
  Json claims_ = Json::array();
  Json attachments_ = Json::array();
  // By namespace and name of a claim: the volume that it is bound to.
  std::map<std::pair<std::string, std::string>, std::string> volume_of_;
};

}  // namespace fairlead::differential
