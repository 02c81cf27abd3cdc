// The improvement of Packer: take up to three nodes out, pack their pods again, keep what is
// cheaper.
#include <algorithm>
#include <map>

#include "autoscale-hook/planner/packing_run.h"

namespace fairlead::hook {

void Packer::Run::Normalise(Draft& draft) const {
  std::sort(draft.groups.begin(), draft.groups.end(), [](const NodeGroup& a, const NodeGroup& b) {
    return a.offer != b.offer ? a.offer < b.offer : a.load > b.load;
  });
  std::vector<NodeGroup> merged;
  for (NodeGroup& group : draft.groups) {
    if (group.nodes == 0) continue;
    if (!merged.empty() && merged.back().offer == group.offer && merged.back().load == group.load) {
      merged.back().nodes += group.nodes;
    } else {
      merged.push_back(std::move(group));
    }
  }
  draft.groups = std::move(merged);
}

void Packer::Run::Improve(Draft& draft) {
  constexpr int kMaxChanges = 2000;
  Normalise(draft);
  for (int change = 0; change < kMaxChanges && ImproveOnce(draft); ++change) Normalise(draft);
}

bool Packer::Run::ImproveOnce(Draft& draft) {
  constexpr size_t kTripleGroups = 10;
  const size_t groups = draft.groups.size();
  const auto spent = [this] { return packer_.lookups_ > lookups_end_; };
  for (size_t a = 0; a < groups; ++a) {
    if (spent()) return false;
    if (TryReplace(draft, {a})) return true;
  }
  for (size_t a = 0; a < groups; ++a) {
    for (size_t b = a; b < groups; ++b) {
      if (spent()) return false;
      if (TryReplace(draft, {a, b})) return true;
    }
  }
  if (groups > kTripleGroups) return false;
  for (size_t a = 0; a < groups; ++a) {
    for (size_t b = a; b < groups; ++b) {
      for (size_t c = b; c < groups; ++c) {
        if (spent()) return false;
        if (TryReplace(draft, {a, b, c})) return true;
      }
    }
  }
  return false;
}

// All of `counts` on one node of the cheapest offer that holds them.
bool Packer::Run::TrySingleNode(const Draft& without, const Counts& counts, Draft& best,
                                int& chosen) {
  for (int offer : std::vector<int>(Active(without.budget))) {
    if (model::SaturatingAdd(without.cost.weighted, weighted_[offer]) > best.cost.weighted)
      continue;
    Load load;
    bool all = true;
    for (int pod_class : class_order_) {
      if (counts[pod_class] == 0) continue;
      all = Count(offer, load, pod_class, counts[pod_class]) == counts[pod_class];
      if (!all) break;
      load = Plus(std::move(load), pod_class, counts[pod_class]);
    }
    if (!all) continue;
    Draft with = without;
    Buy(with, offer, std::move(load), 1);
    if (with.cost < best.cost) {
      best = std::move(with);
      chosen = offer;
      return true;
    }
  }
  return false;
}

// Packs the pods of one node of each group named (ascending, a group may be named twice) once more.
// Groups of equal nodes are treated at once where one new node takes the place.
bool Packer::Run::TryReplace(Draft& draft, const std::vector<size_t>& chosen) {
  Counts counts(counts_.size(), 0);
  std::map<size_t, int64_t> each;
  for (size_t group : chosen) {
    ++each[group];
    for (const auto& [pod_class, count] : draft.groups[group].load) counts[pod_class] += count;
  }
  int64_t times = kNoBound;
  for (const auto& [group, nodes] : each)
    times = std::min(times, draft.groups[group].nodes / nodes);
  if (times == 0) return false;
  const auto without = [&](int64_t repeat) {
    Draft rest = draft;
    for (const auto& [group, nodes] : each) GiveBack(rest, group, nodes * repeat);
    return rest;
  };

  const Draft base = without(1);
  Draft best = draft;
  bool found = false;
  int offer = -1;
  if (TrySingleNode(base, counts, best, offer)) {
    found = true;
    Draft many = without(times);
    if (times > 1 && MaxNodes(many.budget, offer) >= times) {
      Load load;
      for (size_t c = 0; c < counts.size(); ++c) {
        if (counts[c] > 0) load.push_back({static_cast<int>(c), counts[c]});
      }
      Buy(many, offer, std::move(load), times);
      if (many.cost < best.cost) best = std::move(many);
    }
  }
  for (Construction how : {Construction::kPerClass, Construction::kMixed}) {
    Draft trial = base;
    Construct(trial, counts, how);
    if (trial.unplaced == draft.unplaced && trial.cost < best.cost) {
      best = std::move(trial);
      found = true;
    }
  }
  if (found) draft = std::move(best);
  return found;
}

}  // namespace fairlead::hook
