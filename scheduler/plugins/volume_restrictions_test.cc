// VolumeRestrictions.
#include <string>
#include <vector>

#include "scheduler/plugins/volume_testing.h"

namespace fairlead::plugins {
namespace {

using Kind = model::InlineDisk::Kind;

constexpr char kNoDisk[] = "U node(s) had no available disk";
constexpr char kInUse[] =
    "U node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod";
constexpr char kNoVolume[] = "X node(s) didn't find available persistent volumes to bind";

class VolumeRestrictionsTest : public VolumeTest {
 protected:
  VolumeRestrictionsTest() {
    AddNode(MakeNode("n", 0));
    AddNode(MakeNode("other", 0));
  }
  static model::Pod WithDisks(absl::string_view name, std::vector<model::InlineDisk> disks) {
    model::Pod pod = PodBuilder("ns", name);
    pod.spec.inline_disks = std::move(disks);
    return pod;
  }
  void WaitingWithDisks(std::vector<model::InlineDisk> disks) {
    model::PodSpec spec;
    spec.inline_disks = std::move(disks);
    Waiting(spec);
  }
};

TEST_F(VolumeRestrictionsTest, Disks) {
  constexpr auto kGce = Kind::kGcePersistentDisk;
  constexpr auto kAws = Kind::kAwsElasticBlockStore;
  struct Case {
    model::InlineDisk used, wanted;
    bool fits;
  };
  const Case cases[] = {
      {{kGce, "d", {}, false}, {kGce, "d", {}, false}, false},
      {{kGce, "d", {}, false}, {kGce, "e", {}, false}, true},
      {{kGce, "d", {}, true}, {kGce, "d", {}, false}, false},
      {{kGce, "d", {}, false}, {kGce, "d", {}, true}, false},
      {{kGce, "d", {}, true}, {kGce, "d", {}, true}, true},
      {{kGce, "d", {}, false}, {kAws, "d", {}, false}, true},
      {{kAws, "d", {}, true}, {kAws, "d", {}, true}, false},  // whatever they do
      {{kAws, "d", {}, true}, {kAws, "e", {}, true}, true},
      {{Kind::kIscsi, "iqn", {}, false}, {Kind::kIscsi, "iqn", {}, true}, false},
      {{Kind::kIscsi, "iqn", {}, true}, {Kind::kIscsi, "iqn", {}, true}, true},
      {{Kind::kIscsi, "iqn", {}, false}, {Kind::kIscsi, "iqn2", {}, false}, true},
      {{Kind::kRbd, "p/i", {"m1", "m2"}, false}, {Kind::kRbd, "p/i", {"m3", "m2"}, false}, false},
      {{Kind::kRbd, "p/i", {"m1", "m2"}, false}, {Kind::kRbd, "p/i", {"m3"}, false}, true},
      {{Kind::kRbd, "p/i", {"m1"}, false}, {Kind::kRbd, "p/j", {"m1"}, false}, true},
      {{Kind::kRbd, "p/i", {"m1"}, true}, {Kind::kRbd, "p/i", {"m1"}, true}, true},
      {{Kind::kRbd, "p/i", {"m1"}, true}, {Kind::kRbd, "p/i", {"m1"}, false}, false},
      {{Kind::kRbd, "p/i", {}, false}, {Kind::kRbd, "p/i", {}, false}, true},
  };
  const auto restrictions = Only("VolumeRestrictions");
  for (const Case& c : cases) {
    SCOPED_TRACE(&c - cases);
    const std::string why = c.fits ? "" : kNoDisk;
    model::Pod runs = On("n", WithDisks("runs", {{kGce, "its-own", {}, false}, c.used}));
    AddPod(runs);
    WaitingWithDisks({{kGce, "mine", {}, false}, c.wanted});
    EXPECT_EQ(Why(*restrictions, "n", Capacity::kNow), why);
    EXPECT_EQ(Why(*restrictions, "n", Capacity::kFuture), why);
    EXPECT_EQ(Why(*restrictions, "n", Capacity::kEmpty), "");
    EXPECT_EQ(Why(*restrictions, "other"), "");
    EXPECT_FALSE(restrictions->NodeLocal(Ctx().pod_class));
    AddPod(Deleting(runs));
    EXPECT_EQ(Why(*restrictions, "n", Capacity::kNow), why) << "still there";
    EXPECT_EQ(Why(*restrictions, "n", Capacity::kFuture), "") << "will be gone";
    state_.RemovePod("ns", "runs", "");
    EXPECT_EQ(Why(*restrictions, "n"), "");
  }
}

TEST_F(VolumeRestrictionsTest, ClaimsOfOnePodAtATime) {
  const auto restrictions = Only("VolumeRestrictions");
  PutBound("once", Volume("pv-once", "fast"), model::kReadWriteOncePod);
  PutBound("free", Volume("pv-free", "fast"));
  const auto expect = [&](const char* now, const char* future) {
    for (const char* node : {"n", "other"}) {
      EXPECT_EQ(Why(*restrictions, node, Capacity::kNow), now) << node;
      EXPECT_EQ(Why(*restrictions, node, Capacity::kFuture), future) << node;
      EXPECT_EQ(Why(*restrictions, node, Capacity::kEmpty), "") << node;
    }
  };
  WaitingWith({"once"});
  expect("", "");
  AddPod(PodWith("waits-too", {"once"}));
  expect("", "");
  AddPod(On("n", PodWith("runs", {"free", "once"})));
  expect(kInUse, kInUse);
  AddPod(Deleting(On("n", PodWith("runs", {"free", "once"}))));
  expect(kInUse, "");
  state_.RemovePod("ns", "runs", "");
  expect("", "");
  {
    state::Transaction txn(state_);
    txn.Pipeline(state_.FindPod("ns", "waits-too"), state_.FindNode("other"));
    expect(kInUse, kInUse);
  }
  // Another namespace, another claim.
  model::Pod elsewhere = PodBuilder("elsewhere", "runs").On("n");
  elsewhere.spec.volume_claims = Refs({"once"});
  AddPod(elsewhere);
  expect("", "");
  WaitingWith({"free"});
  AddPod(On("n", PodWith("runs", {"free"})));
  expect("", "");
}

TEST_F(VolumeRestrictionsTest, AClaimThatIsDecidedElsewhere) {
  const auto restrictions = Only("VolumeRestrictions");
  Put(Class("made", "csi.example.com"));
  Put(Claim("data", "made"));
  AddPod(PodWith("first", {"data"}));
  WaitingWith({"data"});
  const auto expect = [&](const char* on_n, const char* on_other) {
    for (const Capacity capacity : {Capacity::kNow, Capacity::kFuture, Capacity::kEmpty}) {
      EXPECT_EQ(Why(*restrictions, "n", capacity), on_n);
      EXPECT_EQ(Why(*restrictions, "other", capacity), on_other);
    }
  };
  expect("", "");
  {
    state::Transaction txn(state_);
    txn.Allocate(state_.FindPod("ns", "first"), state_.FindNode("other"));
    expect(kNoVolume, "");
  }
  expect("", "");
}

TEST_F(VolumeRestrictionsTest, DisksAreToldFirstThenClaimsInUse) {
  const auto restrictions = Only("VolumeRestrictions");
  const model::InlineDisk disk = {Kind::kGcePersistentDisk, "d", {}, false};
  Put(Class("made", "csi.example.com"));
  model::PersistentVolumeClaim once = Claim("once", "made");
  once.access_modes = model::kReadWriteOncePod;
  Put(once);
  AddPod(PodWith("first", {"once"}));
  AddPod(On("n", WithDisks("disk", {disk})));
  model::PodSpec spec;
  spec.volume_claims = Refs({"once"});
  spec.inline_disks = {disk};
  Waiting(spec);
  EXPECT_EQ(Why(*restrictions, "n"), kNoDisk);
  EXPECT_EQ(Why(*restrictions, "other"), "");
  state::Transaction txn(state_);
  txn.Allocate(state_.FindPod("ns", "first"), state_.FindNode("other"));
  EXPECT_EQ(Why(*restrictions, "n"), kNoDisk);
  EXPECT_EQ(Why(*restrictions, "other"), kInUse);
  state_.RemovePod("ns", "disk", "");
  EXPECT_EQ(Why(*restrictions, "n"), kInUse) << "before where it is decided";
  EXPECT_EQ(Why(*restrictions, "n", Capacity::kEmpty), kNoVolume);
}

}  // namespace
}  // namespace fairlead::plugins
