// PodDisruptionBudgets from both encodings, and what a refusal by one says.
#include <gtest/gtest.h>

#include <string>

#include "kube/codec/codec.h"
#include "kube/codec/testing/random_core.h"
#include "kube/transport/http.h"

namespace fairlead::kube {
namespace {

namespace core = testing::core;

constexpr char kBudget[] = R"({
  "apiVersion":"policy/v1","kind":"PodDisruptionBudget",
  "metadata":{"name":"web","namespace":"ns","uid":"u","resourceVersion":"7","generation":3},
  "spec":{"minAvailable":"50%","unhealthyPodEvictionPolicy":"AlwaysAllow","selector":{
    "matchLabels":{"app":"web"},"matchExpressions":[{"key":"tier","operator":"Exists"}]}},
  "status":{"observedGeneration":2,"disruptionsAllowed":4,"currentHealthy":9,"desiredHealthy":5,
    "expectedPods":10,"disruptedPods":{"z":"2026-11-21T10:00:00Z","a":"2026-11-21T10:00:01Z"}}})";

core::PodDisruptionBudget SameInProtobuf() {
  core::PodDisruptionBudget budget;
  core::ObjectMeta& meta = *budget.mutable_metadata();
  meta.set_name("web");
  meta.set_namespace_("ns");
  meta.set_uid("u");
  meta.set_resourceversion("7");
  meta.set_generation(3);
  budget.mutable_spec()->mutable_minavailable()->set_strval("50%");
  budget.mutable_spec()->set_unhealthypodevictionpolicy("AlwaysAllow");
  core::LabelSelector& selector = *budget.mutable_spec()->mutable_selector();
  (*selector.mutable_matchlabels())["app"] = "web";
  selector.add_matchexpressions()->set_key("tier");
  selector.mutable_matchexpressions(0)->set_operator_("Exists");
  core::PodDisruptionBudgetStatus& status = *budget.mutable_status();
  status.set_observedgeneration(2);
  status.set_disruptionsallowed(4);
  status.set_currenthealthy(9);
  status.set_desiredhealthy(5);
  status.set_expectedpods(10);
  (*status.mutable_disruptedpods())["z"].set_seconds(1);
  (*status.mutable_disruptedpods())["a"].set_seconds(2);
  return budget;
}

model::PodDisruptionBudget Decode(absl::string_view type, absl::string_view body) {
  const absl::StatusOr<Object> object = DecodeObject(model::Kind::kPodDisruptionBudget, type, body);
  EXPECT_TRUE(object.ok()) << object.status();
  return object.ok() ? std::get<model::PodDisruptionBudget>(*object) : model::PodDisruptionBudget();
}

std::string Enveloped(const core::PodDisruptionBudget& budget) {
  return testing::Envelope("policy/v1", "PodDisruptionBudget", budget.SerializeAsString());
}

void ExpectTheBudget(const model::PodDisruptionBudget& budget) {
  EXPECT_EQ(budget.invalid, "");
  EXPECT_EQ(model::Key(budget.meta), "ns/web");
  EXPECT_EQ(budget.meta.uid, "u");
  EXPECT_EQ(budget.meta.resource_version, "7");
  EXPECT_EQ(budget.observed_generation, 2);
  EXPECT_EQ(budget.disruptions_allowed, 4);
  EXPECT_EQ(budget.current_healthy, 9);
  EXPECT_EQ(budget.desired_healthy, 5);
  EXPECT_TRUE(budget.always_allow);
  EXPECT_EQ(budget.disrupted_pods, (std::vector<std::string>{"a", "z"}));
  EXPECT_EQ(budget.Allowed(), 0) << "the status is of generation 2, the spec of 3";
  model::StringMap labels;
  labels.Set("app", "web");
  EXPECT_FALSE(budget.selector.Matches(labels));
  labels.Set("tier", "x");
  EXPECT_TRUE(budget.selector.Matches(labels));
}

TEST(DisruptionBudgetCodecTest, BothEncodingsMeanTheSame) {
  ExpectTheBudget(Decode(kJson, kBudget));
  ExpectTheBudget(Decode(kProtobuf, Enveloped(SameInProtobuf())));
}

TEST(DisruptionBudgetCodecTest, NoSelectorSelectsNoPodAndAnEmptyOneEveryPod) {
  const model::StringMap labels;
  core::PodDisruptionBudget none;
  none.mutable_spec();
  core::PodDisruptionBudget all;
  all.mutable_spec()->mutable_selector();
  EXPECT_FALSE(Decode(kJson, R"({"spec":{}})").selector.Matches(labels));
  EXPECT_FALSE(Decode(kProtobuf, Enveloped(none)).selector.Matches(labels));
  EXPECT_TRUE(Decode(kJson, R"({"spec":{"selector":{}}})").selector.Matches(labels));
  EXPECT_TRUE(Decode(kProtobuf, Enveloped(all)).selector.Matches(labels));
}

TEST(DisruptionBudgetCodecTest, AnUnknownSelectorIsAProblemOfTheObjectAlone) {
  core::PodDisruptionBudget odd;
  odd.mutable_spec()->mutable_selector()->add_matchexpressions()->set_operator_("Resembles");
  EXPECT_NE(Decode(kProtobuf, Enveloped(odd)).invalid, "");
  EXPECT_NE(Decode(kJson, R"({"spec":{"selector":{"matchExpressions":[{"key":"k",)"
                          R"("operator":"Resembles"}]}}})")
                .invalid,
            "");
}

TEST(DisruptionBudgetCodecTest, DamagedBytesAreErrorsAndNeverMore) {
  const std::string whole = Enveloped(SameInProtobuf());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    for (const std::string& bytes : {damaged, whole.substr(0, i)}) {
      const auto object = DecodeObject(model::Kind::kPodDisruptionBudget, kProtobuf, bytes);
      if (!object.ok()) {
        ASSERT_EQ(object.status().code(), absl::StatusCode::kInvalidArgument);
      }
    }
  }
}

TEST(DisruptionBudgetCodecTest, ManifestsMayHaveThem) {
  const absl::StatusOr<Manifests> manifests = DecodeManifests(
      "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\n"
      "spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}\n");
  ASSERT_TRUE(manifests.ok()) << manifests.status();
  ASSERT_EQ(manifests->objects.size(), 1u);
  EXPECT_EQ(model::Key(MetaOf(manifests->objects[0])), "default/b");
}

TEST(ApiStatusTest, CausesAreReadInBothEncodings) {
  const std::string cause = "The disruption budget web needs 1 healthy pods and has 1 currently";
  core::Status status;
  status.set_code(429);
  status.set_message("Cannot evict pod");
  for (const char* text : {cause.c_str(), "and more"}) {
    core::StatusCause* const added = status.mutable_details()->add_causes();
    added->set_reason("DisruptionBudget");
    added->set_message(text);
  }
  const ApiStatus wire =
      DecodeStatus(kProtobuf, testing::Envelope("v1", "Status", status.SerializeAsString()));
  const ApiStatus json = DecodeStatus(
      kJson, R"({"kind":"Status","code":429,"message":"Cannot evict pod","details":{"causes":[)"
             R"({"reason":"DisruptionBudget","message":"The disruption budget web needs 1 healthy )"
             R"(pods and has 1 currently"},{"message":"and more"}]}})");
  for (const ApiStatus& read : {wire, json}) {
    EXPECT_EQ(read.code, 429);
    EXPECT_EQ(read.message, "Cannot evict pod");
    EXPECT_EQ(read.causes, cause + "; and more");
  }
}

}  // namespace
}  // namespace fairlead::kube
