#include "cmd/fairlead/settings/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace fairlead::cmd {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kHead[] =
    "apiVersion: config.fairlead.dev/v1alpha1\n"
    "kind: FairleadConfiguration\n";

TEST(ParseConfigurationTest, ErrorsHaveFileLineAndColumn) {
  struct Case {
    std::string yaml, begin;
  };
  const std::vector<Case> cases = {
      // Not YAML at all.
      {"a: [1", "f.yaml:1:"},
      {absl::StrCat(kHead, "events: true\nevents: true\n"), "f.yaml:4:1: given twice: \"events\""},
      // Valid YAML, but no configuration.
      {absl::StrCat(kHead, "hook:\n  clusterGPULimits: 3\n"),
       "f.yaml:4:3: hook.clusterGPULimits: is not a known field"},
      {absl::StrCat(kHead, "hook:\n  gpuLimits:\n    H100.x: eight\n"),
       "f.yaml:5:5: hook.gpuLimits.H100.x: must be a whole number"},
      {absl::StrCat(kHead, "schedulerNames: [a, b, a]\n"),
       "f.yaml:3:24: schedulerNames[2]: \"a\" is given twice"},
      {absl::StrCat(kHead, "grouping:\n  kinds:\n  - group: g\n    kind: K\n    minMembers: 3\n"),
       "f.yaml:7:5: grouping.kinds[0].minMembers: "},
      {absl::StrCat("# a comment\n---\n", kHead, "---\nkind: X\napiVersion: v1\n"),
       "f.yaml:6:1: kind: must be"},
      {"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
       "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: Nonesuch\n",
       "f.yaml:7:9: profiles[0].plugins.score.enabled[0].name: \"Nonesuch\" is not a plugin"},
      // A missing field is reported at the place where it should be.
      {"kind: FairleadConfiguration\n", "f.yaml:1:1: apiVersion: is missing"},
  };
  for (const Case& c : cases) {
    const auto read = ParseConfiguration(c.yaml, "f.yaml");
    ASSERT_FALSE(read.ok()) << c.yaml;
    EXPECT_THAT(std::string(read.status().message()), StartsWith(c.begin)) << c.yaml;
  }
}

class LoadSettingsTest : public ::testing::Test {
 protected:
  LoadSettingsTest() : folder_(std::filesystem::path(::testing::TempDir()) / "fairlead_settings") {
    std::filesystem::create_directories(folder_);
  }
  ~LoadSettingsTest() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::filesystem::path folder_;
};

TEST_F(LoadSettingsTest, WithoutFilesTheBuiltInOnes) {
  const auto settings = LoadSettings("", "");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->catalog.types().size(), hook::Catalog::BuiltIn().types().size());
}

TEST_F(LoadSettingsTest, ACatalogIsFoundBesideTheConfiguration) {
  Write("types.yaml", "not a catalogue");
  const std::string config =
      Write("c.yaml", absl::StrCat(kHead, "hook: {catalogFile: types.yaml}\n"));
  const auto settings = LoadSettings(config, "");
  ASSERT_FALSE(settings.ok());
  EXPECT_THAT(std::string(settings.status().message()), HasSubstr("/types.yaml:1:"));
  EXPECT_THAT(std::string(LoadSettings(config, "/nonesuch.yaml").status().message()),
              HasSubstr("/nonesuch.yaml: No such file"))
      << "the one named on the command line wins";
}

// A plugin that is never made here.
framework::RegistryPtr WithOwn() {
  const auto made = plugins::WithBuiltIn(
      {{"Own", [](absl::string_view) { return absl::UnimplementedError("not made here"); }}});
  EXPECT_TRUE(made.ok()) << made.status();
  return *made;
}

TEST_F(LoadSettingsTest, TheOptionsHaveTheGivenPlugins) {
  const framework::RegistryPtr own = WithOwn();
  const std::string config = Write("c.yaml", std::string(kHead));
  for (const std::string& path : {std::string(), config}) {
    const auto settings = LoadSettings(path, "", ReadTextFile, own);
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_EQ(settings->configuration.options.plugins, own) << path;
    EXPECT_EQ(LoadSettings(path, "")->configuration.options.plugins, plugins::BuiltIn()) << path;
  }
}

TEST_F(LoadSettingsTest, AFolderIsNoFile) {
  const auto settings = LoadSettings(folder_.string(), "");
  EXPECT_THAT(std::string(settings.status().message()), HasSubstr("is a folder"));
}

TEST_F(LoadSettingsTest, WhatIsOutOfStockIsReadAgainAtEachQuestion) {
  const auto settings =
      LoadSettings(Write("c.yaml", absl::StrCat(kHead, "kwok: {outOfStockFile: stock.txt}\n")), "");
  ASSERT_TRUE(settings.ok()) << settings.status();
  const auto out_of_stock = OutOfStock(settings->configuration.kwok_out_of_stock_file);
  EXPECT_FALSE(out_of_stock("g.8")) << "there is no file yet";
  Write("stock.txt", "g.1\n g.8 \n");
  EXPECT_TRUE(out_of_stock("g.8"));
  EXPECT_FALSE(out_of_stock("g"));
  EXPECT_FALSE(out_of_stock(""));
  Write("stock.txt", "");
  EXPECT_FALSE(out_of_stock("g.8"));
  EXPECT_EQ(OutOfStock(""), nullptr);
}

}  // namespace
}  // namespace fairlead::cmd
