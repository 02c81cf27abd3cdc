// What the four plugins of volumes have in common: a fault of the volumes of a class
// (model::VolumeNeeds::fault) keeps its pods from every node, and the plugin that it names says so.
// No plugin does if the profile leaves that plugin out. Thread-safety: stateless.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class VolumePlugin : public framework::FilterPlugin {
 public:
  [[nodiscard]] std::string RefusesEverywhere(const state::PodClass& pod_class) const final {
    const std::string& fault = FaultOf(*pod_class.spec->volume_needs, Name());
    return fault.empty() ? "" : absl::StrCat("spec.volumes: ", fault);
  }
  // Upstream says it before any filter has looked at a node.
  [[nodiscard]] std::string LeavesOutAll(const state::PodClass& pod_class) const final {
    return FaultOf(*pod_class.spec->volume_needs, Name());
  }

 protected:
  // The fault, if it is the plugin's to tell; else empty. O(1).
  static const std::string& FaultOf(const model::VolumeNeeds& needs, absl::string_view plugin) {
    static const std::string& none = *new std::string();
    return needs.fault_plugin == plugin ? needs.fault : none;
  }
};

}  // namespace fairlead::plugins
