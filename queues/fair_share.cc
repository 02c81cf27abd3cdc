#include "queues/fair_share.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "queues/exact.h"

namespace fairlead::queues {
namespace {

using model::kUnlimited;
using model::ResourceIndex;

// The largest weight of history: keeps every product of DivideBand within 126 bits.
constexpr int64_t kMaxMicro = 1000 * kMicro;
constexpr int64_t kMaxWeightSum = int64_t{1} << 61;

int64_t Requestable(const LevelQueue& queue) {
  return queue.limit == kUnlimited ? queue.requested : std::min(queue.limit, queue.requested);
}

// A queue that takes part in the division over quota.
struct Taker {
  LevelQueue* queue;
  uint64_t weight;  // reduced by the common divisor of its level
  Uint128 part;     // w_i of the current round, over the round's sum
  // The fraction of a unit that the last round owed: base units, then `rest` over that round's sum.
  // All takers that are unsatisfied at the end were in that last round, so these values compare.
  uint64_t owed_base;
  Uint128 owed_rest;
};
using Takers = std::vector<Taker>;

int64_t GiveQuota(int64_t total, absl::Span<LevelQueue> queues) {
  Int128 left = total;
  for (LevelQueue& queue : queues) {
    const int64_t quota = queue.quota == kUnlimited ? total : queue.quota;
    queue.fair_share = std::max<int64_t>(0, std::min(quota, Requestable(queue)));
    left -= queue.fair_share;
  }
  return left > 0 ? static_cast<int64_t>(left) : 0;
}

// The queues that want more and have a weight, by descending priority.
Takers FindTakers(absl::Span<LevelQueue> queues) {
  Takers takers;
  uint64_t divisor = 0;
  const int64_t cap = kMaxWeightSum / static_cast<int64_t>(queues.size() + 1);
  for (LevelQueue& queue : queues) {
    if (queue.weight_micro <= 0 || Requestable(queue) <= queue.fair_share) continue;
    const auto weight = static_cast<uint64_t>(std::min(queue.weight_micro, cap));
    divisor = std::gcd(divisor, weight);
    takers.push_back({&queue, weight, 0, 0, 0});
  }
  for (Taker& taker : takers) taker.weight /= divisor;
  std::stable_sort(takers.begin(), takers.end(), [](const Taker& a, const Taker& b) {
    return a.queue->priority > b.queue->priority;
  });
  return takers;
}

// Sets `part` of every taker and returns their sum. In units of 1 / (weight sum * 10^15):
//   n_i + k * (n_i - u_i) = (weight_i * (10^6 + k_micro) * 10^9 - k_micro * u_nano * sum) / ...
Uint128 ComputeParts(absl::Span<Taker> takers, int64_t k_micro, bool history) {
  Int128 weight_sum = 0;
  for (const Taker& taker : takers) weight_sum += taker.weight;
  Uint128 sum = 0;
  for (Taker& taker : takers) {
    Int128 part = taker.weight;
    if (history) {
      const int64_t usage = std::clamp<int64_t>(taker.queue->usage_nano, 0, kNano);
      part = part * (kMicro + k_micro) * kNano - weight_sum * k_micro * usage;
    }
    taker.part = part > 0 ? static_cast<Uint128>(part) : 0;
    sum += taker.part;
  }
  return sum;
}

// Runs the rounds within one priority; `takers` shrinks to the unsatisfied. Returns what is left.
int64_t DivideBand(int64_t left, int64_t unit, int64_t k_micro, Takers& takers) {
  bool history = false;
  for (const Taker& taker : takers) history |= k_micro > 0 && taker.queue->usage_nano > 0;
  bool again = true;
  while (again && !takers.empty()) {
    again = false;
    const Uint128 sum = ComputeParts(absl::MakeSpan(takers), k_micro, history);
    if (sum == 0) break;
    const auto start = static_cast<uint64_t>(left);
    size_t unsatisfied = 0;
    for (Taker& taker : takers) {
      const auto want = static_cast<uint64_t>(Requestable(*taker.queue) - taker.queue->fair_share);
      const Quotient give = MultiplyDivide(start, taker.part, sum);
      uint64_t given = want;
      const bool satisfied = taker.part > 0 && want <= give.floor;
      if (satisfied) {
        again |= want < give.floor || give.rest > 0;
      } else {
        taker.owed_base = give.floor % static_cast<uint64_t>(unit);
        taker.owed_rest = give.rest;
        given = give.floor - taker.owed_base;
      }
      taker.queue->fair_share += static_cast<int64_t>(given);
      left -= static_cast<int64_t>(given);
      if (!satisfied) takers[unsatisfied++] = taker;
    }
    takers.resize(unsatisfied);
  }
  return left;
}

// Gives single units to the queues that were owed the most.
int64_t GiveRemainders(int64_t left, int64_t unit, Takers& takers) {
  std::sort(takers.begin(), takers.end(), [](const Taker& a, const Taker& b) {
    return std::tie(b.owed_base, b.owed_rest, a.queue->age_rank) <
           std::tie(a.owed_base, a.owed_rest, b.queue->age_rank);
  });
  for (const Taker& taker : takers) {
    if (left == 0) break;
    if (taker.owed_base == 0 && taker.owed_rest == 0) continue;
    const int64_t given = std::min(unit, left);
    taker.queue->fair_share += given;
    left -= given;
  }
  return left;
}

}  // namespace

int64_t DivideLevel(int64_t total, int64_t unit, int64_t k_micro, DivideMode mode,
                    absl::Span<LevelQueue> queues) {
  int64_t left = std::max<int64_t>(0, total);
  if (mode == DivideMode::kFull) left = GiveQuota(left, queues);
  if (left == 0 || queues.empty()) return left;
  const int64_t k = std::clamp<int64_t>(k_micro, 0, kMaxMicro);

  const Takers takers = FindTakers(queues);
  std::vector<Takers> unsatisfied;
  for (size_t begin = 0, end = 0; begin < takers.size(); begin = end) {
    while (end < takers.size() && takers[end].queue->priority == takers[begin].queue->priority) {
      ++end;
    }
    Takers band(takers.begin() + static_cast<int64_t>(begin),
                takers.begin() + static_cast<int64_t>(end));
    left = DivideBand(left, unit, k, band);
    unsatisfied.push_back(std::move(band));
  }
  for (Takers& band : unsatisfied) left = GiveRemainders(left, unit, band);
  return left;
}

FairShares::FairShares(const QueueTree& tree)
    : resources_(tree.resources().begin(), tree.resources().end()),
      amounts_(tree.size() * resources_.size(), 0) {}

size_t FairShares::Column(ResourceIndex resource) const {
  // CPU, memory and GPU are their own columns; the few others are searched for.
  if (resource <= model::kGpu) return resource;
  return static_cast<size_t>(std::find(resources_.begin(), resources_.end(), resource) -
                             resources_.begin());
}

int64_t FairShares::Get(QueueId queue, ResourceIndex resource) const {
  const size_t column = Column(resource);
  const size_t at = queue * resources_.size() + column;
  return column < resources_.size() && at < amounts_.size() ? amounts_[at] : 0;
}

model::Resources FairShares::Of(QueueId queue) const {
  model::Resources result;
  for (const ResourceIndex r : resources_) result.Set(r, Get(queue, r));
  return result;
}

void FairShares::Set(QueueId queue, ResourceIndex resource, int64_t amount) {
  const size_t column = Column(resource);
  const size_t at = queue * resources_.size() + column;
  if (column < resources_.size() && at < amounts_.size()) amounts_[at] = amount;
}

// Rows are in the order of a walk over the tree, level by level. Siblings are neighbours, so a
// level is divided in place.
void FairShareDivider::Layout() {
  queues_.clear();
  levels_.clear();
  columns_.clear();
  parent_at_.clear();
  AddLevel(kNowhere, tree_.Roots());
  // Grows while it is walked.
  for (size_t i = 0; i < queues_.size(); ++i) AddLevel(i, tree_.Children(queues_[i]));
  for (const ResourceIndex r : tree_.resources()) {
    Column& column = columns_.emplace_back();
    column.resource = r;
    column.unit = DivisionUnit(tree_.names().Name(r));
    column.rows.resize(queues_.size());
    column.totals.resize(levels_.size());
    for (const Level& level : levels_) {
      for (size_t i = level.first; i < level.end; ++i) {
        const Bounds& bounds = tree_.BoundsOf(queues_[i], r);
        LevelQueue& row = column.rows[i];
        row.priority = tree_.Spec(queues_[i]).priority;
        row.age_rank = static_cast<uint32_t>(i - level.first);  // siblings come sorted
        row.quota = bounds.quota;
        row.limit = bounds.limit;
        row.weight_micro = bounds.weight_micro;
      }
    }
  }
  requested_.resize(queues_.size());
  kept_below_.resize(queues_.size());
  shares_ = FairShares(tree_);
  laid_out_ = true;
}

void FairShareDivider::AddLevel(size_t parent, absl::Span<const QueueId> siblings) {
  const size_t first = queues_.size();
  for (const QueueId queue : siblings) {
    if (tree_.Usable(queue)) queues_.push_back(queue);
  }
  if (queues_.size() == first) return;
  parent_at_.resize(queues_.size(), parent);
  levels_.push_back({parent, first, queues_.size()});
}

void FairShareDivider::ReadRequests(const QueueLedger& ledger, ResourceIndex resource) {
  for (size_t i = 0; i < queues_.size(); ++i) {
    requested_[i] = ledger.requested(queues_[i], resource);
  }
  if (!tree_.AnyKept()) return;
  // A queue requests what it wants and what is guaranteed below it, and at least its own guaranteed
  // quota. The loop goes up: parents come before their children.
  std::fill(kept_below_.begin(), kept_below_.end(), 0);
  for (size_t i = queues_.size(); i-- > 0;) {
    const int64_t wanted = requested_[i];
    requested_[i] = std::max(model::SaturatingAdd(wanted, kept_below_[i]),
                             tree_.BoundsOf(queues_[i], resource).kept);
    if (parent_at_[i] == kNowhere) continue;
    int64_t& above = kept_below_[parent_at_[i]];
    above = model::SaturatingAdd(above, requested_[i] - wanted);
  }
}

void FairShareDivider::DivideColumn(Column& column, const model::Resources& total,
                                    const FairShareOptions& options, bool all) {
  for (size_t k = 0; k < levels_.size(); ++k) {
    const Level& level = levels_[k];
    const int64_t amount =
        level.parent == kNowhere ? total[column.resource] : column.rows[level.parent].fair_share;
    bool changed = all || column.totals[k] != amount;
    column.totals[k] = amount;
    for (size_t i = level.first; i < level.end; ++i) {
      LevelQueue& row = column.rows[i];
      const QueueId queue = queues_[i];
      const int64_t usage =
          queue < options.usage.size() ? options.usage[queue][column.resource] : 0;
      changed |= row.requested != requested_[i] || row.usage_nano != usage;
      row.requested = requested_[i];
      row.usage_nano = usage;
    }
    if (!changed) continue;
    ++divisions_;
    const absl::Span<LevelQueue> rows = absl::MakeSpan(column.rows);
    DivideLevel(amount, column.unit, options.k_micro, DivideMode::kFull,
                rows.subspan(level.first, level.end - level.first));
    for (size_t i = level.first; i < level.end; ++i) {
      shares_.Set(queues_[i], column.resource, rows[i].fair_share);
    }
  }
}

const FairShares& FairShareDivider::Divide(const QueueLedger& ledger, const model::Resources& total,
                                           const FairShareOptions& options) {
  const bool all = !laid_out_ || k_micro_ != options.k_micro;
  if (!laid_out_) Layout();
  k_micro_ = options.k_micro;
  divisions_ = 0;
  for (Column& column : columns_) {
    ReadRequests(ledger, column.resource);
    DivideColumn(column, total, options, all);
  }
  return shares_;
}

std::string FairShareDivider::CheckConsistency() const {
  if (!laid_out_) return "";
  FairShareDivider fresh(tree_);
  fresh.Layout();
  if (queues_ != fresh.queues_ || columns_.size() != fresh.columns_.size()) {
    return "fair share: the queues that it divides among are not those of the tree";
  }
  for (size_t c = 0; c < columns_.size(); ++c) {
    for (size_t i = 0; i < queues_.size(); ++i) {
      const LevelQueue& known = columns_[c].rows[i];
      const LevelQueue& now = fresh.columns_[c].rows[i];
      const auto bounds = [](const LevelQueue& row) {
        return std::tie(row.priority, row.age_rank, row.quota, row.limit, row.weight_micro);
      };
      if (columns_[c].resource == fresh.columns_[c].resource && bounds(known) == bounds(now)) {
        continue;
      }
      return absl::StrCat("fair share: queue ", tree_.Name(queues_[i]),
                          " is divided for with other bounds than it has");
    }
  }
  return "";
}

FairShares ComputeFairShare(const QueueTree& tree, const QueueLedger& ledger,
                            const model::Resources& total, const FairShareOptions& options) {
  return FairShareDivider(tree).Divide(ledger, total, options);
}

int64_t AllocatableShare(const Bounds& bounds, int64_t fair_share) {
  if (bounds.quota == kUnlimited) return bounds.limit;
  const int64_t share = std::max(bounds.quota, fair_share);
  return bounds.limit == kUnlimited ? share : std::min(bounds.limit, share);
}

int64_t AllocatableShare(const QueueTree& tree, const FairShares& shares, QueueId queue,
                         ResourceIndex resource) {
  return AllocatableShare(tree.BoundsOf(queue, resource), shares.Get(queue, resource));
}

int64_t DivisionUnit(absl::string_view resource_name) {
  return resource_name == model::kCpuName ? 1 : model::BaseUnitsPerUnit(resource_name);
}

}  // namespace fairlead::queues
