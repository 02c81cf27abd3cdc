#include "sim/world/plan_random.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "sim/world/cloud.h"
#include "sim/world/plan_capacity.h"
#include "sim/world/plan_corners.h"
#include "sim/world/plan_devices.h"
#include "sim/world/plan_draft.h"
#include "sim/world/plan_faults.h"
#include "sim/world/plan_guests.h"
#include "sim/world/plan_kai.h"
#include "sim/world/plan_owners.h"
#include "sim/world/plan_pools.h"
#include "sim/world/plan_shards.h"
#include "sim/world/plan_volumes.h"

namespace fairlead::sim::world {
namespace {

// Of what came later: what was drawn before stays the same.
constexpr uint64_t kEmptyingDice = 0x5e7f0c1d92b3a641ULL;

constexpr int64_t kMicroPerUsd = 1'000'000;
// Families that are drawn apart from all others.
constexpr char kDevices[] = "devices", kVolumes[] = "volumes", kGuests[] = "guests",
               kCapacity[] = "capacity", kPools[] = "pools", kKaiStatus[] = "kai-status",
               kShards[] = "shards", kOwners[] = "owners";
bool IsDrawnApart(absl::string_view family) {
  constexpr absl::string_view kApart[] = {kDevices, kVolumes,   kGuests, kCapacity,
                                          kPools,   kKaiStatus, kShards, kOwners};
  return std::find(std::begin(kApart), std::end(kApart), family) != std::end(kApart);
}
// The others are told all the time, by corners.
constexpr size_t kLiesByChance = 11;
// With more families than these, what happens is left to chance.
constexpr size_t kFewFamilies = 3;

class Generator : PlanTenants {
 public:
  Generator(uint64_t seed, const std::vector<std::string>& families, Plan& plan)
      : PlanTenants(seed, plan) {
    plan_.end_ms = random_.Between(90, 200) * kSecond;
    plan_.hook = OneIn(2);
    if (OneIn(4)) plan_.max_usd_per_hour = random_.Between(3, 12);
    if (OneIn(4)) plan_.max_nodes = random_.Between(3, 8);
    plan_.paced = OneIn(3);
    plan_.empties = plan_.hook && Random(seed ^ kEmptyingDice).Below(3) == 0;
    crowded_ = plan_.hook && OneIn(2);
    std::vector<std::string> by_chance, corners;
    for (const std::string& family : families) {
      if (ProcessFamilies().contains(family)) {
        process_families_.insert(family);
        continue;
      }
      if (LaterFamilies().contains(family) || IsDrawnApart(family)) continue;
      (CornerFamilies().contains(family) ? corners : by_chance).push_back(family);
    }
    capacity_ = DrawApart(kCapacity, families, DrawsCapacity(seed));
    guests_ = DrawApart(kGuests, families, DrawsGuests(seed));
    kai_status_ = DrawApart(kKaiStatus, families, DrawsKaiStatus(seed));
    if (seed % 8 == 0) return;
    devices_ = DrawApart(kDevices, families, DrawsDevices(seed));
    volumes_ = DrawApart(kVolumes, families, DrawsVolumes(seed));
    pools_ = DrawApart(kPools, families, DrawsPools(seed));
    // A guest's scheduler asks one process about all pods.
    shards_ = !guests_ && DrawApart(kShards, families, DrawsShards(seed));
    owners_ = !guests_ && !shards_ && DrawApart(kOwners, families, DrawsOwners(seed));
    DrawLater(seed, families);
    for (const std::string& family : by_chance) {
      if (OneIn(3)) families_.insert(family);
    }
    // Devices and volumes do not count: what else there is stays the same with them.
    if (families_.empty() && later_.empty() && !by_chance.empty()) {
      families_.insert(by_chance[random_.Below(by_chance.size())]);
    }
    has_corners_ = families.size() <= kFewFamilies;
    if (has_corners_) families_.insert(corners.begin(), corners.end());
  }

  void Draw() {
    Cluster();
    Queues();
    Work();
    if (On("tenants")) Tenants();
    if (On("queues")) QueueChanges();
    if (On("groups")) Groups();
    if (On("hostile")) Hostile();
    if (On("odd")) Odd();
    if (On("shares")) Shares();
    if (On("foreign")) Foreign();
    if (On("nodes")) NodeFaults();
    if (On("kubelet")) KubeletFaults();
    if (On("cloud")) CloudFaults();
    if (On("cloud")) TakesBack();
    if (On("network")) NetworkFaults();
    if (On("watch")) WatchFaults();
    if (On("half-open")) HalfOpenFaults();
    if (On("clock")) ClockFaults();
    if (On("crash")) Crashes();
    if (On("lease")) LeaseFaults();
    if (On("budgets")) Budgets();
    if (later_.contains("names")) Names();
    if (later_.contains("labels")) NodeChanges();
    if (later_.contains("bonds")) BoundPods();
    if (later_.contains("classes")) Classes();
    if (has_corners_) AddCorners(plan_.seed, families_, plan_);
    AddProcessFaults(plan_.seed, process_families_, plan_);
    if (devices_) AddDevices(plan_.seed, has_corners_, plan_);
    if (volumes_) AddVolumeWork(plan_.seed, has_corners_, plan_);
    if (capacity_) AddCapacity(plan_.seed, plan_);
    if (pools_) AddPools(plan_.seed, has_corners_, plan_);
    if (kai_status_) AddKaiStatus(plan_.seed, has_corners_, plan_);
    if (shards_) AddShards(plan_.seed, plan_);
    if (owners_) AddOwners(plan_.seed, has_corners_, plan_);
    std::stable_sort(plan_.operations.begin(), plan_.operations.end(),
                     [](const Operation& a, const Operation& b) { return a.at_ms < b.at_ms; });
    if (guests_) AddGuests(plan_.seed, plan_);
  }

 private:
  std::set<std::string, std::less<>> process_families_;  // drawn apart
  static const std::set<std::string, std::less<>>& LaterFamilies() {
    static const auto* const kLater =
        new std::set<std::string, std::less<>>{"bonds", "classes", "labels", "names"};
    return *kLater;
  }
  // Families that came later have dice of their own: what the others draw stays the same.
  void DrawLater(uint64_t seed, const std::vector<std::string>& families) {
    Random dice(seed * 0xaf251af3b0f025b5ULL + 3);
    for (const std::string& family : LaterFamilies()) {
      const bool drawn = dice.Below(3) == 0;
      if (std::find(families.begin(), families.end(), family) == families.end()) continue;
      if (drawn || families.size() <= kFewFamilies) later_.insert(family);
    }
  }

  static bool DrawApart(const char* family, const std::vector<std::string>& families, bool drawn) {
    if (std::find(families.begin(), families.end(), family) == families.end()) return false;
    return drawn || families.size() <= kFewFamilies;
  }

  void Foreign() {
    At(0, "foreign-lag").With("ms", random_.Between(0, 1500));
    if (OneIn(2)) {
      At(0, "foreign-race").With("for_ms", 10 * plan_.end_ms);
      // Kinds are not ordered between each other: pods may be seen seconds after nodes.
      for (const char* replica : {"a", "b"}) {
        At(kSecond, "network")
            .With("replica", replica)
            .With("max_watch_delay_ms", random_.Between(500, 4000))
            .With("for_ms", plan_.end_ms);
      }
    }
    Times(3, 15, [&] {
      Operation& pod = At(Sometime(), "pod");
      pod.With("name", absl::StrCat("f", plan_.operations.size())).With("ns", "team-b");
      pod.With("scheduler", "default-scheduler").With("cpu", random_.Between(1, 8) * 1000);
      pod.With("gpu", random_.Between(0, 4)).With("run", random_.Between(5, 60));
    });
  }

  void NodeFaults() {
    Times(2, 6, [&] {
      const int64_t at = Sometime(), later = at + random_.Between(1000, 20'000);
      const std::string& name = Any(nodes_);
      switch (random_.Below(5)) {
        case 0:
          At(at, "cordon-node").With("name", name).With("on", 1);
          At(later, "cordon-node").With("name", name).With("on", 0);
          break;
        case 1:
          At(at, "taint-node").With("name", name).With("on", 1).With("soft", OneIn(2) ? 1 : 0);
          At(later, "taint-node").With("name", name).With("on", 0);
          break;
        case 2:
          At(at, "node-ready").With("name", name).With("on", 0);
          At(later, "node-ready").With("name", name).With("on", 1);
          break;
        case 3:
          At(at, "kill-node").With("name", name);
          At(later, "node")
              .With("name", name)
              .With("cpu", 16'000)
              .With("memory", 64 * kGiB)
              .With("gpu", 8);
          break;
        default:
          At(at, "shrink-node").With("name", name).With("cpu", random_.Between(1, 16) * 1000);
      }
    });
    if (OneIn(2)) At(Sometime(), "heartbeats").With("for_ms", 60'000);
  }

  void KubeletFaults() {
    Times(1, 2, [&] {
      At(Sometime(), "stuck-kubelet").With("for_ms", random_.Between(5, 60) * kSecond);
    });
    if (OneIn(2)) At(0, "static-pods");
    Times(1, 3, [&] {
      At(Sometime(), "mirror-pod")
          .With("name", absl::StrCat("static-", plan_.operations.size()))
          .With("ns", "kube-system")
          .With("node", Any(nodes_))
          .With("cpu", 100);
    });
  }

  void CloudFaults() {
    Times(1, 4, [&] {
      At(random_.Between(0, plan_.end_ms - kSecond), "cloud")
          .With("lie", LieName(static_cast<Lie>(random_.Below(kLiesByChance))))
          .With("for_ms", random_.Between(10, 60) * kSecond);
    });
    if (OneIn(2)) Times(1, 2, [&] { At(Sometime(), "lose-machine"); });
    if (OneIn(2)) {
      Times(1, 5, [&] { At(Sometime(), "delete-request").With("pick", random_.Between(0, 9)); });
    }
    if (OneIn(3)) At(Sometime(), "catalogue");
    if (OneIn(3)) SmallMachines();
    if (plan_.hook && OneIn(3)) OldMachines();
  }

  // The cloud announces the end of machines.
  void TakesBack() {
    Random dice(plan_.seed ^ (kEmptyingDice + 1));
    if (!plan_.hook || dice.Below(2) == 0) return;
    for (int64_t n = dice.Between(1, 4); n > 0; --n) {
      At(dice.Between(20 * kSecond, plan_.end_ms - kSecond), "take-back")
          .With("pick", dice.Between(0, 9))
          .With("notice_ms", dice.Between(5, 120) * kSecond);
    }
  }

  // They never are what the catalogue says, and some pods need all of it.
  void SmallMachines() {
    At(0, "cloud").With("lie", LieName(Lie::kSmaller)).With("for_ms", "always");
    Times(1, 2, [&] {
      Job(random_.Between(500, plan_.end_ms / 2))
          .With("pods", random_.Between(4, 9))
          .With("gpu", OneIn(3) ? 1 : 0)
          .With("cpu", 1000)
          .With("memory", 30 * kGiB)
          .With("grouping", OneIn(2) ? "none" : "own")
          .With("min", 1)
          .With("run", 600);
    });
  }

  // Whatever they cost, what a hook assumes of them leaves room for a few more.
  void OldMachines() {
    const int64_t count = random_.Between(1, 3);
    for (int64_t i = 0; i < count; ++i) {
      At(0, "old-machine")
          .With("name", absl::StrCat("old", i))
          .With("gpu", random_.Between(1, 4))
          .With("price", random_.Between(2, 6) * kMicroPerUsd);
    }
    plan_.max_usd_per_hour = 6 * count + random_.Between(3, 10);
    if (crowded_) Burst();
  }

  Operation& OnReplica(int64_t at, absl::string_view verb) {
    return At(at, verb).With("replica", OneIn(2) ? "a" : "b");
  }

  void NetworkFaults() {
    Times(1, 4, [&] {
      Operation& bad = OnReplica(Sometime(), "network");
      bad.With("for_ms", random_.Between(2, 20) * kSecond);
      static const std::vector<const char*> kChances = {
          "lose_request", "lose_answer", "throttle", "server_error", "gateway_timeout", "conflict"};
      for (const char* chance : kChances) {
        if (OneIn(2)) bad.With(chance, random_.Between(10, 200));
      }
      if (OneIn(3)) bad.With("max_delay_ms", random_.Between(100, 3000));
      if (OneIn(3)) bad.With("max_watch_delay_ms", random_.Between(100, 3000));
    });
    static const std::vector<const char*> kRefused = {
        "/api/v1/namespaces/team-a/pods", "/apis/fairlead.dev/v1alpha1/noderequests",
        "/apis/scheduling.run.ai", "/api/v1/nodes", "/api/v1/pods"};
    static const std::vector<const char*> kSubresources = {"", "/status", "/binding", "/eviction"};
    static const std::vector<int64_t> kStatus = {403, 500, 404, 0};
    if (plan_.hook && OneIn(2)) {
      Times(1, 2, [&] {
        OnReplica(Sometime(), "refuse")
            .With("prefix", "/apis/fairlead.dev/v1alpha1/noderequests")
            .With("suffix", "/status")
            .With("status", OneIn(2) ? 403 : 500)
            .With("for_ms", random_.Between(20, 80) * kSecond);
      });
    }
    if (OneIn(2)) {  // a webhook that does not let one pod of a gang be bound
      const int64_t pods = random_.Between(2, 4);
      Operation& job = Job(Sometime());
      const std::string name = jobs_.back();
      job.With("pods", pods).With("min", pods).With("gpu", 1).With("cpu", 500);
      job.With("grouping", "own").With("run", 600);
      At(0, "refuse-binding").With("name", absl::StrCat(name, "-", random_.Below(pods)));
    }
    if (OneIn(2)) {
      Times(1, 3, [&] {
        OnReplica(Sometime(), "refuse")
            .With("prefix", Any(kRefused))
            .With("suffix", Any(kSubresources))
            .With("status", Any(kStatus))
            .With("for_ms", random_.Between(2, 20) * kSecond);
      });
    }
  }

  void WatchFaults() {
    Times(1, 4, [&] {
      switch (random_.Below(3)) {
        case 0:
          OnReplica(Sometime(), "goaway");
          break;
        case 1:
          At(Sometime(), "compact");
          break;
        default:
          At(Sometime(), "end-watches");
      }
    });
    if (!OneIn(2)) return;
    static const std::vector<const char*> kBlind = {"/api/v1/pods", "/api/v1/nodes"};
    At(random_.Between(5 * kSecond, 40 * kSecond), "blind")
        .With("replica", OneIn(2) ? "leader" : "a")
        .With("prefix", Any(kBlind))
        .With("status", OneIn(2) ? 403 : 500)
        .With("for_ms", random_.Between(80, 150) * kSecond);
  }

  void HalfOpenFaults() {
    Times(1, 2, [&] {
      OnReplica(Sometime(), "half-open")
          .With("class", OneIn(3) ? "read" : "watch")
          .With("for_ms", random_.Between(2, 40) * kSecond);
    });
  }

  void ClockFaults() {
    Times(1, 3, [&] {
      if (OneIn(2)) {
        OnReplica(Sometime(), "clock").With("offset_ms", random_.Between(-120, 120) * kSecond);
      } else {
        OnReplica(Sometime(), "pause").With("for_ms", random_.Between(1, 30) * kSecond);
      }
    });
  }

  void Crashes() {
    Times(1, 4, [&] {
      Operation& crash = OnReplica(Sometime(), "crash");
      crash.With("down_ms", random_.Between(10, 10'000));
      if (OneIn(2)) crash.With("at_write", random_.Between(1, 10));
    });
  }

  void LeaseFaults() {
    Times(1, 2, [&] {
      const int64_t at = Sometime();
      if (OneIn(2)) {  // the standby is behind, and does not know
        At(at - random_.Between(0, 5 * kSecond), "half-open")
            .With("replica", "standby")
            .With("class", "watch")
            .With("for_ms", random_.Between(2, 10) * kSecond);
      }
      const bool hangs = OneIn(2);
      At(at, hangs ? "hang" : "partition")
          .With("replica", "leader")
          .With("for_ms", random_.Between(3, hangs ? 120 : 40) * kSecond);
    });
  }

  std::set<std::string, std::less<>> later_;
  bool devices_ = false, volumes_ = false, guests_ = false, capacity_ = false, pools_ = false,
       kai_status_ = false, shards_ = false, owners_ = false;
};

}  // namespace

const std::vector<std::string>& FaultFamilies() {
  static const auto* const kFamilies = new std::vector<std::string>{
      "answers",    "bonds",   "budgets",   "capacity", "classes", "clock",   "cloud",
      "crash",      "demand",  "devices",   "foreign",  "groups",  "guests",  "hostile",
      "kai-status", "kubelet", "half-open", "labels",   "lease",   "names",   "network",
      "nodes",      "odd",     "owners",    "points",   "pools",   "queues",  "reload",
      "search",     "shards",  "shares",    "stop",     "tenants", "volumes", "watch"};
  return *kFamilies;
}

absl::StatusOr<std::vector<std::string>> ParseFamilies(absl::string_view text) {
  std::set<std::string> chosen;
  const std::vector<std::string>& all = FaultFamilies();
  for (const absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const bool out = word.front() == '-';
    const std::string name(out ? word.substr(1) : word);
    if (name == "none") continue;
    if (name == "all") {
      chosen.insert(all.begin(), all.end());
    } else if (std::find(all.begin(), all.end(), name) == all.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("no fault family \"", name, "\"; there are: ", absl::StrJoin(all, ", ")));
    } else if (out) {
      chosen.erase(name);
    } else {
      chosen.insert(name);
    }
  }
  return std::vector<std::string>(chosen.begin(), chosen.end());
}

Plan RandomPlan(uint64_t seed, const std::vector<std::string>& families) {
  Plan plan;
  Generator(seed, families, plan).Draw();
  return plan;
}

}  // namespace fairlead::sim::world
