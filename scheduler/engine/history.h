// What queues have used before, as the engine takes it into fair share: from the record that it
// keeps itself, or from reports of another program (queues::UsageOptions::reported).
//
// Thread-safety: one thread. Complexity: Renew O(queues * resources), and only where something is
// new. Errors: where nothing is known, shares are divided without history, as KAI divides them, and
// state() says why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "queues/ledger.h"
#include "queues/reported_usage.h"
#include "queues/tree.h"
#include "queues/usage_record.h"
#include "scheduler/model/usage_report.h"

namespace fairlead::engine {

// As of the last cycle.
struct HistoryState {
  bool on = false;
  absl::Status known;  // OK also where history is off
  absl::Time as_of = absl::InfinitePast();
};

class History {
 public:
  // The options have to be valid (queues::UsageWindow::Create).
  explicit History(const std::optional<queues::UsageOptions>& options);

  // Samples what the queues hold if it is time, and sets `usage` to what fair share takes
  // (queues::FairShareOptions::usage).
  void Renew(absl::Time now, const queues::QueueTree& tree, const queues::QueueLedger& ledger,
             const model::Resources& total, std::vector<model::Resources>& usage);
  // A queue object has changed: what queues have used is looked up again, by their names. O(1).
  void QueuesChanged() { made_from_.reset(); }
  // When Renew has something to do without any event.
  [[nodiscard]] absl::Time wake_at() const;
  [[nodiscard]] const HistoryState& state() const { return state_; }

  // False, and nothing happens, where history does not come from reports.
  bool Take(const model::UsageReport& report);

  // The engine's own record: see Engine.
  [[nodiscard]] absl::StatusOr<std::string> Encode(size_t max_bytes) const;
  absl::Status Restore(absl::string_view text);
  [[nodiscard]] uint64_t version() const;

 private:
  [[nodiscard]] absl::Status NotRecorded() const;

  const std::optional<queues::UsageOptions> options_;
  // One of them, or none.
  std::optional<queues::UsageRecord> record_;
  std::optional<queues::ReportedUsage> reported_;
  // The source's version that the usage that was given last was made from; none: queues have
  // changed since.
  std::optional<uint64_t> made_from_;
  HistoryState state_;
};

}  // namespace fairlead::engine
