#include <gtest/gtest.h>

#include "sim/world/api_json.h"
#include "sim/world/claim_controller.h"
#include "sim/world/device_driver.h"
#include "sim/world/device_objects.h"
#include "sim/world/facts.h"
#include "sim/world/objects.h"

namespace fairlead::sim::world {
namespace {

class DeviceActorsTest : public ::testing::Test {
 protected:
  void Node(absl::string_view name) {
    Operation fields;
    fields.With("name", name);
    ASSERT_TRUE(server_.Create(ResourceType::kNodes, MakeNode(fields), "test").ok());
  }
  void Pod(const std::string& name, const char* claim) {
    Operation fields;
    fields.With("name", "j").With("ns", "ns").With("claim", claim);
    ASSERT_TRUE(server_.Create(ResourceType::kPods, MakePod(fields, name), "test").ok());
  }
  void Pass(absl::Duration time) { time_.RunUntil(time_.now() + time); }
  const Json& PodOf(const std::string& name) {
    return *server_.Find(ResourceType::kPods, "ns", name);
  }
  std::string ClaimOf(const std::string& pod) { return ReadPodClaims(PodOf(pod)).front().claim; }
  const Json* Claim(const std::string& name) {
    return server_.Find(ResourceType::kResourceClaims, "ns", name);
  }
  const Json* Slice(const std::string& node) {
    return server_.Find(ResourceType::kResourceSlices, "", node + "-" + kDeviceDriver);
  }
  // As Fairlead writes it.
  void Allocate(const std::string& claim, const std::vector<std::string>& pods) {
    const auto change = [&](Json& changed) {
      changed["metadata"]["finalizers"] = Json::array({kClaimFinalizer});
      changed["status"]["allocation"]["devices"]["results"] = Json::array();
      changed["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"] = Json::array(
          {{{"matchFields",
             Json::array({{{"key", "metadata.name"}, {"values", Json::array({"n"})}}})}}});
      for (const std::string& pod : pods) {
        changed["status"]["reservedFor"].push_back(
            {{"name", pod}, {"uid", TextAt(PodOf(pod), {"metadata", "uid"})}});
      }
      return absl::OkStatus();
    };
    ASSERT_TRUE(server_.Modify(ResourceType::kResourceClaims, "ns", claim, change, "test").ok());
  }
  void SetNode(const std::string& pod) {
    const auto change = [](Json& changed) {
      changed["spec"]["nodeName"] = "n";
      return absl::OkStatus();
    };
    ASSERT_TRUE(server_.Modify(ResourceType::kPods, "ns", pod, change, "test").ok());
  }

  EventQueue time_{absl::FromUnixSeconds(1'772'409'600)};
  ApiServer server_{&time_};
  DeviceDriver driver_{&time_, &server_, 1};
  ClaimController controller_{&time_, &server_, 2};
};

TEST_F(DeviceActorsTest, ASliceComesAfterItsNodeAndGoesWithIt) {
  driver_.SetDevices("n", 3, {"a"});
  Node("n");
  EXPECT_EQ(Slice("n"), nullptr);
  Pass(absl::Seconds(5));
  ASSERT_NE(Slice("n"), nullptr);
  EXPECT_EQ(ReadSlice(*Slice("n")).devices.size(), 3);
  const int64_t first = ReadSlice(*Slice("n")).generation;
  driver_.SetDevices("n", 1, {"b"});
  Pass(absl::Seconds(5));
  EXPECT_EQ(ReadSlice(*Slice("n")).devices.size(), 1);
  EXPECT_EQ(ReadSlice(*Slice("n")).generation, first + 1);
  ASSERT_TRUE(server_.RemoveNow(ResourceType::kNodes, "", "n", "test").ok());
  Pass(absl::Seconds(5));
  EXPECT_EQ(Slice("n"), nullptr);
}

TEST_F(DeviceActorsTest, AGeneratedClaimIsMadeAndNamedAndGoesWithItsPod) {
  Pod("j-0", "own");
  EXPECT_EQ(ClaimOf("j-0"), "");
  Pass(absl::Seconds(5));
  const std::string claim = ClaimOf("j-0");
  ASSERT_NE(Claim(claim), nullptr) << claim;
  EXPECT_EQ(ReadClaim(*Claim(claim)).owner, TextAt(PodOf("j-0"), {"metadata", "uid"}));
  Allocate(claim, {"j-0"});
  ASSERT_TRUE(server_.RemoveNow(ResourceType::kPods, "ns", "j-0", "test").ok());
  Pass(absl::Seconds(5));
  EXPECT_EQ(Claim(claim), nullptr);
}

TEST_F(DeviceActorsTest, AClaimThatIsDeletedUnderItsPodIsMadeAgain) {
  Pod("j-0", "own");
  Pass(absl::Seconds(5));
  const std::string claim = ClaimOf("j-0");
  ASSERT_TRUE(server_.Remove(ResourceType::kResourceClaims, "ns", claim, "test").ok());
  Pass(absl::Seconds(8));
  EXPECT_NE(ClaimOf("j-0"), claim);
  EXPECT_NE(Claim(ClaimOf("j-0")), nullptr);
}

// The last reservation that goes takes the allocation along.
TEST_F(DeviceActorsTest, ASharedClaimIsFreedByTheLastPodThatEnds) {
  Pod("j-0", "shared");
  Pod("j-1", "shared");
  Pass(absl::Seconds(5));
  const std::string claim = SharedClaimName("j");
  ASSERT_NE(Claim(claim), nullptr);
  Allocate(claim, {"j-0", "j-1"});
  SetNode("j-0");
  SetNode("j-1");
  EXPECT_EQ(MissingClaim(server_, PodOf("j-0")), "");
  const auto succeed = [&](const std::string& pod) {
    const auto change = [](Json& changed) {
      changed["status"]["phase"] = "Succeeded";
      return absl::OkStatus();
    };
    ASSERT_TRUE(server_.Modify(ResourceType::kPods, "ns", pod, change, "test").ok());
    Pass(absl::Seconds(5));
  };
  succeed("j-0");
  EXPECT_TRUE(ReadClaim(*Claim(claim)).allocated);
  EXPECT_EQ(ReadClaim(*Claim(claim)).reserved.size(), 1);
  succeed("j-1");
  EXPECT_FALSE(ReadClaim(*Claim(claim)).allocated);
}

TEST_F(DeviceActorsTest, APodMayStartOnceItsClaimIsAllocatedThereAndReservedForIt) {
  Pod("j-0", "own");
  EXPECT_EQ(MissingClaim(server_, PodOf("j-0")), "claim device does not exist");
  Pass(absl::Seconds(5));
  const std::string claim = ClaimOf("j-0");
  EXPECT_EQ(MissingClaim(server_, PodOf("j-0")), "claim " + claim + " is not allocated");
  Allocate(claim, {});
  EXPECT_EQ(MissingClaim(server_, PodOf("j-0")), "claim " + claim + " is allocated on n");
  SetNode("j-0");
  EXPECT_EQ(MissingClaim(server_, PodOf("j-0")), "claim " + claim + " is not reserved for the pod");
}

}  // namespace
}  // namespace fairlead::sim::world
