// Which pods are evicted, on small random clusters, against brute force.
//
// The rule (KAI's, facts 3.9, 3.10, 3.13): units are taken in the reversed queue order, one
// extra pod of a workload above its minimum or else everything of it that runs, up to the shortest
// row of units that is enough; a queue that may not give its next unit gives no more. Of that row
// those stay that are not needed. So for every cluster
//   - no pod is evicted if none need be, or if no set of units would be enough,
//   - victims are found if and only if such a row exists,
//   - no victim stands behind it, and none could be left out.
// How often that is more than the fewest pods of all choices is counted, not forbidden: the order
// of service decides which pods go, not the number.
#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using model::testing::PodBuilder;

struct VictimPod {
  std::string name;
  size_t node = 0;
};

struct OracleWork {
  std::string name;
  int64_t priority = 0, created = 0, gpus = 1;
  size_t min_member = 1;
  std::vector<VictimPod> pods;  // in task order
};

struct Unit {
  std::vector<VictimPod> pods;
  int64_t gpus = 0;  // of all of them
};

EngineOptions NoMoves() {
  EngineOptions options;
  options.consolidation = false;
  options.consolidating_reclaim = false;
  options.stale_gangs = false;
  options.hook_on = false;
  return options;
}

class VictimWorld {
 public:
  enum class Kind : uint8_t { kPreempt, kReclaim };

  VictimWorld(uint64_t seed, Kind kind) : random_(seed), kind_(kind), cluster_(NoMoves()) {
    const size_t nodes = 1 + Below(4);
    int64_t total = 0;
    for (size_t i = 0; i < nodes; ++i) {
      capacity_.push_back(1 + static_cast<int64_t>(Below(4)));
      cluster_.Node(absl::StrCat("n", i), capacity_.back());
      total += capacity_.back();
    }
    wanted_gpus_ = 1 + static_cast<int64_t>(Below(3));
    wanted_pods_ = 1 + Below(3);
    const int64_t request = wanted_gpus_ * static_cast<int64_t>(wanted_pods_);
    if (kind_ == Kind::kPreempt) {
      cluster_.Queue("q", model::kUnlimited);
    } else {
      quota_ = static_cast<int64_t>(Below(static_cast<size_t>(total) + 1));
      cluster_.Queue("asks", std::max(request, total - quota_));
      cluster_.Queue("q", quota_);
    }
    const size_t works = 1 + Below(6);
    for (size_t i = 0; i < works; ++i) AddWork(i);
    cluster_.Group(GroupOf("wants", kind_ == Kind::kPreempt ? "q" : "asks", wanted_pods_));
    for (size_t i = 0; i < wanted_pods_; ++i) {
      PodBuilder pod("ns", absl::StrCat("wants-", i));
      pod.Group("wants").Gpus(wanted_gpus_).Created(100).Priority("high", 60).Preemptible(true);
      pod.Queue(kind_ == Kind::kPreempt ? "q" : "asks");
      cluster_.Pod(pod);
    }
  }

  void Check() {
    cluster_.Run(1000);
    std::set<std::string> victims;
    for (const std::string& text : cluster_.Evicted()) {
      victims.insert(text.substr(text.find(':') + 1));
    }
    const std::vector<Unit> units = Units();
    if (Fits({})) {
      EXPECT_EQ(cluster_.Bound().size(), wanted_pods_);
      EXPECT_EQ(victims, std::set<std::string>{}) << "no pod need be evicted";
      ++idle;
      return;
    }
    // The shortest row that is enough.
    std::set<std::string> row;
    bool enough = false;
    int64_t left = Held();
    for (const Unit& unit : units) {
      if (kind_ == Kind::kReclaim && left <= quota_) break;
      left -= unit.gpus;
      for (const VictimPod& pod : unit.pods) row.insert(pod.name);
      enough = Fits(row);
      if (enough) break;
    }
    if (!enough) {
      EXPECT_EQ(victims, std::set<std::string>{}) << "no set of units is enough";
      ++hopeless;
      return;
    }
    ++found;
    EXPECT_NE(victims, std::set<std::string>{}) << "a row of units would have done";
    EXPECT_TRUE(Fits(victims));
    EXPECT_EQ(cluster_.Promised().size(), wanted_pods_);
    EXPECT_TRUE(std::includes(row.begin(), row.end(), victims.begin(), victims.end()))
        << "a unit was taken out of turn";
    for (const Unit& unit : units) {
      std::set<std::string> fewer = victims;
      for (const VictimPod& pod : unit.pods) fewer.erase(pod.name);
      if (fewer.size() == victims.size()) continue;
      EXPECT_EQ(fewer.size() + unit.pods.size(), victims.size()) << "half a unit";
      EXPECT_FALSE(Fits(fewer)) << unit.pods.front().name << " could have stayed";
    }
    const size_t fewest = Fewest(units);
    EXPECT_GE(victims.size(), fewest);
    at_fewest += victims.size() == fewest ? 1 : 0;
  }

  std::string Text() const {
    std::string text;
    for (size_t i = 0; i < capacity_.size(); ++i) {
      absl::StrAppend(&text, "node n", i, ": ", capacity_[i], " gpus\n");
    }
    for (const OracleWork& work : works_) {
      absl::StrAppend(&text, work.name, ": priority ", work.priority, " created ", work.created,
                      " min ", work.min_member, ", pods of ", work.gpus, " gpus:");
      for (const VictimPod& pod : work.pods) absl::StrAppend(&text, " ", pod.name, ">n", pod.node);
      absl::StrAppend(&text, "\n");
    }
    absl::StrAppend(&text, "wants ", wanted_pods_, " pods of ", wanted_gpus_, " gpus");
    if (kind_ == Kind::kReclaim) absl::StrAppend(&text, " from a queue with quota ", quota_);
    absl::StrAppend(&text, "\nevicted:");
    for (const std::string& victim : cluster_.Evicted()) absl::StrAppend(&text, " ", victim);
    return absl::StrCat(text, "\nverdict: ", cluster_.DetailsOf("wants"));
  }

  static int idle, hopeless, found, at_fewest;

 private:
  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  static model::PodGroup GroupOf(const std::string& name, const std::string& queue, size_t min) {
    return model::testing::MakeGroup("ns", name, queue, static_cast<int32_t>(min));
  }

  int64_t FreeOn(size_t node, const std::set<std::string>& without) const {
    int64_t free = capacity_[node];
    for (const OracleWork& work : works_) {
      for (const VictimPod& pod : work.pods) {
        if (pod.node == node && without.count(pod.name) == 0) free -= work.gpus;
      }
    }
    return free;
  }

  void AddWork(size_t i) {
    OracleWork work;
    work.name = absl::StrCat("w", i);
    work.priority = 10 + 10 * static_cast<int64_t>(Below(3));
    work.created = static_cast<int64_t>(Below(4));
    work.gpus = 1 + static_cast<int64_t>(Below(2));
    const size_t size = 1 + Below(3);
    works_.push_back(work);
    OracleWork& added = works_.back();
    for (size_t k = 0; k < size; ++k) {
      const size_t node = Below(capacity_.size());
      if (FreeOn(node, {}) < work.gpus) continue;
      added.pods.push_back({absl::StrCat(work.name, "-", k), node});
    }
    if (added.pods.empty()) {
      works_.pop_back();
      return;
    }
    added.min_member = 1 + Below(added.pods.size());
    model::PodGroup group = GroupOf(work.name, "q", added.min_member);
    group.meta.creation = model::testing::At(work.created);
    cluster_.Group(group);
    for (const VictimPod& pod : added.pods) {
      PodBuilder builder("ns", pod.name);
      builder.Group(work.name).Queue("q").Gpus(work.gpus).Created(work.created);
      builder.Priority(absl::StrCat("p", work.priority), static_cast<int32_t>(work.priority));
      builder.Preemptible(true).On(absl::StrCat("n", pod.node));
      cluster_.Pod(builder);
    }
  }

  int64_t Held() const {
    int64_t held = 0;
    for (const OracleWork& work : works_) {
      held += work.gpus * static_cast<int64_t>(work.pods.size());
    }
    return held;
  }

  // Every node takes as many of the like pods as it has room for.
  bool Fits(const std::set<std::string>& without) const {
    int64_t places = 0;
    for (size_t i = 0; i < capacity_.size(); ++i) {
      places += std::max<int64_t>(0, FreeOn(i, without)) / wanted_gpus_;
    }
    return places >= static_cast<int64_t>(wanted_pods_);
  }

  // In the order in which they go: lower priority, then those above the minimum, then younger,
  // then larger name; asked anew after each.
  std::vector<Unit> Units() const {
    std::vector<OracleWork> left = works_;
    std::vector<Unit> units;
    const auto rank = [](const OracleWork& work) {
      return std::make_tuple(-work.priority, work.pods.size() > work.min_member ? 1 : 0,
                             work.created, work.name);
    };
    while (!left.empty()) {
      const auto next = std::max_element(
          left.begin(), left.end(),
          [&](const OracleWork& a, const OracleWork& b) { return rank(a) < rank(b); });
      Unit unit;
      if (next->pods.size() > next->min_member) {
        unit.pods = {next->pods.back()};
        next->pods.pop_back();
      } else {
        unit.pods = next->pods;
        next->pods.clear();
      }
      unit.gpus = next->gpus * static_cast<int64_t>(unit.pods.size());
      units.push_back(std::move(unit));
      if (next->pods.empty()) left.erase(next);
    }
    return units;
  }

  // The fewest pods of any choice of units that would do, in any order. A workload gives
  // its extras before the rest.
  size_t Fewest(const std::vector<Unit>& units) const {
    size_t fewest = SIZE_MAX;
    for (uint32_t choice = 1; choice < (1u << units.size()); ++choice) {
      std::set<std::string> gone;
      for (size_t i = 0; i < units.size(); ++i) {
        if ((choice >> i & 1) == 0) continue;
        for (const VictimPod& pod : units[i].pods) gone.insert(pod.name);
      }
      if (gone.size() < fewest && Fits(gone)) fewest = gone.size();
    }
    return fewest;
  }

  std::mt19937_64 random_;
  const Kind kind_;
  testing::Cluster cluster_;
  std::vector<int64_t> capacity_;
  std::vector<OracleWork> works_;
  int64_t wanted_gpus_ = 1, quota_ = 0;
  size_t wanted_pods_ = 1;
};

int VictimWorld::idle = 0;
int VictimWorld::hopeless = 0;
int VictimWorld::found = 0;
int VictimWorld::at_fewest = 0;

void Try(VictimWorld::Kind kind, uint64_t first, uint64_t last) {
  VictimWorld::idle = VictimWorld::hopeless = VictimWorld::found = VictimWorld::at_fewest = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    VictimWorld world(seed, kind);
    const bool failed_before = ::testing::Test::HasFailure();
    world.Check();
    if (!failed_before && ::testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed << "\n" << world.Text();
    }
  }
  EXPECT_GT(VictimWorld::idle, 20);
  EXPECT_GT(VictimWorld::found, 100);
  ::testing::Test::RecordProperty("found", VictimWorld::found);
  ::testing::Test::RecordProperty("with_the_fewest_pods", VictimWorld::at_fewest);
}

TEST(VictimOracle, PreemptionTakesWhoseTurnItIsAndNoPodInVain) {
  Try(VictimWorld::Kind::kPreempt, 1, 400);
}

TEST(VictimOracle, ReclaimTakesWhoseTurnItIsAndNoPodInVain) {
  Try(VictimWorld::Kind::kReclaim, 5000, 5600);
  EXPECT_GT(VictimWorld::hopeless, 20);
}

}  // namespace
}  // namespace fairlead::engine
