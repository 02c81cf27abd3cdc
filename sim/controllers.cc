#include "sim/controllers.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/api_writes.h"

namespace fairlead::sim {
namespace {

const char* KindText(ControllerKind kind) {
  return kind == ControllerKind::kDeployment ? "Deployment" : "Job";
}

}  // namespace

Controllers::Controllers(EventQueue* queue, ApiServer* server, absl::Duration delay)
    : queue_(queue), server_(server), delay_(delay) {
  server->Listen([this](ChangeType type, const Object& object) {
    if (const auto* pod = std::get_if<model::Pod>(&object)) OnPod(type, *pod);
  });
}

void Controllers::Apply(ControllerSpec spec) {
  const Id id{spec.kind, model::Key(spec.ns, spec.name)};
  auto [it, added] = controllers_.try_emplace(id);
  Controller& controller = it->second;
  if (added) {
    controller.uid = server_->NewUid();
    by_uid_.emplace(controller.uid, id);
  }
  controller.spec = std::move(spec);
  Wake(id);
}

absl::StatusOr<Controllers::Controller*> Controllers::Find(ControllerKind kind,
                                                           absl::string_view key) {
  auto it = controllers_.find({kind, std::string(key)});
  if (it == controllers_.end()) {
    return absl::NotFoundError(absl::StrCat(KindText(kind), " ", key, " does not exist"));
  }
  return &it->second;
}

absl::Status Controllers::Delete(ControllerKind kind, absl::string_view key) {
  absl::StatusOr<Controller*> found = Find(kind, key);
  if (!found.ok()) return found.status();
  const std::set<std::string> pods = (*found)->pods;
  by_uid_.erase((*found)->uid);
  controllers_.erase({kind, std::string(key)});
  for (const std::string& pod : pods) {
    if (absl::Status status = DeletePod(*server_, pod); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Controllers::Scale(ControllerKind kind, absl::string_view key, int64_t replicas) {
  absl::StatusOr<Controller*> found = Find(kind, key);
  if (!found.ok()) return found.status();
  (*found)->spec.replicas = replicas;
  Wake({kind, std::string(key)});
  return absl::OkStatus();
}

void Controllers::OnPod(ChangeType type, const model::Pod& pod) {
  for (const model::OwnerReference& owner : pod.meta.owners) {
    auto id = by_uid_.find(owner.uid);
    if (!owner.controller || id == by_uid_.end()) continue;
    Controller& controller = controllers_.at(id->second);
    if (type == ChangeType::kAdded) {
      controller.pods.insert(model::Key(pod.meta));
    } else if (type == ChangeType::kDeleted) {
      controller.pods.erase(model::Key(pod.meta));
      // A Job counts a finished pod although it is gone.
      if (pod.phase == model::PodPhase::kSucceeded) ++controller.succeeded;
    }
    Wake(id->second);
  }
}

void Controllers::Wake(const Id& id) {
  Controller& controller = controllers_.at(id);
  if (controller.scheduled) return;
  controller.scheduled = true;
  queue_->After(delay_, [this, id] { Reconcile(id); });
}

void Controllers::Reconcile(const Id& id) {
  auto it = controllers_.find(id);
  if (it == controllers_.end()) return;
  Controller& controller = it->second;
  controller.scheduled = false;
  std::vector<std::string> active;
  int64_t succeeded = controller.succeeded;
  for (const std::string& key : controller.pods) {
    const model::Pod& pod = *server_->Find<model::Pod>(key);
    if (pod.phase == model::PodPhase::kSucceeded) ++succeeded;
    if (!IsTerminal(pod) && !pod.meta.deletion.has_value()) active.push_back(key);
  }
  int64_t wanted = controller.spec.replicas;
  if (id.first == ControllerKind::kJob) {
    wanted = std::min(wanted, std::max<int64_t>(0, controller.spec.completions - succeeded));
  }
  const int64_t surplus = static_cast<int64_t>(active.size()) - wanted;
  for (int64_t i = surplus; i < 0; ++i) CreatePod(controller);
  if (surplus > 0) RemoveSurplus(active, surplus);
}

void Controllers::CreatePod(Controller& controller) {
  const ControllerSpec& spec = controller.spec;
  model::Pod pod = spec.pod_template;
  pod.meta.ns = spec.ns;
  pod.spec.ns = spec.ns;
  const bool job = spec.kind == ControllerKind::kJob;
  pod.meta.owners = {{job ? "batch/v1" : "apps/v1", job ? "Job" : "ReplicaSet", spec.name,
                      controller.uid, /*controller=*/true}};
  do {  // a number that a foreign pod has is skipped
    pod.meta.name = absl::StrCat(spec.name, "-", controller.next_number++);
  } while (server_->Find<model::Pod>(model::Key(pod.meta)) != nullptr);
  server_->Create(std::move(pod)).IgnoreError();  // the name is free
}

void Controllers::RemoveSurplus(const std::vector<std::string>& active, int64_t surplus) {
  std::vector<const model::Pod*> pods;
  for (const std::string& key : active) pods.push_back(server_->Find<model::Pod>(key));
  std::sort(pods.begin(), pods.end(), [](const model::Pod* a, const model::Pod* b) {
    const auto rank = [](const model::Pod* pod) {
      return std::make_tuple(!pod->node_name.empty(), pod->phase == model::PodPhase::kRunning,
                             -absl::ToUnixNanos(pod->meta.creation));
    };
    const auto left = rank(a), right = rank(b);
    return left != right ? left < right : a->meta.uid > b->meta.uid;
  });
  std::vector<std::string> keys;
  for (int64_t i = 0; i < surplus; ++i)
    keys.push_back(model::Key(pods[static_cast<size_t>(i)]->meta));
  for (const std::string& key : keys) DeletePod(*server_, key).IgnoreError();  // they exist
}

}  // namespace fairlead::sim
