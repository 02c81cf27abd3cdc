#include "scheduler/engine/search_budget.h"

#include <algorithm>

namespace fairlead::engine {

void SearchBudget::Begin(int64_t max_search_work) {
  max_work_ = static_cast<uint64_t>(std::max<int64_t>(0, max_search_work));
  end_of_work_.reset();
  postponed_.clear();
  searched_.clear();
}

void SearchBudget::End(bool whole) {
  // What waits longer stays before what was postponed for the first time.
  const std::set<Search> again(postponed_.begin(), postponed_.end());
  std::erase_if(line_, [&](const Search& search) {
    return !again.contains(search) && (whole || searched_.contains(search));
  });
  const std::set<Search> former(line_.begin(), line_.end());
  for (Search& search : postponed_) {
    if (!former.contains(search)) line_.push_back(std::move(search));
  }
  postponed_.clear();
}

std::optional<SearchBudget::Turn> SearchBudget::TakeTurn(absl::string_view action,
                                                         absl::string_view uid, uint64_t work) {
  const uint64_t whole = work + max_work_;
  const auto searched = [&] { searched_.emplace(action, uid); };
  if (!end_of_work_.has_value()) {
    end_of_work_ = whole;
    searched();
    return Turn{whole, true};
  }
  if (!line_.empty() && line_.front().first == action && line_.front().second == uid) {
    searched();
    return Turn{whole, true};
  }
  if (work > *end_of_work_) return std::nullopt;
  searched();
  return Turn{*end_of_work_, false};
}

void SearchBudget::Postpone(absl::string_view action, absl::string_view uid) {
  postponed_.emplace_back(action, uid);
}

std::vector<std::string> SearchBudget::FirstInLine(absl::string_view action) const {
  std::vector<std::string> uids;
  for (const auto& [of_action, uid] : line_) {
    if (of_action == action) uids.push_back(uid);
  }
  return uids;
}

}  // namespace fairlead::engine
