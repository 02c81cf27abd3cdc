#include "sim/api_writes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/strings.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/device_names.h"
#include "simdjson.h"

namespace fairlead::sim {
namespace {

// terminationGracePeriodSeconds if the pod sets none.
constexpr absl::Duration kGracePeriod = absl::Seconds(30);

absl::Status Missing(absl::string_view kind, absl::string_view key) {
  return absl::NotFoundError(absl::StrCat(kind, " ", key, " not found"));
}
absl::Status Conflict(absl::string_view kind, absl::string_view key, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(kind, " ", key, ": ", why));
}

// OK if the object exists and has that uid and that version. Empty: any.
template <typename T>
absl::Status Precondition(const ApiServer& server, const std::string& key, absl::string_view uid,
                          absl::string_view version = {}) {
  const absl::string_view kind = model::TraitsOf(model::KindOf<T>()).resource;
  const T* object = server.Find<T>(key);
  if (object == nullptr) return Missing(kind, key);
  if (!uid.empty() && object->meta.uid != uid) {
    return Conflict(kind, key, "the UID in the precondition does not match");
  }
  if (!version.empty() && object->meta.resource_version != version) {
    return Conflict(kind, key, "the object has been modified");
  }
  return absl::OkStatus();
}

bool SameStatus(const model::NodeRequest& a, const model::NodeRequest& b) {
  return a.phase == b.phase && a.node_name == b.node_name && a.provider_id == b.provider_id &&
         a.allocatable == b.allocatable && a.message == b.message && a.failure == b.failure &&
         a.launched_at == b.launched_at && a.registered_at == b.registered_at &&
         a.ready_at == b.ready_at && a.unneeded_since == b.unneeded_since &&
         a.failed_at == b.failed_at;
}

// status.schedulability.hash, which the decoder of pod groups reads too.
std::string HashOf(absl::string_view json) {
  simdjson::dom::parser parser;
  std::string_view hash;
  if (parser.parse(simdjson::padded_string(ToStd(json)))["hash"].get(hash) != simdjson::SUCCESS) {
    return "";
  }
  return std::string(hash);
}

// Like the eviction API: an eviction decrements the budget's status. There is no disruption
// controller here, so the status is an allowance for the whole run.
absl::Status AskBudgets(ApiServer& server, const model::Pod& pod) {
  if (pod.phase != model::PodPhase::kRunning || pod.meta.deletion.has_value()) {
    return absl::OkStatus();
  }
  std::vector<std::string> covering;
  for (const auto& [key, budget] : server.All<model::PodDisruptionBudget>()) {
    if (budget.meta.ns == pod.meta.ns && budget.selector.Matches(pod.meta.labels)) {
      covering.push_back(key);
    }
  }
  if (covering.empty()) return absl::OkStatus();
  const std::string& first = covering.front();
  const model::PodDisruptionBudget& asked = *server.Find<model::PodDisruptionBudget>(first);
  if (covering.size() == 1 && !pod.ready && asked.LetsUnhealthyGo()) return absl::OkStatus();
  if (covering.size() > 1 || asked.Allowed() == 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("evict pod ", model::Key(pod.meta), ": budget ", first, " says no"));
  }
  server.Modify<model::PodDisruptionBudget>(first, [&](model::PodDisruptionBudget& budget) {
    --budget.disruptions_allowed;
    std::vector<std::string>& shown = budget.disrupted_pods;
    shown.insert(std::lower_bound(shown.begin(), shown.end(), pod.meta.name), pod.meta.name);
  });
  return absl::OkStatus();
}

}  // namespace

absl::Status DeletePod(ApiServer& server, const std::string& key) {
  const model::Pod* pod = server.Find<model::Pod>(key);
  if (pod == nullptr) return Missing("pods", key);
  if (pod->meta.deletion.has_value()) return absl::OkStatus();  // already on its way
  if (pod->node_name.empty() || IsTerminal(*pod)) {
    server.Remove<model::Pod>(key);
  } else {
    server.Modify<model::Pod>(
        key, [&](model::Pod& p) { p.meta.deletion = server.now() + kGracePeriod; });
  }
  return absl::OkStatus();
}

absl::Status ApiWrites::Empty(std::string what) {
  ++empty_writes_;
  last_empty_write_ = std::move(what);
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::BindPod& write) {
  const std::string key = model::Key(write.ns, write.name);
  const absl::Status there = Precondition<model::Pod>(*server_, key, write.uid);
  if (!there.ok()) return there;
  const model::Pod& pod = *server_->Find<model::Pod>(key);
  if (pod.meta.deletion.has_value()) return Conflict("pods", key, "is being deleted");
  if (!pod.node_name.empty()) {
    return Conflict("pods", key, absl::StrCat("is already assigned to node ", pod.node_name));
  }
  if (!pod.scheduling_gates.empty()) return Conflict("pods", key, "has scheduling gates");
  server_->Modify<model::Pod>(key, [&](model::Pod& p) {
    p.node_name = write.node;
    p.nominated_node_name.clear();
    p.scheduled = {"True", ""};
    for (const auto& [name, value] : write.annotations) p.meta.annotations.Set(name, value);
    for (const auto& [name, value] : write.labels) p.meta.labels.Set(name, value);
  });
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::EvictPod& write) {
  const std::string key = model::Key(write.ns, write.name);
  const absl::Status there = Precondition<model::Pod>(*server_, key, write.uid);
  if (!there.ok()) return there;
  const absl::Status allowed = AskBudgets(*server_, *server_->Find<model::Pod>(key));
  return allowed.ok() ? DeletePod(*server_, key) : allowed;
}

absl::Status ApiWrites::Commit(const model::SetPodUnschedulable& write) {
  const std::string key = model::Key(write.ns, write.name);
  const absl::Status there = Precondition<model::Pod>(*server_, key, write.uid);
  if (!there.ok()) return there;
  const model::Pod& pod = *server_->Find<model::Pod>(key);
  const std::string message = absl::StrCat(write.observed_generation, " ", write.message);
  std::string& stored_message = pod_messages_[pod.meta.uid];
  const std::string status = write.reason.empty() ? "True" : "False";
  if (pod.scheduled.status == status && pod.scheduled.reason == write.reason &&
      stored_message == message && pod.nominated_node_name == write.nominated_node &&
      pod.meta.annotations.Get(model::kVerdictAnnotation) == write.verdict_json) {
    return Empty(absl::StrCat("verdict of pod ", key, " (", write.reason, ")"));
  }
  stored_message = message;
  server_->Modify<model::Pod>(key, [&](model::Pod& p) {
    p.scheduled = {status, write.reason};
    p.nominated_node_name = write.nominated_node;
    if (write.verdict_json.empty()) {
      p.meta.annotations.Erase(model::kVerdictAnnotation);
    } else {
      p.meta.annotations.Set(model::kVerdictAnnotation, write.verdict_json);
    }
  });
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::NominateNode& write) {
  const std::string key = model::Key(write.ns, write.name);
  const absl::Status there = Precondition<model::Pod>(*server_, key, write.uid);
  if (!there.ok()) return there;
  if (server_->Find<model::Pod>(key)->nominated_node_name == write.node) {
    return Empty(absl::StrCat("nominated node of pod ", key));
  }
  server_->Modify<model::Pod>(key, [&](model::Pod& p) { p.nominated_node_name = write.node; });
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::SetPodGroupSchedulability& write) {
  if (write.native) {
    return Commit(model::SetPodGroupAnnotations{
        write.ns, write.name, write.uid,
        model::StringMap{{model::kVerdictAnnotation, write.schedulability_json}}, true});
  }
  const std::string key = model::Key(write.ns, write.name);
  const absl::Status there = Precondition<model::PodGroup>(*server_, key, write.uid);
  if (!there.ok()) return there;
  const std::string uid = server_->Find<model::PodGroup>(key)->meta.uid;
  const std::string status =
      absl::StrCat(write.schedulability_json, "\n", write.reason, "\n", write.message);
  if (group_status_[uid] == status) return Empty(absl::StrCat("schedulability of group ", key));
  group_status_[uid] = status;
  server_->Modify<model::PodGroup>(key, [&](model::PodGroup& group) {
    group.schedulability_hash = HashOf(write.schedulability_json);
    if (write.own_condition == model::OwnCondition::kKeep) return;
    const std::string pool = write.node_pool.empty() ? model::kDefaultNodePool : write.node_pool;
    std::erase_if(group.scheduling_conditions, [&pool](const model::SchedulingCondition& entry) {
      return entry.node_pool == pool;
    });
    if (!write.schedulability_json.empty() && write.own_condition == model::OwnCondition::kWrite) {
      group.scheduling_conditions.push_back({pool, "", write.reason, write.reason, write.message});
    }
  });
  return absl::OkStatus();
}

namespace {

// False: they are so already.
template <typename Group>
absl::StatusOr<bool> MergeAnnotations(ApiServer& server,
                                      const model::SetPodGroupAnnotations& write) {
  const std::string key = model::Key(write.ns, write.name);
  const absl::Status there = Precondition<Group>(server, key, write.uid);
  if (!there.ok()) return there;
  model::StringMap merged = server.Find<Group>(key)->meta.annotations;
  for (const auto& [name, value] : write.annotations) {
    if (value.empty()) {
      merged.Erase(name);
    } else {
      merged.Set(name, value);
    }
  }
  if (merged == server.Find<Group>(key)->meta.annotations) return false;
  server.Modify<Group>(key, [&](Group& group) {
    group.meta.annotations = merged;
    if (group.native) {
      group.schedulability_hash = HashOf(merged.Get(model::kVerdictAnnotation));
    }
  });
  return true;
}

}  // namespace

absl::Status ApiWrites::Commit(const model::SetPodGroupAnnotations& write) {
  const absl::StatusOr<bool> changed =
      write.native ? MergeAnnotations<model::NativePodGroup>(*server_, write)
                   : MergeAnnotations<model::PodGroup>(*server_, write);
  if (!changed.ok()) return changed.status();
  if (*changed) return absl::OkStatus();
  return Empty(absl::StrCat("annotations of group ", model::Key(write.ns, write.name)));
}

absl::Status ApiWrites::Commit(const model::WritePodGroup& write) {
  if (write.group->meta.uid.empty()) return server_->Create(*write.group);
  const std::string key = model::Key(write.group->meta);
  const absl::Status there = Precondition<model::PodGroup>(*server_, key, write.group->meta.uid);
  if (!there.ok()) return there;
  server_->Modify<model::PodGroup>(key, [&](model::PodGroup& group) {
    const model::PodGroup& wanted = write.group;
    group.min_member = wanted.min_member;
    group.min_sub_group = wanted.min_sub_group;
    group.sub_groups = wanted.sub_groups;
    if (!wanted.priority_class_name.empty()) {
      group.priority_class_name = wanted.priority_class_name;
    }
    if (wanted.preemptibility != model::Preemptibility::kByPriority) {
      group.preemptibility = wanted.preemptibility;
    }
    if (wanted.preemption_delay.has_value()) group.preemption_delay = wanted.preemption_delay;
    if (wanted.staleness_grace_period.has_value()) {
      group.staleness_grace_period = wanted.staleness_grace_period;
    }
  });
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::SetPodGroup& write) {
  const std::string key = model::Key(write.ns, write.name);
  const absl::Status there = Precondition<model::Pod>(*server_, key, write.uid);
  if (!there.ok()) return there;
  server_->Modify<model::Pod>(key, [&](model::Pod& pod) {
    pod.meta.annotations.Set(model::kPodGroupAnnotation, write.group);
    if (!write.sub_group.empty()) pod.meta.labels.Set(model::kSubGroupLabel, write.sub_group);
  });
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::SetPodGroupScheduled& write) {
  const std::string key = model::Key(write.ns, write.name);
  const absl::Status there = Precondition<model::NativePodGroup>(*server_, key, write.uid);
  if (!there.ok()) return there;
  const std::string status = write.scheduled ? "True" : "False";
  const model::NativePodGroup& before = *server_->Find<model::NativePodGroup>(key);
  if (before.scheduled_status == status && before.scheduled_message == write.message) {
    return Empty(absl::StrCat("condition of group ", key));
  }
  server_->Modify<model::NativePodGroup>(key, [&](model::NativePodGroup& group) {
    group.scheduled_status = status;
    group.scheduled_reason = write.scheduled ? "Scheduled" : "Unschedulable";
    group.scheduled_message = write.message;
  });
  return absl::OkStatus();
}

namespace {

model::SetConditions::Buffer ResolutionOf(const model::CapacityBuffer& buffer) {
  return {buffer.resolved_template, buffer.resolved_generation,
          buffer.resolved_replicas.value_or(0)};
}

// `same`: the object has all of it already; then this is false.
template <typename T, typename Same, typename Set>
absl::StatusOr<bool> CommitConditions(ApiServer& server, const model::SetConditions& write,
                                      Same same, Set set) {
  const std::string key = model::Key(write.ns, write.name);
  const absl::Status there = Precondition<T>(server, key, write.uid);
  if (!there.ok()) return there;
  if (same(*server.Find<T>(key))) return false;
  server.Modify<T>(key, set);
  return true;
}

}  // namespace

absl::Status ApiWrites::Commit(const model::SetConditions& write) {
  const auto listed = [&](const auto& object) {
    return SayTheSame(object.conditions, write.conditions);
  };
  absl::StatusOr<bool> changed = absl::InvalidArgumentError(
      absl::StrCat("no conditions are written to a ", model::KindTitle(write.kind)));
  if (write.kind == model::Kind::kNodePool) {
    changed = CommitConditions<model::NodePool>(
        *server_, write,
        [&](const auto& pool) { return SayTheSame({pool.ready_condition}, write.conditions); },
        [&](model::NodePool& pool) { pool.ready_condition = write.conditions.front(); });
  } else if (write.kind == model::Kind::kCapacityBuffer) {
    changed = CommitConditions<model::CapacityBuffer>(
        *server_, write,
        [&](const model::CapacityBuffer& buffer) {
          return listed(buffer) &&
                 write.buffer.value_or(ResolutionOf(buffer)) == ResolutionOf(buffer);
        },
        [&](model::CapacityBuffer& buffer) {
          buffer.conditions = write.conditions;
          if (!write.buffer.has_value()) return;
          buffer.resolved_template = write.buffer->pod_template;
          buffer.resolved_generation = write.buffer->pod_template_generation;
          buffer.resolved_replicas = write.buffer->replicas;
        });
  } else if (write.kind == model::Kind::kProvisioningRequest) {
    changed = CommitConditions<model::ProvisioningRequest>(
        *server_, write, listed,
        [&](model::ProvisioningRequest& request) { request.conditions = write.conditions; });
  }
  if (!changed.ok()) return changed.status();
  if (*changed) return absl::OkStatus();
  return Empty(absl::StrCat("conditions of ", model::KindTitle(write.kind), " ",
                            model::Key(write.ns, write.name)));
}

absl::Status ApiWrites::Commit(const model::SetKaiStatus& write) {
  const std::string key = model::Key(write.ns, write.name);
  const std::string nothing = absl::StrCat("counts of ", model::KindTitle(write.kind), " ", key);
  if (write.kind == model::Kind::kPodGroup) {
    const absl::Status there = Precondition<model::PodGroup>(*server_, key, write.uid);
    if (!there.ok()) return there;
    if (server_->Find<model::PodGroup>(key)->resources_status == write.counts) {
      return Empty(nothing);
    }
    server_->Modify<model::PodGroup>(
        key, [&](model::PodGroup& group) { group.resources_status = write.counts; });
    return absl::OkStatus();
  }
  const absl::Status there = Precondition<model::Queue>(*server_, key, write.uid);
  if (!there.ok()) return there;
  const model::Queue& before = *server_->Find<model::Queue>(key);
  if (before.status == write.counts && before.child_queues == write.child_queues) {
    return Empty(nothing);
  }
  server_->Modify<model::Queue>(key, [&](model::Queue& queue) {
    queue.status = write.counts;
    queue.child_queues = write.child_queues;
  });
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::CreateNodeRequest& write) {
  return server_->Create(*write.request);
}

absl::Status ApiWrites::Commit(const model::UpdateNodeRequestStatus& write) {
  const model::NodeRequest& wanted = write.request;
  const std::string key = model::Key(wanted.meta);
  const absl::Status there = Precondition<model::NodeRequest>(*server_, key, wanted.meta.uid);
  if (!there.ok()) return there;
  if (SameStatus(*server_->Find<model::NodeRequest>(key), wanted)) {
    return Empty(absl::StrCat("status of node request ", key));
  }
  server_->Modify<model::NodeRequest>(key, [&](model::NodeRequest& request) {
    request.phase = wanted.phase;
    request.node_name = wanted.node_name;
    request.provider_id = wanted.provider_id;
    request.allocatable = wanted.allocatable;
    request.message = wanted.message;
    request.failure = wanted.failure;
    request.launched_at = wanted.launched_at;
    request.registered_at = wanted.registered_at;
    request.ready_at = wanted.ready_at;
    request.unneeded_since = wanted.unneeded_since;
    request.failed_at = wanted.failed_at;
  });
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::DeleteNodeRequest& write) {
  const absl::Status there = Precondition<model::NodeRequest>(*server_, write.name, write.uid);
  if (there.ok()) server_->Remove<model::NodeRequest>(write.name);
  return there;
}

absl::Status ApiWrites::Commit(const model::SetNodeTaint& write) {
  const absl::Status there = Precondition<model::Node>(*server_, write.node, write.uid);
  if (!there.ok()) return there;
  const auto same = [&](const model::Taint& taint) {
    return taint.key == write.taint.key && taint.effect == write.taint.effect;
  };
  const std::vector<model::Taint>& before = server_->Find<model::Node>(write.node)->taints;
  const auto found = std::find_if(before.begin(), before.end(), same);
  if (write.present ? found != before.end() && *found == write.taint : found == before.end()) {
    return Empty(absl::StrCat("taint ", write.taint.key, " of node ", write.node));
  }
  server_->Modify<model::Node>(write.node, [&](model::Node& node) {
    node.taints.erase(std::remove_if(node.taints.begin(), node.taints.end(), same),
                      node.taints.end());
    if (write.present) node.taints.push_back(write.taint);
  });
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::StoreUsage& write) {
  stored_usage_ = write.text;
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::EmitEvent&) { return absl::OkStatus(); }

absl::Status ApiWrites::Commit(const model::CreateGpuReservation& write) {
  model::Pod pod;
  pod.meta.ns = pod.spec.ns = write.ns;
  pod.meta.name = write.name;
  pod.meta.labels.Set(model::kGpuGroupLabel, write.group);
  pod.node_name = write.node;
  pod.scheduler_name = "default-scheduler";
  pod.spec.requests = {{model::kGpuName, 1000}};
  pod.spec.tolerations.push_back({.key = "", .exists = true, .value = "", .effect = {}});
  return server_->Create(std::move(pod));
}

absl::Status ApiWrites::Commit(const model::DeletePod& write) {
  const std::string key = model::Key(write.ns, write.name);
  const absl::Status there = Precondition<model::Pod>(*server_, key, write.uid);
  return there.ok() ? DeletePod(*server_, key) : there;
}

absl::Status ApiWrites::Commit(const model::ReserveClaim& write) {
  const std::string key = model::Key(write.ns, write.name);
  const absl::Status there = Precondition<model::ResourceClaim>(*server_, key, write.uid);
  if (!there.ok()) return there;
  const model::ResourceClaim& claim = *server_->Find<model::ResourceClaim>(key);
  const bool as_wanted =
      claim.allocated ? claim.devices == write.allocation.devices : write.allocate;
  if (!as_wanted) return absl::FailedPreconditionError(absl::StrCat(key, " has changed"));
  server_->Modify<model::ResourceClaim>(key, [&](model::ResourceClaim& stored) {
    if (!stored.allocated) stored.node_terms = *write.allocation.node_terms;
    stored.allocated = true;
    stored.devices = write.allocation.devices;
    for (const model::ReserveClaim::Consumer& pod : write.pods) {
      std::vector<std::string>& reserved = stored.reserved_for;
      if (std::find(reserved.begin(), reserved.end(), pod.uid) == reserved.end()) {
        reserved.push_back(pod.uid);
      }
    }
  });
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::DeallocateClaim& write) {
  const std::string key = model::Key(write.ns, write.name);
  const absl::Status there = Precondition<model::ResourceClaim>(*server_, key, write.uid);
  if (!there.ok()) return there;
  if (server_->Find<model::ResourceClaim>(key)->meta.resource_version != write.resource_version) {
    return absl::FailedPreconditionError(absl::StrCat(key, " has changed"));
  }
  server_->Modify<model::ResourceClaim>(key, [](model::ResourceClaim& claim) {
    claim.allocated = false;
    claim.devices.clear();
    claim.reserved_for.clear();
  });
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::SetExtendedClaim& write) {
  const std::string key = model::Key(write.ns, write.name);
  const absl::Status there = Precondition<model::Pod>(*server_, key, write.uid);
  if (!there.ok()) return there;
  const model::ResourceList requests = server_->Find<model::Pod>(key)->spec.requests;
  const std::string claim_key = model::Key(write.ns, write.claim);
  if (!write.claim.empty() && server_->Find<model::ResourceClaim>(claim_key) == nullptr) {
    model::ResourceClaim claim;
    claim.meta.ns = write.ns;
    claim.meta.name = write.claim;
    model::OwnerReference& owner = claim.meta.owners.emplace_back();
    owner.kind = "Pod";
    owner.name = write.name;
    owner.uid = write.uid;
    owner.controller = true;
    for (size_t i = 0; i < write.resources.size(); ++i) {
      model::DeviceRequest& request = claim.requests.emplace_back();
      request.name = absl::StrCat("container-0-request-", i);
      request.device_class = write.resources[i].device_class;
      const std::string& resource = write.resources[i].name;
      request.count = model::DevicesOfAmount(resource, model::Get(requests, resource));
    }
    if (const absl::Status made = server_->Create(std::move(claim)); !made.ok()) return made;
  }
  server_->Modify<model::Pod>(key, [&](model::Pod& pod) { pod.extended_claim = write.claim; });
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::BindVolume& write) {
  const absl::Status there = Precondition<model::PersistentVolume>(
      *server_, write.volume, write.uid, write.resource_version);
  if (!there.ok()) return there;
  const model::PersistentVolume::ClaimRef claim{write.claim_ns, write.claim_name, write.claim_uid};
  if (server_->Find<model::PersistentVolume>(write.volume)->claim == claim) {
    return Empty(absl::StrCat("claim of volume ", write.volume));
  }
  server_->Modify<model::PersistentVolume>(
      write.volume, [&](model::PersistentVolume& volume) { volume.claim = claim; });
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::SelectVolumeNode& write) {
  const std::string key = model::Key(write.ns, write.name);
  const absl::Status there =
      Precondition<model::PersistentVolumeClaim>(*server_, key, write.uid, write.resource_version);
  if (!there.ok()) return there;
  if (server_->Find<model::PersistentVolumeClaim>(key)->selected_node == write.node) {
    return Empty(absl::StrCat("selected node of claim ", key));
  }
  server_->Modify<model::PersistentVolumeClaim>(
      key, [&](model::PersistentVolumeClaim& claim) { claim.selected_node = write.node; });
  return absl::OkStatus();
}

absl::Status ApiWrites::Commit(const model::ApplyConfigMap&) { return absl::OkStatus(); }

}  // namespace fairlead::sim
