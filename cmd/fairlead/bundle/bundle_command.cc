// bundle: an archive for a report of a fault.
#include "cmd/fairlead/bundle/bundle_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cmd/fairlead/bundle/bundle.h"
#include "cmd/fairlead/bundle/bundle_reader.h"
#include "cmd/fairlead/bundle/bundle_redaction.h"
#include "cmd/fairlead/bundle/tar_writer.h"
#include "cmd/fairlead/cluster/version.h"
#include "cmd/fairlead/inspect/open_cluster.h"
#include "cmd/fairlead/inspect/show.h"
#include "cmd/fairlead/journal/journal_file.h"
#include "cmd/fairlead/logs/log_redaction.h"
#include "cmd/fairlead/terminal/progress.h"
#include "cmd/fairlead/terminal/table.h"
#include "core/decision_loop.h"
#include "journal/player.h"
#include "journal/record.h"
#include "journal/recorder.h"

namespace fairlead::cmd {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int64_t kLogBytesMax = 4 * kMebibyte;

absl::Status Exists(const std::string& path) {
  return absl::InvalidArgumentError(
      absl::StrCat("--output ", path, ": exists and is not overwritten; name another file"));
}

// Without passwords and keys.
absl::Status MakePublic(std::vector<std::string>& documents) {
  for (std::string& document : documents) {
    FAIRLEAD_ASSIGN_OR_RETURN(document, PublicDocument(document));
  }
  return absl::OkStatus();
}

// The present cluster as a journal: all that decisions read, and one decision.
absl::StatusOr<std::vector<std::string>> SnapshotRecords(kube::HttpTransport& transport,
                                                         const Settings& settings, absl::Time now,
                                                         const FetchUsage& fetch_usage) {
  const core::Options& options = settings.configuration.options;
  FAIRLEAD_ASSIGN_OR_RETURN(const ClusterObjects objects,
                            ReadCluster(transport, {&options}, now, fetch_usage));
  std::vector<std::string> records;
  journal::Recorder recorder(
      kVersion, [&records](std::string record) { records.push_back(std::move(record)); });
  FAIRLEAD_ASSIGN_OR_RETURN(const std::unique_ptr<core::DecisionLoop> loop,
                            core::DecisionLoop::Make(options, &settings.catalog));
  core::Options told = options;
  FAIRLEAD_RETURN_IF_ERROR(MakePublic(told.documents));
  recorder.Started(told, settings.catalog, /*continues=*/false);
  loop->SetInputLog(&recorder);
  for (const model::ClusterEvent& event : objects.events) loop->Apply(event);
  loop->RestoreUsage(objects.usage).IgnoreError();
  loop->Step(now);
  return records;
}

// Without passwords and keys of its configuration.
absl::StatusOr<std::vector<std::string>> RecordsOf(const std::string& path, int64_t bytes_max) {
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (size > bytes_max) {
    return absl::ResourceExhaustedError(
        absl::StrCat("it has ", size, " bytes, and none can be played in part; raise --max-size"));
  }
  std::vector<std::string> records;
  FAIRLEAD_ASSIGN_OR_RETURN(const std::unique_ptr<JournalReader> reader, JournalReader::Open(path));
  for (;;) {
    FAIRLEAD_ASSIGN_OR_RETURN(std::optional<std::string> record, reader->Next());
    if (!record.has_value()) return records;
    absl::StatusOr<journal::Record> read = journal::Decode(*record);
    if (auto* start = read.ok() ? std::get_if<journal::Start>(&*read) : nullptr; start != nullptr) {
      FAIRLEAD_RETURN_IF_ERROR(MakePublic(start->documents));
      record = journal::Encode(*read);
    }
    records.push_back(*std::move(record));
  }
}

BundleJournal JournalOf(std::string path, std::string what,
                        absl::StatusOr<std::vector<std::string>> records) {
  BundleJournal journal{std::move(path), std::move(what), {}};
  if (records.ok()) {
    journal.records = *std::move(records);
  } else {
    journal.problem = absl::StatusCodeToString(records.status().code());
    journal.detail = std::string(records.status().message());
  }
  return journal;
}

// The last lines of a log that was given.
absl::StatusOr<BundlePart> LogPart(const std::string& flag, const std::string& file,
                                   std::string path, std::string what) {
  std::ifstream in(file, std::ios::binary);
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(file, error);
  if (!in || !is_file) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", file, ": cannot be read"));
  }
  // One byte more tells whether a line was cut.
  const auto size = static_cast<int64_t>(std::filesystem::file_size(file, error));
  in.seekg(std::max<int64_t>(0, size - kLogBytesMax - 1));
  const std::string text(std::istreambuf_iterator<char>(in), {});
  BundlePart part{std::move(path), std::move(what), BundlePart::Form::kLog};
  part.text = std::string(LastLines(text, kLogBytesMax));
  return part;
}

void AddPart(const BundlePart& part, Bundle& bundle) {
  if (!part.problem.empty()) return bundle.Lack(part.what, part.problem, part.detail);
  switch (part.form) {
    case BundlePart::Form::kList:
      return bundle.AddList(part.path, part.json, part.what);
    case BundlePart::Form::kObject:
    case BundlePart::Form::kConfiguration:
      return bundle.Add(part.path, part.json.Pretty(), part.what);
    case BundlePart::Form::kMetrics:
    case BundlePart::Form::kLog:
    case BundlePart::Form::kPlain:
      return bundle.Add(part.path, part.text, part.what);
  }
}

// A file that is there already is never written to.
absl::Status WriteNewFile(const std::string& path, const std::string& content) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 && errno == EEXIST) return Exists(path);
  size_t written = 0;
  while (fd >= 0 && written < content.size()) {
    const ssize_t bytes = write(fd, content.data() + written, content.size() - written);
    if (bytes < 0 && errno != EINTR) break;
    if (bytes > 0) written += static_cast<size_t>(bytes);
  }
  const int reason = errno;
  if (fd >= 0 && close(fd) == 0 && written == content.size()) return absl::OkStatus();
  if (fd >= 0) std::remove(path.c_str());
  return absl::InvalidArgumentError(
      absl::StrCat("--output ", path, ": cannot be written: ", std::strerror(reason)));
}

std::string SummaryText(const Bundle& bundle, const std::string& path, size_t bytes) {
  Table table({"FILE", ">BYTES", ">ITEMS", "WHAT"});
  std::string missing;
  for (const Bundle::Row& row : bundle.rows()) {
    if (row.path.empty()) {
      absl::StrAppend(&missing, "  ", row.what, ": ", row.why,
                      row.detail.empty() ? "" : absl::StrCat(" (", row.detail, ")"), "\n");
      continue;
    }
    std::string items = row.items < 0 ? "" : absl::StrCat(row.items);
    if (row.left_out > 0) absl::StrAppend(&items, " of ", row.items + row.left_out);
    table.AddRow({row.path, absl::StrCat(row.bytes), items, row.what});
  }
  return absl::StrCat(
      table.Text(), missing.empty() ? "" : "\nLeft out:\n", missing, "\n", path, ": ", bytes,
      " bytes. ",
      bundle.redacted()
          ? "Names are replaced; numbers, times and sizes are as they are.\n"
          : "Names are as they are: do not publish it (without --no-redact they are replaced).\n");
}

// What was given as files. Errors are those of the command line.
struct GivenFiles {
  std::vector<BundlePart> logs;
  std::string journal;  // path; empty: none
};
absl::StatusOr<GivenFiles> ReadGiven(const BundleFlags& flags) {
  GivenFiles given;
  if (!flags.journal.empty()) {
    FAIRLEAD_ASSIGN_OR_RETURN(const std::vector<std::string> journals, JournalsAt(flags.journal));
    given.journal = journals.back();
  }
  for (const auto& [flag, file, path, what] :
       {std::tuple("--log", &flags.log, "log.txt", "the last lines of the log"),
        std::tuple("--audit-log", &flags.audit_log, "audit.jsonl",
                   "the last lines of the audit log")}) {
    if (file->empty()) continue;
    FAIRLEAD_ASSIGN_OR_RETURN(BundlePart part, LogPart(flag, *file, path, what));
    given.logs.push_back(std::move(part));
  }
  return given;
}

std::vector<BundlePart> ReadParts(const Opened& opened, const BundleFlags& flags,
                                  Progress& progress) {
  BundleScope scope;
  if (!flags.common.ns.empty()) scope.ns = flags.common.ns;
  scope.lease = opened.settings->configuration.leader_election.name;
  const auto& names = opened.settings->configuration.options.state.scheduler_names;
  scope.scheduler_names.insert(names.begin(), names.end());
  BundleReader reader(&opened.connection->transport(), scope);
  reader.OnProgress(
      [&](int64_t done, int64_t total) { progress.Show("reading the cluster", done, total); });
  return reader.ReadAll();
}

absl::Status AddJournal(const BundleJournal& journal, Bundle& bundle) {
  if (!journal.problem.empty()) {
    bundle.Lack(journal.what, journal.problem, journal.detail);
    return absl::OkStatus();
  }
  FAIRLEAD_ASSIGN_OR_RETURN(std::string bytes, Gzip(JournalBytes(journal.records)));
  bundle.Add(journal.path, std::move(bytes), journal.what);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunBundle(const BundleFlags& flags, std::ostream& out) {
  if (flags.max_mib < 1) return absl::InvalidArgumentError("--max-size: must be 1 or more");
  if (!flags.file.empty() && std::filesystem::exists(flags.file)) return Exists(flags.file);
  FAIRLEAD_ASSIGN_OR_RETURN(GivenFiles given, ReadGiven(flags));
  FAIRLEAD_ASSIGN_OR_RETURN(Opened opened,
                            Open(flags.common, /*has_wide=*/false, "fairlead-bundle"));
  const absl::Time now = opened.connection->clock().Now();
  const int64_t bytes_max = flags.max_mib * kMebibyte;
  Progress progress(&opened.connection->clock());
  std::vector<BundlePart> parts = ReadParts(opened, flags, progress);
  std::move(given.logs.begin(), given.logs.end(), std::back_inserter(parts));
  std::vector<BundleJournal> journals;
  journals.push_back(JournalOf("present.journal.gz",
                               "what decisions read now, and one decision: for replay",
                               SnapshotRecords(opened.connection->transport(), *opened.settings,
                                               now, FetchUsageOf(opened))));
  if (!given.journal.empty()) {
    journals.push_back(
        JournalOf("last.journal.gz", "the newest journal", RecordsOf(given.journal, bytes_max)));
  }
  Bundle bundle(now, bytes_max);
  bundle.Add("version.txt", absl::StrCat("fairlead ", kVersion, "\n"), "version of this program");
  if (flags.redact) {
    bundle.SetRedacted();
    RedactBundle(journal::Player::FromDocuments(flags.common.plugins),
                 flags.common.plugins->Names(), parts, journals);
  }
  for (const BundlePart& part : parts) AddPart(part, bundle);
  for (const BundleJournal& journal : journals) {
    FAIRLEAD_RETURN_IF_ERROR(AddJournal(journal, bundle));
  }
  progress.Clear();
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string archive, bundle.Archive());
  const std::string path =
      flags.file.empty()
          ? absl::StrCat("fairlead-bundle-",
                         absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()), ".tar.gz")
          : flags.file;
  FAIRLEAD_RETURN_IF_ERROR(WriteNewFile(path, archive));
  out << (opened.format == OutputFormat::kTable
              ? SummaryText(bundle, path, archive.size())
              : Render(bundle.Manifest(/*details=*/true).Set("archive", path), opened.format));
  return absl::OkStatus();
}

}  // namespace fairlead::cmd
