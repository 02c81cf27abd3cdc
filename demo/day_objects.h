// The objects that a day makes in somebody's cluster, from the first to the last trace of them.
//
// Nothing that was there before is touched: CheckFree refuses a day that would overwrite something,
// and Cleanup deletes only what was created here, and the nodes and node requests that came since.
//
// Ownership: the client outlives it. Thread-safety: one thread. Errors: those of the API server.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cmd/fairlead/api_client.h"
#include "demo/day_manifests.h"

namespace fairlead::demo {

// Where the day's lease is: a namespace that every cluster has.
inline constexpr char kDayLeaseNamespace[] = "kube-system";

class DayObjects {
 public:
  // `sleep` waits in real time and returns false when the wait was broken off.
  using Sleep = std::function<bool(absl::Duration)>;
  // Cleanup waits with `pause`, which nothing breaks off.
  DayObjects(cmd::ApiClient* client, Sleep sleep, std::function<void(absl::Duration)> pause)
      : client_(client), sleep_(std::move(sleep)), pause_(std::move(pause)) {}

  // Before anything is written. AlreadyExists naming the first object that is in the way.
  absl::Status CheckFree(const DayPlan& plan);
  // Definitions that the server does not have yet.
  [[nodiscard]] const std::vector<Json>& missing_definitions() const { return missing_; }

  // Installs what is missing and waits until the server serves it; makes the namespaces.
  absl::Status Prepare(const DayPlan& plan);
  // As kubectl apply; waits for what an admission plugin wants to see first.
  absl::Status Apply(const Json& manifest);
  absl::Status Delete(const cmd::ObjectId& id);
  absl::Status Scale(const cmd::ObjectId& id, int64_t replicas);

  // Everything away again. Goes on after an error and answers the first one.
  absl::Status Cleanup();

 private:
  absl::StatusOr<std::set<std::string>> NamesOf(const std::string& path);
  absl::Status DeleteNew(const std::string& path, const cmd::ObjectId& prototype,
                         const std::set<std::string>& before);
  // Whether it is there to stay: what is being deleted is waited for.
  absl::StatusOr<bool> IsThere(const cmd::ObjectId& id);
  void WaitUntilGone(const std::vector<cmd::ObjectId>& ids);
  void WaitForPods(const std::vector<std::string>& namespaces);

  cmd::ApiClient* client_;
  Sleep sleep_;
  std::function<void(absl::Duration)> pause_;
  std::vector<Json> missing_;
  std::vector<cmd::ObjectId> definitions_, namespaces_, created_;  // by us, in order
  std::vector<std::string> own_namespaces_;
  std::set<std::string> nodes_before_, requests_before_;
  bool lease_before_ = false;
};

}  // namespace fairlead::demo
