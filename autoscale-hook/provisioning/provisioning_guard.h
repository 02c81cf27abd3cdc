// Memory of provisioning that did not help.
//
// A purchase is the nodes of one plan for one item. One of its nodes is useless if it exists, or is
// on order, and nothing needs it, while what it was bought for still demands nodes: the item
// itself, or an item of the same queue and shape (equal pods; for a gang, as many of each). Equal
// pods change places: a node that one of them finds useless may have been bought for another one.
// The nodes of a gang are useless together: if other pods have taken some of them, the rest is not
// enough for it, and proves nothing.
// Pods are equal if everything that decides where they may run is equal; preferences are not
// compared.
//
// Refusals. The first useless node puts its instance type, in that pool, in `doubt` for such pods:
// the type is not provisioned for them, as a binding may be under way. If the node is useless after
// that, or ends useless, the type backs off for `backoff_initial`, doubling up to `backoff_max`:
// the scheduler refuses the node for reasons that the plan did not see.
//
// Trials. Pods that differ from those by a byte are not equal to them. So a queue is on trial from
// the kTrialAfter-th refusal until a purchase for it has helped: nodes are provisioned for one of
// its workloads after the other, with a pause between them of a minute, doubling up to
// `backoff_initial`.
//
// The memory ends when the reason may have changed: with another spec of the pods, with a change of
// the pool's object, and when the back-off has been over for twice `backoff_max`. It keeps at most
// kMaxRefusals refusals; those that end first go first.
//
// Restarts. The node that proves a refusal is a witness. Its NodeRequest says so when it ends
// (kUnhelpful), and stays until the first back-off would be over (machines/lifecycle.cc): a process
// that starts reads it (Restore). Nodes that still stand are found useless again.
//
// Thread-safety: none. Determinism: hashes find entries, they never order them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "autoscale-hook/demand.h"
#include "autoscale-hook/provisioning/guard_options.h"

namespace fairlead::hook {

class ProvisioningGuard {
 public:
  explicit ProvisioningGuard(GuardOptions options) : options_(options) {}

  static constexpr size_t kMaxRefusals = 10000;
  static constexpr int64_t kTrialAfter = 3;
  // Of a NodeRequest's status: `failure` of a witness.
  static constexpr char kUnhelpful[] = "Unhelpful";

  // Nodes of one plan for one item: (name of the request, offer) each.
  struct Ordered {
    std::string request, type, pool;
  };
  // `unneeded_since`: of nodes that a former process has found unneeded.
  void Remember(const DemandItem& item, const std::vector<Ordered>& nodes,
                absl::Time unneeded_since = absl::InfiniteFuture());
  // Nodes were provisioned for a workload of the queue.
  void Provisioned(const std::string& queue, absl::Time now);
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
  // Until when nothing is provisioned for the queue.
  [[nodiscard]] std::optional<absl::Time> QueueRestsUntil(const std::string& queue,
                                                          absl::Time now) const;
  // The requests of witnesses whose nodes nothing has needed since.
  [[nodiscard]] const std::set<std::string>& witnesses() const { return witnesses_; }
  void ForgetWitnesses(const std::function<bool(const std::string& request)>& is_gone);
  // The request of a witness of another process, that ended at `ended`.
  void Restore(const std::string& queue, absl::Time ended);
  // The same, for an item that it was provisioned for.
  void Restore(const DemandItem& item, const Ordered& node, absl::Time ended);
  void PoolChanged(const std::string& pool);
  // The memory of another one, under the options of this one.
  void Continue(ProvisioningGuard&& former);

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
  struct Refusal {
    SpecPtr spec;
    std::string type, pool;
    absl::Time until;
    int64_t times = 0;
  };
  struct Trial {
    int64_t refusals = 0;  // since a purchase for the queue has helped
    absl::Time last = absl::InfinitePast();
    absl::Time rests_until = absl::InfinitePast();
  };
  [[nodiscard]] absl::Duration PauseOf(const Trial& trial) const;
  void NoteRefusal(const std::string& queue, absl::Time now);
  static bool SamePods(const Shape& shape, const DemandItem& item);
  // False if the purchase can be forgotten.
  bool JudgeOne(Purchase& purchase, const Wanted& wanted,
                const std::function<Use(const std::string& request)>& use_of, absl::Time now);
  // The type did not help: for the first time, or once more. `certain`: no binding is under way.
  void Refuse(const Shape& shape, const Ordered& node, bool certain, absl::Time now);
  void ForgetRefusals(absl::Time now);
  // The refusal of the spec on the node; a new one if there is none.
  Refusal& RefusalOf(const SpecPtr& spec, const Ordered& node, absl::Time now);

  GuardOptions options_;
  std::vector<Purchase> purchases_;
  std::map<size_t, std::vector<Refusal>> refused_;  // by hash of the spec
  std::map<std::string, Trial> trials_;             // by queue
  std::set<std::string> witnesses_;
};

}  // namespace fairlead::hook
