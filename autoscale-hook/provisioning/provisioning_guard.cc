#include "autoscale-hook/provisioning/provisioning_guard.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "base/write_attempts.h"

namespace fairlead::hook {
namespace {

constexpr int64_t kToken = 1000000;
constexpr size_t kMaxBuckets = 10000;

const std::shared_ptr<const model::PodSpec>* FirstSpec(const DemandItem& item) {
  for (const verdict::DemandClass& pod_class : item.classes) {
    if (pod_class.spec != nullptr) return &pod_class.spec;
  }
  return nullptr;
}

}  // namespace

// Counts tell gangs apart; a single pod more or less is the same demand.
bool ProvisioningGuard::SamePods(const Shape& shape, const DemandItem& item) {
  if (shape.atomic != item.atomic || shape.domains != item.domains) return false;
  return std::equal(shape.classes.begin(), shape.classes.end(), item.classes.begin(),
                    item.classes.end(), [&](const auto& x, const auto& y) {
                      return (!shape.atomic || x.count == y.count) && x.spec != nullptr &&
                             y.spec != nullptr && (x.spec == y.spec || *x.spec == *y.spec);
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
      if (added) known->second = absl::HashOf(*pod_class.spec);
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

ProvisioningGuard::Bucket* ProvisioningGuard::BucketOf(const DemandItem& item, absl::Time now) {
  const auto* spec = FirstSpec(item);
  if (spec == nullptr) return nullptr;
  const int64_t full = options_.burst * kToken;
  if (buckets_.size() > kMaxBuckets) {
    std::erase_if(buckets_, [&](const auto& entry) {
      return std::all_of(entry.second.begin(), entry.second.end(), [&](const Bucket& b) {
        return now - b.at > absl::Hours(1) || now < b.at;
      });
    });
  }
  std::vector<Bucket>& row = buckets_[absl::HashOf(**spec)];
  auto it =
      std::find_if(row.begin(), row.end(), [&](const Bucket& b) { return *b.spec == **spec; });
  if (it == row.end()) {
    row.push_back({*spec, full, now});
    return &row.back();
  }
  if (now > it->at) {
    const int64_t seconds = std::min<int64_t>(absl::ToInt64Seconds(now - it->at), 86400);
    if (seconds > 0) {
      it->micro_tokens =
          std::min(full, it->micro_tokens + seconds * options_.per_minute * kToken / 60);
      it->at += absl::Seconds(seconds);
    }
  } else {
    it->at = now;  // a clock that was set back
  }
  return &*it;
}

absl::Time ProvisioningGuard::AllowedAt(const DemandItem& item, absl::Time now) {
  const Bucket* bucket = BucketOf(item, now);
  if (bucket == nullptr || bucket->micro_tokens >= kToken) return now;
  const int64_t each_second = std::max<int64_t>(1, options_.per_minute * kToken / 60);
  const int64_t lacks = kToken - bucket->micro_tokens;
  return bucket->at + absl::Seconds((lacks + each_second - 1) / each_second);
}

void ProvisioningGuard::Provisioned(const DemandItem& item, absl::Time now) {
  Bucket* bucket = BucketOf(item, now);
  if (bucket == nullptr) return;
  bucket->micro_tokens = std::max(bucket->micro_tokens - kToken, -options_.per_minute * kToken);
}

void ProvisioningGuard::Remember(const DemandItem& item, const std::vector<Ordered>& nodes) {
  Purchase purchase;
  purchase.is_group = item.is_group;
  purchase.workload = item.workload;
  const Demand none;
  purchase.shape_hash = Wanted(none).HashOf(item);
  purchase.shape = {item.queue, item.classes, item.domains, item.atomic};
  for (const Ordered& node : nodes) purchase.nodes.push_back({node});
  purchases_.push_back(std::move(purchase));
}

void ProvisioningGuard::Judge(const Demand& demand, const DemandMembers* members,
                              const std::function<Use(const std::string& request)>& use_of,
                              absl::Time now) {
  ForgetRefusals(now);
  if (purchases_.empty()) return;
  const Wanted wanted(demand, members);
  for (Purchase& purchase : purchases_) purchase.over = !JudgeOne(purchase, wanted, use_of, now);
  std::erase_if(purchases_, [](const Purchase& purchase) { return purchase.over; });
}

bool ProvisioningGuard::JudgeOne(Purchase& purchase, const Wanted& wanted,
                                 const std::function<Use(const std::string& request)>& use_of,
                                 absl::Time now) {
  const bool single = purchase.shape.IsOfSinglePods();
  bool all_needed = true;
  for (Purchase::Node& node : purchase.nodes) {
    node.use = use_of(node.what.request);
    if (node.use == Use::kNeeded) node.useless_since = absl::InfiniteFuture();
    all_needed = all_needed && node.use == Use::kNeeded;
    // What never came is judged elsewhere.
    const bool useless = now >= node.useless_since + options_.doubt;
    if (node.use == Use::kGone && useless) Refuse(purchase.shape, node.what, /*ended=*/true, now);
  }
  const size_t gone = std::erase_if(
      purchase.nodes, [](const Purchase::Node& node) { return node.use == Use::kGone; });
  // The rest of the nodes may not be enough for a gang.
  if (all_needed || purchase.nodes.empty() || (gone > 0 && !single)) return false;
  std::vector<Purchase::Node*> unneeded;
  for (Purchase::Node& node : purchase.nodes) {
    if (node.use == Use::kUnneeded) unneeded.push_back(&node);
  }
  if (unneeded.empty()) return true;
  // Nodes for another gang: some of them may be taken, and the others are not enough for this one.
  const bool enough = single || unneeded.size() == purchase.nodes.size();
  if (!wanted.ItselfStill(purchase) && !(enough && wanted.AnotherLikeIt(purchase))) return true;
  for (Purchase::Node* node : unneeded) {
    node->useless_since = std::min(node->useless_since, now);
    Refuse(purchase.shape, node->what, false, now);
  }
  return true;
}

void ProvisioningGuard::Refuse(const Shape& shape, const Ordered& node, bool ended,
                               absl::Time now) {
  for (const verdict::DemandClass& pod_class : shape.classes) {
    if (pod_class.spec == nullptr) continue;
    std::vector<Refusal>& row = refused_[absl::HashOf(*pod_class.spec)];
    auto it = std::find_if(row.begin(), row.end(), [&](const Refusal& r) {
      return r.type == node.type && r.pool == node.pool && *r.spec == *pod_class.spec;
    });
    if (it == row.end()) {
      row.push_back({pod_class.spec, node.type, node.pool, now, 0});
      it = std::prev(row.end());
    }
    const bool in_force = it->times > 0 && now < it->until;
    if (in_force && !(ended && it->times == 1)) continue;
    it->times = std::max<int64_t>(it->times + 1, ended ? 2 : 1);
    it->until =
        now + (it->times == 1
                   ? options_.doubt
                   : Backoff{options_.backoff_initial, options_.backoff_max}.Pause(it->times - 1));
  }
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
  auto row = refused_.find(absl::HashOf(spec));
  if (row == refused_.end()) return std::nullopt;
  for (const Refusal& refusal : row->second) {
    if (refusal.type == type && refusal.pool == pool && now < refusal.until &&
        *refusal.spec == spec) {
      return refusal.until;
    }
  }
  return std::nullopt;
}

void ProvisioningGuard::PoolChanged(const std::string& pool) {
  for (auto& [hash, row] : refused_) {
    std::erase_if(row, [&](const Refusal& refusal) { return refusal.pool == pool; });
  }
}

}  // namespace fairlead::hook
