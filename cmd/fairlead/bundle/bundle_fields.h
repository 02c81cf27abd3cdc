// Which fields of objects a bundle has, as JSON: a key is kept if it is named; 1: with all that it
// holds. Environment, arguments and volumes are not named, so they are left out.
#pragma once

namespace fairlead::cmd {

inline constexpr char kOwnKindFields[] = R"({"apiVersion":1,"kind":1,
  "metadata":{"name":1,"namespace":1,"uid":1,"creationTimestamp":1,"deletionTimestamp":1,"generation":1,
    "resourceVersion":1,"labels":1,"annotations":1,"finalizers":1,
    "ownerReferences":[{"apiVersion":1,"kind":1,"name":1,"uid":1,"controller":1}]},
  "spec":1,"status":1})";

inline constexpr char kNodeFields[] = R"({
  "metadata":{"name":1,"uid":1,"creationTimestamp":1,"deletionTimestamp":1,"resourceVersion":1,"labels":1,
    "annotations":1},
  "spec":{"providerID":1,"taints":1,"unschedulable":1},
  "status":{"capacity":1,"allocatable":1,"conditions":1,
    "nodeInfo":{"kubeletVersion":1,"architecture":1,"operatingSystem":1,"kernelVersion":1,"osImage":1,
      "containerRuntimeVersion":1}}})";

inline constexpr char kPodFields[] = R"({
  "metadata":{"name":1,"namespace":1,"uid":1,"creationTimestamp":1,"deletionTimestamp":1,"generation":1,
    "resourceVersion":1,"labels":1,"annotations":1,
    "ownerReferences":[{"apiVersion":1,"kind":1,"name":1,"uid":1,"controller":1}]},
  "spec":{"schedulerName":1,"nodeName":1,"priority":1,"priorityClassName":1,"preemptionPolicy":1,
    "nodeSelector":1,"affinity":1,"tolerations":1,"topologySpreadConstraints":1,"schedulingGates":1,
    "overhead":1,"restartPolicy":1,"activeDeadlineSeconds":1,"terminationGracePeriodSeconds":1,
    "schedulingGroup":1,
    "resourceClaims":[{"name":1,"resourceClaimName":1,"resourceClaimTemplateName":1}],
    "containers":[{"name":1,"image":1,"resources":1,"restartPolicy":1,"ports":1}],
    "initContainers":[{"name":1,"image":1,"resources":1,"restartPolicy":1,"ports":1}],
    "volumes":[{"name":1,"persistentVolumeClaim":1}]},
  "status":{"phase":1,"conditions":1,"nominatedNodeName":1,"startTime":1,"qosClass":1,"reason":1,
    "resourceClaimStatuses":1}})";

inline constexpr char kEventFields[] = R"({
  "metadata":{"name":1,"namespace":1,"creationTimestamp":1},
  "involvedObject":{"apiVersion":1,"kind":1,"namespace":1,"name":1,"uid":1},
  "reason":1,"message":1,"type":1,"count":1,"firstTimestamp":1,"lastTimestamp":1,"eventTime":1,"series":1,
  "action":1,"reportingComponent":1})";

inline constexpr char kLeaseFields[] = R"({
  "metadata":{"name":1,"namespace":1,"creationTimestamp":1,"resourceVersion":1},"spec":1})";

inline constexpr char kDefinitionFields[] = R"({
  "metadata":{"name":1,"creationTimestamp":1,"generation":1},
  "spec":{"group":1,"names":{"kind":1,"plural":1},"versions":[{"name":1,"served":1,"storage":1}]},
  "status":{"storedVersions":1,"conditions":1}})";

}  // namespace fairlead::cmd
