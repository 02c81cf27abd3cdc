// The volumes of a pod, in both encodings: claims, ephemeral volumes and disks that it names
// itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kube/codec/codec.h"
#include "kube/codec/testing/random_core.h"
#include "kube/transport/http.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Disk = model::InlineDisk;
using ClaimRef = model::VolumeClaimRef;
using testing::Envelope;

model::Pod PodWithVolumes(absl::string_view volumes) {
  const auto object =
      DecodeObject(model::Kind::kPod, kJson, absl::StrCat(R"({"spec":{"volumes":)", volumes, "}}"));
  EXPECT_TRUE(object.ok()) << object.status();
  return object.ok() ? std::get<model::Pod>(*object) : model::Pod();
}

// A field of wire type 2.
std::string Field(int number, absl::string_view bytes) {
  return absl::StrCat(std::string(1, static_cast<char>(number << 3 | 2)),
                      std::string(1, static_cast<char>(bytes.size())), bytes);
}

absl::StatusOr<Object> FromWire(const std::string& volume) {
  return DecodeObject(model::Kind::kPod, kProtobuf,
                      Envelope("v1", "Pod", Field(2, Field(1, volume))));
}

TEST(PodVolumes, WrongTypesAreProblemsOfThePod) {
  struct Case {
    const char *volume, *want;
  };
  const Case cases[] = {
      {R"({"name":7})", "spec.volumes[0].name: must be a string, not a number"},
      {R"({"name":"v","persistentVolumeClaim":{"claimName":[]}})",
       "spec.volumes[0].persistentVolumeClaim.claimName: must be a string, not a list"},
      {R"({"name":"v","persistentVolumeClaim":"c"})",
       "spec.volumes[0].persistentVolumeClaim: must be an object, not a string"},
      {R"({"name":"v","gcePersistentDisk":{"pdName":"a","readOnly":"yes"}})",
       "spec.volumes[0].gcePersistentDisk.readOnly: must be true or false, not a string"},
      {R"({"name":"v","iscsi":7})", "spec.volumes[0].iscsi: must be an object, not a number"},
      {R"({"name":"v","rbd":{"monitors":["a",7]}})",
       "spec.volumes[0].rbd.monitors[1]: must be a string, not a number"},
      {R"({"name":"v","rbd":{"image":true}})",
       "spec.volumes[0].rbd.image: must be a string, not true or false"},
      {"7", "spec.volumes[0]: must be an object, not a number"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(PodWithVolumes(absl::StrCat("[", c.volume, "]")).invalid, c.want) << c.volume;
  }
}

TEST(PodVolumes, WrongWireTypesAreErrorsOfTheMessage) {
  const std::string number("\x08\x01", 2);  // field 1 as a varint
  const std::string cases[] = {
      number,                                          // name
      Field(2, Field(3, number)),                      // pdName
      Field(2, Field(4, Field(4, "true"))),            // readOnly
      Field(2, Field(8, std::string("\x10\x01", 2))),  // iqn
      Field(2, Field(10, number)),                     // claimName
      Field(2, Field(11, number)),                     // monitors
      Field(2, Field(11, std::string("\x0A\x7Fx", 3))),
      Field(2, std::string("\xE8\x01\x00", 3)),  // ephemeral
  };
  for (const std::string& volume : cases) {
    EXPECT_TRUE(absl::IsInvalidArgument(FromWire(volume).status())) << absl::CEscape(volume);
  }
}

TEST(PodVolumes, ClaimsAreSortedAndUnique) {
  const model::Pod pod =
      PodWithVolumes(R"([{"name":"s","ephemeral":{"volumeClaimTemplate":{"spec":{}}}},)"
                     R"({"persistentVolumeClaim":{"claimName":"z","readOnly":true},"name":"a"},)"
                     R"({"name":"b","persistentVolumeClaim":{"claimName":"s"}},)"
                     R"({"name":"c","persistentVolumeClaim":{"claimName":"z"}},)"
                     R"({"ephemeral":{},"name":"late"},)"
                     R"({"name":"d","emptyDir":{}},{"name":"e","ephemeral":null},{"name":"f"}])");
  EXPECT_EQ(pod.invalid, "");
  EXPECT_THAT(pod.spec.volume_claims, ElementsAre(ClaimRef{"late", true}, ClaimRef{"s", false},
                                                  ClaimRef{"s", true}, ClaimRef{"z", false}));
  EXPECT_THAT(pod.spec.inline_disks, IsEmpty());
  EXPECT_TRUE(*pod.spec.volume_needs == model::VolumeNeeds()) << "decoders do not make it";
}

// It must not be placed as if it had no volume.
TEST(PodVolumes, AClaimWithoutANameIsOne) {
  EXPECT_THAT(PodWithVolumes(R"([{"name":"v","persistentVolumeClaim":{}}])").spec.volume_claims,
              ElementsAre(ClaimRef{"", false}));
  const auto wire = FromWire(Field(2, Field(10, "")));
  ASSERT_TRUE(wire.ok()) << wire.status();
  EXPECT_THAT(std::get<model::Pod>(*wire).spec.volume_claims, ElementsAre(ClaimRef{"", false}));
}

TEST(PodVolumes, TheNameOfAWireVolumeComesBeforeOrAfterItsSource) {
  const std::string ephemeral = Field(2, std::string("\xEA\x01\x00", 3));  // field 29
  const std::string claim = Field(2, Field(10, Field(1, "data")));
  struct Case {
    std::string volume;
    ClaimRef want;
  };
  const Case cases[] = {
      {Field(1, "v") + ephemeral, {"v", true}},
      {ephemeral + Field(1, "v"), {"v", true}},
      {ephemeral, {"", true}},
      {Field(1, "v") + claim, {"data", false}},
      {claim + Field(1, "v"), {"data", false}},
  };
  for (const Case& c : cases) {
    const auto object = FromWire(c.volume);
    ASSERT_TRUE(object.ok()) << object.status();
    EXPECT_THAT(std::get<model::Pod>(*object).spec.volume_claims, ElementsAre(c.want))
        << absl::CEscape(c.volume);
  }
}

TEST(PodVolumes, DisksThatThePodNamesItself) {
  const model::Pod pod = PodWithVolumes(
      R"([{"name":"a","rbd":{"monitors":["m2","m1","m2"],"image":"i","readOnly":true}},)"
      R"({"name":"b","rbd":{"pool":"fast","image":"i","monitors":[]}},)"
      R"({"name":"c","rbd":{"pool":"","image":"j"}},)"
      R"({"name":"d","iscsi":{"targetPortal":"p","iqn":"iqn.x","lun":1,"readOnly":false}},)"
      R"({"name":"e","awsElasticBlockStore":{"volumeID":"vol","readOnly":true}},)"
      R"({"name":"f","gcePersistentDisk":{"pdName":"pd","partition":1}},)"
      R"({"name":"g","gcePersistentDisk":{"pdName":"pd"}},)"
      R"({"name":"h","azureDisk":{"diskName":"x"}},{"name":"i","nfs":{"server":"s"}}])");
  EXPECT_EQ(pod.invalid, "");
  EXPECT_THAT(pod.spec.inline_disks,
              ElementsAre(Disk{Disk::Kind::kGcePersistentDisk, "pd", {}, false},
                          Disk{Disk::Kind::kAwsElasticBlockStore, "vol", {}, true},
                          Disk{Disk::Kind::kIscsi, "iqn.x", {}, false},
                          Disk{Disk::Kind::kRbd, "fast/i", {}, false},
                          Disk{Disk::Kind::kRbd, "rbd/i", {"m1", "m2"}, true},
                          Disk{Disk::Kind::kRbd, "rbd/j", {}, false}));
  EXPECT_THAT(pod.spec.volume_claims, IsEmpty());
}

}  // namespace
}  // namespace fairlead::kube
