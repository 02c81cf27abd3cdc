#include "sim/kubelets.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::sim {

Kubelets::Kubelets(EventQueue* queue, ApiServer* server, KubeletOptions options)
    : queue_(queue), server_(server), options_(options) {
  server->Listen([this](ChangeType type, const Object& object) {
    if (const auto* pod = std::get_if<model::Pod>(&object)) {
      if (type == ChangeType::kDeleted) {
        handled_.erase(pod->meta.uid);
        stopping_.erase(pod->meta.uid);
      } else {
        OnPod(*pod);
      }
    } else if (const auto* node = std::get_if<model::Node>(&object)) {
      if (type == ChangeType::kDeleted) {
        OnNodeGone(*node);
      } else {
        OnNodeReady(*node);
      }
    }
  });
}

void Kubelets::Adopt(const model::Pod& pod) {
  if (pod.phase == model::PodPhase::kRunning) handled_.insert(pod.meta.uid);
}

void Kubelets::OnPod(const model::Pod& pod) {
  if (pod.node_name.empty() || IsTerminal(pod)) return;
  const std::string key = model::Key(pod.meta);
  const std::string& uid = pod.meta.uid;
  const model::Node* node = server_->Find<model::Node>(pod.node_name);
  if (node == nullptr) {
    queue_->After(options_.orphan_delay, [this, key, uid] { CollectOrphan(key, uid); });
    return;
  }
  if (pod.meta.deletion.has_value()) {
    if (!stopping_.insert(uid).second) return;
    queue_->After(options_.stop_delay, [this, key, uid] {
      const model::Pod* now = server_->Find<model::Pod>(key);
      if (now != nullptr && now->meta.uid == uid) server_->Remove<model::Pod>(key);
    });
    return;
  }
  if (!node->ready || !handled_.insert(uid).second) return;
  queue_->After(options_.start_delay, [this, key, uid] { Start(key, uid); });
}

void Kubelets::OnNodeGone(const model::Node& node) {
  ready_nodes_.erase(node.meta.name);
  for (const auto& [key, pod] : server_->All<model::Pod>()) {
    if (pod.node_name != node.meta.name) continue;
    queue_->After(options_.orphan_delay,
                  [this, pod_key = key, uid = pod.meta.uid] { CollectOrphan(pod_key, uid); });
  }
}

void Kubelets::OnNodeReady(const model::Node& node) {
  if (!node.ready) {
    ready_nodes_.erase(node.meta.name);
    return;
  }
  if (!ready_nodes_.insert(node.meta.name).second) return;
  std::vector<const model::Pod*> waiting;  // bound before the node was ready
  for (const auto& [key, pod] : server_->All<model::Pod>()) {
    if (pod.node_name == node.meta.name) waiting.push_back(&pod);
  }
  for (const model::Pod* pod : waiting) OnPod(*pod);
}

// For a reservation pod: the first GPU of the node that is not reserved.
std::string Kubelets::FreeDevice(const model::Pod& reservation) const {
  std::set<std::string> taken;
  for (const auto& [key, pod] : server_->All<model::Pod>()) {
    if (pod.node_name != reservation.node_name || IsTerminal(pod)) continue;
    taken.insert(std::string(pod.meta.annotations.Get(model::kGpuIndexAnnotation)));
  }
  for (int number = 0;; ++number) {
    std::string device = absl::StrCat("GPU-", reservation.node_name, "-", number);
    if (!taken.contains(device)) return device;
  }
}

void Kubelets::Start(const std::string& key, const std::string& uid) {
  const model::Pod* pod = server_->Find<model::Pod>(key);
  if (pod == nullptr || pod->meta.uid != uid || pod->meta.deletion.has_value()) return;
  if (server_->Find<model::Node>(pod->node_name) == nullptr) return;
  int64_t seconds = 0;
  const bool ends =
      absl::SimpleAtoi(pod->meta.annotations.Get(kRunSecondsAnnotation), &seconds) && seconds >= 0;
  const bool reserves =
      pod->meta.ns == model::kReservationNamespace && pod->meta.labels.Has(model::kGpuGroupLabel);
  const std::string device = reserves ? FreeDevice(*pod) : "";
  server_->Modify<model::Pod>(key, [&](model::Pod& p) {
    p.phase = model::PodPhase::kRunning;
    p.ready = true;
    if (reserves) p.meta.annotations.Set(model::kGpuIndexAnnotation, device);
  });
  if (ends) queue_->After(absl::Seconds(seconds), [this, key, uid] { Finish(key, uid); });
}

void Kubelets::Finish(const std::string& key, const std::string& uid) {
  const model::Pod* pod = server_->Find<model::Pod>(key);
  if (pod == nullptr || pod->meta.uid != uid || pod->meta.deletion.has_value()) return;
  if (server_->Find<model::Node>(pod->node_name) == nullptr) return;
  server_->Modify<model::Pod>(key, [](model::Pod& p) { p.phase = model::PodPhase::kSucceeded; });
}

void Kubelets::CollectOrphan(const std::string& key, const std::string& uid) {
  const model::Pod* pod = server_->Find<model::Pod>(key);
  if (pod == nullptr || pod->meta.uid != uid) return;
  if (server_->Find<model::Node>(pod->node_name) != nullptr) return;
  server_->Remove<model::Pod>(key);
}

}  // namespace fairlead::sim
