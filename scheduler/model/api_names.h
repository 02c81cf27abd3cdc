// Names that other programs see: groups, labels, annotations, conditions. Each is spelt in this one
// place. KAI's keys: facts from its documentation and CRDs.
//
// The comment of a key is a row of docs/reference/names.md: "KIND of OBJECTS[, by WRITER]: what it
// says." (scripts/reference.py, which also reads the keys in other files).
#pragma once

namespace fairlead::model {

// KAI's keys, honoured as they are.

// Label of pods: the leaf queue.
inline constexpr char kQueueLabel[] = "kai.scheduler/queue";
// Label of pods: the queue of a pod that has no label kai.scheduler/queue.
inline constexpr char kProjectLabel[] = "project";
// Label of pods and PodGroups: the node pool of KAI; with a label project the queue is
// PROJECT-POOL.
inline constexpr char kNodePoolLabel[] = "kai.scheduler/node-pool";
// The pool of objects without that label, as KAI names it.
inline constexpr char kDefaultNodePool[] = "default";
// Label of pods: the PriorityClass that counts for Fairlead.
inline constexpr char kPriorityClassLabel[] = "priorityClassName";
// Label of pods: preemptible or non-preemptible.
inline constexpr char kPreemptibilityLabel[] = "kai.scheduler/preemptibility";
// Label of pods: the subgroup of the PodGroup that the pod belongs to.
inline constexpr char kSubGroupLabel[] = "kai.scheduler/subgroup-name";
// Label of pods: the order of pods in a workload; higher numbers come first.
inline constexpr char kTaskPriorityLabel[] = "kai.scheduler/task-priority";
// Annotation of pods: name of the PodGroup.
inline constexpr char kPodGroupAnnotation[] = "pod-group-name";
// Annotation of pods: how long after its creation no pod is evicted for the workload, as in 5m.
inline constexpr char kPreemptionDelayAnnotation[] = "kai.scheduler/preemption-delay";
// Annotation of pods: how long a gang may run below its minimum, as in 1m.
inline constexpr char kStalenessGraceAnnotation[] = "kai.scheduler/staleness-grace-period";
// Annotation of pods and their owners: name of the Topology, for groups that Fairlead makes.
inline constexpr char kTopologyAnnotation[] = "kai.scheduler/topology";
// Annotation of pods and their owners: the level within which all pods must be.
inline constexpr char kTopologyRequiredAnnotation[] = "kai.scheduler/topology-required-placement";
// Annotation of pods and their owners: the level within which all pods should be.
inline constexpr char kTopologyPreferredAnnotation[] = "kai.scheduler/topology-preferred-placement";
// Annotation of pods and PodGroups, by Fairlead on pods: when the workload was started last.
inline constexpr char kLastStartAnnotation[] = "kai.scheduler/last-start-timestamp";
// Annotation of PodGroups, by Fairlead: when pods of the group were evicted last.
inline constexpr char kLastEvictionAnnotation[] = "kai.scheduler/last-eviction-timestamp";
// Annotation of PodGroups, by Fairlead: since when the group has run below its minimum.
inline constexpr char kStaleSinceAnnotation[] = "kai.scheduler/stale-podgroup-timestamp";
// Annotation of pods: the share of a GPU, as in 0.5.
inline constexpr char kGpuFractionAnnotation[] = "gpu-fraction";
// Annotation of pods: the share of a GPU as memory in MiB.
inline constexpr char kGpuMemoryAnnotation[] = "gpu-memory";
// Annotation of pods: on how many GPUs the pod has its share.
inline constexpr char kGpuDevicesAnnotation[] = "gpu-fraction-num-devices";
// Label of pods and reservation pods, by Fairlead: the shared GPU. Of several GPUs each has a label
// with /GROUP at its end.
inline constexpr char kGpuGroupLabel[] = "runai-gpu-group";
// Annotation of pods: the container that shares the GPU; the first one if absent.
inline constexpr char kGpuContainerAnnotation[] = "gpu-fraction-container-name";
inline constexpr char kReservationNamespace[] = "kai-resource-reservation";
inline constexpr char kReservationApp[] = "kai-resource-reservation";  // label "app"
// Annotation of reservation pods, by fairlead-gpu-index: the UUID of the GPU that the pod was
// given, as KAI writes it in spite of the key.
inline constexpr char kGpuIndexAnnotation[] = "run.ai/reserve_for_gpu_index";
// Annotation of pods: prefix of the names of the pod's ConfigMaps; written by KAI's webhook.
inline constexpr char kSharedGpuConfigMapAnnotation[] = "runai/shared-gpu-configmap";
inline constexpr char kMigPrefix[] = "nvidia.com/mig-";  // resources; legacy pods: annotations
// Annotation of pods: what the pod has of its machine's NUMA nodes, as JSON [{"zone", "amount":
// {NAME: QUANTITY}}]; written by KAI.
inline constexpr char kNumaObservedAnnotation[] = "kai.scheduler/numa-placement-observed";
// Annotation of pods, by Fairlead: as numa-placement-observed, until KAI has written that one.
inline constexpr char kNumaPredictedAnnotation[] = "kai.scheduler/numa-placement-predicted";
// Annotation of pods, by Fairlead: Fraction on a pod that shares GPUs.
inline constexpr char kReceivedResourceTypeAnnotation[] = "received-resource-type";
inline constexpr char kDefaultQueue[] = "default-queue";
inline constexpr char kDefaultSchedulerName[] = "fairlead";
inline constexpr char kKaiSchedulerName[] = "kai-scheduler";

// Node labels that we read.

// Label of nodes: name of the host.
inline constexpr char kHostnameLabel[] = "kubernetes.io/hostname";
// Label of nodes: the zone.
inline constexpr char kZoneLabel[] = "topology.kubernetes.io/zone";
// Label of nodes: the instance type.
inline constexpr char kInstanceTypeLabel[] = "node.kubernetes.io/instance-type";
// Label of nodes: the architecture.
inline constexpr char kArchLabel[] = "kubernetes.io/arch";
// Label of nodes: the operating system.
inline constexpr char kOsLabel[] = "kubernetes.io/os";
// Label of nodes: the GPU model.
inline constexpr char kGpuProductLabel[] = "nvidia.com/gpu.product";
// Label of nodes: memory of one GPU in MiB.
inline constexpr char kGpuMemoryLabel[] = "nvidia.com/gpu.memory";
// Label of nodes: number of GPUs.
inline constexpr char kGpuCountLabel[] = "nvidia.com/gpu.count";
// Label of nodes: none, single or mixed.
inline constexpr char kMigStrategyLabel[] = "nvidia.com/mig.strategy";
// Label of nodes: whether the GPUs are divided by MIG.
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
// Annotation of pods and PodGroups of scheduling.k8s.io, by Fairlead: the verdict as JSON.
inline constexpr char kVerdictAnnotation[] = "fairlead.dev/verdict";
// Annotation of pods, by Fairlead: the queue that the pod was started under, as "parent/queue", or
// "queue" if it is a top queue.
inline constexpr char kStartedUnderAnnotation[] = "fairlead.dev/started-under";
// Annotation of pods, by Fairlead: "preemptible" or "non-preemptible", as the workload was when the
// pod was started. Always written, because a binding overwrites what a tenant wrote, and cannot
// remove it.
inline constexpr char kStartedAsAnnotation[] = "fairlead.dev/started-as";
// Annotation of PodGroups, by Fairlead: "true" if the numbers follow the owners of the pods
// (core/owned_groups.h). Fairlead never changes a group without it.
inline constexpr char kFollowsOwnerAnnotation[] = "fairlead.dev/follows-owner";
// Label of workloads, by Fairlead: "true" while their pods are ended for others
// (core/suspensions.h).
inline constexpr char kSuspendedLabel[] = "fairlead.dev/suspended";
// Annotation of such workloads, by Fairlead: which Fairlead releases it, by its first scheduler
// name, with "/SHARD" if it has a shard.
inline constexpr char kSuspendedByAnnotation[] = "fairlead.dev/suspended-by";
// Annotation of such workloads, by Fairlead: why, as for an eviction.
inline constexpr char kSuspendedForAnnotation[] = "fairlead.dev/suspended-for";
// Annotation of pods, by Fairlead: the GPUs that the containers see; their environment is taken
// from it.
inline constexpr char kVisibleDevicesAnnotation[] = "fairlead.dev/visible-devices";
// Annotation of pods, by Fairlead: the share of each GPU.
inline constexpr char kGpuPortionAnnotation[] = "fairlead.dev/gpu-portion";
// Label of nodes, by Fairlead: name of the NodeRequest.
inline constexpr char kNodeRequestLabel[] = "fairlead.dev/node-request";
// Label of nodes, by Fairlead: spot, on-demand or reserved.
inline constexpr char kCapacityTypeLabel[] = "fairlead.dev/capacity-type";
// Label of nodes, by Fairlead: the reservation of a reserved machine.
inline constexpr char kReservationLabel[] = "fairlead.dev/reservation";
// Label of nodes, by Fairlead: name of the NodePool.
inline constexpr char kPoolLabel[] = "fairlead.dev/node-pool";
// Taint of nodes, by Fairlead: the node is about to be emptied or removed.
inline constexpr char kRemovalTaint[] = "fairlead.dev/to-be-removed";
// Taint of nodes, by Fairlead: the node is not usable yet.
inline constexpr char kStartupTaint[] = "fairlead.dev/starting";
// Finalizer of NodeRequests, by Fairlead: keeps the object until its machine is gone.
inline constexpr char kMachineFinalizer[] = "fairlead.dev/machine";
// Annotation of pods: set by the kubelet on the mirror of a static pod, which no API call can move.
inline constexpr char kMirrorPodAnnotation[] = "kubernetes.io/config.mirror";
// Annotation of pods and nodes: "true" keeps the node.
inline constexpr char kDoNotRemoveAnnotation[] = "fairlead.dev/do-not-remove";
// Annotation of pods: families of instance types that do not suit the pod.
inline constexpr char kFamilyExclusionsAnnotation[] = "fairlead.dev/instance-family-exclusions";
// Annotation of pods: families of instance types that suit the pod.
inline constexpr char kFamilyInclusionsAnnotation[] = "fairlead.dev/instance-family-inclusions";
// Annotation of pods: a regular expression that the instance type matches.
inline constexpr char kTypeRegexpAnnotation[] = "fairlead.dev/instance-type-regexp";
// Annotation of pods: GPU models that suit the pod, the preferred one first.
inline constexpr char kGpuSkusAnnotation[] = "fairlead.dev/instance-gpu-skus";
// Annotation of pods: some of spot, on-demand and reserved.
inline constexpr char kOfferingsAnnotation[] = "fairlead.dev/instance-offerings";
// Annotation of pods: the highest price of a provisioned machine, in dollars per hour.
inline constexpr char kMaxCostAnnotation[] = "fairlead.dev/instance-max-cost";
// Annotation of pods: the highest number of GPUs of the machine.
inline constexpr char kMaxGpusAnnotation[] = "fairlead.dev/instance-max-gpus";
// Annotation of pods: any value but "false" keeps the pod from being moved to save capacity.
inline constexpr char kDoNotEvictAnnotation[] = "fairlead.dev/do-not-evict";
// Annotation of pods: "true" on a pod with scheduling gates; its verdict says what nodes for the
// pod would cost.
inline constexpr char kEstimateAnnotation[] = "fairlead.dev/estimate";
inline constexpr char kLunaNodePrefix[] = "node.elotl.co/";
// Annotation of pods: as fairlead.dev/instance-family-exclusions; Luna's name.
inline constexpr char kLunaFamilyExclusionsAnnotation[] =
    "node.elotl.co/instance-family-exclusions";
// Annotation of pods: as fairlead.dev/instance-family-inclusions; Luna's name.
inline constexpr char kLunaFamilyInclusionsAnnotation[] =
    "node.elotl.co/instance-family-inclusions";
// Annotation of pods: as fairlead.dev/instance-type-regexp; Luna's name.
inline constexpr char kLunaTypeRegexpAnnotation[] = "node.elotl.co/instance-type-regexp";
// Annotation of pods: as fairlead.dev/instance-gpu-skus; Luna's name.
inline constexpr char kLunaGpuSkusAnnotation[] = "node.elotl.co/instance-gpu-skus";
// Annotation of pods: as fairlead.dev/instance-offerings; Luna's name.
inline constexpr char kLunaOfferingsAnnotation[] = "node.elotl.co/instance-offerings";
// Annotation of pods: as fairlead.dev/instance-max-cost; Luna's name.
inline constexpr char kLunaMaxCostAnnotation[] = "node.elotl.co/instance-max-cost";
// Annotation of pods: as fairlead.dev/instance-max-gpus; Luna's name.
inline constexpr char kLunaMaxGpusAnnotation[] = "node.elotl.co/instance-max-gpus";
// Annotation of pods: as fairlead.dev/do-not-evict; Luna's name.
inline constexpr char kLunaDoNotEvictAnnotation[] = "pod.elotl.co/do-not-evict";
// Annotation of pods: "true" as fairlead.dev/do-not-evict; Karpenter's name.
inline constexpr char kKarpenterDoNotDisruptAnnotation[] = "karpenter.sh/do-not-disrupt";
// Annotation of pods: "false" as fairlead.dev/do-not-evict; cluster-autoscaler's name.
inline constexpr char kSafeToEvictAnnotation[] = "cluster-autoscaler.kubernetes.io/safe-to-evict";
// Annotation of pods: how long the pod is expected to run, as Go writes durations: "2h30m".
inline constexpr char kExpectedDurationAnnotation[] = "fairlead.dev/expected-duration";
// Annotation of pods: reserved; this version neither reads nor writes it.
inline constexpr char kBindDecisionAnnotation[] = "fairlead.dev/decision";

inline constexpr char kPodScheduledCondition[] = "PodScheduled";
// Of a PodGroup of scheduling.k8s.io.
inline constexpr char kPodGroupScheduledCondition[] = "PodGroupScheduled";
inline constexpr char kReadyCondition[] = "Ready";

}  // namespace fairlead::model
