// The calls of ScaleGroups that write (scale_groups.h has the rules).
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autoscale-hook/providers/groups/object_path.h"
#include "autoscale-hook/providers/scalesubresource/scale_groups.h"
#include "autoscale-hook/provisioning/failure.h"

namespace fairlead::hook {
namespace {

absl::Status NoPath(const std::string& group) {
  return absl::UnavailableError(absl::StrCat("group ", group, " has not been read yet"));
}

}  // namespace

void ScaleGroups::Finish(const OperationPtr& op, const absl::Status& status) {
  // The size was certainly not lowered: the record must not say so, and the controller must not
  // choose the node when others lower it.
  if (op->marked && !status.ok() && !op->in_doubt && !std::exchange(op->unmarked, true)) {
    return TakeMarkOff(op, status);
  }
  if (std::exchange(op->over, true)) return;
  op->done(status);
}

void ScaleGroups::Again(const OperationPtr& op, const absl::Status& status,
                        void (ScaleGroups::*attempt)(const OperationPtr&)) {
  if (op->TriesAgain(status)) return (this->*attempt)(op);
  Finish(op, status);
}

void ScaleGroups::ReadScale(const OperationPtr& op, Then then) {
  const Group* const group = Find(op->group);
  if (group == nullptr || group->path.empty()) return Finish(op, NoPath(op->group));
  const std::string path = absl::StrCat(group->path, "/scale");
  api_->Get(path, callbacks_.Once<absl::StatusOr<Json>>([this, op, path,
                                                         then](const absl::StatusOr<Json>& scale) {
    if (!scale.ok()) return Finish(op, OfObjectCall(scale.status(), "read " + path));
    const absl::StatusOr<int64_t> replicas = ReplicasIn(*scale);
    if (!replicas.ok()) return Finish(op, WithSubject(path, replicas.status()));
    if (*replicas < 0) {
      return Finish(op, absl::InvalidArgumentError(
                            absl::StrCat(path, ": spec.replicas: ", *replicas, " is negative")));
    }
    op->replicas = *replicas;
    op->made = 0;
    (void)absl::SimpleAtoi(scale->TextAt({"status", "replicas"}), &op->made);
    op->version = scale->TextAt({"metadata", "resourceVersion"});
    if (op->version.empty()) {
      return Finish(op, absl::InvalidArgumentError(
                            absl::StrCat(path, ": metadata.resourceVersion: missing")));
    }
    then();
  }));
}

void ScaleGroups::WriteScale(const OperationPtr& op, int64_t replicas, Done done) {
  WriteSize(api_, callbacks_, *op,
            {absl::StrCat(groups_.at(op->group).path, "/scale"), op->version, replicas},
            std::move(done));
}

// ---- sizes

void ScaleGroups::IncreaseSize(const std::string& id, const Increase& increase, Done done) {
  const OperationPtr op = BeginOperation<Operation>(scheduler_, id, std::move(done));
  op->delta = increase.delta;
  TryIncrease(op);
}

void ScaleGroups::TryIncrease(const OperationPtr& op) {
  const auto raise = [this, op] {
    ReadScale(op, [this, op] {
      const absl::Status allowed =
          CheckIncrease(*op, op->replicas, groups_.at(op->group).config.max_size);
      if (!allowed.ok()) return Finish(op, allowed);
      WriteScale(op, op->replicas + op->delta, [this, op](const absl::Status& status) {
        Again(op, status, &ScaleGroups::TryIncrease);
      });
    });
  };
  const Group* const group = Find(op->group);
  if (group == nullptr || group->path.empty()) return Finish(op, NoPath(op->group));
  const bool leaving = std::any_of(group->settled.begin(), group->settled.end(),
                                   [](const auto& entry) { return entry.second.done; });
  leaving ? ReadObject(op, raise) : raise();
}

void ScaleGroups::DecreaseTargetSize(const std::string& id, int64_t delta, Done done) {
  const OperationPtr op = BeginOperation<Operation>(scheduler_, id, std::move(done));
  op->delta = delta;
  TryDecrease(op);
}

void ScaleGroups::TryDecrease(const OperationPtr& op) {
  ReadScale(op, [this, op] {
    const Group& group = groups_.at(op->group);
    const absl::Status allowed = CheckDecrease(*op, op->replicas, group.config.min_size);
    if (!allowed.ok()) return Finish(op, allowed);
    if (op->replicas != op->delta || !group.nodes.ok() || !group.nodes->empty()) {
      return Finish(op,
                    RefusedForGroup(
                        op->group,
                        "its controller would choose the machine that goes, so a place is not "
                        "taken back while others may be needed; lower the size yourself if no node "
                        "comes"));
    }
    // Nodes that have registered since the last round count.
    ReadNodes(op->group, [this, op] {
      const Group& now = groups_.at(op->group);
      if (!now.nodes.ok() || !now.nodes->empty()) {
        return Finish(op, RefusedForGroup(op->group, "a node has registered"));
      }
      WriteScale(op, 0, [this, op](const absl::Status& status) {
        Again(op, status, &ScaleGroups::TryDecrease);
      });
    });
  });
}

// ---- removal

void ScaleGroups::DeleteNodes(const std::string& id, const std::vector<CloudNode>& nodes,
                              Done done) {
  const auto remove = [this, id](const CloudNode& node, Done then) {
    const OperationPtr op = BeginOperation<Operation>(scheduler_, id, std::move(then));
    op->instance = node.provider_id;
    TryRemove(op);
  };
  RemoveEach(nodes, remove, done);
}

void ScaleGroups::TryRemove(const OperationPtr& op) {
  const Group* const group = Find(op->group);
  if (group == nullptr || group->path.empty()) return Finish(op, NoPath(op->group));
  group->config.mark.key.empty() ? TryLeave(op) : TryRemoveMarked(op);
}

void ScaleGroups::TryLeave(const OperationPtr& op) {
  ReadScale(op, [this, op] {
    ReadNodes(op->group, [this, op] {
      const Group& group = groups_.at(op->group);
      if (!group.nodes.ok()) return Finish(op, OfObjectCall(group.nodes.status(), "removal"));
      const absl::Status together = leaving_.Ask(
          op->group, op->instance, Living(group), op->replicas, group.config.min_size,
          "its controller chooses the machine that goes, and no deleteAnnotation is configured");
      if (!together.ok() || op->replicas == 0) return Finish(op, together);
      WriteScale(op, 0, [this, op](const absl::Status& status) {
        Again(op, status, &ScaleGroups::TryRemove);
      });
    });
  });
}

std::string ScaleGroups::MarkedPath(const Group& group, const ListedNode& node) const {
  const model::ScaleMark& mark = group.config.mark;
  std::string name = node.name, ns = mark.ns;
  if (!mark.name_annotation.empty()) {
    name = std::string(node.annotations.Get(mark.name_annotation));
    if (const size_t slash = name.find('/'); slash != std::string::npos) {
      ns = name.substr(0, slash);
      name = name.substr(slash + 1);
    }
  }
  if (name.empty()) return "";
  const size_t plural = group.mark_path.rfind('/');
  return absl::StrCat(
      CollectionPathOf(group.mark_path.substr(0, plural), ns, group.mark_path.substr(plural + 1)),
      "/", EscapePathPart(name));
}

// The scaled object: op->uid and generation. Refuses one whose controller has not seen its spec,
// if the size is to be raised.
void ScaleGroups::ReadObject(const OperationPtr& op, Then then) {
  const std::string path = groups_.at(op->group).path;
  api_->Get(path, callbacks_.Once<absl::StatusOr<Json>>([this, op, path,
                                                         then](const absl::StatusOr<Json>& object) {
    if (!object.ok()) return Finish(op, OfObjectCall(object.status(), "read " + path));
    op->version = object->TextAt({"metadata", "resourceVersion"});
    op->uid = object->TextAt({"metadata", "uid"});
    op->generation = object->TextAt({"metadata", "generation"});
    if (op->uid.empty() || op->generation.empty()) {
      return Finish(op, absl::InvalidArgumentError(
                            absl::StrCat(path, ": metadata.uid or metadata.generation: missing")));
    }
    const std::string seen = object->TextAt({"status", "observedGeneration"});
    if (op->delta > 0 && !seen.empty() && seen != op->generation) {
      return Finish(
          op, absl::UnavailableError(absl::StrCat(
                  "group ", op->group, ": its controller has not seen yet that a node is to go")));
    }
    then();
  }));
}

// Reads the object, its size, and the node, in this order.
void ScaleGroups::TryRemoveMarked(const OperationPtr& op) {
  const Group& group = groups_.at(op->group);
  bool listed = false;
  if (group.nodes.ok()) {
    for (const ListedNode& node : *group.nodes) {
      if (node.InstanceId() != op->instance || node.deleting) continue;
      if (MarkedPath(group, node).empty()) continue;
      listed = true;
      op->node = node.name;
      op->node_path = absl::StrCat("/api/v1/nodes/", EscapePathPart(node.name));
      op->marked_path = MarkedPath(group, node);
    }
  }
  if (!listed) {
    return Finish(
        op,
        RefusedForGroup(op->group, absl::StrCat("machine ", op->instance,
                                                ": its node is not listed, or lacks annotation \"",
                                                group.config.mark.name_annotation, "\"")));
  }
  ReadObject(op, [this, op] {
    const std::string version = op->version;
    ReadScale(op, [this, op, version] {
      // The controller would make fewer machines instead of ending one.
      if (op->made > 0 && op->made < op->replicas) {
        return Finish(op, absl::UnavailableError(absl::StrCat(
                              "group ", op->group, ": its controller has made ", op->made, " of ",
                              op->replicas, " replicas; a node is removed after that")));
      }
      if (op->version != version) {  // the generation may be older than the size
        return Again(op, absl::AbortedError(op->group + " has changed"), &ScaleGroups::TryRemove);
      }
      api_->Get(op->node_path,
                callbacks_.Once<absl::StatusOr<Json>>(
                    [this, op](const absl::StatusOr<Json>& node) { CheckRecord(op, node); }));
    });
  });
}

void ScaleGroups::CheckRecord(const OperationPtr& op, const absl::StatusOr<Json>& node) {
  if (!node.ok()) {
    return Finish(op, OfMachineRead(node.status(), "read " + op->node_path));
  }
  if (node->At({"metadata", "deletionTimestamp"}) != nullptr) return Finish(op, absl::OkStatus());
  Group& group = groups_.at(op->group);
  const std::string record = node->TextAt({"metadata", "annotations", kRemovedFromAnnotation});
  const std::string now = absl::StrCat(op->uid, "/", op->generation);
  // What this operation wrote itself proves nothing: its own lowering was a conflict.
  if (!op->marked && absl::StartsWith(record, absl::StrCat(op->uid, "/"))) {
    const auto known = group.settled.find(op->node);
    const bool settled = known != group.settled.end() && known->second.record == record;
    if (settled ? known->second.done : record != now) return Finish(op, AlreadyLowered(op));
  }
  const absl::Status allowed = CheckRemoval(*op, op->replicas, group.config.min_size);
  if (!allowed.ok()) return Finish(op, allowed);
  op->record = now;
  Record(op, *node);
}

// If there are as many nodes as the size says, the controller may have no reason to end one: others
// have raised the size since, or another node was lost before the controller acted. Or the node is
// on its way out, and another comes. That cannot be told apart from here.
absl::Status ScaleGroups::AlreadyLowered(const OperationPtr& op) const {
  const auto nodes = static_cast<int64_t>(Living(groups_.at(op->group)).size());
  if (op->replicas != nodes) return absl::OkStatus();
  return RefusedForGroup(
      op->group, absl::StrCat("the size was lowered for machine ", op->instance,
                              ", and there are as many nodes as it says; if the node stays, "
                              "take annotation ",
                              kRemovedFromAnnotation, " off node ", op->node));
}

void ScaleGroups::Record(const OperationPtr& op, const Json& node) {
  if (op->expired) return Finish(op, GivenUp(*op));
  const std::string version = node.TextAt({"metadata", "resourceVersion"});
  api_->Patch(
      op->node_path, AnnotationPatch(version, kRemovedFromAnnotation, op->record),
      callbacks_.Once<absl::StatusOr<Json>>([this, op](const absl::StatusOr<Json>& written) {
        if (!written.ok()) {
          return Again(op, OfObjectCall(written.status(), "patch " + op->node_path),
                       &ScaleGroups::TryRemove);
        }
        if (written->TextAt({"metadata", "annotations", kRemovedFromAnnotation}) != op->record) {
          return Finish(op, AnnotationNotShown(op->node_path, kRemovedFromAnnotation));
        }
        op->marked = true;
        Mark(op);
      }));
}

void ScaleGroups::Mark(const OperationPtr& op) {
  if (op->expired) return Finish(op, GivenUp(*op));
  const model::ScaleMark& mark = groups_.at(op->group).config.mark;
  api_->Patch(
      op->marked_path, AnnotationPatch("", mark.key, mark.value),
      callbacks_.Once<absl::StatusOr<Json>>([this, op](const absl::StatusOr<Json>& written) {
        const model::ScaleMark& put = groups_.at(op->group).config.mark;
        absl::Status status = written.ok()
                                  ? absl::OkStatus()
                                  : OfObjectCall(written.status(), "patch " + op->marked_path);
        if (written.ok() && written->TextAt({"metadata", "annotations", put.key}) != put.value) {
          status = AnnotationNotShown(op->marked_path, put.key);
        }
        status.ok() ? Lower(op) : Finish(op, status);
      }));
}

void ScaleGroups::Lower(const OperationPtr& op) {
  WriteScale(op, op->replicas - 1, [this, op](const absl::Status& status) {
    Group& group = groups_.at(op->group);
    if (status.ok()) {
      group.settled[op->node] = {op->record, true};
      return Finish(op, status);
    }
    if (op->TriesAgain(status)) return TryRemove(op);
    op->in_doubt = !absl::IsAborted(status) && IsUnknownOutcome(status);
    group.settled.erase(op->node);
    Finish(op, status);
  });
}

void ScaleGroups::TakeMarkOff(const OperationPtr& op, const absl::Status& status) {
  const auto take_off = [this](const std::string& path, const std::string& key, Done done) {
    api_->Patch(path, AnnotationPatch("", key, std::nullopt),
                callbacks_.Once<absl::StatusOr<Json>>([done](const absl::StatusOr<Json>& written) {
                  done(absl::IsNotFound(written.status()) ? absl::OkStatus() : written.status());
                }));
  };
  const auto kept = [this, op, status](const std::string& path, const absl::Status& why) {
    Finish(op, {status.code(), absl::StrCat(status.message(), "; ", path,
                                            " keeps its annotation: ", why.message())});
  };
  // The record goes last: without it, the mark would be taken for one of others.
  take_off(op->marked_path, groups_.at(op->group).config.mark.key,
           [op, status, take_off, kept, this](const absl::Status& unmarked) {
             if (!unmarked.ok()) return kept(op->marked_path, unmarked);
             take_off(op->node_path, kRemovedFromAnnotation,
                      [this, op, status, kept](const absl::Status& unrecorded) {
                        unrecorded.ok() ? Finish(op, status) : kept(op->node_path, unrecorded);
                      });
           });
}

}  // namespace fairlead::hook
