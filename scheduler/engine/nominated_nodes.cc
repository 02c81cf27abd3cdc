#include "scheduler/engine/nominated_nodes.h"

#include "scheduler/model/object_meta.h"

namespace fairlead::engine {
namespace {

// False: the node is full for the class whatever else is asked. As NodeInfo::Future(), without
// making a copy of it.
bool MayHaveCapacity(const state::NodeInfo& node, const model::Resources& requests) {
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto resource = static_cast<model::ResourceIndex>(i);
    if (requests[resource] <= 0) continue;
    int64_t free = model::SaturatingAdd(node.allocatable[resource], -node.used[resource]);
    free = model::SaturatingAdd(free, node.releasing[resource]);
    free = model::SaturatingAdd(free, -node.pipelined[resource]);
    if (requests[resource] > free) return false;
  }
  return true;
}

}  // namespace

void NominatedNodes::Begin() { ordered_.reset(); }

void NominatedNodes::ListOrdered() {
  ordered_.emplace();
  for (const auto& [name, id] : state_.nodes_by_name()) {
    const state::NodeInfo& node = state_.node(id);
    if (!node.exists || node.TakesBindings()) continue;
    for (const std::string& workload : node.ordered_for) (*ordered_)[workload].push_back(id);
  }
}

const std::vector<state::NodeId>* NominatedNodes::FindOrdered(const state::Workload& workload) {
  if (!ordered_.has_value()) ListOrdered();
  if (ordered_->empty()) return nullptr;
  const auto found = ordered_->find(model::Key(workload.ns, workload.name));
  return found == ordered_->end() ? nullptr : &found->second;
}

const std::vector<state::NodeId>& NominatedNodes::OrderedFor(const state::Workload& workload) {
  static const std::vector<state::NodeId> kNone;
  const std::vector<state::NodeId>* ordered = FindOrdered(workload);
  return ordered == nullptr ? kNone : *ordered;
}

bool NominatedNodes::Offer(const state::PodRecord& pod,
                           absl::FunctionRef<bool(state::NodeId)> take) {
  if (const auto last = last_.find(pod.id); last != last_.end() && take(last->second)) return true;
  if (pod.workload == state::kNoId) return false;
  const std::vector<state::NodeId>* ordered = FindOrdered(state_.workload(pod.workload));
  if (ordered == nullptr) return false;
  const model::Resources& requests = state_.pod_class(pod.pod_class).requests;
  for (const state::NodeId node : *ordered) {
    if (MayHaveCapacity(state_.node(node), requests) && take(node)) return true;
  }
  return false;
}

}  // namespace fairlead::engine
