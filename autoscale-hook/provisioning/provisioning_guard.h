// Limits on runaway provisioning: a rate, and a memory of what did not help.
//
// Rate. A token bucket of nodes per demand class (pods of equal specs): `burst` nodes at once,
// refilled with `per_minute`. Nodes are provisioned for an item while the bucket of its first class
// has a token, and take one token each, so that a gang is never cut. A bucket owes at most what a
// minute refills.
//
// Memory. A purchase is the nodes of one plan for one item. One of its nodes is useless if it
// exists, or is on order, and nothing needs it, while what it was bought for still demands nodes:
// the item itself, or an item of the same queue and shape (equal pods; for a gang, as many of
// each). Equal pods change places: a node that one of them finds useless may have been bought for
// another one. The first useless node puts its instance type, in that pool, in `doubt` for such
// pods: the type is not provisioned for them, as a binding may be under way. If the node is useless
// after that, or ends useless, the type backs off for `backoff_initial`, doubling up to
// `backoff_max`: the scheduler refuses the node for reasons that the plan did not see. The memory
// ends when the reason may have changed: with another spec of the pods, with a change of the pool's
// object, and when the back-off has been over for twice `backoff_max`. It keeps at most
// kMaxRefusals entries; those that end first go first. Memory only: a restart finds the same nodes
// unneeded, or provisions one more.
//
// Thread-safety: none. Determinism: hashes find entries, they never order them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/demand.h"
#include "autoscale-hook/provisioning/guard_options.h"

namespace fairlead::hook {

class ProvisioningGuard {
 public:
  explicit ProvisioningGuard(GuardOptions options) : options_(options) {}

  // ---- rate
  // When the item may be planned for: `now`, or later.
  absl::Time AllowedAt(const DemandItem& item, absl::Time now);
  void Provisioned(const DemandItem& item, absl::Time now);  // one node

  // ---- memory
  static constexpr size_t kMaxRefusals = 10000;
  // Nodes of one plan for one item: (name of the request, offer) each.
  struct Ordered {
    std::string request, type, pool;
  };
  void Remember(const DemandItem& item, const std::vector<Ordered>& nodes);
  enum class Use : uint8_t {
    kUnknown,   // on order with pods pipelined to it, or being removed
    kNeeded,    // usable, with pods
    kUnneeded,  // exists or on order, and no pod goes there
    kGone,
  };
  // Judges former purchases by the current demand. O(purchases + demand). `members`: may be null if
  // each item has one.
  void Judge(const Demand& demand, const DemandMembers* members,
             const std::function<Use(const std::string& request)>& use_of, absl::Time now);
  // Until when the type is not provisioned for pods of the spec.
  [[nodiscard]] std::optional<absl::Time> RefusedUntil(const model::PodSpec& spec,
                                                       absl::string_view type,
                                                       absl::string_view pool,
                                                       absl::Time now) const;
  void PoolChanged(const std::string& pool);

 private:
  using SpecPtr = std::shared_ptr<const model::PodSpec>;
  // What is equal in items that wait for the same.
  struct Shape {
    std::string queue;
    std::vector<verdict::DemandClass> classes;
    verdict::DomainDemand domains;
    bool atomic = false;
    // True if each of the pods is placed by itself, and all are equal.
    [[nodiscard]] bool IsOfSinglePods() const {
      return !atomic && classes.size() == 1 && domains.empty();
    }
  };
  struct Purchase {
    struct Node {
      Ordered what;
      Use use = Use::kUnknown;
      absl::Time useless_since = absl::InfiniteFuture();
    };
    bool is_group = false;
    std::string workload;  // of the item
    size_t shape_hash = 0;
    Shape shape;
    std::vector<Node> nodes;
    bool over = false;  // it can be forgotten
  };
  class Wanted;
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
  static bool SamePods(const Shape& shape, const DemandItem& item);
  // False if the purchase can be forgotten.
  bool JudgeOne(Purchase& purchase, const Wanted& wanted,
                const std::function<Use(const std::string& request)>& use_of, absl::Time now);
  // The type did not help: for the first time, or once more. `ended`: neither will the node.
  void Refuse(const Shape& shape, const Ordered& node, bool ended, absl::Time now);
  void ForgetRefusals(absl::Time now);
  Bucket* BucketOf(const DemandItem& item, absl::Time now);

  GuardOptions options_;
  std::vector<Purchase> purchases_;
  std::map<size_t, std::vector<Bucket>> buckets_;   // by hash of the spec
  std::map<size_t, std::vector<Refusal>> refused_;  // by hash of the spec
};

}  // namespace fairlead::hook
