// InterPodAffinity: required and preferred affinity and anti-affinity between pods, in both
// directions, as upstream (pkg/scheduler/framework/plugins/interpodaffinity).
//
// Filter:
//  - required affinity: for every term the node has the topology key, and its domain holds a pod
//    that matches all terms. The first pod of a series may start where nothing matches anywhere, if
//    it matches its own terms.
//  - required anti-affinity of the pod, and that of pods that are there already: no match in the
//  domain.
// Score: the weights of all preferred terms that a node's domains meet, of the pod and (unless
// ignorePreferredTermsOfExistingPods) of the pods there, plus hardPodAffinityWeight for each
// required affinity of theirs; the least and the most of all nodes become 0 and 100, times
// kPreferenceStep.
//
// Which pods count: Room::kNow all that are on nodes; promised ones (kPipelined) keep others away
// but attract nobody yet. Room::kFuture: promised ones too, terminating ones no more. Room::kEmpty:
// none; only the topology keys of the own terms are asked for.
//
// Namespaces are not watched: a namespaceSelector that is not empty cannot be evaluated. A pod with
// one in a required term is refused with a reason that says so; one in an existing pod's
// anti-affinity counts as matching; one in a preference is passed over.
//
// Args: {"hardPodAffinityWeight": 0..100 (1), "ignorePreferredTermsOfExistingPods": false}.
// Thread-safety: locks its cache. Complexity: O(nodes + pods * terms) once a class and state
// version, then O(terms) a node.
#pragma once

#include "scheduler/framework/framework.h"
#include "scheduler/plugins/common.h"

namespace fairlead::plugins {

class InterPodAffinity final : public framework::FilterPlugin, public framework::ScorePlugin {
 public:
  static constexpr char kName[] = "InterPodAffinity";
  static absl::StatusOr<std::unique_ptr<framework::Plugin>> Make(absl::string_view args_json);
  InterPodAffinity(int64_t hard_weight, bool ignore_existing_preferences)
      : hard_weight_(hard_weight), ignore_existing_preferences_(ignore_existing_preferences) {}

  [[nodiscard]] absl::string_view Name() const override { return kName; }
  [[nodiscard]] framework::Depends DependsOn() const override {
    return framework::Depends::kCluster;
  }
  // Pods without terms of their own are subject to the required anti-affinity of others; the state
  // marks those that some pod selects. Preferences of others alone do not make a pod one of these.
  [[nodiscard]] bool FilterApplies(const state::PodClass& pod_class) const override {
    const model::PodSpec& spec = *pod_class.spec;
    return !spec.pod_affinity.empty() || !spec.pod_anti_affinity.empty() ||
           !spec.labels_for_affinity.empty() || spec.selected_by_others;
  }
  [[nodiscard]] std::string RefusesEverywhere(const state::PodClass& pod_class) const override;
  bool Filter(const framework::Context& context, const state::NodeInfo& node,
              framework::Status* why) const override;
  [[nodiscard]] bool ScoreApplies(const state::PodClass& pod_class) const override {
    return FilterApplies(pod_class);
  }
  [[nodiscard]] int64_t Score(const framework::Context& context,
                              const state::NodeInfo& node) const override;

 private:
  // Topology key -> value -> number.
  using ByDomain = std::map<std::string, std::map<std::string, int64_t>>;
  struct Counts {
    ByDomain matching_affinity;   // pods that match all required affinity terms
    ByDomain matching_anti;       // pods that match a required anti-affinity term of that key
    ByDomain refusing;            // pods whose required anti-affinity matches the class
    ByDomain preference;          // sum of weights
    int64_t least = 0, most = 0;  // of the sums over all nodes
  };
  [[nodiscard]] Counts Count(const framework::Context& context) const;
  void CountPod(const framework::Context& context, const state::NodeInfo& node,
                const state::PodRecord& pod, Counts& counts) const;
  void CountPreferences(const model::PodSpec& spec, const model::PodSpec& other,
                        const model::StringMap& other_labels, const model::StringMap& domains,
                        Counts& counts) const;

  int64_t hard_weight_;
  bool ignore_existing_preferences_;
  mutable ClassCache<Counts> cache_;
};

}  // namespace fairlead::plugins
