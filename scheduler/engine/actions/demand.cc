#include "scheduler/engine/actions/demand.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "queues/variant.h"
#include "scheduler/engine/buying.h"
#include "scheduler/engine/present_room.h"
#include "scheduler/engine/sorted_merge.h"

namespace fairlead::engine {
namespace {

using verdict::Code;

// Amounts that are charged to queues as if they ran, until they are released.
class DemandCharges {
 public:
  explicit DemandCharges(AllocationTracker& tracker) : tracker_(tracker) {}

  void Add(queues::QueueId leaf, const model::Resources& amount, bool preemptible) {
    tracker_.Charge(leaf, amount, preemptible);
    total_ += amount;
    charges_.push_back({leaf, amount, preemptible});
  }
  struct Mark {
    size_t charges = 0;
    model::Resources total;  // sums may saturate: none is subtracted
  };
  [[nodiscard]] Mark mark() const { return {charges_.size(), total_}; }
  // Releases what was added after the mark.
  void ReleaseTo(const Mark& mark) {
    for (; charges_.size() > mark.charges; charges_.pop_back()) {
      const Charge& charge = charges_.back();
      tracker_.Release(charge.leaf, charge.amount, charge.preemptible);
    }
    total_ = mark.total;
  }
  void ReleaseAll() { ReleaseTo({}); }
  [[nodiscard]] const model::Resources& total() const { return total_; }

 private:
  struct Charge {
    queues::QueueId leaf;
    model::Resources amount;
    bool preemptible;
  };
  AllocationTracker& tracker_;
  std::vector<Charge> charges_;
  model::Resources total_;
};

// Whether some node could ever take a step.
enum class Hope : uint8_t {
  kSome,
  kUnknown,  // no present node; the hook is off, and what may be bought is not known
  kNone,     // no present node, and none that may be bought
};

class DemandPass {
 public:
  explicit DemandPass(CycleContext& context)
      : c_(context), in_(context.in), present_(context.in), charges_(context.in.tracker) {}

  void Run();

 private:
  // Finds out what nodes for the workload would have in common, if it is bound to a topology.
  void ReadDomains(Outcome& outcome) const;
  // What the pods are charged if what is bought for them may be of any variant.
  [[nodiscard]] model::Resources WholeChargeOf(absl::Span<const state::PodId> pods) const {
    return c_.variants.WithAnyVariant(pods, c_.ChargeOf(pods));
  }
  // It lacks nothing but capacity, none was promised to its step, and new nodes could be that
  // capacity.
  [[nodiscard]] bool WantsNodes(const Outcome& outcome) const;
  [[nodiscard]] Hope HopeOf(const Outcome& outcome);
  [[nodiscard]] Hope HopeOfClass(state::PodClassId pod_class);
  // Returns whether a present node would suit a pod of the class if the node were empty.
  [[nodiscard]] bool SuitsEmptyNode(state::PodClassId pod_class);
  // By resource, the most that a node has. O(nodes) for the first call.
  const model::Resources& LargestAmounts();
  // No present node could take it, and what may be bought is not known.
  [[nodiscard]] bool IsDoubtful(const Outcome& outcome) {
    return WantsNodes(outcome) && HopeOf(outcome) == Hope::kUnknown;
  }
  // No nodes can be provisioned for its kind now.
  [[nodiscard]] bool IsUnservable(const Outcome& outcome) const {
    return in_.unservable != nullptr && in_.unservable->contains(outcome.demand_kind);
  }
  // The leaf queues all of whose demand is within the limits, whatever the order.
  [[nodiscard]] std::set<queues::QueueId> UnlimitedLeaves() const;
  void AskOneByOne();
  void AskDoubtful();
  void AskWithinLimits(size_t position);
  void AskWithEquivalents();
  // Demand of one outcome and of its equivalents behind it, in sum if the leaf queue is roomy.
  // Returned, as the outcome was before, if those behind are to be asked for in their turn instead.
  std::optional<Outcome> Ask(Outcome& outcome, bool unlimited);

  // Equivalents behind a row, until their turn comes among the others of their leaf queue.
  struct Late {
    Outcome before;  // the row's, as it was before it was asked for; its `rest` is what is left
    size_t row = 0;  // of the one before them
  };
  using Merge = SortedMerge<queues::QueueId, Late>;
  // The row has its place; `later` is what Ask() has returned.
  void AppendRow(Outcome outcome, std::optional<Outcome> later, Merge& behind);
  // Asks for equivalents that come before `bound`.
  void AskInTurn(Late late, const QueueOrderKey* bound, Merge& behind);
  // Charges as many of `count` equivalents of the row as all limits allow whole; returns how many.
  // Of an uncharged row each is asked for alone, and none is charged.
  int64_t ChargeWhole(const Outcome& row, int64_t count);
  // The first `count` workloads of `rest` have the result of the row before them.
  void Extend(size_t row, MemberRange& rest, int64_t count);
  // What the hook may buy for one workload: its step, then one extra unit after the other, as long
  // as every queue above has capacity for them.
  void AskFor(Outcome& outcome);
  // The same, but neither charges nor promised room last: the others are demanded without it.
  void AskUncharged(Outcome& outcome);
  // Promises room on the nodes that there are to a part of the step, if there is any
  // (fits_in_part). Returns the pods that need nodes: `pods`, which are the others then, or those
  // of the outcome's Room.
  const std::vector<state::PodId>& PromiseWhatFits(Outcome& outcome,
                                                   std::vector<state::PodId>& pods);
  // True if a limit or guaranteed quota holds these pods of the outcome back. `request` becomes the
  // request with any variant that the pods may get.
  bool IsHeld(Outcome& outcome, const std::vector<state::PodId>& pods, model::Resources& request);

  CycleContext& c_;
  const CycleInputs& in_;
  PresentRoom present_;
  DemandCharges charges_;
  std::map<state::PodClassId, Hope> hope_;
  std::optional<model::Resources> largest_;  // LargestAmounts()
  // Outcomes, by position, that no present node could take: they come after all others, so that
  // they take nothing away from them.
  std::vector<size_t> doubtful_;
};

void DemandPass::Run() {
  c_.outcomes.Sort();
  std::vector<Outcome>& rows = c_.outcomes.rows();
  for (Outcome& outcome : rows) {
    if (outcome.bound_to_topology) ReadDomains(outcome);
  }
  const bool equivalents = std::any_of(
      rows.begin(), rows.end(), [](const Outcome& outcome) { return outcome.rest.count > 0; });
  if (equivalents) {
    AskWithEquivalents();
  } else {
    AskOneByOne();
  }
  AskDoubtful();
  charges_.ReleaseAll();
  present_.Clear();
}

// What one class of pods asks for is not charged against another one: it may be a mistyped
// selector, which would hold the others below a limit for ever.
void DemandPass::AskDoubtful() {
  std::map<state::PodClassId, std::vector<size_t>> by_class;
  for (const size_t position : doubtful_) {
    const std::vector<state::PodId>& pods = c_.outcomes[position].step.pods;
    by_class[in_.state.pod(pods.front()).pod_class].push_back(position);
  }
  const DemandCharges::Mark before = charges_.mark();
  for (const auto& [pod_class, positions] : by_class) {
    for (const size_t position : positions) AskWithinLimits(position);
    charges_.ReleaseTo(before);
  }
  c_.outcomes.Sort();
}

// Equivalents beyond a limit get a row of their own.
void DemandPass::AskWithinLimits(size_t position) {
  // Guaranteed quota is not divided: what keeps it holds all of them.
  if (c_.outcomes[position].rest.count == 0 || c_.lending.any()) {
    (void)Ask(c_.outcomes[position], /*unlimited=*/true);
    return;
  }
  while (true) {
    Outcome& row = c_.outcomes[position];
    MemberRange left = row.rest;
    Outcome before = row;
    AskFor(row);
    if (row.demanded.empty() || left.count == 0) return;
    row.rest = {};
    if (const int64_t whole = ChargeWhole(row, left.count); whole > 0) {
      Extend(position, left, whole);
    }
    if (left.count == 0) return;
    Outcome next = OutcomeOfNext(in_.state, before, left);
    c_.outcomes.MarkLate(next);
    c_.outcomes.Append(std::move(next));
    position = c_.outcomes.size() - 1;
  }
}

void DemandPass::AskOneByOne() {
  for (size_t i = 0; i < c_.outcomes.size(); ++i) {
    Outcome& outcome = c_.outcomes[i];
    if (IsDoubtful(outcome)) {
      doubtful_.push_back(i);
    } else {
      (void)Ask(outcome, /*unlimited=*/false);
    }
  }
}

void DemandPass::AskWithEquivalents() {
  // What guaranteed quota holds depends on what is demanded before it.
  const std::set<queues::QueueId> unlimited =
      in_.options.hook_on && c_.lending.any() ? std::set<queues::QueueId>() : UnlimitedLeaves();
  std::vector<Outcome> all = c_.outcomes.Release();
  Merge behind;
  for (const Outcome& outcome : all) behind.Expect(outcome.leaf);
  const auto place = [&](Outcome& outcome) {
    if (IsDoubtful(outcome)) {
      doubtful_.push_back(c_.outcomes.size());
      c_.outcomes.Append(std::move(outcome));
      return;
    }
    std::optional<Outcome> later = Ask(outcome, unlimited.contains(outcome.leaf));
    AppendRow(std::move(outcome), std::move(later), behind);
  };
  for (Outcome& outcome : all) {
    behind.Advance(
        outcome.leaf, [&] { return c_.outcomes.KeyOf(outcome); }, [&] { place(outcome); },
        [&](Late late, const QueueOrderKey* bound) { AskInTurn(std::move(late), bound, behind); });
  }
}

void DemandPass::AppendRow(Outcome outcome, std::optional<Outcome> later, Merge& behind) {
  const queues::QueueId leaf = outcome.leaf;
  c_.outcomes.Append(std::move(outcome));
  if (!later.has_value()) return;
  QueueOrderKey key = *later->rest.next;
  behind.Add(leaf, std::move(key), {*std::move(later), c_.outcomes.size() - 1});
}

void DemandPass::AskInTurn(Late late, const QueueOrderKey* bound, Merge& behind) {
  MemberRange& left = late.before.rest;
  MemberRange after = left;
  MemberRange turn = TakeBefore(after, bound);
  while (turn.count > 0) {
    const int64_t whole = ChargeWhole(c_.outcomes[late.row], turn.count);
    if (whole > 0) {
      Extend(late.row, turn, whole);
      left.next = turn.next;
      left.count -= whole;
      continue;
    }
    Outcome next = OutcomeOfNext(in_.state, late.before, left);
    std::optional<Outcome> later = Ask(next, /*unlimited=*/false);
    // What has kept its equivalents holds all of them.
    if (next.rest.count == 0 && next.HasResultOf(c_.outcomes[late.row], in_.state)) {
      Extend(late.row, turn, 1);
      left = left.Behind();
      continue;
    }
    AppendRow(std::move(next), std::move(later), behind);
    return;
  }
  if (left.count == 0) return;
  const queues::QueueId leaf = late.before.leaf;
  QueueOrderKey key = *left.next;
  behind.Add(leaf, std::move(key), std::move(late));
}

int64_t DemandPass::ChargeWhole(const Outcome& row, int64_t count) {
  if (row.demanded.empty() || !row.whole_demand || c_.lending.any()) return 0;
  if (row.fits_in_part && !row.uncharged) return 0;
  const bool preemptible = in_.state.workload(row.workload).preemptible;
  // A limit is asked about the whole step, also if a part of it finds room.
  const model::Resources each = WholeChargeOf(row.fits_in_part ? row.step.pods : row.demanded);
  const auto fits = [&](int64_t n) {
    return !queues::CheckLimits(in_.tree, in_.tracker.ledger(), row.leaf, each.Times(n),
                                preemptible)
                .has_value();
  };
  if (row.uncharged) return fits(1) ? count : 0;
  int64_t low = 0, high = count + 1;  // low fits, high does not
  if (fits(count)) low = count;
  while (low < count && high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  if (low > 0) charges_.Add(row.leaf, each.Times(low), preemptible);
  return low;
}

void DemandPass::Extend(size_t row, MemberRange& rest, int64_t count) {
  MemberRange& of_row = c_.outcomes[row].rest;
  const MemberRange taken = rest;
  rest.next = count == rest.count ? rest.end : std::next(rest.next, count);
  rest.count -= count;
  if (of_row.empty()) {
    of_row = taken;
    of_row.count = 0;
  }
  of_row.end = rest.next;
  of_row.count += count;
}

std::optional<Outcome> DemandPass::Ask(Outcome& outcome, bool unlimited) {
  if (!WantsNodes(outcome)) return std::nullopt;
  if (HopeOf(outcome) == Hope::kNone) {
    // The hook says so; nothing is charged for what cannot be.
    outcome.demanded = outcome.step.pods;
    outcome.demanded_of_step = outcome.demanded.size();
    return std::nullopt;
  }
  if (in_.options.hook_on) outcome.demand_kind = KindOfDemand(in_.state, outcome);
  const bool unservable = IsUnservable(outcome);
  const auto ask = [&] { unservable ? AskUncharged(outcome) : AskFor(outcome); };
  if (outcome.rest.count == 0) {
    ask();
    return std::nullopt;
  }
  Outcome before = outcome;
  ask();
  // A limit that holds it holds those behind it. Guaranteed quota holds it until nodes are bought
  // for others.
  const bool held_for_good = !outcome.kept_beyond_cluster || !in_.options.hook_on;
  if (outcome.demanded.empty() && held_for_good) return std::nullopt;
  // What is not charged leaves those behind it the same room.
  if (unlimited && outcome.uncharged) return std::nullopt;
  if (unlimited && !outcome.fits_in_part) {
    charges_.Add(outcome.leaf, WholeChargeOf(outcome.demanded).Times(outcome.rest.count),
                 in_.state.workload(outcome.workload).preemptible);
    return std::nullopt;
  }
  outcome.rest = {};
  return before;
}

void DemandPass::AskFor(Outcome& outcome) {
  const state::Workload& workload = in_.state.workload(outcome.workload);
  std::vector<state::PodId> pods = outcome.step.pods;
  model::Resources request = outcome.step_request;
  std::optional<AllocationSequence> steps;
  while (!pods.empty()) {
    if (IsHeld(outcome, pods, request)) return;
    const bool first = outcome.demanded.empty();
    if (!steps.has_value() && !workload.plain) {
      steps.emplace(in_.state, workload);
      steps->Place(outcome.step);
    }
    if (first) {
      const std::vector<state::PodId>& without_room = PromiseWhatFits(outcome, pods);
      if (outcome.fits_in_part) request = WholeChargeOf(without_room);
    }
    charges_.Add(outcome.leaf, request, workload.preemptible);
    outcome.demanded.insert(outcome.demanded.end(), pods.begin(), pods.end());
    if (first) outcome.demanded_of_step = pods.size();
    pods.clear();
    if (workload.plain) return;
    const auto has_problem = [&](state::PodId pod) {
      return outcome.domains != nullptr &&
             !outcome.domains->ProblemOf(in_.state.pod(pod).set).what.empty();
    };
    do {
      TasksToAllocate next = steps->Next();
      steps->Place(next);
      pods = std::move(next.pods);
    } while (std::any_of(pods.begin(), pods.end(), has_problem));
    request = c_.ChargeOf(pods);
  }
}

void DemandPass::AskUncharged(Outcome& outcome) {
  const DemandCharges::Mark charged = charges_.mark();
  const PresentRoom::Mark promised = present_.mark();
  AskFor(outcome);
  charges_.ReleaseTo(charged);
  present_.RollbackTo(promised);
  outcome.uncharged = !outcome.demanded.empty();
}

const std::vector<state::PodId>& DemandPass::PromiseWhatFits(Outcome& outcome,
                                                             std::vector<state::PodId>& pods) {
  if (HopeOf(outcome) != Hope::kSome) return pods;
  if (outcome.bound_to_topology) {
    outcome.room = present_.PromiseInDomain(outcome);
    outcome.fits_in_part = outcome.room.has_value();
    return outcome.fits_in_part ? outcome.room->others : pods;
  }
  if (std::optional<std::vector<state::PodId>> others = present_.Promise(outcome)) {
    outcome.fits_in_part = true;
    pods = *std::move(others);
  }
  return pods;
}

bool DemandPass::IsHeld(Outcome& outcome, const std::vector<state::PodId>& pods,
                        model::Resources& request) {
  const bool says_variant =
      !c_.variants.any() || c_.variants.WithAnyVariant(pods, request) == request;
  request = c_.variants.WithAnyVariant(pods, std::move(request));
  const bool preemptible = in_.state.workload(outcome.workload).preemptible;
  const auto violation =
      queues::CheckLimits(in_.tree, in_.tracker.ledger(), outcome.leaf, request, preemptible);
  if (!violation.has_value()) return c_.lending.HoldsDemand(charges_.total(), request, outcome);
  if (!outcome.demanded.empty() || !outcome.promises.empty()) {
    outcome.whole_demand = false;
    return true;
  }
  outcome.code = CodeOf(*violation);
  outcome.violation = violation;
  if (!says_variant && c_.variants.IsVariant(violation->resource)) {
    outcome.details.emplace_back(queues::NoVariantNamed());
  }
  return true;
}

void DemandPass::ReadDomains(Outcome& outcome) const {
  const bool waits =
      outcome.code == Code::kInsufficientCapacity || outcome.code == Code::kNodesRequested ||
      outcome.code == Code::kWaitingForVictims || outcome.code == Code::kTopologyInfeasible;
  if (!outcome.bound_to_topology || !in_.options.hook_on || !waits) return;
  outcome.domains = std::make_shared<const DomainRules>(
      in_.state, in_.state.workload(outcome.workload), in_.offered);
  for (const state::PodId pod : outcome.step.pods) {
    const DomainRules::Problem& problem = outcome.domains->ProblemOf(in_.state.pod(pod).set);
    if (problem.what.empty()) continue;
    outcome.domain_problem = &problem;
    outcome.details.push_back(problem.what);
    return;
  }
  // Not with the nodes that there are; but there may be others.
  if (outcome.code == Code::kTopologyInfeasible) outcome.code = Code::kInsufficientCapacity;
}

bool DemandPass::WantsNodes(const Outcome& outcome) const {
  if (outcome.step.pods.empty()) return false;
  if (outcome.bound_to_topology &&
      (outcome.domains == nullptr || outcome.domain_problem != nullptr)) {
    return false;
  }
  if (outcome.code != Code::kInsufficientCapacity && outcome.code != Code::kNodesRequested &&
      outcome.code != Code::kWaitingForVictims) {
    return false;
  }
  // The step of a workload whose victims are chosen has its promise.
  return in_.state.pod(outcome.step.pods.front()).status == state::PodStatus::kPending;
}

// Everything is charged as if it ran; a leaf is roomy if no queue above it is over a limit even
// then.
std::set<queues::QueueId> DemandPass::UnlimitedLeaves() const {
  std::vector<const Outcome*> with_equivalents;
  DemandCharges all(in_.tracker);
  for (const Outcome& outcome : c_.outcomes.rows()) {
    if (!WantsNodes(outcome)) continue;
    const state::Workload& workload = in_.state.workload(outcome.workload);
    all.Add(outcome.leaf, WholeChargeOf(workload.pods).Times(1 + outcome.rest.count),
            workload.preemptible);
    if (outcome.rest.count > 0) with_equivalents.push_back(&outcome);
  }
  std::set<queues::QueueId> unlimited, tight;
  for (const Outcome* outcome : with_equivalents) {
    const state::Workload& workload = in_.state.workload(outcome->workload);
    const model::Resources one = WholeChargeOf(workload.pods);
    in_.tracker.Release(outcome->leaf, one, workload.preemptible);
    const bool over = queues::CheckLimits(in_.tree, in_.tracker.ledger(), outcome->leaf, one,
                                          workload.preemptible)
                          .has_value();
    in_.tracker.Charge(outcome->leaf, one, workload.preemptible);
    (over ? tight : unlimited).insert(outcome->leaf);
  }
  all.ReleaseAll();
  for (const queues::QueueId leaf : tight) unlimited.erase(leaf);
  return unlimited;
}

const model::Resources& DemandPass::LargestAmounts() {
  if (largest_.has_value()) return *largest_;
  largest_.emplace();
  for (const auto& [name, id] : in_.state.nodes_by_name()) {
    const state::NodeInfo& node = in_.state.node(id);
    for (size_t i = 0; node.exists && i < node.allocatable.size(); ++i) {
      const auto resource = static_cast<model::ResourceIndex>(i);
      const int64_t amount = node.allocatable[resource];
      if (amount > (*largest_)[resource]) largest_->Set(resource, amount);
    }
  }
  return *largest_;
}

bool DemandPass::SuitsEmptyNode(state::PodClassId id) {
  const state::PodClass& wanted = in_.state.pod_class(id);
  if (!wanted.requests.FitsIn(LargestAmounts())) return false;
  const framework::Context empty{in_.state, wanted, id, framework::Capacity::kEmpty};
  const auto& nodes = in_.state.nodes_by_name();
  return std::any_of(nodes.begin(), nodes.end(), [&](const auto& entry) {
    const state::NodeInfo& node = in_.state.node(entry.second);
    return node.exists && wanted.requests.FitsIn(node.allocatable) &&
           in_.framework.FilterNodeObject(empty, node, nullptr);
  });
}

Hope DemandPass::HopeOfClass(state::PodClassId id) {
  if (SuitsEmptyNode(id)) return Hope::kSome;
  if (!in_.options.hook_on) return Hope::kUnknown;
  const bool some = in_.offered_nodes.empty() || FitsSomeOffer(in_, id);
  return some ? Hope::kSome : Hope::kNone;
}

Hope DemandPass::HopeOf(const Outcome& outcome) {
  Hope worst = Hope::kSome;
  for (const state::PodId pod : outcome.step.pods) {
    const state::PodClassId id = in_.state.pod(pod).pod_class;
    const auto [known, added] = hope_.try_emplace(id, Hope::kSome);
    if (added) known->second = HopeOfClass(id);
    worst = std::max(worst, known->second);
  }
  return worst;
}

}  // namespace

void Demand::Execute(CycleContext& context) const { DemandPass(context).Run(); }

}  // namespace fairlead::engine
