// Bindings and evictions, in JSON and in protobuf.
#include "sim/world/api_pods.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kube/codec/codec.h"
#include "sim/world/api_testing.h"

namespace fairlead::sim::world {
namespace {

using ::testing::HasSubstr;

constexpr char kPod[] = "/api/v1/namespaces/default/pods/a";

class ApiPodsTest : public ::testing::Test {
 protected:
  ApiPodsTest() { world_.Create(ResourceType::kPods, PodJson("a")); }

  const Json& Pod() const { return world_.Get(ResourceType::kPods, "a"); }
  std::string Uid() const { return TextAt(Pod(), {"metadata", "uid"}); }
  TestWorld::Answer Bind(const Json& metadata, const std::string& node = "n1") {
    Json binding = {{"apiVersion", "v1"},
                    {"kind", "Binding"},
                    {"metadata", metadata},
                    {"target", {{"kind", "Node"}, {"name", node}}}};
    binding["metadata"]["name"] = "a";
    return world_.Call("POST", absl::StrCat(kPod, "/binding"), binding);
  }
  TestWorld::Answer Evict(const std::string& uid = "") {
    Json eviction = {{"apiVersion", "policy/v1"}, {"kind", "Eviction"}};
    eviction["metadata"]["name"] = "a";
    if (!uid.empty()) eviction["deleteOptions"]["preconditions"]["uid"] = uid;
    return world_.Call("POST", absl::StrCat(kPod, "/eviction"), eviction);
  }
  // The pod runs on a node and has a label that budgets select.
  void Run(bool ready = true) {
    world_.Merge(ResourceType::kPods, "a",
                 {{"metadata", {{"labels", {{"app", "web"}}}}},
                  {"spec", {{"nodeName", "n1"}}},
                  {"status",
                   {{"phase", "Running"},
                    {"conditions",
                     Json::array({{{"type", "Ready"}, {"status", ready ? "True" : "False"}}})}}}});
  }
  void MakeBudget(const std::string& name, int allowed, int observed = 1) {
    world_.Create(ResourceType::kPodDisruptionBudgets,
                  {{"metadata", {{"name", name}, {"namespace", "default"}}},
                   {"spec", {{"selector", {{"matchLabels", {{"app", "web"}}}}}}},
                   {"status",
                    {{"observedGeneration", observed},
                     {"disruptionsAllowed", allowed},
                     {"desiredHealthy", 2},
                     {"currentHealthy", 1}}}});
  }
  bool Leaving() const { return At(Pod(), {"metadata", "deletionTimestamp"}) != nullptr; }

  TestWorld world_;
};

// ---- binding ------------------------------------------------------------------------------------

TEST_F(ApiPodsTest, ABindingSetsTheNodeAndMergesMetadata) {
  world_.Merge(
      ResourceType::kPods, "a",
      {{"metadata", {{"annotations", {{"theirs", "1"}}}}},
       {"status",
        {{"nominatedNodeName", "n0"},
         {"conditions",
          Json::array({{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "r"}}})}}}});
  const int64_t generation = IntAt(Pod(), {"metadata", "generation"});
  const auto answer =
      Bind({{"uid", Uid()}, {"annotations", {{"ours", "2"}}}, {"labels", {{"l", "3"}}}});
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(TextAt(answer.body, {"status"}), "Success");
  EXPECT_EQ(TextAt(Pod(), {"spec", "nodeName"}), "n1");
  EXPECT_EQ(Dump(Pod()["metadata"]["annotations"]), R"({"ours":"2","theirs":"1"})");
  EXPECT_EQ(Dump(Pod()["metadata"]["labels"]), R"({"l":"3"})");
  EXPECT_EQ(Pod()["status"]["conditions"].size(), 1u);
  EXPECT_EQ(Pod()["status"]["conditions"][0]["status"], "True");
  EXPECT_FALSE(Pod()["status"]["conditions"][0].contains("reason"));
  EXPECT_FALSE(Pod()["status"].contains("nominatedNodeName"));
  EXPECT_EQ(IntAt(Pod(), {"metadata", "generation"}), generation);
}

TEST_F(ApiPodsTest, ABindingRefusesWhatIsNotThePodThatWasMeant) {
  const auto other = Bind({{"uid", "u"}});
  EXPECT_EQ(other.status, 409);
  EXPECT_EQ(other.reason(), "Conflict");
  EXPECT_THAT(other.message(), HasSubstr("UID in precondition: u, UID in object meta: "));
  EXPECT_EQ(Bind(Json::object()).status, 201);
  EXPECT_EQ(
      Bind(Json::object(), "n2").message(),
      "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node "
      "\"n1\"");
  EXPECT_TRUE(world_.server.Remove(ResourceType::kPods, "default", "a", "t").ok());
  EXPECT_THAT(Bind(Json::object()).message(), HasSubstr("is being deleted"));
  EXPECT_TRUE(world_.server.RemoveNow(ResourceType::kPods, "default", "a", "t").ok());
  const auto gone = Bind(Json::object());
  EXPECT_EQ(gone.status, 404);
  EXPECT_EQ(gone.message(), "pods \"a\" not found");
}

TEST_F(ApiPodsTest, ABindingRefusesGatesAndNonsense) {
  EXPECT_EQ(Bind(Json::object(), "").status, 500) << "as upstream, which makes it no 422";
  world_.Merge(ResourceType::kPods, "a",
               {{"spec", {{"schedulingGates", Json::array({{{"name", "g"}}})}}}});
  EXPECT_THAT(Bind(Json::object()).message(), HasSubstr("has non-empty .spec.schedulingGates"));
  EXPECT_EQ(TextAt(Pod(), {"spec", "nodeName"}), "");
}

TEST_F(ApiPodsTest, TheProductsOwnBindingIsRead) {
  const kube::EncodedWrite write = kube::EncodeBind(
      {"default", "a", Uid(), "n1", {{"k", "v"}, {"unicode", "\xc3\xa9"}}, {{"l", "w"}}});
  kube::HttpRequest request;
  request.method = write.method;
  request.path = write.path;
  request.content_type = write.content_type;
  request.body = write.body;
  const kube::HttpResponse answer = world_.server.Handle(request, "c");
  EXPECT_EQ(answer.status, 201) << answer.body;
  EXPECT_EQ(TextAt(Pod(), {"spec", "nodeName"}), "n1");
  EXPECT_EQ(TextAt(Pod(), {"metadata", "annotations", "unicode"}), "\xc3\xa9");
  EXPECT_EQ(TextAt(Pod(), {"metadata", "labels", "l"}), "w");
  request.body = "k8s rubbish";
  EXPECT_EQ(world_.server.Handle(request, "c").status, 400);
}

// ---- eviction -----------------------------------------------------------------------------------

TEST_F(ApiPodsTest, AnEvictionMarksAndDeletes) {
  Run();
  const auto answer = Evict(Uid());
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(TextAt(answer.body, {"status"}), "Success");
  ASSERT_TRUE(Leaving());
  const Json& conditions = Pod()["status"]["conditions"];
  ASSERT_EQ(conditions.size(), 2u);
  EXPECT_EQ(conditions[1]["type"], "DisruptionTarget");
  EXPECT_EQ(conditions[1]["reason"], "EvictionByEvictionAPI");
  EXPECT_EQ(conditions[1]["message"], "Eviction API: evicting");
}

TEST_F(ApiPodsTest, AnEvictionOfAnotherOrNoPodIsRefused) {
  Run();
  EXPECT_EQ(Evict("u").status, 409);
  EXPECT_FALSE(Leaving());
  EXPECT_TRUE(world_.server.RemoveNow(ResourceType::kPods, "default", "a", "t").ok());
  EXPECT_EQ(Evict().status, 404);
}

TEST_F(ApiPodsTest, ABudgetSaysNoAndCountsItsYes) {
  Run();
  MakeBudget("b", 0);
  const auto no = Evict();
  EXPECT_EQ(no.status, 429);
  EXPECT_EQ(no.reason(), "TooManyRequests");
  EXPECT_EQ(no.message(), "Cannot evict pod as it would violate the pod's disruption budget.");
  EXPECT_EQ(no.body["details"]["causes"][0]["reason"], "DisruptionBudget");
  EXPECT_EQ(no.body["details"]["causes"][0]["message"],
            "The disruption budget b needs 2 healthy pods and has 1 currently");
  EXPECT_EQ(no.response.retry_after, absl::ZeroDuration());
  EXPECT_FALSE(Leaving());
  world_.Merge(ResourceType::kPodDisruptionBudgets, "b", {{"status", {{"disruptionsAllowed", 1}}}});
  EXPECT_EQ(Evict().status, 201);
  EXPECT_TRUE(Leaving());
  const Json& budget = world_.Get(ResourceType::kPodDisruptionBudgets, "b");
  EXPECT_EQ(IntAt(budget, {"status", "disruptionsAllowed"}), 0);
  EXPECT_TRUE(budget["status"]["disruptedPods"].contains("a"));
  // What leaves already needs no leave.
  EXPECT_EQ(Evict().status, 201);
}

TEST_F(ApiPodsTest, ABudgetThatItsControllerHasNotSeenSaysNoForNow) {
  Run();
  MakeBudget("b", 1, /*observed=*/0);
  const auto no = Evict();
  EXPECT_EQ(no.status, 429);
  EXPECT_EQ(no.response.retry_after, absl::Seconds(10));
  EXPECT_THAT(Dump(no.body), HasSubstr("is still being processed by the server"));
}

TEST_F(ApiPodsTest, TwoBudgetsAreAFailureInASuccess) {
  Run();
  MakeBudget("b", 1);
  MakeBudget("c", 1);
  const auto answer = Evict();
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(TextAt(answer.body, {"status"}), "Failure");
  EXPECT_EQ(IntAt(answer.body, {"code"}), 500);
  EXPECT_FALSE(Leaving());
}

TEST_F(ApiPodsTest, PodsThatDoNotRunOrAreNotReadyNeedNoBudget) {
  MakeBudget("b", 0);
  world_.Merge(ResourceType::kPods, "a", {{"metadata", {{"labels", {{"app", "web"}}}}}});
  EXPECT_EQ(Evict().status, 201) << "pending";
  EXPECT_EQ(world_.Find(ResourceType::kPods, "a"), nullptr) << "and without a node it goes at once";
  world_.Create(ResourceType::kPods, PodJson("a"));
  Run(/*ready=*/false);
  EXPECT_EQ(Evict().status, 429) << "fewer are healthy than there should be";
  world_.Merge(ResourceType::kPodDisruptionBudgets, "b", {{"status", {{"currentHealthy", 2}}}});
  EXPECT_EQ(Evict().status, 201);
  EXPECT_EQ(
      IntAt(world_.Get(ResourceType::kPodDisruptionBudgets, "b"), {"status", "disruptionsAllowed"}),
      0);
}

// ---- selectors ----------------------------------------------------------------------------------

TEST(SelectorMatchesTest, AsUpstream) {
  const Json labels = {{"a", "1"}, {"b", "2"}};
  const auto matches = [&](const char* text) {
    const Json selector = Parse(text);
    return SelectorMatches(&selector, &labels);
  };
  EXPECT_FALSE(SelectorMatches(nullptr, &labels));
  EXPECT_TRUE(matches("{}"));
  EXPECT_TRUE(matches(R"({"matchLabels":{"a":"1"}})"));
  EXPECT_FALSE(matches(R"({"matchLabels":{"a":"2"}})"));
  EXPECT_TRUE(matches(R"({"matchExpressions":[{"key":"a","operator":"In","values":["0","1"]}]})"));
  EXPECT_FALSE(matches(R"({"matchExpressions":[{"key":"a","operator":"NotIn","values":["1"]}]})"));
  EXPECT_TRUE(matches(R"({"matchExpressions":[{"key":"c","operator":"NotIn","values":["1"]}]})"));
  EXPECT_TRUE(matches(R"({"matchExpressions":[{"key":"b","operator":"Exists"}]})"));
  EXPECT_FALSE(matches(R"({"matchExpressions":[{"key":"b","operator":"DoesNotExist"}]})"));
}

}  // namespace
}  // namespace fairlead::sim::world
