#include "queues/usage_record.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "queues/fair_share.h"
#include "queues/half_life.h"

namespace fairlead::queues {
namespace {

constexpr int64_t kBucketsPerWindow = 168;  // hours of a week
constexpr size_t kMinCellsToCompact = 64;

// Rounds towards the past.
int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

template <typename T>
T At(const std::vector<T>& values, size_t i) {
  return i < values.size() ? values[i] : T{0};
}

template <typename T>
T& Grown(std::vector<T>& values, size_t i) {
  if (values.size() <= i) values.resize(i + 1, T{0});
  return values[i];
}

void AddHeld(const std::vector<int64_t>& held, int64_t span_ms, std::vector<Uint128>& sums) {
  for (size_t i = 0; i < held.size(); ++i) {
    if (held[i] <= 0) continue;
    Grown(sums, i) += static_cast<Uint128>(held[i]) * static_cast<Uint128>(span_ms);
  }
}

void AddSums(const std::vector<Uint128>& from, std::vector<Uint128>& to) {
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != 0) Grown(to, i) += from[i];
  }
}

void AddWeighted(const std::vector<Uint128>& from, uint64_t weight, std::vector<Uint128>& to) {
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != 0) Grown(to, i) += Weighted(from[i], weight);
  }
}

// part / whole in billionths, at most one.
int64_t NanoFraction(Uint128 part, Uint128 whole) {
  if (whole == 0) return 0;
  return static_cast<int64_t>(
      MultiplyDivide(static_cast<uint64_t>(kNano), std::min(part, whole), whole).floor);
}

}  // namespace

absl::StatusOr<UsageRecord> UsageRecord::Create(const UsageOptions& options) {
  FAIRLEAD_ASSIGN_OR_RETURN(UsageWindow window, UsageWindow::Create(options));
  return UsageRecord(std::move(window));
}

UsageRecord::UsageRecord(UsageWindow window)
    : window_(std::move(window)), options_(window_.options()) {
  const int64_t window_ms = absl::ToInt64Milliseconds(options_.window);
  width_ms_ = (window_ms + kBucketsPerWindow - 1) / kBucketsPerWindow;
}

absl::Time UsageRecord::NextSample() const { return LastSample() + options_.sample_interval; }

absl::Time UsageRecord::LastSample() const {
  return last_ms_ ? absl::FromUnixMillis(*last_ms_) : absl::InfinitePast();
}

void UsageRecord::Record(absl::Time now, const QueueTree& tree, const QueueLedger& ledger,
                         const model::Resources& capacity) {
  Advance(absl::ToUnixMillis(now));
  ++version_;
  std::vector<uint32_t> columns;
  std::fill(held_capacity_.begin(), held_capacity_.end(), 0);
  for (const model::ResourceIndex r : tree.resources()) {
    columns.push_back(ColumnOf(tree.names().Name(r)));
    Grown(held_capacity_, columns.back()) = std::max<int64_t>(0, capacity[r]);
  }
  std::fill(held_.begin(), held_.end(), 0);
  // Includes deleted queues: pods that still run in them use the cluster.
  for (QueueId q = 0; q < tree.size(); ++q) {
    std::optional<uint32_t> queue;
    for (size_t i = 0; i < columns.size(); ++i) {
      const int64_t amount = ledger.allocated(q, tree.resources()[i]);
      if (amount <= 0) continue;
      if (!queue) queue = QueueOf(tree.Name(q));
      Grown(held_, CellOf(*queue, columns[i])) = amount;
    }
  }
}

absl::StatusOr<std::vector<model::Resources>> UsageRecord::UsageOf(const QueueTree& tree,
                                                                   absl::Time now) const {
  if (!last_ms_) return absl::UnavailableError("usage record: no sample yet");
  const absl::Duration age = now - absl::FromUnixMillis(*last_ms_);
  if (age > options_.staleness) {
    return absl::UnavailableError(absl::StrCat("usage record: the last sample is ",
                                               absl::FormatDuration(age), " old, more than ",
                                               absl::FormatDuration(options_.staleness)));
  }
  std::vector<model::Resources> usage(tree.size());
  if (buckets_.empty()) return usage;
  const Bucket& open = buckets_.back();
  // Column -> index of the resource, if the tree's names have it.
  std::vector<std::optional<model::ResourceIndex>> index;
  for (const std::string& name : columns_) index.push_back(tree.names().Find(name));
  for (QueueId q = 0; q < tree.size(); ++q) {
    const auto it = queue_of_.find(tree.Name(q));
    if (it == queue_of_.end()) continue;
    const std::vector<uint32_t>& cells = queues_[it->second].cells;
    for (size_t column = 0; column < cells.size(); ++column) {
      const uint32_t cell = cells[column];
      if (cell == kNoCell || !index[column]) continue;
      const Uint128 part = At(closed_, cell) + At(open.amounts, cell);
      const Uint128 whole = At(closed_capacity_, column) + At(open.capacity, column);
      usage[q].Set(*index[column], NanoFraction(part, whole));
    }
  }
  return usage;
}

void UsageRecord::Forget(int64_t now_ms) {
  const int64_t start = window_.Start(now_ms);
  const bool sliding = options_.window_type == WindowType::kSliding;
  const size_t before = buckets_.size();
  while (!buckets_.empty() &&
         (sliding ? buckets_.front().end_ms <= start : buckets_.front().start_ms < start)) {
    buckets_.pop_front();
  }
  if (buckets_.size() != before) SumClosed();
}

// Integrates the allocations up to now.
void UsageRecord::Advance(int64_t now_ms) {
  const int64_t staleness_ms = absl::ToInt64Milliseconds(options_.staleness);
  if (last_ms_ && now_ms < *last_ms_) {
    if (*last_ms_ - now_ms <= staleness_ms) return;
    while (!buckets_.empty() && buckets_.back().start_ms >= now_ms) buckets_.pop_back();
    // A sum cannot be split: a bucket that began before now and ends after it counts as past.
    if (!buckets_.empty()) buckets_.back().end_ms = std::min(buckets_.back().end_ms, now_ms);
    last_ms_ = now_ms;
    SumClosed();
  }
  Forget(now_ms);
  if (last_ms_ && now_ms - *last_ms_ <= staleness_ms) {
    const int64_t window_start = window_.Start(now_ms);
    for (int64_t at = std::max(*last_ms_, window_start); at < now_ms;) {
      OpenBucket(at, window_start);
      Bucket& open = buckets_.back();
      const int64_t until = std::min(now_ms, open.end_ms);
      AddHeld(held_, until - at, open.amounts);
      AddHeld(held_capacity_, until - at, open.capacity);
      at = until;
    }
  }
  last_ms_ = now_ms;
}

// Makes the last bucket the one that contains that time.
void UsageRecord::OpenBucket(int64_t at_ms, int64_t window_start_ms) {
  if (!buckets_.empty() && at_ms < buckets_.back().end_ms) return;
  const int64_t origin = options_.window_type == WindowType::kTumbling
                             ? absl::ToUnixMillis(options_.tumbling_start)
                             : 0;
  Bucket bucket;
  bucket.start_ms = origin + FloorDivide(at_ms - origin, width_ms_) * width_ms_;
  bucket.end_ms = bucket.start_ms + width_ms_;
  if (options_.window_type != WindowType::kSliding) {
    bucket.start_ms = std::max(bucket.start_ms, window_start_ms);
  }
  if (!buckets_.empty()) bucket.start_ms = std::max(bucket.start_ms, buckets_.back().end_ms);
  buckets_.push_back(std::move(bucket));
  if (buckets_.size() > kMaxBuckets) buckets_ = MergePairs(buckets_);
  Compact();
  SumClosed();
}

void UsageRecord::Merge(const Bucket& older, Bucket& newer) {
  newer.start_ms = older.start_ms;
  AddSums(older.capacity, newer.capacity);
  AddSums(older.amounts, newer.amounts);
}

// The open bucket stays unchanged; the others are merged in pairs, the newest with its neighbour.
std::deque<UsageRecord::Bucket> UsageRecord::MergePairs(const std::deque<Bucket>& buckets) {
  std::deque<Bucket> merged;
  if (buckets.empty()) return merged;
  merged.push_front(buckets.back());
  for (size_t i = buckets.size() - 1; i > 0;) {
    Bucket bucket = buckets[--i];
    if (i > 0) Merge(buckets[--i], bucket);
    merged.push_front(std::move(bucket));
  }
  return merged;
}

void UsageRecord::SumClosed() {
  closed_.clear();
  closed_capacity_.clear();
  if (buckets_.empty()) return;
  const int64_t half_life_ms = absl::ToInt64Milliseconds(options_.half_life);
  for (size_t i = 0; i + 1 < buckets_.size(); ++i) {
    const uint64_t weight = DecayWeight(buckets_.back().end_ms - buckets_[i].end_ms, half_life_ms);
    if (weight == 0) continue;
    AddWeighted(buckets_[i].amounts, weight, closed_);
    AddWeighted(buckets_[i].capacity, weight, closed_capacity_);
  }
}

bool UsageRecord::IsLive(uint32_t cell) const {
  if (At(held_, cell) > 0) return true;
  return std::any_of(buckets_.begin(), buckets_.end(),
                     [cell](const Bucket& bucket) { return At(bucket.amounts, cell) != 0; });
}

// Removes queues that have held nothing within the window, once they are the majority.
void UsageRecord::Compact() {
  if (cells_.size() < kMinCellsToCompact) return;
  std::vector<uint32_t> live;
  for (uint32_t cell = 0; cell < cells_.size(); ++cell) {
    if (IsLive(cell)) live.push_back(cell);
  }
  if (2 * live.size() > cells_.size()) return;
  const std::vector<Queue> queues = std::exchange(queues_, {});
  const std::vector<Cell> cells = std::exchange(cells_, {});
  queue_of_.clear();
  for (const uint32_t cell : live) {
    CellOf(QueueOf(queues[cells[cell].queue].name), cells[cell].column);
  }
  const auto keep = [&live](auto& values) {
    std::remove_reference_t<decltype(values)> kept;
    for (const uint32_t cell : live) kept.push_back(At(values, cell));
    values = std::move(kept);
  };
  keep(held_);
  for (Bucket& bucket : buckets_) keep(bucket.amounts);
}

uint32_t UsageRecord::ColumnOf(absl::string_view resource) {
  const auto it = std::find(columns_.begin(), columns_.end(), resource);
  const auto column = static_cast<uint32_t>(it - columns_.begin());
  if (it == columns_.end()) columns_.emplace_back(resource);
  return column;
}

uint32_t UsageRecord::QueueOf(absl::string_view name) {
  const auto it = queue_of_.find(name);
  if (it != queue_of_.end()) return it->second;
  const auto queue = static_cast<uint32_t>(queues_.size());
  queues_.push_back({std::string(name), {}});
  queue_of_.emplace(std::string(name), queue);
  return queue;
}

uint32_t UsageRecord::CellOf(uint32_t queue, uint32_t column) {
  std::vector<uint32_t>& cells = queues_[queue].cells;
  if (cells.size() <= column) cells.resize(column + 1, kNoCell);
  if (cells[column] == kNoCell) {
    cells[column] = static_cast<uint32_t>(cells_.size());
    cells_.push_back({queue, column});
  }
  return cells[column];
}

}  // namespace fairlead::queues
