// The kwok provider's port to the world: Node objects through the API server, and time. Answers
// come back on the thread that runs the task queue, as the provider requires.
//
// Errors passed to `done`: NotFound and AlreadyExists from the server; Aborted if `time_left` (the
// fence of leadership, and the bound of each request's time-out) is zero; Unavailable if the
// outcome is unknown.
//
// Ownership: transport and timers outlive it; calls in flight share the queue. Thread-safety:
// called on the owner's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "autoscale-hook/providers/kwok_provider.h"
#include "cmd/fairlead/app/task_queue.h"
#include "kube/codec/codec.h"
#include "kube/transport/http.h"

namespace fairlead::cmd {

class KubeNodeApi final : public hook::NodeApi {
 public:
  KubeNodeApi(kube::HttpTransport* transport, std::shared_ptr<TaskQueue> tasks,
              std::function<absl::Duration()> time_left)
      : transport_(transport), tasks_(std::move(tasks)), time_left_(std::move(time_left)) {}

  void CreateNode(const model::Node& node, Done done) override;
  void SetNodeReady(const model::Node& node, Done done) override;
  void DeleteNode(const std::string& name, Done done) override;

 private:
  void Send(kube::EncodedWrite write, Done done);

  kube::HttpTransport* transport_;
  std::shared_ptr<TaskQueue> tasks_;
  std::function<absl::Duration()> time_left_;
};

class TimerScheduler final : public hook::Scheduler {
 public:
  TimerScheduler(kube::Timers* timers, std::shared_ptr<TaskQueue> tasks)
      : timers_(timers), tasks_(std::move(tasks)) {}
  void After(absl::Duration delay, std::function<void()> callback) override;

 private:
  kube::Timers* timers_;
  std::shared_ptr<TaskQueue> tasks_;
};

}  // namespace fairlead::cmd
