// Everything that people and their tools do to objects at any time: the verbs of a plan that are
// neither the machine room's nor the replicas'.
//
//   node, shrink-node, cordon-node, taint-node, kill-node, node-ready   nodes without a cloud
//   node-gpus, label-node                                    what it has of GPUs; key value
//   class, delete-class                                      PriorityClasses; one that is there is
//                                                            deleted and made again
//   job, delete-job, scale-job, suspend-job, budget          through Controllers
//   queue, change-queue, delete-queue                        change-queue replaces the spec
//   group, change-group, delete-group
//   label-pods, annotate-pods, delete-pods                   of a job, or one pod
//   pod, mirror-pod                                          without an owner
//   cloud, lose-machine, old-machine, static-pods, delete-request
//   refuse-binding                                           of one pod, for ever
//   device-class, delete-device-class
//   devices                                                  node count models: from now on
//   delete-claims                                            of the job's pods that wait
//   refuse-claims                                            prefix of their names, for ever; also
//                                                            of PersistentVolumeClaims
//   storage-class, volume, csi-node                          volume_objects.h; csi-node changes one
//   delete-volume-claims                                     of the job's pods
//   delete-volumes                                           of these claims; force: 1
//   provisioner                                              how (slow | silent | refuses) for_ms
//                                                            refuse_one_in
//   capacity-template, capacity-buffer, provisioning-request   one that is there is changed
//   delete-capacity                                          kind: buffer, request
//   pool, delete-pool                                        pool_objects.h; one that is there is
//                                                            changed
//   overwrite-status                                         kind (queue | group) ns name: other
//                                                            counts than Fairlead's; drop: none
//   heartbeats, unready, foreign-lag, foreign-race
//   stuck-kubelet                                            of all nodes, or for pods of one job
//
// Thread-safety: none, one thread.
#pragma once

#include <string>
#include <vector>

#include "sim/event_queue.h"
#include "sim/world/api_server.h"
#include "sim/world/cloud.h"
#include "sim/world/controllers.h"
#include "sim/world/device_driver.h"
#include "sim/world/foreign_scheduler.h"
#include "sim/world/kubelets.h"
#include "sim/world/plan.h"
#include "sim/world/volume_provisioner.h"

namespace fairlead::sim::world {

// In whose name the verbs write.
inline constexpr char kTenantActor[] = "tenant";

// Verbs that Tenants knows.
const std::vector<std::string>& TenantVerbs();

class Tenants {
 public:
  struct Parts {
    EventQueue* time;
    ApiServer* server;
    Kubelets* kubelets;
    Controllers* controllers;
    ForeignScheduler* foreign;
    Cloud* cloud;
    DeviceDriver* driver;
    VolumeProvisioner* provisioner;
  };
  explicit Tenants(const Parts& parts) : parts_(parts) {}

  // Does it now. False: no such verb. What is not there is passed over.
  bool Do(const Operation& operation);

 private:
  bool DoNode(const Operation& operation);
  bool DoWorkload(const Operation& operation);
  bool DoPolicy(const Operation& operation);
  bool DoPods(const Operation& operation);
  bool DoMachines(const Operation& operation);
  bool DoDevices(const Operation& operation);  // tenant_devices.cc
  void DeleteClaims(const Operation& operation);
  bool DoVolumes(const Operation& operation);  // tenant_volumes.cc
  void DeleteVolumes(const Operation& operation);
  bool DoCapacity(const Operation& operation);  // tenant_capacity.cc
  bool DoPools(const Operation& operation);     // tenant_pools.cc
  bool DoKai(const Operation& operation);       // tenant_kai.cc
  void DeleteRequest(int64_t pick, bool force);
  std::vector<std::pair<std::string, std::string>> PodsOf(const Operation& operation) const;
  absl::Time Until(const Operation& operation) const;

  Parts parts_;
};

}  // namespace fairlead::sim::world
