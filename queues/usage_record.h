// The program's own record of what the queues hold over time: samples in, usage out.
//
// A sample holds until the next one. Amounts are integrated exactly, in base units times
// milliseconds, into buckets of 1/168 of the window (an hour of a week); decay goes by bucket, so
// it steps once a bucket and does not depend on when it is asked. A sliding window drops whole
// buckets: it is between one window and one bucket more long. Tumbling and cron windows begin
// exactly at their boundary.
//
// Time that nobody observed (a gap longer than the staleness period: a restart, a lost leader)
// counts neither as usage nor as capacity. A sample from before the last one does not count twice;
// a record from further in the future than the staleness period loses what lies in the future.
//
// Queues and resources are told apart by name: history outlives a restart, and a queue that is
// deleted and made again keeps its own for as long as the window reaches.
//
// Memory is bounded: at most 256 buckets (older ones are merged in pairs when a cron window is
// long) of 16 bytes for each resource that a queue has held within the window.
// Thread-safety: one thread. Complexity: Record and UsageOf O(queues * resources); once a bucket
// O(buckets * queues * resources).
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

  // From now on the queues hold what the ledger says, of this capacity (what fair share divides).
  void Record(absl::Time now, const QueueTree& tree, const QueueLedger& ledger,
              const model::Resources& capacity);
  // When the next sample should be taken; InfinitePast before the first.
  [[nodiscard]] absl::Time NextSample() const;
  // When the last one was; InfinitePast before the first.
  [[nodiscard]] absl::Time LastSample() const;
  // Grows with each sample: what UsageOf gave stays right until then (or until it is stale).
  [[nodiscard]] uint64_t version() const { return version_; }

  // Unavailable before the first sample and when the last one is stale.
  absl::StatusOr<std::vector<model::Resources>> UsageOf(const QueueTree& tree,
                                                        absl::Time now) const override;

  // All of it as one line of printable ASCII, for a ConfigMap or an annotation: versioned, with a
  // checksum. If it does not fit into `max_bytes`, older time is coarsened until it does:
  // neighbours are merged in pairs; the sums stay exact. ResourceExhausted if one bucket does not
  // fit.
  [[nodiscard]] absl::StatusOr<std::string> Encode(size_t max_bytes) const;
  // What Encode gave: such a record goes on exactly as the first would have. Buckets keep their
  // length where the window is another one now. DataLoss for what is truncated or corrupt,
  // InvalidArgument for a version that is not understood; nothing is half read.
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
