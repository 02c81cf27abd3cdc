// What turns a job into pods and pods into a group: controllers of jobs and deployments, a
// pod-grouper that makes the PodGroup and annotates the pods later (also after they were bound),
// the collector of PodGroups whose owner is gone, and the controller of PodDisruptionBudgets.
//
// A job wants `pods` successes; a deployment wants `pods` pods that live. What failed or went is
// created again under the next number; of a stateful one under its own, once it is gone. A job that
// is done is removed with its group after a while.
//
// Ownership: borrows time and server. Thread-safety: none, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "sim/event_queue.h"
#include "sim/faults.h"
#include "sim/world/api_server.h"
#include "sim/world/plan.h"

namespace fairlead::sim::world {

class Controllers {
 public:
  Controllers(EventQueue* time, ApiServer* server, uint64_t seed);

  // `operation`: fields of MakePod and MakeGroup, and
  //   pods   how many, one after the other where there is a gap_ms; kind: job | deployment |
  //          stateful (a deployment)
  //   grouping: none | own (the group first) | late (the pod-grouper, `late_ms` after each pod) |
  //          owners (the program groups the pods by an object that owns them: of a job a Job, whose
  //          annotation says `min`)
  //   suspend: ignored (of a Job: its controller does not look at spec.suspend) | `suspend_ms`: how
  //          late it looks
  void AddJob(const Operation& operation);
  void DeleteJob(const std::string& job);
  void Scale(const std::string& job, int64_t pods);
  // Its user holds the pods of a Job back for so long, and takes Fairlead's mark off it.
  void Suspend(const std::string& job, absl::Duration lasting);
  // PodDisruptionBudget over the pods of a job. `unhealthy`: its unhealthyPodEvictionPolicy; empty:
  // none.
  void AddBudget(const std::string& job, int64_t min_available, const std::string& unhealthy);

  [[nodiscard]] bool Has(const std::string& job) const { return jobs_.contains(job); }
  // Pods that were created for jobs so far.
  [[nodiscard]] int64_t created() const { return created_; }

 private:
  struct Job {
    Operation fields;
    std::string ns;
    int64_t wanted = 0, succeeded = 0, next_number = 0;
    bool deployment = false, stateful = false, late_group = false, scheduled = false;
    std::set<std::string> pods;  // names
    std::string uid;             // of the object that owns them; empty: there is none
    int64_t min_available = -1;
  };
  void OnPod(const ApiServer::Commit& commit);
  void OnJobObject(const Json& object);
  // Its object says that its pods are held back: they are deleted, and no others are made.
  [[nodiscard]] bool IsSuspended(const std::string& name, const Job& job) const;
  [[nodiscard]] static ResourceType OwnerType(const Job& job);
  void SetSuspended(const std::string& name, bool suspended);
  void OnGroup(const Json& group);
  void Wake(const std::string& name, absl::Duration delay);
  void Reconcile(const std::string& name);
  void CreatePod(const std::string& name, Job& job);
  // The pods that are missing, each under its own number.
  void FillNumbers(const std::string& name, Job& job);
  [[nodiscard]] std::string SmallestPart(const Job& job, int64_t parts) const;
  void Group(const std::string& job, const std::string& pod);
  void CreateOwner(const std::string& name, Job& job);
  void RemoveOwner(const std::string& name, const Job& job);
  void CollectGroups(const std::string& ns, const std::string& owner_uid);
  void UpdateBudget(const std::string& name, const Job& job);

  EventQueue* time_;
  ApiServer* server_;
  Random random_;
  std::map<std::string, Job> jobs_;
  int64_t created_ = 0;
};

}  // namespace fairlead::sim::world
