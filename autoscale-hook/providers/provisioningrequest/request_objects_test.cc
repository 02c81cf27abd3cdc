#include "autoscale-hook/providers/provisioningrequest/request_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "scheduler/model/api_names.h"

namespace fairlead::hook {
namespace {

using ::testing::HasSubstr;

Json RequestJson(const std::string& places, int count, const std::string& conditions = "") {
  return *Json::Parse(absl::StrCat(
      R"({"metadata":{"name":"r","uid":"u","resourceVersion":"7",
      "creationTimestamp":"2026-01-01T00:00:02Z",
      "labels":{"fairlead.dev/provisioning-group":"h100"},
      "annotations":{"fairlead.dev/places":")",
      places, R"("}},"spec":{"podSets":[{"count":)", count, R"(}]},"status":{"conditions":[)",
      conditions, "]}}"));
}
std::string ConditionText(const std::string& type, const std::string& status,
                          const std::string& reason) {
  return absl::StrCat(R"({"type":")", type, R"(","status":")", status, R"(","reason":")", reason,
                      R"(","message":"m"})");
}

TEST(RequestObjects, ARequestAsItIsRead) {
  const auto read = DecodeBoughtRequest(RequestJson("+.-", 3));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->group, "h100");
  EXPECT_EQ(read->places, "+.-");
  EXPECT_EQ(read->creation, absl::FromUnixSeconds(1'767'225'602));
  EXPECT_EQ(read->stage, RequestStage::kWaiting);
  EXPECT_TRUE(read->HasOpenPlace());
  EXPECT_THAT(read->ordered_by, ::testing::ElementsAre("", "", "")) << "it does not say";
}

TEST(RequestObjects, WhatIsWrongIsNamed) {
  const auto problem = [](const Json& object) {
    return std::string(DecodeBoughtRequest(object).status().message());
  };
  EXPECT_THAT(problem(Json::Object()), HasSubstr("metadata.name: missing"));
  EXPECT_THAT(problem(*Json::Parse(R"({"metadata":{"name":"r"}})")),
              HasSubstr("ProvisioningRequest r: metadata: uid or resourceVersion is missing"));
  EXPECT_THAT(problem(*Json::Parse(R"({"metadata":{"name":"r","uid":"u","resourceVersion":"1"}})")),
              HasSubstr("r: metadata.creationTimestamp: "));
  EXPECT_THAT(problem(RequestJson("..", 3)),
              HasSubstr("metadata.annotations[fairlead.dev/places]: has 2 places, and the count "
                        "is 3"));
  EXPECT_THAT(problem(RequestJson("a", 1)), HasSubstr("has other characters than \".+-\""));
  Json object = RequestJson(".", 1);
  object.Find("spec")->Set("podSets", Json::Array());
  EXPECT_THAT(problem(object), HasSubstr("spec.podSets: is not one with a count"));
}

TEST(RequestObjects, ConditionsAndTheirReasons) {
  struct Case {
    std::string conditions;
    RequestStage stage;
    FailureClass failure;
  };
  const std::string accepted = absl::StrCat(ConditionText("Accepted", "True", "Accepted"), ",");
  const std::string provisioned =
      absl::StrCat(accepted, ConditionText("Provisioned", "True", "CapacityIsProvisioned"));
  const Case cases[] = {
      {accepted + ConditionText("Provisioned", "Unknown", "x"), RequestStage::kWaiting,
       FailureClass::kStockout},
      {accepted + ConditionText("Provisioned", "False", "InQueue"), RequestStage::kWaiting,
       FailureClass::kStockout},
      {accepted + ConditionText("Provisioned", "False", "CapacityIsNotFound"),
       RequestStage::kNoCapacity, FailureClass::kStockout},
      {provisioned, RequestStage::kProvisioned, FailureClass::kStockout},
      // It says that the booking is over, not that no node comes.
      {provisioned + "," +
           ConditionText("BookingExpired", "True", "CapacityReservationTimeExpired"),
       RequestStage::kProvisioned, FailureClass::kStockout},
      {ConditionText("Provisioned", "True", "CapacityIsFound"), RequestStage::kFound,
       FailureClass::kOther},
      {provisioned + "," + ConditionText("CapacityRevoked", "True", "Preempted"),
       RequestStage::kFailed, FailureClass::kStockout},
      {provisioned + "," + ConditionText("Failed", "False", ""), RequestStage::kProvisioned,
       FailureClass::kStockout},
      {ConditionText("Failed", "True", "Expired"), RequestStage::kFailed, FailureClass::kTimeout},
      {ConditionText("Failed", "True", "FailedToCreatePods"), RequestStage::kFailed,
       FailureClass::kConfig},
      {ConditionText("Failed", "True", "FailedToBookCapacity"), RequestStage::kFailed,
       FailureClass::kOther},
      {ConditionText("Failed", "True", "QuotaExceeded"), RequestStage::kFailed,
       FailureClass::kQuota},
      {ConditionText("Failed", "True", "CapacityIsNotFound"), RequestStage::kFailed,
       FailureClass::kStockout},
      {ConditionText("Failed", "True", ""), RequestStage::kFailed, FailureClass::kStockout},
  };
  for (const Case& each : cases) {
    const auto read = DecodeBoughtRequest(RequestJson(".", 1, each.conditions));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->stage, each.stage) << each.conditions;
    if (each.stage != RequestStage::kWaiting && each.stage != RequestStage::kProvisioned) {
      EXPECT_EQ(read->failure, each.failure) << each.conditions;
      EXPECT_FALSE(read->reason.empty());
    }
  }
}

TEST(RequestObjects, NamesOfPlaces) {
  const std::string id = PlaceId("fairlead-1", 12);
  EXPECT_EQ(id, "place.fairlead.dev://fairlead-1/12");
  EXPECT_EQ(ParsePlaceId(id), std::pair(std::string("fairlead-1"), size_t{12}));
  EXPECT_EQ(ParsePlaceName(PlaceName("r", 0)), std::pair(std::string("r"), size_t{0}));
  for (const char* wrong : {"", "r", "/1", "r/", "r/-1", "r/x"}) {
    EXPECT_FALSE(ParsePlaceName(wrong).has_value()) << wrong;
  }
  EXPECT_FALSE(ParsePlaceId("cloud:///r/1").has_value());
}

model::ProvisioningGroup GpuGroup(model::Node& node) {
  model::ProvisioningGroup group;
  group.name = "h100";
  group.zone = "z1";
  group.node_selector.Set("pool", "h100");
  node.allocatable = {{model::kCpuName, 100'001}, {model::kMemoryName, 1001}};
  model::Set(node.allocatable, model::kGpuName, 8'000);
  node.taints.push_back({"nvidia.com/gpu", "present", model::TaintEffect::kNoSchedule});
  return group;
}

// Two pods do not share a machine, and one fits beside DaemonSets.
TEST(RequestObjects, APodFillsAMachine) {
  model::ProvisioningSettings settings;
  settings.ns = "fairlead";
  model::Node node;
  model::ProvisioningGroup group = GpuGroup(node);
  const MachinePod pod = MakeMachinePod(settings, group, node);
  const absl::StatusOr<Json> object = Json::Parse(pod.body);
  ASSERT_TRUE(object.ok()) << pod.body;
  EXPECT_EQ(object->TextAt({"metadata", "name"}), pod.name);
  EXPECT_EQ(object->TextAt({"metadata", "namespace"}), "fairlead");
  EXPECT_EQ(object->TextAt({"metadata", "labels", model::kMadeByLabel}), "provisioning-request");
  EXPECT_EQ(object->At({"template", "spec", "nodeSelector"})->Compact(),
            R"({"pool":"h100","topology.kubernetes.io/zone":"z1"})");
  EXPECT_EQ(object->At({"template", "spec", "tolerations"})->Compact(),
            R"([{"key":"nvidia.com/gpu","operator":"Equal","value":"present",)"
            R"("effect":"NoSchedule"}])");
  const Json& container = object->At({"template", "spec", "containers"})->items()[0];
  EXPECT_EQ(container.At({"resources"})->Compact(),
            R"({"requests":{"cpu":"60001m","memory":"601","nvidia.com/gpu":"8"},)"
            R"("limits":{"nvidia.com/gpu":"8"}})");
  EXPECT_EQ(MakeMachinePod(settings, group, node).name, pod.name);
  group.node_selector.Set("pool", "other");
  EXPECT_NE(MakeMachinePod(settings, group, node).name, pod.name) << "named by its content";
}

TEST(RequestObjects, ARequestAsItIsMade) {
  model::ProvisioningSettings settings;
  settings.ns = "fairlead";
  model::Node node;
  const model::ProvisioningGroup group = GpuGroup(node);
  const Increase increase = {2, "0123", {{"fl-1", "u-1"}, {"fl-2", "u-2"}}};
  absl::StatusOr<Json> object = Json::Parse(MakeRequestBody(settings, group, "template", increase));
  ASSERT_TRUE(object.ok());
  EXPECT_EQ(object->TextAt({"metadata", "name"}), "fairlead-0123");
  EXPECT_EQ(object->TextAt({"metadata", "annotations", kPlacesAnnotation}), "..");
  EXPECT_EQ(object->TextAt({"metadata", "annotations", kOrderedByAnnotation}), "fl-1,fl-2");
  EXPECT_EQ(object->At({"metadata", "ownerReferences"})->Compact(),
            R"([{"apiVersion":"fairlead.dev/v1alpha1","kind":"NodeRequest","name":"fl-1",)"
            R"("uid":"u-1"},{"apiVersion":"fairlead.dev/v1alpha1","kind":"NodeRequest",)"
            R"("name":"fl-2","uid":"u-2"}])");
  EXPECT_EQ(object->At({"spec"})->Compact(),
            R"({"provisioningClassName":"best-effort-atomic-scale-up.autoscaling.x-k8s.io",)"
            R"("podSets":[{"count":2,"podTemplateRef":{"name":"template"}}]})");
  settings.class_name = "queued-provisioning.gke.io";
  settings.parameters.Set("maxRunDurationSeconds", "86400");
  object = Json::Parse(MakeRequestBody(settings, group, "template", increase));
  EXPECT_EQ(object->TextAt({"spec", "provisioningClassName"}), "queued-provisioning.gke.io");
  EXPECT_EQ(object->At({"spec", "parameters"})->Compact(), R"({"maxRunDurationSeconds":"86400"})");
}

// Both marks: the label, and a NodeRequest as the owner.
TEST(RequestObjects, WhatFairleadHasMade) {
  model::ObjectMeta meta;
  EXPECT_FALSE(model::IsMadeByProvider(meta));
  meta.labels.Set(model::kMadeByLabel, model::kProvisioningRequestProvider);
  EXPECT_FALSE(model::IsMadeByProvider(meta));
  meta.owners.push_back({"batch/v1", "Job", "j", "u"});
  meta.owners.push_back({"example.com/v1", "NodeRequest", "n", "u"});
  EXPECT_FALSE(model::IsMadeByProvider(meta));
  meta.owners.push_back({"fairlead.dev/v1alpha1", "NodeRequest", "n", "u"});
  EXPECT_TRUE(model::IsMadeByProvider(meta));
  meta.labels.Erase(model::kMadeByLabel);
  EXPECT_FALSE(model::IsMadeByProvider(meta));
}

}  // namespace
}  // namespace fairlead::hook
