// The objects that a day creates in a user's cluster, from the first to the last.
//
// Existing objects stay untouched: CheckFree refuses a day that would overwrite something. Cleanup
// deletes only what was created here, and the nodes and node requests created since.
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
#include "cmd/fairlead/cluster/api_client.h"
#include "demo/day_manifests.h"

namespace fairlead::demo {

// The namespace of the day's lease, which every cluster has.
inline constexpr char kDayLeaseNamespace[] = "kube-system";

class DayObjects {
 public:
  // `sleep` waits in real time and returns false if the wait was interrupted.
  using Sleep = std::function<bool(absl::Duration)>;
  // Cleanup waits with `pause`, which cannot be interrupted.
  DayObjects(cmd::ApiClient* client, Sleep sleep, std::function<void(absl::Duration)> pause)
      : client_(client), sleep_(std::move(sleep)), pause_(std::move(pause)) {}

  // Call it before any write. AlreadyExists naming the first conflicting object.
  absl::Status CheckFree(const DayPlan& plan);
  // Definitions that the server does not have yet.
  [[nodiscard]] const std::vector<Json>& missing_definitions() const { return missing_; }

  // Installs missing definitions, waits until the server serves them, and creates the namespaces.
  absl::Status Prepare(const DayPlan& plan);
  // Like kubectl apply; retries while an admission plugin misses an object.
  absl::Status Apply(const Json& manifest);
  absl::Status Delete(const cmd::ObjectId& id);
  absl::Status Scale(const cmd::ObjectId& id, int64_t replicas);

  // Deletes everything again. Continues after an error and returns the first one.
  absl::Status Cleanup();

 private:
  absl::StatusOr<std::set<std::string>> NamesOf(const std::string& path);
  absl::Status DeleteNew(const std::string& path, const cmd::ObjectId& prototype,
                         const std::set<std::string>& before);
  // True if the object exists; waits for the end of one that is being deleted.
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
