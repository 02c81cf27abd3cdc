#include "queues/reported_usage.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "queues/fair_share.h"

namespace fairlead::queues {

void ReportedUsage::Take(const model::UsageReport& report) {
  if (report_.has_value() && report.at < report_->at) return;
  report_ = report;
  ++version_;
}

absl::Time ReportedUsage::stale_at() const {
  return report_.has_value() ? report_->at + staleness_ : absl::InfiniteFuture();
}

absl::Time ReportedUsage::as_of() const {
  return report_.has_value() ? report_->at : absl::InfinitePast();
}

absl::StatusOr<std::vector<model::Resources>> ReportedUsage::UsageOf(const QueueTree& tree,
                                                                     absl::Time now) const {
  if (!report_.has_value()) return absl::UnavailableError("usage of queues: no report yet");
  if (now >= stale_at()) {
    return absl::UnavailableError(absl::StrCat(
        "usage of queues: the last report is ", absl::FormatDuration(now - report_->at),
        " old; it is believed for ", absl::FormatDuration(staleness_)));
  }
  std::vector<model::Resources> usage(tree.size());
  for (const model::UsageReport::Part& part : report_->parts) {
    const std::optional<QueueId> queue = tree.Find(part.queue);
    const std::optional<model::ResourceIndex> resource = tree.names().Find(part.resource);
    if (!queue || !resource) continue;
    usage[*queue].Set(*resource, std::clamp<int64_t>(part.nano, 0, kNano));
  }
  return usage;
}

}  // namespace fairlead::queues
