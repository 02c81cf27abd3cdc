#include "scheduler/model/instance_facts.h"

#include <string>

#include "gtest/gtest.h"

namespace fairlead::model {
namespace {

TEST(InstanceFamily, FollowsTheNamesOfEachCloud) {
  struct Row {
    const char *type, *family;
  };
  constexpr Row kRows[] = {
      {"m5.large", "m5"},
      {"p5.48xlarge", "p5"},
      {"u-6tb1.metal", "u-6tb1"},
      {"g4dn.metal", "g4dn"},
      {"a2-highgpu-1g", "a2"},
      {"n1-standard-8", "n1"},
      {"Standard_NC24ads_A100_v4", "NCads_A100_v4"},
      {"Standard_NC48ads_A100_v4", "NCads_A100_v4"},
      {"Standard_ND96isr_H100_v5", "NDisr_H100_v5"},
      {"Standard_D4s_v3", "Ds_v3"},
      {"Standard_E4-2s_v3", "Es_v3"},
      {"Standard_E4-s", "E-s"},
      {"Standard_", ""},
      {"Basic_A1", "A"},
      {"VM.GPU.A10.1", "VM.GPU.A10"},
      {"BM.GPU.H100.8", "BM.GPU.H100"},
      {"VM.Standard.E4.Flex", "VM.Standard.E4"},
      {"VM.", "VM."},
      {"gpu", "gpu"},
      {".large", ""},
      {"", ""},
  };
  for (const Row& row : kRows) EXPECT_EQ(InstanceFamily(row.type), row.family) << row.type;
}

TEST(GpuModelSuits, ComparesWholeWordsInTheirOrder) {
  struct Row {
    const char *model, *product;
    bool suits;
  };
  constexpr Row kRows[] = {
      {"A100", "NVIDIA-A100-SXM4-80GB", true},
      {"a100", "NVIDIA-A100-SXM4-80GB", true},
      {"A100-80GB", "NVIDIA-A100-SXM4-80GB", true},
      {"A100 80gb", "NVIDIA-A100-SXM4-80GB", true},
      {"80GB-A100", "NVIDIA-A100-SXM4-80GB", false},
      {"A100-40GB", "NVIDIA-A100-SXM4-80GB", false},
      {"NVIDIA-A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB", true},
      {"NVIDIA-A100-SXM4-80GB-X", "NVIDIA-A100-SXM4-80GB", false},
      {"L4", "NVIDIA-L4", true},
      {"L4", "NVIDIA-L40S", false},
      {"L40", "NVIDIA-L40S", false},
      {"L40S", "NVIDIA-L40S", true},
      {"A10", "NVIDIA-A10G", false},
      {"A10G", "NVIDIA-A10G", true},
      {"A10", "NVIDIA-A100-SXM4-40GB", false},
      {"T4", "Tesla-T4", true},
      {"t4", "nvidia-tesla-t4", true},
      {"V100", "Tesla-V100-SXM2-16GB", true},
      {"H100", "NVIDIA-H100-80GB-HBM3", true},
      {"H100", "NVIDIA-H100-NVL", true},
      {"H100", "NVIDIA-GH200-480GB", false},
      {"1g.5gb", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", true},
      {"A100", "", false},
      {"", "NVIDIA-A100", false},
      {"-", "NVIDIA-A100", false},
      {"", "", false},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(GpuModelSuits(row.model, row.product), row.suits) << row.model << " " << row.product;
  }
}

TEST(GpuProductOf, TakesTheFirstLabelThatSaysSomething) {
  EXPECT_EQ(GpuProductOf({}), "");
  EXPECT_EQ(GpuProductOf({{"cloud.google.com/gke-accelerator", "nvidia-l4"}}), "nvidia-l4");
  EXPECT_EQ(GpuProductOf({{"karpenter.k8s.aws/instance-gpu-name", "t4"}}), "t4");
  EXPECT_EQ(
      GpuProductOf({{"nvidia.com/gpu.product", ""}, {"karpenter.k8s.aws/instance-gpu-name", "t4"}}),
      "t4");
  EXPECT_EQ(GpuProductOf({{"nvidia.com/gpu.product", "NVIDIA-L4"},
                          {"cloud.google.com/gke-accelerator", "nvidia-h100-80gb"}}),
            "NVIDIA-L4");
}

TEST(IsSpotNode, KnowsTheLabelsOfTheClouds) {
  for (const auto& [key, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"eks.amazonaws.com/capacityType", "SPOT"},
           {"cloud.google.com/gke-spot", "true"},
           {"cloud.google.com/gke-preemptible", "true"},
           {"cloud.google.com/gke-provisioning", "spot"},
           {"kubernetes.azure.com/scalesetpriority", "spot"},
           {"karpenter.sh/capacity-type", "spot"},
           {"fairlead.dev/capacity-type", "spot"}}) {
    EXPECT_TRUE(IsSpotNode({{key, value}})) << key;
    EXPECT_FALSE(IsSpotNode({{key, "ON_DEMAND"}})) << key;
    EXPECT_FALSE(IsSpotNode({{key, ""}})) << key;
  }
  EXPECT_FALSE(IsSpotNode({}));
}

}  // namespace
}  // namespace fairlead::model
