#include "kube/device_objects.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Doc(absl::string_view kind, absl::string_view rest) {
  return absl::StrCat(R"({"apiVersion":"resource.k8s.io/v1","kind":")", kind,
                      R"(","metadata":{"name":"o","namespace":"ns"},)", rest, "}");
}

template <typename T>
T Decode(absl::string_view json) {
  const auto decoded = DecodeDeviceObject(json);
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return decoded.ok() ? std::get<T>(*decoded) : T();
}

model::ResourceClaim Request(absl::string_view exactly) {
  return Decode<model::ResourceClaim>(
      Doc("ResourceClaim",
          absl::StrCat(R"("spec":{"devices":{"requests":[{"name":"r",)", exactly, "}]}}")));
}

TEST(DeviceObjects, OtherKindsAndBrokenTextAreErrors) {
  EXPECT_FALSE(DecodeDeviceObject("").ok());
  EXPECT_FALSE(DecodeDeviceObject("[]").ok());
  EXPECT_FALSE(DecodeDeviceObject(R"({"apiVersion":"v1","kind":"Pod"})").ok());
  EXPECT_FALSE(
      DecodeDeviceObject(R"({"apiVersion":"resource.k8s.io/v1beta1","kind":"ResourceClaim"})")
          .ok());
  EXPECT_FALSE(DecodeDeviceObject(Doc("ResourceClaim", R"("spec":{"devices")")).ok());
}

TEST(DeviceObjects, WhatIsNotUnderstoodIsSaid) {
  struct Case {
    const char* request;
    const char* problem;
  };
  const Case cases[] = {
      {R"("firstAvailable":[{"deviceClassName":"a"}])", "firstAvailable"},
      {R"("exactly":{"deviceClassName":"a","count":0})", "count"},
      {R"("exactly":{"deviceClassName":"a","count":9223372036854775807})", "count"},
      {R"("exactly":{"deviceClassName":"a","count":"2"})", "count"},
      {R"("exactly":{"deviceClassName":"a","allocationMode":"Some"})", "allocationMode"},
      {R"("exactly":{"deviceClassName":"a","adminAccess":true})", "adminAccess"},
      {R"("exactly":{"deviceClassName":"a","selectors":[{"rego":{}}]})", "rego"},
      {R"("exactly":7)", "exactly"},
  };
  for (const Case& c : cases) EXPECT_THAT(Request(c.request).invalid, HasSubstr(c.problem));
  EXPECT_THAT(Decode<model::ResourceSlice>(
                  Doc("ResourceSlice", R"("spec":{"devices":[{"capacity":{"m":{"value":"x"}}}]})"))
                  .invalid,
              HasSubstr("value"));
}

TEST(DeviceObjects, ReadsClaims) {
  const auto claim = Request(
      R"("exactly":{"deviceClassName":"a","count":3,"selectors":[{"cel":{"expression":"e"}}]})");
  EXPECT_EQ(claim.invalid, "");
  EXPECT_EQ(claim.meta.name, "o");
  ASSERT_EQ(claim.requests.size(), 1);
  EXPECT_EQ(claim.requests[0].name, "r");
  EXPECT_EQ(claim.requests[0].device_class, "a");
  EXPECT_EQ(claim.requests[0].count, 3);
  EXPECT_THAT(claim.requests[0].selectors, ElementsAre("e"));
  EXPECT_FALSE(claim.allocated);
}

TEST(DeviceObjects, StatusSurvivesWritingAndReading) {
  model::ResourceClaim claim;
  claim.allocated = true;
  claim.devices = {{"r", "d.io", "pool", "0"}, {"r", "d.io", "pool", "1"}};
  claim.reserved_for = {"u1", "u2"};
  const auto read = Decode<model::ResourceClaim>(
      Doc("ResourceClaim", absl::StrCat("\"status\":", EncodeClaimStatus(claim, "n"))));
  EXPECT_TRUE(read.allocated);
  EXPECT_EQ(read.devices, claim.devices);
  EXPECT_EQ(read.reserved_for, claim.reserved_for);
  EXPECT_EQ(EncodeClaimStatus({}, ""), "{}");
}

TEST(DeviceObjects, ReadsSlicesAndClasses) {
  const auto slice = Decode<model::ResourceSlice>(
      Doc("ResourceSlice",
          R"("spec":{"driver":"d.io","nodeName":"n","pool":{"name":"p","generation":4},"devices":[)"
          R"({"name":"0","attributes":{"m":{"string":"A"},"i":{"int":2},"e":{"bool":true},)"
          R"("v":{"version":"1.2.3"}},"capacity":{"memory":{"value":"40Gi"}}}]})"));
  EXPECT_EQ(slice.invalid, "");
  EXPECT_EQ(slice.driver + slice.node_name + slice.pool, "d.ionp");
  EXPECT_EQ(slice.generation, 4);
  ASSERT_EQ(slice.devices.size(), 1);
  model::Device want;
  want.name = "0";
  want.attributes["m"].value = std::string("A");
  want.attributes["i"].value = int64_t{2};
  want.attributes["e"].value = true;
  want.attributes["v"].value = std::string("1.2.3");
  want.capacity["memory"] = int64_t{40} << 30;
  EXPECT_EQ(slice.devices[0], want);
  EXPECT_THAT(Decode<model::DeviceClass>(
                  Doc("DeviceClass", R"("spec":{"selectors":[{"cel":{"expression":"e"}}]})"))
                  .selectors,
              ElementsAre("e"));
}

}  // namespace
}  // namespace fairlead::kube
