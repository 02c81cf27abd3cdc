// NodeAffinity. Filter: the node selector and, if there are any, one of the required terms must
// match; a required affinity without terms matches no node. Score: the weights of the preferred
// terms that match, in percent of the best node's. What args add (added_affinity.h) has to match
// and is preferred besides. Thread-safety: immutable.
#pragma once

#include <utility>

#include "scheduler/framework/framework.h"
#include "scheduler/plugins/added_affinity.h"

namespace fairlead::plugins {

class NodeAffinity final : public framework::FilterPlugin, public framework::NormalizedScorePlugin {
 public:
  static constexpr char kName[] = "NodeAffinity";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);
  explicit NodeAffinity(AddedAffinity added) : added_(std::move(added)) {}

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kNodeObject;
  }
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    return !pod_class.spec->node_selector.empty() || pod_class.spec->has_required_node_affinity ||
           added_.has_required;
  }
  // Required terms that all name nodes leave out the others; if no node can be all that a term
  // names, and so for every term, they leave out all.
  [[nodiscard]] std::string LeavesOutAll(const state::PodClass& pod_class) const override;
  [[nodiscard]] std::string LeavesOut(const state::PodClass& pod_class,
                                      const state::NodeInfo& node) const override;
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override {
    return !pod_class.spec->preferred_node_terms.empty() || !added_.preferred.empty();
  }
  void AddMarks(const framework::Context& context, const state::NodeInfo& node,
                const framework::TopologyKeys& by_node, framework::Marks& marks) const override;
  void ScoreKinds(const framework::Context& context, absl::Span<const framework::Kind> kinds,
                  absl::Span<int64_t> scores) const override;

 private:
  [[nodiscard]] int64_t WeightOn(const model::PodSpec& spec, const state::NodeInfo& node) const;

  AddedAffinity added_;
};

// Does the node match the pod's node selector and required terms?
bool MatchesNodeAffinity(const model::PodSpec& spec, const model::Node& node);

}  // namespace fairlead::plugins
