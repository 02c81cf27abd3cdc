// What the last finished search of each action has said about each workload that waits. A search
// that is postponed says nothing new, so until it is finished the workload's verdict says what the
// last one has said.
//
// Ownership: the engine's; persists over cycles, not over restarts. Thread-safety: the owner's
// thread. Complexity: O(1); End() O(answers).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "base/inline_string.h"
#include "scheduler/state/cluster_state.h"

namespace fairlead::engine {

struct SearchAnswer {
  std::vector<std::string> details;  // for the verdict, one clause each
  bool spared = false;               // PodDisruptionBudgets kept pods from being victims
};
using SearchAnswerPtr = std::shared_ptr<const SearchAnswer>;  // workloads of one kind share it

class SearchAnswers {
 public:
  // After the last search of a cycle: answers that were neither recorded nor recalled in it are
  // forgotten.
  void End();
  void Record(absl::string_view action, const state::Workload& workload, SearchAnswerPtr answer);
  // The answer of a former cycle, which is kept. Null if no search for the workload was finished
  // since it waits for what the action gives.
  SearchAnswerPtr Recall(absl::string_view action, const state::Workload& workload);

 private:
  struct Row {
    InlineString uid;  // ids are reused
    SearchAnswerPtr answer;
  };
  using Rows = absl::flat_hash_map<state::WorkloadId, Row>;
  std::map<std::string, Rows, std::less<>> former_, current_;  // by action
};

}  // namespace fairlead::engine
