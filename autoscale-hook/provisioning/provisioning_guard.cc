#include "autoscale-hook/provisioning/provisioning_guard.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "base/write_attempts.h"

namespace fairlead::hook {
namespace {

constexpr absl::Duration kFirstRest = absl::Minutes(1);

template <typename T>
bool HasPreference(const std::vector<T>& terms) {
  return std::any_of(terms.begin(), terms.end(), [](const T& term) { return term.weight != 0; });
}

bool HasSoftSpread(const model::PodSpec& spec) {
  return std::any_of(spec.topology_spread.begin(), spec.topology_spread.end(),
                     [](const auto& spread) { return !spread.do_not_schedule; });
}

bool HasPreferences(const model::PodSpec& spec) {
  return !spec.preferred_node_terms.empty() || HasPreference(spec.pod_affinity) ||
         HasPreference(spec.pod_anti_affinity) || HasSoftSpread(spec) ||
         !spec.config_map_names.empty();
}

// What decides where the pods may run.
model::PodSpec Requirements(model::PodSpec spec) {
  const auto prefers = [](const model::PodAffinityTerm& term) { return term.weight != 0; };
  spec.preferred_node_terms.clear();
  std::erase_if(spec.pod_affinity, prefers);
  std::erase_if(spec.pod_anti_affinity, prefers);
  std::erase_if(spec.topology_spread, [](const auto& spread) { return !spread.do_not_schedule; });
  spec.config_map_names.clear();
  return spec;
}

size_t HashOfRequirements(const model::PodSpec& spec) {
  return HasPreferences(spec) ? absl::HashOf(Requirements(spec)) : absl::HashOf(spec);
}

bool SameRequirements(const model::PodSpec& a, const model::PodSpec& b) {
  if (&a == &b) return true;
  if (!HasPreferences(a) && !HasPreferences(b)) return a == b;
  return Requirements(a) == Requirements(b);
}

}  // namespace

// Counts tell gangs apart; a single pod more or less is the same demand.
bool ProvisioningGuard::SamePods(const Shape& shape, const DemandItem& item) {
  // What room there is on other nodes changes all the time, and is not what the pods ask for.
  if (shape.atomic != item.atomic || shape.domains.rules != item.domains.rules ||
      shape.domains.parts != item.domains.parts) {
    return false;
  }
  return std::equal(shape.classes.begin(), shape.classes.end(), item.classes.begin(),
                    item.classes.end(), [&](const auto& x, const auto& y) {
                      return (!shape.atomic || x.count == y.count) && x.spec != nullptr &&
                             y.spec != nullptr && SameRequirements(*x.spec, *y.spec);
                    });
}

// The current demand, by key and by shape.
class ProvisioningGuard::Wanted {
 public:
  explicit Wanted(const Demand& demand, const DemandMembers* members = nullptr)
      : demand_(demand), members_(members) {
    for (const DemandItem& item : demand) {
      by_key_[{item.is_group, item.workload}] = &item;
      by_shape_[HashOf(item)].push_back(&item);
    }
  }

  // Equal items have equal hashes. Specs are hashed once for each object: equal pods share it.
  size_t HashOf(const DemandItem& item) {
    size_t hash = absl::HashOf(item.queue, item.atomic, item.classes.size());
    for (const verdict::DemandClass& pod_class : item.classes) {
      if (pod_class.spec == nullptr) continue;
      const auto [known, added] = spec_hashes_.try_emplace(pod_class.spec.get(), 0);
      if (added) known->second = HashOfRequirements(*pod_class.spec);
      hash = absl::HashOf(hash, known->second);
    }
    return hash;
  }
  [[nodiscard]] bool ItselfStill(const Purchase& purchase) const {
    if (const auto item = by_key_.find({purchase.is_group, purchase.workload});
        item != by_key_.end()) {
      return SamePods(purchase.shape, *item->second);
    }
    if (members_ == nullptr) return false;
    const std::optional<size_t> item = members_->Find(purchase.is_group, purchase.workload);
    return item.has_value() && SamePods(purchase.shape, demand_[*item]);
  }
  [[nodiscard]] bool AnotherLikeIt(const Purchase& purchase) const {
    const auto items = by_shape_.find(purchase.shape_hash);
    return items != by_shape_.end() &&
           std::any_of(items->second.begin(), items->second.end(), [&](const DemandItem* item) {
             return item->queue == purchase.shape.queue && SamePods(purchase.shape, *item);
           });
  }

 private:
  const Demand& demand_;
  const DemandMembers* members_;
  std::map<std::pair<bool, std::string>, const DemandItem*> by_key_;
  absl::flat_hash_map<size_t, std::vector<const DemandItem*>> by_shape_;
  absl::flat_hash_map<const model::PodSpec*, size_t> spec_hashes_;
};

void ProvisioningGuard::Remember(const DemandItem& item, const std::vector<Ordered>& nodes,
                                 absl::Time unneeded_since) {
  Purchase purchase;
  purchase.is_group = item.is_group;
  purchase.workload = item.workload;
  const Demand none;
  purchase.shape_hash = Wanted(none).HashOf(item);
  purchase.shape = {item.queue, item.classes, item.domains, item.atomic};
  for (const Ordered& node : nodes) {
    purchase.nodes.push_back({node, Use::kUnknown, unneeded_since});
  }
  purchases_.push_back(std::move(purchase));
}

// The next workload of the queue waits for what becomes of this one.
void ProvisioningGuard::Provisioned(const std::string& queue, absl::Time now) {
  const auto trial = trials_.find(queue);
  if (trial == trials_.end() || trial->second.refusals < kTrialAfter) return;
  trial->second.rests_until = std::max(trial->second.rests_until, now + PauseOf(trial->second));
}

void ProvisioningGuard::Judge(const Demand& demand, const DemandMembers* members,
                              const std::function<Use(const std::string& request)>& use_of,
                              absl::Time now) {
  ForgetRefusals(now);
  std::erase_if(trials_,
                [&](const auto& entry) { return entry.second.last < now - options_.backoff_max; });
  if (purchases_.empty()) return;
  const Wanted wanted(demand, members);
  for (Purchase& purchase : purchases_) purchase.over = !JudgeOne(purchase, wanted, use_of, now);
  std::erase_if(purchases_, [](const Purchase& purchase) { return purchase.over; });
}

bool ProvisioningGuard::JudgeOne(Purchase& purchase, const Wanted& wanted,
                                 const std::function<Use(const std::string& request)>& use_of,
                                 absl::Time now) {
  const bool single = purchase.shape.IsOfSinglePods();
  bool all_needed = !purchase.nodes.empty();
  for (Purchase::Node& node : purchase.nodes) {
    node.use = use_of(node.what.request);
    if (node.use == Use::kNeeded) {
      node.useless_since = absl::InfiniteFuture();
      witnesses_.erase(node.what.request);
    }
    all_needed = all_needed && node.use == Use::kNeeded;
    // What never came is judged elsewhere.
    const bool useless = now >= node.useless_since + options_.doubt;
    if (node.use == Use::kGone && useless) Refuse(purchase.shape, node.what, /*certain=*/true, now);
  }
  const size_t gone = std::erase_if(
      purchase.nodes, [](const Purchase::Node& node) { return node.use == Use::kGone; });
  if (all_needed) trials_.erase(purchase.shape.queue);
  // The rest of the nodes may not be enough for a gang.
  if (all_needed || purchase.nodes.empty() || (gone > 0 && !single)) return false;
  std::vector<Purchase::Node*> unneeded;
  for (Purchase::Node& node : purchase.nodes) {
    if (node.use == Use::kUnneeded) unneeded.push_back(&node);
  }
  if (unneeded.empty()) return true;
  // Other pods may have taken some of the nodes of a gang, and the others are not enough for it.
  const bool enough = single || unneeded.size() == purchase.nodes.size();
  if (!enough || !(wanted.ItselfStill(purchase) || wanted.AnotherLikeIt(purchase))) return true;
  for (Purchase::Node* node : unneeded) {
    node->useless_since = std::min(node->useless_since, now);
    Refuse(purchase.shape, node->what, now >= node->useless_since + options_.doubt, now);
  }
  return true;
}

ProvisioningGuard::Refusal& ProvisioningGuard::RefusalOf(const SpecPtr& spec, const Ordered& node,
                                                         absl::Time now) {
  std::vector<Refusal>& row = refused_[HashOfRequirements(*spec)];
  const auto known = std::find_if(row.begin(), row.end(), [&](const Refusal& r) {
    return r.type == node.type && r.pool == node.pool && SameRequirements(*r.spec, *spec);
  });
  if (known != row.end()) return *known;
  return row.emplace_back(Refusal{spec, node.type, node.pool, now, 0});
}

void ProvisioningGuard::Refuse(const Shape& shape, const Ordered& node, bool certain,
                               absl::Time now) {
  for (const verdict::DemandClass& pod_class : shape.classes) {
    if (pod_class.spec == nullptr) continue;
    Refusal& refusal = RefusalOf(pod_class.spec, node, now);
    const bool in_force = refusal.times > 0 && now < refusal.until;
    if (in_force && !(certain && refusal.times == 1)) continue;
    refusal.times = std::max<int64_t>(refusal.times + 1, certain ? 2 : 1);
    if (refusal.times == 1) {
      refusal.until = now + options_.doubt;
      continue;
    }
    refusal.until =
        now + Backoff{options_.backoff_initial, options_.backoff_max}.Pause(refusal.times - 1);
    if (witnesses_.insert(node.request).second) NoteRefusal(shape.queue, now);
  }
}

absl::Duration ProvisioningGuard::PauseOf(const Trial& trial) const {
  return Backoff{std::min(kFirstRest, options_.backoff_initial), options_.backoff_initial}.Pause(
      trial.refusals - kTrialAfter + 1);
}

void ProvisioningGuard::NoteRefusal(const std::string& queue, absl::Time now) {
  Trial& trial = trials_[queue];
  ++trial.refusals;
  trial.last = std::max(trial.last, now);
  if (trial.refusals < kTrialAfter) return;
  trial.rests_until = std::max(trial.rests_until, now + PauseOf(trial));
}

std::optional<absl::Time> ProvisioningGuard::QueueRestsUntil(const std::string& queue,
                                                             absl::Time now) const {
  const auto trial = trials_.find(queue);
  if (trial == trials_.end() || trial->second.rests_until <= now) return std::nullopt;
  return trial->second.rests_until;
}

void ProvisioningGuard::Restore(const std::string& queue, absl::Time ended) {
  NoteRefusal(queue, ended);
}

void ProvisioningGuard::Restore(const DemandItem& item, const Ordered& node, absl::Time ended) {
  for (const verdict::DemandClass& pod_class : item.classes) {
    if (pod_class.spec == nullptr) continue;
    Refusal& refusal = RefusalOf(pod_class.spec, node, ended);
    refusal.times = std::max<int64_t>(refusal.times, 2);
    refusal.until = std::max(refusal.until, ended + options_.backoff_initial);
  }
}

void ProvisioningGuard::ForgetWitnesses(
    const std::function<bool(const std::string& request)>& is_gone) {
  std::erase_if(witnesses_, is_gone);
}

void ProvisioningGuard::Continue(ProvisioningGuard&& former) {
  purchases_ = std::move(former.purchases_);
  refused_ = std::move(former.refused_);
  trials_ = std::move(former.trials_);
  witnesses_ = std::move(former.witnesses_);
}

void ProvisioningGuard::ForgetRefusals(absl::Time now) {
  std::vector<absl::Time> ends;
  for (const auto& [hash, row] : refused_) {
    for (const Refusal& refusal : row) ends.push_back(refusal.until);
  }
  absl::Time before = now - 2 * options_.backoff_max;
  if (ends.size() > kMaxRefusals) {
    const auto first_kept = ends.end() - kMaxRefusals;
    std::nth_element(ends.begin(), first_kept, ends.end());
    before = std::max(before, *first_kept);
  }
  for (auto& [hash, row] : refused_) {
    std::erase_if(row, [&](const Refusal& refusal) { return refusal.until < before; });
  }
  std::erase_if(refused_, [](const auto& entry) { return entry.second.empty(); });
}

std::optional<absl::Time> ProvisioningGuard::RefusedUntil(const model::PodSpec& spec,
                                                          absl::string_view type,
                                                          absl::string_view pool,
                                                          absl::Time now) const {
  if (refused_.empty()) return std::nullopt;
  auto row = refused_.find(HashOfRequirements(spec));
  if (row == refused_.end()) return std::nullopt;
  for (const Refusal& refusal : row->second) {
    if (refusal.type == type && refusal.pool == pool && now < refusal.until &&
        SameRequirements(*refusal.spec, spec)) {
      return refusal.until;
    }
  }
  return std::nullopt;
}

void ProvisioningGuard::PoolChanged(const std::string& pool) {
  for (auto& [hash, row] : refused_) {
    std::erase_if(row, [&](const Refusal& refusal) { return refusal.pool == pool; });
  }
  trials_.clear();
}

}  // namespace fairlead::hook
