// Cheaper machines for nodes whose pods find no room elsewhere (machines/replacement.h): which
// offer, under which caps, and the request.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autoscale-hook/hook_impl.h"
#include "autoscale-hook/planner/offers.h"
#include "autoscale-hook/planner/plan_bonds.h"

namespace fairlead::hook {
namespace {

// Offers that are put to the filters, for each node.
constexpr int kMostAsked = 16;

bool HoldsAll(const model::Node& node, const model::ResourceList& requests) {
  return std::all_of(requests.begin(), requests.end(), [&](const auto& request) {
    return request.second <= 0 || model::Get(node.allocatable, request.first) >= request.second;
  });
}

}  // namespace

const Offer* Hook::Impl::FindReplacement(const Leaving& leaving, const std::vector<Offer>& offers,
                                         const CapsLeft& caps, Evacuation& evacuation) const {
  std::vector<std::string> nodes;
  ReplacementPrices prices;
  bool spot = false;
  for (const NodeEmptying::Candidate& one : leaving) {
    nodes.push_back(*one.node);
    prices.Add(one.machine->desired.price_micro_usd_per_hour, one.lost_work);
    spot = spot || one.machine->desired.spot;
  }
  const model::ResourceList requests = evacuation.RequestsOf(nodes);
  int asked = 0;
  for (const Offer& offer : offers) {
    prices.new_price = offer.PriceOfChoice();
    if (prices.new_price >= prices.old_price) break;
    prices.boot =
        boot_times_.Expect(offer.type->name, offer.pool->meta.name, options_.expected_boot);
    // From spot to spot prices would be chased to the machines that are taken back first.
    const bool suits = Pays(prices, options_.consolidation_horizon) && !(spot && offer.spot) &&
                       Allows(caps, offer);
    if (!suits) continue;
    model::Node node = UsableNode(offer, "");
    shapes_.Apply(node);
    if (!HoldsAll(node, requests)) continue;
    if (++asked > kMostAsked) break;
    if (evacuation.FitOn(nodes, node)) return &offer;
  }
  return nullptr;
}

const PlanInput& Hook::Impl::InputFor(const std::string& queue, ReplacementLook& look,
                                      StepContext& context) {
  std::vector<const QueueCap*> queue_caps;
  for (const QueueCap& cap : context.queue_caps) {
    if (cap.queues.contains(queue)) queue_caps.push_back(&cap);
  }
  if (look.input.has_value() && look.queue_caps == queue_caps) return *look.input;
  CapUsage usage;
  look.input = MakePlanInput(context, queue_caps, usage);
  look.queue_caps = std::move(queue_caps);
  std::stable_sort(
      look.input->offers.begin(), look.input->offers.end(),
      [](const Offer& a, const Offer& b) { return a.PriceOfChoice() < b.PriceOfChoice(); });
  return *look.input;
}

bool Hook::Impl::ReplaceTogether(const Leaving& leaving, ReplacementLook& look,
                                 StepContext& context) {
  const model::NodeRequest& old = leaving.front().machine->desired;
  const PlanInput& input = InputFor(old.queue, look, context);
  const Offer* offer = FindReplacement(leaving, input.offers, input.caps, look.evacuation);
  if (offer == nullptr) return false;
  std::string key;
  absl::Duration wait = absl::ZeroDuration();
  for (const NodeEmptying::Candidate& one : leaving) {
    absl::StrAppend(&key, one.machine->key, "/");
    wait = std::max(wait, look.budgets.WaitOf(one.machine->desired.pool));
  }
  const absl::Time due = replacement_.Note(key, context.now) + wait;
  if (context.now < due || look.requested >= NodeReplacement::kMostAtOnce) return true;
  for (const NodeEmptying::Candidate& one : leaving) {
    const std::string& pool = one.machine->desired.pool;
    if (!look.budgets.Allows(pool, model::DisruptionReason::kUnderutilized)) return true;
    look.budgets.Take(pool);
  }
  ++look.requested;
  model::NodeRequest request = NewRequest(*offer, absl::StrCat("replaces/", old.meta.uid));
  request.queue = old.queue;
  for (const NodeEmptying::Candidate& one : leaving) {
    request.replaces.push_back({one.machine->name(), one.machine->uid()});
  }
  Create(std::move(request), *offer, context);
  look.input.reset();  // the caps are less now
  return true;
}

void Hook::Impl::ReplaceNodes(DisruptionBudgets& budgets, Evacuation* evacuation,
                              StepContext& context) {
  std::optional<Leaving> candidates = emptying_.TakeRoomless();
  if (!candidates.has_value()) return;
  replacement_.BeginLook();
  std::erase_if(*candidates, [&](const NodeEmptying::Candidate& candidate) {
    return NodeReplacement::Rests(*candidate.machine, context);
  });
  if (candidates->empty() || evacuation == nullptr) return;
  candidates->resize(std::min(candidates->size(), NodeReplacement::kMostLookedAt));
  ReplacementLook look{budgets, *evacuation};
  bool any = false;
  for (const NodeEmptying::Candidate& candidate : *candidates) {
    any = ReplaceTogether({candidate}, look, context) || any;
  }
  // What costs least to evict, and then the dearest, comes first.
  for (size_t count = 2; !any && count <= NodeReplacement::kMostTogether; ++count) {
    if (count > candidates->size()) break;
    const Leaving leaving(candidates->begin(), candidates->begin() + static_cast<ptrdiff_t>(count));
    any = ReplaceTogether(leaving, look, context);
  }
}

}  // namespace fairlead::hook
