// Usage that another system counts and reports from time to time: a time series database, through
// an adapter (usage-prometheus). The other source is the program's own record (usage_record.h).
//
// Reports name queues and resources by name; names that the tree does not have are ignored. So a
// queue that is deleted and created again keeps its history.
//
// Thread-safety: one thread. Complexity: Take O(1), UsageOf O(the report).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "queues/usage.h"
#include "scheduler/model/usage_report.h"

namespace fairlead::queues {

class ReportedUsage final : public UsageSource {
 public:
  explicit ReportedUsage(absl::Duration staleness) : staleness_(staleness) {}

  // Replaces the previous report, unless the previous one is newer.
  void Take(const model::UsageReport& report);
  // Grows with each report that was accepted.
  [[nodiscard]] uint64_t version() const { return version_; }
  // When the report becomes stale; infinite future before the first.
  [[nodiscard]] absl::Time stale_at() const;
  // Time of the report; infinite past before the first.
  [[nodiscard]] absl::Time as_of() const;

  // Unavailable before the first report and from stale_at() on.
  absl::StatusOr<std::vector<model::Resources>> UsageOf(const QueueTree& tree,
                                                        absl::Time now) const override;

 private:
  absl::Duration staleness_;
  std::optional<model::UsageReport> report_;
  uint64_t version_ = 0;
};

}  // namespace fairlead::queues
