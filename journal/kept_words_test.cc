// What a redaction keeps, and whether the list of fields has those that the program reads.
#include "journal/kept_words.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/configuration.h"
#include "document/yaml.h"
#include "gtest/gtest.h"
#include "journal/redactor.h"

namespace fairlead::journal {
namespace {

std::string ContentOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

// The paths of the source files of the folder whose names begin so, without tests.
std::vector<std::filesystem::path> Sources(const std::string& folder, const std::string& prefix) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, prefix) && absl::EndsWith(name, ".cc") &&
        !absl::EndsWith(name, "_test.cc")) {
      paths.push_back(entry.path());
    }
  }
  return paths;
}

// A reader of a configuration has a table of fields: {"name", what reads it}. A field that the list
// lacks would be renamed, and the configuration refused.
TEST(KeptWordsTest, EveryFieldThatIsReadIsOnTheList) {
  std::vector<std::filesystem::path> paths = Sources("core", "config");
  for (const auto& [folder, prefix] :
       std::vector<std::pair<std::string, std::string>>{{"scheduler/framework", "config"},
                                                        {"scheduler/framework", "extenders"},
                                                        {"scheduler/plugins", ""}}) {
    for (auto& path : Sources(folder, prefix)) paths.push_back(std::move(path));
  }
  const std::regex field(R"re(\{\s*"([a-z][A-Za-z]*)",)re");
  int fields = 0;
  for (const std::filesystem::path& path : paths) {
    const std::string source = ContentOf(path);
    for (std::sregex_iterator it(source.begin(), source.end(), field), end; it != end; ++it) {
      ++fields;
      EXPECT_TRUE(KeptWords::IsConfigurationField((*it)[1].str())) << path << ": " << (*it)[1];
    }
  }
  EXPECT_GT(fields, 150) << "the readers look otherwise than this test expects";
}

// Whether the configuration reads, with its names and without.
TEST(KeptWordsTest, ConfigurationsOfTheDocumentsReadWithoutTheirNames) {
  int configurations = 0;
  for (const auto& entry : std::filesystem::directory_iterator("docs")) {
    if (entry.path().extension() != ".md") continue;
    const std::vector<std::string> parts = absl::StrSplit(ContentOf(entry.path()), "```");
    for (const std::string& part : parts) {
      if (!absl::StartsWith(part, "yaml\n") || !absl::StrContains(part, "Configuration")) continue;
      const auto documents = YamlToJson(part.substr(5));
      if (!documents.ok() || !core::ReadConfiguration(*documents).ok()) continue;
      ++configurations;
      Redactor redactor(plugins::BuiltIn()->Names());
      Record first = Start{.documents = *documents}, second = first;
      redactor.Collect(first);
      redactor.Assign();
      redactor.Redact(second);
      const auto read = core::ReadConfiguration(std::get<Start>(second).documents);
      EXPECT_TRUE(read.ok()) << entry.path() << ": " << read.status() << part;
    }
  }
  EXPECT_GE(configurations, 5);
}

TEST(KeptWordsTest, WhatIsOnNoListIsNotKept) {
  KeptWords kept({"OwnPlugin"});
  for (const char* text : {"acme", "kai.scheduler/acme", "Kai.scheduler/queue", "queue", ""}) {
    EXPECT_FALSE(kept.Has(text)) << text;
  }
  for (const char* text : {"OwnPlugin", "NodeResourcesFit", "kai.scheduler/queue",
                           "QueueLimitReached", "Job", "nvidia.com/mig-1g.5gb", "hugepages-2Mi"}) {
    EXPECT_TRUE(kept.Has(text)) << text;
  }
}

TEST(KeptWordsTest, HardwareIsKeptIfItIsPublic) {
  KeptWords kept({});
  kept.AddHardware("acme-zone");
  kept.AddHardware("NVIDIA-A100-SXM4-80GB");
  kept.AddInstanceType("acme-box.large");
  kept.AddInstanceType("m5.large");
  EXPECT_FALSE(kept.Has("acme-zone"));
  EXPECT_FALSE(kept.Has("acme-box.large"));
  EXPECT_FALSE(kept.Has("acme-box"));
  EXPECT_TRUE(kept.Has("m5"));
  EXPECT_TRUE(kept.Has("m5.large"));
  EXPECT_TRUE(kept.IsHardware("a100-80gb"));
  EXPECT_FALSE(kept.IsHardware("acme"));
  EXPECT_EQ(kept.instance_types().size(), 2u);
}

TEST(KeptWordsTest, Amounts) {
  for (const char* text : {"2", "0.5", "10Gi", "2h30m", "50%", "true", "2026-11-29T00:00:00Z"}) {
    EXPECT_TRUE(KeptWords::IsAmount(text)) << text;
  }
  for (const char* text : {"", "acme", "10.0.0.7", "4 acme", "a4", "12:30", "1.2.3",
                           "00000000000000000000000000000000000"}) {
    EXPECT_FALSE(KeptWords::IsAmount(text)) << text;
  }
}

}  // namespace
}  // namespace fairlead::journal
