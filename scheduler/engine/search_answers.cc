#include "scheduler/engine/search_answers.h"

#include <utility>

namespace fairlead::engine {

void SearchAnswers::End() {
  std::swap(former_, current_);
  for (auto& [action, rows] : current_) rows.clear();
}

void SearchAnswers::Record(absl::string_view action, const state::Workload& workload,
                           SearchAnswerPtr answer) {
  auto rows = current_.find(action);
  if (rows == current_.end()) rows = current_.try_emplace(std::string(action)).first;
  rows->second[workload.id] = {InlineString(workload.uid), std::move(answer)};
}

SearchAnswerPtr SearchAnswers::Recall(absl::string_view action, const state::Workload& workload) {
  const auto rows = former_.find(action);
  if (rows == former_.end()) return nullptr;
  const auto row = rows->second.find(workload.id);
  if (row == rows->second.end() || row->second.uid.view() != workload.uid) return nullptr;
  Record(action, workload, row->second.answer);
  return row->second.answer;
}

}  // namespace fairlead::engine
