// What becomes of unbound claims on a node, and what follows a change of an object.
#include "scheduler/state/volumes.h"

#include "gtest/gtest.h"
#include "scheduler/model/testing/volume_builders.h"

namespace fairlead::state {
namespace {

using model::testing::BoundTo;
using model::testing::HasLabel;
using model::testing::kGiB;
using model::testing::MakeNode;
using model::testing::MakeStorageClass;
using model::testing::MakeVolume;
using model::testing::MakeVolumeClaim;
using model::testing::OfClaim;
using model::testing::Where;

class VolumesTest : public ::testing::Test {
 protected:
  VolumesTest() {
    node_ = MakeNode("n1", 0);
    node_.meta.labels.Set("zone", "a");
    volumes_.Upsert(MakeStorageClass("local", model::kNoProvisioner));
    volumes_.Upsert(MakeStorageClass("cloud", "csi.example"));
  }
  ~VolumesTest() override { EXPECT_EQ(volumes_.Check(), ""); }

  model::UnboundVolumeNeed Need(const model::PersistentVolumeClaim& claim) {
    volumes_.Upsert(claim);
    return volumes_.NeedOf(*volumes_.FindClaim(model::Key(claim.meta)), false);
  }
  // The volumes that claims get, "-" for one to be provisioned; or why they get none.
  std::string Choose(const std::vector<model::PersistentVolumeClaim>& claims) {
    std::vector<model::UnboundVolumeNeed> needs;
    for (const auto& claim : claims) needs.push_back(Need(claim));
    const VolumeChoice choice = volumes_.Choose(needs, node_);
    if (!choice.found) return "none";
    if (!choice.space) return "no room";
    std::string out;
    for (const std::string& volume : choice.volumes) {
      absl::StrAppend(&out, out.empty() ? "" : " ", volume.empty() ? "-" : volume);
    }
    return out;
  }

  Volumes volumes_;
  model::Node node_;
};

TEST_F(VolumesTest, NothingMatches) {
  EXPECT_EQ(Choose({MakeVolumeClaim("c", "local")}), "none") << "and nothing is provisioned";
  EXPECT_EQ(Choose({MakeVolumeClaim("c", "unknown")}), "none");
  volumes_.Upsert(MakeVolume("small", "local", 1));
  EXPECT_EQ(Choose({MakeVolumeClaim("c", "local", 2)}), "none");
  volumes_.Upsert(MakeVolume("other-class", "cloud", 5));
  EXPECT_EQ(Choose({MakeVolumeClaim("c", "local", 2)}), "none");
  volumes_.Upsert(Where(MakeVolume("elsewhere", "local", 5), "zone", {"b"}));
  EXPECT_EQ(Choose({MakeVolumeClaim("c", "local", 2)}), "none");
  model::PersistentVolume volume = MakeVolume("released", "local", 5);
  volume.available = false;
  volumes_.Upsert(volume);
  EXPECT_EQ(Choose({MakeVolumeClaim("c", "local", 2)}), "none");
}

TEST_F(VolumesTest, WhatHasToAgree) {
  model::PersistentVolume volume = MakeVolume("v", "local", 2);
  model::PersistentVolumeClaim claim = MakeVolumeClaim("c", "local", 2);
  const auto choose = [&] {
    volumes_.Upsert(volume);
    return Choose({claim});
  };
  EXPECT_EQ(choose(), "v");
  volume.block = true;
  EXPECT_EQ(choose(), "none");
  claim.block = true;
  EXPECT_EQ(choose(), "v");
  claim.access_modes = model::kReadWriteOnce | model::kReadWriteMany;
  EXPECT_EQ(choose(), "none");
  volume.access_modes = claim.access_modes | model::kReadOnlyMany;
  EXPECT_EQ(choose(), "v");
  claim.attributes_class = "fast";
  EXPECT_EQ(choose(), "none");
  volume.attributes_class = "fast";
  EXPECT_EQ(choose(), "v");
  claim.selector = {false, {{"disk", model::SelectorOperator::kExists, {}}}};
  EXPECT_EQ(choose(), "none");
  volume.meta.labels.Set("disk", "");
  EXPECT_EQ(choose(), "v");
  volume.meta.deletion = absl::UnixEpoch();
  EXPECT_EQ(choose(), "none");
}

TEST_F(VolumesTest, TheSmallestThatMatchesSmallRequestsFirst) {
  volumes_.Upsert(MakeVolume("big", "local", 9));
  volumes_.Upsert(MakeVolume("mid", "local", 5));
  volumes_.Upsert(Where(MakeVolume("host", "local", 4), model::kHostnameLabel, {"n1"}));
  volumes_.Upsert(Where(MakeVolume("other-host", "local", 3), model::kHostnameLabel, {"n2"}));
  EXPECT_EQ(Choose({MakeVolumeClaim("c", "local", 2)}), "host");
  EXPECT_EQ(Choose({MakeVolumeClaim("c", "local", 2), MakeVolumeClaim("d", "local", 1)}),
            "mid host");
  EXPECT_EQ(Choose({MakeVolumeClaim("c", "local", 8), MakeVolumeClaim("d", "local", 6)}), "none")
      << "one is large enough, for one of them";
}

TEST_F(VolumesTest, AVolumeThatNamesTheClaimIsItsOwn) {
  const model::PersistentVolumeClaim claim = MakeVolumeClaim("c", "local", 2);
  volumes_.Upsert(MakeVolume("small", "local", 2));
  model::PersistentVolume own = OfClaim(MakeVolume("own", "local", 7), claim);
  volumes_.Upsert(own);
  EXPECT_EQ(Choose({claim}), "own") << "although it is larger, and not Available";
  EXPECT_EQ(Choose({MakeVolumeClaim("d", "local", 2)}), "small");
  own.claim->uid = "uid-of-another";
  volumes_.Upsert(own);
  EXPECT_EQ(Choose({claim}), "small");
  own.claim->uid.clear();
  volumes_.Upsert(own);
  EXPECT_EQ(Choose({claim}), "own") << "made for a claim of that name";
  volumes_.Upsert(Where(own, "zone", {"b"}));
  EXPECT_EQ(Choose({claim}), "none") << "it cannot be used here, and is the only one";
  own.capacity_bytes = kGiB;
  volumes_.Upsert(own);
  EXPECT_EQ(Choose({claim}), "small") << "it is too small";
}

TEST_F(VolumesTest, Provisioning) {
  model::PersistentVolumeClaim claim = MakeVolumeClaim("c", "cloud", 3);
  EXPECT_EQ(Choose({claim}), "-");
  claim.selected_node = "n2";
  EXPECT_EQ(Choose({claim}), "none") << "selected for another node";
  claim.selected_node = "n1";
  volumes_.Upsert(MakeVolume("v", "cloud", 3));
  EXPECT_EQ(Choose({claim}), "-") << "a provisioner is at work on it";
  claim.selected_node.clear();
  EXPECT_EQ(Choose({claim, MakeVolumeClaim("d", "cloud")}), "- v");
  model::StorageClass storage_class = MakeStorageClass("cloud", "csi.example");
  storage_class.allowed_topologies = {HasLabel("zone", {"b", "c"})};
  volumes_.Upsert(storage_class);
  EXPECT_EQ(Choose({claim}), "v") << "which is there already";
  EXPECT_EQ(Choose({MakeVolumeClaim("d", "cloud", 4)}), "none");
  storage_class.allowed_topologies.push_back(HasLabel("zone", {"a"}));
  volumes_.Upsert(storage_class);
  EXPECT_EQ(Choose({MakeVolumeClaim("d", "cloud", 4)}), "-");
}

TEST_F(VolumesTest, RoomOfTheProvisioner) {
  const model::PersistentVolumeClaim claim = MakeVolumeClaim("c", "cloud", 3);
  model::CsiDriver driver;
  driver.meta.name = "csi.example";
  driver.storage_capacity = true;
  volumes_.Upsert(driver);
  EXPECT_EQ(Choose({claim}), "no room");
  model::CsiStorageCapacity capacity;
  capacity.meta.ns = "kube-system";
  capacity.meta.name = "pool";
  capacity.storage_class = "cloud";
  capacity.capacity_bytes = 10 * kGiB;
  volumes_.Upsert(capacity);
  EXPECT_EQ(Choose({claim}), "no room") << "of no node";
  capacity.node_topology = {false, {{"zone", model::SelectorOperator::kIn, {"a"}}}};
  volumes_.Upsert(capacity);
  EXPECT_EQ(Choose({claim}), "-");
  capacity.largest_bytes = 2 * kGiB;
  volumes_.Upsert(capacity);
  EXPECT_EQ(Choose({claim}), "no room");
  model::PersistentVolumeClaim any = claim;
  any.has_request = false;
  any.requested_bytes = 0;
  EXPECT_EQ(Choose({any}), "-");
  volumes_.RemoveCsiDriver("csi.example");
  EXPECT_EQ(Choose({claim}), "-");
}

TEST_F(VolumesTest, WhatIsDecidedIsGivenToNoOther) {
  volumes_.Upsert(MakeVolume("v", "local", 3));
  volumes_.Upsert(MakeVolumeClaim("c", "local"));
  const VolumeClaimId id = volumes_.FindClaim("ns/c")->id;
  std::vector<std::string> changed;
  volumes_.Decide(id, {"n1", "v"}, changed);
  EXPECT_EQ(changed, std::vector<std::string>({"v"}));
  EXPECT_EQ(Choose({MakeVolumeClaim("d", "local")}), "none");
  // Its claim says first that it is bound, and then the volume.
  volumes_.Upsert(BoundTo(MakeVolumeClaim("c", "local"), "v"));
  EXPECT_EQ(Choose({MakeVolumeClaim("d", "local")}), "none");
  EXPECT_EQ(volumes_.claim(id).decided.volume, "v");
  volumes_.Upsert(OfClaim(MakeVolume("v", "local", 3), MakeVolumeClaim("c", "local")));
  EXPECT_EQ(volumes_.claim(id).decided.node, "");
  EXPECT_EQ(Choose({MakeVolumeClaim("d", "local")}), "none");
}

TEST_F(VolumesTest, ADecisionEndsWithWhatItIsAbout) {
  const model::PersistentVolumeClaim claim = MakeVolumeClaim("c", "local");
  const auto decide = [&] {
    volumes_.Upsert(MakeVolume("v", "local", 3));
    volumes_.Upsert(claim);
    std::vector<std::string> changed;
    volumes_.Decide(volumes_.FindClaim("ns/c")->id, {"n1", "v"}, changed);
    return volumes_.FindClaim("ns/c")->id;
  };
  VolumeClaimId id = decide();
  volumes_.RemoveVolume("v");
  EXPECT_EQ(volumes_.claim(id).decided.node, "");
  id = decide();
  model::PersistentVolumeClaim again = claim;
  again.meta.uid = "another";
  EXPECT_TRUE(volumes_.Upsert(again).volumes.contains("v"));
  EXPECT_EQ(volumes_.claim(id).decided.node, "");
  EXPECT_EQ(Choose({MakeVolumeClaim("d", "local")}), "v");
  id = decide();
  volumes_.RemoveClaim("ns", "c");
  EXPECT_EQ(volumes_.claim(id).decided.node, "");
  volumes_.DropIfUnused(id);
  EXPECT_EQ(volumes_.FindClaim("ns/c"), nullptr);
}

// An order of nodes is kept for a class as long as the picture is the same.
TEST_F(VolumesTest, ThePictureChangesWithWhatUnboundClaimsMayGet) {
  volumes_.Upsert(MakeVolumeClaim("c", "local"));
  uint64_t former = volumes_.PictureOf("local");
  const auto changed = [&](const Volumes::Effect& effect) {
    const uint64_t now = volumes_.PictureOf("local");
    EXPECT_EQ(now != former, effect.claims.contains(volumes_.FindClaim("ns/c")->id));
    return std::exchange(former, now) != now;
  };
  model::PersistentVolume volume = MakeVolume("v", "local");
  EXPECT_TRUE(changed(volumes_.Upsert(volume)));
  volume.meta.resource_version = "2";
  EXPECT_FALSE(changed(volumes_.Upsert(volume)));
  volume.capacity_bytes += 1;
  EXPECT_TRUE(changed(volumes_.Upsert(volume)));
  EXPECT_FALSE(changed(volumes_.Upsert(MakeVolume("w", "cloud"))));
  EXPECT_TRUE(changed(volumes_.RemoveVolume("v")));
  EXPECT_TRUE(changed(volumes_.RemoveClass("local")));
  EXPECT_FALSE(changed(volumes_.RemoveClass("local")));
}

TEST_F(VolumesTest, WhatIsAttached) {
  model::PersistentVolume volume = MakeVolume("v", "cloud");
  volume.csi_driver = "csi.example";
  volume.csi_handle = "h";
  volumes_.Upsert(volume);
  volumes_.Upsert(BoundTo(MakeVolumeClaim("c", "cloud"), "v"));
  volumes_.Upsert(MakeVolumeClaim("d", "cloud"));
  volumes_.Upsert(MakeVolumeClaim("none", ""));
  const auto attached = [&](const char* key) {
    return volumes_.AttachedBy(*volumes_.FindClaim(key)).volume;
  };
  EXPECT_EQ(attached("ns/c"), "csi.example/h");
  EXPECT_EQ(attached("ns/d"), "csi.example/of ns/d");
  EXPECT_EQ(attached("ns/none"), "");
  model::CsiNode node;
  node.meta.name = "n1";
  node.drivers = {{"csi.example", 3}, {"other", std::nullopt}};
  EXPECT_TRUE(volumes_.Upsert(node).node_objects.contains("n1"));
  EXPECT_FALSE(volumes_.Upsert(node).node_objects.contains("n1"));
  EXPECT_EQ(volumes_.LimitOf("csi.example", "n1"), 3);
  EXPECT_EQ(volumes_.LimitOf("other", "n1"), std::nullopt);
  model::VolumeAttachment attachment;
  attachment.driver = "csi.example";
  attachment.node_name = "n1";
  attachment.volume_name = "v";
  int seen = 0;
  for (const char* name : {"a1", "a2"}) {
    attachment.meta.name = name;
    EXPECT_TRUE(volumes_.Upsert(attachment).nodes.contains("n1"));
  }
  volumes_.ForEachAttachment("n1", "csi.example", [&](const VolumeRow&) { ++seen; });
  EXPECT_EQ(seen, 1) << "one volume";
  volumes_.RemoveAttachment("a1");
  volumes_.RemoveAttachment("a2");
  volumes_.ForEachAttachment("n1", "csi.example", [&](const VolumeRow&) { ++seen; });
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace fairlead::state
