#include "core/unservable_demand.h"

#include <algorithm>

namespace fairlead::core {

bool UnservableDemand::Update(const std::vector<Answer>& answers, absl::Time now) {
  bool changed = false;
  wake_at_ = absl::InfiniteFuture();
  for (const Answer& answer : answers) {
    if (kinds_.contains(answer.kind)) {
      rows_.at(answer.kind).seen = now;
      if (answer.served) changed |= ChargeAgain(answer.kind, now);
    } else if (answer.refused) {
      changed |= Refused(answer, now);
    } else if (answer.served) {
      rows_.erase(answer.kind);
    }
  }
  absl::erase_if(rows_, [&](const auto& entry) {
    if (now < entry.second.seen + kForgotten) return false;
    kinds_.erase(entry.first);
    return true;
  });
  return changed;
}

bool UnservableDemand::Refused(const Answer& answer, absl::Time now) {
  if (rows_.size() >= kMaxKinds && !rows_.contains(answer.kind)) return false;
  Row& row = rows_[answer.kind];
  row.seen = now;
  if (answer.served) row.charged_again = 0;
  if (row.charged_again > 0) row.stays_until = now + kPauses.Pause(row.charged_again);
  kinds_.insert(answer.kind);
  return true;
}

bool UnservableDemand::ChargeAgain(uint64_t kind, absl::Time now) {
  Row& row = rows_.at(kind);
  if (now < row.stays_until) {
    wake_at_ = std::min(wake_at_, row.stays_until);
    return false;
  }
  ++row.charged_again;
  kinds_.erase(kind);
  return true;
}

}  // namespace fairlead::core
