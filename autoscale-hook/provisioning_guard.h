// Limits on runaway provisioning: a rate, and a memory of what did not help.
//
// Rate. A token bucket of nodes per demand class (pods of equal specs): `burst` nodes at once,
// refilled with `per_minute`. An item may be planned while the bucket of its first class has a
// token, and takes one token per node, so that a gang is never cut. A bucket owes at most what a
// minute refills.
//
// Memory. A purchase helped when its nodes are needed. It did not help if its workload still
// demands nodes for the same pods while one of the nodes exists, or is on order, and nothing needs
// it. Then the scheduler refuses the node for reasons that the plan did not see. That instance
// type, in that pool, is not provisioned for these pods for `doubt`. If it is still so then, it
// backs off for `backoff_initial`, doubling up to `backoff_max`. A change of the pods makes another
// demand; a change of the pool's object clears its memory. Memory only: a restart finds the same
// nodes unneeded, or provisions one more.
//
// Thread-safety: none. Determinism: hashes find entries, they never order them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/demand.h"
#include "autoscale-hook/guard_options.h"

namespace fairlead::hook {

class ProvisioningGuard {
 public:
  explicit ProvisioningGuard(GuardOptions options) : options_(options) {}

  // ---- rate
  // When the item may be planned for: `now`, or later.
  absl::Time AllowedAt(const DemandItem& item, absl::Time now);
  void Provisioned(const DemandItem& item, absl::Time now);  // one node

  // ---- memory
  // Nodes of one plan for one item: (name of the request, offer) each.
  struct Ordered {
    std::string request, type, pool;
  };
  void Remember(const DemandItem& item, std::vector<Ordered> nodes);
  enum class Use : uint8_t {
    kUnknown,   // on order with pods pipelined to it, or being removed
    kNeeded,    // usable, with pods
    kUnneeded,  // exists or on order, and no pod goes there
    kGone,
  };
  // Judges former purchases by the current demand. `use_of` returns the state of a node.
  template <typename UseOf>
  void Judge(const Demand& demand, const UseOf& use_of, absl::Time now) {
    std::map<std::string, const DemandItem*> wanted;
    if (!purchases_.empty()) {
      for (const DemandItem& item : demand) wanted[KeyOf(item)] = &item;
    }
    std::erase_if(purchases_, [&](const Purchase& purchase) {
      bool unneeded = false, all_needed = true;
      for (const Ordered& node : purchase.nodes) {
        const Use use = use_of(node.request);
        if (use == Use::kGone) return true;  // it did not come, which is judged elsewhere
        unneeded = unneeded || use == Use::kUnneeded;
        all_needed = all_needed && use == Use::kNeeded;
      }
      auto item = wanted.find(purchase.key);
      const bool still = item != wanted.end() && SamePods(purchase.classes, item->second->classes);
      if (still && unneeded) Refuse(purchase, now);
      return all_needed;
    });
  }
  // Until when the type is not provisioned for pods of the spec.
  [[nodiscard]] std::optional<absl::Time> RefusedUntil(const model::PodSpec& spec,
                                                       absl::string_view type,
                                                       absl::string_view pool,
                                                       absl::Time now) const;
  [[nodiscard]] bool refuses_any() const { return !refused_.empty(); }
  void PoolChanged(const std::string& pool);

 private:
  using Classes = std::vector<verdict::DemandClass>;
  using SpecPtr = std::shared_ptr<const model::PodSpec>;
  struct Purchase {
    std::string key;
    Classes classes;
    std::vector<Ordered> nodes;
  };
  struct Bucket {
    SpecPtr spec;
    int64_t micro_tokens = 0;
    absl::Time at;
  };
  struct Refusal {
    SpecPtr spec;
    std::string type, pool;
    absl::Time until;
    int64_t times = 0;
  };
  static std::string KeyOf(const DemandItem& item);
  static bool SamePods(const Classes& a, const Classes& b);
  void Refuse(const Purchase& purchase, absl::Time now);
  Bucket* BucketOf(const DemandItem& item, absl::Time now);

  GuardOptions options_;
  std::vector<Purchase> purchases_;
  std::map<size_t, std::vector<Bucket>> buckets_;   // by hash of the spec
  std::map<size_t, std::vector<Refusal>> refused_;  // by hash of the spec
};

}  // namespace fairlead::hook
