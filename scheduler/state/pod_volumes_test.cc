// What volumes make of pods' classes, and what decisions do to volumes; last, both at random, with
// every change undone.
#include <random>

#include "gtest/gtest.h"
#include "scheduler/model/testing/volume_builders.h"
#include "scheduler/state/state_testing.h"
#include "scheduler/state/transaction.h"

namespace fairlead::state {
namespace {

using model::Kind;
using model::testing::BoundTo;
using model::testing::MakeNode;
using model::testing::MakeStorageClass;
using model::testing::MakeVolume;
using model::testing::MakeVolumeClaim;
using model::testing::OfClaim;
using model::testing::PodBuilder;
using model::testing::Where;

model::Pod WithClaims(model::Pod pod, const std::vector<std::string>& claims,
                      bool ephemeral = false) {
  for (const std::string& name : claims) pod.spec.volume_claims.push_back({name, ephemeral});
  return pod;
}

class PodVolumesTest : public ::testing::Test {
 protected:
  PodVolumesTest() {
    for (const char* name : {"n1", "n2"}) {
      model::Node node = MakeNode(name, 8);
      node.meta.labels.Set("zone", name[1] == '1' ? "a" : "b");
      state_.UpsertNode(node);
    }
    state_.UpsertVolumeObject(MakeStorageClass("local", model::kNoProvisioner));
    state_.UpsertVolumeObject(MakeStorageClass("cloud", "csi.example"));
    state_.UpsertVolumeObject(
        MakeStorageClass("at-once", "csi.example", model::StorageClass::Binding::kImmediate));
  }
  ~PodVolumesTest() override { EXPECT_EQ(state_.CheckConsistency(), ""); }

  PodId Add(const std::string& name, const std::vector<std::string>& claims) {
    state_.UpsertPod(WithClaims(PodBuilder("ns", name), claims));
    return state_.FindPod("ns", name);
  }
  const model::VolumeNeeds& Needs(PodId pod) { return *state_.class_of(pod).spec->volume_needs; }
  std::string Fault(const std::string& claim) {
    const PodId pod = Add("p", {claim});
    const model::VolumeNeeds& needs = Needs(pod);
    std::string out = needs.fault.empty() ? ""
                                          : absl::StrCat(needs.fault_plugin, ": ", needs.fault,
                                                         " [", needs.missing, "]");
    state_.RemovePod("ns", "p", "");
    return out;
  }
  const VolumeDecision& Decided(const std::string& claim) {
    return state_.volumes().FindClaim(model::Key("ns", claim))->decided;
  }

  ClusterState state_{testing::OurPods()};
};

TEST_F(PodVolumesTest, FaultsInTheWordsOfKubeScheduler) {
  EXPECT_EQ(Fault("c"),
            "VolumeRestrictions: persistentvolumeclaim \"c\" not found [PersistentVolumeClaim c]");
  state_.UpsertVolumeObject(MakeVolumeClaim("c", "at-once"));
  EXPECT_EQ(Fault("c"),
            "VolumeBinding: pod has unbound immediate PersistentVolumeClaims [a PersistentVolume "
            "for PersistentVolumeClaim c]");
  state_.UpsertVolumeObject(MakeVolumeClaim("c", "no-such"));
  EXPECT_EQ(Fault("c"),
            "VolumeBinding: pod has unbound immediate PersistentVolumeClaims [StorageClass "
            "no-such]");
  state_.UpsertVolumeObject(BoundTo(MakeVolumeClaim("c", "cloud"), "v"));
  EXPECT_EQ(Fault("c"), "VolumeZone: persistentvolume \"v\" not found [PersistentVolume v]");
  state_.UpsertVolumeObject(MakeVolume("v", "cloud"));
  EXPECT_EQ(Fault("c"), "");
  model::PersistentVolumeClaim claim = BoundTo(MakeVolumeClaim("c", "cloud"), "v");
  claim.lost = true;
  state_.UpsertVolumeObject(claim);
  EXPECT_EQ(Fault("c"),
            "VolumeBinding: persistentvolumeclaim \"c\" bound to non-existent persistentvolume "
            "\"v\" [PersistentVolume v]");
  claim.lost = false;
  claim.meta.deletion = absl::UnixEpoch();
  state_.UpsertVolumeObject(claim);
  EXPECT_EQ(Fault("c"), "VolumeBinding: persistentvolumeclaim \"c\" is being deleted []");
  state_.UpsertVolumeObject(
      MakeStorageClass("odd", "csi.example", model::StorageClass::Binding::kNotSet));
  state_.UpsertVolumeObject(MakeVolumeClaim("c", "odd"));
  EXPECT_EQ(Fault("c"), "VolumeBinding: VolumeBindingMode not set for StorageClass \"odd\" []");
  state_.SetVolumesReadable(false);
  EXPECT_NE(Fault("c").find("may not read"), std::string::npos);
  state_.SetVolumesReadable(true);
  EXPECT_EQ(state_.volumes().FindClaim("ns/c")->users.size(), 0u);
}

TEST_F(PodVolumesTest, AnEphemeralVolumeIsThePodsOwn) {
  state_.UpsertPod(WithClaims(PodBuilder("ns", "p"), {"scratch"}, /*ephemeral=*/true));
  const PodId pod = state_.FindPod("ns", "p");
  EXPECT_EQ(Needs(pod).fault,
            "waiting for ephemeral volume controller to create the persistentvolumeclaim "
            "\"p-scratch\"");
  model::PersistentVolumeClaim claim = MakeVolumeClaim("p-scratch", "cloud");
  state_.UpsertVolumeObject(claim);
  EXPECT_EQ(Needs(pod).fault, "PVC ns/p-scratch was not created for pod ns/p (pod is not owner)");
  claim.meta.owners = {{"v1", "Pod", "p", "uid-ns-p", true}};
  EXPECT_TRUE(state_.UpsertVolumeObject(claim).Any());
  EXPECT_EQ(Needs(pod).fault, "");
  EXPECT_EQ(Needs(pod).unbound.size(), 1u);
}

// Replicas with claims of their own wait as one.
TEST_F(PodVolumesTest, PodsWithClaimsThatAskForTheSameAreOneClass) {
  for (const char* name : {"c0", "c1", "c2"})
    state_.UpsertVolumeObject(MakeVolumeClaim(name, "cloud"));
  const PodId first = Add("p0", {"c0"});
  const PodId second = Add("p1", {"c1"});
  EXPECT_EQ(state_.pod(first).pod_class, state_.pod(second).pod_class);
  // A claim that two pods name ties them to each other.
  const PodId third = Add("p2", {"c1"});
  EXPECT_EQ(state_.pod(second).pod_class, state_.pod(third).pod_class);
  EXPECT_NE(state_.pod(first).pod_class, state_.pod(second).pod_class);
  state_.RemovePod("ns", "p2", "");
  EXPECT_EQ(state_.pod(first).pod_class, state_.pod(second).pod_class);
}

TEST_F(PodVolumesTest, ABoundClaimAsksForWhereItsVolumeIs) {
  model::PersistentVolume volume = Where(MakeVolume("v", "cloud"), "zone", {"a"});
  volume.meta.labels.Set("topology.kubernetes.io/zone", "b__a");
  volume.meta.labels.Set("topology.kubernetes.io/region", "r__");
  volume.csi_driver = "csi.example";
  volume.csi_handle = "h";
  const model::PersistentVolumeClaim claim = BoundTo(MakeVolumeClaim("c", "cloud"), "v");
  state_.UpsertVolumeObject(OfClaim(volume, claim));
  state_.UpsertVolumeObject(claim);
  const PodId pod = Add("p", {"c"});
  ASSERT_EQ(Needs(pod).bound.size(), 1u);
  EXPECT_EQ(Needs(pod).bound[0].node_terms, volume.node_terms);
  ASSERT_EQ(Needs(pod).bound[0].zones.size(), 1u);
  EXPECT_EQ(Needs(pod).bound[0].zones[0].values, std::vector<std::string>({"a", "b"}));
  ASSERT_EQ(Needs(pod).attached.size(), 1u);
  EXPECT_EQ(Needs(pod).attached[0].volume, "");
  Add("q", {"c"});
  EXPECT_EQ(Needs(pod).attached[0].volume, "csi.example/h");
  EXPECT_TRUE(state_.RemoveVolumeObject(Kind::kPersistentVolume, "", "v").Any());
  EXPECT_NE(Needs(pod).fault, "");
}

TEST_F(PodVolumesTest, ADecisionTakesVolumesAndGivesThemBack) {
  state_.UpsertVolumeObject(Where(MakeVolume("v", "local"), model::kHostnameLabel, {"n1"}));
  for (const char* name : {"c", "d"}) state_.UpsertVolumeObject(MakeVolumeClaim(name, "local"));
  const PodId pod = Add("p", {"c"});
  Add("q", {"d"});
  const NodeId node = state_.FindNode("n1");
  const uint64_t version = state_.node(node).version;
  const uint64_t elsewhere = state_.node(state_.FindNode("n2")).version;
  {
    Transaction txn(state_);
    txn.Allocate(pod, node);
    EXPECT_EQ(Decided("c"), (VolumeDecision{"n1", "v"}));
    EXPECT_GT(state_.node(node).version, version + 1) << "the volume is given to no other there";
    EXPECT_EQ(state_.node(state_.FindNode("n2")).version, elsewhere);
    const auto need = state_.volumes().NeedOf(*state_.volumes().FindClaim("ns/d"), false);
    EXPECT_FALSE(state_.volumes().Choose({need}, state_.node(node).object).Fits());
  }
  EXPECT_EQ(Decided("c"), VolumeDecision());
  {
    Transaction txn(state_);
    txn.Pipeline(pod, node);
    EXPECT_EQ(Decided("c"), (VolumeDecision{"n1", "v"})) << "what is promised is given to no other";
    txn.RollbackTo(0);
    EXPECT_EQ(Decided("c"), VolumeDecision());
    txn.Allocate(pod, node);
    txn.Commit();
  }
  // The class of a decision stays, and so does the decision when the class changes otherwise.
  const model::PersistentVolumeClaim bound = BoundTo(MakeVolumeClaim("c", "local"), "v");
  state_.UpsertVolumeObject(bound);
  EXPECT_EQ(Needs(pod).unbound.size(), 1u);
  model::Pod again = WithClaims(PodBuilder("ns", "p").Cpu(2000), {"c"});
  state_.UpsertPod(again);
  EXPECT_EQ(Decided("c"), (VolumeDecision{"n1", "v"}));
  state_.ForgetBinding(pod);
  EXPECT_EQ(Decided("c"), VolumeDecision());
  EXPECT_EQ(Needs(pod).unbound.size(), 0u) << "it is bound meanwhile";
}

TEST_F(PodVolumesTest, PodsOfOneClaimAreDecidedTogether) {
  state_.UpsertVolumeObject(MakeVolumeClaim("c", "cloud"));
  const PodId first = Add("p", {"c"});
  const PodId second = Add("q", {"c"});
  ASSERT_EQ(Needs(first).shared.size(), 1u);
  EXPECT_TRUE(Needs(first).shared[0].unbound);
  Transaction txn(state_);
  txn.Allocate(first, state_.FindNode("n1"));
  txn.Allocate(second, state_.FindNode("n1"));
  const VolumeClaimRow& row = *state_.volumes().FindClaim("ns/c");
  EXPECT_EQ(state_.UsersWithNode(row, false), 2u);
  txn.Evict(first);
  EXPECT_EQ(state_.UsersWithNode(row, true), 1u);
  EXPECT_EQ(state_.UsersWithNode(row, false), 2u);
  EXPECT_EQ(Decided("c").node, "n1") << "the other one needs it";
}

// ---- at random

class VolumeWorld {
 public:
  explicit VolumeWorld(uint64_t seed) : random_(seed) {
    for (const char* name : {"n0", "n1", "n2"}) {
      model::Node node = MakeNode(name, 8);
      node.meta.labels.Set("zone", OneIn(2) ? "a" : "b");
      state_.UpsertNode(node);
    }
  }
  void Event() {
    const std::string claim = absl::StrCat("c", Below(4));
    const std::string volume = absl::StrCat("v", Below(4));
    switch (Below(10)) {
      case 0:
      case 1:
        state_.UpsertVolumeObject(Claim(claim, volume));
        break;
      case 2:
      case 3:
        state_.UpsertVolumeObject(Volume(volume, claim));
        break;
      case 4:
        if (OneIn(2)) {
          state_.RemoveVolumeObject(Kind::kPersistentVolumeClaim, "ns", claim);
        } else {
          state_.RemoveVolumeObject(Kind::kPersistentVolume, "", volume);
        }
        break;
      case 5:
        Class();
        break;
      case 6:
        state_.RemovePod("ns", absl::StrCat("p", Below(kPods)), "");
        break;
      case 7:
        Answer();
        break;
      default:
        Pod();
    }
  }
  void Operation(Transaction& txn) {
    const PodId pod = state_.FindPod("ns", absl::StrCat("p", Below(kPods)));
    const NodeId node = state_.FindNode(absl::StrCat("n", Below(3)));
    if (pod == kNoId || !state_.pod(pod).ours) return;
    switch (state_.pod(pod).status) {
      case PodStatus::kPending:
        return OneIn(3) ? txn.Pipeline(pod, node) : txn.Allocate(pod, node);
      case PodStatus::kReleasing:
        return txn.Pipeline(pod, node);
      case PodStatus::kPipelined:
      case PodStatus::kBinding:
      case PodStatus::kBound:
      case PodStatus::kRunning:
        return OneIn(3) ? txn.Remove(pod) : txn.Evict(pod);
      default:
        return;
    }
  }
  // Decisions that stay.
  void Decide() {
    const PodId pod = state_.FindPod("ns", absl::StrCat("p", Below(kPods)));
    if (pod == kNoId || !state_.pod(pod).ours || state_.pod(pod).status != PodStatus::kPending) {
      return;
    }
    Transaction txn(state_);
    txn.Allocate(pod, state_.FindNode(absl::StrCat("n", Below(3))));
    txn.Commit();
  }
  ClusterState& state() { return state_; }
  size_t Below(size_t bound) { return static_cast<size_t>(random_() % bound); }
  bool OneIn(size_t n) { return Below(n) == 0; }

 private:
  static constexpr size_t kPods = 8;

  model::PersistentVolumeClaim Claim(const std::string& name, const std::string& volume) {
    model::PersistentVolumeClaim claim =
        MakeVolumeClaim(name, OneIn(3) ? "cloud" : "local", static_cast<int64_t>(1 + Below(2)));
    if (OneIn(4)) claim.meta.uid = "another";
    if (OneIn(4)) claim.access_modes = model::kReadWriteOncePod;
    if (OneIn(6)) claim.selected_node = absl::StrCat("n", Below(3));
    if (OneIn(3)) return BoundTo(claim, volume);
    return claim;
  }
  model::PersistentVolume Volume(const std::string& name, const std::string& claim) {
    model::PersistentVolume volume = MakeVolume(name, "local", static_cast<int64_t>(1 + Below(3)));
    if (OneIn(2)) {
      volume = Where(volume, model::kHostnameLabel, {absl::StrCat("n", Below(3))});
    } else if (OneIn(2)) {
      volume = Where(volume, "zone", {"a"});
    }
    if (OneIn(3)) volume = OfClaim(volume, MakeVolumeClaim(claim, "local"));
    return volume;
  }
  void Class() {
    const std::string name = OneIn(2) ? "local" : "cloud";
    if (OneIn(5)) {
      state_.RemoveVolumeObject(Kind::kStorageClass, "", name);
    } else {
      state_.UpsertVolumeObject(
          MakeStorageClass(name, name == "local" ? model::kNoProvisioner : "csi.example"));
    }
    if (OneIn(6)) state_.SetVolumesReadable(OneIn(2));
  }
  // The API server refuses, or shows, what was decided.
  void Answer() {
    const PodId pod = state_.FindPod("ns", absl::StrCat("p", Below(kPods)));
    if (pod == kNoId || state_.pod(pod).status != PodStatus::kBinding) return;
    if (OneIn(2)) state_.AssumeEvicted(pod);
    state_.ForgetBinding(pod);
  }
  void Pod() {
    const size_t number = Below(kPods);
    // Its claims are the same each time that it is seen.
    model::Pod pod = WithClaims(PodBuilder("ns", absl::StrCat("p", number)).Queue("q"),
                                {absl::StrCat("c", number % 4)});
    if (number % 3 == 0) pod.spec.volume_claims.push_back({absl::StrCat("c", (number + 1) % 4)});
    if (number == 7) pod.scheduler_name = "another";
    if (number == 7 || OneIn(4)) {
      pod.node_name = absl::StrCat("n", Below(3));
      pod.phase = model::PodPhase::kRunning;
    }
    if (OneIn(6)) pod.meta.deletion = absl::UnixEpoch();
    state_.UpsertPod(pod);
  }

  std::mt19937_64 random_;
  ClusterState state_{testing::OurPods()};
};

TEST(PodVolumesProperty, EveryRowIsRightAndEveryChangeIsUndone) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    VolumeWorld world(seed);
    for (int step = 0; step < 120; ++step) {
      world.Event();
      ASSERT_EQ(world.state().CheckConsistency(), "") << "step " << step;
      if (world.OneIn(3)) world.Decide();
      const std::string before = world.state().Dump();
      {
        Transaction txn(world.state());
        for (size_t i = 0; i < 4; ++i) {
          const Transaction::Checkpoint mark = txn.Mark();
          const std::string marked = world.state().Dump();
          world.Operation(txn);
          ASSERT_EQ(world.state().CheckConsistency(), "") << "step " << step;
          if (!world.OneIn(3)) continue;
          txn.RollbackTo(mark);
          ASSERT_EQ(world.state().Dump(), marked) << "step " << step;
        }
      }
      ASSERT_EQ(world.state().Dump(), before) << "step " << step;
      ASSERT_EQ(world.state().CheckConsistency(), "") << "step " << step;
    }
  }
}

}  // namespace
}  // namespace fairlead::state
