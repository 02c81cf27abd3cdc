#include "scheduler/engine/lending_bounds.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/verdict/text.h"

namespace fairlead::engine {
namespace {

std::string Amount(const model::ResourceNames& names, model::ResourceIndex resource,
                   int64_t base_units) {
  const std::string& name = names.Name(resource);
  return absl::StrCat(model::FormatAmount(name, base_units), " ", verdict::ResourceNoun(name));
}

bool IsUpcoming(const state::NodeInfo& node) {
  return node.exists && (node.kind == state::NodeKind::kOrdered || !node.usable);
}

}  // namespace

const LendingBounds::UpcomingCapacity& LendingBounds::Upcoming() {
  if (upcoming_.has_value()) return *upcoming_;
  upcoming_.emplace();
  std::vector<state::NodeId> nodes;
  for (const auto& [name, id] : state_.nodes_by_name()) {
    const state::NodeInfo& node = state_.node(id);
    if (!IsUpcoming(node)) continue;
    nodes.push_back(id);
    upcoming_->total += tracker_.CapacityOf(node);
  }
  upcoming_->nodes = std::make_shared<const NodeSet>(std::move(nodes));
  return *upcoming_;
}

bool LendingBounds::FitsUpcoming(queues::QueueId leaf, const model::Resources& request) {
  return !Upcoming().nodes->nodes().empty() &&
         !tracker_.CheckLending(leaf, request, total_ + Upcoming().total).has_value();
}

void LendingBounds::DescribeKeeper(const queues::LendingRefusal& refusal, Outcome& outcome) const {
  const queues::QueuePath own = tree_.Ancestors(outcome.leaf);
  int64_t most = 0;
  queues::QueueId keeper = PendingIndex::kNoQueue;
  for (queues::QueueId queue = 0; queue < tree_.size(); ++queue) {
    if (!tree_.Usable(queue) || std::find(own.begin(), own.end(), queue) != own.end()) continue;
    const int64_t idle = tree_.BoundsOf(queue, refusal.resource).kept -
                         tracker_.ledger().allocated(queue, refusal.resource);
    const bool more = idle > most;
    if (!more && (idle != most || most == 0 || tree_.Name(queue) >= tree_.Name(keeper))) continue;
    most = idle;
    keeper = queue;
  }
  if (keeper == PendingIndex::kNoQueue) return;
  outcome.keeper = tree_.Name(keeper);
  const model::ResourceNames& names = tree_.names();
  std::string detail = absl::StrCat("idle, but guaranteed to queue ", outcome.keeper,
                                    " (lendingLimit): ", Amount(names, refusal.resource, most));
  if (refusal.kept > most) {
    absl::StrAppend(&detail,
                    "; guaranteed to all queues: ", Amount(names, refusal.resource, refusal.kept));
  }
  outcome.details.push_back(std::move(detail));
}

bool LendingBounds::HoldsDemand(const model::Resources& demanded, const model::Resources& request,
                                Outcome& outcome) {
  if (!any()) return false;
  const model::Resources bought = total_ + Upcoming().total + demanded + request;
  const auto refusal = tracker_.CheckLending(outcome.leaf, request, bought);
  if (!refusal.has_value()) return false;
  outcome.whole_demand = false;
  if (!outcome.demanded.empty() || !outcome.promises.empty()) return true;
  if (outcome.keeper.empty()) DescribeKeeper(*refusal, outcome);
  outcome.kept_beyond_cluster = true;
  outcome.details.push_back(absl::StrCat(
      "new nodes would not help: queues hold, or are guaranteed, ",
      Amount(tree_.names(), refusal->resource, model::SaturatingAdd(refusal->kept, refusal->used)),
      ", more than the cluster has"));
  return true;
}

bool LendingBounds::Breaks(const model::Resources& before) const {
  if (!any()) return false;
  const model::Resources after = tracker_.LendingLoad();
  for (const model::ResourceIndex resource : tree_.resources()) {
    if (after[resource] > std::max(before[resource], total_[resource])) return true;
  }
  return false;
}

}  // namespace fairlead::engine
