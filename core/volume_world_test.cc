// Pods with PersistentVolumeClaims in the decision loop, and a cluster at random: no pod is bound
// before its volumes, and all are in the end.
#include <deque>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/volumes_testing.h"

namespace fairlead::core::testing {
namespace {

using ::testing::SizeIs;

// An API server, a controller of volumes and a provisioner that fail at random, and a watch that is
// late.
class VolumeWorld {
 public:
  static constexpr int kNodes = 3;
  VolumeWorld(uint64_t seed, DecisionLoop& loop) : random_(seed), loop_(loop) {}

  bool Draw(int percent) { return static_cast<int>(random_() % 100) < percent; }
  std::string RandomNode() { return absl::StrCat("n", 1 + random_() % kNodes); }
  void Store(PersistentVolumeClaim claim) {
    claim.meta.resource_version = absl::StrCat(++version_);
    Show(claims[claim.meta.name] = claim);
  }
  void Store(PersistentVolume volume) {
    volume.meta.resource_version = absl::StrCat(++version_);
    Show(volumes[volume.meta.name] = volume);
  }
  // Shows the loop some of what has happened, in order; at last everything.
  void Watch(bool all) {
    while (!unseen_.empty() && (all || Draw(60))) {
      loop_.Apply(unseen_.front());
      unseen_.pop_front();
    }
  }
  // What the server does with a write, and what it answers: these are not always the same.
  void Take(const Action& action, bool calm) {
    const bool volume = std::holds_alternative<BindVolume>(action.what);
    if (!volume && !std::holds_alternative<SelectVolumeNode>(action.what)) {
      loop_.Apply(model::ActionResult{action.id, absl::OkStatus()});
      return;
    }
    const bool lost = !calm && Draw(20);
    absl::Status status;
    if (calm || !Draw(20)) {
      status = volume ? Do(std::get<BindVolume>(action.what))
                      : Do(std::get<SelectVolumeNode>(action.what));
    } else if (!lost) {
      status = Draw(50) ? absl::AbortedError("429") : absl::PermissionDeniedError("403");
    }
    if (lost) status = absl::UnavailableError("no answer");
    unanswered_.push_back(model::ActionResult{action.id, status});
  }
  void Answer(bool all) {
    while (!unanswered_.empty() && (all || Draw(50))) {
      loop_.Apply(unanswered_.front());
      unanswered_.pop_front();
    }
  }
  // The volume controller and the provisioner.
  void Control(bool calm) {
    const std::map<std::string, PersistentVolumeClaim> before = claims;
    for (const auto& [name, claim] : before) {
      if (claim.IsBound() || !(calm || Draw(30))) continue;
      std::string volume;
      for (const auto& [other, row] : volumes) {
        if (row.claim.has_value() && row.claim->uid == claim.meta.uid) volume = other;
      }
      if (volume.empty() && claim.selected_node.empty()) continue;
      if (volume.empty() && !calm && Draw(30)) {
        Store(Selected(claim, ""));
        continue;
      }
      if (volume.empty()) {
        volume = absl::StrCat("pvc-", name);
        // Not always where it was asked for.
        const std::string node = !calm && Draw(30) ? RandomNode() : claim.selected_node;
        Store(OfClaim(Where(MakeVolume(volume, claim.storage_class), model::kHostnameLabel, {node}),
                      claim));
      } else if (!calm && Draw(10)) {
        PersistentVolume released = volumes[volume];
        released.claim.reset();
        released.available = true;
        Store(released);
        PersistentVolumeClaim open = claim;
        open.volume_name.clear();
        if (!claim.volume_name.empty()) Store(open);
        continue;
      }
      PersistentVolumeClaim named = claim;
      named.volume_name = volume;
      named.bind_completed = !claim.volume_name.empty() || Draw(50);
      Store(named);
    }
  }

  std::map<std::string, PersistentVolumeClaim> claims;
  std::map<std::string, PersistentVolume> volumes;

 private:
  template <typename T>
  void Show(const T& object) {
    unseen_.emplace_back(model::Upsert{object});
  }
  absl::Status Do(const BindVolume& write) {
    PersistentVolume volume = volumes[write.volume];
    if (volume.meta.resource_version != write.resource_version) {
      return absl::FailedPreconditionError("409");
    }
    EXPECT_TRUE(!volume.claim.has_value()) << write.volume;
    volume.claim = PersistentVolume::ClaimRef{write.claim_ns, write.claim_name, write.claim_uid};
    volume.available = false;
    Store(volume);
    return absl::OkStatus();
  }
  absl::Status Do(const SelectVolumeNode& write) {
    const PersistentVolumeClaim claim = claims[write.name];
    if (claim.meta.resource_version != write.resource_version) {
      return absl::FailedPreconditionError("409");
    }
    EXPECT_EQ(claim.selected_node, "") << write.name;
    Store(Selected(claim, write.node));
    return absl::OkStatus();
  }

  std::mt19937_64 random_;
  DecisionLoop& loop_;
  int64_t version_ = 100;
  std::deque<model::ClusterEvent> unseen_;
  std::deque<model::ActionResult> unanswered_;
};

TEST_F(VolumesTest, WhateverHappensNoPodIsBoundBeforeItsVolumesAndAllAreInTheEnd) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    BeginAgain(VolumeWorld::kNodes);
    VolumeWorld world(seed, *loop_);
    std::map<std::string, std::vector<std::string>> pods;
    for (int i = 0; i < 6; ++i) {
      const bool local = i % 2 == 0;
      if (local) world.Store(OnHost(absl::StrCat("v", i), absl::StrCat("n", 1 + i % 3)));
      world.Store(MakeVolumeClaim(absl::StrCat("c", i), local ? "local" : "cloud"));
      pods[absl::StrCat("p", i)] = {absl::StrCat("c", i)};
    }
    pods["both"] = {"c1", "c3"};  // shared
    world.Watch(/*all=*/true);
    for (const auto& [name, claims] : pods) Put(Pod(name, claims));
    std::set<std::string> bound;
    absl::Time now = At(1);
    constexpr int kSteps = 150, kCalm = 100;
    for (int i = 0; i < kSteps && bound.size() < pods.size(); ++i) {
      const bool calm = i >= kCalm;
      const StepResult step = StepAt(now);
      for (const model::BindPod& bind : Of<model::BindPod>(step)) {
        for (const std::string& name : pods.at(bind.name)) {
          const PersistentVolumeClaim& claim = world.claims.at(name);
          ASSERT_TRUE(claim.IsBound()) << bind.name;
          const PersistentVolume& volume = world.volumes.at(claim.volume_name);
          if (!volume.has_node_affinity) continue;
          EXPECT_EQ(volume.node_terms[0].match_expressions[0].values[0], bind.node) << bind.name;
        }
        EXPECT_TRUE(bound.insert(bind.name).second) << bind.name;
        model::Pod pod = Pod(bind.name, pods.at(bind.name));
        pod.node_name = bind.node;
        Put(pod);
      }
      for (const Action& action : step.actions) world.Take(action, calm);
      if (!calm && world.Draw(30)) Cordon(world.RandomNode(), world.Draw(50));
      if (i == kCalm) {
        for (const char* node : {"n1", "n2", "n3"}) Cordon(node, /*cordoned=*/false);
      }
      if (!calm && world.Draw(10)) {
        const auto& [name, claims] = *std::next(pods.begin(), i % 7);
        if (!bound.contains(name)) {
          Delete(model::Kind::kPod, "ns", name);
          Put(Pod(name, claims));
        }
      }
      world.Control(calm);
      world.Watch(calm);
      world.Answer(calm);
      now += absl::Seconds(calm ? 70 : 3);
    }
    // What a controller has bound to volumes on different nodes can be in no pod.
    const auto host = [&](const char* claim) {
      return world.volumes.at(world.claims.at(claim).volume_name)
          .node_terms[0]
          .match_expressions[0]
          .values[0];
    };
    if (!bound.contains("both")) {
      EXPECT_NE(host("c1"), host("c3"));
      bound.insert("both");
    }
    EXPECT_THAT(bound, SizeIs(pods.size()));
  }
}

}  // namespace
}  // namespace fairlead::core::testing
