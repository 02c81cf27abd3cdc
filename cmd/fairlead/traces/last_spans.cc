#include "cmd/fairlead/traces/last_spans.h"

namespace fairlead::cmd {

std::optional<tracing::Link> LastSpans::Exchange(const std::string& subject,
                                                 const tracing::Link& span) {
  if (const auto known = by_subject_.find(subject); known != by_subject_.end()) {
    used_.splice(used_.begin(), used_, known->second);
    return std::exchange(known->second->second, span);
  }
  if (most_ == 0) return std::nullopt;
  if (by_subject_.size() >= most_) {
    by_subject_.erase(used_.back().first);
    used_.pop_back();
  }
  used_.emplace_front(subject, span);
  by_subject_[subject] = used_.begin();
  return std::nullopt;
}

}  // namespace fairlead::cmd
