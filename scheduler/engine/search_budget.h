// How much the searches for victims of one cycle may cost, and which workloads the next cycle
// searches for first because this one could not afford to.
//
// Work is counted in filter evaluations (Placer::work()), never in time, so that decisions do not
// depend on the speed of the machine. Fairness: a workload whose search was postponed comes first
// in the next cycle, before all others and in the order of being postponed; so each is searched for
// within a bounded number of cycles, however much those before it cost.
//
// Ownership: the engine's; persists over cycles, not over restarts. Thread-safety: the owner's
// thread. Complexity: O(1), but FirstInLine() O(postponed).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace fairlead::engine {

class SearchBudget {
 public:
  // Before the first search of a cycle. `work`: spent so far, by whatever.
  void Begin(uint64_t work, int64_t max_search_work);
  // After the last search of a cycle that had any right to search.
  void End();

  // Up to which total of work searches may go.
  [[nodiscard]] uint64_t end_of_work() const { return end_of_work_; }
  [[nodiscard]] bool IsSpent(uint64_t work) const { return work > end_of_work_; }
  // Returns true for the first search of the cycle: it has the whole budget, so whatever it leaves
  // undone, it has had its turn.
  bool TakeTurn() { return !std::exchange(some_spent_, true); }

  // The workload, by its uid, is searched for by the same action first in the next cycle.
  void Postpone(absl::string_view action, absl::string_view uid);
  // Uids that the last cycle postponed for the action, the first of them first.
  [[nodiscard]] std::vector<std::string> FirstInLine(absl::string_view action) const;

 private:
  using Backlog = std::vector<std::pair<std::string, std::string>>;  // action, uid

  uint64_t end_of_work_ = 0;
  bool some_spent_ = false;
  Backlog backlog_;    // of the last cycle
  Backlog postponed_;  // of this one
};

}  // namespace fairlead::engine
