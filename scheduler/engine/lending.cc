// Room that other queues keep back (queues/lending.h), in the cycle: what is refused, promised on
// nodes that are coming, or bought for.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "scheduler/engine/cycle.h"
#include "scheduler/verdict/text.h"

namespace fairlead::engine {
namespace {

using verdict::Code;

std::string Amount(const model::ResourceNames& names, model::ResourceIndex resource,
                   int64_t base_units) {
  const std::string& name = names.Name(resource);
  return absl::StrCat(model::FormatAmount(name, base_units), " ", verdict::ResourceNoun(name));
}

bool IsComing(const state::NodeInfo& node) {
  return node.exists && (node.kind == state::NodeKind::kOrdered || !node.usable);
}

}  // namespace

const Cycle::ComingRoom& Cycle::Coming() {
  if (coming_.has_value()) return *coming_;
  coming_.emplace();
  std::vector<state::NodeId> nodes;
  for (const auto& [name, id] : p_.state.nodes_by_name()) {
    const state::NodeInfo& node = p_.state.node(id);
    if (!IsComing(node)) continue;
    nodes.push_back(id);
    coming_->total += p_.books.CapacityOf(node);
  }
  coming_->nodes = std::make_shared<const NodeSet>(std::move(nodes));
  return *coming_;
}

// The queue that keeps most of it idle, of those that the workload is not in.
void Cycle::TellKeeper(const queues::LendingRefusal& refusal, Outcome& outcome) const {
  const queues::QueuePath own = p_.tree.Ancestors(outcome.leaf);
  int64_t most = 0;
  queues::QueueId keeper = PendingIndex::kNoQueue;
  for (queues::QueueId queue = 0; queue < p_.tree.size(); ++queue) {
    if (!p_.tree.Usable(queue) || std::find(own.begin(), own.end(), queue) != own.end()) continue;
    const int64_t idle = p_.tree.BoundsOf(queue, refusal.resource).kept -
                         p_.books.ledger().allocated(queue, refusal.resource);
    const bool more = idle > most;
    if (!more && (idle != most || most == 0 || p_.tree.Name(queue) >= p_.tree.Name(keeper)))
      continue;
    most = idle;
    keeper = queue;
  }
  if (keeper == PendingIndex::kNoQueue) return;
  outcome.keeper = p_.tree.Name(keeper);
  const model::ResourceNames& names = p_.tree.names();
  std::string detail =
      absl::StrCat(Amount(names, refusal.resource, most), " are kept back for queue ",
                   outcome.keeper, " (lendingLimit), though idle");
  if (refusal.kept > most) {
    absl::StrAppend(&detail, "; all queues keep back ",
                    Amount(names, refusal.resource, refusal.kept));
  }
  outcome.details.push_back(std::move(detail));
}

bool Cycle::HeldByLending(queues::QueueId leaf, const state::Workload& workload,
                          const GangStep& step, const model::Resources& request, bool& promised) {
  promised = false;
  const auto refusal = p_.books.CheckLending(leaf, request, p_.total);
  if (!refusal.has_value()) return false;
  // What was bought for it is its own: it waits there, and takes nothing that is kept.
  if (!Coming().nodes->nodes().empty() &&
      !p_.books.CheckLending(leaf, request, p_.total + Coming().total).has_value()) {
    state::Transaction txn(p_.state);
    std::optional<queues::LimitViolation> broken;
    if (PlaceInModels(txn, leaf, workload, step, Placer::Mode::kPromise, Coming().nodes, broken)
            .placed) {
      Take(leaf, workload, txn.Commit());
      promised = true;
      return true;
    }
  }
  TellKeeper(*refusal, RecordLack(leaf, workload, step, request, step.pods.front(),
                                  Code::kInsufficientCapacity, ""));
  return true;
}

bool Cycle::BeyondLending(Outcome& outcome, const model::Resources& request) {
  if (!p_.books.lending()) return false;
  const model::Resources bought = p_.total + Coming().total + demanded_ + request;
  const auto refusal = p_.books.CheckLending(outcome.leaf, request, bought);
  if (!refusal.has_value()) return false;
  outcome.whole_demand = false;
  if (!outcome.demanded.empty() || !outcome.promises.empty()) return true;
  if (outcome.keeper.empty()) TellKeeper(*refusal, outcome);
  outcome.kept_beyond_cluster = true;
  outcome.details.push_back(
      absl::StrCat("nodes for it would be kept back too: queues keep or hold ",
                   Amount(p_.tree.names(), refusal->resource,
                          model::SaturatingAdd(refusal->kept, refusal->used)),
                   ", more than the cluster has"));
  return true;
}

bool Cycle::BreaksLending(const model::Resources& before) const {
  if (!p_.books.lending()) return false;
  const model::Resources after = p_.books.LendingLoad();
  for (const model::ResourceIndex resource : p_.tree.resources()) {
    if (after[resource] > std::max(before[resource], p_.total[resource])) return true;
  }
  return false;
}

}  // namespace fairlead::engine
