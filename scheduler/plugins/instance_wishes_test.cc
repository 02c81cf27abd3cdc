#include "scheduler/plugins/instance_wishes.h"

#include <string>
#include <vector>

#include "scheduler/model/api_names.h"
#include "scheduler/plugins/plugin_test_util.h"

namespace fairlead::plugins {
namespace {

model::Node Labelled(absl::string_view name, int64_t gpus, const model::StringMap& labels) {
  model::Node node = MakeNode(name, gpus);
  for (const auto& [key, value] : labels) node.meta.labels.Set(key, value);
  return node;
}

class InstanceWishesTest : public PluginTest {
 protected:
  InstanceWishesTest() {
    AddNode(Labelled("a100", 8,
                     {{"node.kubernetes.io/instance-type", "p4d.24xlarge"},
                      {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                      {"karpenter.sh/capacity-type", "on-demand"}}));
    AddNode(Labelled("t4", 1,
                     {{"node.kubernetes.io/instance-type", "g4dn.xlarge"},
                      {"nvidia.com/gpu.product", "Tesla-T4"},
                      {"eks.amazonaws.com/capacityType", "SPOT"}}));
    AddNode(MakeNode("bare", 0));
  }
  // The answers of the three nodes for a pod with the annotation.
  std::vector<std::string> Answers(const char* key, const char* value) {
    std::vector<model::WishProblem> problems;
    model::PodSpec spec;
    spec.wishes = model::ParseInstanceWishes({{key, value}}, problems);
    EXPECT_TRUE(problems.empty());
    Waiting(spec);
    const auto framework = Only("InstanceWishes");
    return {Why(*framework, "a100"), Why(*framework, "t4"), Why(*framework, "bare")};
  }
};

using Texts = std::vector<std::string>;

TEST_F(InstanceWishesTest, EachWishLeavesOutTheNodesThatDoNotSuitIt) {
  const std::string in = "X node(s) didn't match Pod's instance-family-inclusions";
  EXPECT_EQ(Answers(model::kFamilyInclusionsAnnotation, "p4d"), (Texts{"", in, in}));
  const std::string out = "X node(s) didn't match Pod's instance-family-exclusions";
  EXPECT_EQ(Answers(model::kLunaFamilyExclusionsAnnotation, "p4d"), (Texts{out, "", ""}));
  const std::string regexp = "X node(s) didn't match Pod's instance-type-regexp";
  EXPECT_EQ(Answers(model::kTypeRegexpAnnotation, "^g4dn\\."), (Texts{regexp, "", regexp}));
  const std::string sku = "X node(s) didn't match Pod's instance-gpu-skus";
  EXPECT_EQ(Answers(model::kGpuSkusAnnotation, "H100,A100"), (Texts{"", sku, sku}));
  const std::string offering = "X node(s) didn't match Pod's instance-offerings";
  EXPECT_EQ(Answers(model::kOfferingsAnnotation, "on-demand"), (Texts{"", offering, ""}));
  EXPECT_EQ(Answers(model::kOfferingsAnnotation, "spot"), (Texts{offering, "", offering}));
  const std::string gpus = "X node(s) didn't match Pod's instance-max-gpus";
  EXPECT_EQ(Answers(model::kMaxGpusAnnotation, "4"), (Texts{gpus, "", ""}));
  EXPECT_EQ(Answers(model::kMaxGpusAnnotation, "0"), (Texts{gpus, gpus, ""}));
  // Of the price no node says anything.
  EXPECT_EQ(Answers(model::kMaxCostAnnotation, "0"), (Texts{"", "", ""}));
}

TEST_F(InstanceWishesTest, GpusOfOtherVendorsCount) {
  model::Node mi300 = MakeNode("mi300", 0);
  model::Set(mi300.allocatable, model::kAmdGpuName, 8000);
  AddNode(mi300);
  static_cast<void>(Answers(model::kMaxGpusAnnotation, "4"));
  EXPECT_EQ(Why(*Only("InstanceWishes"), "mi300"),
            "X node(s) didn't match Pod's instance-max-gpus");
}

TEST_F(InstanceWishesTest, DoesNotLookAtPodsWithoutWishes) {
  Waiting({});
  const InstanceWishes plugin;
  EXPECT_FALSE(plugin.FilterApplies(Ctx().pod_class));
  static_cast<void>(Answers(model::kMaxGpusAnnotation, "4"));
  EXPECT_TRUE(plugin.FilterApplies(Ctx().pod_class));
}

TEST_F(InstanceWishesTest, TakesNoArgs) {
  EXPECT_FALSE(InstanceWishes::Make(R"({"x":1})").ok());
  EXPECT_TRUE(InstanceWishes::Make("").ok());
}

}  // namespace
}  // namespace fairlead::plugins
