// ResourceClaim, ResourceSlice and DeviceClass from JSON.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/codec/codec.h"
#include "kube/transport/http.h"

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
  const auto decoded = DecodeObject(model::KindOf<T>(), kJson, json);
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return decoded.ok() ? std::get<T>(*decoded) : T();
}

model::ResourceClaim Request(absl::string_view exactly) {
  return Decode<model::ResourceClaim>(
      Doc("ResourceClaim",
          absl::StrCat(R"("spec":{"devices":{"requests":[{"name":"r",)", exactly, "}]}}")));
}

TEST(DeviceClassJson, ItsExtendedResourceIsRead) {
  EXPECT_EQ(Decode<model::DeviceClass>(
                Doc("DeviceClass", R"("spec":{"extendedResourceName":"example.com/fpga"})"))
                .extended_resource,
            "example.com/fpga");
}

TEST(DeviceObjects, OtherKindsAndBrokenTextAreErrors) {
  const auto decode = [](absl::string_view json) {
    return DecodeObject(model::Kind::kResourceClaim, kJson, json).status();
  };
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string(R"({"apiVersion":"v1","kind":"Pod"})"),
        Doc("ResourceClaim", R"("spec":{"devices")")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(decode(text))) << text;
  }
}

TEST(DeviceObjects, WhatIsNotUnderstoodIsSaid) {
  struct Case {
    const char* request;
    const char* problem;
  };
  const Case cases[] = {
      {R"("firstAvailable":[{"deviceClassName":"a"}])", "firstAvailable[0].name"},
      {R"("firstAvailable":[{"name":"s","adminAccess":true}])", "firstAvailable[0].adminAccess"},
      {R"("firstAvailable":[{"name":"s","count":33}])", "firstAvailable[0].count"},
      {R"("firstAvailable":[{"name":"s","allocationMode":"x"}])", "allocationMode"},
      {R"("firstAvailable":{})", "firstAvailable"},
      {R"("firstAvailable":[])", "one of exactly and firstAvailable"},
      {R"("firstAvailable":[{"name":"s"}],"exactly":{})", "one of exactly and firstAvailable"},
      {R"("prioritized":[])", "one of exactly and firstAvailable"},
      {R"("exactly":{"deviceClassName":"a","count":0})", "count"},
      {R"("exactly":{"deviceClassName":"a","count":9223372036854775807})", "count"},
      {R"("exactly":{"deviceClassName":"a","count":"2"})", "count"},
      {R"("exactly":{"deviceClassName":"a","allocationMode":"Some"})", "allocationMode"},
      {R"("exactly":{"deviceClassName":"a","adminAccess":"yes"})", "adminAccess"},
      {R"("exactly":{"deviceClassName":"a","capacity":{}})", "capacity"},
      {R"("exactly":{"deviceClassName":"a","tolerations":[{"operator":"Gt"}]})",
       "tolerations[0].operator"},
      {R"("exactly":{"deviceClassName":"a","selectors":[{"rego":{}}]})", "rego"},
      {R"("exactly":7)", "exactly"},
  };
  for (const Case& c : cases) EXPECT_THAT(Request(c.request).invalid, HasSubstr(c.problem));
  EXPECT_THAT(Decode<model::ResourceSlice>(
                  Doc("ResourceSlice", R"("spec":{"devices":[{"capacity":{"m":{"value":"x"}}}]})"))
                  .invalid,
              HasSubstr("value"));
}

TEST(DeviceObjects, AConstraintThatIsNotUnderstoodIsNotLeftOut) {
  struct Case {
    const char* constraint;
    const char* problem;
  };
  const Case cases[] = {
      {R"({"matchAttribute":"d.io/numa"})", ""},
      {R"({"requests":["r"],"matchAttribute":"d.io/numa"})", ""},
      {R"({"matchAttribute":"numa"})", R"(constraints[0].matchAttribute: "numa" has no domain)"},
      {R"({"matchAttribute":7})", "constraints[0].matchAttribute"},
      {R"({"distinctAttribute":"d.io/numa"})", ""},
      {R"({"distinctAttribute":"numa"})", "constraints[0].distinctAttribute"},
      {R"({"matchAttribute":"d.io/numa","near":true})", "constraints[0].near"},
      {R"({"requests":"r","matchAttribute":"d.io/numa"})", "constraints[0].requests"},
      {R"({"requests":["r"]})", "constraints[0]: must have one of matchAttribute"},
      {R"("same")", "constraints[0]"},
  };
  for (const Case& c : cases) {
    const auto claim = Decode<model::ResourceClaim>(
        Doc("ResourceClaim", absl::StrCat(R"("spec":{"devices":{"constraints":[)", c.constraint,
                                          R"(],"requests":[{"name":"r","exactly":{}}]}})")));
    if (*c.problem == '\0') {
      EXPECT_EQ(claim.invalid, "") << c.constraint;
    } else {
      EXPECT_THAT(claim.invalid, HasSubstr(c.problem)) << c.constraint;
    }
  }
}

TEST(DeviceObjects, ReadsWhatThereIsToChooseFrom) {
  const auto claim = Decode<model::ResourceClaim>(Doc(
      "ResourceClaim",
      R"("spec":{"devices":{"requests":[{"name":"r","firstAvailable":[)"
      R"({"name":"big","deviceClassName":"a","count":2,"selectors":[{"cel":{"expression":"e"}}]},)"
      R"({"name":"any","deviceClassName":"b","allocationMode":"All","tolerations":[{"key":"k"}]}]},)"
      R"({"name":"s","exactly":{"deviceClassName":"c","allocationMode":"All"}}],)"
      R"("constraints":[{"requests":["r/big","s"],"matchAttribute":"d.io/numa"}]}})"));
  EXPECT_EQ(claim.invalid, "");
  ASSERT_EQ(claim.requests.size(), 2);
  model::DeviceRequest big;
  big.name = "big";
  big.device_class = "a";
  big.count = 2;
  big.selectors = {"e"};
  model::DeviceRequest any;
  any.name = "any";
  any.device_class = "b";
  any.all = true;
  any.tolerations = R"([{"key":"k"}])";
  any.tolerates = {{"k", "", "", false}};
  EXPECT_THAT(claim.requests[0].first_available, ElementsAre(big, any));
  EXPECT_EQ(claim.requests[0].device_class, "");
  EXPECT_TRUE(claim.requests[1].all);
  EXPECT_THAT(claim.requests[1].first_available, ElementsAre());
  EXPECT_THAT(claim.constraints, ElementsAre(model::DeviceConstraint{{"r/big", "s"}, "d.io/numa"}));
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

TEST(DeviceObjects, DevicesForSeveralClaimsMayNotBeGiven) {
  struct Case {
    const char* field;
    bool may_be_given;
  };
  const Case cases[] = {
      {R"("attributes":{})", true},
      {R"("bindingConditions":["attached"])", true},
      {R"("allowMultipleAllocations":false)", true},
      {R"("allowMultipleAllocations":true)", false},
      {R"("nodeName":"other")", true},
  };
  for (const Case& c : cases) {
    const auto slice = Decode<model::ResourceSlice>(
        Doc("ResourceSlice", absl::StrCat(R"("spec":{"devices":[{"name":"0",)", c.field, "}]}")));
    EXPECT_EQ(slice.invalid, "");
    ASSERT_EQ(slice.devices.size(), 1) << c.field;
    EXPECT_EQ(slice.devices[0].MayBeGiven(), c.may_be_given) << c.field;
  }
}

TEST(DeviceObjects, ReadsWhatADeviceWaitsForBeforeItIsReady) {
  const auto slice = Decode<model::ResourceSlice>(
      Doc("ResourceSlice",
          R"("spec":{"devices":[{"name":"0","bindingConditions":["Attached","Powered"],)"
          R"("bindingFailureConditions":["Failed"]}]})"));
  EXPECT_EQ(slice.invalid, "");
  EXPECT_THAT(slice.devices.at(0).binding_conditions, ElementsAre("Attached", "Powered"));
  EXPECT_THAT(slice.devices[0].binding_failure_conditions, ElementsAre("Failed"));
}

// Of what drivers report, conditions that a device waits for are kept, whatever comes first.
TEST(DeviceObjects, ReadsWhatDriversReportOfAllocatedDevices) {
  const auto claim = Decode<model::ResourceClaim>(
      Doc("ResourceClaim",
          R"("status":{"devices":[{"driver":"d.io","pool":"p","device":"0","data":{"any":[1]},)"
          R"("conditions":[{"type":"Attached","status":"True","reason":"R","message":"m",)"
          R"("lastTransitionTime":"2026-11-01T00:00:00Z"},{"type":"Failed","status":"Unknown"},)"
          R"({"type":"Ready","status":"True"}]},{"driver":"d.io","pool":"p","device":"1",)"
          R"("conditions":[{"type":"Attached","status":"True"}]}],"allocation":{)"
          R"("allocationTimestamp":"2026-11-01T00:00:05Z","devices":{"results":[{"request":"r",)"
          R"("driver":"d.io","pool":"p","device":"0","bindingConditions":["Attached"],)"
          R"("bindingFailureConditions":["Failed"]},{"request":"r","driver":"d.io","pool":"p",)"
          R"("device":"1"}]}}})"));
  EXPECT_EQ(claim.invalid, "");
  EXPECT_EQ(claim.allocated_at,
            absl::FromCivil(absl::CivilSecond(2026, 11, 1, 0, 0, 5), absl::UTCTimeZone()));
  ASSERT_EQ(claim.devices.size(), 2u);
  EXPECT_THAT(claim.devices[0].binding_conditions, ElementsAre("Attached"));
  EXPECT_THAT(claim.devices[0].binding_failure_conditions, ElementsAre("Failed"));
  EXPECT_THAT(claim.reports, ElementsAre(model::DeviceReport{
                                 "d.io", "p", "0", {{"Attached", true, "R", "m"}, {"Failed"}}}));
}

TEST(DeviceObjects, AnAllocationRepeatsTheConditionsOfTheDeviceAndSaysWhen) {
  const absl::Time at =
      absl::FromCivil(absl::CivilSecond(2026, 11, 1, 0, 0, 5), absl::UTCTimeZone());
  model::ReserveClaim write;
  write.ns = write.name = "c";
  EXPECT_THAT(EncodeReserveClaim(write, at).body, ::testing::Not(HasSubstr("allocationTimestamp")))
      << "it is allocated already";
  write.allocate = true;
  write.allocation.devices = {{"r", "d.io", "p", "0"}};
  EXPECT_THAT(EncodeReserveClaim(write, at).body, ::testing::Not(HasSubstr("binding")));
  write.allocation.devices[0].binding_conditions = {"Attached", "Powered"};
  write.allocation.devices[0].binding_failure_conditions = {"Failed"};
  EXPECT_THAT(EncodeReserveClaim(write, at).body,
              ::testing::AllOf(HasSubstr(R"("bindingConditions":["Attached","Powered"],)"
                                         R"("bindingFailureConditions":["Failed"]})"),
                               HasSubstr(R"("allocationTimestamp":"2026-11-01T00:00:05Z")")));
}

TEST(DeviceObjects, WhatAnAllocationRepeatsIsKeptAsItIs) {
  const auto claim = Decode<model::ResourceClaim>(
      Doc("ResourceClaim",
          R"("spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"a",)"
          R"("tolerations":[ {"key":"k","operator":"Exists"} ,{"key":"l"}]}}],"config":[)"
          R"({"requests":["r"],"opaque":{"driver":"d.io","parameters":{"x":[1, {"y":null}]}}},)"
          R"({"opaque":{"driver":"e.io","parameters":{}}}]}})"));
  EXPECT_EQ(claim.invalid, "");
  EXPECT_EQ(claim.requests.at(0).tolerations, R"([{"key":"k","operator":"Exists"},{"key":"l"}])");
  EXPECT_THAT(claim.requests[0].tolerates,
              ElementsAre(model::DeviceToleration{"k", "", "", true},
                          model::DeviceToleration{"l", "", "", false}));
  ASSERT_EQ(claim.config.size(), 2);
  EXPECT_THAT(claim.config[0].requests, ElementsAre("r"));
  EXPECT_EQ(claim.config[0].opaque, R"({"driver":"d.io","parameters":{"x":[1, {"y":null}]}})");
  EXPECT_EQ(claim.config[1].opaque, R"({"driver":"e.io","parameters":{}})");
  EXPECT_THAT(Decode<model::DeviceClass>(
                  Doc("DeviceClass", R"("spec":{"config":[{"opaque":{"driver":"d.io"}}]})"))
                  .config,
              ElementsAre(model::DeviceConfig{{}, R"({"driver":"d.io"})"}));
}

TEST(DeviceObjects, AnAllocationSaysWhereItCanBeUsed) {
  const auto claim = Decode<model::ResourceClaim>(
      Doc("ResourceClaim",
          R"("status":{"allocation":{"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[)"
          R"({"key":"zone","operator":"In","values":["z1"]}]}]}},"reservedFor":[)"
          R"({"resource":"pods","name":"p","uid":"u"}]})"));
  EXPECT_TRUE(claim.allocated);
  ASSERT_EQ(claim.node_terms.size(), 1);
  EXPECT_TRUE(claim.node_terms[0].Matches({{"zone", "z1"}}, "n"));
  EXPECT_FALSE(claim.node_terms[0].Matches({{"zone", "z2"}}, "n"));
  EXPECT_THAT(claim.reserved_for, ElementsAre("u"));
  EXPECT_FALSE(claim.reserved_for_others);
}

TEST(DeviceObjects, AClaimMayBeReservedForWhatIsNoPod) {
  const auto claim = Decode<model::ResourceClaim>(
      Doc("ResourceClaim", R"("status":{"allocation":{},"reservedFor":[)"
                           R"({"resource":"pods","name":"p","uid":"u"},)"
                           R"({"apiGroup":"x.io","resource":"gangs","name":"g","uid":"v"}]})"));
  EXPECT_THAT(claim.reserved_for, ElementsAre("u", "v"));
  EXPECT_TRUE(claim.reserved_for_others);
}

TEST(DeviceObjects, StatusSurvivesWritingAndReading) {
  model::ResourceClaim claim;
  claim.allocated = true;
  claim.devices = {{"r", "d.io", "pool", "0"}, {"r", "d.io", "pool", "1", "", true}};
  claim.reserved_for = {"u1", "u2"};
  const auto read = Decode<model::ResourceClaim>(
      Doc("ResourceClaim", absl::StrCat("\"status\":", EncodeClaimStatus(claim, "n"))));
  EXPECT_TRUE(read.allocated);
  EXPECT_EQ(read.devices, claim.devices);
  EXPECT_EQ(read.reserved_for, claim.reserved_for);
  EXPECT_EQ(EncodeClaimStatus({}, ""), "{}");
}

TEST(DeviceObjects, ReadsPartitionsAndTaints) {
  const auto slice = Decode<model::ResourceSlice>(
      Doc("ResourceSlice",
          R"("spec":{"sharedCounters":[{"name":"gpu-0","counters":{"memory":{"value":"40Gi"},)"
          R"("engines":{"value":"1500m"}}}],"devices":[{"name":"0","taints":[)"
          R"({"key":"k","value":"v","effect":"NoExecute"},{"key":"l","effect":"None"},)"
          R"({"key":"m","effect":"NoSchedule"}],"consumesCounters":[)"
          R"({"counterSet":"gpu-0","counters":{"engines":{"value":1}}}]}]})"));
  EXPECT_EQ(slice.invalid, "");
  EXPECT_EQ(slice.counters_milli.at("gpu-0").at("memory"), (int64_t{40} << 30) * 1000);
  EXPECT_EQ(slice.counters_milli.at("gpu-0").at("engines"), 1500);
  ASSERT_EQ(slice.devices.size(), 1);
  EXPECT_THAT(slice.devices[0].uses, ElementsAre(model::CounterUse{"gpu-0", "engines", 1000}));
  EXPECT_THAT(slice.devices[0].taints, ElementsAre(model::DeviceTaint{"k", "v", "NoExecute"},
                                                   model::DeviceTaint{"m", "", "NoSchedule"}));
  for (const char* wrong : {R"({"value":"x"})", R"({"value":"-1"})"}) {
    const auto bad = Decode<model::ResourceSlice>(
        Doc("ResourceSlice", absl::StrCat(R"("spec":{"sharedCounters":[{"name":"s","counters":)",
                                          R"({"c":)", wrong, "}}]}")));
    EXPECT_THAT(bad.invalid, HasSubstr("sharedCounters[0].counters"));
  }
}

TEST(DeviceObjects, ReadsSlicesAndClasses) {
  const auto slice = Decode<model::ResourceSlice>(Doc(
      "ResourceSlice",
      R"("spec":{"driver":"d.io","nodeName":"n","pool":{"name":"p","generation":4,)"
      R"("resourceSliceCount":3},"devices":[)"
      R"({"name":"0","attributes":{"m":{"string":"A"},"i":{"int":2},"e":{"bool":true},)"
      R"("v":{"version":"1.2.3"},"l":{"strings":["A"]}},"capacity":{"memory":{"value":"40Gi"}}}]})"));
  EXPECT_EQ(slice.invalid, "");
  EXPECT_EQ(slice.driver + slice.nodes.name + slice.pool, "d.ionp");
  EXPECT_EQ(slice.generation, 4);
  EXPECT_EQ(slice.slice_count, 3);
  ASSERT_EQ(slice.devices.size(), 1);
  model::Device want;
  want.name = "0";
  want.attributes["m"].value = std::string("A");
  want.attributes["i"].value = int64_t{2};
  want.attributes["e"].value = true;
  want.attributes["v"].value = model::DeviceVersion{"1.2.3"};
  want.capacity["memory"] = int64_t{40} << 30;
  EXPECT_EQ(slice.devices[0], want);
  EXPECT_THAT(Decode<model::DeviceClass>(
                  Doc("DeviceClass", R"("spec":{"selectors":[{"cel":{"expression":"e"}}]})"))
                  .selectors,
              ElementsAre("e"));
}

TEST(DeviceObjects, ReadsWhichNodesCanUseDevices) {
  constexpr char kRack[] = R"("nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[)"
                           R"({"key":"rack","operator":"In","values":["r"]}]}]})";
  const model::SelectorRequirement rack{"rack", model::SelectorOperator::kIn, {"r"}};
  struct Case {
    std::string field;
    model::NodeScope want;
  };
  const Case cases[] = {
      {R"("nodeName":"n")", {"n", false, {}}},
      {R"("allNodes":true)", {"", true, {}}},
      {R"("allNodes":false)", {}},
      {kRack, {"", false, {{{rack}, {}}}}},
      {R"("other":1)", {}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.field);
    const auto slice = Decode<model::ResourceSlice>(
        Doc("ResourceSlice", absl::StrCat("\"spec\":{", c.field, R"(,"devices":[{"name":"0"}]})")));
    EXPECT_EQ(slice.invalid, "");
    EXPECT_EQ(slice.NodesOf(slice.devices[0]), c.want);
    const auto each = Decode<model::ResourceSlice>(
        Doc("ResourceSlice",
            absl::StrCat(R"("spec":{"perDeviceNodeSelection":true,"devices":[{"name":"0",)",
                         R"("bindsToNode":true,)", c.field, "}]}")));
    EXPECT_EQ(each.invalid, "");
    EXPECT_EQ(each.NodesOf(each.devices[0]), c.want);
    EXPECT_TRUE(each.devices[0].binds_to_node);
  }
}

TEST(DeviceObjects, ReadsTaintRules) {
  const auto rule = Decode<model::DeviceTaintRule>(Doc(
      "DeviceTaintRule", R"("spec":{"deviceSelector":{"driver":"d.io","pool":"p","device":"0"},)"
                         R"("taint":{"key":"k","value":"v","effect":"NoExecute"}})"));
  EXPECT_EQ(rule.invalid, "");
  EXPECT_EQ(rule.driver + rule.pool + rule.device, "d.iop0");
  EXPECT_EQ(rule.taint, (model::DeviceTaint{"k", "v", "NoExecute"}));
  const auto all = Decode<model::DeviceTaintRule>(
      Doc("DeviceTaintRule", R"("spec":{"taint":{"key":"k","effect":"None"}})"));
  EXPECT_EQ(all.driver + all.pool + all.device, "");
  EXPECT_FALSE(all.taint.KeepsAway());
}

// No API server stores such; a proxy or a bug may send it. A text that is not understood selects
// any: better a device too many is left alone than one too few.
TEST(DeviceObjects, TaintRulesThatMakeNoSenseSayWhereAndTaintAtMostTooMuch) {
  struct Case {
    const char* spec;
    const char* invalid;  // field that is named
    bool keeps_away;
  };
  const Case cases[] = {
      {R"({"deviceSelector":[],"taint":{"key":"k","effect":"NoSchedule"}})", "deviceSelector",
       true},
      {R"({"deviceSelector":{"driver":7},"taint":{"key":"k","effect":"NoSchedule"}})",
       "deviceSelector.driver", true},
      {R"({"deviceSelector":{"device":{}},"taint":{"key":"k","effect":"NoExecute"}})",
       "deviceSelector.device", true},
      {R"({"taint":[]})", "taint", false},
      {R"({"taint":{"key":"k","effect":["NoSchedule"]}})", "taint.effect", false},
      {R"("all")", "spec", false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.spec);
    const auto rule =
        Decode<model::DeviceTaintRule>(Doc("DeviceTaintRule", absl::StrCat("\"spec\":", c.spec)));
    EXPECT_THAT(rule.invalid, HasSubstr(c.invalid));
    EXPECT_EQ(rule.taint.KeepsAway(), c.keeps_away);
    EXPECT_TRUE(rule.SelectsPool("d.io", "p"));
  }
  const std::string text(1 << 20, 'x');
  const auto huge = Decode<model::DeviceTaintRule>(
      Doc("DeviceTaintRule",
          absl::StrCat(R"("spec":{"deviceSelector":{"pool":")", text, R"("},"taint":{"key":")",
                       text, R"(","effect":"NoSchedule"}})")));
  EXPECT_EQ(huge.invalid, "");
  EXPECT_EQ(huge.pool, text);
  EXPECT_FALSE(huge.SelectsPool("d.io", "p"));
}

// The scheduler tolerates the taint, for how long is the eviction controller's affair: it reads it
// in the allocation.
TEST(DeviceObjects, ATolerationIsAllocatedWithItsSeconds) {
  const std::string text =
      R"([{"key":"k","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}])";
  const auto claim = Decode<model::ResourceClaim>(Doc(
      "ResourceClaim", absl::StrCat(R"("spec":{"devices":{"requests":[{"name":"r","exactly":)",
                                    R"({"deviceClassName":"a","tolerations":)", text, "}}]}}")));
  EXPECT_EQ(claim.invalid, "");
  ASSERT_EQ(claim.requests.at(0).tolerates.size(), 1u);
  EXPECT_TRUE(claim.requests[0].tolerates[0].Tolerates({"k", "v", "NoExecute"}));
  EXPECT_FALSE(claim.requests[0].tolerates[0].Tolerates({"k", "v", "NoSchedule"}));
  model::ReserveClaim write;
  write.ns = write.name = "c";
  write.allocate = true;
  write.allocation.devices = {{"r", "d.io", "p", "0", claim.requests[0].tolerations}};
  EXPECT_THAT(EncodeReserveClaim(write, absl::UnixEpoch()).body,
              HasSubstr(absl::StrCat("\"tolerations\":", text)));
}

TEST(DeviceObjects, AnAllocationIsWrittenWithTheNodesThatCanUseIt) {
  model::ReserveClaim write;
  write.ns = write.name = "c";
  write.allocate = true;
  const auto written = [&](std::vector<model::NodeSelectorTerm> terms) {
    write.allocation.node_terms = std::move(terms);
    return EncodeReserveClaim(write, absl::UnixEpoch()).body;
  };
  EXPECT_THAT(written({}), ::testing::Not(HasSubstr("nodeSelector")));
  EXPECT_THAT(written({model::TermOfNode("n")}),
              HasSubstr(R"("nodeSelector":{"nodeSelectorTerms":[{"matchFields":[)"
                        R"({"key":"metadata.name","operator":"In","values":["n"]}]}]})"));
  const model::SelectorRequirement exists{"rack", model::SelectorOperator::kExists, {}};
  const model::SelectorRequirement above{"zone", model::SelectorOperator::kGt, {"3"}};
  EXPECT_THAT(written({{{exists, above}, {}}}),
              HasSubstr(R"("nodeSelectorTerms":[{"matchExpressions":[)"
                        R"({"key":"rack","operator":"Exists"},)"
                        R"({"key":"zone","operator":"Gt","values":["3"]}]}])"));
}

}  // namespace
}  // namespace fairlead::kube
