// Groups of machines that Cluster API makes: MachineDeployments and MachinePools with the
// annotations of cluster-autoscaler's provider clusterapi (docs/providers/cluster-api.md), behind
// the port of groups/.
//
// Reading: Refresh lists both kinds, and the Machines with a label of either. The other reads
// answer from that, and read one machine template if annotations do not tell CPU and memory.
//
// Writing: the object is read first, and written with its resourceVersion as a precondition. A
// conflict means that nothing was done: the call begins anew, three times at most. An operation
// that lasts longer than GroupOperation::kLongest writes nothing more.
//
// Removal of a named machine:
//   1. The Machine gets the annotation cluster.x-k8s.io/delete-machine, by which its MachineSet
//      chooses. The answer has to show it.
//   2. spec.replicas is lowered by one. The same patch adds the Machine's uid to the annotation
//      fairlead.dev/removed-machines: whatever answer was lost, in this process or another,
//      replicas are lowered once for a Machine.
//   If step 2 certainly failed, the annotation is taken off; if its outcome is unknown, it stays.
//   A Machine for which replicas were lowered, and which its MachineSet has no reason to delete
//   (replicas were raised again meanwhile), is deleted by name after kRoundsUntilDeletion rounds.
//
// Nothing is lowered while the object is paused, being deleted, or while its Machines belong to two
// MachineSets: in a rollout another MachineSet may lose a Machine. A place without a Machine is
// taken back after kRoundsUntilOpen rounds only, and only if no Machine has come: else the
// MachineSet would choose.
//
// MachinePools whose machines have no Machine objects cannot remove a named one (leave_together.h).
//
// Sources: Cluster API's book (autoscaling, MachineSet deletion order) and CRDs, v1.14. Ownership:
// borrows the API and the scheduler; callbacks that arrive after its end are ignored.
// Thread-safety: none. Complexity: a round is O(n log n) in the objects.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/providers/clusterapi/machine_objects.h"
#include "autoscale-hook/providers/groups/cloud_groups.h"
#include "autoscale-hook/providers/groups/groups_provider.h"
#include "autoscale-hook/providers/groups/leave_together.h"
#include "autoscale-hook/providers/groups/object_api.h"
#include "autoscale-hook/providers/groups/object_calls.h"
#include "autoscale-hook/providers/scheduler_port.h"

namespace fairlead::hook {

inline constexpr char kClusterApiName[] = "cluster-api";
// The defaults of groups/, with the words of this provider.
GroupsOptions ClusterApiOptions();

struct ClusterApiScope {
  std::string ns;            // empty: all namespaces
  std::string cluster_name;  // empty: every Cluster
};

class ClusterApiGroups final : public CloudGroups {
 public:
  static constexpr int kRoundsUntilOpen = 5;
  static constexpr int kRoundsUntilDeletion = 5;
  static constexpr int kRoundsOfTrouble = 3;  // until a problem that may pass is an error

  ClusterApiGroups(ClusterApiScope scope, ObjectApi* api, Scheduler* scheduler)
      : scope_(std::move(scope)), api_(api), scheduler_(scheduler) {}
  ClusterApiGroups(const ClusterApiGroups&) = delete;
  ClusterApiGroups& operator=(const ClusterApiGroups&) = delete;

  void Refresh(Done done) override;
  void Groups(Answer<std::vector<CloudGroup>> answer) override;
  void GpuLabel(Answer<std::string> answer) override { answer(std::string()); }
  void NodePrice(const CloudNode& node, Answer<double> answer) override;
  void TargetSize(const std::string& group, Answer<int64_t> answer) override;
  void Nodes(const std::string& group, Answer<std::vector<CloudInstance>> answer) override;
  void TemplateNode(const std::string& group, Answer<model::Node> answer) override;
  void IncreaseSize(const std::string& group, const Increase& increase, Done done) override;
  void DecreaseTargetSize(const std::string& group, int64_t delta, Done done) override;
  void DeleteNodes(const std::string& group, const std::vector<CloudNode>& nodes,
                   Done done) override;

 private:
  // Of the last Refresh.
  struct Group {
    ScalableKind kind = ScalableKind::kMachineDeployment;
    Json object;
    absl::StatusOr<Scalable> read = absl::UnknownError("not read");
    std::vector<ClusterMachine> machines;  // by name
    absl::Status machines_wrong;
    int rounds_open = 0;
  };
  // One call that writes.
  struct Operation : GroupOperation {
    bool annotated = false;  // by this operation
    Scalable read;
    ClusterMachine machine;
  };
  using OperationPtr = std::shared_ptr<Operation>;
  using GroupMap = std::map<std::string, Group>;

  // cluster_api_groups.cc
  [[nodiscard]] std::string RootPath() const;
  [[nodiscard]] std::string CollectionPath(const char* plural) const;
  [[nodiscard]] std::string ObjectPath(const std::string& ns, const char* plural,
                                       const std::string& name) const;
  void FindVersion(Done done);
  void ListGroups(ScalableKind kind, std::shared_ptr<GroupMap> read, Done done);
  void ListMachines(const char* label, ScalableKind kind, std::shared_ptr<GroupMap> read,
                    Done done);
  void TakeRead(GroupMap read);
  void CountRounds(const std::string& id, Group& group);
  void DeleteSwallowed(Done done);
  [[nodiscard]] std::vector<CloudInstance> InstancesOf(const Group& group) const;
  void ReadInfrastructure(const std::string& id, const std::string& group_path,
                          const std::string& tail, Answer<model::Node> answer);

  // cluster_api_writes.cc
  void Finish(const OperationPtr& op, const absl::Status& status);
  // Reads the object, and goes on if it may be written.
  void ReadForWrite(const OperationPtr& op, std::function<void()> then);
  void WriteReplicas(const OperationPtr& op, int64_t replicas, const std::string& annotations,
                     Done then);
  void TryIncrease(const OperationPtr& op);
  void TryDecrease(const OperationPtr& op);
  void CheckPlaces(const OperationPtr& op, const absl::StatusOr<Json>& list);
  void TryRemove(const OperationPtr& op);
  void RemoveWithoutMachine(const OperationPtr& op);
  void CheckMachine(const OperationPtr& op, const absl::StatusOr<Json>& read);
  void Annotate(const OperationPtr& op);
  void Lower(const OperationPtr& op);
  void TakeAnnotationOff(const OperationPtr& op, const absl::Status& status);
  // A conflict: the call begins anew.
  void Again(const OperationPtr& op, const absl::Status& status,
             void (ClusterApiGroups::*attempt)(const OperationPtr&));
  [[nodiscard]] bool IsRollingOut(const std::string& group) const;
  [[nodiscard]] const ClusterMachine* FindMachine(const std::string& group,
                                                  const std::string& instance) const;

  const ClusterApiScope scope_;
  ObjectApi* const api_;
  Scheduler* const scheduler_;
  std::string version_;  // "v1beta2"; empty: not known yet
  GroupMap groups_;
  // Rounds in a row, by uid of the Machine.
  std::map<std::string, int> swallowed_, troubled_;
  LeaveTogether leaving_;
  OwnedCallbacks callbacks_;
};

}  // namespace fairlead::hook
