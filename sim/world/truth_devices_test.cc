#include "sim/world/truth_devices.h"

#include <gtest/gtest.h>

#include "sim/world/api_json.h"
#include "sim/world/device_objects.h"
#include "sim/world/objects.h"
#include "sim/world/truth.h"

namespace fairlead::sim::world {
namespace {

class TruthDevicesTest : public ::testing::Test {
 protected:
  TruthDevicesTest() {
    Operation fields;
    fields.With("name", "sim-any");
    Create(ResourceType::kDeviceClasses, MakeDeviceClass(fields));
    fields = {};
    fields.With("name", "q").With("ns", "ns");
    Create(ResourceType::kQueues, MakeQueue(fields));
  }
  void Create(ResourceType type, Json object) {
    ASSERT_TRUE(server_.Create(type, std::move(object), "test").ok());
  }
  void Node(const std::string& name, int64_t devices) {
    Operation fields;
    fields.With("name", name);
    Create(ResourceType::kNodes, MakeNode(fields));
    Create(ResourceType::kResourceSlices, MakeSlice(name, "uid", 1, devices, {"a", "b"}));
  }
  // With its claim, which is named like the pod.
  void Pod(const std::string& name, int64_t devices, const char* kind = "own") {
    Operation fields;
    fields.With("name", "j").With("ns", "ns").With("queue", "q").With("cpu", 100);
    fields.With("claim", kind).With("devices", devices);
    Json pod = MakePod(fields, name);
    const Json spec = Json::parse(pod["metadata"]["annotations"][kClaimSpec].get<std::string>());
    const bool own = std::string(kind) == "own";
    if (own) {
      pod["status"]["resourceClaimStatuses"] =
          Json::array({{{"name", "device"}, {"resourceClaimName", name}}});
    }
    Create(ResourceType::kPods, std::move(pod));
    const std::string claim = own ? name : SharedClaimName("j");
    if (server_.Find(ResourceType::kResourceClaims, "ns", claim) != nullptr) return;
    Json object = MakeClaim("ns", claim, spec);
    const std::string uid =
        TextAt(*server_.Find(ResourceType::kPods, "ns", name), {"metadata", "uid"});
    if (own) {
      object["metadata"]["ownerReferences"] =
          Json::array({{{"kind", "Pod"}, {"name", name}, {"uid", uid}}});
    }
    Create(ResourceType::kResourceClaims, std::move(object));
  }
  void Allocate(const std::string& claim, const std::string& node,
                const std::vector<std::string>& devices) {
    const auto change = [&](Json& changed) {
      Json results = Json::array();
      for (const std::string& device : devices) {
        results.push_back({{"driver", kDeviceDriver}, {"pool", node}, {"device", device}});
      }
      changed["status"]["allocation"]["devices"]["results"] = results;
      changed["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"] =
          Json::array({{{"matchFields", Json::array({{{"values", Json::array({node})}}})}}});
      return absl::OkStatus();
    };
    ASSERT_TRUE(server_.Modify(ResourceType::kResourceClaims, "ns", claim, change, "test").ok());
  }
  const ClaimFacts& Claim(const std::string& name) { return *truth_.devices().Find("ns", name); }
  Workload Waiting(const std::string& pod) {
    for (const Workload& each : truth_.Waiting()) {
      if (each.key == "ns/" + pod) return each;
    }
    return {};
  }

  EventQueue time_{absl::FromUnixSeconds(1'772'409'600)};
  ApiServer server_{&time_};
  Truth truth_{&time_, &server_};
};

TEST_F(TruthDevicesTest, ADeviceOfTwoClaimsIsFound) {
  Node("n", 2);
  Pod("p", 1);
  Pod("q", 1);
  Allocate("p", "n", {"dev0"});
  EXPECT_EQ(truth_.devices().HeldTwice(Claim("p")), "");
  Allocate("q", "n", {"dev0"});
  EXPECT_EQ(truth_.devices().HeldTwice(Claim("q")),
            "device sim.example.com/n/dev0 is allocated to claim ns/p too");
}

TEST_F(TruthDevicesTest, DevicesThatDoNotSuitAreFound) {
  Node("n", 2);
  Pod("p", 1);
  Allocate("p", "n", {"dev1"});
  EXPECT_EQ(truth_.devices().Misfit(Claim("p")), "");
  Pod("q", 2);
  Allocate("q", "n", {"dev0"});
  EXPECT_EQ(truth_.devices().Misfit(Claim("q")), "it has 1 devices, and asks for 2");
  Pod("r", 1);
  Allocate("r", "n", {"dev7"});
  EXPECT_EQ(truth_.devices().Misfit(Claim("r")), "node n has no device sim.example.com/n/dev7");
  ASSERT_TRUE(server_.Remove(ResourceType::kDeviceClasses, "", "sim-any", "test").ok());
  EXPECT_EQ(truth_.devices().Misfit(Claim("p")),
            "device sim.example.com/n/dev1 of n is not what it selects");
}

TEST_F(TruthDevicesTest, FreeDevicesOfANodeArePartOfWhatFits) {
  Node("n", 2);
  Pod("p", 2);
  Pod("q", 1);
  EXPECT_TRUE(truth_.Entitled(Waiting("p")));
  EXPECT_TRUE(truth_.FitsNow(Waiting("p")));
  Allocate("q", "n", {"dev0"});
  EXPECT_FALSE(truth_.FitsNow(Waiting("p")));
  // What a pod's own claim has is there for the pod.
  EXPECT_TRUE(truth_.FitsNow(Waiting("q")));
  Node("m", 2);
  EXPECT_TRUE(truth_.FitsNow(Waiting("p")));
}

// docs/dra.md: it counts against the devices that are left.
TEST_F(TruthDevicesTest, ADeviceThatIsGoneTakesThePlaceOfAnother) {
  Node("n", 3);
  Pod("p", 1);
  Pod("q", 1);
  Allocate("p", "n", {"dev2"});
  EXPECT_EQ(truth_.devices().FreeOn("n", Claim("q").ask), 2);
  const auto shrink = [](Json& slice) {
    slice["spec"]["devices"].erase(2);
    return absl::OkStatus();
  };
  ASSERT_TRUE(
      server_.Modify(ResourceType::kResourceSlices, "", "n-sim.example.com", shrink, "test").ok());
  EXPECT_EQ(truth_.devices().FreeOn("n", Claim("q").ask), 1);
}

TEST_F(TruthDevicesTest, ASharedClaimDecidesTheNode) {
  Node("n", 1);
  Node("m", 0);
  Pod("p", 1, "shared");
  EXPECT_TRUE(truth_.FitsNow(Waiting("p")));
  Allocate(SharedClaimName("j"), "n", {"dev0"});
  EXPECT_TRUE(truth_.FitsNow(Waiting("p")));
  ASSERT_TRUE(server_.RemoveNow(ResourceType::kNodes, "", "n", "test").ok());
  EXPECT_FALSE(truth_.FitsNow(Waiting("p")));
}

TEST_F(TruthDevicesTest, APodWithoutItsClaimIsNotJudged) {
  Node("n", 1);
  Pod("p", 1);
  ASSERT_TRUE(server_.RemoveNow(ResourceType::kResourceClaims, "ns", "p", "test").ok());
  EXPECT_FALSE(truth_.Entitled(Waiting("p")));
}

}  // namespace
}  // namespace fairlead::sim::world
