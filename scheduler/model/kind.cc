#include "scheduler/model/kind.h"

namespace fairlead::model {

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kPod:
      return "Pod";
    case Kind::kNode:
      return "Node";
    case Kind::kQueue:
      return "Queue";
    case Kind::kPodGroup:
      return "PodGroup";
    case Kind::kPriorityClass:
      return "PriorityClass";
    case Kind::kTopology:
      return "Topology";
    case Kind::kNodeRequest:
      return "NodeRequest";
    case Kind::kNodePool:
      return "NodePool";
    case Kind::kPodDisruptionBudget:
      return "PodDisruptionBudget";
    case Kind::kDeviceClass:
      return "DeviceClass";
    case Kind::kResourceSlice:
      return "ResourceSlice";
    case Kind::kResourceClaim:
      return "ResourceClaim";
  }
  return "Unknown";
}

}  // namespace fairlead::model
