#include "scheduler/state/device_selector.h"

#include "gtest/gtest.h"

namespace fairlead::state {
namespace {

TEST(DeviceSelectorTest, WhatIsNotUnderstoodIsRefusedWithItsText) {
  for (const char* text : {"",
                           "true",
                           "device.driver",
                           "device.driver == gpu",
                           "device.driver == \"a\" || true",
                           "device.driver in [\"a\"]",
                           "!(device.driver == \"a\")",
                           "device.driver > \"a\"",
                           "device.driver == \"a\" && ",
                           "device.driver == \"a",
                           "device.attributes.x == 1",
                           "device.attributes[\"d\"].x == 1.5",
                           "device.attributes[\"d\"].x < \"s\"",
                           "device.attributes[\"d\"].x.matches(\"s\")",
                           "device.attributes[\"d\"].x > true",
                           "device.capacity[\"d\"].x == \"40Gi\"",
                           "device.capacity[\"d\"].x.compareTo(quantity(\"40Gi\")) >= 1",
                           "device.capacity[\"d\"].x.compareTo(quantity(\"much\")) >= 0",
                           "((device.driver == \"a\"))",
                           "(device.driver == \"a\") && (device.driver == \"b\" || true)",
                           "device.driver == \"a\\\"b\"",
                           "device.driver == \"a\" & device.driver == \"b\""}) {
    const auto parsed = DeviceSelector::Parse(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(parsed.status().message().find("selector not understood: "), 0) << text;
  }
  EXPECT_FALSE(DeviceSelector::Parse(std::string(20000, ' ')).ok());
}

TEST(DeviceSelectorTest, ComparesWhatADeviceSays) {
  model::Device device;
  device.name = "0";
  device.attributes["model"].value = std::string("A100");
  device.attributes["other.io/index"].value = int64_t{3};
  device.attributes["ecc"].value = true;
  device.capacity["memory"] = int64_t{40} << 30;
  struct Case {
    const char* text;
    bool matches;
  };
  const Case cases[] = {
      {"device.driver == \"d.io\"", true},
      {"device.driver=='d.io'", true},
      {"device.driver != \"d.io\"", false},
      {"device.attributes[\"d.io\"].model == \"A100\"", true},
      {"device.attributes[\"d.io\"].model != \"A100\"", false},
      {"device.attributes['other.io'].index >= 3", true},
      {"device.attributes[\"other.io\"].index > 3", false},
      {"device.attributes[\"d.io\"].index == 3", false},  // another domain's
      {"device.attributes[\"d.io\"].absent != \"x\"", false},
      {"device.attributes[\"d.io\"].model == 100", false},  // of another type
      {"device.attributes[\"d.io\"].ecc == true", true},
      {"device.attributes[\"d.io\"].ecc == false", false},
      {"device.capacity[\"d.io\"].memory.compareTo(quantity(\"40Gi\")) >= 0", true},
      {"device.capacity[\"d.io\"].memory.compareTo(quantity(\"40Gi\")) > 0", false},
      {"device.capacity[\"d.io\"].memory.compareTo(quantity(\"41Gi\")) < 0", true},
      {"device.capacity[\"d.io\"].cores.compareTo(quantity(\"1\")) >= 0", false},
      {"device.driver == \"d.io\" && device.attributes[\"d.io\"].model == \"A100\"", true},
      {"(device.driver == \"d.io\") && device.attributes[\"d.io\"].model == \"H100\"", false},
      {"device.attributes[\"d.io\"].model == \"A && B\"", false},
  };
  for (const Case& c : cases) {
    const auto parsed = DeviceSelector::Parse(c.text);
    ASSERT_TRUE(parsed.ok()) << c.text << ": " << parsed.status();
    EXPECT_EQ(parsed->Matches("d.io", device), c.matches) << c.text;
  }
}

}  // namespace
}  // namespace fairlead::state
