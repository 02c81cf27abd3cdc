// journal redact: journals without the names in them.
#include "cmd/fairlead/journal/journal_command.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/journal/journal_file.h"
#include "cmd/fairlead/terminal/progress.h"
#include "document/json.h"
#include "journal/player.h"
#include "journal/redaction.h"

namespace fairlead::cmd {
namespace {

// Journals as files. Those that are made have other names until all of them are whole.
class JournalsOnDisk final : public journal::RedactionFiles {
 public:
  JournalsOnDisk(std::vector<std::string> files, std::string folder, const Clock* clock)
      : files_(std::move(files)), folder_(std::move(folder)), progress_(clock) {}
  ~JournalsOnDisk() override {
    writers_.clear();
    for (size_t i = 0; i < files_.size(); ++i) std::remove(UnfinishedPath(i).c_str());
  }

  absl::Status ReadAll(const Take& take) override {
    ++reads_;
    return ReadFiles(files_, absl::StrCat("redacting, pass ", reads_), take);
  }
  absl::Status Begin() override {
    writers_.clear();
    for (size_t i = 0; i < files_.size(); ++i) {
      FAIRLEAD_ASSIGN_OR_RETURN(std::unique_ptr<JournalWriter> writer,
                                JournalWriter::Create(UnfinishedPath(i)));
      writers_.push_back(std::move(writer));
    }
    return absl::OkStatus();
  }
  absl::Status Write(size_t journal, std::string record) override {
    return writers_[journal]->Add(record);
  }

  // Plays what was made, and gives it its names.
  absl::Status Finish(const journal::ReadOptions& read) {
    std::vector<std::string> made;
    for (size_t i = 0; i < files_.size(); ++i) {
      FAIRLEAD_RETURN_IF_ERROR(writers_[i]->Close());
      made.push_back(UnfinishedPath(i));
    }
    journal::Player player(read);
    FAIRLEAD_RETURN_IF_ERROR(ReadFiles(
        made, "checking", [&](size_t, absl::string_view record) { return player.Play(record); }));
    if (player.difference().has_value()) {
      return absl::InternalError(
          absl::StrCat("step ", player.difference()->step, " of what was made decides otherwise"));
    }
    for (size_t i = 0; i < made.size(); ++i) {
      if (std::rename(made[i].c_str(), Path(i).c_str()) != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat(Path(i), ": cannot be made: ", std::strerror(errno)));
      }
    }
    progress_.Clear();
    return absl::OkStatus();
  }
  // Of the journals, those whose end is missing.
  [[nodiscard]] const std::set<std::string>& cut_off() const { return cut_off_; }
  // Names of files say something, too.
  [[nodiscard]] std::string Path(size_t journal) const {
    return absl::StrCat(folder_, "/redacted-", journal + 1, ".journal.gz");
  }

 private:
  [[nodiscard]] std::string UnfinishedPath(size_t journal) const {
    return absl::StrCat(Path(journal), ".unfinished");
  }
  absl::Status ReadFiles(const std::vector<std::string>& files, const std::string& what,
                         const Take& take) {
    const int64_t total = BytesOf(files);
    FAIRLEAD_ASSIGN_OR_RETURN(
        const std::set<std::string> cut_off,
        ReadJournals(files, take, [&](int64_t bytes) { progress_.Show(what, bytes, total); }));
    cut_off_.insert(cut_off.begin(), cut_off.end());
    return absl::OkStatus();
  }

  const std::vector<std::string> files_;
  const std::string folder_;
  Progress progress_;
  int reads_ = 0;
  std::set<std::string> cut_off_;
  std::vector<std::unique_ptr<JournalWriter>> writers_;
};

// Before anything is made: the journals can be opened, and the new files are new.
absl::Status CheckFiles(const JournalRedactFlags& flags, const std::vector<std::string>& made) {
  for (const std::string& file : flags.files) {
    FAIRLEAD_RETURN_IF_ERROR(JournalReader::Open(file).status());
  }
  for (const std::string& path : made) {
    if (std::filesystem::exists(path)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--to ", flags.to, ": ", path, " exists and is not overwritten; name another folder"));
    }
  }
  if (mkdir(flags.to.c_str(), 0750) != 0 && errno != EEXIST) {
    return absl::InvalidArgumentError(
        absl::StrCat("--to ", flags.to, ": cannot be made: ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

Json ListOf(const std::vector<std::string>& texts) {
  Json list = Json::Array();
  for (const std::string& text : texts) list.Add(Json::String(text));
  return list;
}

Json RedactionJson(const journal::RedactionTotals& totals, const std::vector<std::string>& made,
                   const std::vector<std::string>& cut_off) {
  Json json = Json::Object();
  json.Set("kind", "RedactedJournals").Set("records", Json::Int(totals.records));
  json.Set("steps", Json::Int(totals.steps)).Set("actions", Json::Int(totals.actions));
  json.Set("wordsReplaced", Json::Int(static_cast<int64_t>(totals.words)));
  return json.Set("files", ListOf(made)).Set("cutOff", ListOf(cut_off));
}

}  // namespace

absl::Status RunJournalRedact(const JournalRedactFlags& flags, std::ostream& out) {
  FAIRLEAD_RETURN_IF_ERROR(CheckTableOrJson(flags.output));
  const RealClock clock;
  JournalsOnDisk files(flags.files, flags.to, &clock);
  std::vector<std::string> made;
  for (size_t i = 0; i < flags.files.size(); ++i) made.push_back(files.Path(i));
  FAIRLEAD_RETURN_IF_ERROR(CheckFiles(flags, made));
  const journal::ReadOptions read = journal::Player::FromDocuments(flags.plugins);
  FAIRLEAD_ASSIGN_OR_RETURN(const journal::RedactionTotals totals,
                            journal::Redact({read, flags.plugins->Names()}, files));
  FAIRLEAD_RETURN_IF_ERROR(files.Finish(read));
  const std::vector<std::string> cut_off(files.cut_off().begin(), files.cut_off().end());
  if (flags.output == "json") {
    out << RedactionJson(totals, made, cut_off).Pretty();
    return absl::OkStatus();
  }
  out << totals.records << " records: " << totals.steps << " steps, " << totals.actions
      << " actions. Words replaced: " << totals.words << ".\n";
  for (const std::string& file : cut_off) {
    out << file << " is cut off: what comes before its end is redacted.\n";
  }
  out << "Every decision is the same.\n";
  for (const std::string& file : made) out << file << "\n";
  return absl::OkStatus();
}

}  // namespace fairlead::cmd
