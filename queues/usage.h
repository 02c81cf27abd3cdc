// What each queue has used of the cluster in the past: the input of history-weighted fair share.
//
// The usage of a resource by a queue is (its allocation, integrated over the window) / (what the
// cluster could allocate, integrated over that window), both with the same decay: KAI's definition.
// It is relative to the whole cluster at every level of the tree.
//
// UsageSource is the port. UsageRecord (usage_record.h) is the program's own record, ReportedUsage
// (reported_usage.h) what an adapter received. Thread-safety: of the implementation.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "queues/tree.h"
#include "scheduler/model/resources.h"

namespace fairlead::queues {

enum class WindowType : uint8_t {
  kSliding,   // the last `window` of time
  kTumbling,  // since the latest of tumbling_start + n * window
  kCron,      // since `cron` last fired
};
// "sliding", "tumbling", "cron": KAI's words.
absl::StatusOr<WindowType> ParseWindowType(absl::string_view text);

// KAI's usageParams, with KAI's defaults.
struct UsageOptions {
  bool reported = false;  // another system keeps the record: model::UsageReport
  absl::Duration half_life = absl::ZeroDuration();  // zero: no decay
  absl::Duration window = absl::Hours(7 * 24);      // ignored by kCron except for the resolution
  WindowType window_type = WindowType::kSliding;
  absl::Time tumbling_start = absl::UnixEpoch();
  std::string cron = {};                              // base/cron.h lists the supported syntax
  absl::Duration sample_interval = absl::Minutes(1);  // or between two reports
  // Older data counts as stale: usage is unknown then, and a longer gap counts as not observed.
  absl::Duration staleness = absl::Minutes(5);
};
// InvalidArgument that names the field. half_life is 0 or from 1 s to 10 years, window from 1 min
// to 1 year, sample_interval from 1 s to the staleness, staleness up to the window.
absl::Status Validate(const UsageOptions& options);

class UsageSource {
 public:
  virtual ~UsageSource() = default;
  // By QueueId, in billionths of the cluster's capacity over the window, 0 .. 10^9: the format of
  // FairShareOptions::usage. An error says why usage is unknown; the caller then divides without
  // history (an empty vector), as KAI does.
  virtual absl::StatusOr<std::vector<model::Resources>> UsageOf(const QueueTree& tree,
                                                                absl::Time now) const = 0;
};

}  // namespace fairlead::queues
