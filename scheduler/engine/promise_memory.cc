#include "scheduler/engine/promise_memory.h"

#include "scheduler/model/object_meta.h"

namespace fairlead::engine {

void PromiseMemory::Begin() { ordered_.reset(); }

void PromiseMemory::ListOrdered() {
  ordered_.emplace();
  for (const auto& [name, id] : state_.nodes_by_name()) {
    const state::NodeInfo& node = state_.node(id);
    if (!node.exists || (node.kind == state::NodeKind::kReal && node.usable)) continue;
    for (const std::string& workload : node.ordered_for) (*ordered_)[workload].nodes.push_back(id);
  }
}

const std::vector<state::NodeId>& PromiseMemory::OrderedFor(const state::Workload& workload) {
  static const std::vector<state::NodeId> kNone;
  if (!ordered_.has_value()) ListOrdered();
  if (ordered_->empty()) return kNone;
  const auto found = ordered_->find(model::Key(workload.ns, workload.name));
  return found == ordered_->end() ? kNone : found->second.nodes;
}

bool PromiseMemory::Offer(const state::PodRecord& pod,
                          absl::FunctionRef<bool(state::NodeId)> take) {
  if (const auto last = last_.find(pod.id); last != last_.end() && take(last->second)) return true;
  if (pod.workload == state::kNoId) return false;
  if (!ordered_.has_value()) ListOrdered();
  if (ordered_->empty()) return false;
  const state::Workload& workload = state_.workload(pod.workload);
  const auto found = ordered_->find(model::Key(workload.ns, workload.name));
  if (found == ordered_->end()) return false;
  // A gang's pods go one after the other, so that each node is offered in vain once.
  Ordered& ordered = found->second;
  for (; ordered.next < ordered.nodes.size(); ++ordered.next) {
    if (take(ordered.nodes[ordered.next])) return true;
  }
  return false;
}

}  // namespace fairlead::engine
