#include "autoscale-hook/planner/shared_claims.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

constexpr char kNoRoom[] = "no node on offer has room for it beside the pods that share its claim";

bool Counts(const DemandItem& item, const verdict::DemandClass& pods) {
  return item.domains.empty() && pods.spec != nullptr && pods.count > 0;
}

int64_t LeastOf(const DemandItem& item, const verdict::DemandClass& pods) {
  return item.atomic ? pods.count : std::clamp<int64_t>(pods.min_count, 0, pods.count);
}

int64_t PodsPlanned(const Plan& plan, size_t outcome) {
  int64_t planned = 0;
  for (const PlannedNode& node : plan.nodes) {
    for (const auto& [of, pods] : node.pods_of_item) planned += of == outcome ? pods : 0;
  }
  return planned;
}

// Notes that so many pods that were planned for an outcome are of another one; the nodes. Which of
// several nodes each is on is not known: the first do, and each keeps a pod of the former.
std::vector<size_t> TakePods(Plan& plan, size_t from, int64_t count, size_t to,
                             std::vector<std::vector<std::pair<size_t, int64_t>>>& more) {
  std::vector<size_t> nodes;
  for (const size_t node : plan.items[from].nodes) {
    if (count <= 0) break;
    for (auto& [outcome, pods] : plan.nodes[node].pods_of_item) {
      if (outcome != from || pods < 2) continue;
      const int64_t here = std::min(count, pods - 1);
      pods -= here;
      count -= here;
      more[node].push_back({to, here});
      nodes.push_back(node);
    }
  }
  return nodes;
}

// The smallest member of the set.
size_t Root(std::vector<size_t>& parent, size_t member) {
  while (parent[member] != member) member = parent[member] = parent[parent[member]];
  return member;
}

void Unite(std::vector<size_t>& parent, size_t a, size_t b) {
  a = Root(parent, a);
  b = Root(parent, b);
  parent[std::max(a, b)] = std::min(a, b);
}

std::vector<size_t> Alone(size_t count) {
  std::vector<size_t> parent(count);
  std::iota(parent.begin(), parent.end(), size_t{0});
  return parent;
}

}  // namespace

SharedClaims::SharedClaims(const Demand& demand) : demand_(demand) {
  FindSets();
  any_ = !sets_.empty();
  if (any_) Join();
}

void SharedClaims::FindSets() {
  std::map<std::string, std::vector<Place>> joiners;  // by claim
  std::vector<Place> bringers;                        // of any claim
  for (size_t i = 0; i < demand_.size(); ++i) {
    for (size_t c = 0; c < demand_[i].classes.size(); ++c) {
      const verdict::DemandClass& pods = demand_[i].classes[c];
      if (!Counts(demand_[i], pods)) continue;
      for (const std::string& claim : pods.spec->claims_to_join) joiners[claim].push_back({i, c});
      if (!pods.spec->resource_claims.empty()) bringers.push_back({i, c});
    }
  }
  if (joiners.empty()) return;
  std::vector<Set> found;
  std::map<Place, size_t> set_of;
  std::vector<size_t> parent;
  for (const auto& [claim, joining] : joiners) {
    const auto bringer =
        std::find_if(bringers.begin(), bringers.end(), [&, name = claim](const Place& place) {
          return model::BringsClaim(*At(place).spec, name);
        });
    if (bringer == bringers.end()) continue;
    found.push_back({claim, {*bringer}});
    found.back().classes.insert(found.back().classes.end(), joining.begin(), joining.end());
    parent.push_back(parent.size());
    for (const Place& place : found.back().classes) {
      const auto [known, added] = set_of.try_emplace(place, found.size() - 1);
      if (!added) Unite(parent, known->second, found.size() - 1);
    }
  }
  std::map<size_t, size_t> place_of;  // of the sets that share no pods
  for (size_t s = 0; s < found.size(); ++s) {
    const auto [known, added] = place_of.try_emplace(Root(parent, s), sets_.size());
    if (added) sets_.push_back({found[s].claim, {}});
    std::vector<Place>& classes = sets_[known->second].classes;
    for (const Place& place : found[s].classes) {
      if (std::find(classes.begin(), classes.end(), place) == classes.end()) {
        classes.push_back(place);
      }
    }
  }
  for (Set& set : sets_) {
    // A pod that joins one claim may bring another along.
    std::stable_partition(set.classes.begin(), set.classes.end(), [&](const Place& place) {
      return At(place).spec->claims_to_join.empty();
    });
  }
}

void SharedClaims::Join() {
  std::vector<size_t> parent = Alone(demand_.size());
  std::set<size_t> sharing;
  for (const Set& set : sets_) {
    for (const Place& place : set.classes) {
      Unite(parent, set.classes.front().item, place.item);
      sharing.insert(place.item);
    }
  }
  std::map<size_t, std::vector<size_t>> together;
  for (const size_t item : sharing) together[Root(parent, item)].push_back(item);
  std::map<size_t, size_t> place;  // in `joined_`, by root
  for (size_t i = 0; i < demand_.size(); ++i) {
    const size_t root = Root(parent, i);
    const auto [known, added] = place.try_emplace(root, joined_.size());
    if (added) joined_.push_back(sharing.contains(i) ? MakeItem(together[root]) : demand_[i]);
    stands_for_.push_back(known->second);
  }
}

DemandItem SharedClaims::MakeItem(const std::vector<size_t>& items) const {
  DemandItem joined = demand_[items.front()];
  joined.members = 1;
  joined.classes.clear();
  std::set<Place> placed;
  std::vector<verdict::DomainPart> parts;
  for (const Set& set : sets_) {
    if (std::find(items.begin(), items.end(), set.classes.front().item) == items.end()) continue;
    verdict::DomainRule rule;
    rule.what = absl::StrCat("ResourceClaim ", set.claim);
    rule.labels = {model::kHostnameLabel};
    rule.required = 1;
    verdict::DomainPart part;
    part.rule = static_cast<int32_t>(joined.domains.rules.size());
    bool needed = false;
    for (const Place& place : set.classes) {
      const DemandItem& item = demand_[place.item];
      placed.insert(place);
      verdict::DemandClass pods = At(place);
      pods.min_count = LeastOf(item, pods) * item.members;
      pods.count *= item.members;
      needed = needed || pods.min_count > 0;
      part.classes.push_back(std::move(pods));
    }
    // Without it the others have nothing to join.
    if (needed) part.classes.front().min_count = part.classes.front().count;
    joined.domains.rules.push_back(std::move(rule));
    parts.push_back(std::move(part));
  }
  verdict::DomainPart others;
  for (const size_t item : items) {
    joined.atomic = joined.atomic || demand_[item].atomic;
    for (size_t c = 0; c < demand_[item].classes.size(); ++c) {
      verdict::DemandClass pods = demand_[item].classes[c];
      if (!Counts(demand_[item], pods) || placed.contains({item, c})) continue;
      pods.min_count = LeastOf(demand_[item], pods) * demand_[item].members;
      pods.count *= demand_[item].members;
      others.classes.push_back(std::move(pods));
    }
  }
  if (!others.classes.empty()) joined.domains.parts.push_back(std::move(others));
  std::move(parts.begin(), parts.end(), std::back_inserter(joined.domains.parts));
  for (const verdict::DomainPart& part : joined.domains.parts) {
    joined.classes.insert(joined.classes.end(), part.classes.begin(), part.classes.end());
  }
  return joined;
}

Plan SharedClaims::Divide(Plan plan) const {
  std::vector<ItemOutcome> outcomes;
  std::map<size_t, size_t> new_place;  // of outcomes of the plan
  struct Joined {
    size_t outcome = 0;  // of the plan
    int64_t left = 0;    // planned pods that are of no item yet
  };
  std::map<size_t, Joined> joined;  // by item of the plan
  std::vector<std::vector<std::pair<size_t, int64_t>>> more(plan.nodes.size());  // pods of items
  size_t next = 0;
  for (size_t i = 0; i < demand_.size(); ++i) {
    const size_t planned = stands_for_[i];
    const int64_t own = PodsOf(demand_[i].classes) * demand_[i].members;
    const auto known = joined.find(planned);
    if (known == joined.end()) {
      const size_t first = next;
      for (; next < plan.items.size() && plan.items[next].item == planned; ++next) {
        new_place[next] = outcomes.size();
        outcomes.push_back(plan.items[next]);
        outcomes.back().item = i;
      }
      joined[planned] = {first, PodsPlanned(plan, first) - own};
      continue;
    }
    Joined& from = known->second;
    ItemOutcome outcome = plan.items[from.outcome];
    if (!outcome.nodes.empty()) {
      outcome.nodes = TakePods(plan, from.outcome, std::min(from.left, own), outcomes.size(), more);
      from.left -= own;
      if (outcome.nodes.empty()) outcome = {verdict::Code::kInsufficientCapacity, {}, {kNoRoom}};
    }
    outcome.item = i;
    outcome.members = demand_[i].members;
    outcomes.push_back(std::move(outcome));
  }
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    auto& of_item = plan.nodes[n].pods_of_item;
    for (auto& [outcome, pods] : of_item) outcome = new_place.at(outcome);
    of_item.insert(of_item.end(), more[n].begin(), more[n].end());
    std::sort(of_item.begin(), of_item.end());
  }
  plan.items = std::move(outcomes);
  return plan;
}

}  // namespace fairlead::hook
