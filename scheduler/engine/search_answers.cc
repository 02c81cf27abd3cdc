#include "scheduler/engine/search_answers.h"

namespace fairlead::engine {

SearchAnswers::Subject SearchAnswers::SubjectOf(const state::Workload& workload) const {
  const EquivalenceClass* equivalents = pending_.EquivalenceClassOf(workload.id);
  if (equivalents != nullptr && equivalents->IsPlain()) return {equivalents->id, ""};
  return {0, workload.uid};
}

void SearchAnswers::End(bool whole) {
  for (const auto& [action, rows] : former_) {
    if (!whole && !rows.empty()) current_[action].insert(rows.begin(), rows.end());
  }
  std::swap(former_, current_);
  for (auto& [action, rows] : current_) rows.clear();
}

void SearchAnswers::Record(absl::string_view action, const state::Workload& workload,
                           SearchAnswerPtr answer) {
  auto rows = current_.find(action);
  if (rows == current_.end()) rows = current_.try_emplace(std::string(action)).first;
  rows->second[SubjectOf(workload)] = std::move(answer);
}

SearchAnswerPtr SearchAnswers::Recall(absl::string_view action, const state::Workload& workload) {
  const auto rows = former_.find(action);
  if (rows == former_.end()) return nullptr;
  const auto row = rows->second.find(SubjectOf(workload));
  if (row == rows->second.end()) return nullptr;
  Record(action, workload, row->second);
  return row->second;
}

}  // namespace fairlead::engine
