// `fairlead journal redact` on files: what is made, and what is refused.
#include "cmd/fairlead/journal/journal_command.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/journal/journal_file.h"
#include "cmd/fairlead/journal/replay_command.h"
#include "core/decision_loop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "journal/player.h"
#include "journal/recorder.h"
#include "scheduler/model/testing/builders.h"

namespace fairlead::cmd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class JournalRedactTest : public ::testing::Test {
 protected:
  JournalRedactTest() {
    std::filesystem::create_directories(folder_);
    flags_.files = {Path("acme.journal.gz")};
    flags_.to = Path("redacted");
    Write(flags_.files[0], Day());
  }
  ~JournalRedactTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string Path(const std::string& name) const {
    return absl::StrCat(folder_, "/", name);
  }
  static void Write(const std::string& path, const std::vector<std::string>& records) {
    auto writer = JournalWriter::Create(path);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (const std::string& record : records) ASSERT_TRUE((*writer)->Add(record).ok());
    ASSERT_TRUE((*writer)->Close().ok());
  }
  static std::vector<std::string> Read(const std::string& path) {
    auto reader = JournalReader::Open(path);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<std::string> records;
    while (reader.ok()) {
      auto record = (*reader)->Next();
      EXPECT_TRUE(record.ok()) << record.status();
      if (!record.ok() || !record->has_value()) break;
      records.push_back(**std::move(record));
    }
    return records;
  }
  // One pod is bound to one node.
  static std::vector<std::string> Day() {
    std::vector<std::string> records;
    journal::Recorder recorder(
        "0.1", [&records](std::string record) { records.push_back(std::move(record)); });
    const auto options = journal::Player::FromDocuments(plugins::BuiltIn())(journal::Start{});
    EXPECT_TRUE(options.ok()) << options.status();
    core::Options used = *options;
    used.state.scheduler_names = {"fairlead"};
    auto loop = core::DecisionLoop::Make(used, &hook::Catalog::BuiltIn());
    EXPECT_TRUE(loop.ok()) << loop.status();
    recorder.Started(used, hook::Catalog::BuiltIn(), /*continues=*/false);
    (*loop)->SetInputLog(&recorder);
    (*loop)->Apply(model::Upsert{
        model::testing::MakeQueue("acme-vision", "", model::kUnlimited, model::kUnlimited)});
    (*loop)->Apply(model::Upsert{model::testing::MakeNode("host.acme.example", 2)});
    for (const model::Kind kind : model::kAllKinds) (*loop)->Apply(model::Synced{kind});
    (*loop)->BecomeLeader();
    for (const model::Kind kind : model::kAllKinds) (*loop)->Apply(model::Synced{kind});
    (*loop)->Apply(model::Upsert{model::testing::PodBuilder("acme-research", "train-jane")
                                     .Queue("acme-vision")
                                     .Gpus(1)
                                     .Build()});
    EXPECT_FALSE((*loop)->Step(model::testing::At(10)).actions.empty());
    return records;
  }
  absl::Status Run() {
    out_.str("");
    return RunJournalRedact(flags_, out_);
  }
  [[nodiscard]] bool HasMade() const { return std::filesystem::exists(flags_.to); }

  const std::string folder_ =
      absl::StrCat(::testing::TempDir(), "/journal_command_test_", getpid());
  JournalRedactFlags flags_;
  std::ostringstream out_;
};

TEST_F(JournalRedactTest, AMissingJournalIsNamedAndNothingIsMade) {
  flags_.files.push_back(Path("missing"));
  const absl::Status status = Run();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("missing")));
  EXPECT_FALSE(HasMade());
}

TEST_F(JournalRedactTest, ADamagedRecordIsNamedWithItsFile) {
  std::vector<std::string> records = Read(flags_.files[0]);
  records[2] = "nonsense";
  Write(flags_.files[0], records);
  const absl::Status status = Run();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat(flags_.files[0], ": record 3: a record is ")));
  EXPECT_TRUE(std::filesystem::is_empty(flags_.to));
}

TEST_F(JournalRedactTest, AJournalThatDecidesOtherwiseHereIsRefused) {
  std::vector<std::string> records = Read(flags_.files[0]);
  journal::Record last = *journal::Decode(records.back());
  ++std::get<journal::Stepped>(last).actions.at(0);
  records.back() = journal::Encode(last);
  Write(flags_.files[0], records);
  const absl::Status status = Run();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat(flags_.files[0], ": record ", records.size(), ": step 1: ")));
  EXPECT_TRUE(std::filesystem::is_empty(flags_.to));
}

TEST_F(JournalRedactTest, NoFileIsOverwritten) {
  ASSERT_TRUE(Run().ok());
  const std::vector<std::string> made = Read(Path("redacted/redacted-1.journal.gz"));
  const absl::Status status = Run();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("is not overwritten"));
  EXPECT_EQ(Read(Path("redacted/redacted-1.journal.gz")), made);
}

TEST_F(JournalRedactTest, TheResultReplaysWithoutNames) {
  const absl::Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(out_.str(), HasSubstr("Every decision is the same.\n"));
  const std::string made = Path("redacted/redacted-1.journal.gz");
  std::string bytes;
  for (const std::string& record : Read(made)) bytes += record;
  for (const char* word : {"acme", "jane", "train"}) EXPECT_THAT(bytes, Not(HasSubstr(word)));
  ReplayFlags replay;
  replay.file = made;
  std::ostringstream replayed;
  EXPECT_TRUE(RunReplay(replay, replayed).ok());
  EXPECT_THAT(replayed.str(), HasSubstr("Every decision is the same."));
}

TEST_F(JournalRedactTest, AnEndThatIsMissingIsTold) {
  const auto size = std::filesystem::file_size(flags_.files[0]);
  std::filesystem::resize_file(flags_.files[0], size - 12);
  const absl::Status status = Run();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(out_.str(), HasSubstr("acme.journal.gz is cut off"));
}

}  // namespace
}  // namespace fairlead::cmd
