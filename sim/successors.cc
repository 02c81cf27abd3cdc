#include "sim/successors.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "scheduler/model/api_names.h"

namespace fairlead::sim {
namespace {

const model::OwnerReference* ControllerOf(const model::Pod& pod) {
  const auto found =
      std::find_if(pod.meta.owners.begin(), pod.meta.owners.end(),
                   [](const model::OwnerReference& owner) { return owner.controller; });
  return found == pod.meta.owners.end() ? nullptr : &*found;
}

// The pod as its controller made it: without what the scheduler, the kubelet and the API server
// have written since.
model::Pod AsMade(model::Pod pod) {
  pod.node_name.clear();
  pod.nominated_node_name.clear();
  pod.extended_claim.clear();
  pod.numa_zones.clear();
  pod.phase = model::PodPhase::kPending;
  pod.ready = false;
  pod.start_time = absl::InfiniteFuture();
  pod.scheduled = {};
  pod.meta.deletion.reset();
  for (const char* key :
       {model::kVerdictAnnotation, model::kStartedUnderAnnotation, model::kStartedAsAnnotation,
        model::kNumaPredictedAnnotation, model::kReceivedResourceTypeAnnotation,
        model::kVisibleDevicesAnnotation, model::kGpuPortionAnnotation}) {
    pod.meta.annotations.Erase(key);
  }
  std::vector<std::string> groups;  // of GPUs that it shared
  for (const auto& [key, value] : pod.meta.labels) {
    if (absl::string_view(key).substr(0, sizeof(model::kGpuGroupLabel) - 1) ==
        model::kGpuGroupLabel) {
      groups.push_back(key);
    }
  }
  for (const std::string& key : groups) pod.meta.labels.Erase(key);
  // Its class may have another value by now.
  if (!pod.priority_class_name.empty()) pod.priority.reset();
  return pod;
}

}  // namespace

bool BelongsToNode(const model::Pod& pod) {
  const model::OwnerReference* owner = ControllerOf(pod);
  return pod.meta.annotations.Has(model::kMirrorPodAnnotation) ||
         (owner != nullptr && (owner->kind == "DaemonSet" || owner->kind == "Node"));
}

bool HasSuccessor(const model::Pod& pod) {
  return ControllerOf(pod) != nullptr && !BelongsToNode(pod) && !IsTerminal(pod);
}

Successors::Successors(EventQueue* queue, ApiServer* server, absl::Duration delay)
    : queue_(queue), server_(server), delay_(delay) {
  server->Listen([this](ChangeType type, const Object& object) {
    if (const auto* pod = std::get_if<model::Pod>(&object)) OnPod(type, *pod);
  });
}

void Successors::Adopt(const model::Pod& pod) {
  if (HasSuccessor(pod)) owners_.insert(ControllerOf(pod)->uid);
}

void Successors::OnPod(ChangeType type, const model::Pod& pod) {
  if (type != ChangeType::kDeleted) {
    if (pod.ready && waiting_.erase(model::Key(pod.meta)) > 0) {
      queue_->After(delay_,
                    [this, ns = pod.meta.ns, name = pod.meta.name] { ReturnAllowance(ns, name); });
    }
    return;
  }
  if (!HasSuccessor(pod) || !owners_.contains(ControllerOf(pod)->uid)) return;
  queue_->After(delay_, [this, made = AsMade(pod)]() mutable {
    const std::string key = model::Key(made.meta);
    if (server_->Create(std::move(made)).ok()) waiting_.insert(key);  // else the name is taken
  });
}

void Successors::ReturnAllowance(const std::string& ns, const std::string& pod) {
  std::vector<std::string> keys;
  for (const auto& [key, budget] : server_->All<model::PodDisruptionBudget>()) {
    const std::vector<std::string>& shown = budget.disrupted_pods;
    if (budget.meta.ns == ns && std::binary_search(shown.begin(), shown.end(), pod)) {
      keys.push_back(key);
    }
  }
  for (const std::string& key : keys) {
    server_->Modify<model::PodDisruptionBudget>(key, [&](model::PodDisruptionBudget& budget) {
      ++budget.disruptions_allowed;
      std::erase(budget.disrupted_pods, pod);
    });
  }
}

}  // namespace fairlead::sim
