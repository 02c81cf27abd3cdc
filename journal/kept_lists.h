// The lists of texts that a redaction keeps (kept_words.h). A text that is on no list is replaced,
// so a forgotten one costs a report some meaning, or is an error, and never gives a name away.
//
// Lists are sorted, with a space or a line between two texts. Thread-safety: constants.
#pragma once

#include "absl/strings/string_view.h"

namespace fairlead::journal {

// clang-format off
// Keys of labels, annotations, taints and resources to which the program, Kubernetes or an autoscaler
// gives a meaning.
inline constexpr absl::string_view kKeys = R"(
amd.com/gpu app.kubernetes.io/component app.kubernetes.io/instance app.kubernetes.io/name app.kubernetes.io/part-of
apps.kubernetes.io/pod-index autoscaling.x-k8s.io/consume-provisioning-request batch.kubernetes.io/controller-uid
batch.kubernetes.io/job-completion-index batch.kubernetes.io/job-name beta.kubernetes.io/arch
beta.kubernetes.io/instance-type beta.kubernetes.io/os cloud.google.com/gke-accelerator
cloud.google.com/gke-preemptible cloud.google.com/gke-provisioning cloud.google.com/gke-spot
cloud.google.com/impending-node-termination cluster-autoscaler.kubernetes.io/consume-provisioning-request
cluster-autoscaler.kubernetes.io/safe-to-evict cluster-autoscaler.kubernetes.io/scale-down-disabled
cluster.x-k8s.io/cluster-name cluster.x-k8s.io/delete-machine cluster.x-k8s.io/deployment-name cluster.x-k8s.io/paused
cluster.x-k8s.io/pool-name controller-revision-hash controller-uid eks.amazonaws.com/capacityType
failure-domain.beta.kubernetes.io/region failure-domain.beta.kubernetes.io/zone fairlead.dev/announced
fairlead.dev/capacity-type fairlead.dev/decision fairlead.dev/do-not-evict fairlead.dev/do-not-remove
fairlead.dev/estimate fairlead.dev/expected-duration fairlead.dev/follows-owner fairlead.dev/gpu-alternative
fairlead.dev/gpu-model fairlead.dev/gpu-portion fairlead.dev/gpus fairlead.dev/instance-family-exclusions
fairlead.dev/instance-family-inclusions fairlead.dev/instance-gpu-skus fairlead.dev/instance-max-cost
fairlead.dev/instance-max-gpus fairlead.dev/instance-offerings fairlead.dev/instance-type-regexp
fairlead.dev/launch-set fairlead.dev/launch-set-atomic fairlead.dev/launch-set-size fairlead.dev/machine
fairlead.dev/made-by fairlead.dev/node-pool fairlead.dev/node-request fairlead.dev/node-request-uid
fairlead.dev/ordered-by fairlead.dev/over-quota fairlead.dev/places fairlead.dev/price-usd-per-hour
fairlead.dev/provisioned-cost-limit-per-hour fairlead.dev/provisioned-gpu-limit fairlead.dev/provisioning-group
fairlead.dev/provisioning-request fairlead.dev/removed-from fairlead.dev/removed-machines fairlead.dev/reservation
fairlead.dev/started-as fairlead.dev/started-under fairlead.dev/starting fairlead.dev/suspended
fairlead.dev/suspended-by fairlead.dev/suspended-for fairlead.dev/to-be-removed fairlead.dev/verdict
fairlead.dev/visible-devices gpu-fraction gpu-fraction-container-name gpu-fraction-num-devices gpu-memory job-name
kai-resource-reservation kai.scheduler/batch-min-member kai.scheduler/last-eviction-timestamp
kai.scheduler/last-start-timestamp kai.scheduler/node-pool kai.scheduler/numa-placement-observed
kai.scheduler/numa-placement-predicted kai.scheduler/preemptibility kai.scheduler/preemption-delay kai.scheduler/queue
kai.scheduler/skip-podgrouper kai.scheduler/stale-podgroup-timestamp kai.scheduler/staleness-grace-period
kai.scheduler/subgroup-name kai.scheduler/task-priority kai.scheduler/top-owner-metadata kai.scheduler/topology
kai.scheduler/topology-preferred-placement kai.scheduler/topology-required-placement karpenter.sh/capacity-type
karpenter.sh/do-not-disrupt karpenter.sh/nodepool karpenter.sh/unregistered kubernetes.azure.com/scalesetpriority
kubernetes.io/arch kubernetes.io/config.mirror kubernetes.io/hostname kubernetes.io/metadata.name
kubernetes.io/no-provisioner kubernetes.io/os kubernetes.io/pv-protection kubernetes.io/pvc-protection
kueue.x-k8s.io/queue-name kwok.x-k8s.io/node metadata.name node-role.kubernetes.io/control-plane
node-role.kubernetes.io/mig-enabled node.cloudprovider.kubernetes.io/uninitialized
node.elotl.co/instance-family-exclusions node.elotl.co/instance-family-inclusions node.elotl.co/instance-gpu-skus
node.elotl.co/instance-max-cost node.elotl.co/instance-max-gpus node.elotl.co/instance-offerings
node.elotl.co/instance-type-regexp node.kubernetes.io/disk-pressure
node.kubernetes.io/exclude-from-external-load-balancers node.kubernetes.io/instance-type
node.kubernetes.io/memory-pressure node.kubernetes.io/network-unavailable node.kubernetes.io/not-ready
node.kubernetes.io/pid-pressure node.kubernetes.io/unreachable node.kubernetes.io/unschedulable
node.kubernetes.io/windows-build nvidia.com/gpu nvidia.com/gpu.count nvidia.com/gpu.memory nvidia.com/gpu.product
nvidia.com/gpu.replicas nvidia.com/gpu.shared nvidia.com/gpu.sharing-strategy nvidia.com/mig.strategy pod-group-name
pod-template-hash pod.elotl.co/do-not-evict priorityClassName project pv.kubernetes.io/bind-completed
pv.kubernetes.io/bound-by-controller received-resource-type resource.kubernetes.io/delete-protection
resource.kubernetes.io/extended-resource-claim run.ai/reserve_for_gpu_index runai-gpu-group runai/shared-gpu-configmap
statefulset.kubernetes.io/pod-name topology.kubernetes.io/region topology.kubernetes.io/zone
training.kubeflow.org/replica-type volume.beta.kubernetes.io/storage-class volume.kubernetes.io/selected-node
)";

// Values: kinds, groups, versions, reasons, policies.
inline constexpr absl::string_view kWords = R"(
Accepted Always Auth BookingExpired Buy BuyNodes CAPACITY_BLOCK CapacityBuffer CapacityRevoked Config ConfigMap
CronJob DaemonSet DefaultPreemptionArgs Deployment DiskPressure DoNotSchedule DoesNotExist DynamicResourcesArgs Evict
Exists Fail Failed Fairlead FairleadConfiguration False Fraction GpuFragmentationArgs Gt Honor Ignore In
InterPodAffinityArgs Invalid JAXJob Job JobSet KubeSchedulerConfiguration LeaderWorkerSet LeastAllocated List Lt
MPIJob MachineDeployment MachinePool MachineSet MemoryPressure MostAllocated NetworkUnavailable Never NoExecute
NoSchedule Node NodeAffinityArgs NodePlacementArgs NodePoolReady NodePoolRefused NodeResourcesBalancedAllocationArgs
NodeResourcesFitArgs None NotIn ON_DEMAND Other PIDPressure PaddleJob Pending Pod PodGroup PodGroupScheduled
PodScheduled PodTemplate PodTopologySpreadArgs PreferNoSchedule Provisioned Provisioning ProvisioningRequest
PyTorchJob Queue Quota RayCluster RayJob RayService Ready ReadyForProvisioning Refused Regular ReplicaSet
ReplicationController RequestedToCapacityRatio Running SCTP SPOT ScheduleAnyway Scheduled SchedulingGated Service
StatefulSet Stockout System TCP TFJob Timeout TrainJob True UDP Unknown Unschedulable Upstream VolumeBindingArgs Weigh
WhenEmpty WhenEmptyOrUnderutilized XGBoostJob amd64 apps arm64 autoscaling.x-k8s.io batch
best-effort-atomic-scale-up.autoscaling.x-k8s.io binpack buffer.x-k8s.io/active-capacity capacity-block
check-capacity.autoscaling.x-k8s.io cluster-api config.fairlead.dev cpu cron default default-queue default-scheduler
down ephemeral-storage externalgrpc fairlead fairlead-gpu-index false gpu jobset.x-k8s.io kai-scheduler karpenter
kube-node-lease kube-public kube-system kubeflow.org kubernetes.io/aws-ebs kubernetes.io/azure-disk
kubernetes.io/azure-file kubernetes.io/cinder kubernetes.io/gce-pd kubescheduler.config.k8s.io kwok label
leaderworkerset.x-k8s.io leases linux lowestCommonAncestor memory mixed mps nearest nearestCommonAncestor nextOwner
node-0 node-1 node-2 node-3 node-4 node-5 node-6 node-7 non-preemptible none on-demand owner pod podName pods policy
preemptible prometheus provisioning-request ray.io regular reserved resource.k8s.io scale-subresource
scheduling.k8s.io scheduling.run.ai single sliding spec.runPolicy.suspend spec.suspend spot spread standard storage
storage.k8s.io time-slicing true tumbling v1 v1alpha1 v1alpha2 v1beta1 v1beta2 v2 v2alpha2 windows
)";

// Keys of which a value is an amount, a time, or yes and no.
inline constexpr absl::string_view kAmountKeys = R"(
apps.kubernetes.io/pod-index batch.kubernetes.io/job-completion-index cloud.google.com/gke-preemptible
cloud.google.com/gke-spot cluster-autoscaler.kubernetes.io/safe-to-evict
cluster-autoscaler.kubernetes.io/scale-down-disabled fairlead.dev/decision fairlead.dev/do-not-evict
fairlead.dev/do-not-remove fairlead.dev/estimate fairlead.dev/expected-duration fairlead.dev/follows-owner
fairlead.dev/gpu-portion fairlead.dev/gpus fairlead.dev/instance-max-cost fairlead.dev/instance-max-gpus
fairlead.dev/launch-set-atomic fairlead.dev/launch-set-size fairlead.dev/price-usd-per-hour
fairlead.dev/provisioned-cost-limit-per-hour fairlead.dev/provisioned-gpu-limit fairlead.dev/suspended
fairlead.dev/visible-devices gpu-fraction gpu-fraction-num-devices gpu-memory kai.scheduler/batch-min-member
kai.scheduler/last-eviction-timestamp kai.scheduler/last-start-timestamp kai.scheduler/preemption-delay
kai.scheduler/skip-podgrouper kai.scheduler/stale-podgroup-timestamp kai.scheduler/staleness-grace-period
kai.scheduler/task-priority karpenter.sh/do-not-disrupt kubernetes.io/config.mirror node.elotl.co/instance-max-cost
node.elotl.co/instance-max-gpus nvidia.com/gpu.count nvidia.com/gpu.memory nvidia.com/gpu.replicas
pod.elotl.co/do-not-evict pv.kubernetes.io/bind-completed pv.kubernetes.io/bound-by-controller
run.ai/reserve_for_gpu_index
)";

// Keys of nodes of which a value says what the machine is (public_hardware.h).
inline constexpr absl::string_view kHardwareKeys = R"(
beta.kubernetes.io/instance-type cloud.google.com/gke-accelerator cloud.google.com/gke-provisioning
eks.amazonaws.com/capacityType failure-domain.beta.kubernetes.io/region failure-domain.beta.kubernetes.io/zone
fairlead.dev/capacity-type fairlead.dev/gpu-model karpenter.k8s.aws/instance-gpu-name karpenter.sh/capacity-type
kubernetes.azure.com/scalesetpriority kubernetes.io/arch kubernetes.io/os node.kubernetes.io/instance-type
nvidia.com/gpu.product nvidia.com/gpu.sharing-strategy nvidia.com/mig.strategy topology.kubernetes.io/region
topology.kubernetes.io/zone
)";

// Fields of configuration files, with those of the plugins' arguments. kept_words_test.cc compares this
// list with the source text of the readers.
inline constexpr absl::string_view kConfigurationFields = R"(
acceptContentTypes actions addedAffinity address admission all allocate annotation annotations any apiVersion args
arrivalTimeout assumedDuration atMost authorizationFailurePolicy backoffInitial backoffMax bareName bearerTokenFile
billingPeriod bindAddress bindTimeout bindTimeoutSeconds bindVerb bindingTimeout binpack bookingTime bootDelay
builtinDefaultQueue burst caData caFile capacityBuffers capacityWait catalogFile certData certFile className
clientConnection clientType clusterApi clusterGPULimit clusterName command connectionString connectionStringEnvVar
consolidatingReclaim consolidation consolidationHorizon consolidationMinRuntime consolidationPolicy contentType
costLimitPerHour count cpu cpuAllocationMetric cpuCapacityMetric cronString default defaultConstraints defaultPlugins
defaultPriorityClass defaultQueue defaultingType delayCacheUntilActive deleteAnnotation difference disabled document
down durationWeight each effect else enableContentionProfiling enableHTTPS enableProfiling enabled encloses endpoint
equals events evictions exists expectedBoot extenders externalgrpc extraParams fetchInterval filterTimeout filterVerb
first firstIndex firstJoins firstPositive forEach from gangBindingGrace gangReservations gatheringMax gatheringQuiet
gpu gpuAllocationMetric gpuCapacityMetric gpuFractionMilli gpuLimits gpuProducts gpuSharing gpus greatest group
grouping groups guests halfLifePeriod hardPodAffinityWeight honorToleration hook httpTimeout idleGracePeriod if
ignorable ignorePreferredTermsOfExistingPods ignoredByScheduler ignoredResourceGroups ignoredResources image
indexTimeout infix insecure instanceType jobOrder kValue kaiStatus karpenter keepOffGpuNodes key keyData keyFile kind
kinds kubeconfig kwok label labelSelector labels launchTimeout leaderElect leaderElection leaseDuration leases least
managedResources matchExpressions matchFields matchLabelKeys maxAge maxConsolidationWorkloads maxInFlight
maxNewRequestsPerStep maxNodes maxReservations maxSize maxSkew memory memoryAllocationMetric memoryCapacityMetric
metadata metricsBindAddress minCandidateNodesAbsolute minCandidateNodesPercentage minDomains minGPUs minMember minSize
minSubGroup minimumLifetime mostPods multiPoint name nameAnnotation namespace nearest nextOwner nodeAffinityPolicy
nodeCacheCapable nodeClassRef nodeSelector nodeSelectorTerms nodeTaintsPolicy nodeUsage not null of operator
otherPodsJoin outOfStockFile overQuota owner ownerAnnotation ownerReadsPerSecond parallelism parameters
partitionLabelValue parts path per perSecond percentageOfNodesToScore permitTimeout placementGenerate placementScore
pluginConfig plugins pod podAffinity podAnnotation podAntiAffinity podGroupSettle podInitialBackoffSeconds podLabel
podLabels podMaxBackoffSeconds podName podNames pods preempt preemptMinRuntime preemptVerb preference preferred
preferredDuringSchedulingIgnoredDuringExecution priceUSDPerHour prioritizeVerb priorityClass product profiles
prometheus provider provisioningBurst provisioningPerMinute provisioningRequest provisioningRequests qps
queryResolution queue queueAuthorization queueDepth read readyTimeout reclaim reclaimMinRuntime reclaimResolveMethod
reclaimRounding remotePlugins removalsPerMinute renewDeadline requestedToCapacityRatio required
requiredDuringSchedulingIgnoredDuringExecution reserveAfter resource resourceLock resourceName resourceNamespace
resources retryPeriod runtimeClassName samplingRatePerMillion scaleSubresource schedulerName schedulerNames score
scoringStrategy serverName serviceAccountName shape shard single size skipEmpty sliding spread staleAfter
staleGangEviction stalenessGracePeriod stalenessPeriod stuckInReleasingThreshold subGroups sum sumOver suspend taints
template then timeout tlsConfig topology topologyKey totalProvisioningBurst totalProvisioningPerMinute tracing true
tumblingWindowStartTime type typicalPods unneededAfter urlPrefix usage usageQueryTimeout utilization value values
waitTimeout weight when whenUnsatisfiable windowSize windowType zone
)";

// Fields in the paths of grouping/kinds.yaml.
inline constexpr absl::string_view kGroupingFields = R"(
AZUREML_NODE_COUNT Launcher Master Worker annotations apiVersion clusterSelector completions controller
deletionTimestamp elasticPolicy envs generation groupName headGroupSpec jaxReplicaSpecs job kind labels
launcherCreationPolicy leaderWorkerTemplate metadata minAvailable minReplicas mpiReplicaSpecs name namespace
numOfHosts options ownerReferences packConstraint paddleReplicaSpecs parallelism podgroups preferred priorityClassName
pytorchReplicaSpecs replicas replicatedJobs required resourceVersion runPolicy schedulingPolicy
shutdownAfterJobFinishes size spec startupPolicy startupPolicyOrder subGroupPolicy subGroupPolicyType subGroupSize
suspend suspended template tfReplicaSpecs topologyConstraint topologyConstraintGroupConfigs uid workerGroupSpecs
workerTemplate xgbReplicaSpecs
)";

// Fields of objects in a bundle: of Fairlead's CustomResourceDefinitions, and of Kubernetes' kinds those
// that a bundle has (cmd/fairlead/bundle/bundle_fields.h).
inline constexpr absl::string_view kApiFields = R"(
acquireTime action activeDeadlineSeconds affinity alias allocatable allocated allocatedNonPreemptible allowSpot
annotations antiAffinity apiVersion architecture budgets by capacity category childQueues claimName claims code
component conditions consolidateAfter consolidationPolicy containerPort containerRuntimeVersion containers controller
count cpu creationTimestamp deletionTimestamp demand details devices displayName disruption duration effect estimate
eventTime expectedAt failedAt failure finalizers firstTimestamp fractionMilli generation gitVersion gpu gpuSharing
group hash holderIdentity host hostIP hostPort image initContainers instanceType instanceTypes involvedObject items
kernelVersion key kind kubeletVersion labelSelector labels lastObservedTime lastProbeTime lastTimestamp
lastTransitionTime launchedAt leaseDurationSeconds leaseTransitions lendingLimit levels limit limits major
markUnschedulable matchExpressions matchFields matchLabelKeys matchLabels maxNodes maxSkew memory memoryMib message
metadata migDevices minCount minDomains minMember minSubGroup minor mismatchLabelKeys missing name names namespace
namespaceSelector namespaces nodeAffinity nodeAffinityPolicy nodeClassRef nodeInfo nodeLabel nodeName nodePool
nodeRequests nodeSelector nodeSelectorTerms nodeTaintsPolicy nodes nominatedNodeName observedGeneration
operatingSystem operator osImage other overQuotaWeight overhead ownerReferences parent parentQueue
persistentVolumeClaim phase platform plugin plural podAffinity podAffinityTerm podAntiAffinity podGroupName
podGroupRequestedNonPreemptibleResources podGroupRequestedResources podsRunning podsWaiting pool ports position
predicates preemptMinRuntime preemptibility preemptionDelay preemptionPolicy preference
preferredDuringSchedulingIgnoredDuringExecution preferredTopologyLevel priceUsdPerHour priority priorityClassName
protocol provider providerID qosClass queue queueAllocatedNonPreemptibleResources queueAllocatedResources queueBlock
queueDeservedResources queueDetails queueRequestedResources queueResourceLimits quota readOnly readyAt reason
reasonWorkloads reasons reclaimMinRuntime registeredAt related renameByDefault renewTime replaces replicas
reportingComponent reportingInstance requested requests requiredDuringSchedulingIgnoredDuringExecution
requiredTopologyLevel reservation reservations resolvableBy resource resourceClaimName resourceClaimStatuses
resourceClaimTemplateName resourceClaims resourceVersion resources resourcesStatus restartPolicy schedulability
schedule schedulerName schedulingBackoff schedulingConditions schedulingGates schedulingGroup scope series served
source spec spot spread stalenessGracePeriod startTime startupTaints status storage storedVersions strategy subGroups
subject taints terminationGracePeriodSeconds terms text timeAdded tolerationSeconds tolerations topology
topologyConstraint topologyKey topologySpreadConstraints transitionID truncated type uid unblockers unneededSince
unschedulable until used v value values versions volumes weight what whenUnsatisfiable zone zones
)";

// clang-format on

}  // namespace fairlead::journal
