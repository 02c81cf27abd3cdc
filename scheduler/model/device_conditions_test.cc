#include "scheduler/model/device_conditions.h"

#include "gtest/gtest.h"

namespace fairlead::model {
namespace {

AllocatedDevice Attached(const std::string& device) {
  AllocatedDevice out{"r", "d.io", "p", device};
  out.binding_conditions = {"Attached", "Powered"};
  out.binding_failure_conditions = {"Failed", "Lost"};
  return out;
}

ResourceClaim TwoDevices() {
  ResourceClaim claim;
  claim.allocated = true;
  claim.devices = {Attached("0"), Attached("1")};
  return claim;
}

DeviceReport Report(const std::string& device, std::vector<DeviceCondition> conditions) {
  return {"d.io", "p", device, std::move(conditions)};
}
DeviceReport Ready(const std::string& device) {
  return Report(device, {{"Attached", true}, {"Powered", true}});
}

TEST(DeviceConditions, AFailureIsToldBeforeWhatIsAwaited) {
  ResourceClaim claim = TwoDevices();
  claim.reports = {Report("1", {{"Powered", true},
                                {"Lost", true, "Cable", "the cable is out"},
                                {"Failed", false, "Fine", "no"}})};
  const DeviceReadiness readiness = ReadinessOf(claim);
  EXPECT_FALSE(readiness.IsReady());
  EXPECT_EQ(readiness.failure, "device d.io/p/1 has the condition Lost (Cable): the cable is out");
  EXPECT_EQ(readiness.awaited, "Attached, Powered of device d.io/p/0");
}

TEST(DeviceConditions, AFailureCountsAlsoIfAllElseIsTrue) {
  ResourceClaim claim = TwoDevices();
  claim.reports = {Ready("0"), Ready("1")};
  claim.reports[0].conditions.push_back({"Failed", true});
  EXPECT_EQ(ReadinessOf(claim).failure, "device d.io/p/0 has the condition Failed");
}

TEST(DeviceConditions, EachConditionOfEachDeviceIsAwaited) {
  ResourceClaim claim = TwoDevices();
  EXPECT_EQ(ReadinessOf(claim).awaited, "Attached, Powered of device d.io/p/0");
  claim.reports = {Ready("0"), Report("1", {{"Attached", false}, {"Powered", true}})};
  EXPECT_EQ(ReadinessOf(claim).awaited, "Attached of device d.io/p/1");
  claim.reports[1] = Ready("1");
  EXPECT_TRUE(ReadinessOf(claim).IsReady());
  // Of a device of the same name that is another one.
  claim.reports[1].pool = "other";
  EXPECT_FALSE(ReadinessOf(claim).IsReady());
}

// As in kube-scheduler: failures matter to devices that are awaited.
TEST(DeviceConditions, ADeviceWithoutBindingConditionsIsReady) {
  ResourceClaim claim = TwoDevices();
  EXPECT_TRUE(HasBindingConditions(claim.devices));
  for (AllocatedDevice& device : claim.devices) device.binding_conditions.clear();
  claim.reports = {Report("0", {{"Failed", true}})};
  EXPECT_TRUE(ReadinessOf(claim).IsReady());
  EXPECT_FALSE(HasBindingConditions(claim.devices));
}

TEST(DeviceConditions, OtherReportsAreForgotten) {
  ResourceClaim claim = TwoDevices();
  claim.devices[1].binding_conditions = claim.devices[1].binding_failure_conditions = {};
  claim.reports = {Ready("0"), Ready("1"), Ready("2")};
  claim.reports[0].conditions.push_back({"Ready", true, "", "a long text"});
  claim.reports[0].conditions.push_back({"Failed", false});
  KeepBindingConditions(claim);
  ASSERT_EQ(claim.reports.size(), 1u);
  EXPECT_EQ(claim.reports[0], Report("0", {{"Attached", true}, {"Powered", true}, {"Failed"}}));
}

}  // namespace
}  // namespace fairlead::model
