#include "cmd/fairlead/journal/journal_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/hash.h"
#include "base/status_macros.h"

namespace fairlead::cmd {
namespace {

constexpr absl::string_view kFirstLine = "fairlead journal 1\n";
constexpr absl::string_view kPrefix = "fairlead-", kSuffix = ".journal.gz";
constexpr size_t kHeaderBytes = 8;  // length and checksum, little-endian
constexpr uint32_t kRecordMax = uint32_t{1} << 30;
constexpr unsigned kBuffer = 256 << 10;

uint32_t Checksum(absl::string_view record) {
  return static_cast<uint32_t>(StableHash().Add(record).value());
}

void PutNumber(uint32_t number, std::string& out) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(number >> shift));
}

uint32_t NumberAt(const char* bytes) {
  uint32_t number = 0;
  for (int i = 3; i >= 0; --i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}

absl::Status Failed(const std::string& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what, ": ", std::strerror(errno)));
}

// The length and the checksum before a record.
std::string HeaderOf(absl::string_view record) {
  std::string header;
  PutNumber(static_cast<uint32_t>(record.size()), header);
  PutNumber(Checksum(record), header);
  return header;
}

// The journals of the folder, oldest first: their names have the time.
std::vector<std::string> JournalsIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (absl::StartsWith(name, kPrefix) && absl::EndsWith(name, kSuffix)) {
      names.push_back(std::move(name));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JournalFile>> JournalFile::Create(
    const std::string& folder, absl::Time now, const JournalOptions& options,
    std::function<void(const std::string& why)> ended) {
  if (mkdir(folder.c_str(), 0750) != 0 && errno != EEXIST) {
    return Failed(folder, "cannot be made");
  }
  std::vector<std::string> former = JournalsIn(folder);
  while (former.size() >= std::max<size_t>(options.files_max, 1)) {
    unlink(absl::StrCat(folder, "/", former.front()).c_str());
    former.erase(former.begin());
  }
  const std::string path =
      absl::StrCat(folder, "/", kPrefix,
                   absl::FormatTime("%Y%m%dT%H%M%E3SZ", now, absl::UTCTimeZone()), kSuffix);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
  if (fd < 0) return Failed(path, "cannot be opened");
  const gzFile file = gzdopen(fd, "wb1");
  if (file == nullptr) {
    close(fd);
    return absl::InvalidArgumentError(absl::StrCat(path, ": no memory to compress with"));
  }
  return std::unique_ptr<JournalFile>(new JournalFile(path, file, options, std::move(ended)));
}

JournalFile::JournalFile(std::string path, gzFile file, const JournalOptions& options,
                         std::function<void(const std::string& why)> ended)
    : path_(std::move(path)), file_(file), options_(options), ended_(std::move(ended)) {
  gzbuffer(file_, kBuffer);
  thread_ = std::thread([this] { Run(); });
}

JournalFile::~JournalFile() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
  gzclose(file_);
}

void JournalFile::Add(std::string record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (overflown_) return;
  pending_bytes_ += record.size();
  if (pending_bytes_ > options_.pending_bytes_max) {
    // A journal with a hole cannot be played: it ends before it.
    overflown_ = true;
  } else {
    pending_.push_back(std::move(record));
  }
  changed_.notify_one();
}

void JournalFile::Run() {
  std::string end = gzwrite(file_, kFirstLine.data(), kFirstLine.size()) <= 0
                        ? "the first line cannot be written"
                        : "";
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !pending_.empty() || overflown_ || stopping_; });
    const std::vector<std::string> records = std::exchange(pending_, {});
    pending_bytes_ = 0;
    const bool overflown = overflown_, stopping = stopping_;
    lock.unlock();
    if (end.empty()) end = Write(records);
    if (end.empty() && overflown) {
      end = absl::StrCat("more than ", options_.pending_bytes_max, " bytes waited to be written");
    }
    lock.lock();
    if (!end.empty()) {
      overflown_ = true;
      pending_.clear();
      lock.unlock();
      if (ended_ != nullptr) ended_(end);
      return;
    }
    if (stopping && pending_.empty()) return;
  }
}

std::string JournalFile::Write(const std::vector<std::string>& records) {
  const auto failed = [this] {
    int code = Z_OK;  // the text has the system's reason already
    return absl::StrCat("cannot be written: ", gzerror(file_, &code));
  };
  for (const std::string& record : records) {
    if (record.size() > kRecordMax) return "a record is longer than 1 GiB";
    const std::string header = HeaderOf(record);
    const auto size = static_cast<unsigned>(record.size());
    if (gzwrite(file_, header.data(), kHeaderBytes) <= 0 ||
        (size > 0 && gzwrite(file_, record.data(), size) <= 0)) {
      return failed();
    }
  }
  // What a killed process leaves is readable.
  if (gzflush(file_, Z_SYNC_FLUSH) != Z_OK) return failed();
  if (gzoffset(file_) > options_.file_bytes_max) {
    return absl::StrCat("it has ", options_.file_bytes_max, " bytes");
  }
  return "";
}

absl::StatusOr<std::unique_ptr<JournalReader>> JournalReader::Open(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return Failed(path, "cannot be opened");
  gzbuffer(file, kBuffer);
  std::unique_ptr<JournalReader> reader(new JournalReader(path, file));
  std::array<char, kFirstLine.size()> line{};
  if (!reader->ReadExactly(line.data(), line.size()) ||
      absl::string_view(line.data(), line.size()) != kFirstLine) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is no journal of this version; `fairlead run --journal FOLDER` records one"));
  }
  return reader;
}

JournalReader::~JournalReader() { gzclose(file_); }

bool JournalReader::ReadExactly(char* to, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const int read = gzread(file_, to + done, static_cast<unsigned>(bytes - done));
    if (read <= 0) break;
    done += static_cast<size_t>(read);
  }
  if (done == bytes) return true;
  int code = Z_OK;
  gzerror(file_, &code);
  cut_off_ = done > 0 || code != Z_OK;
  return false;
}

absl::StatusOr<std::optional<std::string>> JournalReader::Next() {
  std::array<char, kHeaderBytes> header{};
  if (!ReadExactly(header.data(), header.size())) return std::nullopt;
  const uint32_t size = NumberAt(header.data()), checksum = NumberAt(header.data() + 4);
  if (size > kRecordMax) return absl::DataLossError(absl::StrCat(path_, ": is damaged"));
  std::string record(size, '\0');
  if (!ReadExactly(record.data(), size)) {
    cut_off_ = true;
    return std::nullopt;
  }
  if (Checksum(record) != checksum) {
    return absl::DataLossError(absl::StrCat(path_, ": is damaged: a record has another checksum"));
  }
  return std::make_optional(std::move(record));
}

absl::StatusOr<std::vector<std::string>> JournalsAt(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> paths;
  for (std::filesystem::directory_iterator it(path, error), end; it != end; it.increment(error)) {
    if (absl::EndsWith(it->path().filename().string(), kSuffix)) {
      paths.push_back(it->path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  if (!paths.empty()) return paths;
  return absl::InvalidArgumentError(
      absl::StrCat("--journal ", path, ": is no journal, and no folder of any (*", kSuffix, ")"));
}

int64_t BytesOf(const std::vector<std::string>& paths) {
  int64_t bytes = 0;
  for (const std::string& path : paths) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

absl::StatusOr<std::set<std::string>> ReadJournals(
    const std::vector<std::string>& paths,
    const std::function<absl::Status(size_t journal, absl::string_view record)>& take,
    const std::function<void(int64_t bytes)>& at) {
  std::set<std::string> cut_off;
  int64_t before = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::unique_ptr<JournalReader> reader,
                              JournalReader::Open(paths[i]));
    for (int64_t number = 1;; ++number) {
      FAIRLEAD_ASSIGN_OR_RETURN(const std::optional<std::string> record, reader->Next());
      if (!record.has_value()) break;
      if (const absl::Status taken = take(i, *record); !taken.ok()) {
        return absl::Status(taken.code(),
                            absl::StrCat(paths[i], ": record ", number, ": ", taken.message()));
      }
      if (at != nullptr) at(before + reader->position());
    }
    before += reader->position();
    if (reader->cut_off()) cut_off.insert(paths[i]);
  }
  return cut_off;
}

std::string JournalBytes(const std::vector<std::string>& records) {
  std::string bytes(kFirstLine);
  for (const std::string& record : records) absl::StrAppend(&bytes, HeaderOf(record), record);
  return bytes;
}

absl::StatusOr<std::unique_ptr<JournalWriter>> JournalWriter::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
  if (fd < 0) return cmd::Failed(path, "cannot be opened");
  const gzFile file = gzdopen(fd, "wb6");
  if (file == nullptr) {
    close(fd);
    return absl::InvalidArgumentError(absl::StrCat(path, ": no memory to compress with"));
  }
  std::unique_ptr<JournalWriter> writer(new JournalWriter(path, file));
  gzbuffer(file, kBuffer);
  if (gzwrite(file, kFirstLine.data(), kFirstLine.size()) <= 0) return writer->Failed(nullptr);
  return writer;
}

JournalWriter::~JournalWriter() {
  if (file_ != nullptr) gzclose(file_);
}

absl::Status JournalWriter::Failed(const char* reason) {
  int code = Z_OK;
  return absl::ResourceExhaustedError(absl::StrCat(
      path_, ": cannot be written: ", reason == nullptr ? gzerror(file_, &code) : reason));
}

absl::Status JournalWriter::Add(absl::string_view record) {
  if (record.size() > kRecordMax) return Failed("a record is longer than 1 GiB");
  const auto size = static_cast<unsigned>(record.size());
  if (gzwrite(file_, HeaderOf(record).data(), kHeaderBytes) <= 0 ||
      (size > 0 && gzwrite(file_, record.data(), size) <= 0)) {
    return Failed(nullptr);
  }
  return absl::OkStatus();
}

absl::Status JournalWriter::Close() {
  const int closed = gzclose(std::exchange(file_, nullptr));
  return closed == Z_OK ? absl::OkStatus() : Failed(std::strerror(errno));
}

}  // namespace fairlead::cmd
