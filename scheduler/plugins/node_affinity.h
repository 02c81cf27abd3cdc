// NodeAffinity. Filter: the node selector and, if there are any, one of the required terms must
// match; a required affinity without terms matches no node. Score: the weights of the preferred
// terms that match, as a share in percent of all of them, times kPreferenceStep. Upstream's scale
// is the best node's sum, ours the pod's own, so that a node's score depends on that node alone.
// Thread-safety: stateless.
#pragma once

#include "scheduler/framework/framework.h"

namespace fairlead::plugins {

class NodeAffinity final : public framework::FilterPlugin, public framework::ScorePlugin {
 public:
  static constexpr char kName[] = "NodeAffinity";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    return !pod_class.spec->node_selector.empty() || pod_class.spec->has_required_node_affinity;
  }
  // Required terms that all name nodes leave out the others; if no node can be all that a term
  // names, and so for every term, they leave out all.
  [[nodiscard]] std::string LeavesOutAll(const state::PodClass& pod_class) const override;
  [[nodiscard]] std::string LeavesOut(const state::PodClass& pod_class,
                                      const state::NodeInfo& node) const override;
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override {
    return !pod_class.spec->preferred_node_terms.empty();
  }
  [[nodiscard]] int64_t Score(const framework::Context& context,
                              const state::NodeInfo& node) const override;
};

// Does the node match the pod's node selector and required terms?
bool MatchesNodeAffinity(const model::PodSpec& spec, const model::Node& node);

}  // namespace fairlead::plugins
