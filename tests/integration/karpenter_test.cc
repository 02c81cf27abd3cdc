// Nodes by the real Karpenter, with its kwok cloud provider; kwok plays the kubelets.
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"
#include "tests/integration/sold_types.h"

namespace fairlead::integration {
namespace {

constexpr char kClaims[] = "/apis/karpenter.sh/v1/nodeclaims";
constexpr char kClasses[] = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses";

const std::vector<SoldType>& Types() {
  static const auto* const types =
      new std::vector<SoldType>{{"gpu-1x", 1, 8, 64, 3000}, {"gpu-8x", 8, 64, 512, 24000}};
  return *types;
}

std::string ClassRef(const std::string& name) {
  return absl::StrCat("{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: ", name, "}");
}

class KarpenterTest : public IntegrationTest {
 protected:
  void SetUp() override {
    IntegrationTest::SetUp();
    Plane& plane = *Plane::Get();
    if (!plane.HasKarpenter()) GTEST_SKIP() << "this control plane has no Karpenter";
    const std::string types = plane.NewFile("types.json");
    std::ofstream(types) << KarpenterTypes(Types());
    catalogue_ = plane.NewFile("catalogue.yaml");
    std::ofstream(catalogue_) << CatalogueText(Types());
    kwok_ = std::make_unique<ChildProcess>(plane.Kwok(), plane.NewFile("kwok.log"));
    out_of_stock_ = plane.NewFile("out-of-stock.txt");
    std::ofstream(out_of_stock_) << "";
    karpenter_ = std::make_unique<ChildProcess>(plane.Karpenter(types, {out_of_stock_}),
                                                plane.NewFile("karpenter.log"));
    ASSERT_TRUE(Eventually(
        "node classes are served", [&] { return api().Get(kClasses).ok(); },
        [&] { return karpenter_->Log(); }));
    api().Delete(Path(kClasses, "default"));
    api().Create(kClasses, R"({"apiVersion":"karpenter.kwok.sh/v1alpha1","kind":"KWOKNodeClass",
      "metadata":{"name":"default"}})");
    MakeQueue("team", -1, -1);
  }
  void TearDown() override {
    karpenter_.reset();
    kwok_.reset();
    if (api().Get(kClaims).ok()) Empty(kClaims);
    Empty(kPools);
    IntegrationTest::TearDown();
  }
  ChildProcess& StartHook(const std::string& node_class = "default",
                          const std::string& kubeconfig = "") {
    return Start(
        {.kubeconfig = kubeconfig,
         .hook = true,
         .provider = "karpenter",
         .more_of_hook = absl::StrCat("  backoffInitial: 2s\n  catalogFile: ", catalogue_, "\n"),
         .unneeded_after = "1s",
         .more = absl::StrCat("karpenter:\n  nodeClassRef: ", ClassRef(node_class), "\n")});
  }
  ::testing::AssertionResult IsEmpty(const std::string& collection) {
    return Eventually(absl::StrCat(collection, " is empty"),
                      [&] { return api().List(collection).empty(); });
  }

  std::string catalogue_, out_of_stock_;
  std::unique_ptr<ChildProcess> kwok_, karpenter_;
};

// With the rights of the manifests.
TEST_F(KarpenterTest, AGangRunsOnItsClaimsAndTheyAreGivenBack) {
  const auto claims = api().Watch(kClaims);
  StartHook("default", InstallRights({"base", "karpenter"}));
  MakeGroup("gang", 2);
  for (const char* name : {"g1", "g2"}) MakePod({.name = name, .gpus = 8, .group = "gang"});
  ASSERT_TRUE(Bound({"g1", "g2"}));
  EXPECT_NE(NodeOf("g1"), NodeOf("g2"));
  EXPECT_EQ(claims->objects(), 2u);
  for (const Json& listed : api().List(kRequests)) {
    const std::string name = listed.TextAt({"metadata", "name"});
    Json request, claim;
    // Karpenter writes the name of the node a moment after pods may be on it.
    EXPECT_TRUE(Eventually(
        "request and claim name the same machine and node",
        [&] {
          request = api().Get(Path(kRequests, name)).body;
          claim = api().Get(Path(kClaims, name)).body;
          const std::string id = claim.TextAt({"status", "providerID"});
          const std::string node = claim.TextAt({"status", "nodeName"});
          return !id.empty() && request.TextAt({"status", "providerID"}) == id && !node.empty() &&
                 request.TextAt({"status", "nodeName"}) == node;
        },
        [&] { return request.Compact() + claim.Compact(); }));
    EXPECT_EQ(claim.TextAt({"metadata", "annotations", "fairlead.dev/node-request-uid"}),
              request.TextAt({"metadata", "uid"}));
    EXPECT_NE(request.TextAt({"status", "nodeName"}), name) << "Karpenter names its nodes";
    EXPECT_EQ(claim.TextAt({"spec", "expireAfter"}), "Never");
  }
  for (const char* name : {"g1", "g2"}) api().Delete(Path(kPods, name));
  EXPECT_TRUE(IsEmpty(kRequests));
  EXPECT_TRUE(IsEmpty(kClaims));
  EXPECT_TRUE(IsEmpty(kNodes));
}

// Karpenter deletes the claim. That is known within seconds, not after a time-out.
TEST_F(KarpenterTest, AClaimThatKarpenterDeletesIsAFailureAtOnce) {
  const auto requests = api().Watch(kRequests);
  ChildProcess& process = StartHook("nowhere");
  MakePod({.name = "pod", .gpus = 8});
  ASSERT_TRUE(Eventually(
      "the request fails",
      [&] {
        return requests->Any(
            [](const Json& request) { return request.TextAt({"status", "phase"}) == "Failed"; });
      },
      [&] { return process.Log(); }));
  EXPECT_TRUE(requests->Any([](const Json& request) {
    return request.TextAt({"status", "failure"}) == "Config" &&
           absl::StrContains(request.TextAt({"status", "message"}), "\"nowhere\" not found");
  }));
  api().Create(kPools, absl::StrCat(R"({"apiVersion":"fairlead.dev/v1alpha1","kind":"NodePool",
    "metadata":{"name":"pool"},"spec":{"nodeClassRef":{"group":"karpenter.kwok.sh",
    "kind":"KWOKNodeClass","name":"default"},"taints":[],"labels":{"team":"a"}}})"));
  ASSERT_TRUE(Bound({"pod"}));
  const Json node = api().Get(Path(kNodes, NodeOf("pod"))).body;
  EXPECT_EQ(node.TextAt({"metadata", "labels", "team"}), "a");
  EXPECT_EQ(node.TextAt({"metadata", "labels", "fairlead.dev/node-pool"}), "pool");
}

// The cheapest type cannot be had. Karpenter deletes the claim, and says why in an event alone.
TEST_F(KarpenterTest, AStockOutLeadsToTheNextType) {
  std::ofstream(out_of_stock_) << "gpu-1x\n";
  const auto claims = api().Watch(kClaims), requests = api().Watch(kRequests);
  StartHook();
  MakePod({.name = "pod", .gpus = 1});
  ASSERT_TRUE(Bound({"pod"}));
  EXPECT_EQ(api()
                .Get(Path(kNodes, NodeOf("pod")))
                .body.TextAt({"metadata", "labels", "node.kubernetes.io/instance-type"}),
            "gpu-8x");
  EXPECT_EQ(claims->objects(), 2u);
  EXPECT_TRUE(requests->Any([](const Json& request) {
    return request.TextAt({"spec", "instanceType"}) == "gpu-1x" &&
           request.TextAt({"status", "failure"}) == "Stockout";
  }));
}

// The process ends after its claim was written, and before its node came.
TEST_F(KarpenterTest, ANewProcessGoesOnWithTheClaimThatIsThere) {
  const auto claims = api().Watch(kClaims);
  api().Merge(Path(kClasses, "default"), R"({"spec":{"nodeRegistrationDelay":"4s"}})");
  ChildProcess& process = StartHook();
  MakePod({.name = "pod", .gpus = 1});
  ASSERT_TRUE(Eventually("a claim", [&] { return claims->objects() > 0; }));
  process.Kill();
  StartHook();
  ASSERT_TRUE(Bound({"pod"}));
  EXPECT_EQ(claims->objects(), 1u);
}

// Claims of other programs are none of ours, whatever label they have.
TEST_F(KarpenterTest, ClaimsOfOthersStay) {
  const auto claim = [](const std::string& name, const std::string& metadata) {
    return absl::StrCat(
        R"({"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","metadata":{"name":")", name, "\"",
        metadata, R"(},"spec":{"requirements":[
      {"key":"node.kubernetes.io/instance-type","operator":"In","values":["gpu-1x"]}],
      "nodeClassRef":{"group":"karpenter.kwok.sh","kind":"KWOKNodeClass","name":"default"}}})");
  };
  api().Create(kClaims, claim("theirs", ""));
  api().Create(kClaims,
               claim("imitation", R"(,"labels":{"fairlead.dev/node-request":"imitation"})"));
  StartHook();
  MakePod({.name = "pod", .gpus = 8});
  ASSERT_TRUE(Bound({"pod"}));
  api().Delete(Path(kPods, "pod"));
  EXPECT_TRUE(IsEmpty(kRequests));
  EXPECT_TRUE(Eventually("our claim is gone", [&] { return api().List(kClaims).size() == 2; }));
}

}  // namespace
}  // namespace fairlead::integration
