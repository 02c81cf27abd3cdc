// Cluster API's controllers over FakeObjects, in virtual time: MachineDeployments and their
// Machines, which get a provider id and a node, and end by finalizer. Of Machines that are too
// many, those with the annotation go first, then those without a node, then by name: as MachineSets
// with the order "Random" do. Thread-safety: one thread.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autoscale-hook/providers/clusterapi/machine_objects.h"
#include "autoscale-hook/providers/groups/fake_objects_testing.h"

namespace fairlead::hook {

class FakeClusterApi {
 public:
  static constexpr char kRoot[] = "/apis/cluster.x-k8s.io/v1beta2";

  struct Behaviour {
    absl::Duration reacts_after = absl::Milliseconds(200);
    absl::Duration id_after = absl::Seconds(10), node_after = absl::Seconds(50);
    absl::Duration ends_after = absl::Seconds(3);
    int most_machines = 1'000'000;  // more are not made
    bool deletes = true;
    std::string failure_reason;  // of new machines
  };

  explicit FakeClusterApi(VirtualTime* time) : objects(time), time_(time) {
    objects.objects["/apis/cluster.x-k8s.io"] =
        *Json::Parse(R"({"versions":[{"version":"v1beta1"},{"version":"v1beta2"}]})");
    objects.on_change = [this](const std::string& path) { Changed(path); };
  }

  FakeObjects objects;
  std::map<std::string, Behaviour> behaviours;  // by name of the deployment

  static std::string DeploymentPath(const std::string& name) {
    return absl::StrCat(kRoot, "/namespaces/default/machinedeployments/", name);
  }
  static std::string MachinePath(const std::string& name) {
    return absl::StrCat(kRoot, "/namespaces/default/machines/", name);
  }
  void AddDeployment(const std::string& name, int min_size = 0, int max_size = 10, int replicas = 0,
                     const std::string& more_annotations = "") {
    behaviours.try_emplace(name);
    objects.Put(DeploymentPath(name),
                absl::StrCat(R"({"apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{"annotations":{
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size":")",
                             min_size, R"(",
      "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size":")",
                             max_size, R"(",
      "capacity.cluster-autoscaler.kubernetes.io/cpu":"4",
      "capacity.cluster-autoscaler.kubernetes.io/memory":"16Gi",
      "fairlead.dev/price-usd-per-hour":"1.5")",
                             more_annotations, R"(}},
      "spec":{"clusterName":"c","replicas":)",
                             replicas, "}}"));
  }
  [[nodiscard]] int Replicas(const std::string& deployment) const {
    int replicas = 0;
    if (!absl::SimpleAtoi(objects.TextOf(DeploymentPath(deployment), {"spec", "replicas"}),
                          &replicas)) {
      return -1;
    }
    return replicas;
  }
  // Names, without those that are being deleted.
  [[nodiscard]] std::vector<std::string> Machines(const std::string& deployment) const {
    std::vector<std::string> names;
    for (const ClusterMachine& machine : MachinesOf(deployment)) {
      if (!machine.deleting) names.push_back(machine.name);
    }
    return names;
  }
  [[nodiscard]] bool Has(const std::string& provider_id) const {
    for (const auto& [path, object] : objects.objects) {
      if (object.TextAt({"spec", "providerID"}) == provider_id) return true;
    }
    return false;
  }
  [[nodiscard]] std::string PathOfId(const std::string& provider_id) const {
    for (const auto& [path, object] : objects.objects) {
      if (object.TextAt({"spec", "providerID"}) == provider_id) return path;
    }
    return "";
  }
  static std::string IdOfMachine(const std::string& name) {
    return absl::StrCat("cloud:///", name);
  }

 private:
  [[nodiscard]] std::vector<ClusterMachine> MachinesOf(const std::string& deployment) const {
    std::vector<ClusterMachine> machines;
    for (const auto& [path, object] : objects.objects) {
      if (!absl::StrContains(path, "/machines/")) continue;
      const absl::StatusOr<ClusterMachine> machine = DecodeMachine(object);
      if (machine.ok() && machine->deployment == deployment) machines.push_back(*machine);
    }
    return machines;
  }
  void Changed(const std::string& path) {
    if (absl::StrContains(path, "/machinedeployments/")) {
      ReconcileSoon(path.substr(path.rfind('/') + 1));
      return;
    }
    if (!absl::StrContains(path, "/machines/")) return;
    const auto place = objects.objects.find(path);
    if (place == objects.objects.end()) {
      for (const auto& [name, behaviour] : behaviours) ReconcileSoon(name);
      return;
    }
    const std::string deployment =
        place->second.TextAt({"metadata", "labels", kDeploymentNameLabel});
    if (place->second.At({"metadata", "deletionTimestamp"}) != nullptr &&
        ending_.insert(path).second) {
      time_->After(behaviours[deployment].ends_after, [this, path] {
        ending_.erase(path);
        objects.Erase(path);
      });
    }
    ReconcileSoon(deployment);
  }
  void ReconcileSoon(const std::string& deployment) {
    if (!due_.insert(deployment).second) return;
    time_->After(behaviours[deployment].reacts_after, [this, deployment] {
      due_.erase(deployment);
      Reconcile(deployment);
    });
  }
  void Reconcile(const std::string& deployment) {
    const int replicas = Replicas(deployment);
    if (replicas < 0) return;
    const Behaviour behaviour = behaviours[deployment];
    std::vector<ClusterMachine> machines = MachinesOf(deployment);
    // Those that are being deleted are counted among those that are too many.
    const int surplus = static_cast<int>(machines.size()) - replicas;
    if (surplus > 0 && behaviour.deletes) {
      std::stable_sort(
          machines.begin(), machines.end(),
          [](const ClusterMachine& a, const ClusterMachine& b) { return Order(a) < Order(b); });
      for (int i = 0; i < surplus; ++i) {
        if (!machines[static_cast<size_t>(i)].deleting) {
          objects.BeginDeletion(MachinePath(machines[static_cast<size_t>(i)].name));
        }
      }
    }
    int living = 0;
    for (const ClusterMachine& machine : MachinesOf(deployment)) living += machine.deleting ? 0 : 1;
    for (; living < std::min(replicas, behaviour.most_machines); ++living) Make(deployment);
  }
  static int Order(const ClusterMachine& machine) {
    return machine.deleting ? 0 : machine.annotated ? 1 : !machine.has_node ? 2 : 3;
  }
  void Make(const std::string& deployment) {
    const std::string name = absl::StrFormat("%s-%04d", deployment, ++last_machine_);
    const std::string path = MachinePath(name);
    objects.Put(path, absl::StrCat(R"({"apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{
      "labels":{"cluster.x-k8s.io/deployment-name":")",
                                   deployment, R"("},"finalizers":["machine.cluster.x-k8s.io"],
      "ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"MachineSet","name":")",
                                   deployment, R"(-set","uid":"set-1"}]},"spec":{},"status":{}})"));
    const Behaviour& behaviour = behaviours[deployment];
    if (!behaviour.failure_reason.empty()) {
      objects.Change(
          path, absl::StrCat(R"({"status":{"phase":"Failed","deprecated":{"v1beta1":{
        "failureReason":")",
                             behaviour.failure_reason, R"(","failureMessage":"as asked"}}}})"));
      return;
    }
    Later(path, behaviour.id_after,
          absl::StrCat(R"({"spec":{"providerID":")", IdOfMachine(name), R"("}})"));
    Later(path, behaviour.node_after,
          absl::StrCat(R"({"status":{"nodeRef":{"name":"node-)", name, R"("}}})"));
  }
  void Later(const std::string& path, absl::Duration delay, const std::string& patch) {
    if (delay == absl::InfiniteDuration()) return;
    time_->After(delay, [this, path, patch] {
      if (objects.objects.contains(path)) objects.Change(path, patch);
    });
  }

  VirtualTime* time_;
  int last_machine_ = 0;
  std::set<std::string> due_, ending_;
};

}  // namespace fairlead::hook
