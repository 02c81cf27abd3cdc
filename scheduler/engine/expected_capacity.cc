#include "scheduler/engine/expected_capacity.h"

#include "absl/strings/str_cat.h"

namespace fairlead::engine {
namespace {

int64_t IsExpected(state::PodStatus status, state::NodeId node) {
  const bool moves =
      status == state::PodStatus::kReleasing || status == state::PodStatus::kPipelined;
  return moves && node != state::kNoId ? 1 : 0;
}

}  // namespace

ExpectedCapacity::ExpectedCapacity(const state::ClusterState& state) : state_(state) {
  state.ForEachPod([&](const state::PodRecord& pod) { pods_ += IsExpected(pod.status, pod.node); });
  for (const auto& [name, node] : state.nodes_by_name()) Count(node);
}

void ExpectedCapacity::Count(state::NodeId id) {
  if (id >= counted_.size()) counted_.resize(id + 1);
  const state::NodeInfo& node = state_.node(id);
  const bool counts = node.id == id && node.exists && !node.TakesBindings();
  nodes_ += (counts ? 1 : 0) - (counted_[id] ? 1 : 0);
  counted_[id] = counts;
}

void ExpectedCapacity::OnChange(const state::StateChange& change) {
  if (change.kind == state::StateChange::Kind::kNodeObject) return Count(change.to_node);
  pods_ += IsExpected(change.to_status, change.to_node) -
           IsExpected(change.from_status, change.from_node);
}

std::string ExpectedCapacity::CheckConsistency() const {
  const ExpectedCapacity now(state_);
  if (now.pods_ == pods_ && now.nodes_ == nodes_) return "";
  return absl::StrCat("expected capacity: ", pods_, " pods and ", nodes_, " nodes counted, ",
                      now.pods_, " and ", now.nodes_, " there");
}

}  // namespace fairlead::engine
