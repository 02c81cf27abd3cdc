#include "autoscale-hook/provisioning_guard.h"

#include <algorithm>
#include <utility>

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

std::string ProvisioningGuard::KeyOf(const DemandItem& item) {
  return (item.is_group ? "group/" : "pod/") + item.workload;
}

bool ProvisioningGuard::SamePods(const Classes& a, const Classes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.count == y.count && x.spec != nullptr && y.spec != nullptr &&
           (x.spec == y.spec || *x.spec == *y.spec);
  });
}

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

void ProvisioningGuard::Remember(const DemandItem& item, std::vector<Ordered> nodes) {
  purchases_.push_back({KeyOf(item), item.classes, std::move(nodes)});
}

void ProvisioningGuard::Refuse(const Purchase& purchase, absl::Time now) {
  for (const verdict::DemandClass& pod_class : purchase.classes) {
    if (pod_class.spec == nullptr) continue;
    std::vector<Refusal>& row = refused_[absl::HashOf(*pod_class.spec)];
    for (const Ordered& node : purchase.nodes) {
      auto it = std::find_if(row.begin(), row.end(), [&](const Refusal& r) {
        return r.type == node.type && r.pool == node.pool && *r.spec == *pod_class.spec;
      });
      if (it == row.end()) {
        row.push_back({pod_class.spec, node.type, node.pool, now, 0});
        it = std::prev(row.end());
      }
      if (it->times > 0 && now < it->until) continue;
      ++it->times;
      it->until =
          now +
          (it->times == 1
               ? options_.doubt
               : Backoff{options_.backoff_initial, options_.backoff_max}.Pause(it->times - 1));
    }
  }
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
