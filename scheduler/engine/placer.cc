#include "scheduler/engine/placer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/framework/score_tiers.h"

namespace fairlead::engine {
namespace {

using framework::Capacity;
using state::PodStatus;

void CollectPods(const StepNode& node, std::vector<state::PodId>& pods) {
  pods.insert(pods.end(), node.pods.begin(), node.pods.end());
  for (const StepNode& child : node.children) CollectPods(child, pods);
}

bool IsBelow(const state::Workload& workload, int32_t set, int32_t ancestor) {
  while (set >= 0 && set != ancestor) set = workload.sets[static_cast<size_t>(set)].parent;
  return set == ancestor;
}

}  // namespace

const model::TopologyConstraint& Placer::ConstraintOf(const state::Workload& workload,
                                                      const StepNode& node) {
  return workload.sets[static_cast<size_t>(node.set)].topology;
}

std::string Placer::CheckConsistency() const {
  for (const NodeOrders* order : {&now_, &future_, &idle_}) {
    if (std::string wrong = order->CheckConsistency(); !wrong.empty()) return wrong;
  }
  if (std::string wrong = expected_.CheckConsistency(); !wrong.empty()) return wrong;
  return topology_.CheckConsistency();
}

bool Placer::Better(const Choice& a, const Choice& b) {
  if (a.node == state::kNoId || b.node == state::kNoId) return a.node != state::kNoId;
  if (a.ordered != b.ordered) return !a.ordered;
  return a.score > b.score;
}

bool Placer::Kept(state::PodClassId pod_class, const state::NodeInfo& node, Capacity capacity) {
  if (!requester_.has_value()) return false;
  const state::WorkloadId kept_for =
      reservations_->KeptFor(*requester_, state_.pod_class(pod_class), node, capacity);
  if (kept_for != state::kNoId) kept_for_ = kept_for;
  return kept_for != state::kNoId;
}

void Placer::SetRequester(const state::Workload& workload) {
  requester_.reset();
  kept_for_ = state::kNoId;
  if (reservations_ != nullptr && reservations_->any())
    requester_ = reservations_->RequesterOf(workload);
}

Placer::Candidate Placer::Look(state::PodClassId pod_class, state::NodeId id, Mode mode,
                               const Area& area) {
  const state::NodeInfo& node = state_.node(id);
  Candidate candidate;
  Choice& choice = candidate.choice;
  ++work_;
  if (!feasibility_.Fits(pod_class, id, Capacity::kFuture)) return candidate;
  candidate.kept = Kept(pod_class, node, Capacity::kFuture);
  choice.node = id;
  choice.ordered = !node.TakesBindings();
  const framework::Context future{state_, state_.pod_class(pod_class), pod_class,
                                  Capacity::kFuture};
  const framework::Context now{state_, state_.pod_class(pod_class), pod_class, Capacity::kNow};
  choice.score = framework_.Score(now, node);
  candidate.fits_now = mode == Mode::kPromise
                           ? NodeOrders::FitsIdle(framework_, future, node)
                           : !choice.ordered && feasibility_.Fits(pod_class, id, Capacity::kNow);
  if (candidate.fits_now && !candidate.kept && !Kept(pod_class, node, Capacity::kNow)) {
    candidate.starts = true;
    choice.score += framework::kFitsNowStep;
    choice.now = mode == Mode::kStart;
  }
  if (area.preferred != nullptr) {
    const auto preferred = area.preferred->find(id);
    if (preferred != area.preferred->end()) {
      choice.score += preferred->second * framework::kTopologyStep;
    }
  }
  return candidate;
}

bool Placer::MayWait(const state::PodClass& pod_class) const {
  return expected_.Any() || requester_.has_value() || state::TakesParts(pod_class) ||
         !pod_class.spec->resource_claims.empty() || !pod_class.spec->claims_to_join.empty() ||
         pod_class.spec->extended->Any();
}

std::optional<Placer::Choice> Placer::BestByOrder(state::PodClassId pod_class, Mode mode) {
  const framework::Context context{state_, state_.pod_class(pod_class), pod_class, Capacity::kNow};
  const bool may_prefer_waiting =
      MayWait(context.pod_class) && framework_.MayPreferWaiting(context);
  // Of all places that are compared the scores have to be normalised by the same.
  std::optional<NodeOrders::Candidates> among;
  if (may_prefer_waiting) {
    among = future_.CandidatesFor(pod_class, work_);
    if (!among.has_value()) return std::nullopt;
  }
  Choice best;
  // False: the order cannot say.
  const auto take = [&](NodeOrders& order, Capacity capacity) {
    const std::optional<NodeOrders::Best> found = order.BestFor(
        pod_class, work_, among.has_value() ? &*among : nullptr, [&](state::NodeId id) {
          if (!requester_.has_value()) return false;
          const state::NodeInfo& node = state_.node(id);
          if (Kept(pod_class, node, capacity)) return true;
          return capacity == Capacity::kNow && !IsNodeLocal(pod_class) &&
                 Kept(pod_class, node, Capacity::kFuture);
        });
    if (!found.has_value()) return false;
    if (found->node == state::kNoId) return true;
    const bool now = capacity == Capacity::kNow;
    const Choice choice{found->node, now && mode == Mode::kStart, found->ordered,
                        found->score + (now ? framework::kFitsNowStep : 0)};
    const bool tie = best.node != state::kNoId && !Better(choice, best) && !Better(best, choice);
    if (tie ? state_.node(choice.node).name_rank < state_.node(best.node).name_rank
            : Better(choice, best)) {
      best = choice;
    }
    return true;
  };
  if (!take(mode == Mode::kPromise ? idle_ : now_, Capacity::kNow)) return std::nullopt;
  if (best.node != state::kNoId && !may_prefer_waiting) return best;
  if (!take(future_, Capacity::kFuture)) return std::nullopt;
  return best;
}

std::vector<Placer::Choice> Placer::AllChoices(state::PodClassId id, Mode mode, const Area& area) {
  std::vector<Candidate> candidates;
  const auto look = [&](state::NodeId node) {
    const Candidate candidate = Look(id, node, mode, area);
    if (candidate.choice.node != state::kNoId) candidates.push_back(candidate);
  };
  if (area.nodes != nullptr) {
    for (state::NodeId node : area.nodes->nodes()) look(node);
  } else {
    for (const auto& [name, node] : state_.nodes_by_name()) look(node);
  }
  const framework::Context context{state_, state_.pod_class(id), id, Capacity::kNow};
  const bool idle_first =
      framework_.IdleFirst(context.pod_class) &&
      std::any_of(candidates.begin(), candidates.end(), [](const auto& c) { return c.starts; });
  if (idle_first) std::erase_if(candidates, [](const Candidate& c) { return !c.fits_now; });
  NodeOrders::Candidates kinds;
  kinds.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    kinds.push_back({&state_.node(candidate.choice.node), 1});
  }
  const std::vector<int64_t> scores = framework_.ScoreKinds(context, kinds);
  std::vector<Choice> choices;
  for (size_t i = 0; i < candidates.size(); ++i) {
    // What is kept for others is compared with, and not chosen.
    if (idle_first ? !candidates[i].starts : candidates[i].kept) continue;
    choices.push_back(candidates[i].choice);
    choices.back().score += scores[i];
  }
  return choices;
}

Placer::Choice Placer::BestByScan(state::PodClassId pod_class, Mode mode, const Area& area) {
  Choice best;
  for (const Choice& choice : AllChoices(pod_class, mode, area)) {
    // Nodes come by name: a tie stays with the smaller one.
    if (Better(choice, best)) best = choice;
  }
  return best;
}

bool Placer::IsNodeLocal(state::PodClassId id) {
  if (id >= node_local_.size()) node_local_.resize(id + 1);
  NodeLocal& known = node_local_[id];
  const state::PodClass& pod_class = state_.pod_class(id);
  if (known.serial != pod_class.serial) known = {pod_class.serial, framework_.NodeLocal(pod_class)};
  return known.is;
}

Placer::Choice Placer::Best(state::PodId pod, Mode mode, const Area& area) {
  const state::PodRecord& record = state_.pod(pod);
  if (!record.details->nominated_node.empty()) {
    const state::NodeId nominated = state_.FindNode(record.details->nominated_node);
    if (nominated != state::kNoId && (area.nodes == nullptr || area.nodes->Contains(nominated))) {
      const Candidate there = Look(record.pod_class, nominated, mode, area);
      // A place that it would have to wait for is given up for one where it starts.
      if (there.IsOpen() && there.choice.now) return there.choice;
    }
  }
  const state::PodClass& pod_class = state_.pod_class(record.pod_class);
  std::optional<Choice> in_order;
  if (area.nodes == nullptr && area.preferred == nullptr &&
      (IsNodeLocal(record.pod_class) || framework_.ByDomain(pod_class))) {
    in_order = BestByOrder(record.pod_class, mode);
  }
  const Choice best = in_order.has_value() ? *in_order : BestByScan(record.pod_class, mode, area);
  return best.node == state::kNoId || best.now ? best : NominatedChoice(record, mode, area, best);
}

Placer::Choice Placer::NominatedChoice(const state::PodRecord& pod, Mode mode, const Area& area,
                                       const Choice& best) {
  // What a topology prefers depends on where the others of the set are.
  if (nominated_ == nullptr || area.preferred != nullptr) return best;
  Choice choice = best;
  nominated_->Offer(pod, [&](state::NodeId node) {
    if (node == best.node) return true;
    if (area.nodes != nullptr && !area.nodes->Contains(node)) return false;
    const Candidate there = Look(pod.pod_class, node, mode, area);
    if (!there.IsOpen() || there.choice.now || there.choice.ordered != best.ordered) return false;
    choice = there.choice;
    return true;
  });
  return choice;
}

bool Placer::PlaceOne(Attempt& attempt, state::PodId pod, const Area& area, bool& waits) {
  const Choice choice = Best(pod, attempt.mode, area);
  if (choice.node == state::kNoId) {
    attempt.result.failed = pod;
    return false;
  }
  if (!PlaceAt(attempt, pod, choice, /*only_now=*/false)) {
    attempt.result.failed = pod;
    return false;
  }
  if (state_.pod(pod).status != PodStatus::kBinding) waits = true;
  return true;
}

bool Placer::PlaceAt(Attempt& attempt, state::PodId pod, const Choice& choice, bool only_now) {
  std::optional<state::Parts> parts = state::PickParts(state_, pod, choice.node, parts_order_);
  if (!parts.has_value()) return false;  // no filter of the profile has looked at them
  const bool now = choice.now && !state::MustWaitFor(state_, pod, choice.node, *parts);
  if (only_now && !now) return false;
  if (now) {
    attempt.txn.Allocate(pod, choice.node, *std::move(parts));
  } else {
    attempt.txn.Pipeline(pod, choice.node, *std::move(parts));
  }
  return true;
}

bool Placer::PlaceMembers(Attempt& attempt, const StepNode& node, const Area& area) {
  bool waits = false;
  for (state::PodId pod : node.pods) {
    if (!PlaceOne(attempt, pod, area, waits)) return false;
  }
  if (waits) {
    const auto real = std::count_if(node.pods.begin(), node.pods.end(), [&](state::PodId pod) {
      return state_.pod(pod).status == PodStatus::kBinding;
    });
    if (static_cast<int64_t>(real) < node.needed) attempt.must_wait = true;
    attempt.result.promised = true;
  }
  return PlaceChildren(attempt, node, area);
}

bool Placer::PlacePart(Attempt& attempt, const StepNode& node, const Area& area) {
  const Attempt::Checkpoint before = attempt.Mark();
  const bool placed = PlaceMembers(attempt, node, area);
  if (attempt.mode != Mode::kStart) return placed;
  if (placed && attempt.must_wait == before.must_wait) return true;
  const std::vector<state::PodId> pods = Repackable(attempt.workload, node);
  if (pods.empty()) return placed;
  attempt.RollbackTo(before);
  if (Repack(attempt, node, pods, area, /*only_now=*/true)) return true;
  if (placed) return PlaceMembers(attempt, node, area);
  return Repack(attempt, node, pods, area, /*only_now=*/false);
}

bool Placer::PlaceInDomain(Attempt& attempt, const StepNode& node, const Area& area,
                           const TopologyCandidate& domain, bool only_now) {
  const Attempt::Checkpoint before = attempt.Mark();
  // Levels nest: what an outer one prefers is kept where an inner one says nothing.
  const auto* preferred = domain.preferred_score.empty() ? area.preferred : &domain.preferred_score;
  if (PlacePart(attempt, node, {domain.nodes, preferred})) {
    if (!only_now || attempt.StartsSince(before)) return true;
  }
  attempt.RollbackTo(before);
  return false;
}

// Of domains in which it would have to wait, those in which nodes are on order for the workload
// come first, lest it takes the place of another one that only this domain was bought for.
// A preferred level goes by its own order.
bool Placer::OwnDomainsFirst(const state::Workload& workload,
                             const model::TopologyConstraint& constraint,
                             std::vector<TopologyCandidate>& domains) {
  if (nominated_ == nullptr || domains.size() < 2 || !constraint.preferred_level.empty()) {
    return false;
  }
  const std::vector<state::NodeId>& own = nominated_->OrderedFor(workload);
  if (own.empty()) return false;
  std::stable_partition(domains.begin(), domains.end(), [&](const auto& domain) {
    return std::any_of(own.begin(), own.end(), [&](state::NodeId node) {
      return domain.nodes != nullptr && domain.nodes->Contains(node);
    });
  });
  return true;
}

bool Placer::AnyOnOrder(const std::vector<TopologyCandidate>& domains) const {
  if (domains.size() < 2 || !expected_.Any()) return false;
  return std::any_of(domains.begin(), domains.end(), [this](const TopologyCandidate& domain) {
    const std::vector<state::NodeId>& nodes = domain.nodes->nodes();
    return std::any_of(nodes.begin(), nodes.end(),
                       [this](state::NodeId node) { return !state_.node(node).TakesBindings(); });
  });
}

// The order of domains goes by how full they are, and nodes that are bought for the workload change
// that: if it waited for the nodes of the first domain, it would start in another one as soon as
// more of them are ordered, and leave them unused.
bool Placer::PlaceInDomains(Attempt& attempt, const StepNode& node, const Area& area,
                            std::vector<TopologyCandidate>& domains) {
  const auto place = [&](bool only_now) {
    return std::any_of(domains.begin(), domains.end(), [&](const TopologyCandidate& domain) {
      return PlaceInDomain(attempt, node, area, domain, only_now);
    });
  };
  const bool own = OwnDomainsFirst(attempt.workload, ConstraintOf(attempt.workload, node), domains);
  const bool may_start = attempt.mode == Mode::kStart && (own || AnyOnOrder(domains));
  if (may_start && place(/*only_now=*/true)) return true;
  return place(/*only_now=*/false);
}

Placer::PodsOfSet Placer::PodsOf(const state::Workload& workload, const StepNode& node) const {
  PodsOfSet of;
  CollectPods(node, of.to_place);
  for (state::PodId pod : workload.pods) {
    const state::PodRecord& record = state_.pod(pod);
    if (state::IsAllocated(record.status) && record.node != state::kNoId &&
        IsBelow(workload, record.set, node.set)) {
      of.placed.push_back(pod);
    }
  }
  return of;
}

bool Placer::PlaceSet(Attempt& attempt, const StepNode& node, const Area& area) {
  const state::Workload& workload = attempt.workload;
  const model::TopologyConstraint& constraint = ConstraintOf(workload, node);
  if (constraint.topology.empty()) return PlaceMembers(attempt, node, area);

  const PodsOfSet of = PodsOf(workload, node);
  if (of.to_place.empty()) return true;
  const auto ask = [&](Capacity capacity) {
    return topology_.Candidates(constraint, area.nodes, of.to_place, of.placed, capacity);
  };
  TopologyAnswer answer = ask(Capacity::kFuture);
  if (PlaceInDomains(attempt, node, area, answer.candidates)) return true;
  if (attempt.result.failed == state::kNoId) attempt.result.failed = of.to_place.front();
  attempt.result.topology_reason =
      answer.reason.empty()
          ? absl::StrCat("topology ", constraint.topology, ": no domain of level ",
                         constraint.required_level.empty() ? constraint.preferred_level
                                                           : constraint.required_level,
                         " has room for the whole gang")
          : answer.reason;
  attempt.result.topology_invalid = answer.invalid;
  attempt.result.topology_infeasible = answer.candidates.empty() && !answer.invalid &&
                                       of.placed.empty() &&
                                       ask(Capacity::kEmpty).candidates.empty();
  return false;
}

// Real places since `start` become promises of the same places.
void Placer::PromiseAllOf(state::Transaction& txn, state::Transaction::Checkpoint start) {
  state::Transaction::Operations operations = txn.OperationsSince(start);
  const bool all_promised =
      std::none_of(operations.begin(), operations.end(), [](const auto& operation) {
        return operation.kind == state::Transaction::OperationKind::kAllocate;
      });
  if (all_promised) return;
  txn.RollbackTo(start);
  for (state::Transaction::Operation& operation : operations) {
    if (operation.kind == state::Transaction::OperationKind::kEvict) {
      txn.Evict(operation.pod);
    } else {
      txn.Pipeline(operation.pod, operation.node, std::move(operation.parts));
    }
  }
}

Placement Placer::Place(state::Transaction& txn, const state::Workload& workload,
                        const TasksToAllocate& step, Mode mode, const NodeSetPtr& within) {
  const auto start = txn.Mark();
  SetRequester(workload);
  Attempt attempt{txn, workload, mode, {}, false};
  const bool bound = !workload.sets.front().topology.topology.empty();
  attempt.result.placed = bound ? PlaceSet(attempt, step.root, {within, nullptr})
                                : PlacePart(attempt, step.root, {within, nullptr});
  if (!attempt.result.placed) {
    txn.RollbackTo(start);
    attempt.result.kept_for = kept_for_;
    return std::move(attempt.result);
  }
  if (attempt.must_wait && mode == Mode::kStart) PromiseAllOf(txn, start);
  return std::move(attempt.result);
}

bool Placer::Replace(state::Transaction& txn, const state::Workload& workload,
                     const std::vector<state::PodId>& pods) {
  const auto start = txn.Mark();
  SetRequester(workload);
  // As one part a set, each below the constraint of its own set and of those above it.
  std::vector<StepNode> nodes(workload.sets.size());
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i].set = static_cast<int32_t>(i);
  // Units are in the reverse of the order in which pods are placed.
  for (auto pod = pods.rbegin(); pod != pods.rend(); ++pod) {
    nodes[static_cast<size_t>(std::max(0, state_.pod(*pod).set))].pods.push_back(*pod);
  }
  for (size_t i = nodes.size(); i-- > 1;) {
    if (nodes[i].pods.empty() && nodes[i].children.empty()) continue;
    const auto parent = static_cast<size_t>(workload.sets[i].parent);
    std::vector<StepNode>& children = nodes[parent].children;
    children.insert(children.begin(), std::move(nodes[i]));
  }
  Attempt attempt{txn, workload, Mode::kMove, {}, false};
  if (PlaceSet(attempt, nodes.front(), {})) return true;
  txn.RollbackTo(start);
  return false;
}

std::vector<state::PodId> Placer::PromiseSome(state::Transaction& txn,
                                              const state::Workload& workload,
                                              const std::vector<state::PodId>& pods) {
  SetRequester(workload);
  Attempt attempt{txn, workload, Mode::kPromise, {}, false};
  return PlaceSome(attempt, pods, {});
}

std::vector<state::PodId> Placer::PlaceSome(Attempt& attempt, const std::vector<state::PodId>& pods,
                                            const Area& area) {
  std::vector<state::PodId> others;
  std::set<state::PodClassId> full;  // no node takes another pod of them
  for (const state::PodId pod : pods) {
    const state::PodClassId pod_class = state_.pod(pod).pod_class;
    bool waits = false;
    if (!full.contains(pod_class) && PlaceOne(attempt, pod, area, waits)) continue;
    full.insert(pod_class);
    others.push_back(pod);
  }
  return others;
}

std::optional<Placer::PromisedInDomain> Placer::PromiseSomeInDomain(state::Transaction& txn,
                                                                    const state::Workload& workload,
                                                                    const TasksToAllocate& step,
                                                                    TopologyIndex::MayUse may_use) {
  SetRequester(workload);
  const std::vector<state::PodId>& pods = step.pods;
  work_ += state_.nodes_by_name().size();
  const std::vector<TopologyRoom> rooms = topology_.Rooms(
      workload.sets.front().topology, pods, PodsOf(workload, step.root).placed, kMaxRooms, may_use);
  const auto start = txn.Mark();
  const auto promise_in = [&](const TopologyRoom& room) {
    Attempt attempt{txn, workload, Mode::kPromise, {}, false};
    return PlaceSome(attempt, pods, {room.nodes, nullptr});
  };
  const TopologyRoom* best = nullptr;
  size_t fewest = pods.size();  // pods without a place
  for (const TopologyRoom& room : rooms) {
    const size_t others = promise_in(room).size();
    txn.RollbackTo(start);
    if (others >= fewest) continue;
    fewest = others;
    best = &room;
  }
  if (best == nullptr) return std::nullopt;
  return PromisedInDomain{best->values, promise_in(*best)};
}

}  // namespace fairlead::engine
