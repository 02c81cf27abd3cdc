#include "scheduler/engine/search_budget.h"

#include <algorithm>

namespace fairlead::engine {

void SearchBudget::Begin(uint64_t work, int64_t max_search_work) {
  end_of_work_ = work + static_cast<uint64_t>(std::max<int64_t>(0, max_search_work));
  some_spent_ = false;
  postponed_.clear();
}

void SearchBudget::End() { backlog_ = std::exchange(postponed_, {}); }

void SearchBudget::Postpone(absl::string_view action, absl::string_view uid) {
  postponed_.emplace_back(action, uid);
}

std::vector<std::string> SearchBudget::FirstInLine(absl::string_view action) const {
  std::vector<std::string> uids;
  for (const auto& [of_action, uid] : backlog_) {
    if (of_action == action) uids.push_back(uid);
  }
  return uids;
}

}  // namespace fairlead::engine
