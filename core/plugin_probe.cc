#include "core/plugin_probe.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fairlead::core {
namespace {

constexpr char kSuccess[] = "Success";

// The next of those that pods may be bound to, after that name, and from the beginning.
std::vector<const state::NodeInfo*> NextNodes(const state::ClusterState& state, size_t most,
                                              std::string& last_name) {
  std::vector<const state::NodeInfo*> nodes;
  const auto& by_name = state.nodes_by_name();
  auto next = by_name.upper_bound(last_name);
  for (size_t looked = 0; looked < std::min(4 * most, by_name.size()); ++looked, ++next) {
    if (next == by_name.end()) next = by_name.begin();
    const state::NodeInfo& node = state.node(next->second);
    if (node.exists && node.TakesBindings()) nodes.push_back(&node);
    last_name = next->first;
    if (nodes.size() == most) break;
  }
  return nodes;
}

}  // namespace

void PluginProbe::Measure(const state::ClusterState& state, const framework::Framework& framework,
                          state::PodClassId pod_class, const Steady& steady) {
  ++turns_;
  const std::vector<const state::NodeInfo*> nodes = NextNodes(state, kNodes, last_node_);
  if (nodes.empty()) return;
  const framework::Context context{state, state.pod_class(pod_class), pod_class};
  const framework::Framework::ClassPoints points = framework.PointsThatApply(context.pod_class);
  const auto timed = [&](const auto& run) {
    const absl::Duration start = steady();
    const auto result = run();
    return std::make_pair(result, steady() - start);
  };
  for (const framework::FilterPlugin* filter : points.filters) {
    for (const state::NodeInfo* node : nodes) {
      const auto [passes, took] = timed([&] { return filter->Filter(context, *node, nullptr); });
      durations_.Add(filter->Name(), "Filter", passes ? kSuccess : "Unschedulable", took);
    }
  }
  for (const framework::ScorePlugin* score : points.scores) {
    for (const state::NodeInfo* node : nodes) {
      const auto [points_given, took] = timed([&] { return score->Score(context, *node); });
      durations_.Add(score->Name(), "Score", kSuccess, took);
    }
  }
  std::vector<framework::Kind> kinds;
  for (const state::NodeInfo* node : nodes) kinds.push_back({node, 1});
  for (const framework::NormalizedScorePlugin* score : points.normalized) {
    std::vector<int64_t> scores(kinds.size());
    const auto [done, took] = timed([&] {
      score->ScoreKinds(context, kinds, absl::MakeSpan(scores));
      return true;
    });
    durations_.Add(score->Name(), "NormalizeScore", kSuccess, took);
  }
}

}  // namespace fairlead::core
