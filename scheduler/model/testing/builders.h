// Short ways to write model objects in tests. Header only; never part of the product.
#pragma once

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/cluster_event.h"

namespace fairlead::model::testing {

inline constexpr int64_t kGiB = int64_t{1} << 30;

inline absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(1'700'000'000 + seconds); }

// A ready node: GPUs in devices, CPU in cores, memory in GiB, 110 pods.
inline Node MakeNode(absl::string_view name, int64_t gpus, int64_t cores = 64,
                     int64_t memory_gib = 512) {
  Node node;
  node.meta.name = std::string(name);
  node.meta.uid = absl::StrCat("uid-", name);
  node.meta.labels.Set(kHostnameLabel, name);
  node.allocatable = {{"cpu", cores * 1000}, {"memory", memory_gib * kGiB}, {"pods", 110}};
  if (gpus > 0) Set(node.allocatable, kGpuName, gpus * 1000);
  return node;
}

class PodBuilder {
 public:
  PodBuilder(absl::string_view ns, absl::string_view name) {
    pod_.meta.ns = std::string(ns);
    pod_.meta.name = std::string(name);
    pod_.meta.uid = absl::StrCat("uid-", ns, "-", name);
    pod_.meta.creation = At(0);
    pod_.spec.ns = std::string(ns);
    pod_.spec.requests = {{"cpu", 1000}, {"memory", kGiB}};
    pod_.scheduler_name = kDefaultSchedulerName;
  }
  PodBuilder& Gpus(int64_t devices) {
    Set(pod_.spec.requests, kGpuName, devices * 1000);
    return *this;
  }
  PodBuilder& GpuFraction(int64_t milli, int64_t devices = 1) {
    pod_.spec.gpu_share = {milli, 0, devices};
    return *this;
  }
  PodBuilder& GpuMemory(int64_t mib, int64_t devices = 1) {
    pod_.spec.gpu_share = {0, mib, devices};
    return *this;
  }
  PodBuilder& Cpu(int64_t milli) {
    Set(pod_.spec.requests, kCpuName, milli);
    return *this;
  }
  PodBuilder& Queue(absl::string_view queue) { return Label(kQueueLabel, queue); }
  PodBuilder& Label(absl::string_view key, absl::string_view value) {
    pod_.meta.labels.Set(key, value);
    return *this;
  }
  PodBuilder& Annotation(absl::string_view key, absl::string_view value) {
    pod_.meta.annotations.Set(key, value);
    return *this;
  }
  PodBuilder& Group(absl::string_view group) { return Annotation(kPodGroupAnnotation, group); }
  PodBuilder& Priority(absl::string_view name, int32_t value) {
    pod_.priority_class_name = std::string(name);
    pod_.priority = value;
    return *this;
  }
  PodBuilder& NeverPreempts() {
    pod_.never_preempts = true;
    return *this;
  }
  PodBuilder& Started(int64_t seconds) {
    pod_.start_time = At(seconds);
    return *this;
  }
  PodBuilder& Preemptible(bool yes) {
    return Label(kPreemptibilityLabel, yes ? "preemptible" : "non-preemptible");
  }
  PodBuilder& Created(int64_t seconds) {
    pod_.meta.creation = At(seconds);
    return *this;
  }
  PodBuilder& Scheduler(absl::string_view name) {
    pod_.scheduler_name = std::string(name);
    return *this;
  }
  PodBuilder& On(absl::string_view node, PodPhase phase = PodPhase::kRunning) {
    pod_.node_name = std::string(node);
    pod_.phase = phase;
    return *this;
  }
  PodBuilder& ActiveDeadline(int64_t seconds) {
    pod_.active_deadline_s = seconds;
    return *this;
  }
  PodBuilder& Ready() {
    pod_.ready = true;
    return *this;
  }
  PodBuilder& NodeSelector(absl::string_view key, absl::string_view value) {
    pod_.spec.node_selector.Set(key, value);
    return *this;
  }
  PodBuilder& Gate(absl::string_view name) {
    pod_.scheduling_gates.emplace_back(name);
    return *this;
  }
  PodBuilder& Deleting() {
    pod_.meta.deletion = At(1);
    return *this;
  }
  [[nodiscard]] const Pod& Build() const { return pod_; }
  operator const Pod&() const { return pod_; }  // NOLINT(google-explicit-constructor)

 private:
  Pod pod_;
};

// GPU amounts in devices, kUnlimited for none; CPU and memory unlimited.
inline Queue MakeQueue(absl::string_view name, absl::string_view parent, int64_t gpu_quota,
                       int64_t gpu_limit, int64_t weight = 1) {
  Queue queue;
  queue.meta.name = std::string(name);
  queue.meta.uid = absl::StrCat("uid-", name);
  queue.meta.creation = At(0);
  queue.parent = std::string(parent);
  auto milli = [](int64_t devices) { return devices == kUnlimited ? kUnlimited : devices * 1000; };
  queue.gpu = {milli(gpu_quota), milli(gpu_limit), weight * 1'000'000};
  queue.cpu = {kUnlimited, kUnlimited, weight * 1'000'000};
  queue.memory = {kUnlimited, kUnlimited, weight * 1'000'000};
  return queue;
}

inline PodGroup MakeGroup(absl::string_view ns, absl::string_view name, absl::string_view queue,
                          int32_t min_member) {
  PodGroup group;
  group.meta.ns = std::string(ns);
  group.meta.name = std::string(name);
  group.meta.uid = absl::StrCat("uid-group-", ns, "-", name);
  group.meta.creation = At(0);
  group.queue = std::string(queue);
  group.min_member = min_member;
  return group;
}

}  // namespace fairlead::model::testing
