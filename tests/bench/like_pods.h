// Pods and nodes of the benchmarks of affinity and topology spread: nodes in zones, and
// constraints of a pod to its like (the pods of one app), as a Deployment's are.
#pragma once

#include <cstdint>
#include <string>

#include "tests/bench/cluster.h"

namespace fairlead::bench {

inline constexpr int64_t kLikeNodes = 5000;
inline constexpr int64_t kLikeZones = 10;
inline constexpr char kLikeZoneLabel[] = "topology.kubernetes.io/zone";

inline model::LabelSelector Like(const std::string& app) {
  return {false, {{"app", model::SelectorOperator::kIn, {app}}}};
}

inline model::PodAffinityTerm TermTo(const std::string& app, const char* key) {
  model::PodAffinityTerm term;
  term.selector = Like(app);
  term.topology_key = key;
  return term;
}

inline model::TopologySpreadConstraint SpreadOver(const std::string& app, const char* key) {
  model::TopologySpreadConstraint constraint;
  constraint.selector = Like(app);
  constraint.topology_key = key;
  return constraint;
}

// The queue "team" without a limit, and `nodes` nodes of 64 CPUs and 512 GiB in turn over the
// zones.
inline void AddZonedNodes(EngineCluster& cluster, int64_t nodes) {
  cluster.tree().Upsert(
      model::testing::MakeQueue("team", "", model::kUnlimited, model::kUnlimited));
  for (int64_t n = 0; n < nodes; ++n) {
    model::Node node = model::testing::MakeNode(Numbered("node", n), 0, 64, 512);
    node.meta.labels.Set(kLikeZoneLabel, absl::StrCat("zone-", n % kLikeZones));
    cluster.state().UpsertNode(node);
  }
}

}  // namespace fairlead::bench
