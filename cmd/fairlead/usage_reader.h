// Reads the stored usage of queues (core/usage_store.h) when a process begins to lead: before, it
// is somebody else's to write. Decisions wait for it, but not for ever: where the API server does
// not say what there is they are made without history, as KAI makes them, and it is asked again;
// until it answers nothing is stored.
//
// Ownership: transport and tasks outlive it; answers come as tasks, and none comes after its end.
// Thread-safety: the owner's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cmd/fairlead/task_queue.h"
#include "kube/transport/http.h"

namespace fairlead::cmd {

class UsageReader {
 public:
  // Once, with what is stored; empty if nothing is, an error if that is no ConfigMap.
  using Found = std::function<void(const absl::StatusOr<std::string>& text)>;
  // For every attempt that told nothing.
  using Failed = std::function<void(const absl::Status& why)>;

  UsageReader(kube::HttpTransport* transport, std::shared_ptr<TaskQueue> tasks, std::string path,
              Found found, Failed failed)
      : transport_(transport),
        tasks_(std::move(tasks)),
        path_(std::move(path)),
        found_(std::move(found)),
        failed_(std::move(failed)) {}
  ~UsageReader() { *alive_ = false; }
  UsageReader(const UsageReader&) = delete;
  UsageReader& operator=(const UsageReader&) = delete;

  // Asks, the first time and as often as needed. True: decisions may be made.
  bool Poll(absl::Time now);
  // When Poll would do something that it would not do now; infinite future: only an answer matters.
  [[nodiscard]] absl::Time wake_at() const;

 private:
  static constexpr absl::Duration kPatience = absl::Seconds(5);  // of decisions
  static constexpr absl::Duration kPause = absl::Seconds(10);    // between two attempts

  void Ask();
  void OnAnswer(const absl::StatusOr<kube::HttpResponse>& answer);

  kube::HttpTransport* transport_;
  std::shared_ptr<TaskQueue> tasks_;
  const std::string path_;
  const Found found_;
  const Failed failed_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  bool done_ = false, asking_ = false, patient_ = true;
  absl::Time waits_until_ = absl::InfinitePast();
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace fairlead::cmd
