// HTTP calls of a part of the application that lives on the owner's thread: their answers come
// there as tasks, and none comes after the end of this object.
//
// Ownership: the transport outlives it. Thread-safety: the owner's thread.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "cmd/fairlead/app/task_queue.h"
#include "kube/transport/http.h"

namespace fairlead::cmd {

class OwnerCalls {
 public:
  OwnerCalls(kube::HttpTransport* transport, std::shared_ptr<TaskQueue> tasks)
      : transport_(transport), tasks_(std::move(tasks)) {}
  ~OwnerCalls() { *alive_ = false; }
  OwnerCalls(const OwnerCalls&) = delete;
  OwnerCalls& operator=(const OwnerCalls&) = delete;

  // `done` may end this object.
  void Send(kube::HttpRequest request, kube::HttpTransport::Done done) {
    transport_->Send(std::move(request), [tasks = tasks_, alive = alive_, done = std::move(done)](
                                             absl::StatusOr<kube::HttpResponse> answer) {
      tasks->Post([alive, done, answer = std::move(answer)] {
        if (*alive) done(answer);
      });
    });
  }

 private:
  kube::HttpTransport* transport_;
  std::shared_ptr<TaskQueue> tasks_;
  // Read and written on the owner's thread alone.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace fairlead::cmd
