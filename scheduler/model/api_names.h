// Names that other programs see: groups, labels, annotations, conditions. Each is spelt in this one
// place. KAI's keys: facts from its documentation and CRDs.
#pragma once

namespace fairlead::model {

// KAI's keys, honoured as they are.
inline constexpr char kQueueLabel[] = "kai.scheduler/queue";
inline constexpr char kProjectLabel[] = "project";
inline constexpr char kNodePoolLabel[] = "kai.scheduler/node-pool";
// The pool of objects without that label, as KAI names it.
inline constexpr char kDefaultNodePool[] = "default";
inline constexpr char kPriorityClassLabel[] = "priorityClassName";
inline constexpr char kPreemptibilityLabel[] = "kai.scheduler/preemptibility";
inline constexpr char kSubGroupLabel[] = "kai.scheduler/subgroup-name";
inline constexpr char kTaskPriorityLabel[] = "kai.scheduler/task-priority";
inline constexpr char kPodGroupAnnotation[] = "pod-group-name";
inline constexpr char kPreemptionDelayAnnotation[] = "kai.scheduler/preemption-delay";
inline constexpr char kStalenessGraceAnnotation[] = "kai.scheduler/staleness-grace-period";
inline constexpr char kTopologyAnnotation[] = "kai.scheduler/topology";
inline constexpr char kTopologyRequiredAnnotation[] = "kai.scheduler/topology-required-placement";
inline constexpr char kTopologyPreferredAnnotation[] = "kai.scheduler/topology-preferred-placement";
inline constexpr char kLastStartAnnotation[] = "kai.scheduler/last-start-timestamp";
inline constexpr char kLastEvictionAnnotation[] = "kai.scheduler/last-eviction-timestamp";
inline constexpr char kStaleSinceAnnotation[] = "kai.scheduler/stale-podgroup-timestamp";
inline constexpr char kGpuFractionAnnotation[] = "gpu-fraction";
inline constexpr char kGpuMemoryAnnotation[] = "gpu-memory";
inline constexpr char kGpuDevicesAnnotation[] = "gpu-fraction-num-devices";
inline constexpr char kGpuGroupLabel[] = "runai-gpu-group";  // /GROUP for each of several devices
inline constexpr char kGpuContainerAnnotation[] = "gpu-fraction-container-name";
inline constexpr char kReservationNamespace[] = "kai-resource-reservation";
inline constexpr char kReservationApp[] = "kai-resource-reservation";  // label "app"
// On a reservation pod: the UUID of the GPU that it was given, as KAI writes it in spite of the
// key.
inline constexpr char kGpuIndexAnnotation[] = "run.ai/reserve_for_gpu_index";
// On a pod that KAI's webhook has mutated: the prefix of the names of its config maps.
inline constexpr char kSharedGpuConfigMapAnnotation[] = "runai/shared-gpu-configmap";
inline constexpr char kMigPrefix[] = "nvidia.com/mig-";  // resources; legacy pods: annotations
// On a pod: what it has of its machine's NUMA nodes, as JSON [{"zone", "amount": {NAME:
// QUANTITY}}].
inline constexpr char kNumaObservedAnnotation[] = "kai.scheduler/numa-placement-observed";
inline constexpr char kNumaPredictedAnnotation[] = "kai.scheduler/numa-placement-predicted";
inline constexpr char kReceivedResourceTypeAnnotation[] = "received-resource-type";
inline constexpr char kDefaultQueue[] = "default-queue";
inline constexpr char kDefaultSchedulerName[] = "fairlead";
inline constexpr char kKaiSchedulerName[] = "kai-scheduler";

// Node labels that we read.
inline constexpr char kHostnameLabel[] = "kubernetes.io/hostname";
inline constexpr char kZoneLabel[] = "topology.kubernetes.io/zone";
inline constexpr char kInstanceTypeLabel[] = "node.kubernetes.io/instance-type";
inline constexpr char kArchLabel[] = "kubernetes.io/arch";
inline constexpr char kOsLabel[] = "kubernetes.io/os";
inline constexpr char kGpuProductLabel[] = "nvidia.com/gpu.product";
inline constexpr char kGpuMemoryLabel[] = "nvidia.com/gpu.memory";
inline constexpr char kGpuCountLabel[] = "nvidia.com/gpu.count";
inline constexpr char kMigStrategyLabel[] = "nvidia.com/mig.strategy";  // none | single | mixed
inline constexpr char kMigEnabledLabel[] = "node-role.kubernetes.io/mig-enabled";

// Prefix of the resource by which a queue limits GPUs of one product; the value of kGpuProductLabel
// follows.
inline constexpr char kGpuModelPrefix[] = "gpu-model/";

// Prefix of the name of a topology whose one level is the node label that follows. No object has
// such a name.
inline constexpr char kTopologyOfLabel[] = "label/";

// Of an object: the API server refuses longer ones.
inline constexpr size_t kLongestName = 253;

// Ours.
inline constexpr char kGroup[] = "fairlead.dev";
inline constexpr char kVerdictAnnotation[] = "fairlead.dev/verdict";
// On a pod that we bound: the queue that it was started under, as "parent/queue", or "queue" if it
// is a top queue.
inline constexpr char kStartedUnderAnnotation[] = "fairlead.dev/started-under";
// Likewise: "preemptible" or "non-preemptible", as its workload was at that time. Always written,
// because a binding overwrites what a tenant wrote, and cannot remove it.
inline constexpr char kStartedAsAnnotation[] = "fairlead.dev/started-as";
// On a PodGroup: "true" if its numbers follow the owners of its pods (core/owned_groups.h). We
// write it on the groups that we make, and never change a group without it.
inline constexpr char kFollowsOwnerAnnotation[] = "fairlead.dev/follows-owner";
// The containers of a pod that shares GPUs take their environment from this annotation.
inline constexpr char kVisibleDevicesAnnotation[] = "fairlead.dev/visible-devices";
inline constexpr char kGpuPortionAnnotation[] = "fairlead.dev/gpu-portion";
inline constexpr char kNodeRequestLabel[] = "fairlead.dev/node-request";
// spot | on-demand | reserved
inline constexpr char kCapacityTypeLabel[] = "fairlead.dev/capacity-type";
inline constexpr char kReservationLabel[] = "fairlead.dev/reservation";  // of a reserved machine
inline constexpr char kPoolLabel[] = "fairlead.dev/node-pool";
inline constexpr char kRemovalTaint[] = "fairlead.dev/to-be-removed";
inline constexpr char kStartupTaint[] = "fairlead.dev/starting";
// On every NodeRequest until its machine is gone.
inline constexpr char kMachineFinalizer[] = "fairlead.dev/machine";
// The kubelet sets it on the mirror of a static pod, which no API call can move.
inline constexpr char kMirrorPodAnnotation[] = "kubernetes.io/config.mirror";
inline constexpr char kDoNotRemoveAnnotation[] = "fairlead.dev/do-not-remove";
// What a pod says about the machine that it runs on (instance_wishes.h), under our names and
// Luna's.
inline constexpr char kFamilyExclusionsAnnotation[] = "fairlead.dev/instance-family-exclusions";
inline constexpr char kFamilyInclusionsAnnotation[] = "fairlead.dev/instance-family-inclusions";
inline constexpr char kTypeRegexpAnnotation[] = "fairlead.dev/instance-type-regexp";
inline constexpr char kGpuSkusAnnotation[] = "fairlead.dev/instance-gpu-skus";
inline constexpr char kOfferingsAnnotation[] = "fairlead.dev/instance-offerings";
inline constexpr char kMaxCostAnnotation[] = "fairlead.dev/instance-max-cost";
inline constexpr char kMaxGpusAnnotation[] = "fairlead.dev/instance-max-gpus";
inline constexpr char kDoNotEvictAnnotation[] = "fairlead.dev/do-not-evict";
// Of a pod with scheduling gates: its verdict says what nodes for it would cost.
inline constexpr char kEstimateAnnotation[] = "fairlead.dev/estimate";
inline constexpr char kLunaNodePrefix[] = "node.elotl.co/";
inline constexpr char kLunaFamilyExclusionsAnnotation[] =
    "node.elotl.co/instance-family-exclusions";
inline constexpr char kLunaFamilyInclusionsAnnotation[] =
    "node.elotl.co/instance-family-inclusions";
inline constexpr char kLunaTypeRegexpAnnotation[] = "node.elotl.co/instance-type-regexp";
inline constexpr char kLunaGpuSkusAnnotation[] = "node.elotl.co/instance-gpu-skus";
inline constexpr char kLunaOfferingsAnnotation[] = "node.elotl.co/instance-offerings";
inline constexpr char kLunaMaxCostAnnotation[] = "node.elotl.co/instance-max-cost";
inline constexpr char kLunaMaxGpusAnnotation[] = "node.elotl.co/instance-max-gpus";
inline constexpr char kLunaDoNotEvictAnnotation[] = "pod.elotl.co/do-not-evict";
// Of other autoscalers: the pod is not to be moved.
inline constexpr char kKarpenterDoNotDisruptAnnotation[] = "karpenter.sh/do-not-disrupt";
inline constexpr char kSafeToEvictAnnotation[] = "cluster-autoscaler.kubernetes.io/safe-to-evict";
// How long the pod is expected to run, as Go writes durations: "2h30m".
inline constexpr char kExpectedDurationAnnotation[] = "fairlead.dev/expected-duration";
inline constexpr char kBindDecisionAnnotation[] = "fairlead.dev/decision";

inline constexpr char kPodScheduledCondition[] = "PodScheduled";
// Of a PodGroup of scheduling.k8s.io.
inline constexpr char kPodGroupScheduledCondition[] = "PodGroupScheduled";
inline constexpr char kReadyCondition[] = "Ready";

}  // namespace fairlead::model
