// What the last finished search of each action has said about workloads that wait. A search that is
// postponed says nothing new, so until it is finished the workload's verdict says what the last one
// has said. Members of an equivalence class share their answers, as they share their verdict.
//
// Ownership: the engine's, borrows the index; persists over cycles, not over restarts.
// Thread-safety: the owner's thread. Complexity: O(1); End() O(answers).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "scheduler/engine/pending.h"

namespace fairlead::engine {

struct SearchAnswer {
  std::vector<std::string> details;  // for the verdict, one clause each
  bool spared = false;               // PodDisruptionBudgets kept pods from being victims
};
using SearchAnswerPtr = std::shared_ptr<const SearchAnswer>;  // steps of one kind share it

class SearchAnswers {
 public:
  explicit SearchAnswers(const PendingIndex& pending) : pending_(pending) {}

  // After the last search of a cycle: answers that were neither recorded nor recalled in it are
  // forgotten, but not if some workloads had no turn in it (`whole` false).
  void End(bool whole = true);
  void Record(absl::string_view action, const state::Workload& workload, SearchAnswerPtr answer);
  // The answer of a former cycle, which is kept. Null if no search for the workload was finished
  // since it waits for what the action gives.
  SearchAnswerPtr Recall(absl::string_view action, const state::Workload& workload);

 private:
  // An equivalence class, or a workload that is alone in one. Ids of workloads are reused.
  using Subject = std::pair<uint64_t, std::string>;  // id of the class, or 0; uid of the workload
  using Rows = absl::flat_hash_map<Subject, SearchAnswerPtr>;
  [[nodiscard]] Subject SubjectOf(const state::Workload& workload) const;

  const PendingIndex& pending_;
  std::map<std::string, Rows, std::less<>> former_, current_;  // by action
};

}  // namespace fairlead::engine
