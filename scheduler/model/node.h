// A node as the scheduler sees it. Thread-safety: plain values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scheduler/model/node_features.h"
#include "scheduler/model/object_meta.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/resources.h"

namespace fairlead::model {

// An image that the node has, under one of its names.
struct NodeImage {
  std::string name;
  int64_t size_bytes = 0;
  friend auto operator<=>(const NodeImage&, const NodeImage&) = default;
};

struct NodeDevices;  // node_devices.h

struct Node {
  ObjectMeta meta;
  std::string provider_id;
  ResourceList allocatable;  // base units, with "pods"
  std::vector<Taint> taints;
  bool unschedulable = false;
  bool ready = true;  // condition Ready is True
  // The conditions that keep pods away and are True (MemoryPressure, DiskPressure, PIDPressure,
  // NetworkUnavailable).
  std::vector<std::string> bad_conditions;
  NodeFeatures declared_features = 0;
  std::vector<NodeImage> images;  // by name, each once; the kubelet lists the 50 largest
  std::string invalid;            // as in Pod; no pod is placed on such a node
  // Of a node that is not there, or not usable yet: what its DRA drivers will publish. Null: that
  // is not known.
  std::shared_ptr<const NodeDevices> devices;
};

}  // namespace fairlead::model
