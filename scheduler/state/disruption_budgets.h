// Which PodDisruptionBudgets cover a pod, and how many evictions each still allows.
//
// A budget's status counts what the API server has let through. Between a decision here and the
// status that shows it there is a gap, in which the same budget would be spent twice: so what was
// decided is counted against it until the status lists the pod (disruptedPods), or until the status
// has changed after the pod was seen to go. In doubt it is counted too long: a victim that is
// spared by mistake has others in its place, and one that is asked for by mistake is refused.
//
// What the eviction API does with a pod (pkg/registry/core/pod/storage/eviction.go): one that does
// not run yet, or is going already, is let through without any budget; one of several budgets is
// refused whatever they allow; one that is not ready is let through, and not counted, if the budget
// says so (PodDisruptionBudget::LetsUnhealthyGo).
//
// Ownership: values; the listener outlives it. Thread-safety: none, the owner's thread. Complexity:
// a change of a budget O(log n); Covering O(budgets of the namespace), nothing if there is none.
// Determinism: budgets of a pod by name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "scheduler/model/disruption_budget.h"
#include "scheduler/model/object_meta.h"
#include "scheduler/state/ids.h"

namespace fairlead::state {

using BudgetIds = absl::InlinedVector<BudgetId, 2>;

class DisruptionBudgets {
 public:
  // Told of each change: kBudget, or kBudgetGone while the budget is still there (change_log.h).
  using Listener = std::function<void(BudgetId, bool gone)>;
  explicit DisruptionBudgets(Listener listener = nullptr) : listener_(std::move(listener)) {}

  // True if it selects or allows something else than before.
  bool Upsert(const model::PodDisruptionBudget& budget);
  // `uid` empty: any. True if it was there.
  bool Remove(absl::string_view ns, absl::string_view name, absl::string_view uid);

  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] BudgetIds Covering(absl::string_view ns, const model::StringMap& labels) const;

  // Of a budget that exists. Evictions that it still allows, those in flight taken off; never
  // negative.
  [[nodiscard]] int64_t Left(BudgetId id) const;
  // It lets a pod that runs and is not ready go without counting it.
  [[nodiscard]] bool LetsUnhealthyGo(BudgetId id) const {
    return RowOf(id).budget.LetsUnhealthyGo();
  }
  [[nodiscard]] std::string Name(BudgetId id) const;  // "namespace/name"
  [[nodiscard]] const model::PodDisruptionBudget& Object(BudgetId id) const {
    return RowOf(id).budget;
  }
  // Ids by namespace and name.
  template <typename F>
  void ForEach(F f) const {
    for (const auto& [key, row] : rows_) f(row.id);
  }
  // Grows with every change of what it selects, allows or counts.
  [[nodiscard]] uint64_t Version(BudgetId id) const { return RowOf(id).version; }

  // ---- evictions in flight, by the pod's uid
  // The eviction of a pod that these cover was decided. Idempotent.
  void Charge(const std::string& uid, absl::string_view pod_name, const BudgetIds& covering);
  // It was not let through: it counts no longer.
  void Release(absl::string_view uid);
  // The pod is seen to be terminating, or is gone.
  void SeenLeaving(absl::string_view uid);
  [[nodiscard]] size_t in_flight() const { return in_flight_.size(); }

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name
  struct Row {
    BudgetId id = 0;
    model::PodDisruptionBudget budget;
    uint64_t version = 0;
    int64_t charged = 0;
  };
  struct InFlight {
    std::string pod_name;
    BudgetIds budgets;  // that do not show it yet
    bool leaving = false;
  };
  [[nodiscard]] const Row& RowOf(BudgetId id) const;
  Row* FindRow(BudgetId id);
  // Takes off what the new status shows.
  void Reconcile(Row& row);
  void Erase(BudgetId id, InFlight& flight);
  void Tell(BudgetId id, bool gone = false) const {
    if (listener_) listener_(id, gone);
  }

  std::map<Key, Row> rows_;
  absl::flat_hash_map<BudgetId, Key> keys_;
  absl::flat_hash_map<std::string, InFlight> in_flight_;
  BudgetId next_id_ = 1;
  Listener listener_;
};

}  // namespace fairlead::state
