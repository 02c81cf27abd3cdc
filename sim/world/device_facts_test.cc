#include "sim/world/device_facts.h"

#include <gtest/gtest.h>

#include "sim/world/device_objects.h"
#include "sim/world/objects.h"

namespace fairlead::sim::world {
namespace {

TEST(DeviceFactsTest, ASelectorIsReadTermByTerm) {
  const SliceFacts slice = ReadSlice(MakeSlice("n", "uid", 3, 2, {"a", "b"}));
  EXPECT_EQ(slice.node, "n");
  EXPECT_EQ(slice.generation, 3);
  ASSERT_EQ(slice.devices.size(), 2);
  EXPECT_EQ(slice.KeyOf(slice.devices[1]), "sim.example.com/n/dev1");
  const auto matches = [&](absl::string_view selector) {
    return SelectorMatches(selector, slice.driver, slice.devices[1]);
  };
  EXPECT_TRUE(matches("device.driver == \"sim.example.com\""));
  EXPECT_FALSE(matches("device.driver == \"other.example.com\""));
  EXPECT_TRUE(matches("device.attributes[\"sim.example.com\"].model == \"b\""));
  EXPECT_FALSE(matches("device.attributes[\"sim.example.com\"].model == \"a\""));
  EXPECT_TRUE(matches("device.attributes[\"sim.example.com\"].lot != 1000"));
  EXPECT_FALSE(matches("device.attributes[\"sim.example.com\"].lot != 1"));
  EXPECT_FALSE(
      matches("device.driver == \"sim.example.com\" && "
              "device.attributes[\"sim.example.com\"].lot != 1"));
}

TEST(DeviceFactsTest, WhatIsNotUnderstoodMatchesNothing) {
  const DeviceFacts device{"d", {{"lot", "1"}}};
  for (const char* selector : {"", "true", "device.attributes[\"sim.example.com\"].lot > 0",
                               "device.attributes[\"sim.example.com\"].none != 1",
                               "device.attributes[\"other\"].lot == 1"}) {
    EXPECT_FALSE(SelectorMatches(selector, "sim.example.com", device)) << selector;
  }
}

TEST(DeviceFactsTest, AClaimSaysWhatItAsksForAndWhatItHas) {
  Operation fields;
  fields.With("name", "j").With("claim", "own").With("devices", 2).With("device_lot", "each");
  const Json pod = MakePod(fields, "j-7");
  Json claim = MakeClaim(
      "ns", "c", Json::parse(pod["metadata"]["annotations"][kClaimSpec].get<std::string>()));
  claim["metadata"]["uid"] = "u";
  ClaimFacts facts = ReadClaim(claim);
  EXPECT_EQ(facts.ask.count, 2);
  EXPECT_EQ(facts.ask.device_class, "sim-any");
  ASSERT_EQ(facts.ask.selectors.size(), 1);
  EXPECT_EQ(facts.ask.selectors[0], "device.attributes[\"sim.example.com\"].lot != 10007");
  EXPECT_FALSE(facts.allocated);
  claim["status"] = Json::parse(R"({
    "allocation": {
      "devices": {"results": [{"request": "r", "driver": "x", "pool": "n", "device": "0"}]},
      "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}},
    "reservedFor": [{"resource": "pods", "name": "j-7", "uid": "p"}]})");
  facts = ReadClaim(claim);
  EXPECT_TRUE(facts.allocated);
  EXPECT_EQ(facts.node, "n");
  EXPECT_EQ(facts.devices, std::vector<std::string>{"x/n/0"});
  EXPECT_TRUE(facts.IsReservedFor("p"));
  EXPECT_FALSE(facts.IsReservedFor("q"));
}

TEST(DeviceFactsTest, APodNamesAGeneratedClaimInItsStatus) {
  Operation fields;
  fields.With("name", "j").With("claim", "both");
  Json pod = MakePod(fields, "j-0");
  EXPECT_EQ(ReadPodClaims(pod),
            (std::vector<PodClaim>{{"device", "", true}, {"shared", "j-shared", false}}));
  pod["status"]["resourceClaimStatuses"] =
      Json::array({{{"name", "device"}, {"resourceClaimName", "j-0-device-3"}}});
  EXPECT_EQ(ReadPodClaims(pod)[0], (PodClaim{"device", "j-0-device-3", true}));
}

}  // namespace
}  // namespace fairlead::sim::world
