#include "autoscale-hook/provisioning/provisioning_rate.h"

#include <algorithm>
#include <bit>

namespace fairlead::hook {
namespace {

constexpr int64_t kToken = 1000000;
constexpr size_t kMaxClasses = 10000;

int Bits(int64_t amount) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(amount, 0))));
}

}  // namespace

void TokenBucket::Refill(const Rate& rate, absl::Time now) {
  const int64_t full = rate.burst * kToken;
  if (at_ == absl::InfinitePast()) {
    micro_tokens_ = full;
    at_ = now;
    return;
  }
  micro_tokens_ = std::min(micro_tokens_, full);
  at_ = std::min(at_, now);  // a clock that was set back
  const int64_t seconds = std::clamp<int64_t>(absl::ToInt64Seconds(now - at_), 0, 86400);
  if (seconds == 0) return;
  micro_tokens_ = std::min(full, micro_tokens_ + seconds * rate.per_minute * kToken / 60);
  at_ += absl::Seconds(seconds);
  if (micro_tokens_ == full) at_ = now;
}

absl::Time TokenBucket::AllowedAt(const Rate& rate, absl::Time now) {
  Refill(rate, now);
  if (micro_tokens_ >= kToken) return now;
  const int64_t each_second = std::max<int64_t>(1, rate.per_minute * kToken / 60);
  const int64_t lacks = kToken - micro_tokens_;
  return at_ + absl::Seconds((lacks + each_second - 1) / each_second);
}

void TokenBucket::Take(const Rate& rate, absl::Time now) {
  Refill(rate, now);
  micro_tokens_ = std::max(micro_tokens_ - kToken, -rate.per_minute * kToken);
}

void TokenBucket::TakeLate(const Rate& rate, absl::Time at) { Take(rate, std::max(at, at_)); }

bool TokenBucket::IsFull(const Rate& rate, absl::Time now) {
  Refill(rate, now);
  return micro_tokens_ >= rate.burst * kToken;
}

bool ProvisioningRate::ClassOf(const DemandItem& item, Class& of_item) {
  for (const verdict::DemandClass& pods : item.classes) {
    if (pods.spec == nullptr) continue;
    of_item.queue = item.queue;
    for (const auto& [resource, amount] : pods.spec->requests) {
      of_item.sizes.emplace_back(resource, Bits(amount));
    }
    const model::GpuShare& share = pods.spec->gpu_share;
    if (share.IsSet()) {
      of_item.sizes.emplace_back("share", Bits(share.fraction_milli));
      of_item.sizes.emplace_back("share memory", Bits(share.memory_mib));
      of_item.sizes.emplace_back("share devices", Bits(share.devices));
    }
    return true;
  }
  return false;
}

TokenBucket& ProvisioningRate::BucketOf(Class of_item, absl::Time now) {
  if (classes_.size() > kMaxClasses) {
    absl::erase_if(classes_, [&](auto& entry) { return entry.second.IsFull(of_class_, now); });
  }
  const auto [entry, added] = classes_.try_emplace(std::move(of_item));
  if (added) {
    if (const auto found = found_.find(entry->first.queue); found != found_.end()) {
      for (const absl::Time created : found->second) {
        entry->second.TakeLate(of_class_, created);
      }
    }
  }
  return entry->second;
}

absl::Time ProvisioningRate::AllowedAt(const DemandItem& item, absl::Time now) {
  Class of_item;
  if (!ClassOf(item, of_item)) return now;
  return std::max(BucketOf(std::move(of_item), now).AllowedAt(of_class_, now),
                  all_.AllowedAt(of_all_, now));
}

void ProvisioningRate::Provisioned(const DemandItem& item, absl::Time now) {
  Class of_item;
  if (!ClassOf(item, of_item)) return;
  BucketOf(std::move(of_item), now).Take(of_class_, now);
  all_.Take(of_all_, now);
}

void ProvisioningRate::Found(const std::string& queue, absl::Time created, absl::Time now) {
  // Of what is older every bucket is full again.
  const auto refilled_in = [](const TokenBucket::Rate& rate) {
    return absl::Minutes((rate.burst + rate.per_minute) / rate.per_minute + 1);
  };
  const absl::Duration matters = std::max(refilled_in(of_class_), refilled_in(of_all_));
  if (created < now - matters) return;
  created = std::min(created, now);
  all_.TakeLate(of_all_, created);
  for (auto& [known, bucket] : classes_) {
    if (known.queue == queue) bucket.TakeLate(of_class_, created);
  }
  std::vector<absl::Time>& found = found_[queue];
  found.push_back(created);
  std::erase_if(found, [&](absl::Time at) { return at < now - matters; });
}

void ProvisioningRate::Continue(ProvisioningRate&& former) {
  all_ = former.all_;
  classes_ = std::move(former.classes_);
  found_ = std::move(former.found_);
}

}  // namespace fairlead::hook
