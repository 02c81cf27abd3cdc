#include "cmd/fairlead/settings/settings_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace fairlead::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kFileHead[] =
    "apiVersion: config.fairlead.dev/v1alpha1\nkind: FairleadConfiguration\n";

class SettingsWatchTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, absl::string_view text) {
    std::ofstream(Path(name), std::ios::binary) << text;
  }
  static std::string Path(const std::string& name) {
    return absl::StrCat(::testing::TempDir(), "settings-watch-", name);
  }
  void TearDown() override {
    for (const char* name : {"c.yaml", "types.yaml"}) std::remove(Path(name).c_str());
  }
};

TEST_F(SettingsWatchTest, SeesAnotherTextOnce) {
  Write("c.yaml", absl::StrCat(kFileHead, "defaultQueue: a\n"));
  SettingsWatch watch(Path("c.yaml"), "");
  ASSERT_TRUE(watch.Load().ok());
  EXPECT_FALSE(watch.Poll().has_value());
  Write("c.yaml", absl::StrCat(kFileHead, "defaultQueue: b\n"));
  const auto changed = watch.Poll();
  ASSERT_TRUE(changed.has_value());
  ASSERT_TRUE(changed->ok()) << changed->status();
  EXPECT_EQ((*changed)->configuration.options.state.default_queue, "b");
  EXPECT_FALSE(watch.Poll().has_value());
}

TEST_F(SettingsWatchTest, WhatCannotBeReadIsSaidOnceAndMayBeMended) {
  Write("c.yaml", kFileHead);
  SettingsWatch watch(Path("c.yaml"), "");
  ASSERT_TRUE(watch.Load().ok());
  Write("c.yaml", absl::StrCat(kFileHead, "defaultQueu: a\n"));
  const auto bad = watch.Poll();
  ASSERT_TRUE(bad.has_value());
  EXPECT_THAT(std::string(bad->status().message()), HasSubstr("c.yaml:3:1: defaultQueu"));
  EXPECT_FALSE(watch.Poll().has_value());
  std::remove(Path("c.yaml").c_str());
  ASSERT_TRUE(watch.Poll().has_value());
  Write("c.yaml", kFileHead);
  const auto mended = watch.Poll();
  ASSERT_TRUE(mended.has_value());
  EXPECT_TRUE(mended->ok());
}

TEST_F(SettingsWatchTest, TheCatalogueNamedInTheConfigurationIsWatchedToo) {
  constexpr char kTypes[] =
      "as_of: \"2026-11\"\nsource: made for this test\ntypes:\n- name: t\n  cpu: 8\n"
      "  memory: 32Gi\n  zones: [z1]\n  price: {on_demand: ";
  Write("types.yaml", absl::StrCat(kTypes, "1.00}\n"));
  Write("c.yaml", absl::StrCat(kFileHead, "hook: {catalogFile: settings-watch-types.yaml}\n"));
  SettingsWatch watch(Path("c.yaml"), "");
  const auto first = watch.Load();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(watch.Poll().has_value());
  Write("types.yaml", absl::StrCat(kTypes, "2.00}\n"));
  const auto changed = watch.Poll();
  ASSERT_TRUE(changed.has_value());
  EXPECT_TRUE(changed->ok()) << changed->status();
}

TEST_F(SettingsWatchTest, NamesWhatOnlyARestartChanges) {
  Write("c.yaml", kFileHead);
  SettingsWatch watch(Path("c.yaml"), "");
  ASSERT_TRUE(watch.Load().ok());
  Write("c.yaml", absl::StrCat(kFileHead, "defaultQueue: b\nstaleAfter: 90s\n",
                               "kwok: {bootDelay: 1s, outOfStockFile: sold-out.txt}\n",
                               "leaderElection: {resourceName: other}\n",
                               "admission: {queueAuthorization: true}\n",
                               "tracing: {endpoint: 'http://collector:4318'}\n"));
  const auto changed = watch.Poll();
  ASSERT_TRUE(changed.has_value() && changed->ok());
  EXPECT_THAT(watch.UnchangeableChanges(**changed),
              ElementsAre("leaderElection", "kwok.bootDelay", "kwok.outOfStockFile", "staleAfter",
                          "admission", "tracing"));
  Write("c.yaml", absl::StrCat(kFileHead, "defaultQueue: c\n"));
  EXPECT_THAT(watch.UnchangeableChanges(**watch.Poll()), IsEmpty());
}

TEST_F(SettingsWatchTest, AFileThatChangesWhileItIsReadIsReadAgain) {
  Write("c.yaml", absl::StrCat(kFileHead, "defaultQueue: a\n"));
  std::string meanwhile = "b";
  const auto load = [&](const std::string& a, const std::string& b, const ReadFile& read) {
    auto settings = LoadSettings(a, b, read);
    if (!meanwhile.empty())
      Write("c.yaml", absl::StrCat(kFileHead, "defaultQueue: ", meanwhile, "\n"));
    meanwhile.clear();
    return settings;
  };
  SettingsWatch watch(Path("c.yaml"), "", ReadTextFile, load);
  const auto queue = [](const auto& polled) {
    return polled.has_value() && polled->ok() ? (*polled)->configuration.options.state.default_queue
                                              : "";
  };
  ASSERT_TRUE(watch.Load().ok());
  EXPECT_EQ(queue(watch.Poll()), "b");
  Write("c.yaml", absl::StrCat(kFileHead, "defaultQueue: c\n"));
  meanwhile = "d";
  EXPECT_FALSE(watch.Poll().has_value()) << "half of one and half of the other, for all it knows";
  EXPECT_EQ(queue(watch.Poll()), "d");
  EXPECT_FALSE(watch.Poll().has_value());
}

TEST_F(SettingsWatchTest, AReloadKnowsThePluginsToo) {
  const auto own = plugins::WithBuiltIn(
      {{"Own", [](absl::string_view) { return absl::UnimplementedError("not made here"); }}});
  ASSERT_TRUE(own.ok()) << own.status();
  Write("c.yaml", absl::StrCat(kFileHead, "defaultQueue: a\n"));
  SettingsWatch watch(Path("c.yaml"), "", ReadTextFile, LoadWith(*own));
  EXPECT_EQ(watch.Load()->configuration.options.plugins, *own);
  Write("c.yaml", absl::StrCat(kFileHead, "defaultQueue: b\n"));
  const auto polled = watch.Poll();
  ASSERT_TRUE(polled.has_value() && polled->ok());
  EXPECT_EQ((*polled)->configuration.options.plugins, *own);
}

TEST_F(SettingsWatchTest, AFileThatIsBeingWrittenIsNoConfiguration) {
  Write("c.yaml", absl::StrCat(kFileHead, "defaultQueue: a\n"));
  SettingsWatch watch(Path("c.yaml"), "");
  ASSERT_TRUE(watch.Load().ok());
  Write("c.yaml", "\n");
  const auto empty = watch.Poll();
  ASSERT_TRUE(empty.has_value());
  EXPECT_THAT(std::string(empty->status().message()), HasSubstr("c.yaml: is empty"));
  EXPECT_FALSE(watch.Poll().has_value());
  Write("c.yaml", absl::StrCat(kFileHead, "defaultQueue: b\n"));
  const auto whole = watch.Poll();
  ASSERT_TRUE(whole.has_value() && whole->ok());
  EXPECT_EQ((*whole)->configuration.options.state.default_queue, "b");
}

TEST_F(SettingsWatchTest, WithoutFilesNothingEverChanges) {
  SettingsWatch watch("", "");
  ASSERT_TRUE(watch.Load().ok());
  EXPECT_FALSE(watch.Poll().has_value());
}

}  // namespace
}  // namespace fairlead::cmd
