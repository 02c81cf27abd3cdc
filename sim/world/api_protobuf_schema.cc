// Field numbers of k8s.io/api core/v1, policy/v1, scheduling/v1 and of apimachinery's meta/v1, as
// of v0.36, written down for interoperability.
#include "base/check.h"
#include "sim/world/api_protobuf.h"

namespace fairlead::sim::world {
namespace {

constexpr FieldShape kList = FieldShape::kList;
constexpr FieldShape kMap = FieldShape::kMap;
constexpr FieldShape kOne = FieldShape::kOne;
constexpr FieldType kString = FieldType::kString;
constexpr FieldType kInt = FieldType::kInt;
constexpr FieldType kBool = FieldType::kBool;
constexpr FieldType kQuantity = FieldType::kQuantity;
constexpr FieldType kTime = FieldType::kTime;
constexpr FieldType kMessage = FieldType::kMessage;
constexpr FieldType kInlined = FieldType::kInlined;

template <size_t N>
constexpr MessageSchema Schema(const FieldSchema (&fields)[N]) {
  return {fields, N};
}

// ---- meta.v1 ------------------------------------------------------------------------------------

constexpr FieldSchema kOwnerFields[] = {{"kind", 1, kString},     {"name", 3, kString},
                                        {"uid", 4, kString},      {"apiVersion", 5, kString},
                                        {"controller", 6, kBool}, {"blockOwnerDeletion", 7, kBool}};
constexpr MessageSchema kOwner = Schema(kOwnerFields);

constexpr FieldSchema kMetaFields[] = {
    {"name", 1, kString},
    {"generateName", 2, kString},
    {"namespace", 3, kString},
    {"uid", 5, kString},
    {"resourceVersion", 6, kString},
    {"generation", 7, kInt},
    {"creationTimestamp", 8, kTime},
    {"deletionTimestamp", 9, kTime},
    {"deletionGracePeriodSeconds", 10, kInt},
    {"labels", 11, kString, kMap},
    {"annotations", 12, kString, kMap},
    {"ownerReferences", 13, kMessage, kList, &kOwner},
    {"finalizers", 14, kString, kList},
};
constexpr MessageSchema kMeta = Schema(kMetaFields);

constexpr FieldSchema kRequirementFields[] = {
    {"key", 1, kString}, {"operator", 2, kString}, {"values", 3, kString, kList}};
constexpr MessageSchema kRequirement = Schema(kRequirementFields);
constexpr FieldSchema kSelectorFields[] = {{"matchLabels", 1, kString, kMap},
                                           {"matchExpressions", 2, kMessage, kList, &kRequirement}};
constexpr MessageSchema kSelector = Schema(kSelectorFields);

constexpr FieldSchema kCauseFields[] = {
    {"reason", 1, kString}, {"message", 2, kString}, {"field", 3, kString}};
constexpr MessageSchema kCause = Schema(kCauseFields);
constexpr FieldSchema kDetailsFields[] = {
    {"name", 1, kString},           {"group", 2, kString},
    {"kind", 3, kString},           {"causes", 4, kMessage, kList, &kCause},
    {"retryAfterSeconds", 5, kInt}, {"uid", 6, kString}};
constexpr MessageSchema kDetails = Schema(kDetailsFields);
constexpr FieldSchema kListMetaFields[] = {
    {"resourceVersion", 2, kString}, {"continue", 3, kString}, {"remainingItemCount", 4, kInt}};
constexpr MessageSchema kListMeta = Schema(kListMetaFields);
constexpr FieldSchema kStatusFields[] = {{"metadata", 1, kMessage, kOne, &kListMeta},
                                         {"status", 2, kString},
                                         {"message", 3, kString},
                                         {"reason", 4, kString},
                                         {"details", 5, kMessage, kOne, &kDetails},
                                         {"code", 6, kInt}};
constexpr MessageSchema kStatus = Schema(kStatusFields);

// ---- containers and volumes ---------------------------------------------------------------------

constexpr FieldSchema kLocalReferenceFields[] = {{"name", 1, kString}};
constexpr MessageSchema kLocalReference = Schema(kLocalReferenceFields);
constexpr FieldSchema kKeySelectorFields[] = {
    {"", 1, kInlined, kOne, &kLocalReference}, {"key", 2, kString}, {"optional", 3, kBool}};
constexpr MessageSchema kKeySelector = Schema(kKeySelectorFields);
constexpr FieldSchema kFieldRefFields[] = {{"apiVersion", 1, kString}, {"fieldPath", 2, kString}};
constexpr MessageSchema kFieldRef = Schema(kFieldRefFields);
constexpr FieldSchema kEnvSourceFields[] = {{"fieldRef", 1, kMessage, kOne, &kFieldRef},
                                            {"configMapKeyRef", 3, kMessage, kOne, &kKeySelector},
                                            {"secretKeyRef", 4, kMessage, kOne, &kKeySelector}};
constexpr MessageSchema kEnvSource = Schema(kEnvSourceFields);
constexpr FieldSchema kEnvFields[] = {
    {"name", 1, kString}, {"value", 2, kString}, {"valueFrom", 3, kMessage, kOne, &kEnvSource}};
constexpr MessageSchema kEnv = Schema(kEnvFields);
constexpr FieldSchema kEnvMapFields[] = {{"", 1, kInlined, kOne, &kLocalReference},
                                         {"optional", 2, kBool}};
constexpr MessageSchema kEnvMap = Schema(kEnvMapFields);
constexpr FieldSchema kEnvFromFields[] = {{"prefix", 1, kString},
                                          {"configMapRef", 2, kMessage, kOne, &kEnvMap},
                                          {"secretRef", 3, kMessage, kOne, &kEnvMap}};
constexpr MessageSchema kEnvFrom = Schema(kEnvFromFields);
constexpr FieldSchema kPortFields[] = {{"name", 1, kString},
                                       {"hostPort", 2, kInt},
                                       {"containerPort", 3, kInt},
                                       {"protocol", 4, kString},
                                       {"hostIP", 5, kString}};
constexpr MessageSchema kPort = Schema(kPortFields);
constexpr FieldSchema kContainerClaimFields[] = {{"name", 1, kString}, {"request", 2, kString}};
constexpr MessageSchema kContainerClaim = Schema(kContainerClaimFields);
constexpr FieldSchema kResourcesFields[] = {{"limits", 1, kQuantity, kMap},
                                            {"requests", 2, kQuantity, kMap},
                                            {"claims", 3, kMessage, kList, &kContainerClaim}};
constexpr MessageSchema kResources = Schema(kResourcesFields);
constexpr FieldSchema kRestartRuleFields[] = {{"action", 1, kString}};
constexpr MessageSchema kRestartRule = Schema(kRestartRuleFields);
constexpr FieldSchema kContainerFields[] = {
    {"name", 1, kString},
    {"image", 2, kString},
    {"command", 3, kString, kList},
    {"args", 4, kString, kList},
    {"workingDir", 5, kString},
    {"ports", 6, kMessage, kList, &kPort},
    {"env", 7, kMessage, kList, &kEnv},
    {"resources", 8, kMessage, kOne, &kResources},
    {"terminationMessagePath", 13, kString},
    {"imagePullPolicy", 14, kString},
    {"envFrom", 19, kMessage, kList, &kEnvFrom},
    {"terminationMessagePolicy", 20, kString},
    {"restartPolicy", 24, kString},
    {"restartPolicyRules", 25, kMessage, kList, &kRestartRule},
};
constexpr MessageSchema kContainer = Schema(kContainerFields);

constexpr FieldSchema kClaimSourceFields[] = {{"claimName", 1, kString}, {"readOnly", 2, kBool}};
constexpr MessageSchema kClaimSource = Schema(kClaimSourceFields);
constexpr FieldSchema kMapSourceFields[] = {
    {"", 1, kInlined, kOne, &kLocalReference}, {"defaultMode", 3, kInt}, {"optional", 4, kBool}};
constexpr MessageSchema kMapSource = Schema(kMapSourceFields);
constexpr FieldSchema kProjectionFields[] = {{"", 1, kInlined, kOne, &kLocalReference},
                                             {"optional", 4, kBool}};
constexpr MessageSchema kProjection = Schema(kProjectionFields);
constexpr FieldSchema kProjectionsFields[] = {{"configMap", 3, kMessage, kOne, &kProjection}};
constexpr MessageSchema kProjections = Schema(kProjectionsFields);
constexpr FieldSchema kProjectedFields[] = {{"sources", 1, kMessage, kList, &kProjections}};
constexpr MessageSchema kProjected = Schema(kProjectedFields);
constexpr FieldSchema kHostPathFields[] = {{"path", 1, kString}, {"type", 2, kString}};
constexpr MessageSchema kHostPath = Schema(kHostPathFields);
constexpr FieldSchema kEmptyDirFields[] = {{"medium", 1, kString}, {"sizeLimit", 2, kQuantity}};
constexpr MessageSchema kEmptyDir = Schema(kEmptyDirFields);
constexpr FieldSchema kGceDiskFields[] = {
    {"pdName", 1, kString}, {"fsType", 2, kString}, {"partition", 3, kInt}, {"readOnly", 4, kBool}};
constexpr MessageSchema kGceDisk = Schema(kGceDiskFields);
constexpr FieldSchema kAwsDiskFields[] = {{"volumeID", 1, kString},
                                          {"fsType", 2, kString},
                                          {"partition", 3, kInt},
                                          {"readOnly", 4, kBool}};
constexpr MessageSchema kAwsDisk = Schema(kAwsDiskFields);
constexpr FieldSchema kIscsiFields[] = {
    {"targetPortal", 1, kString}, {"iqn", 2, kString},    {"lun", 3, kInt},
    {"fsType", 5, kString},       {"readOnly", 6, kBool}, {"portals", 7, kString, kList}};
constexpr MessageSchema kIscsi = Schema(kIscsiFields);
constexpr FieldSchema kRbdFields[] = {{"monitors", 1, kString, kList},
                                      {"image", 2, kString},
                                      {"fsType", 3, kString},
                                      {"pool", 4, kString},
                                      {"user", 5, kString},
                                      {"keyring", 6, kString},
                                      {"secretRef", 7, kMessage, kOne, &kLocalReference},
                                      {"readOnly", 8, kBool}};
constexpr MessageSchema kRbd = Schema(kRbdFields);
// The spec of a claim that is made for the pod alone: as far as the world's pods have it.
constexpr FieldSchema kTemplateResourcesFields[] = {{"limits", 1, kQuantity, kMap},
                                                    {"requests", 2, kQuantity, kMap}};
constexpr MessageSchema kTemplateResources = Schema(kTemplateResourcesFields);
constexpr FieldSchema kTemplateSpecFields[] = {
    {"accessModes", 1, kString, kList},
    {"resources", 2, kMessage, kOne, &kTemplateResources},
    {"storageClassName", 5, kString},
    {"volumeMode", 6, kString}};
constexpr MessageSchema kTemplateSpec = Schema(kTemplateSpecFields);
constexpr FieldSchema kTemplateFields[] = {{"spec", 2, kMessage, kOne, &kTemplateSpec}};
constexpr MessageSchema kTemplate = Schema(kTemplateFields);
constexpr FieldSchema kEphemeralFields[] = {{"volumeClaimTemplate", 1, kMessage, kOne, &kTemplate}};
constexpr MessageSchema kEphemeral = Schema(kEphemeralFields);
constexpr FieldSchema kImageSourceFields[] = {{"reference", 1, kString},
                                              {"pullPolicy", 2, kString}};
constexpr MessageSchema kImageSource = Schema(kImageSourceFields);
constexpr FieldSchema kVolumeSourceFields[] = {
    {"hostPath", 1, kMessage, kOne, &kHostPath},
    {"emptyDir", 2, kMessage, kOne, &kEmptyDir},
    {"gcePersistentDisk", 3, kMessage, kOne, &kGceDisk},
    {"awsElasticBlockStore", 4, kMessage, kOne, &kAwsDisk},
    {"iscsi", 8, kMessage, kOne, &kIscsi},
    {"persistentVolumeClaim", 10, kMessage, kOne, &kClaimSource},
    {"rbd", 11, kMessage, kOne, &kRbd},
    {"configMap", 19, kMessage, kOne, &kMapSource},
    {"projected", 26, kMessage, kOne, &kProjected},
    {"ephemeral", 29, kMessage, kOne, &kEphemeral},
    {"image", 30, kMessage, kOne, &kImageSource}};
constexpr MessageSchema kVolumeSource = Schema(kVolumeSourceFields);
constexpr FieldSchema kVolumeFields[] = {{"name", 1, kString},
                                         {"", 2, kInlined, kOne, &kVolumeSource}};
constexpr MessageSchema kVolume = Schema(kVolumeFields);

// ---- where a pod may go -------------------------------------------------------------------------

constexpr FieldSchema kNodeTermFields[] = {{"matchExpressions", 1, kMessage, kList, &kRequirement},
                                           {"matchFields", 2, kMessage, kList, &kRequirement}};
constexpr MessageSchema kNodeTerm = Schema(kNodeTermFields);
constexpr FieldSchema kNodeSelectorFields[] = {
    {"nodeSelectorTerms", 1, kMessage, kList, &kNodeTerm}};
constexpr MessageSchema kNodeSelector = Schema(kNodeSelectorFields);
constexpr FieldSchema kPreferredFields[] = {{"weight", 1, kInt},
                                            {"preference", 2, kMessage, kOne, &kNodeTerm}};
constexpr MessageSchema kPreferred = Schema(kPreferredFields);
constexpr FieldSchema kNodeAffinityFields[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution", 1, kMessage, kOne, &kNodeSelector},
    {"preferredDuringSchedulingIgnoredDuringExecution", 2, kMessage, kList, &kPreferred}};
constexpr MessageSchema kNodeAffinity = Schema(kNodeAffinityFields);
constexpr FieldSchema kPodTermFields[] = {{"labelSelector", 1, kMessage, kOne, &kSelector},
                                          {"namespaces", 2, kString, kList},
                                          {"topologyKey", 3, kString},
                                          {"namespaceSelector", 4, kMessage, kOne, &kSelector},
                                          {"matchLabelKeys", 5, kString, kList},
                                          {"mismatchLabelKeys", 6, kString, kList}};
constexpr MessageSchema kPodTerm = Schema(kPodTermFields);
constexpr FieldSchema kWeightedFields[] = {{"weight", 1, kInt},
                                           {"podAffinityTerm", 2, kMessage, kOne, &kPodTerm}};
constexpr MessageSchema kWeighted = Schema(kWeightedFields);
constexpr FieldSchema kPodAffinityFields[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution", 1, kMessage, kList, &kPodTerm},
    {"preferredDuringSchedulingIgnoredDuringExecution", 2, kMessage, kList, &kWeighted}};
constexpr MessageSchema kPodAffinity = Schema(kPodAffinityFields);
constexpr FieldSchema kAffinityFields[] = {{"nodeAffinity", 1, kMessage, kOne, &kNodeAffinity},
                                           {"podAffinity", 2, kMessage, kOne, &kPodAffinity},
                                           {"podAntiAffinity", 3, kMessage, kOne, &kPodAffinity}};
constexpr MessageSchema kAffinity = Schema(kAffinityFields);
constexpr FieldSchema kTolerationFields[] = {{"key", 1, kString},
                                             {"operator", 2, kString},
                                             {"value", 3, kString},
                                             {"effect", 4, kString},
                                             {"tolerationSeconds", 5, kInt}};
constexpr MessageSchema kToleration = Schema(kTolerationFields);
constexpr FieldSchema kSpreadFields[] = {{"maxSkew", 1, kInt},
                                         {"topologyKey", 2, kString},
                                         {"whenUnsatisfiable", 3, kString},
                                         {"labelSelector", 4, kMessage, kOne, &kSelector},
                                         {"minDomains", 5, kInt},
                                         {"nodeAffinityPolicy", 6, kString},
                                         {"nodeTaintsPolicy", 7, kString},
                                         {"matchLabelKeys", 8, kString, kList}};
constexpr MessageSchema kSpread = Schema(kSpreadFields);

// ---- Pod ----------------------------------------------------------------------------------------

constexpr FieldSchema kPodClaimFields[] = {{"name", 1, kString},
                                           {"resourceClaimName", 3, kString},
                                           {"resourceClaimTemplateName", 4, kString}};
constexpr MessageSchema kPodClaim = Schema(kPodClaimFields);
constexpr FieldSchema kSchedulingGroupFields[] = {{"podGroupName", 1, kString}};
constexpr MessageSchema kSchedulingGroup = Schema(kSchedulingGroupFields);
constexpr FieldSchema kPodSpecFields[] = {
    {"volumes", 1, kMessage, kList, &kVolume},
    {"containers", 2, kMessage, kList, &kContainer},
    {"restartPolicy", 3, kString},
    {"terminationGracePeriodSeconds", 4, kInt},
    {"activeDeadlineSeconds", 5, kInt},
    {"dnsPolicy", 6, kString},
    {"nodeSelector", 7, kString, kMap},
    {"serviceAccountName", 8, kString},
    {"nodeName", 10, kString},
    {"hostNetwork", 11, kBool},
    {"hostname", 16, kString},
    {"affinity", 18, kMessage, kOne, &kAffinity},
    {"schedulerName", 19, kString},
    {"initContainers", 20, kMessage, kList, &kContainer},
    {"tolerations", 22, kMessage, kList, &kToleration},
    {"priorityClassName", 24, kString},
    {"priority", 25, kInt},
    {"runtimeClassName", 29, kString},
    {"enableServiceLinks", 30, kBool},
    {"preemptionPolicy", 31, kString},
    {"overhead", 32, kQuantity, kMap},
    {"topologySpreadConstraints", 33, kMessage, kList, &kSpread},
    {"hostUsers", 37, kBool},
    {"schedulingGates", 38, kMessage, kList, &kLocalReference},
    {"resourceClaims", 39, kMessage, kList, &kPodClaim},
    {"resources", 40, kMessage, kOne, &kResources},
    {"schedulingGroup", 43, kMessage, kOne, &kSchedulingGroup},
};
constexpr MessageSchema kPodSpec = Schema(kPodSpecFields);
constexpr FieldSchema kPodConditionFields[] = {
    {"type", 1, kString},           {"status", 2, kString},
    {"lastProbeTime", 3, kTime},    {"lastTransitionTime", 4, kTime},
    {"reason", 5, kString},         {"message", 6, kString},
    {"observedGeneration", 7, kInt}};
constexpr MessageSchema kPodCondition = Schema(kPodConditionFields);
constexpr FieldSchema kClaimStatusFields[] = {{"name", 1, kString},
                                              {"resourceClaimName", 2, kString}};
constexpr MessageSchema kClaimStatus = Schema(kClaimStatusFields);
constexpr FieldSchema kExtendedRequestFields[] = {
    {"containerName", 1, kString}, {"resourceName", 2, kString}, {"requestName", 3, kString}};
constexpr MessageSchema kExtendedRequest = Schema(kExtendedRequestFields);
constexpr FieldSchema kExtendedClaimFields[] = {
    {"requestMappings", 1, kMessage, kList, &kExtendedRequest}, {"resourceClaimName", 2, kString}};
constexpr MessageSchema kExtendedClaim = Schema(kExtendedClaimFields);
constexpr FieldSchema kPodStatusFields[] = {
    {"phase", 1, kString},
    {"conditions", 2, kMessage, kList, &kPodCondition},
    {"message", 3, kString},
    {"reason", 4, kString},
    {"hostIP", 5, kString},
    {"podIP", 6, kString},
    {"startTime", 7, kTime},
    {"qosClass", 9, kString},
    {"nominatedNodeName", 11, kString},
    {"resourceClaimStatuses", 15, kMessage, kList, &kClaimStatus},
    {"observedGeneration", 17, kInt},
    {"extendedResourceClaimStatus", 18, kMessage, kOne, &kExtendedClaim}};
constexpr MessageSchema kPodStatus = Schema(kPodStatusFields);
constexpr FieldSchema kPodFields[] = {{"metadata", 1, kMessage, kOne, &kMeta},
                                      {"spec", 2, kMessage, kOne, &kPodSpec},
                                      {"status", 3, kMessage, kOne, &kPodStatus}};
constexpr MessageSchema kPod = Schema(kPodFields);

// ---- Node, PriorityClass, PodDisruptionBudget, Binding ------------------------------------------

constexpr FieldSchema kTaintFields[] = {
    {"key", 1, kString}, {"value", 2, kString}, {"effect", 3, kString}, {"timeAdded", 4, kTime}};
constexpr MessageSchema kTaint = Schema(kTaintFields);
constexpr FieldSchema kNodeSpecFields[] = {{"podCIDR", 1, kString},
                                           {"providerID", 3, kString},
                                           {"unschedulable", 4, kBool},
                                           {"taints", 5, kMessage, kList, &kTaint}};
constexpr MessageSchema kNodeSpec = Schema(kNodeSpecFields);
constexpr FieldSchema kNodeConditionFields[] = {{"type", 1, kString},
                                                {"status", 2, kString},
                                                {"lastHeartbeatTime", 3, kTime},
                                                {"lastTransitionTime", 4, kTime},
                                                {"reason", 5, kString},
                                                {"message", 6, kString}};
constexpr MessageSchema kNodeCondition = Schema(kNodeConditionFields);
constexpr FieldSchema kNodeImageFields[] = {{"names", 1, kString, kList}, {"sizeBytes", 2, kInt}};
constexpr MessageSchema kNodeImage = Schema(kNodeImageFields);
constexpr FieldSchema kNodeStatusFields[] = {{"capacity", 1, kQuantity, kMap},
                                             {"allocatable", 2, kQuantity, kMap},
                                             {"phase", 3, kString},
                                             {"conditions", 4, kMessage, kList, &kNodeCondition},
                                             {"images", 8, kMessage, kList, &kNodeImage},
                                             {"declaredFeatures", 14, kString, kList}};
constexpr MessageSchema kNodeStatus = Schema(kNodeStatusFields);
constexpr FieldSchema kNodeFields[] = {{"metadata", 1, kMessage, kOne, &kMeta},
                                       {"spec", 2, kMessage, kOne, &kNodeSpec},
                                       {"status", 3, kMessage, kOne, &kNodeStatus}};
constexpr MessageSchema kNode = Schema(kNodeFields);

constexpr FieldSchema kPriorityClassFields[] = {{"metadata", 1, kMessage, kOne, &kMeta},
                                                {"value", 2, kInt},
                                                {"globalDefault", 3, kBool},
                                                {"description", 4, kString},
                                                {"preemptionPolicy", 5, kString}};
constexpr MessageSchema kPriorityClass = Schema(kPriorityClassFields);

constexpr FieldSchema kBudgetSpecFields[] = {{"minAvailable", 1, FieldType::kIntOrString},
                                             {"selector", 2, kMessage, kOne, &kSelector},
                                             {"maxUnavailable", 3, FieldType::kIntOrString},
                                             {"unhealthyPodEvictionPolicy", 4, kString}};
constexpr MessageSchema kBudgetSpec = Schema(kBudgetSpecFields);
constexpr FieldSchema kBudgetStatusFields[] = {
    {"observedGeneration", 1, kInt}, {"disruptedPods", 2, kTime, kMap},
    {"disruptionsAllowed", 3, kInt}, {"currentHealthy", 4, kInt},
    {"desiredHealthy", 5, kInt},     {"expectedPods", 6, kInt}};
constexpr MessageSchema kBudgetStatus = Schema(kBudgetStatusFields);
constexpr FieldSchema kBudgetFields[] = {{"metadata", 1, kMessage, kOne, &kMeta},
                                         {"spec", 2, kMessage, kOne, &kBudgetSpec},
                                         {"status", 3, kMessage, kOne, &kBudgetStatus}};
constexpr MessageSchema kBudget = Schema(kBudgetFields);

constexpr FieldSchema kReferenceFields[] = {{"kind", 1, kString},
                                            {"namespace", 2, kString},
                                            {"name", 3, kString},
                                            {"uid", 4, kString},
                                            {"apiVersion", 5, kString}};
constexpr MessageSchema kReference = Schema(kReferenceFields);
constexpr FieldSchema kBindingFields[] = {{"metadata", 1, kMessage, kOne, &kMeta},
                                          {"target", 2, kMessage, kOne, &kReference}};
constexpr MessageSchema kBinding = Schema(kBindingFields);

}  // namespace

const MessageSchema& SchemaOf(ResourceType type) {
  switch (type) {
    case ResourceType::kPods:
      return kPod;
    case ResourceType::kNodes:
      return kNode;
    case ResourceType::kPriorityClasses:
      return kPriorityClass;
    case ResourceType::kPodDisruptionBudgets:
      return kBudget;
    default:
      CheckFailed(__FILE__, __LINE__, "protobuf", "this type has no protobuf");
  }
}

const MessageSchema& StatusSchema() { return kStatus; }
const MessageSchema& BindingSchema() { return kBinding; }

}  // namespace fairlead::sim::world
