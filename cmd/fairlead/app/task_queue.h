// Tasks for the thread that owns the decisions, posted by other threads (answers of the API server,
// timers).
//
// Ownership: a poster that may outlive the owner holds it by shared_ptr. Thread-safety: Post from
// any thread; RunAll on the owner's. `wake` is called after a Post and must not block.
#pragma once

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace fairlead::cmd {

class TaskQueue {
 public:
  using Task = std::function<void()>;
  explicit TaskQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

  // After Close, tasks are dropped.
  void Post(Task task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return;
    tasks_.push_back(std::move(task));
    wake_();
  }
  // In the order of posting; includes tasks that running tasks post.
  void RunAll() {
    while (true) {
      std::vector<Task> ready;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        ready.swap(tasks_);
      }
      if (ready.empty()) return;
      for (const Task& task : ready) task();
    }
  }
  // After it returns, `wake` is not called any more.
  void Close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    tasks_.clear();
  }

 private:
  const std::function<void()> wake_;
  std::mutex mutex_;
  bool closed_ = false;
  std::vector<Task> tasks_;
};

}  // namespace fairlead::cmd
