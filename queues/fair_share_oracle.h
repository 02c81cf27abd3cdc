// An independent implementation of the division, for tests: the rules of fair_share.h word by word,
// in fractions of whole units, for one level and for a whole tree.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "queues/fair_share.h"
#include "queues/test_support.h"

namespace fairlead::queues {

class Fraction {
 public:
  Fraction(int64_t value = 0) : num_(value) {}  // NOLINT: numbers are fractions
  Fraction(Int128 num, Int128 den) : num_(num), den_(den) {
    Int128 a = num < 0 ? -num : num;
    Int128 b = den;
    while (b != 0) {
      const Int128 rest = a % b;
      a = b;
      b = rest;
    }
    num_ /= a;
    den_ /= a;
  }
  friend Fraction operator+(Fraction a, Fraction b) {
    return {a.num_ * b.den_ + b.num_ * a.den_, a.den_ * b.den_};
  }
  friend Fraction operator-(Fraction a, Fraction b) {
    return {a.num_ * b.den_ - b.num_ * a.den_, a.den_ * b.den_};
  }
  friend Fraction operator*(Fraction a, Fraction b) { return {a.num_ * b.num_, a.den_ * b.den_}; }
  friend Fraction operator/(Fraction a, Fraction b) {
    return b.num_ > 0 ? Fraction(a.num_ * b.den_, a.den_ * b.num_)
                      : Fraction(-a.num_ * b.den_, a.den_ * -b.num_);
  }
  friend bool operator<(Fraction a, Fraction b) { return a.num_ * b.den_ < b.num_ * a.den_; }
  friend bool operator==(Fraction a, Fraction b) { return !(a < b) && !(b < a); }
  friend bool operator<=(Fraction a, Fraction b) { return !(b < a); }
  [[nodiscard]] Fraction Floor() const { return Fraction(num_ / den_, 1); }  // not negative
  [[nodiscard]] int64_t TimesExactly(int64_t unit) const {
    EXPECT_EQ(static_cast<int64_t>(num_ * unit % den_), 0);
    return static_cast<int64_t>(num_ * unit / den_);
  }

 private:
  Int128 num_ = 0;
  Int128 den_ = 1;
};

struct OracleQueue {
  LevelQueue in;
  Fraction share, want, remainder;  // in units
  bool remembered = false;
};

// Returns what is left.
inline Fraction OracleDivide(Fraction total, int64_t unit, int64_t k_micro,
                             std::vector<OracleQueue>& queues) {
  const auto min = [](Fraction a, Fraction b) { return a < b ? a : b; };
  Fraction left = total;
  std::map<int32_t, std::vector<OracleQueue*>, std::greater<>> bands;
  for (OracleQueue& q : queues) {
    Fraction requestable = Fraction(q.in.requested, unit);
    if (q.in.limit != model::kUnlimited) requestable = min(requestable, Fraction(q.in.limit, unit));
    const Fraction quota = q.in.quota == model::kUnlimited ? total : Fraction(q.in.quota, unit);
    q.share = min(quota, requestable);
    q.want = requestable - q.share;
    left = left - q.share;
    bands[q.in.priority].push_back(&q);
  }
  if (left <= 0) return 0;

  for (auto& [priority, band] : bands) {
    for (bool again = true; again;) {
      again = false;
      Fraction weights = 0;
      for (OracleQueue* q : band) {
        if (Fraction(0) < q->want) weights = weights + Fraction(q->in.weight_micro, kMicro);
      }
      if (weights == 0) break;
      std::vector<std::pair<OracleQueue*, Fraction>> parts;
      Fraction sum = 0;
      for (OracleQueue* q : band) {
        if (q->want == 0 || q->in.weight_micro == 0) continue;
        const Fraction n = Fraction(q->in.weight_micro, kMicro) / weights;
        const Fraction k(k_micro, kMicro);
        Fraction w = n + k * (n - Fraction(q->in.usage_nano, kNano));
        if (w < 0) w = 0;
        parts.push_back({q, w});
        sum = sum + w;
      }
      if (sum == 0) break;
      const Fraction start = left;
      for (auto& [q, w] : parts) {
        const Fraction give = start * w / sum;
        Fraction given = give.Floor();
        q->remembered = give < q->want;
        q->remainder = give - given;
        if (q->want <= give) {
          again |= q->want < give;
          given = q->want;
        }
        q->share = q->share + given;
        q->want = q->want - given;
        left = left - given;
      }
    }
  }
  for (auto& [priority, band] : bands) {
    std::sort(band.begin(), band.end(), [](OracleQueue* a, OracleQueue* b) {
      if (!(a->remainder == b->remainder)) return b->remainder < a->remainder;
      return a->in.age_rank < b->in.age_rank;
    });
    for (OracleQueue* q : band) {
      // Nothing is owed to a queue whose history has used up its part.
      if (!q->remembered || q->remainder == 0 || left == 0) continue;
      const Fraction given = min(1, left);
      q->share = q->share + given;
      left = left - given;
    }
  }
  return left;
}

// Checks every queue of the tree against the oracle, one resource at a time.
class TreeOracle {
 public:
  TreeOracle(const QueueTree& tree, const QueueLedger& ledger, const FairShareOptions& options,
             const FairShares& shares)
      : tree_(tree), ledger_(ledger), options_(options), shares_(shares) {}

  void Check(model::ResourceIndex r, int64_t unit, int64_t total) const {
    CheckBelow({}, r, unit, Fraction(total, unit));
  }

 private:
  // The request of the queue: what is wanted in it, wanted or guaranteed below it, and at least its
  // own guaranteed quota.
  [[nodiscard]] int64_t Asked(QueueId queue, model::ResourceIndex r) const {
    int64_t asked = ledger_.requested(queue, r);
    for (QueueId child = 0; child < tree_.size(); ++child) {
      if (!tree_.Usable(child) || tree_.Parent(child) != queue) continue;
      asked += Asked(child, r) - ledger_.requested(child, r);
    }
    const model::Queue& spec = tree_.Spec(queue);
    const model::QueueResource* bounds = r == model::kGpu      ? &spec.gpu
                                         : r == model::kCpu    ? &spec.cpu
                                         : r == model::kMemory ? &spec.memory
                                                               : nullptr;
    for (const auto& [name, other] : spec.other) {
      if (name == tree_.names().Name(r)) bounds = &other;
    }
    if (bounds == nullptr || bounds->lending_limit < 0 || bounds->quota < 0) return asked;
    int64_t kept = bounds->quota - bounds->lending_limit;
    if (bounds->limit >= 0) kept = std::min(kept, bounds->limit);
    return std::max(asked, kept);
  }

  void CheckBelow(std::optional<QueueId> parent, model::ResourceIndex r, int64_t unit,
                  Fraction amount) const {
    std::vector<QueueId> siblings;
    for (QueueId q = 0; q < tree_.size(); ++q) {
      if (tree_.Usable(q) && tree_.Parent(q) == parent) siblings.push_back(q);
    }
    std::sort(siblings.begin(), siblings.end(), [&](QueueId a, QueueId b) {
      const auto key = [&](QueueId q) {
        return std::pair(tree_.Spec(q).meta.creation, tree_.Name(q));
      };
      return key(a) < key(b);
    });
    std::vector<OracleQueue> level;
    for (const QueueId q : siblings) {
      OracleQueue row;
      const Bounds& bounds = tree_.BoundsOf(q, r);
      row.in.priority = tree_.Spec(q).priority;
      row.in.age_rank = static_cast<uint32_t>(level.size());
      row.in.quota = bounds.quota;
      row.in.limit = bounds.limit;
      row.in.weight_micro = bounds.weight_micro;
      row.in.requested = Asked(q, r);
      row.in.usage_nano = q < options_.usage.size() ? options_.usage[q][r] : 0;
      level.push_back(row);
    }
    OracleDivide(amount, unit, options_.k_micro, level);
    for (size_t i = 0; i < siblings.size(); ++i) {
      ASSERT_EQ(shares_.Get(siblings[i], r), level[i].share.TimesExactly(unit))
          << tree_.Name(siblings[i]) << " resource " << r;
      CheckBelow(siblings[i], r, unit, level[i].share);
    }
  }

  const QueueTree& tree_;
  const QueueLedger& ledger_;
  const FairShareOptions& options_;
  const FairShares& shares_;
};

}  // namespace fairlead::queues
