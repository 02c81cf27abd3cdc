#include "journal/public_hardware.h"

#include "gtest/gtest.h"

namespace fairlead::journal {
namespace {

TEST(PublicHardwareTest, NamesThatAnAdministratorChoseAreNotPublic) {
  for (const char* text : {"",
                           "-",
                           "acme",
                           "acme-box",
                           "acme.large",
                           "acme5.large",
                           "m5.acme",
                           "m5acmeco.large",
                           "n2-acme-4",
                           "acme-standard-4",
                           "Standard_Acme1",
                           "Standard_D8secret",
                           "berlin",
                           "berlin-1a",
                           "us-acme-1",
                           "eu-jane",
                           "rack-17",
                           "zone-a",
                           "1a",
                           "a",
                           "4-b",
                           "basement-us",
                           "NVIDIA",
                           "NVIDIA-ACME",
                           "NVIDIA-A100-ACME",
                           "ACME-A100-80GB",
                           "A100",
                           "H100 of jane"}) {
    EXPECT_FALSE(IsPublicHardware(text)) << text;
  }
}

TEST(PublicHardwareTest, NamesOfCloudsAndVendorsArePublic) {
  for (const char* text :
       {"m5.large", "c7gn.16xlarge", "u-6tb1.metal", "m7i.metal-48xl", "t3.nano", "p4d.24xlarge",
        "n2-standard-4", "a2-highgpu-1g", "e2-highmem-16", "Standard_D8s_v5",
        "Standard_NC24ads_A100_v4", "Standard_ND96isr_H100_v5"}) {
    EXPECT_TRUE(IsPublicInstanceType(text)) << text;
  }
  for (const char* text : {"us-east-1a", "us-east-1", "eu-central-1b", "europe-west4-b", "eastus-2",
                           "westeurope", "asia-northeast1-a", "us-gov-west-1a"}) {
    EXPECT_TRUE(IsPublicZone(text)) << text;
  }
  for (const char* text : {"NVIDIA-A100-SXM4-80GB", "Tesla-T4", "NVIDIA-H100-80GB-HBM3",
                           "NVIDIA-A10G", "NVIDIA-GeForce-RTX-4090", "NVIDIA-H100-NVL",
                           "NVIDIA A100-PCIE-40GB", "AMD-Instinct-MI300X"}) {
    EXPECT_TRUE(IsPublicGpu(text)) << text;
  }
}

}  // namespace
}  // namespace fairlead::journal
