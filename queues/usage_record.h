// The program's own record of what the queues hold over time: samples in, usage out.
//
// A sample is valid until the next one. Amounts are integrated exactly, in base units times
// milliseconds, into buckets of 1/168 of the window (an hour of a week). Decay is computed per
// bucket: it changes once per bucket and does not depend on the time of the query. A sliding window
// drops whole buckets, so its length is the window plus up to one bucket. Tumbling and cron windows
// begin exactly at their boundary.
//
// Time without samples (a gap longer than the staleness period: a restart, a lost leader) counts
// neither as usage nor as capacity. A sample from before the last one does not count twice. A
// record from further in the future than the staleness period loses its future part.
//
// Queues and resources are identified by name. So history outlives a restart, and a queue that is
// deleted and created again keeps its own history within the window.
//
// Memory is bounded: at most 256 buckets (older ones are merged in pairs when a cron window is
// long) of 16 bytes for each resource that a queue has held within the window. Thread-safety: one
// thread. Complexity: Record and UsageOf O(queues * resources); once per bucket O(buckets * queues
// * resources).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "queues/exact.h"
#include "queues/ledger.h"
#include "queues/usage_window.h"

namespace fairlead::queues {

class UsageRecord final : public UsageSource {
 public:
  static constexpr size_t kMaxBuckets = 256;

  static absl::StatusOr<UsageRecord> Create(const UsageOptions& options);

  // Records that from now on the queues hold what the ledger says, of this capacity (the amount
  // that fair share divides).
  void Record(absl::Time now, const QueueTree& tree, const QueueLedger& ledger,
              const model::Resources& capacity);
  // When the next sample should be taken; InfinitePast before the first.
  [[nodiscard]] absl::Time NextSample() const;
  // Time of the last sample; InfinitePast before the first.
  [[nodiscard]] absl::Time LastSample() const;
  // Grows with each sample. A result of UsageOf is valid while this is unchanged (or until it is
  // stale).
  [[nodiscard]] uint64_t version() const { return version_; }

  // Unavailable before the first sample and when the last one is stale.
  absl::StatusOr<std::vector<model::Resources>> UsageOf(const QueueTree& tree,
                                                        absl::Time now) const override;

  // The whole record as one line of printable ASCII, for a ConfigMap or an annotation: versioned,
  // with a checksum. If it does not fit into `max_bytes`, neighbouring old buckets are merged in
  // pairs until it does; the sums stay exact. ResourceExhausted if one bucket does not fit.
  [[nodiscard]] absl::StatusOr<std::string> Encode(size_t max_bytes) const;
  // Reads the result of Encode: the record continues exactly as the first would have. Buckets keep
  // their length if the window has changed. DataLoss for truncated or corrupt text, InvalidArgument
  // for an unknown version; never returns a partial record.
  static absl::StatusOr<UsageRecord> Decode(absl::string_view text, const UsageOptions& options);

  [[nodiscard]] size_t bucket_count() const { return buckets_.size(); }
  // (queue, resource) pairs that take memory.
  [[nodiscard]] size_t cell_count() const { return cells_.size(); }

 private:
  friend class UsageCodec;

  struct Queue {
    std::string name;
    std::vector<uint32_t> cells;  // by column; kNoCell
  };
  struct Cell {
    uint32_t queue;
    uint32_t column;
  };
  // Sums over [start, end), in base units times milliseconds. Missing entries are zero.
  struct Bucket {
    int64_t start_ms = 0;
    int64_t end_ms = 0;
    std::vector<Uint128> capacity;  // by column
    std::vector<Uint128> amounts;   // by cell
  };
  static constexpr uint32_t kNoCell = ~uint32_t{0};

  explicit UsageRecord(UsageWindow window);

  void Advance(int64_t now_ms);
  void Forget(int64_t now_ms);
  void OpenBucket(int64_t at_ms, int64_t window_start_ms);
  // The sums over all buckets but the last, each weighted by its distance from the last.
  void SumClosed();
  void Compact();
  [[nodiscard]] bool IsLive(uint32_t cell) const;
  uint32_t ColumnOf(absl::string_view resource);
  uint32_t QueueOf(absl::string_view name);
  uint32_t CellOf(uint32_t queue, uint32_t column);
  static void Merge(const Bucket& older, Bucket& newer);
  static std::deque<Bucket> MergePairs(const std::deque<Bucket>& buckets);

  UsageWindow window_;
  UsageOptions options_;
  int64_t width_ms_ = 0;
  uint64_t version_ = 0;

  std::vector<std::string> columns_;  // resource names
  std::vector<Queue> queues_;
  absl::flat_hash_map<std::string, uint32_t> queue_of_;
  std::vector<Cell> cells_;

  std::optional<int64_t> last_ms_;      // of the last sample
  std::vector<int64_t> held_;           // since then, by cell
  std::vector<int64_t> held_capacity_;  // by column
  std::deque<Bucket> buckets_;          // oldest first; the last one is open
  std::vector<Uint128> closed_;         // by cell
  std::vector<Uint128> closed_capacity_;
};

}  // namespace fairlead::queues
