#include "cmd/fairlead/journal/journal_file.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fairlead::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string NewFolder(const std::string& name) {
  return absl::StrCat(::testing::TempDir(), "/journal_file_test_", getpid(), "_", name);
}

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(1'800'000'000 + seconds); }

std::string Contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void Put(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// All that can be read; then why no more can.
std::vector<std::string> ReadAll(const std::string& path) {
  auto reader = JournalReader::Open(path);
  if (!reader.ok()) return {std::string(reader.status().message())};
  std::vector<std::string> records;
  while (true) {
    auto record = (*reader)->Next();
    if (!record.ok()) {
      records.emplace_back(record.status().message());
      return records;
    }
    if (!record->has_value()) break;
    records.push_back(**record);
  }
  if ((*reader)->cut_off()) records.emplace_back("cut off");
  return records;
}

TEST(JournalFileTest, WhatWasAddedIsRead) {
  const std::string folder = NewFolder("read");
  std::string path;
  {
    auto file = JournalFile::Create(folder, At(0), {}, nullptr);
    ASSERT_TRUE(file.ok()) << file.status();
    path = (*file)->path();
    (*file)->Add("one");
    (*file)->Add("");
    (*file)->Add(std::string(300'000, 'x'));
  }
  EXPECT_THAT(path, HasSubstr("/fairlead-20270115T080000.000Z.journal.gz"));
  EXPECT_THAT(ReadAll(path), ElementsAre("one", "", std::string(300'000, 'x')));
}

TEST(JournalFileTest, NothingIsOverwritten) {
  const std::string folder = NewFolder("twice");
  auto first = JournalFile::Create(folder, At(0), {}, nullptr);
  ASSERT_TRUE(first.ok());
  auto second = JournalFile::Create(folder, At(0), {}, nullptr);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("cannot be opened: File exists"));
  auto nowhere = JournalFile::Create("/proc/nonesuch/x", At(0), {}, nullptr);
  EXPECT_THAT(std::string(nowhere.status().message()), HasSubstr("/proc/nonesuch/x: "));
}

TEST(JournalFileTest, AFullDiskEndsItAndIsTold) {
  const std::string folder = NewFolder("full");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto signal_before = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{40, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string why;
  {
    auto file =
        JournalFile::Create(folder, At(0), {}, [&](const std::string& reason) { why = reason; });
    ASSERT_TRUE(file.ok()) << file.status();
    // Small enough to be compressed before anything is written.
    (*file)->Add("a record that is longer than all that the disk has room for");
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, signal_before);
  EXPECT_THAT(why, HasSubstr("cannot be written: "));
  EXPECT_THAT(why, HasSubstr("File too large"));
}

TEST(JournalFileTest, TheOldestOfOursGo) {
  const std::string folder = NewFolder("oldest");
  for (int i = 0; i < 6; ++i) {
    auto file = JournalFile::Create(folder, At(i), {.files_max = 3}, nullptr);
    ASSERT_TRUE(file.ok()) << file.status();
    if (i == 0) Put(absl::StrCat(folder, "/fairlead-notes.txt"), "mine");
  }
  EXPECT_THAT(NamesIn(folder),
              ElementsAre("fairlead-20270115T080003.000Z.journal.gz",
                          "fairlead-20270115T080004.000Z.journal.gz",
                          "fairlead-20270115T080005.000Z.journal.gz", "fairlead-notes.txt"));
}

TEST(JournalFileTest, AFileThatIsCutOffIsReadUpToThere) {
  const std::string folder = NewFolder("cut");
  std::string path;
  {
    auto file = JournalFile::Create(folder, At(0), {}, nullptr);
    path = (*file)->path();
    for (int i = 0; i < 2000; ++i) (*file)->Add(absl::StrCat("record ", i * 7919));
  }
  const std::string whole = Contents(path);
  const std::string cut = folder + "/cut";
  for (const size_t size : {whole.size() - 1, whole.size() / 2, size_t{40}}) {
    Put(cut, whole.substr(0, size));
    const std::vector<std::string> read = ReadAll(cut);
    ASSERT_FALSE(read.empty());
    for (size_t i = 0; i + 1 < read.size(); ++i) {
      EXPECT_EQ(read[i], absl::StrCat("record ", i * 7919));
    }
  }
  Put(cut, "no journal");
  EXPECT_THAT(ReadAll(cut), ElementsAre(HasSubstr("is no journal")));
  EXPECT_THAT(ReadAll(folder + "/nonesuch"), ElementsAre(HasSubstr("No such file")));
}

TEST(JournalFileTest, ItEndsAtItsBounds) {
  const std::string folder = NewFolder("bounds");
  std::string why, path;
  {
    auto file = JournalFile::Create(folder, At(0), {.pending_bytes_max = 10},
                                    [&](const std::string& reason) { why = reason; });
    path = (*file)->path();
    (*file)->Add("more than ten bytes");
    (*file)->Add("x");
  }
  EXPECT_THAT(why, HasSubstr("more than 10 bytes waited"));
  EXPECT_THAT(ReadAll(path), SizeIs(0));
  {
    auto file = JournalFile::Create(folder, At(1), {.file_bytes_max = 1},
                                    [&](const std::string& reason) { why = reason; });
    path = (*file)->path();
    (*file)->Add("first");
  }
  EXPECT_THAT(why, HasSubstr("it has 1 bytes"));
  EXPECT_THAT(ReadAll(path), ElementsAre("first"));
}

}  // namespace
}  // namespace fairlead::cmd
