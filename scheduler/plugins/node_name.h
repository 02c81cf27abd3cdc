// NodeName: upstream's plugin for pods that name their node. Here it refuses none, and is there so
// that a profile that names it works.
//
// A pod with spec.nodeName has its node by that: it is bound, upstream's scheduler does not queue
// it either, and ClusterState puts it on that node. So no class of pods that wait has a node name.
// Thread-safety: stateless.
#pragma once

#include <memory>

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class NodeName final : public framework::FilterPlugin {
 public:
  static constexpr char kName[] = "NodeName";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass&) const override { return false; }
  bool Filter(const framework::Context&, const state::NodeInfo&,
              framework::Status*) const override {
    return true;
  }
};

}  // namespace fairlead::plugins
