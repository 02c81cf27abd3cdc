// Sub-groups with topology constraints of their own, against brute force in small random clusters:
// if there are domains for all of them, the gang starts.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/engine/engine_testing.h"

namespace fairlead::engine {
namespace {

using model::testing::PodBuilder;

enum class Bound : uint8_t { kNot, kZone, kHost };

struct Place {
  int64_t free = 0;
  int zone = -1;  // -1: outside the topology
};

struct Sub {
  Bound bound;
  int64_t pods;  // of one GPU each
};

class SiblingsWorld {
 public:
  explicit SiblingsWorld(uint64_t seed) : random_(seed) {
    zones_ = 1 + static_cast<int>(Below(2));
    for (size_t i = 2 + Below(4); i > 0; --i) {
      places_.push_back(
          {static_cast<int64_t>(Below(5)), Below(6) == 0 ? -1 : static_cast<int>(Below(zones_))});
    }
    in_one_zone_ = Below(3) == 0;
    for (size_t i = 2 + Below(2); i > 0; --i) {
      const Bound bound =
          std::vector{Bound::kNot, Bound::kZone, Bound::kHost, Bound::kHost}[Below(4)];
      subs_.push_back({bound, 1 + static_cast<int64_t>(Below(4))});
    }
  }

  bool Exists() const {
    if (!in_one_zone_) return PlaceFrom(0, places_, -1);
    for (int zone = 0; zone < zones_; ++zone) {
      if (PlaceFrom(0, places_, zone)) return true;
    }
    return false;
  }

  // Whether the gang starts.
  bool Starts() const {
    testing::Cluster cluster;
    cluster.Queue("q", model::kUnlimited);
    model::Topology topology;
    topology.meta.name = "t";
    topology.levels = {{model::kZoneLabel, "zone"}, {model::kHostnameLabel, "host"}};
    cluster.state().UpsertTopology(topology);
    for (size_t i = 0; i < places_.size(); ++i) {
      const std::string name = absl::StrCat("n", i);
      model::Node node = model::testing::MakeNode(name, places_[i].free);
      node.meta.labels.Set(model::kHostnameLabel, name);
      if (places_[i].zone >= 0) {
        node.meta.labels.Set(model::kZoneLabel, absl::StrCat("z", places_[i].zone));
      }
      cluster.state().UpsertNode(node);
    }
    model::PodGroup group = model::testing::MakeGroup("ns", "gang", "q", 1);
    group.min_member.reset();
    if (in_one_zone_) group.topology = {"t", "zone", ""};
    size_t pods = 0;
    for (size_t i = 0; i < subs_.size(); ++i) {
      model::SubGroup& sub = group.sub_groups.emplace_back();
      sub.name = absl::StrCat("s", i);
      sub.min_member = static_cast<int32_t>(subs_[i].pods);
      if (subs_[i].bound != Bound::kNot) {
        sub.topology = {"t", subs_[i].bound == Bound::kZone ? "zone" : "host", ""};
      }
    }
    cluster.Group(group);
    for (size_t i = 0; i < subs_.size(); ++i) {
      for (int64_t k = 0; k < subs_[i].pods; ++k, ++pods) {
        PodBuilder pod("ns", absl::StrCat("p", pods));
        pod.Group("gang").Gpus(1).Label(model::kSubGroupLabel, absl::StrCat("s", i));
        cluster.Pod(pod);
      }
    }
    cluster.Run();
    EXPECT_TRUE(cluster.Bound().empty() || cluster.Bound().size() == pods) << "half a gang";
    return !cluster.Bound().empty();
  }

  std::string Text() const {
    std::string text = in_one_zone_ ? "all in one zone\n" : "";
    for (const Place& place : places_) {
      absl::StrAppend(&text, "node: free ", place.free, " zone ", place.zone, "\n");
    }
    for (const Sub& sub : subs_) {
      absl::StrAppend(&text, "sub-group: pods ", sub.pods, " of one ",
                      sub.bound == Bound::kHost   ? "host"
                      : sub.bound == Bound::kZone ? "zone"
                                                  : "cluster",
                      "\n");
    }
    return text;
  }

 private:
  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  // Every way for the sub-groups from `next` on. `within`: the zone of all; -1: any.
  bool PlaceFrom(size_t next, std::vector<Place> places, int within) const {
    if (next == subs_.size()) return true;
    const Sub& sub = subs_[next];
    if (sub.bound == Bound::kHost) {
      for (Place& place : places) {
        if (place.zone < 0 || place.free < sub.pods || !IsIn(place, within)) continue;
        place.free -= sub.pods;
        if (PlaceFrom(next + 1, places, within)) return true;
        place.free += sub.pods;
      }
      return false;
    }
    if (sub.bound == Bound::kNot) return Spread(next, places, 0, sub.pods, within);
    for (int zone = 0; zone < zones_; ++zone) {
      if (within >= 0 && zone != within) continue;
      if (Spread(next, places, 0, sub.pods, zone)) return true;
    }
    return false;
  }

  // Every way to spread `pods` over the places from `from` on in the zone.
  bool Spread(size_t next, std::vector<Place> places, size_t from, int64_t pods, int zone) const {
    if (pods == 0) return PlaceFrom(next + 1, places, in_one_zone_ ? zone : -1);
    if (from == places.size()) return false;
    const int64_t most = IsIn(places[from], zone) ? std::min(pods, places[from].free) : 0;
    for (int64_t here = 0; here <= most; ++here) {
      places[from].free -= here;
      if (Spread(next, places, from + 1, pods - here, zone)) return true;
      places[from].free += here;
    }
    return false;
  }

  static bool IsIn(const Place& place, int zone) { return zone < 0 || place.zone == zone; }

  std::mt19937_64 random_;
  int zones_ = 1;
  std::vector<Place> places_;
  bool in_one_zone_ = false;
  std::vector<Sub> subs_;
};

TEST(SiblingSets, StartWhereverThereAreDomainsForAll) {
  int start = 0, wait = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const SiblingsWorld world(seed);
    const bool exists = world.Exists();
    ++(exists ? start : wait);
    ASSERT_EQ(world.Starts(), exists) << "seed " << seed << "\n" << world.Text();
  }
  EXPECT_GT(start, 300);
  EXPECT_GT(wait, 300);
}

// 6,000 domains, of which none takes the second sub-group: the second attempt ends at its bound.
TEST(SiblingSets, SecondAttemptIsBounded) {
  testing::Cluster cluster;
  cluster.Queue("q", model::kUnlimited);
  model::Topology topology;
  topology.meta.name = "t";
  topology.levels = {{model::kHostnameLabel, "host"}};
  cluster.state().UpsertTopology(topology);
  for (int i = 0; i < 6000; ++i) {
    const std::string name = absl::StrCat("n", i);
    model::Node node = model::testing::MakeNode(name, 1);
    node.meta.labels.Set(model::kHostnameLabel, name);
    cluster.state().UpsertNode(node);
  }
  model::PodGroup group = model::testing::MakeGroup("ns", "gang", "q", 1);
  group.min_member.reset();
  for (const char* name : {"a", "b"}) {
    model::SubGroup& sub = group.sub_groups.emplace_back();
    sub.name = name;
    sub.min_member = 1;
    sub.topology = {"t", "host", ""};
    PodBuilder pod("ns", name);
    pod.Group("gang").Gpus(1).Label(model::kSubGroupLabel, name);
    if (sub.name == "b") pod.NodeSelector("kind", "none");
    cluster.Pod(pod);
  }
  cluster.Group(group);
  cluster.Run();
  EXPECT_TRUE(cluster.Bound().empty());
}

}  // namespace
}  // namespace fairlead::engine
