#include "sim/world/volume_facts.h"

#include <gtest/gtest.h>

#include "sim/world/facts.h"
#include "sim/world/objects.h"
#include "sim/world/volume_objects.h"

namespace fairlead::sim::world {
namespace {

Operation Fields(absl::string_view kind) {
  Operation fields;
  fields.With("name", "j").With("ns", "ns").With("volume", kind).With("volume_class", "zonal");
  return fields;
}

TEST(VolumeFactsTest, APodNamesItsClaimsEachOnce) {
  const Json pod = MakePod(Fields("both"), "j-3");
  EXPECT_EQ(ReadPodVolumes(pod),
            (std::vector<PodVolume>{{"data-j-3", false}, {"shared-j", false}}));
  EXPECT_EQ(ReadPodVolumes(MakePod(Fields("ephemeral"), "j-3")),
            (std::vector<PodVolume>{{"j-3-scratch", true}}));
  EXPECT_TRUE(ReadPodVolumes(MakePod(Fields(""), "j-3")).empty());
  Json twice = pod;
  twice["spec"]["volumes"].push_back(twice["spec"]["volumes"][0]);
  EXPECT_EQ(ReadPodVolumes(twice).size(), 2);
}

TEST(VolumeFactsTest, APodWithoutASpecOfItsClaimIsHopeless) {
  for (const char* kind : {"own", "shared", "both", "ephemeral"}) {
    const PodFacts pod = ReadPod(MakePod(Fields(kind), "j-0"));
    EXPECT_FALSE(pod.hopeless) << kind;
    EXPECT_TRUE(pod.ordinary) << kind;
    EXPECT_FALSE(pod.plain) << kind;
  }
  Operation odd;
  odd.With("odd", "volume");
  EXPECT_TRUE(ReadPod(MakePod(odd, "p")).hopeless);
  EXPECT_FALSE(ReadPod(MakePod(odd, "p")).ordinary);
}

TEST(VolumeFactsTest, AClaimIsBoundOnceBothSidesKnowIt) {
  const Json pod = MakePod(Fields("own").With("volume_gib", 2), "j-0");
  Json claim = MakeVolumeClaim(
      "ns", "data-j-0",
      Json::parse(pod["metadata"]["annotations"][kVolumeClaims].get<std::string>())["data-j-0"]);
  VolumeClaimFacts facts = ReadVolumeClaim(claim);
  EXPECT_EQ(facts.ask, (VolumeAsk{"zonal", int64_t{2} << 30, {"ReadWriteOnce"}}));
  EXPECT_TRUE(facts.protected_by_finalizer);
  claim["spec"]["volumeName"] = "v";
  EXPECT_FALSE(ReadVolumeClaim(claim).bound);
  claim["metadata"]["annotations"][kBindCompleted] = "yes";
  EXPECT_TRUE(ReadVolumeClaim(claim).bound);
}

TEST(VolumeFactsTest, AVolumeIsOfTheClaimThatItNames) {
  VolumeClaimFacts claim;
  claim.ns = "ns", claim.name = "c", claim.uid = "u";
  StorageClassFacts zonal;
  zonal.name = "zonal", zonal.where = "zone";
  Json volume = MakeProvisionedVolume(claim, zonal, {{kZoneLabel, "zone-a"}});
  EXPECT_TRUE(ReadVolume(volume).IsOf(claim));
  claim.uid = "of another claim of that name";
  EXPECT_FALSE(ReadVolume(volume).IsOf(claim));
  volume["spec"]["claimRef"].erase("uid");
  EXPECT_TRUE(ReadVolume(volume).IsOf(claim));
}

TEST(VolumeFactsTest, WhereAVolumeCanBeUsed) {
  const Labels here = {{kZoneLabel, "zone-a"}, {"kubernetes.io/hostname", "n0"}};
  const Labels there = {{kZoneLabel, "zone-a"}, {"kubernetes.io/hostname", "n1"}};
  const Labels far = {{kZoneLabel, "zone-b"}, {"kubernetes.io/hostname", "n2"}};
  struct Case {
    const char* where;
    bool there, far, without_labels;
  };
  // A node without a zone is not asked about the volume's label.
  for (const Case& c : {Case{"zone", true, false, false}, Case{"label", true, false, true},
                        Case{"host", false, false, false}}) {
    StorageClassFacts storage_class;
    storage_class.where = c.where;
    const VolumeFacts volume =
        ReadVolume(MakeProvisionedVolume(VolumeClaimFacts(), storage_class, here));
    EXPECT_TRUE(volume.IsUsableOn(here)) << c.where;
    EXPECT_EQ(volume.IsUsableOn(there), c.there) << c.where;
    EXPECT_EQ(volume.IsUsableOn(far), c.far) << c.where;
    EXPECT_EQ(volume.IsUsableOn({}), c.without_labels) << c.where;
  }
}

TEST(VolumeFactsTest, AVolumeSatisfiesWhatIsNotMoreThanItHas) {
  Operation fields;
  fields.With("name", "v").With("class", "local").With("node", "n0").With("gib", 2);
  const VolumeFacts volume = ReadVolume(MakeLocalVolume(fields));
  EXPECT_TRUE(volume.Satisfies({"local", int64_t{2} << 30, {"ReadWriteOnce"}}));
  EXPECT_FALSE(volume.Satisfies({"local", (int64_t{2} << 30) + 1, {"ReadWriteOnce"}}));
  EXPECT_FALSE(volume.Satisfies({"local", 1, {"ReadWriteMany"}}));
  EXPECT_FALSE(volume.Satisfies({"zonal", 1, {"ReadWriteOnce"}}));
}

TEST(VolumeFactsTest, AStorageClassSaysWhenAndWhere) {
  Operation fields;
  fields.With("name", "c").With("where", "zone").With("zones", "zone-a,zone-b");
  StorageClassFacts facts = ReadStorageClass(MakeStorageClass(fields));
  EXPECT_TRUE(facts.waits);
  EXPECT_TRUE(facts.IsProvisioned());
  EXPECT_TRUE(facts.IsAllowedOn({{kZoneLabel, "zone-b"}}));
  EXPECT_FALSE(facts.IsAllowedOn({{kZoneLabel, "zone-c"}}));
  EXPECT_FALSE(facts.IsAllowedOn({}));
  Operation by_hand;
  by_hand.With("name", "c").With("where", "none").With("immediate", 1);
  facts = ReadStorageClass(MakeStorageClass(by_hand));
  EXPECT_FALSE(facts.IsProvisioned());
  EXPECT_FALSE(facts.waits);
  EXPECT_TRUE(facts.IsAllowedOn({}));
}

}  // namespace
}  // namespace fairlead::sim::world
