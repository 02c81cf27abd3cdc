// Fairness over time: a two-level tree of queues that wake and sleep. The smallest allocator that
// uses this module as the engine does serves them: order, limits, then reclaim. There are no nodes,
// so the test shows the rules alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "queues/fair_share.h"
#include "queues/job_order.h"
#include "queues/limits.h"
#include "queues/reclaim.h"
#include "queues/test_support.h"
#include "queues/usage_record.h"

namespace fairlead::queues {
namespace {

using model::kGpu;
using model::kUnlimited;

// Gangs of up to four do not fill a share exactly. Without rounding, the unused rests stay with one
// queue (MayLack).
constexpr double kMinJainOfSingles = 0.99;
constexpr double kMinJainOfRoundedGangs = 0.99;
constexpr double kMinJainOfGangs = 0.97;
constexpr int64_t kGangsOfAFairShare = 8;

// (sum x)^2 / (n * sum x^2): one if all are equal, 1/n if one has everything.
double Jain(const std::vector<double>& x) {
  double sum = 0, squares = 0;
  for (const double v : x) sum += v, squares += v * v;
  return squares == 0 ? 1 : sum * sum / (static_cast<double>(x.size()) * squares);
}

class Arena {
 public:
  explicit Arena(int64_t gpus, bool round_to_gang = false)
      : gpus_(gpus), round_to_gang_(round_to_gang) {}

  QueueId Add(const std::string& name, const std::string& parent, model::QueueResource gpu,
              int64_t gang_gpus = 0) {
    model::Queue queue = MakeQueue(name, parent, static_cast<int64_t>(tree_.size()));
    queue.gpu = gpu;
    const QueueId id = tree_.Upsert(queue);
    if (gang_gpus > 0) leaves_[id] = {gang_gpus, 0, 0};
    ledger_.Rebuild(tree_);
    return id;
  }

  // Sets the number of gangs that the leaf wants; running gangs beyond it end.
  void Demand(QueueId leaf, int64_t gangs) {
    Leaf& row = leaves_[leaf];
    ledger_.SubRequested(leaf, Gpus(row.wanted * row.gang * 1000));
    row.wanted = gangs;
    ledger_.AddRequested(leaf, Gpus(row.wanted * row.gang * 1000));
    while (row.running > row.wanted) End(leaf);
  }

  // One cycle; returns how many gangs were started or evicted.
  int Cycle(const FairShareOptions& options = {}) {
    shares_ = ComputeFairShare(tree_, ledger_, Gpus(gpus_ * 1000), options);
    int moves = 0;
    std::map<QueueId, bool> stuck;
    model::Resources request;
    QueueOrderIterator order(tree_, ledger_, shares_,
                             [&](QueueId leaf) -> const model::Resources* {
                               const Leaf& row = leaves_[leaf];
                               if (stuck[leaf] || row.running >= row.wanted) return nullptr;
                               request = Gpus(row.gang * 1000);
                               return &request;
                             },
                             {.cluster_total = Gpus(gpus_ * 1000)});
    while (const std::optional<QueueId> leaf = order.Next()) {
      const model::Resources gang = Gpus(leaves_[*leaf].gang * 1000);
      const bool allowed = !CheckLimits(tree_, ledger_, *leaf, gang, true);
      const int evicted = allowed ? MakeCapacity(*leaf, gang, order) : -1;
      if (evicted < 0) {
        stuck[*leaf] = true;
      } else {
        ledger_.Charge(*leaf, gang, true);
        ++leaves_[*leaf].running;
        moves += 1 + evicted;
      }
      order.Changed(*leaf);
    }
    return moves;
  }

  [[nodiscard]] int64_t Free() const {
    int64_t used = 0;
    for (const auto& [leaf, row] : leaves_) used += row.running * row.gang;
    return gpus_ - used;
  }
  [[nodiscard]] double Held(QueueId queue) const {
    return static_cast<double>(ledger_.allocated(queue, kGpu)) / 1000;
  }
  [[nodiscard]] double Share(QueueId queue) const {
    return static_cast<double>(shares_.Get(queue, kGpu)) / 1000;
  }
  [[nodiscard]] bool Wants(QueueId queue) const { return ledger_.requested(queue, kGpu) > 0; }
  // Among the queues that want something.
  [[nodiscard]] int64_t LargestGang() const {
    int64_t gang = 0;
    for (const auto& [leaf, row] : leaves_) {
      if (row.wanted > 0) gang = std::max(gang, row.gang);
    }
    return gang;
  }
  // The largest gang at or below the queue.
  [[nodiscard]] int64_t Gang(QueueId queue) const {
    const auto it = leaves_.find(queue);
    int64_t gang = it == leaves_.end() ? 0 : it->second.gang;
    for (const QueueId child : tree_.Children(queue)) gang = std::max(gang, Gang(child));
    return gang;
  }
  // The numbers of all queues in GPUs, for the message of a failure.
  [[nodiscard]] std::string Describe() const {
    std::string text = absl::StrCat("free ", Free(), "\n");
    for (QueueId q = 0; q < tree_.size(); ++q) {
      absl::StrAppend(&text, tree_.Name(q), ": holds ", Held(q), ", share ", Share(q), ", wants ",
                      ledger_.requested(q, kGpu) / 1000, ", gang ", Gang(q), ", quota ",
                      tree_.BoundsOf(q, kGpu).quota / 1000, ", weight ",
                      tree_.BoundsOf(q, kGpu).weight_micro / kMicro, "\n");
    }
    return text;
  }
  [[nodiscard]] const QueueTree& tree() const { return tree_; }
  [[nodiscard]] const QueueLedger& ledger() const { return ledger_; }

 private:
  struct Leaf {
    int64_t gang = 0;  // GPUs
    int64_t wanted = 0;
    int64_t running = 0;
  };

  void End(QueueId leaf) {
    ledger_.Release(leaf, Gpus(leaves_[leaf].gang * 1000), true);
    --leaves_[leaf].running;
  }

  // Evicts gangs in victim order until the gang fits; -1 if it may not.
  int MakeCapacity(QueueId leaf, const model::Resources& gang, QueueOrderIterator& order) {
    int64_t missing = gang[kGpu] / 1000 - Free();
    if (missing <= 0) return 0;
    const ReclaimContext context{tree_, ledger_, shares_, kMicro, round_to_gang_};
    const Reclaimer reclaimer{leaf, gang, true};
    if (!CanReclaim(context, reclaimer).allowed()) return -1;
    std::map<QueueId, int64_t> picked;
    std::map<QueueId, bool> barred;
    model::Resources piece;
    QueueOrderIterator victims(tree_, ledger_, shares_,
                               [&](QueueId q) -> const model::Resources* {
                                 const Leaf& row = leaves_[q];
                                 if (q == leaf || barred[q] || row.running <= picked[q])
                                   return nullptr;
                                 if (!MayEverReclaimFrom(context, reclaimer, q)) return nullptr;
                                 piece = Gpus(row.gang * 1000);
                                 return &piece;
                               },
                               {.victims = true, .cluster_total = Gpus(gpus_ * 1000)});
    std::vector<VictimQueue> chosen;
    while (missing > 0) {
      const std::optional<QueueId> victim = victims.Next();
      if (!victim) return -1;
      const model::Resources taken = Gpus(leaves_[*victim].gang * 1000);
      chosen.push_back({*victim, {taken}});
      // A queue that may not give does not stop the search; it is tried again after another queue
      // gave. What a sibling gives makes the reclaimer's side less saturated.
      if (!Reclaimable(context, reclaimer, chosen).allowed()) {
        chosen.pop_back();
        barred[*victim] = true;
        victims.Changed(*victim);
        continue;
      }
      missing -= leaves_[*victim].gang;
      ++picked[*victim];
      victims.Picked(*victim, taken);
      for (const auto& [queue, unused] : std::exchange(barred, {})) victims.Changed(queue);
    }
    for (const VictimQueue& victim : chosen) {
      End(victim.leaf);
      order.Changed(victim.leaf);
    }
    return static_cast<int>(chosen.size());
  }

  const int64_t gpus_;
  const bool round_to_gang_;
  model::ResourceNames names_;
  QueueTree tree_{names_};
  QueueLedger ledger_{tree_};
  FairShares shares_;
  std::map<QueueId, Leaf> leaves_;
};

// How much a queue may lack of its share because its gangs cannot fill it: less than one gang for a
// leaf, the sum of its children for a queue above. Reclaim stops there, since a reclaimer never
// goes over its own share. So the sum of all shortages may stay with one queue that had it before.
double MayLack(const Arena& arena, QueueId queue) {
  if (!arena.Wants(queue)) return 0;
  if (arena.tree().IsLeaf(queue)) return static_cast<double>(arena.Gang(queue) - 1);
  double sum = 0;
  for (const QueueId child : arena.tree().Children(queue)) sum += MayLack(arena, child);
  return sum;
}

void CheckLevel(const Arena& arena, absl::Span<const QueueId> siblings, bool single_gpus) {
  std::vector<double> satisfaction;
  double lacking = 0, over = 0;
  for (const QueueId queue : siblings) {
    if (!arena.Wants(queue)) {
      EXPECT_EQ(arena.Held(queue), 0);
      continue;
    }
    const double lacks = arena.Share(queue) - arena.Held(queue);
    EXPECT_LE(lacks, MayLack(arena, queue)) << arena.tree().Name(queue);
    (lacks > 0 ? lacking : over) += std::abs(lacks);
    CheckLevel(arena, arena.tree().Children(queue), single_gpus);
    // A share of a few gangs can only be met in large jumps.
    if (arena.Share(queue) < static_cast<double>(kGangsOfAFairShare * arena.Gang(queue))) continue;
    satisfaction.push_back(arena.Held(queue) / arena.Share(queue));
  }
  EXPECT_GE(Jain(satisfaction), single_gpus ? kMinJainOfSingles : kMinJainOfGangs);
  if (single_gpus) {
    EXPECT_LE(std::max(lacking, over), 1) << "one gang of one GPU";
  }
}

// Three departments with four teams each; returns the teams. `quota_step_gpus`: of a team's quota.
std::vector<QueueId> AddRandomQueues(Arena& arena, Random& random, int64_t largest_gang_log,
                                     int64_t quota_step_gpus) {
  std::vector<QueueId> leaves;
  for (int d = 0; d < 3; ++d) {
    const std::string dept = absl::StrCat("dept", d);
    const int64_t quota = random.Between(0, 2) * 40'000;
    arena.Add(dept, "", {quota, kUnlimited, random.Between(1, 3) * kMicro});
    for (int i = 0; i < 4; ++i) {
      const int64_t weight = random.Between(1, 3) * kMicro;
      leaves.push_back(
          arena.Add(absl::StrCat(dept, "-team", i), dept,
                    {random.Between(0, 2) * quota_step_gpus * 1000, kUnlimited, weight},
                    int64_t{1} << random.Between(0, largest_gang_log)));
    }
  }
  return leaves;
}

void WakeAndSleep(Arena& arena, Random& random, absl::Span<const QueueId> leaves) {
  for (const QueueId leaf : leaves) {
    if (random.OneIn(2)) arena.Demand(leaf, random.OneIn(3) ? 0 : random.Between(20, 480));
  }
}

void ComeToRest(Arena& arena) {
  int cycles = 0;
  while (arena.Cycle() > 0) ASSERT_LT(++cycles, 6) << "it does not come to rest";
  for (int quiet = 0; quiet < 5; ++quiet) ASSERT_EQ(arena.Cycle(), 0) << "ping-pong";
}

// Repeatedly wakes the leaves of a random two-level tree and puts them to sleep.
void CheckKaisRules(int64_t largest_gang_log) {
  Random random;
  SCOPED_TRACE(random.Describe());
  for (int round = 0; round < 8; ++round) {
    Arena arena(480);
    const std::vector<QueueId> leaves = AddRandomQueues(arena, random, largest_gang_log, 8);
    for (int phase = 0; phase < 25; ++phase) {
      SCOPED_TRACE(absl::StrCat("round ", round, ", phase ", phase));
      WakeAndSleep(arena, random, leaves);
      ASSERT_NO_FATAL_FAILURE(ComeToRest(arena));
      CheckLevel(arena, arena.tree().Roots(), largest_gang_log == 0);
      ASSERT_FALSE(::testing::Test::HasFailure()) << arena.Describe();
    }
  }
}

TEST(FairnessTest, SingleGpuJobsComeToTheFairShareExactlyAtEveryLevel) { CheckKaisRules(0); }

TEST(FairnessTest, GangsComeToLessThanAGangBelowTheFairShare) { CheckKaisRules(2); }

TEST(FairnessTest, WorkedExampleOfRounding) {
  for (const bool round_to_gang : {false, true}) {
    Arena arena(20, round_to_gang);
    std::vector<QueueId> queues;
    for (const char* name : {"first", "a", "b", "c"}) {
      queues.push_back(arena.Add(name, "", {0, kUnlimited, kMicro}, 2));
    }
    arena.Demand(queues[0], 10);
    ASSERT_NO_FATAL_FAILURE(ComeToRest(arena));
    for (const QueueId queue : queues) arena.Demand(queue, 10);
    ASSERT_NO_FATAL_FAILURE(ComeToRest(arena));
    std::vector<double> held;
    for (const QueueId queue : queues) held.push_back(arena.Held(queue));
    std::sort(held.begin(), held.end());
    const std::vector<double> kai = {4, 4, 4, 8}, rounded = {4, 4, 6, 6};
    EXPECT_EQ(held, round_to_gang ? rounded : kai);
  }
}

// Checks that no queue is farther from its share than `gang`, the largest of all; and that
// satisfaction is even if shares are many gangs. Returns how many levels had at least two such
// queues.
int CheckRoundedLevel(const Arena& arena, absl::Span<const QueueId> siblings, int64_t gang) {
  int compared = 0;
  std::vector<double> satisfaction;
  for (const QueueId queue : siblings) {
    if (!arena.Wants(queue)) {
      EXPECT_EQ(arena.Held(queue), 0);
      continue;
    }
    EXPECT_LE(std::abs(arena.Held(queue) - arena.Share(queue)), static_cast<double>(gang))
        << arena.tree().Name(queue);
    compared += CheckRoundedLevel(arena, arena.tree().Children(queue), gang);
    if (arena.Share(queue) < static_cast<double>(kGangsOfAFairShare * gang)) continue;
    satisfaction.push_back(arena.Held(queue) / arena.Share(queue));
  }
  EXPECT_GE(Jain(satisfaction), kMinJainOfRoundedGangs);
  return compared + (satisfaction.size() > 1 ? 1 : 0);
}

// Quotas are small enough to be met all at once. Otherwise a queue may be kept from its share by
// others within their quotas.
TEST(FairnessTest, RoundedGangsComeWithinAGangOfTheFairShareAtEveryLevel) {
  Random random;
  SCOPED_TRACE(random.Describe());
  int compared = 0;
  constexpr int kRounds = 24, kPhases = 25;
  for (int round = 0; round < kRounds; ++round) {
    Arena arena(480, /*round_to_gang=*/true);
    const std::vector<QueueId> leaves = AddRandomQueues(arena, random, 2, 4);
    for (int phase = 0; phase < kPhases; ++phase) {
      SCOPED_TRACE(absl::StrCat("round ", round, ", phase ", phase));
      WakeAndSleep(arena, random, leaves);
      ASSERT_NO_FATAL_FAILURE(ComeToRest(arena));
      compared += CheckRoundedLevel(arena, arena.tree().Roots(), arena.LargestGang());
      ASSERT_FALSE(::testing::Test::HasFailure()) << arena.Describe();
    }
  }
  EXPECT_GT(compared, kRounds * kPhases) << "or little was compared";
}

// Three departments of equal weight with two teams each; the first sleeps half of the time. Returns
// each team's use over the last window, as a fraction of the cluster.
std::vector<double> LongRun(int64_t k_micro) {
  Arena arena(60);
  std::vector<QueueId> teams;
  for (const char* dept : {"a", "b", "c"}) {
    arena.Add(dept, "", {0, kUnlimited, kMicro});
    for (int i = 0; i < 2; ++i) {
      teams.push_back(arena.Add(absl::StrCat(dept, i), dept, {0, kUnlimited, kMicro}, 1));
      arena.Demand(teams.back(), 60);
    }
  }
  auto record = UsageRecord::Create({.window = absl::Minutes(168)});
  EXPECT_TRUE(record.ok()) << record.status();
  const absl::Time start = absl::FromUnixSeconds(1'767'225'600);
  FairShareOptions options;
  options.k_micro = k_micro;
  for (int minute = 0; minute < 5 * 168; ++minute) {
    const bool awake = minute / 21 % 2 == 0;
    for (const QueueId team : {teams[0], teams[1]}) arena.Demand(team, awake ? 60 : 0);
    arena.Cycle(options);
    const absl::Time now = start + minute * absl::Minutes(1);
    record->Record(now, arena.tree(), arena.ledger(), Gpus(60'000));
    options.usage = *record->UsageOf(arena.tree(), now);
  }
  std::vector<double> result;
  for (const QueueId team : teams) {
    result.push_back(static_cast<double>(options.usage[team][kGpu]) / 1e9);
  }
  return result;
}

TEST(FairnessTest, HistoryMakesUpForSleep) {
  const auto departments = [](const std::vector<double>& u) {
    return std::vector<double>{u[0] + u[1], u[2] + u[3], u[4] + u[5]};
  };
  const std::vector<double> without = LongRun(0);
  const std::vector<double> with = LongRun(kMicro);
  const std::vector<double> strong = LongRun(8 * kMicro);
  // Without history: a third of the cluster half of the time, against five twelfths.
  EXPECT_NEAR(Jain(departments(without)), 1 / (3 * (1.0 / 36 + 50.0 / 144)), 0.005);
  EXPECT_GT(Jain(departments(with)), Jain(departments(without)) + 0.02);
  EXPECT_GT(Jain(departments(strong)), Jain(departments(with)));
  EXPECT_GE(Jain(departments(strong)), 0.99);
  for (const auto& usage : {without, with, strong}) {
    double sum = 0;
    for (const double u : usage) sum += u;
    EXPECT_NEAR(sum, 1, 1e-6) << "the cluster is never idle";
    for (size_t d = 0; d < 6; d += 2) {
      EXPECT_GE(Jain({usage[d], usage[d + 1]}), 0.999) << "teams that sleep alike have alike";
    }
  }
}

}  // namespace
}  // namespace fairlead::queues
