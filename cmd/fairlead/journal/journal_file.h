// Journals as files: gzip of a first line and of records (journal/record.h), each with its length
// and a checksum in front.
//
// A file that is cut off (the process was killed, the disk is full) is readable up to there.
//
// Ownership: as said. Thread-safety: Add() from one thread; a thread of its own compresses and
// writes, so that the caller never waits for a disk. A reader is of one thread. Complexity:
// O(bytes).
#pragma once

#include <zlib.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fairlead::cmd {

struct JournalOptions {
  int64_t file_bytes_max = int64_t{512} << 20;  // compressed; the journal ends there
  size_t pending_bytes_max = size_t{64} << 20;  // not compressed yet; beyond it the journal ends
  size_t files_max = 4;                         // in the folder; the oldest go
};

class JournalFile {
 public:
  // A new file "fairlead-TIME.journal.gz" in the folder, which is made if it is missing.
  // InvalidArgument with the path and the system's reason. `ended` is told once, by the thread that
  // writes, if the journal ends before its owner.
  static absl::StatusOr<std::unique_ptr<JournalFile>> Create(
      const std::string& folder, absl::Time now, const JournalOptions& options,
      std::function<void(const std::string& why)> ended);
  // Writes what was added, and closes the file.
  ~JournalFile();
  JournalFile(const JournalFile&) = delete;
  JournalFile& operator=(const JournalFile&) = delete;

  void Add(std::string record);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  JournalFile(std::string path, gzFile file, const JournalOptions& options,
              std::function<void(const std::string& why)> ended);
  void Run();
  // Empty: it was written. Else why the journal ends.
  std::string Write(const std::vector<std::string>& records);

  const std::string path_;
  const gzFile file_;
  const JournalOptions options_;
  const std::function<void(const std::string& why)> ended_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> pending_;
  size_t pending_bytes_ = 0;
  bool overflown_ = false, stopping_ = false;
  std::thread thread_;
};

class JournalReader {
 public:
  // InvalidArgument if the file cannot be read, or is no journal.
  static absl::StatusOr<std::unique_ptr<JournalReader>> Open(const std::string& path);
  ~JournalReader();
  JournalReader(const JournalReader&) = delete;
  JournalReader& operator=(const JournalReader&) = delete;

  // The next record; none: the end. DataLoss: the file is damaged from here on.
  absl::StatusOr<std::optional<std::string>> Next();
  // The end came in the middle of a record, or of the compressed file.
  [[nodiscard]] bool cut_off() const { return cut_off_; }
  // Bytes of the file that were read.
  [[nodiscard]] int64_t position() const { return gzoffset(file_); }

 private:
  JournalReader(std::string path, gzFile file) : path_(std::move(path)), file_(file) {}
  // False: fewer bytes are left.
  bool ReadExactly(char* to, size_t bytes);

  const std::string path_;
  const gzFile file_;
  bool cut_off_ = false;
};

// For the flag --journal: the journals of a folder, oldest first (their names have the time), or
// the one that `path` is. InvalidArgument: there is none.
absl::StatusOr<std::vector<std::string>> JournalsAt(const std::string& path);

// Bytes on disk of those that are there.
int64_t BytesOf(const std::vector<std::string>& paths);

// Gives the records of all journals in their order, until an error, which gets the path and the
// number of the record. `at`, if it is not null, is told how many bytes of the files were read.
// Returns the paths of those whose end is missing.
absl::StatusOr<std::set<std::string>> ReadJournals(
    const std::vector<std::string>& paths,
    const std::function<absl::Status(size_t journal, absl::string_view record)>& take,
    const std::function<void(int64_t bytes)>& at = nullptr);

// The content of a journal of these records, not compressed.
std::string JournalBytes(const std::vector<std::string>& records);

// A journal that is written at once, by its caller; of any size.
class JournalWriter {
 public:
  // Makes the file, or makes it empty. InvalidArgument with the path and the system's reason.
  static absl::StatusOr<std::unique_ptr<JournalWriter>> Create(const std::string& path);
  ~JournalWriter();
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  // ResourceExhausted with the path and the system's reason.
  absl::Status Add(absl::string_view record);
  absl::Status Close();

 private:
  JournalWriter(std::string path, gzFile file) : path_(std::move(path)), file_(file) {}
  absl::Status Failed(const char* reason);

  const std::string path_;
  gzFile file_;  // null: closed
};

}  // namespace fairlead::cmd
