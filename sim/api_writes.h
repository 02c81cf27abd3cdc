// The effect of each write of the core on the API server: preconditions, conflicts and effects of a
// real one (Kubernetes 1.36). Codes as model::ActionResult says: AlreadyExists (409 on create),
// FailedPrecondition (409 on a precondition), NotFound (404).
//
// It is lenient where the real server is. It accepts a Binding to a node that does not exist (pod
// garbage collection deletes the pod later) and a status patch of a bound pod.
//
// Ownership: borrows the server. Thread-safety: none, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "scheduler/model/action.h"
#include "sim/api_server.h"

namespace fairlead::sim {

// Deletes a pod like `kubectl delete`: an unbound pod is gone at once, a bound pod terminates until
// its kubelet removes it. NotFound if there is none.
absl::Status DeletePod(ApiServer& server, const std::string& key);

class ApiWrites {
 public:
  explicit ApiWrites(ApiServer* server) : server_(server) {}

  absl::Status Commit(const model::BindPod& write);
  absl::Status Commit(const model::EvictPod& write);
  absl::Status Commit(const model::SetPodUnschedulable& write);
  absl::Status Commit(const model::NominateNode& write);
  absl::Status Commit(const model::SetPodGroupSchedulability& write);
  absl::Status Commit(const model::SetPodGroupAnnotations& write);
  absl::Status Commit(const model::SetPodGroupScheduled& write);
  absl::Status Commit(const model::WritePodGroup& write);
  absl::Status Commit(const model::SetPodGroup& write);
  absl::Status Commit(const model::SetConditions& write);
  absl::Status Commit(const model::SetKaiStatus& write);
  absl::Status Commit(const model::CreateNodeRequest& write);
  absl::Status Commit(const model::UpdateNodeRequestStatus& write);
  absl::Status Commit(const model::DeleteNodeRequest& write);
  absl::Status Commit(const model::SetNodeTaint& write);
  absl::Status Commit(const model::StoreUsage& write);
  absl::Status Commit(const model::EmitEvent& write);
  absl::Status Commit(const model::CreateGpuReservation& write);
  absl::Status Commit(const model::DeletePod& write);
  absl::Status Commit(const model::ReserveClaim& write);
  absl::Status Commit(const model::DeallocateClaim& write);
  absl::Status Commit(const model::SetExtendedClaim& write);
  absl::Status Commit(const model::BindVolume& write);
  absl::Status Commit(const model::SelectVolumeNode& write);
  absl::Status Commit(const model::ApplyConfigMap& write);  // has no object: the simulator has no
                                                            // config maps

  // The last stored text, with which a restart begins.
  [[nodiscard]] const std::string& stored_usage() const { return stored_usage_; }

  // Accepted writes that changed nothing: a decision was made twice.
  [[nodiscard]] uint64_t empty_writes() const { return empty_writes_; }
  // The last one, for people.
  [[nodiscard]] const std::string& last_empty_write() const { return last_empty_write_; }

 private:
  absl::Status Empty(std::string what);

  ApiServer* server_;
  uint64_t empty_writes_ = 0;
  std::string last_empty_write_;
  std::string stored_usage_;
  // Data without a field in the model, by uid: the condition's message and observed generation; the
  // whole of a group's status.
  std::map<std::string, std::string> pod_messages_, group_status_;
};

}  // namespace fairlead::sim
