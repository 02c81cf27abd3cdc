#include "cmd/fairlead/bundle_redaction.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cmd/fairlead/log_redaction.h"
#include "journal/redaction.h"
#include "journal/redactor.h"

namespace fairlead::cmd {
namespace {

using Records = std::vector<std::vector<std::string>>;

class InMemory final : public journal::RedactionFiles {
 public:
  explicit InMemory(const Records* records) : records_(records) {}
  absl::Status ReadAll(const Take& take) override {
    for (size_t i = 0; i < records_->size(); ++i) {
      for (const std::string& record : (*records_)[i]) FAIRLEAD_RETURN_IF_ERROR(take(i, record));
    }
    return absl::OkStatus();
  }
  absl::Status Begin() override {
    made_.assign(records_->size(), {});
    return absl::OkStatus();
  }
  absl::Status Write(size_t journal, std::string record) override {
    made_[journal].push_back(std::move(record));
    return absl::OkStatus();
  }
  Records Take() { return std::move(made_); }

 private:
  const Records* records_;
  Records made_;
};

// The part with other names; in the first round, its names are collected.
BundlePart Redacted(const BundlePart& part, journal::Redactor& redactor) {
  BundlePart out = part;
  switch (part.form) {
    case BundlePart::Form::kList:
    case BundlePart::Form::kObject:
      out.json = redactor.ApiObject(part.json);
      break;
    case BundlePart::Form::kConfiguration:
      out.json = redactor.Configuration(part.json);
      break;
    case BundlePart::Form::kMetrics:
      out.text = redactor.Metrics(part.text);
      break;
    case BundlePart::Form::kLog:
      out.text = RedactedLog(part.text, redactor);
      break;
    case BundlePart::Form::kPlain:
      break;
  }
  return out;
}

// Nothing that still has names in it stays.
void LeaveOut(const absl::Status& why, BundleJournal& journal) {
  journal.records.clear();
  if (!journal.problem.empty()) return;
  journal.problem = absl::StrCat("it cannot be redacted: ", absl::StatusCodeToString(why.code()));
  journal.detail = std::string(why.message());
}
void LeaveOut(const absl::Status& why, BundlePart& part) {
  part.json = {};
  part.text.clear();
  if (!part.problem.empty()) return;
  part.problem = absl::StrCat("it cannot be redacted: ", absl::StatusCodeToString(why.code()));
  part.detail = std::string(why.message());
}

}  // namespace

void RedactBundle(const journal::ReadOptions& read, const std::vector<std::string>& kept,
                  std::vector<BundlePart>& parts, std::vector<BundleJournal>& journals) {
  std::vector<BundlePart> made;
  const auto round = [&](journal::Redactor& redactor) {
    made.clear();
    for (const BundlePart& part : parts) made.push_back(Redacted(part, redactor));
  };
  // All journals, or without one that cannot be redacted, or none: the words of the parts are the
  // same as those of the journals that are there.
  std::vector<std::vector<size_t>> choices = {{}};
  for (size_t i = 0; i < journals.size(); ++i) {
    if (!journals[i].problem.empty()) continue;
    choices[0].push_back(i);
    choices.push_back({i});
  }
  choices.emplace_back();
  absl::Status problem;
  for (const std::vector<size_t>& choice : choices) {
    Records records;
    for (const size_t i : choice) records.push_back(journals[i].records);
    InMemory files(&records);
    const auto redacted = journal::Redact({read, kept, round, round}, files);
    if (!redacted.ok()) {
      problem = redacted.status();
      continue;
    }
    Records done = files.Take();
    for (BundleJournal& journal : journals) journal.records.clear();
    for (size_t i = 0; i < choice.size(); ++i) journals[choice[i]].records = std::move(done[i]);
    for (BundleJournal& journal : journals) {
      if (journal.records.empty()) LeaveOut(problem, journal);
    }
    parts = std::move(made);
    return;
  }
  for (BundleJournal& journal : journals) LeaveOut(problem, journal);
  for (BundlePart& part : parts) LeaveOut(problem, part);
}

}  // namespace fairlead::cmd
