#include "autoscale-hook/catalog/csv_import.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "autoscale-hook/catalog/catalog.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::hook {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kHeader[] =
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,"
    "AvailabilityZone,Arch\n";

class CsvImportTest : public ::testing::Test {
 protected:
  CsvImportTest() { options_.region = "east"; }
  // Fails the test if the rows are refused.
  Catalog Import(const std::string& rows) {
    auto import = ImportCatalogCsv(kHeader + rows, "list.csv", options_);
    EXPECT_TRUE(import.ok()) << import.status();
    if (!import.ok()) return Catalog::FromTypes({});
    notes_ = import->notes;
    auto catalog = Catalog::Parse(import->yaml, "imported");
    EXPECT_TRUE(catalog.ok()) << catalog.status() << import->yaml;
    EXPECT_EQ(catalog->types().size(), import->types);
    return *std::move(catalog);
  }
  std::string Refusal(const std::string& text) {
    return std::string(ImportCatalogCsv(text, "list.csv", options_).status().message());
  }
  CsvImportOptions options_;
  std::vector<std::string> notes_;
};

TEST_F(CsvImportTest, ATypeIsReadFromAllItsZones) {
  options_.as_of = "2026-11";
  const Catalog catalog = Import(
      "g.big,A10G,4.0,48.0,192.0,\"{'Gpus': [{'MemoryInfo': {'SizeInMiB': "
      "23028}}]}\",5.672,1.5,east,"
      "east-a,x86_64\n"
      "g.big,A10G,4.0,48.0,192.0,,5.672,2.25,east,east-b,x86_64\n"
      "g.big,A10G,4.0,48.0,192.0,,9.0,2.25,west,west-a,x86_64\n"
      "c.small,,,2.0,3.75,,0.0850004,,east,east-a,arm64\n");
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_EQ(catalog.as_of(), "2026-11");
  EXPECT_EQ(catalog.source(), "list.csv, region east");
  const InstanceType* big = catalog.Find("g.big");
  ASSERT_NE(big, nullptr);
  EXPECT_EQ(big->gpu_model, "NVIDIA-A10G");
  EXPECT_EQ(big->gpu_count, 4);
  EXPECT_EQ(big->gpu_memory_mib, 23028);
  EXPECT_EQ(big->cpu_milli, 48000);
  EXPECT_EQ(big->memory_bytes, int64_t{192} << 30);
  EXPECT_THAT(big->zones, ElementsAre("east-a", "east-b"));
  EXPECT_EQ(big->on_demand_micro_usd, 5'672'000);
  EXPECT_EQ(big->spot_micro_usd, 2'250'000) << "the highest of the zones";
  const InstanceType* small = catalog.Find("c.small");
  ASSERT_NE(small, nullptr);
  EXPECT_EQ(small->architecture, "arm64");
  EXPECT_EQ(small->memory_bytes, int64_t{3840} << 20);
  EXPECT_EQ(small->reserved_memory_bytes, int64_t{1920} << 20) << "a small machine keeps a half";
  EXPECT_EQ(small->on_demand_micro_usd, 85'000);
  EXPECT_EQ(small->spot_micro_usd, std::nullopt);
}

TEST_F(CsvImportTest, GpusWithPricesOfTheirOwnAreAdded) {
  const Catalog catalog = Import(
      "a2-highgpu-2g,,,24.0,170.0,,1.5,0.5,east,east-a,\n"
      "a2-highgpu-2g,,,24.0,170.0,,1.5,0.5,east,east-b,\n"
      "g2-standard-24,,,24.0,96.0,,1.0,,east,east-a,\n"
      "n1-standard-4,,,4.0,15.0,,0.19,0.04,east,east-a,\n"
      ",A100,2,,,,5.87,1.76,east,east-a,\n"
      ",L4,2,,,,1.12,,east,east-a,\n"
      ",T4,1,,,,0.35,,east,east-a,\n");
  const InstanceType* a100 = catalog.Find("a2-highgpu-2g");
  ASSERT_NE(a100, nullptr);
  EXPECT_EQ(a100->gpu_model, "NVIDIA-A100-SXM4-40GB");
  EXPECT_EQ(a100->gpu_count, 2);
  EXPECT_EQ(a100->on_demand_micro_usd, 7'370'000);
  EXPECT_EQ(a100->spot_micro_usd, 2'260'000);
  EXPECT_THAT(a100->zones, ElementsAre("east-a")) << "the other zone has no price of these GPUs";
  EXPECT_THAT(absl::StrJoin(notes_, "\n"),
              HasSubstr("no price of the GPUs in it (1; list.csv line 3"));
  EXPECT_EQ(catalog.Find("g2-standard-24")->gpu_count, 2);
  EXPECT_EQ(catalog.Find("n1-standard-4")->gpu_count, 0);
}

TEST_F(CsvImportTest, WhatIsWrongIsLeftOutAndTold) {
  const Catalog catalog = Import(
      "good,,,4.0,16.0,,0.2,,east,east-a,\n"
      "bad-cpu,,,x,16.0,,0.2,,east,east-a,\n"
      "bad-memory,,,4.0,-1,,0.2,,east,east-a,\n"
      "bad-price,,,4.0,16.0,,cheap,,east,east-a,\n"
      "none-left,,,0.2,16.0,,0.1,,east,east-a,\n"
      "old,,,2.0,4.0,,0.1,,east,east-a,i386\n"
      "b@d,,,2.0,4.0,,0.1,,east,east-a,\n"
      "trn1,Trainium,1,8.0,32.0,,1.3,,east,east-a,\n"
      "part,T4,0.5,8.0,32.0,,1.3,,east,east-a,\n");
  EXPECT_EQ(catalog.types().size(), 1);
  EXPECT_EQ(notes_.size(), 8);
  const std::string notes = absl::StrJoin(notes_, "\n");
  EXPECT_THAT(notes,
              HasSubstr("left out: vCPUs is no number above zero (1; list.csv line 3: bad-cpu)"));
  EXPECT_THAT(notes, HasSubstr("accelerator Trainium is not known"));
  EXPECT_THAT(notes, HasSubstr("a part of a GPU"));
}

// A list says 0 where it knows no price: nothing is bought for nothing.
TEST_F(CsvImportTest, APriceOfZeroIsUnknown) {
  const Catalog catalog = Import("free,,,4.0,16.0,,0.0,,east,east-a,\n");
  ASSERT_NE(catalog.Find("free"), nullptr);
  EXPECT_EQ(catalog.Find("free")->on_demand_micro_usd, std::nullopt);
}

TEST_F(CsvImportTest, TypesCanBeChosen) {
  options_.types = "g.*";
  options_.gpus_only = true;
  const Catalog catalog = Import(
      "g1,T4,1,4.0,16.0,,0.5,,east,east-a,\n"
      "g-cpu,,,4.0,16.0,,0.2,,east,east-a,\n"
      "h1,T4,1,4.0,16.0,,0.5,,east,east-a,\n");
  ASSERT_EQ(catalog.types().size(), 1);
  EXPECT_EQ(catalog.types()[0].name, "g1");
  options_.types = "(";
  EXPECT_THAT(Refusal(absl::StrCat(kHeader, "g1,T4,1,4,16,,0.5,,east,east-a,\n")),
              HasSubstr("--types: "));
}

TEST_F(CsvImportTest, ZonesAreThoseOfNodes) {
  const std::string ids = absl::StrCat(kHeader, "c,,,4.0,16.0,,0.2,,east,use1-az1,x86_64\n");
  EXPECT_THAT(Refusal(ids), HasSubstr("has ids of zones (use1-az1)"));
  const std::string none = absl::StrCat(kHeader, "c,,,4.0,16.0,,0.2,,east,,x86_64\n");
  EXPECT_THAT(Refusal(none), HasSubstr("names no zones"));
  options_.zones = {"east-1a", "east-1b"};
  for (const std::string& text : {ids, none}) {
    const auto import = ImportCatalogCsv(text, "list.csv", options_);
    ASSERT_TRUE(import.ok()) << import.status();
    EXPECT_THAT(Catalog::Parse(import->yaml, "f")->types()[0].zones,
                ElementsAre("east-1a", "east-1b"));
  }
}

TEST_F(CsvImportTest, TheRegionIsNamedOrTheOnlyOne) {
  const std::string one = absl::StrCat(kHeader, "c,,,4.0,16.0,,0.2,,east,east-a,\n");
  options_.region = "";
  EXPECT_TRUE(ImportCatalogCsv(one, "list.csv", options_).ok());
  const std::string two = absl::StrCat(one, "c,,,4.0,16.0,,0.2,,west,west-a,\n");
  EXPECT_THAT(Refusal(two), HasSubstr("several regions, name one (--region): east, west"));
  options_.region = "north";
  EXPECT_THAT(Refusal(two), HasSubstr("no row of region north, but of east, west"));
}

TEST_F(CsvImportTest, OtherFilesAreRefused) {
  EXPECT_THAT(Refusal("a,b\n1,2\n"), HasSubstr("list.csv: has no column InstanceType"));
  EXPECT_THAT(Refusal(absl::StrCat(kHeader, "x,,,0,0,,0.2,,east,east-a,\n")),
              HasSubstr("no type of region east is left; left out: vCPUs"));
  EXPECT_THAT(Refusal(absl::StrCat(kHeader, "\"x")), HasSubstr("a quote that does not end"));
}

}  // namespace
}  // namespace fairlead::hook
