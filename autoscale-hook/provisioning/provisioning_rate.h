// The rate of provisioning, as token buckets of nodes: one for all pods, and one for each class of
// pods. A class is the pods of one queue whose requests are equal up to a factor of two. Pods whose
// specs differ in anything else share a bucket: pods can be varied at will, and a bucket for each
// spec would be no limit.
//
// A bucket has `burst` nodes at first and is refilled with `per_minute`. Nodes are provisioned for
// an item while the bucket of its first class and the bucket of all have a token, and take one
// token of each, so that a gang is never cut. A bucket owes at most what a minute refills.
//
// Requests that a former process created are counted when this process finds them: against all, and
// against each class of their queue, because a request does not say which class it was made for. So
// a process that is restarted again and again provisions no faster than one that runs on.
//
// Thread-safety: none. Determinism: hashes find buckets, they never order them. Complexity: O(1)
// per question and node, and O(requests found) for a new class.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "autoscale-hook/demand.h"
#include "autoscale-hook/provisioning/guard_options.h"

namespace fairlead::hook {

class TokenBucket {
 public:
  struct Rate {
    int64_t burst = 0, per_minute = 0;
  };
  // When the next node is allowed: `now`, or later.
  [[nodiscard]] absl::Time AllowedAt(const Rate& rate, absl::Time now);
  void Take(const Rate& rate, absl::Time now);
  // A node that was taken at a time in the past, in any order.
  void TakeLate(const Rate& rate, absl::Time at);
  // True if it is as good as new.
  [[nodiscard]] bool IsFull(const Rate& rate, absl::Time now);

 private:
  void Refill(const Rate& rate, absl::Time now);
  int64_t micro_tokens_ = 0;
  absl::Time at_ = absl::InfinitePast();  // full before
};

class ProvisioningRate {
 public:
  explicit ProvisioningRate(const GuardOptions& options)
      : of_class_{options.burst, options.per_minute},
        of_all_{options.total_burst, options.total_per_minute} {}

  // When the item may be planned for: `now`, or later.
  absl::Time AllowedAt(const DemandItem& item, absl::Time now);
  void Provisioned(const DemandItem& item, absl::Time now);  // one node
  // A request that another process created.
  void Found(const std::string& queue, absl::Time created, absl::Time now);
  // The tokens of another one, under the options of this one.
  void Continue(ProvisioningRate&& former);

 private:
  struct Class {
    std::string queue;
    std::vector<std::pair<std::string, int>> sizes;  // resource, bits of the amount
    friend bool operator==(const Class&, const Class&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Class& c) {
      return H::combine(std::move(h), c.queue, c.sizes);
    }
  };
  // False for an item without pods.
  static bool ClassOf(const DemandItem& item, Class& of_item);
  TokenBucket& BucketOf(Class of_item, absl::Time now);

  TokenBucket::Rate of_class_, of_all_;
  TokenBucket all_;
  absl::flat_hash_map<Class, TokenBucket> classes_;  // never iterated where order is seen
  absl::flat_hash_map<std::string, std::vector<absl::Time>> found_;  // by queue
};

}  // namespace fairlead::hook
