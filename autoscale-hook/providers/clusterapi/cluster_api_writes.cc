// The calls of ClusterApiGroups that write (cluster_api_groups.h has the rules).
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autoscale-hook/providers/clusterapi/cluster_api_groups.h"
#include "autoscale-hook/providers/groups/object_path.h"
#include "autoscale-hook/provisioning/failure.h"
#include "base/json_writer.h"

namespace fairlead::hook {
namespace {

// Sets the annotation only if the Machine is still as it was read.
std::string MarkPatch(const ClusterMachine& machine) {
  return AnnotationPatch(machine.resource_version, kDeleteMachineAnnotation, "fairlead");
}
// Takes the annotation off without a precondition: a changed Machine must not keep it.
std::string UnmarkPatch() { return AnnotationPatch("", kDeleteMachineAnnotation, std::nullopt); }

}  // namespace

void ClusterApiGroups::Finish(const OperationPtr& op, const absl::Status& status) {
  // Replicas were certainly not lowered: the MachineSet must not choose the Machine when others
  // lower them.
  if (op->annotated && !status.ok() && !op->in_doubt) {
    op->annotated = false;
    return TakeAnnotationOff(op, status);
  }
  if (std::exchange(op->over, true)) return;
  op->done(status);
}

void ClusterApiGroups::Again(const OperationPtr& op, const absl::Status& status,
                             void (ClusterApiGroups::*attempt)(const OperationPtr&)) {
  if (op->TriesAgain(status)) return (this->*attempt)(op);
  Finish(op, status);
}

void ClusterApiGroups::ReadForWrite(const OperationPtr& op, std::function<void()> then) {
  const auto known = groups_.find(op->group);
  if (known == groups_.end() || !known->second.read.ok()) {
    return Finish(op, absl::NotFoundError(absl::StrCat("group ", op->group, " is not listed")));
  }
  const Scalable& of = *known->second.read;
  const std::string path = ObjectPath(of.ns, ScalablePlural(of.kind), of.name);
  api_->Get(path, callbacks_.Once<absl::StatusOr<Json>>([this, op, path, kind = of.kind,
                                                         uid = of.uid, then = std::move(then)](
                                                            const absl::StatusOr<Json>& object) {
    if (!object.ok()) return Finish(op, OfObjectCall(object.status(), "read " + path));
    absl::StatusOr<Scalable> read = DecodeScalable(kind, *object);
    if (!read.ok()) return Finish(op, read.status());
    if (read->uid != uid) {
      return Finish(op, absl::UnavailableError(
                            absl::StrCat("group ", op->group, " was replaced by another object")));
    }
    op->read = *std::move(read);
    if (op->read.deleting) return Finish(op, RefusedForGroup(op->group, "is being deleted"));
    if (op->read.paused) {
      return Finish(op, RefusedForGroup(op->group, "is paused; unpause it"));
    }
    then();
  }));
}

// `annotations`: as in SizeChange.
void ClusterApiGroups::WriteReplicas(const OperationPtr& op, int64_t replicas,
                                     const std::string& annotations, Done then) {
  WriteSize(api_, callbacks_, *op,
            {ObjectPath(op->read.ns, ScalablePlural(op->read.kind), op->read.name),
             op->read.resource_version, replicas, annotations},
            std::move(then));
}

// ---- sizes

void ClusterApiGroups::IncreaseSize(const std::string& id, const Increase& increase, Done done) {
  const OperationPtr op = BeginOperation<Operation>(scheduler_, id, std::move(done));
  op->delta = increase.delta;
  TryIncrease(op);
}

void ClusterApiGroups::TryIncrease(const OperationPtr& op) {
  ReadForWrite(op, [this, op] {
    const absl::Status allowed = CheckIncrease(*op, op->read.replicas, op->read.max_size);
    if (!allowed.ok()) return Finish(op, allowed);
    WriteReplicas(op, op->read.replicas + op->delta, "", [this, op](const absl::Status& status) {
      Again(op, status, &ClusterApiGroups::TryIncrease);
    });
  });
}

void ClusterApiGroups::DecreaseTargetSize(const std::string& id, int64_t delta, Done done) {
  const OperationPtr op = BeginOperation<Operation>(scheduler_, id, std::move(done));
  op->delta = delta;
  TryDecrease(op);
}

void ClusterApiGroups::TryDecrease(const OperationPtr& op) {
  const auto group = groups_.find(op->group);
  if (group != groups_.end() && group->second.rounds_open < kRoundsUntilOpen) {
    return Finish(op, absl::UnavailableError(absl::StrCat(
                          "group ", op->group,
                          ": a place is taken back after some seconds without a Machine")));
  }
  ReadForWrite(op, [this, op] {
    const bool pool = op->read.kind == ScalableKind::kMachinePool;
    const absl::Status allowed = CheckDecrease(*op, op->read.replicas, op->read.min_size);
    if (!allowed.ok()) return Finish(op, allowed);
    if (IsRollingOut(op->group)) {
      return Finish(op,
                    RefusedForGroup(op->group, "is rolling out new machines; it is tried later"));
    }
    // The cloud chooses the machine of a pool, and may be starting one that is not listed.
    if (pool && op->read.replicas != op->delta) {
      return Finish(op,
                    RefusedForGroup(op->group,
                                    "the provider of a MachinePool chooses the machine that goes, "
                                    "so a place is not taken back"));
    }
    const std::string label = absl::StrCat(kDeploymentNameLabel, "=", op->read.name);
    api_->List(CollectionPathOf(RootPath(), op->read.ns, "machines"), pool ? kPoolNameLabel : label,
               callbacks_.Once<absl::StatusOr<Json>>(
                   [this, op](const absl::StatusOr<Json>& list) { CheckPlaces(op, list); }));
  });
}

void ClusterApiGroups::CheckPlaces(const OperationPtr& op, const absl::StatusOr<Json>& list) {
  if (!list.ok()) return Finish(op, OfObjectCall(list.status(), "list machines"));
  int64_t living = op->read.kind == ScalableKind::kMachinePool
                       ? static_cast<int64_t>(op->read.provider_ids.size())
                       : 0;
  for (const Json& item : list->items()) {
    const absl::StatusOr<ClusterMachine> machine = DecodeMachine(item);
    if (!machine.ok()) return Finish(op, machine.status());
    if (!IsMachineOf(*machine, op->read) || machine->deleting) continue;
    if (!op->read.removed.contains(machine->uid)) ++living;
  }
  const int64_t replicas = op->read.replicas - op->delta;
  if (replicas < living) {
    return Finish(op, RefusedForGroup(op->group, absl::StrCat("a Machine has taken the place; "
                                                              "machines: ",
                                                              living)));
  }
  WriteReplicas(op, replicas, "", [this, op](const absl::Status& status) {
    Again(op, status, &ClusterApiGroups::TryDecrease);
  });
}

// ---- removal

void ClusterApiGroups::DeleteNodes(const std::string& id, const std::vector<CloudNode>& nodes,
                                   Done done) {
  const auto remove = [this, id](const CloudNode& node, Done then) {
    const OperationPtr op = BeginOperation<Operation>(scheduler_, id, std::move(then));
    op->instance = node.provider_id;
    TryRemove(op);
  };
  RemoveEach(nodes, remove, done);
}

const ClusterMachine* ClusterApiGroups::FindMachine(const std::string& group,
                                                    const std::string& instance) const {
  const auto known = groups_.find(group);
  if (known == groups_.end()) return nullptr;
  for (const ClusterMachine& machine : known->second.machines) {
    if (machine.InstanceId() == instance) return &machine;
  }
  return nullptr;
}

// Machines of two MachineSets exist: which of them loses one is not for us to choose.
bool ClusterApiGroups::IsRollingOut(const std::string& group) const {
  const auto known = groups_.find(group);
  if (known == groups_.end()) return false;
  std::set<std::string> sets;
  for (const ClusterMachine& machine : known->second.machines) sets.insert(machine.owner_uid);
  return sets.size() > 1;
}

void ClusterApiGroups::TryRemove(const OperationPtr& op) {
  const ClusterMachine* const known = FindMachine(op->group, op->instance);
  if (known == nullptr) return RemoveWithoutMachine(op);
  ReadForWrite(op, [this, op, ns = known->ns, name = known->name] {
    const std::string path = ObjectPath(ns, "machines", name);
    api_->Get(path, callbacks_.Once<absl::StatusOr<Json>>(
                        [this, op](const absl::StatusOr<Json>& read) { CheckMachine(op, read); }));
  });
}

void ClusterApiGroups::RemoveWithoutMachine(const OperationPtr& op) {
  const auto known = groups_.find(op->group);
  if (known == groups_.end() || known->second.kind != ScalableKind::kMachinePool) {
    return Finish(op, absl::UnavailableError(absl::StrCat("group ", op->group, ": machine ",
                                                          op->instance, " is not listed")));
  }
  ReadForWrite(op, [this, op] {
    std::set<std::string> listed(op->read.provider_ids.begin(), op->read.provider_ids.end());
    for (const ClusterMachine& machine : groups_[op->group].machines) {
      if (!machine.deleting) listed.insert(machine.InstanceId());
    }
    const absl::Status together =
        leaving_.Ask(op->group, op->instance, listed, op->read.replicas, op->read.min_size,
                     "the machines of this MachinePool have no Machine objects, and none can be "
                     "removed by name");
    if (!together.ok() || op->read.replicas == 0) return Finish(op, together);
    WriteReplicas(op, 0, "", [this, op](const absl::Status& status) {
      Again(op, status, &ClusterApiGroups::TryRemove);
    });
  });
}

void ClusterApiGroups::CheckMachine(const OperationPtr& op, const absl::StatusOr<Json>& read) {
  if (!read.ok()) {
    return Finish(op, OfMachineRead(read.status(), "read the Machine of " + op->instance));
  }
  absl::StatusOr<ClusterMachine> machine = DecodeMachine(*read);
  if (!machine.ok()) return Finish(op, machine.status());
  op->machine = *std::move(machine);
  if (op->read.removed.contains(op->machine.uid)) return Finish(op, absl::OkStatus());
  const bool same =
      op->machine.InstanceId() == op->instance || op->machine.PlaceId() == op->instance;
  if (!same || op->machine.deleting || !IsMachineOf(op->machine, op->read)) {
    return Finish(op, absl::UnavailableError(absl::StrCat("group ", op->group, ": machine ",
                                                          op->instance, " has changed")));
  }
  const absl::Status allowed = CheckRemoval(*op, op->read.replicas, op->read.min_size);
  if (!allowed.ok()) return Finish(op, allowed);
  if (IsRollingOut(op->group)) {
    return Finish(op, RefusedForGroup(op->group, "is rolling out new machines; it is tried later"));
  }
  op->machine.annotated ? Lower(op) : Annotate(op);
}

void ClusterApiGroups::Annotate(const OperationPtr& op) {
  if (op->expired) return Finish(op, GivenUp(*op));
  const std::string path = ObjectPath(op->machine.ns, "machines", op->machine.name);
  api_->Patch(
      path, MarkPatch(op->machine),
      callbacks_.Once<absl::StatusOr<Json>>([this, op, path](const absl::StatusOr<Json>& written) {
        if (!written.ok()) {
          return Again(op, OfObjectCall(written.status(), "patch " + path),
                       &ClusterApiGroups::TryRemove);
        }
        const absl::StatusOr<ClusterMachine> marked = DecodeMachine(*written);
        if (!marked.ok() || !marked->annotated) {
          return Finish(op, AnnotationNotShown(path, kDeleteMachineAnnotation));
        }
        op->annotated = true;
        Lower(op);
      }));
}

void ClusterApiGroups::Lower(const OperationPtr& op) {
  // Uids of Machines that are gone are left out.
  std::set<std::string> removed;
  for (const ClusterMachine& machine : groups_[op->group].machines) {
    if (op->read.removed.contains(machine.uid)) removed.insert(machine.uid);
  }
  removed.insert(op->machine.uid);
  JsonWriter json;
  json.BeginObject().Field(kRemovedMachinesAnnotation, absl::StrJoin(removed, ",")).EndObject();
  WriteReplicas(op, op->read.replicas - 1, json.Take(), [this, op](const absl::Status& status) {
    op->in_doubt = !absl::IsAborted(status) && IsUnknownOutcome(status);
    Again(op, status, &ClusterApiGroups::TryRemove);
  });
}

void ClusterApiGroups::TakeAnnotationOff(const OperationPtr& op, const absl::Status& status) {
  const std::string path = ObjectPath(op->machine.ns, "machines", op->machine.name);
  api_->Patch(
      path, UnmarkPatch(),
      callbacks_.Once<absl::StatusOr<Json>>(
          [this, op, status](const absl::StatusOr<Json>& written) {
            if (written.ok() || absl::IsNotFound(written.status())) return Finish(op, status);
            Finish(op, {status.code(),
                        absl::StrCat(status.message(), "; Machine ", op->machine.ns, "/",
                                     op->machine.name, " keeps annotation ",
                                     kDeleteMachineAnnotation, ": ", written.status().message())});
          }));
}

}  // namespace fairlead::hook
