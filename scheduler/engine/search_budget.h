// How much the searches for victims of one cycle may cost, and which workloads the next cycle
// searches for first because this one could not afford to.
//
// Work is counted (Placer::work()), never measured in time, so that decisions do not depend on the
// speed of the machine. A unit costs about as much as one filter evaluation: each of these, and in
// each try of victims a pod that is evicted and a node whose free amounts are looked at again.
//
// Fairness: postponed searches form one line for all actions, in the order of being postponed
// first. In each cycle the first of the line has a whole budget of its own, whatever the actions
// before it have spent; so each is searched for within as many cycles as it has others before it.
// A cycle spends two budgets at most, and what the last search of each exceeds them by.
//
// Ownership: the engine's; persists over cycles, not over restarts. Thread-safety: the owner's
// thread. Complexity: O(1) or O(log postponed), but FirstInLine() and End() O(postponed).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace fairlead::engine {

class SearchBudget {
 public:
  struct Turn {
    uint64_t end_of_work = 0;  // the search may go up to this total of work
    // It has a budget that no other search has spent from: whatever it leaves undone, the workload
    // has had its turn.
    bool whole = false;
  };

  // Before the first search of a cycle.
  void Begin(int64_t max_search_work);
  // After the last search of a cycle that had any right to search.
  // `whole` false: some workloads had no turn in the cycle, and keep their places in the line.
  void End(bool whole = true);

  // A search for the workload, by its uid, may begin; none if the budget is spent. `work`: spent so
  // far, by whatever.
  std::optional<Turn> TakeTurn(absl::string_view action, absl::string_view uid, uint64_t work);
  // The workload was not searched for by the action, or not to the end.
  void Postpone(absl::string_view action, absl::string_view uid);
  // Uids that the last cycle postponed for the action, the first of them first.
  [[nodiscard]] std::vector<std::string> FirstInLine(absl::string_view action) const;

 private:
  using Search = std::pair<std::string, std::string>;  // action, uid

  uint64_t max_work_ = 0;
  std::optional<uint64_t> end_of_work_;  // set by the first turn of the cycle
  std::vector<Search> line_;             // of the last cycle
  std::vector<Search> postponed_;        // in this one
  std::set<Search> searched_;            // in this one, to the end or not
};

}  // namespace fairlead::engine
