// The tree of queues: parents, which queues are usable, and the bounds of each.
//
// It is built incrementally from Queue objects in any order: a child may come before its parent. A
// queue has a problem if its parent is missing (orphan), it is on a parent cycle, or its spec is
// invalid. Everything below it then has the problem too: its jobs run nowhere, as in KAI. Such a
// queue keeps an id, so that its running pods stay accounted for.
//
// Units: base units (milli-CPU, bytes, milli-GPU); weights in millionths. kUnlimited: no bound.
// Thread-safety: one thread. Ownership: keeps a reference to the ResourceNames, which must outlive
// it. Complexity: a change costs the size of the changed queue's subtree.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "scheduler/model/resources.h"
#include "scheduler/model/workload_objects.h"

namespace fairlead::queues {

// Dense. Belongs to one name for the life of the tree: a queue that is deleted and created again
// gets the old id, and no other queue ever does. So a ledger may keep charges of a deleted queue.
using QueueId = uint32_t;

struct Bounds {
  int64_t quota = model::kUnlimited;
  int64_t limit = model::kUnlimited;
  int64_t weight_micro = 0;
  // The guaranteed quota: the part of the quota that no other queue may borrow. It is quota -
  // lending limit, at most the limit; zero without a lending limit and for an unlimited quota.
  int64_t kept = 0;
};

using QueuePath = absl::InlinedVector<QueueId, 6>;

// Is told of each change of a queue object that a decision can see, after it. Links and problems
// of the queues below it may have changed with it. `reshaped`: shape_version() has grown.
class QueueObserver {
 public:
  virtual ~QueueObserver() = default;
  virtual void OnQueueChange(QueueId queue, bool reshaped) = 0;
};

class QueueTree {
 public:
  explicit QueueTree(model::ResourceNames& names);
  QueueTree(const QueueTree&) = delete;
  QueueTree& operator=(const QueueTree&) = delete;

  QueueId Upsert(const model::Queue& queue);
  // Does nothing if there is no such queue.
  void Remove(absl::string_view name);
  // Pods run that were started under this queue, and its object has not been seen: it was deleted
  // before this process began. From now on it is what a deleted queue is, below `parent` (empty: a
  // top queue). False if the name has an id already; or if it is longer than a name can be, or
  // there are kMostRemembered such queues: tenants write names.
  bool Remember(absl::string_view name, absl::string_view parent);
  static constexpr size_t kMostRemembered = 1000;

  // Not owned; told from now on, after those that were added before it.
  void AddObserver(QueueObserver* observer) { observers_.push_back(observer); }
  void RemoveObserver(QueueObserver* observer) { std::erase(observers_, observer); }

  // Grows with every change that a decision can see; unchanged by status and annotations.
  [[nodiscard]] uint64_t version() const { return version_; }
  // Grows when a parent link, the set of queues or resources() changes. A ledger must then be
  // rebuilt, and charges that depend on the set of resources (variant.h) made again.
  [[nodiscard]] uint64_t shape_version() const { return shape_version_; }

  [[nodiscard]] std::optional<QueueId> Find(absl::string_view name) const;
  // As Find, with deleted queues: pods that still run in one stay charged to it.
  [[nodiscard]] std::optional<QueueId> FindEver(absl::string_view name) const;
  // Ids are 0 .. size()-1, deleted queues included.
  [[nodiscard]] size_t size() const { return rows_.size(); }
  [[nodiscard]] bool Exists(QueueId id) const { return rows_[id].exists; }
  [[nodiscard]] const model::Queue& Spec(QueueId id) const { return rows_[id].queue; }
  [[nodiscard]] const std::string& Name(QueueId id) const { return rows_[id].queue.meta.name; }

  // Why nothing may run in this queue, for people; empty if it is usable.
  [[nodiscard]] const std::optional<std::string>& Problem(QueueId id) const {
    return rows_[id].problem;
  }
  [[nodiscard]] bool Usable(QueueId id) const { return rows_[id].exists && !rows_[id].problem; }
  // Only leaves run jobs. A queue that any other queue names as its parent is not a leaf, whether
  // that other queue is usable or not.
  [[nodiscard]] bool IsLeaf(QueueId id) const { return rows_[id].exists && !rows_[id].declared; }

  // None for top queues, orphans, members of a cycle and deleted queues: following Parent() ends.
  [[nodiscard]] std::optional<QueueId> Parent(QueueId id) const { return rows_[id].parent; }
  // The queue whose totals include this one's: Parent(), or the declared one if one of the two was
  // deleted. So what runs below a deleted queue stays charged to all that were above it. Following
  // ChargedTo() ends. O(1) for a queue with Parent(), else O(depth).
  [[nodiscard]] std::optional<QueueId> ChargedTo(QueueId id) const;
  // Older first, then by name; usable or not. Valid until the tree changes.
  [[nodiscard]] absl::Span<const QueueId> Children(QueueId id) const { return rows_[id].children; }
  // The existing queues without Parent(), in the same order.
  [[nodiscard]] absl::Span<const QueueId> Roots() const { return roots_; }
  // From the queue itself to its top.
  [[nodiscard]] QueuePath Ancestors(QueueId id) const;
  // The deepest queue that has both at or below it; none if their tops differ.
  [[nodiscard]] std::optional<QueueId> LowestCommonAncestor(QueueId a, QueueId b) const;
  // The two queues just below the lowest common ancestor, on a's and on b's side, where the two
  // compete. The tops if there is no common ancestor; a queue itself if it is the ancestor.
  [[nodiscard]] std::pair<QueueId, QueueId> Diverging(QueueId a, QueueId b) const;

  // CPU, memory and GPU, then every other resource that some queue names, ascending.
  [[nodiscard]] absl::Span<const model::ResourceIndex> resources() const { return resources_; }
  [[nodiscard]] const model::ResourceNames& names() const { return names_; }
  // True if any queue has guaranteed quota (Bounds::kept).
  [[nodiscard]] bool AnyKept() const { return keepers_ > 0; }
  // Unlimited quota and limit, and no weight, for a resource that the queue does not name.
  [[nodiscard]] const Bounds& BoundsOf(QueueId id, model::ResourceIndex resource) const {
    const std::vector<Bounds>& bounds = rows_[id].bounds;
    return resource < bounds.size() ? bounds[resource] : unbounded_;
  }

 private:
  struct Row {
    bool exists = false;
    bool remembered = false;  // by Remember(), and its object has not been seen since
    model::Queue queue;
    std::vector<Bounds> bounds;  // by ResourceIndex
    std::optional<QueueId> parent;
    std::vector<QueueId> children;
    bool declared = false;  // some existing queue names it as its parent
    bool keeps = false;     // some bound has `kept`
    std::string invalid;    // what is wrong with the spec itself
    std::optional<std::string> problem;
    QueueId faulty = 0;  // the queue that causes the problem: this one or one above
  };

  QueueId IdOf(absl::string_view name);
  void ReadSpec(Row& row);
  void CountExtraResources(const model::Queue& queue, int by);
  void Declare(QueueId id);
  void Undeclare(QueueId id);
  void SetParent(QueueId id, std::optional<QueueId> parent);
  void Attach(QueueId id);
  void Detach(QueueId id);
  std::vector<QueueId>& SiblingList(const Row& row);
  // Updates the links and the problems of a queue and of all that declare it above them.
  void Relink(QueueId id);
  [[nodiscard]] std::vector<QueueId> DeclaredSubtree(QueueId id) const;
  [[nodiscard]] std::vector<QueueId> CycleThrough(QueueId id) const;
  [[nodiscard]] std::optional<QueueId> DeclaredParent(QueueId id) const;
  // ChargedTo() without its check for cycles.
  [[nodiscard]] std::optional<QueueId> LastParent(QueueId id) const;
  void RenewProblem(QueueId id);
  // The queue has changed; `former_shape`: shape_version() before.
  void Tell(QueueId queue, uint64_t former_shape);

  std::vector<QueueObserver*> observers_;
  model::ResourceNames& names_;
  uint64_t version_ = 0;
  uint64_t shape_version_ = 0;
  const Bounds unbounded_;
  std::vector<Row> rows_;
  absl::flat_hash_map<std::string, QueueId> ids_;  // for ever, of deleted queues too
  // Many workloads of one queue come one after the other.
  mutable QueueId found_last_ = 0;
  // Parent name -> existing queues that declare it, whether a queue of that name exists or not.
  absl::flat_hash_map<std::string, std::vector<QueueId>> declared_;
  std::vector<QueueId> roots_;
  std::vector<model::ResourceIndex> resources_;
  std::map<model::ResourceIndex, int> extra_uses_;
  int keepers_ = 0;
  size_t remembered_ = 0;
};

}  // namespace fairlead::queues
