// Small random clusters and one gang against brute force: if its pods can be put on the nodes at
// all, by any of all ways to do it, the gang starts.
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using model::testing::PodBuilder;

struct PlacedPod {
  int64_t gpus = 0, cores = 1, memory_gib = 1;
  std::string zone;  // that its node selector names, or empty
  bool tolerates = false;
  int node = -1;
  bool leaving = false;
};

struct PlacementNode {
  int64_t gpus = 0, cores = 0, memory_gib = 0, pods = 0;
  std::string zone;
  bool tainted = false;
};

class PlacementWorld {
 public:
  // `alike`: all pods of the gang have the same spec.
  PlacementWorld(uint64_t seed, bool alike, bool leaving) : random_(seed) {
    cluster_.Queue("q", model::kUnlimited);
    const size_t nodes = 1 + Below(5);
    for (size_t i = 0; i < nodes; ++i) AddNode(i);
    const size_t running = Below(2 * nodes + 1);
    for (size_t i = 0; i < running; ++i) AddRunning(i, leaving);
    const size_t size = 1 + Below(6);
    model::PodGroup group = model::testing::MakeGroup("ns", "gang", "q", static_cast<int>(size));
    cluster_.Group(group);
    PlacedPod pod;
    for (size_t i = 0; i < size; ++i) {
      if (i == 0 || !alike) pod = RandomPod();
      gang_.push_back(pod);
      PodBuilder member("ns", absl::StrCat("g", i));
      cluster_.Pod(Built(pod, member.Group("gang")));
    }
  }

  // Some way of putting all pods of the gang on nodes, each tried in turn. With `future`, room of
  // pods that are leaving counts.
  bool Exists(bool future) {
    free_.clear();
    for (const PlacementNode& node : nodes_) {
      free_.push_back({node.gpus, node.cores, node.memory_gib, node.pods});
    }
    for (const PlacedPod& pod : running_) {
      if (!future || !pod.leaving) Take(pod, static_cast<size_t>(pod.node), 1);
    }
    return PlaceFrom(0);
  }

  // 0: it waits, 1: it is promised places, 2: it starts. Checks that what was decided is possible.
  int Decide() {
    cluster_.Run();
    const std::vector<std::string> bound = cluster_.Bound();
    const std::vector<std::string> promised = cluster_.Promised();
    EXPECT_TRUE(bound.empty() || bound.size() == gang_.size()) << "half a gang";
    const bool starts = !bound.empty();
    free_.clear();
    for (const PlacementNode& node : nodes_) {
      free_.push_back({node.gpus, node.cores, node.memory_gib, node.pods});
    }
    for (const PlacedPod& pod : running_) {
      if (starts || !pod.leaving) Take(pod, static_cast<size_t>(pod.node), 1);
    }
    for (const std::string& place : starts ? bound : promised) {
      const size_t at = place.find('>');
      const PlacedPod& pod = gang_[std::stoul(place.substr(1, at - 1))];
      const size_t node = std::stoul(place.substr(at + 2));
      EXPECT_TRUE(Fits(pod, node)) << place;
      Take(pod, node, 1);
    }
    return starts ? 2 : promised.size() == gang_.size() ? 1 : 0;
  }

  std::string Text() const {
    std::string text;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const PlacementNode& n = nodes_[i];
      absl::StrAppend(&text, "node n", i, ": gpus ", n.gpus, " cores ", n.cores, " GiB ",
                      n.memory_gib, " pods ", n.pods, " zone ", n.zone, n.tainted ? " tainted" : "",
                      "\n");
    }
    for (const PlacedPod& pod : running_) {
      absl::StrAppend(&text, pod.leaving ? "leaves n" : "runs on n", pod.node, ": ", TextOf(pod));
    }
    for (const PlacedPod& pod : gang_) absl::StrAppend(&text, "gang: ", TextOf(pod));
    return text;
  }

 private:
  struct Capacity {
    int64_t gpus, cores, memory_gib, pods;
  };

  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  static std::string TextOf(const PlacedPod& pod) {
    return absl::StrCat("gpus ", pod.gpus, " cores ", pod.cores, " GiB ", pod.memory_gib,
                        pod.zone.empty() ? "" : " zone ", pod.zone,
                        pod.tolerates ? " tolerates" : "", "\n");
  }

  void AddNode(size_t i) {
    PlacementNode node{static_cast<int64_t>(Below(5)),      static_cast<int64_t>(2 + Below(7)),
                       static_cast<int64_t>(2 + Below(11)), static_cast<int64_t>(1 + Below(5)),
                       Below(2) == 0 ? "a" : "b",           Below(4) == 0};
    model::Node object =
        model::testing::MakeNode(absl::StrCat("n", i), node.gpus, node.cores, node.memory_gib);
    model::Set(object.allocatable, "pods", node.pods);
    object.meta.labels.Set(model::kZoneLabel, node.zone);
    if (node.tainted) {
      object.taints.push_back({"reserved", "yes", model::TaintEffect::kNoSchedule});
    }
    cluster_.state().UpsertNode(object);
    nodes_.push_back(std::move(node));
  }

  PlacedPod RandomPod() {
    PlacedPod pod;
    pod.gpus = static_cast<int64_t>(Below(3));
    pod.cores = static_cast<int64_t>(1 + Below(4));
    pod.memory_gib = static_cast<int64_t>(1 + Below(6));
    if (Below(4) == 0) pod.zone = Below(2) == 0 ? "a" : "b";
    pod.tolerates = Below(2) == 0;
    return pod;
  }

  // Made of a builder, with what builders do not know.
  static model::Pod Built(const PlacedPod& pod, PodBuilder builder) {
    builder.Queue("q").Cpu(pod.cores * 1000);
    if (pod.gpus > 0) builder.Gpus(pod.gpus);
    if (!pod.zone.empty()) builder.NodeSelector(model::kZoneLabel, pod.zone);
    model::Pod built = builder.Build();
    model::Set(built.spec.requests, model::kMemoryName, pod.memory_gib * model::testing::kGiB);
    if (pod.tolerates) {
      built.spec.tolerations.push_back({"reserved", /*exists=*/true, "", std::nullopt});
    }
    return built;
  }

  void AddRunning(size_t i, bool may_leave) {
    PlacedPod pod = RandomPod();
    pod.node = static_cast<int>(Below(nodes_.size()));
    pod.leaving = may_leave && Below(2) == 0;
    free_.clear();
    for (const PlacementNode& node : nodes_) {
      free_.push_back({node.gpus, node.cores, node.memory_gib, node.pods});
    }
    for (const PlacedPod& other : running_) Take(other, static_cast<size_t>(other.node), 1);
    if (!Fits(pod, static_cast<size_t>(pod.node))) return;
    PodBuilder builder("ns", absl::StrCat("r", i));
    builder.Preemptible(false).On(absl::StrCat("n", pod.node));
    if (pod.leaving) builder.Deleting();
    cluster_.Pod(Built(pod, builder));
    running_.push_back(pod);
  }

  bool Fits(const PlacedPod& pod, size_t i) const {
    const PlacementNode& node = nodes_[i];
    const Capacity& capacity = free_[i];
    if (!pod.zone.empty() && pod.zone != node.zone) return false;
    if (node.tainted && !pod.tolerates) return false;
    return pod.gpus <= capacity.gpus && pod.cores <= capacity.cores &&
           pod.memory_gib <= capacity.memory_gib && capacity.pods >= 1;
  }
  void Take(const PlacedPod& pod, size_t i, int sign) {
    Capacity& capacity = free_[i];
    capacity.gpus -= sign * pod.gpus;
    capacity.cores -= sign * pod.cores;
    capacity.memory_gib -= sign * pod.memory_gib;
    capacity.pods -= sign;
  }
  bool PlaceFrom(size_t next) {
    if (next == gang_.size()) return true;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!Fits(gang_[next], i)) continue;
      Take(gang_[next], i, 1);
      const bool found = PlaceFrom(next + 1);
      Take(gang_[next], i, -1);
      if (found) return true;
    }
    return false;
  }

  std::mt19937_64 random_;
  testing::Cluster cluster_;
  std::vector<PlacementNode> nodes_;
  std::vector<PlacedPod> running_, gang_;
  std::vector<Capacity> free_;
};

struct Counts {
  int possible = 0, impossible = 0, promised = 0;
};

Counts Try(uint64_t first, uint64_t last, bool alike, bool leaving) {
  Counts counts;
  for (uint64_t seed = first; seed <= last; ++seed) {
    PlacementWorld world(seed, alike, leaving);
    const bool now = world.Exists(false);
    const bool later = now || (leaving && world.Exists(true));
    const int decided = world.Decide();
    EXPECT_EQ(decided, now     ? 2
                       : later ? 1
                               : 0)
        << "seed " << seed << (alike ? ", alike" : "") << "\n"
        << world.Text();
    counts.possible += now ? 1 : 0;
    counts.promised += !now && later ? 1 : 0;
    counts.impossible += later ? 0 : 1;
  }
  return counts;
}

TEST(PlacementOracle, AGangOfLikePodsStartsWheneverItCan) {
  const Counts counts = Try(1, 300, /*alike=*/true, /*leaving=*/false);
  EXPECT_GT(counts.possible, 50);
  EXPECT_GT(counts.impossible, 50);
}

TEST(PlacementOracle, AGangOfUnlikePodsStartsWheneverItCan) {
  const Counts counts = Try(1000, 1600, /*alike=*/false, /*leaving=*/false);
  EXPECT_GT(counts.possible, 100);
  EXPECT_GT(counts.impossible, 100);
}

TEST(PlacementOracle, RoomThatIsBeingReleasedIsPromisedWheneverItIsEnough) {
  const Counts counts = Try(2000, 2500, /*alike=*/false, /*leaving=*/true);
  EXPECT_GT(counts.possible, 50);
  EXPECT_GT(counts.promised, 20);
}

}  // namespace
}  // namespace fairlead::engine
