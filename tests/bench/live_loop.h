// The program's own parts, assembled as in `fairlead run`, against a real kube-apiserver; and the
// objects that the benchmarks create there.
//
// The loop gets queues directly: the CRDs need not be installed. Thread-safety: a LiveLoop belongs
// to the thread that decides, except for Wake and the counters, which any thread may read. Errors
// end the benchmark (Require).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "kube/watch/source.h"
#include "kube/write/executor.h"
#include "tests/bench/cluster.h"
#include "tests/bench/control_plane.h"
#include "tests/bench/harness.h"

namespace fairlead::bench {

inline constexpr int kPreparing = 64;  // requests in flight while objects are made and removed

// A pod of one core, 1 GiB and `gpus` GPUs in `queue`. With a node it is created bound.
struct PodToCreate {
  std::string name, queue;
  int gpus = 1;
  std::string node = "";
  std::string group = "";  // its PodGroup, if it has one
};
kube::EncodedWrite CreatePod(const PodToCreate& pod);
// A PodGroup for one pod.
kube::EncodedWrite CreatePodGroup(absl::string_view name, absl::string_view queue);
// Appends what makes the pod; with `groups` also a PodGroup of its own, before it.
void AddPod(std::vector<kube::EncodedWrite>& create, PodToCreate pod, bool groups);
kube::EncodedWrite MarkRunning(absl::string_view name);
// Nodes "node-000000" and on, ready.
void CreateNodes(ApiClient& api, int64_t count);
void SendOrEnd(ApiClient& api, const std::vector<kube::EncodedWrite>& writes,
               absl::string_view what, int in_flight = kPreparing);

// A control plane with the benchmarks' namespace; or null, with the reason in the report.
std::unique_ptr<ControlPlane> StartOrSkip(Run& run, absl::string_view name,
                                          const std::string& crds);

class LiveLoop {
 public:
  LiveLoop(const ControlPlane& plane, const core::Options& options,
           const std::vector<model::Queue>& queues, const kube::WriteWindow::Options& window = {});
  ~LiveLoop();
  LiveLoop(const LiveLoop&) = delete;
  LiveLoop& operator=(const LiveLoop&) = delete;

  // Reads all objects, without deciding.
  void Read();
  void Decide();
  void Wait();
  void Wake() { queue_.Wake(); }

  // Answers so far.
  [[nodiscard]] int64_t bound() const { return bound_; }
  [[nodiscard]] int64_t refused() const { return refused_; }
  [[nodiscard]] int64_t evicted() const { return evicted_; }
  // A watch has shown that a pod goes, or is gone.
  [[nodiscard]] bool saw_pod_go() const { return saw_pod_go_; }
  // Of all calls of Decide() so far.
  struct Decisions {
    int64_t count = 0;
    double seconds = 0, cpu_seconds = 0;  // wall time, and CPU time of the thread that decides
  };
  [[nodiscard]] const Decisions& decisions() const { return decisions_; }
  [[nodiscard]] uint64_t cycles() const { return loop_->stats().cycles; }
  kube::Executor& executor() { return *executor_; }
  ApiClient& api() { return api_; }

 private:
  void Drain(absl::Duration wait);

  RealClock clock_;
  kube::EventQueue queue_;
  ApiClient api_;
  std::unique_ptr<core::DecisionLoop> loop_;
  std::unique_ptr<kube::ClusterSource> source_;
  std::unique_ptr<kube::Executor> executor_;
  absl::Time wake_at_ = absl::InfiniteFuture();
  absl::Duration gather_until_;  // as in the program
  Decisions decisions_;
  std::vector<model::ClusterEvent> events_;
  absl::flat_hash_set<uint64_t> binds_, evictions_;
  bool saw_pod_go_ = false;
  std::atomic<int64_t> bound_{0}, refused_{0}, evicted_{0};
};

}  // namespace fairlead::bench
