#include "scheduler/engine/history.h"

#include "base/check.h"
#include "base/status_macros.h"

namespace fairlead::engine {

History::History(const std::optional<queues::UsageOptions>& options) : options_(options) {
  if (!options_.has_value()) return;
  state_.on = true;
  if (options_->reported) {
    reported_.emplace(options_->staleness);
    return;
  }
  absl::StatusOr<queues::UsageRecord> record = queues::UsageRecord::Create(*options_);
  FAIRLEAD_CHECK(record.ok(), record.status().ToString());
  record_ = *std::move(record);
}

void History::Renew(absl::Time now, const queues::QueueTree& tree,
                    const queues::QueueLedger& ledger, const model::Resources& total,
                    std::vector<model::Resources>& usage) {
  if (!options_.has_value()) return;
  if (record_.has_value() && now >= record_->NextSample()) {
    record_->Record(now, tree, ledger, total);
  }
  const uint64_t version = record_.has_value() ? record_->version() : reported_->version();
  const bool went_stale =
      reported_.has_value() && state_.known.ok() && now >= reported_->stale_at();
  if (made_from_ == version && !went_stale) return;
  made_from_ = version;
  absl::StatusOr<std::vector<model::Resources>> known =
      record_.has_value() ? record_->UsageOf(tree, now) : reported_->UsageOf(tree, now);
  state_.known = known.status();
  state_.as_of = record_.has_value() ? record_->LastSample() : reported_->as_of();
  usage = known.ok() ? *std::move(known) : std::vector<model::Resources>();
}

absl::Time History::wake_at() const {
  if (record_.has_value()) return record_->NextSample();
  return reported_.has_value() && state_.known.ok() ? reported_->stale_at()
                                                    : absl::InfiniteFuture();
}

bool History::Take(const model::UsageReport& report) {
  if (!reported_.has_value()) return false;
  reported_->Take(report);
  return true;
}

absl::Status History::NotRecorded() const {
  return absl::FailedPreconditionError(state_.on ? "usage is reported by others, not recorded"
                                                 : "usage is not recorded");
}

absl::StatusOr<std::string> History::Encode(size_t max_bytes) const {
  if (!record_.has_value()) return NotRecorded();
  return record_->Encode(max_bytes);
}

absl::Status History::Restore(absl::string_view text) {
  if (!record_.has_value()) return NotRecorded();
  FAIRLEAD_ASSIGN_OR_RETURN(record_, queues::UsageRecord::Decode(text, *options_));
  made_from_.reset();
  return absl::OkStatus();
}

uint64_t History::version() const { return record_.has_value() ? record_->version() : 0; }

}  // namespace fairlead::engine
