// Objects that ask for capacity without pods: CapacityBuffer and ProvisioningRequest of
// autoscaling.x-k8s.io (kubernetes/autoscaler, cluster-autoscaler/apis), and the PodTemplates that
// they name.
//
// `invalid` is what is wrong with the spec, with the field; empty if nothing. Such an object is
// answered by a condition and changes nothing else.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/model/condition.h"
#include "scheduler/model/object_meta.h"
#include "scheduler/model/pod.h"
#include "scheduler/model/resources.h"

namespace fairlead::model {

inline constexpr char kActiveCapacity[] = "buffer.x-k8s.io/active-capacity";

// A pod's labels, annotations and spec in a template, as if a pod had been made from it. Its
// `invalid` is the pod's.
struct PodTemplate {
  ObjectMeta meta;
  Pod pod;
};

// v1beta1 CapacityBuffer: free capacity for some pods of a template, kept beside the pods that run.
struct CapacityBuffer {
  ObjectMeta meta;
  std::string strategy = kActiveCapacity;  // spec.provisioningStrategy
  std::string pod_template;                // spec.podTemplateRef.name; empty: scalableRef is set
  bool by_scalable = false;                // spec.scalableRef is set
  std::optional<int64_t> replicas;
  ResourceList limits;  // of all its pods together; empty: none
  // The status. What a scalableRef means is resolved by another controller: it writes the template
  // and the number there.
  std::string resolved_template;
  std::optional<int64_t> resolved_replicas;
  int64_t resolved_generation = 0;  // of the template
  std::vector<Condition> conditions;
  std::string invalid;
};

// v1 ProvisioningRequest: can so many pods be run together, or be given nodes? Its spec never
// changes.
struct ProvisioningRequest {
  ObjectMeta meta;
  std::string class_name;  // spec.provisioningClassName
  struct PodSet {
    std::string pod_template;
    int64_t count = 0;
  };
  std::vector<PodSet> pod_sets;
  StringMap parameters;
  std::vector<Condition> conditions;
  std::string invalid;
};

}  // namespace fairlead::model
