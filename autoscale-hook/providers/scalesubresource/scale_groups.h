// Groups of machines behind any object with the subresource /scale (model::ScaleGroup;
// docs/providers/scale-subresource.md), behind the port of groups/.
//
// The size is spec.replicas of the Scale. The machines are the Nodes with the labels of the group:
// a machine is known when its node registers, and a node without spec.providerID is a placeholder.
//
// Writing: the Scale is read first, and written with its resourceVersion as a precondition. A
// conflict means that nothing was done: the call begins anew, three times at most. An operation
// that lasts longer than GroupOperation::kLongest writes nothing more.
//
// Without a mark (deleteAnnotation) the object's controller chooses the machine that goes, so the
// size is lowered to 0 only, when every node of the group is to go (leave_together.h). With one:
//   1. The Node gets the annotation fairlead.dev/removed-from: uid and generation of the scaled
//      object. Every change of a spec raises the generation.
//   2. What the controller looks at gets the mark. The answers to 1 and 2 have to show them.
//   3. The size is lowered by one.
//   If step 3 certainly failed, the annotations are taken off. If its outcome is unknown they stay,
//   and the next round, before anything else is written, compares the generations: equal ones say
//   that step 3 was not done, different ones that it was. A new process does the same in its first
//   round. Only if others change the spec in that time is a removal taken for done that was not;
//   if the size then says that no node will go, the call fails with what to do.
// It is lowered only when the controller has made all machines (Scale.status.replicas, where it is
// told): else it would just make one less.
// While a node is to go, the size is raised only if the controller has seen it lowered
// (status.observedGeneration, where there is one): else it might never act.
// A place without a node is taken back only together with all of the group: the machine may be
// about to register, and the controller would choose.
//
// Errors: as CloudGroups says; those of one object concern its group alone, unless the API server
// does not answer or throttles: then the round fails. Ownership: borrows the
// API and the scheduler; callbacks that arrive after its end are ignored. Thread-safety: none.
// Complexity: a round is O(groups) calls, O(n log n) in the nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/providers/groups/cloud_groups.h"
#include "autoscale-hook/providers/groups/groups_provider.h"
#include "autoscale-hook/providers/groups/leave_together.h"
#include "autoscale-hook/providers/groups/object_api.h"
#include "autoscale-hook/providers/groups/object_calls.h"
#include "autoscale-hook/providers/scheduler_port.h"
#include "scheduler/model/scale_group.h"

namespace fairlead::hook {

inline constexpr char kScaleSubresourceName[] = "scale-subresource";
// Annotation of nodes, by Fairlead: uid and generation of the object whose size was lowered for the
// node.
inline constexpr char kRemovedFromAnnotation[] = "fairlead.dev/removed-from";
// The defaults of groups/, with the words of this provider, and longer pauses: a list of nodes is
// long.
GroupsOptions ScaleSubresourceOptions();

class ScaleGroups final : public CloudGroups {
 public:
  // `known_type`: of the configured catalogue; null: there is none.
  ScaleGroups(const std::vector<model::ScaleGroup>& groups, KnownType known_type, ObjectApi* api,
              Scheduler* scheduler);
  ScaleGroups(const ScaleGroups&) = delete;
  ScaleGroups& operator=(const ScaleGroups&) = delete;

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
  struct ListedNode {
    std::string name, provider_id;
    std::string record;  // kRemovedFromAnnotation
    model::StringMap annotations;
    bool deleting = false;
    [[nodiscard]] std::string InstanceId() const;
  };
  // What is known of a record: whether the size was lowered for it.
  struct Settled {
    std::string record;
    bool done = false;
  };
  struct Group {
    model::ScaleGroup config;
    std::string path, mark_path;  // of the object, and of what the mark is put on; "": not known
    // Of the last Refresh.
    absl::StatusOr<int64_t> replicas = absl::UnavailableError("not read yet");
    absl::StatusOr<std::vector<ListedNode>> nodes = absl::UnavailableError("not read yet");
    std::map<std::string, Settled> settled;  // by name of the node
  };
  // One call that writes.
  struct Operation : GroupOperation {
    bool marked = false;    // by this operation, or begun to be
    bool unmarked = false;  // it was tried to take the mark off
    // As read.
    int64_t replicas = 0, made = 0;
    std::string version, uid, generation;
    std::string node, node_path, marked_path, record;
  };
  using OperationPtr = std::shared_ptr<Operation>;
  using Then = std::function<void()>;
  using PathDone = std::function<void(absl::StatusOr<std::string>)>;

  // scale_groups.cc
  // Returns spec.replicas of a Scale, which leaves out a zero. InvalidArgument: the value is not a
  // whole number. A negative size is returned: GroupReader refuses it for the group.
  [[nodiscard]] static absl::StatusOr<int64_t> ReplicasIn(const Json& scale);
  // "/apis/GROUP/VERSION[/namespaces/NS]/RESOURCE", by discovery if the kind is given.
  void FindCollection(const std::string& api_version, const std::string& kind,
                      const std::string& resource, const std::string& ns, PathDone done);
  void FindPaths(const std::string& id, Done done);
  [[nodiscard]] absl::Status OfRound() const;
  void ReadGroup(const std::string& id, Then then);
  void ReadNodes(const std::string& id, Then then);
  void Settle(const std::string& id, Then then);
  Group* Find(const std::string& id);
  [[nodiscard]] std::set<std::string> Living(const Group& group) const;

  // scale_writes.cc
  void Finish(const OperationPtr& op, const absl::Status& status);
  void ReadScale(const OperationPtr& op, Then then);
  void WriteScale(const OperationPtr& op, int64_t replicas, Done done);
  void TryIncrease(const OperationPtr& op);
  void TryDecrease(const OperationPtr& op);
  void TryRemove(const OperationPtr& op);
  void TryLeave(const OperationPtr& op);
  void TryRemoveMarked(const OperationPtr& op);
  [[nodiscard]] std::string MarkedPath(const Group& group, const ListedNode& node) const;
  void ReadObject(const OperationPtr& op, Then then);
  void CheckRecord(const OperationPtr& op, const absl::StatusOr<Json>& node);
  [[nodiscard]] absl::Status AlreadyLowered(const OperationPtr& op) const;
  void Record(const OperationPtr& op, const Json& node);
  void Mark(const OperationPtr& op);
  void Lower(const OperationPtr& op);
  void TakeMarkOff(const OperationPtr& op, const absl::Status& status);
  void Again(const OperationPtr& op, const absl::Status& status,
             void (ScaleGroups::*attempt)(const OperationPtr&));

  const KnownType known_type_;
  ObjectApi* const api_;
  Scheduler* const scheduler_;
  std::map<std::string, Group> groups_;  // by id
  LeaveTogether leaving_;
  OwnedCallbacks callbacks_;
};

}  // namespace fairlead::hook
