// Reads the stored usage of queues (core/usage_store.h) when a process begins to lead: before that,
// another process may write it. Decisions wait for it for a limited time. If the API server does
// not answer, they are made without history, as in KAI, and the reader tries again; nothing is
// stored before it has an answer.
//
// Ownership: the transport outlives it; answers come as tasks, and none comes after its end.
// Thread-safety: the owner's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cmd/fairlead/app/owner_calls.h"
#include "cmd/fairlead/app/task_queue.h"
#include "kube/transport/http.h"

namespace fairlead::cmd {

class UsageReader {
 public:
  // Called once, with the stored text; empty if there is none, an error if it is not a ConfigMap.
  using Found = std::function<void(const absl::StatusOr<std::string>& text)>;
  // Called for every failed attempt.
  using Failed = std::function<void(const absl::Status& why)>;

  UsageReader(kube::HttpTransport* transport, std::shared_ptr<TaskQueue> tasks, std::string path,
              Found found, Failed failed)
      : calls_(transport, std::move(tasks)),
        path_(std::move(path)),
        found_(std::move(found)),
        failed_(std::move(failed)) {}

  // Starts attempts as needed. True if decisions may be made.
  bool Poll(absl::Time now);
  // When Poll has something to do; infinite future: it waits for an answer.
  [[nodiscard]] absl::Time wake_at() const;

 private:
  static constexpr absl::Duration kPatience = absl::Seconds(5);  // of decisions
  static constexpr absl::Duration kPause = absl::Seconds(10);    // between two attempts

  void Ask();
  void OnAnswer(const absl::StatusOr<kube::HttpResponse>& answer);

  OwnerCalls calls_;
  const std::string path_;
  const Found found_;
  const Failed failed_;
  bool done_ = false, asking_ = false, patient_ = true;
  absl::Time waits_until_ = absl::InfinitePast();
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace fairlead::cmd
