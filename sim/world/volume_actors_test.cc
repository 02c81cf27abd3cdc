#include <gtest/gtest.h>

#include "sim/world/api_json.h"
#include "sim/world/facts.h"
#include "sim/world/objects.h"
#include "sim/world/volume_controller.h"
#include "sim/world/volume_objects.h"
#include "sim/world/volume_provisioner.h"

namespace fairlead::sim::world {
namespace {

class VolumeActorsTest : public ::testing::Test {
 protected:
  VolumeActorsTest() {
    for (const auto& [name, zone] : {std::pair("n0", "zone-a"), std::pair("n1", "zone-b")}) {
      Operation fields;
      fields.With("name", name).With("zone", zone);
      Create(ResourceType::kNodes, MakeNode(fields));
    }
    Class("zonal", "zone", false);
    Class("now", "zone", true);
    Class("local", "none", false);
  }
  void Create(ResourceType type, Json object) {
    ASSERT_TRUE(server_.Create(type, std::move(object), "test").ok());
  }
  void Class(const char* name, const char* where, bool immediate) {
    Operation fields;
    fields.With("name", name).With("where", where).With("immediate", immediate ? 1 : 0);
    Create(ResourceType::kStorageClasses, MakeStorageClass(fields));
  }
  void Pod(const std::string& name, const char* kind, const char* storage_class,
           const char* modes = "") {
    Operation fields;
    fields.With("name", "j").With("ns", "ns").With("volume", kind);
    fields.With("volume_class", storage_class).With("volume_modes", modes);
    Create(ResourceType::kPods, MakePod(fields, name));
  }
  void LocalVolume(const std::string& name, const char* node) {
    Operation fields;
    fields.verb = "volume";
    fields.With("name", name).With("class", "local").With("node", node).With("gib", 1);
    Create(ResourceType::kPersistentVolumes, MakeLocalVolume(fields));
  }
  void Pass(absl::Duration time) { time_.RunUntil(time_.now() + time); }
  const Json& PodOf(const std::string& name) {
    return *server_.Find(ResourceType::kPods, "ns", name);
  }
  // Empty facts if there is none.
  VolumeClaimFacts Claim(const std::string& name) {
    const Json* const claim = server_.Find(ResourceType::kPersistentVolumeClaims, "ns", name);
    return claim == nullptr ? VolumeClaimFacts() : ReadVolumeClaim(*claim);
  }
  VolumeFacts Volume(const std::string& name) {
    const Json* const volume = server_.Find(ResourceType::kPersistentVolumes, "", name);
    return volume == nullptr ? VolumeFacts() : ReadVolume(*volume);
  }
  void Change(ResourceType type, const std::string& ns, const std::string& name,
              const Json& patch) {
    const auto change = [&](Json& object) {
      object.merge_patch(patch);
      return absl::OkStatus();
    };
    ASSERT_TRUE(server_.Modify(type, ns, name, change, "test").ok());
  }
  // As Fairlead writes them.
  void SelectNode(const std::string& claim, const char* node) {
    Change(ResourceType::kPersistentVolumeClaims, "ns", claim,
           {{"metadata", {{"annotations", {{kSelectedNode, node}}}}}});
  }
  void Give(const std::string& volume, const VolumeClaimFacts& claim) {
    Change(ResourceType::kPersistentVolumes, "", volume,
           {{"spec",
             {{"claimRef", {{"namespace", claim.ns}, {"name", claim.name}, {"uid", claim.uid}}}}}});
  }
  void SetNode(const std::string& pod, const char* node) {
    Change(ResourceType::kPods, "ns", pod, {{"spec", {{"nodeName", node}}}});
  }

  EventQueue time_{absl::FromUnixSeconds(1'772'409'600)};
  ApiServer server_{&time_};
  VolumeController controller_{&time_, &server_, 1};
  VolumeProvisioner provisioner_{&time_, &server_, 2};
};

TEST_F(VolumeActorsTest, AClaimThatWaitsIsProvisionedForTheSelectedNode) {
  Pod("j-0", "own", "zonal");
  EXPECT_EQ(MissingVolume(server_, PodOf("j-0")), "claim data-j-0 does not exist");
  Pass(absl::Seconds(10));
  EXPECT_EQ(MissingVolume(server_, PodOf("j-0")), "claim data-j-0 is not bound");
  SelectNode("data-j-0", "n1");
  Pass(absl::Seconds(10));
  const VolumeClaimFacts claim = Claim("data-j-0");
  EXPECT_TRUE(claim.bound);
  EXPECT_EQ(Volume(claim.volume).phase, "Bound");
  EXPECT_TRUE(Volume(claim.volume).IsUsableOn({{kZoneLabel, "zone-b"}}));
  EXPECT_FALSE(Volume(claim.volume).IsUsableOn({{kZoneLabel, "zone-a"}}));
  SetNode("j-0", "n0");
  EXPECT_EQ(MissingVolume(server_, PodOf("j-0")),
            "volume " + claim.volume + " cannot be used on n0");
}

TEST_F(VolumeActorsTest, AnImmediateClaimNeedsNoPodOnANode) {
  Pod("j-0", "own", "now");
  Pass(absl::Seconds(10));
  EXPECT_TRUE(Claim("data-j-0").bound);
}

TEST_F(VolumeActorsTest, AProvisionerThatRefusesTakesTheSelectionBack) {
  provisioner_.Misbehave("refuses", time_.now() + absl::Minutes(1));
  Pod("j-0", "own", "zonal");
  Pass(absl::Seconds(5));
  SelectNode("data-j-0", "n0");
  Pass(absl::Seconds(5));
  EXPECT_EQ(Claim("data-j-0").selected_node, "");
  EXPECT_FALSE(Claim("data-j-0").bound);
  EXPECT_EQ(provisioner_.refused(), 1);
  provisioner_.BeHonest();
  SelectNode("data-j-0", "n1");
  Pass(absl::Seconds(5));
  EXPECT_TRUE(Claim("data-j-0").bound);
}

TEST_F(VolumeActorsTest, ANodeThatIsGoneIsTakenBack) {
  Pod("j-0", "own", "zonal");
  Pass(absl::Seconds(5));
  SelectNode("data-j-0", "no-such-node");
  Pass(absl::Seconds(5));
  EXPECT_EQ(Claim("data-j-0").selected_node, "");
}

TEST_F(VolumeActorsTest, ASilentProvisionerAnswersLate) {
  provisioner_.Misbehave("silent", time_.now() + absl::Minutes(1));
  Pod("j-0", "own", "zonal");
  Pass(absl::Seconds(5));
  SelectNode("data-j-0", "n0");
  Pass(absl::Seconds(50));
  EXPECT_FALSE(Claim("data-j-0").bound);
  Pass(absl::Seconds(10));
  EXPECT_TRUE(Claim("data-j-0").bound);
}

TEST_F(VolumeActorsTest, AVolumeIsBoundToTheClaimThatItNamesAndMadeAgainAfterIt) {
  LocalVolume("v", "n0");
  Pod("j-0", "own", "local");
  Pass(absl::Seconds(5));
  EXPECT_EQ(Volume("v").phase, "Available");
  EXPECT_FALSE(Claim("data-j-0").bound);
  Give("v", Claim("data-j-0"));
  Pass(absl::Seconds(5));
  EXPECT_EQ(Claim("data-j-0").volume, "v");
  const std::string uid = Volume("v").uid;
  ASSERT_TRUE(server_.RemoveNow(ResourceType::kPods, "ns", "j-0", "test").ok());
  ASSERT_TRUE(server_.Remove(ResourceType::kPersistentVolumeClaims, "ns", "data-j-0", "test").ok());
  Pass(absl::Seconds(10));
  EXPECT_EQ(Claim("data-j-0").name, "");
  EXPECT_NE(Volume("v").uid, uid);
  EXPECT_TRUE(Volume("v").IsFree());
}

TEST_F(VolumeActorsTest, AClaimOfAPodOnANodeGoesAfterThePod) {
  Pod("j-0", "own", "now");
  Pass(absl::Seconds(10));
  SetNode("j-0", "n0");
  ASSERT_TRUE(server_.Remove(ResourceType::kPersistentVolumeClaims, "ns", "data-j-0", "test").ok());
  Pass(absl::Seconds(10));
  const std::string uid = Claim("data-j-0").uid;
  EXPECT_TRUE(Claim("data-j-0").deleting);
  ASSERT_TRUE(server_.RemoveNow(ResourceType::kPods, "ns", "j-0", "test").ok());
  Pass(absl::Seconds(10));
  EXPECT_EQ(Claim("data-j-0").name, "");
}

TEST_F(VolumeActorsTest, AClaimThatIsDeletedWhileItsPodWaitsIsMadeAgain) {
  Pod("j-0", "own", "zonal");
  Pass(absl::Seconds(5));
  const std::string uid = Claim("data-j-0").uid;
  ASSERT_TRUE(server_.Remove(ResourceType::kPersistentVolumeClaims, "ns", "data-j-0", "test").ok());
  Pass(absl::Seconds(10));
  EXPECT_NE(Claim("data-j-0").uid, "");
  EXPECT_NE(Claim("data-j-0").uid, uid);
}

TEST_F(VolumeActorsTest, AnEphemeralClaimGoesWithItsPodAndTakesItsVolumeAlong) {
  Pod("j-0", "ephemeral", "now");
  Pass(absl::Seconds(10));
  const VolumeClaimFacts claim = Claim("j-0-scratch");
  EXPECT_EQ(claim.owner, TextAt(PodOf("j-0"), {"metadata", "uid"}));
  ASSERT_TRUE(claim.bound);
  ASSERT_TRUE(server_.RemoveNow(ResourceType::kPods, "ns", "j-0", "test").ok());
  Pass(absl::Seconds(10));
  EXPECT_EQ(Claim("j-0-scratch").name, "");
  EXPECT_EQ(Volume(claim.volume).name, "");
}

TEST_F(VolumeActorsTest, AClaimIsLostWithItsVolume) {
  Pod("j-0", "own", "now");
  Pass(absl::Seconds(10));
  const std::string volume = Claim("data-j-0").volume;
  // One that is bound is protected.
  ASSERT_TRUE(server_.Remove(ResourceType::kPersistentVolumes, "", volume, "test").ok());
  Pass(absl::Seconds(5));
  EXPECT_TRUE(Volume(volume).deleting);
  EXPECT_FALSE(Claim("data-j-0").lost);
  ASSERT_TRUE(server_.RemoveNow(ResourceType::kPersistentVolumes, "", volume, "test").ok());
  Pass(absl::Seconds(5));
  EXPECT_TRUE(Claim("data-j-0").lost);
  EXPECT_EQ(MissingVolume(server_, PodOf("j-0")), "volume " + volume + " does not exist");
}

TEST_F(VolumeActorsTest, ASecondVolumeOfAClaimIsGivenBack) {
  LocalVolume("v", "n0");
  LocalVolume("w", "n0");
  Pod("j-0", "own", "local");
  Pass(absl::Seconds(5));
  Give("v", Claim("data-j-0"));
  Give("w", Claim("data-j-0"));
  Pass(absl::Seconds(5));
  EXPECT_TRUE(Claim("data-j-0").bound);
  EXPECT_NE(Volume("v").IsFree(), Volume("w").IsFree());
}

TEST_F(VolumeActorsTest, OnePodAtATimeUsesAClaimForOnePod) {
  Pod("j-0", "shared", "now", "ReadWriteOncePod");
  Pod("j-1", "shared", "now", "ReadWriteOncePod");
  Pass(absl::Seconds(10));
  const std::string volume = Claim("shared-j").volume;
  const char* node = Volume(volume).IsUsableOn({{kZoneLabel, "zone-a"}}) ? "n0" : "n1";
  SetNode("j-0", node);
  SetNode("j-1", node);
  EXPECT_EQ(MissingVolume(server_, PodOf("j-1")), "");
  Change(ResourceType::kPods, "ns", "j-0", {{"status", {{"phase", "Running"}}}});
  EXPECT_EQ(MissingVolume(server_, PodOf("j-1")), "claim shared-j is in use by pod j-0");
}

}  // namespace
}  // namespace fairlead::sim::world
