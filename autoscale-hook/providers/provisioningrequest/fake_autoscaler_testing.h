// Cluster-autoscaler with ProvisioningRequests over FakeObjects, in virtual time: the conditions in
// its order and with its reasons, nodes for the pods of the template or none, and the removal of
// nodes that are no longer held. Thread-safety: one thread.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autoscale-hook/providers/groups/fake_objects_testing.h"
#include "autoscale-hook/providers/provisioningrequest/request_objects.h"

namespace fairlead::hook {

class FakeAutoscaler {
 public:
  static constexpr char kNamespace[] = "fairlead";

  struct Behaviour {
    absl::Duration reacts_after = absl::Seconds(1), node_after = absl::Seconds(40);
    absl::Duration removes_after = absl::Seconds(3);
    int64_t stock = 1000;  // machines that there are besides
    bool answers = true;
    std::string reason = "CapacityIsProvisioned";  // of Provisioned
    int64_t fewer = 0;                             // nodes that do not come
  };

  explicit FakeAutoscaler(VirtualTime* time) : objects(time), time_(time) {
    objects.on_change = [this](const std::string& path) { Changed(path); };
  }

  FakeObjects objects;
  std::map<std::string, Behaviour> behaviours;  // by label "pool" of the nodes

  static std::string RequestsPath() {
    return absl::StrCat(kRequestsRoot, "/namespaces/", kNamespace, "/provisioningrequests");
  }
  static std::string NodePath(const std::string& name) {
    return absl::StrCat("/api/v1/nodes/", name);
  }
  static std::string NodeRequestPath(const std::string& name) {
    return absl::StrCat("/apis/fairlead.dev/v1alpha1/noderequests/", name);
  }
  static std::string IdOfNode(const std::string& name) { return absl::StrCat("cloud:///", name); }

  model::ProvisioningGroup AddPool(const std::string& name, int64_t max_size = 10) {
    behaviours.try_emplace(name);
    model::ProvisioningGroup group;
    group.name = name;
    group.max_size = max_size;
    group.allocatable = {{"cpu", 4000}, {"memory", int64_t{16} << 30}};
    group.price_micro_usd_per_hour = 2'000'000;
    group.node_selector.Set("pool", name);
    return group;
  }
  // Paths, by name.
  [[nodiscard]] std::vector<std::string> Requests() const {
    std::vector<std::string> paths;
    for (const auto& [path, object] : objects.objects) {
      if (IsRequest(path)) paths.push_back(path);
    }
    return paths;
  }
  // The request for a NodeRequest; empty: there is none.
  [[nodiscard]] std::string RequestOf(const std::string& node_request) const {
    for (const std::string& path : Requests()) {
      for (const Json& owner :
           objects.objects.at(path).At({"metadata", "ownerReferences"})->items()) {
        if (owner.TextAt({"name"}) == node_request) return path;
      }
    }
    return "";
  }
  [[nodiscard]] std::vector<std::string> NodesOf(const std::string& pool) const {
    std::vector<std::string> names;
    for (const auto& [path, object] : objects.objects) {
      if (object.TextAt({"metadata", "labels", "pool"}) == pool) {
        names.push_back(object.TextAt({"metadata", "name"}));
      }
    }
    return names;
  }
  [[nodiscard]] std::string NodeOfId(const std::string& provider_id) const {
    for (const auto& [path, object] : objects.objects) {
      if (object.TextAt({"spec", "providerID"}) == provider_id) return path;
    }
    return "";
  }
  void AddNode(const std::string& pool, const std::string& name) {
    objects.Put(NodePath(name),
                absl::StrCat(R"({"metadata":{"labels":{"pool":")", pool,
                             R"("}},"spec":{"providerID":")", IdOfNode(name), R"("}})"));
  }
  void Say(const std::string& request, const std::string& type, const std::string& status,
           const std::string& reason, const std::string& message = "as asked") {
    Json& object = objects.objects.at(request);
    if (object.Find("status") == nullptr) object.Set("status", Json::Object());
    Json& state = *object.Find("status");
    Json list = Json::Array();
    if (const Json* had = state.Find("conditions")) {
      for (const Json& condition : had->items()) {
        if (condition.TextAt({"type"}) != type) list.Add(condition);
      }
    }
    Json condition = Json::Object();
    condition.Set("type", type).Set("status", status).Set("reason", reason);
    condition.Set("message", message);
    list.Add(std::move(condition));
    Json status_patch = Json::Object();
    Json conditions = Json::Object();
    conditions.Set("conditions", std::move(list));
    status_patch.Set("status", std::move(conditions));
    objects.Change(request, status_patch.Compact());
  }
  // Its nodes that have not come will not.
  void Revoke(const std::string& request) {
    revoked_.insert(objects.TextOf(request, {"metadata", "uid"}));
    Say(request, "CapacityRevoked", "True", "Preempted");
  }

 private:
  static bool IsRequest(const std::string& path) {
    return absl::StrContains(path, "/provisioningrequests/");
  }
  void Changed(const std::string& path) {
    const auto place = objects.objects.find(path);
    if (place == objects.objects.end()) return;
    if (IsRequest(path)) {
      const std::string uid = place->second.TextAt({"metadata", "uid"});
      if (!seen_.insert(uid).second) return;
      // The owners of what is made are there.
      for (const Json& owner : place->second.At({"metadata", "ownerReferences"})->items()) {
        objects.objects.try_emplace(NodeRequestPath(owner.TextAt({"name"})), Json::Object());
      }
      const std::string pool = PoolOf(place->second);
      time_->After(behaviours[pool].reacts_after, [this, path, uid, pool] {
        if (objects.TextOf(path, {"metadata", "uid"}) == uid) Answer(path, pool);
      });
      return;
    }
    const std::string pool = place->second.TextAt({"metadata", "labels", "pool"});
    const bool came =
        !place->second.TextAt({"metadata", "annotations", kCameForAnnotation}).empty();
    if (!came || !place->second.TextAt({"metadata", "annotations", kHoldAnnotation}).empty()) {
      return;
    }
    if (!leaving_.insert(path).second) return;
    time_->After(behaviours[pool].removes_after, [this, path] {
      leaving_.erase(path);
      objects.Erase(path);
    });
  }
  // By the selector of the template's pods.
  std::string PoolOf(const Json& request) const {
    const std::string name =
        request.At({"spec", "podSets"})->items()[0].TextAt({"podTemplateRef", "name"});
    const auto pods = objects.objects.find(
        absl::StrCat("/api/v1/namespaces/", kNamespace, "/podtemplates/", name));
    EXPECT_NE(pods, objects.objects.end()) << "the template is made first: " << name;
    if (pods == objects.objects.end()) return "";
    return pods->second.TextAt({"template", "spec", "nodeSelector", "pool"});
  }
  void Answer(const std::string& path, const std::string& pool) {
    Behaviour& behaviour = behaviours[pool];
    if (!behaviour.answers) return;
    Say(path, "Accepted", "True", "Accepted");
    int64_t count = 0;
    (void)absl::SimpleAtoi(
        objects.objects.at(path).At({"spec", "podSets"})->items()[0].TextAt({"count"}), &count);
    if (count > behaviour.stock) {
      return Say(path, "Provisioned", "False", "CapacityIsNotFound",
                 "Capacity is not found, CA will try to find it later.");
    }
    behaviour.stock -= count;
    Say(path, "Provisioned", "True", behaviour.reason);
    if (behaviour.node_after == absl::InfiniteDuration()) return;
    const std::string uid = objects.TextOf(path, {"metadata", "uid"});
    for (int64_t i = behaviour.fewer; i < count; ++i) {
      time_->After(behaviour.node_after, [this, pool, uid] {
        if (!revoked_.contains(uid)) AddNode(pool, absl::StrFormat("%s-%04d", pool, ++last_node_));
      });
    }
  }

  VirtualTime* time_;
  int last_node_ = 0;
  std::set<std::string> seen_, revoked_;  // uids
  std::set<std::string> leaving_;         // paths
};

}  // namespace fairlead::hook
