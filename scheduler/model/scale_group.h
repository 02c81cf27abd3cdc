// An object with the subresource /scale that makes nodes, as the configuration names it
// (scaleSubresource.groups; docs/providers/scale-subresource.md). Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/model/machine_shape.h"

namespace fairlead::model {

// The annotation by which the object's controller chooses what goes when the size is lowered.
struct ScaleMark {
  std::string key, value;  // no key: the controller cannot be told
  // What it is put on: an object of this kind; no apiVersion: the Node itself.
  std::string api_version, kind, resource, ns;
  // The annotation of the Node that has that object's name, "NAME" or "NAMESPACE/NAME"; empty: it
  // has the node's name.
  std::string name_annotation;
  friend bool operator==(const ScaleMark&, const ScaleMark&) = default;
};

struct ScaleGroup : MachineShape {
  std::string api_version;     // "machine.openshift.io/v1beta1"
  std::string kind, resource;  // one of both: "MachineSet", "machinesets"
  std::string ns, name;        // no namespace: the kind has none
  int64_t min_size = 0, max_size = 0;
  ScaleMark mark;

  // "MachineSet/openshift-machine-api/workers"
  [[nodiscard]] std::string Id() const {
    return (kind.empty() ? resource : kind) + "/" + (ns.empty() ? "" : ns + "/") + name;
  }
  friend bool operator==(const ScaleGroup&, const ScaleGroup&) = default;
};

}  // namespace fairlead::model
