// Serves proto/fairlead/guests/v1 over gRPC: schedulers that are guests ask when and where their
// pods may start, and are told at once when one may.
//
// Bounds: kMaxAsks questions at a time, kMaxWatches open WatchGrants (RESOURCE_EXHAUSTED beyond
// them), and kMaxUnsent grants that a watch has not taken (the watch is ended, and the client
// begins another one). Plain text without authentication, as the port of metrics.
//
// Ownership: owns its server and threads; `decide` and `granted` outlive it. Thread-safety: Publish
// from any thread; the functions are called on threads of the service. Complexity: Publish O(grants
// * watches).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/decision_loop.h"
#include "scheduler/model/pod.h"

namespace fairlead::guests {

class Service {
 public:
  static constexpr size_t kMaxAsks = 64, kMaxWatches = 16, kMaxUnsent = 100'000;
  static constexpr absl::Duration kLongestWait = absl::Seconds(1);

  // What a guest is told of the pod, for which it has reserved that node, if any; waits for a
  // decision, at most so long. An error: nothing can be said now.
  using Decide = std::function<absl::StatusOr<core::GuestAnswer>(
      const model::Pod&, const std::string& reserved_on, absl::Duration)>;
  // The pods that have a grant now. What is published after the call may be in both.
  using Granted = std::function<absl::StatusOr<std::vector<core::GuestGrant>>()>;

  // Listens on "HOST:PORT". Unavailable if the address cannot be bound.
  static absl::StatusOr<std::unique_ptr<Service>> Start(const std::string& address, Decide decide,
                                                        Granted granted);
  // Ends all calls.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Tells all watches.
  void Publish(const std::vector<core::GuestGrant>& grants);
  // Ends all watches: their clients connect again, perhaps to another replica.
  void EndWatches();
  [[nodiscard]] int port() const;

 private:
  class Impl;
  explicit Service(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fairlead::guests
