// Minimal Deployment and Job controllers: they keep as many pods as the object wants, and replace
// pods that were deleted, evicted or lost.
//
//   Deployment  pods "<name>-<n>" owned by a ReplicaSet; scaling down removes pods that do not run
//               first, then the newest
//   Job         pods "<name>-<n>" owned by the Job; done when `completions` have succeeded;
//               finished pods stay, as they do in a cluster
//
// Ownership: borrows the queue and the server. Thread-safety: none, one thread. Determinism: pods
// are made in the order of their numbers.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "sim/api_server.h"
#include "sim/event_queue.h"

namespace fairlead::sim {

enum class ControllerKind : uint8_t { kDeployment, kJob };

struct ControllerSpec {
  ControllerKind kind = ControllerKind::kDeployment;
  std::string ns, name;
  int64_t replicas = 1;     // of a Deployment; the parallelism of a Job
  int64_t completions = 1;  // of a Job
  model::Pod pod_template;  // without name and owner
};

class Controllers {
 public:
  Controllers(EventQueue* queue, ApiServer* server, absl::Duration delay);

  // Creates it, or changes its size if it exists (the template of existing pods stays).
  void Apply(ControllerSpec spec);
  // Deletes it with its pods. NotFound if there is none.
  absl::Status Delete(ControllerKind kind, absl::string_view key);
  // Replicas, or parallelism of a Job. NotFound if there is none.
  absl::Status Scale(ControllerKind kind, absl::string_view key, int64_t replicas);

 private:
  struct Controller {
    ControllerSpec spec;
    std::string uid;
    int64_t next_number = 0;
    std::set<std::string> pods;  // keys
    int64_t succeeded = 0;
    bool scheduled = false;  // a reconciliation is due
  };
  using Id = std::pair<ControllerKind, std::string>;

  void OnPod(ChangeType type, const model::Pod& pod);
  void Wake(const Id& id);
  void Reconcile(const Id& id);
  void CreatePod(Controller& controller);
  void RemoveSurplus(const std::vector<std::string>& active, int64_t surplus);
  absl::StatusOr<Controller*> Find(ControllerKind kind, absl::string_view key);

  EventQueue* queue_;
  ApiServer* server_;
  absl::Duration delay_;
  std::map<Id, Controller> controllers_;
  std::map<std::string, Id> by_uid_;
};

}  // namespace fairlead::sim
