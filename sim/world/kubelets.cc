#include "sim/world/kubelets.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/claim_controller.h"
#include "sim/world/objects.h"
#include "sim/world/volume_controller.h"

namespace fairlead::sim::world {
namespace {

constexpr char kKubeletActor[] = "kubelet";
constexpr char kRunSeconds[] = "sim/run-seconds";
constexpr char kReservationNamespace[] = "kai-resource-reservation";
constexpr char kDevice[] = "run.ai/reserve_for_gpu_index";
constexpr absl::Duration kCollectDelay = absl::Seconds(3), kKeepFinished = absl::Seconds(4);

}  // namespace

Kubelets::Kubelets(EventQueue* time, ApiServer* server, uint64_t seed)
    : time_(time), server_(server), random_(seed) {
  server->Listen([this](const ApiServer::Commit& commit) {
    if (commit.type == ResourceType::kPods) OnPod(commit);
    if (commit.type == ResourceType::kNodes) OnNode(commit);
  });
}

const Json* Kubelets::Same(const Key& key) const {
  const Json* pod = server_->Find(ResourceType::kPods, key.ns, key.name);
  return pod != nullptr && TextAt(*pod, {"metadata", "uid"}) == key.uid ? pod : nullptr;
}

void Kubelets::OnPod(const ApiServer::Commit& commit) {
  const PodFacts pod = ReadPod(commit.after != nullptr ? *commit.after : *commit.before);
  const Key key{pod.ns, pod.name, pod.uid};
  if (commit.after == nullptr) {
    admitted_.erase(pod.uid);
    handled_.erase(pod.uid);
    ending_.erase(pod.uid);
    return;
  }
  if (pod.node.empty()) return;
  if (server_->Find(ResourceType::kNodes, "", pod.node) == nullptr) {
    time_->After(kCollectDelay, [this, key] { Collect(key); });
    return;
  }
  if (pod.terminal) {
    admitted_.erase(pod.uid);
    if (pod.terminating || !handled_.insert(pod.uid + "/finished").second) return;
    time_->After(kKeepFinished, [this, key] { End(key); });
    return;
  }
  if (pod.terminating) {
    if (!ending_.insert(pod.uid).second) return;
    time_->After(absl::Milliseconds(random_.Between(50, 2500)), [this, key] { End(key); });
    return;
  }
  if (!handled_.insert(pod.uid).second) return;
  time_->After(absl::Milliseconds(random_.Between(50, 1500)), [this, key] { Admit(key); });
}

void Kubelets::OnNode(const ApiServer::Commit& commit) {
  if (commit.after != nullptr) return;
  const std::string node = TextAt(*commit.before, {"metadata", "name"});
  std::vector<Key> keys;
  server_->ForEach(ResourceType::kPods, [&](const Json& object) {
    if (TextAt(object, {"spec", "nodeName"}) != node) return;
    keys.push_back({TextAt(object, {"metadata", "namespace"}), TextAt(object, {"metadata", "name"}),
                    TextAt(object, {"metadata", "uid"})});
  });
  for (const Key& key : keys) time_->After(kCollectDelay, [this, key] { Collect(key); });
}

std::string Kubelets::Refusal(const PodFacts& pod) const {
  const Json* object = server_->Find(ResourceType::kNodes, "", pod.node);
  const NodeFacts node = ReadNode(*object);
  Amounts used = pod.requests;
  int64_t pods = 1;
  for (const auto& [uid, admitted] : admitted_) {
    if (admitted.node != pod.node || uid == pod.uid) continue;
    used += admitted.amounts;
    ++pods;
  }
  if (pod.placement != nullptr && !NodeMatches(*pod.placement, node.labels)) return "NodeAffinity";
  if (pods > node.pods) return "OutOfpods";
  // Of what the pod requests: a node may have lost some of what others use.
  const Amounts& asks = pod.requests;
  if (asks.cpu > 0 && used.cpu > node.allocatable.cpu) return "OutOfcpu";
  if (asks.memory > 0 && used.memory > node.allocatable.memory) return "OutOfmemory";
  if (asks.gpu > 0 && used.gpu > node.allocatable.gpu) return "OutOfnvidia.com/gpu";
  return "";
}

// Of a reservation pod: the first GPU of its node that no other one was given.
std::string Kubelets::FreeDevice(const std::string& node) const {
  std::set<std::string> taken;
  server_->ForEach(ResourceType::kPods, [&](const Json& object) {
    if (TextAt(object, {"spec", "nodeName"}) == node) {
      taken.insert(TextAt(object, {"metadata", "annotations", kDevice}));
    }
  });
  for (int number = 0;; ++number) {
    std::string device = absl::StrCat("GPU-", node, "-", number);
    if (!taken.contains(device)) return device;
  }
}

void Kubelets::Admit(const Key& key) {
  const Json* object = Same(key);
  if (object == nullptr) return;
  const PodFacts pod = ReadPod(*object);
  if (pod.terminal || pod.terminating) return;
  const Json* node = server_->Find(ResourceType::kNodes, "", pod.node);
  if (node == nullptr) return;
  // Its kubelet does not answer, or cannot prepare the pod's devices or volumes.
  if (!ReadNode(*node).ready || !MissingClaim(*server_, *object).empty() ||
      (!pod.volumes.empty() && !MissingVolume(*server_, *object).empty())) {
    time_->After(absl::Seconds(2), [this, key] { Admit(key); });
    return;
  }
  const std::string refusal = Refusal(pod);
  if (!refusal.empty()) ++refused_;
  if (refusal.empty()) admitted_[pod.uid] = {pod.node, pod.requests};
  const std::string device =
      refusal.empty() && pod.ns == kReservationNamespace ? FreeDevice(pod.node) : "";
  int64_t seconds = -1;
  const bool ends =
      absl::SimpleAtoi(TextAt(*object, {"metadata", "annotations", kRunSeconds}), &seconds);
  server_
      ->Modify(
          ResourceType::kPods, key.ns, key.name,
          [&](Json& changed) {
            changed["status"]["phase"] = refusal.empty() ? "Running" : "Failed";
            changed["status"]["startTime"] = TimeText(time_->now());
            if (!refusal.empty()) changed["status"]["reason"] = refusal;
            SetCondition(changed, "Ready", refusal.empty(), refusal.empty() ? "" : "PodFailed");
            if (!device.empty()) changed["metadata"]["annotations"][kDevice] = device;
            return absl::OkStatus();
          },
          kKubeletActor)
      .IgnoreError();
  if (refusal.empty() && ends) {
    time_->After(absl::Seconds(seconds), [this, key] { Finish(key); });
  }
}

void Kubelets::FailProbes(const std::string& job, absl::Duration time) {
  bool fails = false;
  std::vector<Key> failing;
  server_->ForEach(ResourceType::kPods, [&](const Json& object) {
    const PodFacts pod = ReadPod(object);
    if (pod.job != job || !pod.running || pod.terminating) return;
    fails = !fails;
    if (fails) failing.push_back({pod.ns, pod.name, pod.uid});
  });
  for (const Key& key : failing) {
    SetReady(key, false);
    time_->After(time, [this, key] { SetReady(key, true); });
  }
}

void Kubelets::SetReady(const Key& key, bool ready) {
  const Json* object = Same(key);
  if (object == nullptr || !ReadPod(*object).running) return;
  server_
      ->Modify(
          ResourceType::kPods, key.ns, key.name,
          [&](Json& changed) {
            SetCondition(changed, "Ready", ready, ready ? "" : "ContainersNotReady");
            return absl::OkStatus();
          },
          kKubeletActor)
      .IgnoreError();
}

void Kubelets::Finish(const Key& key) {
  const Json* object = Same(key);
  if (object == nullptr) return;
  const PodFacts pod = ReadPod(*object);
  if (!pod.running || pod.terminating) return;
  if (server_->Find(ResourceType::kNodes, "", pod.node) == nullptr) return;
  ++completed_;
  server_
      ->Modify(
          ResourceType::kPods, key.ns, key.name,
          [](Json& changed) {
            changed["status"]["phase"] = "Succeeded";
            return absl::OkStatus();
          },
          kKubeletActor)
      .IgnoreError();
}

void Kubelets::End(const Key& key) {
  const Json* object = Same(key);
  if (object == nullptr) return;
  const auto job = stuck_jobs_.find(ReadPod(*object).job);
  const absl::Time until =
      job == stuck_jobs_.end() ? stuck_until_ : std::max(stuck_until_, job->second);
  if (time_->now() < until) {
    time_->At(until, [this, key] { End(key); });
    return;
  }
  server_->RemoveNow(ResourceType::kPods, key.ns, key.name, kKubeletActor).IgnoreError();
}

void Kubelets::Collect(const Key& key) {
  const Json* object = Same(key);
  if (object == nullptr) return;
  const std::string node = TextAt(*object, {"spec", "nodeName"});
  if (server_->Find(ResourceType::kNodes, "", node) != nullptr) return;
  server_->RemoveNow(ResourceType::kPods, key.ns, key.name, "pod-gc").IgnoreError();
}

}  // namespace fairlead::sim::world
