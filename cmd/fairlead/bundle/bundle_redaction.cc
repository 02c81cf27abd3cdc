#include "cmd/fairlead/bundle/bundle_redaction.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cmd/fairlead/logs/log_redaction.h"
#include "journal/records_in_memory.h"
#include "journal/redactor.h"

namespace fairlead::cmd {
namespace {

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

// Why a part or a journal is left out, unless it has a reason already.
template <typename T>
void SetProblem(const absl::Status& why, T& left_out) {
  if (!left_out.problem.empty()) return;
  left_out.problem = absl::StrCat("it cannot be redacted: ", absl::StatusCodeToString(why.code()));
  left_out.detail = std::string(why.message());
}

// Nothing that still has names in it stays.
void LeaveOut(const absl::Status& why, BundleJournal& journal) {
  journal.records.clear();
  SetProblem(why, journal);
}
void LeaveOut(const absl::Status& why, BundlePart& part) {
  part.json = {};
  part.text.clear();
  SetProblem(why, part);
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
    std::vector<const std::vector<std::string>*> records;
    records.reserve(choice.size());
    for (const size_t i : choice) records.push_back(&journals[i].records);
    journal::RecordsInMemory files(std::move(records));
    const auto redacted = journal::Redact({read, kept, round, round}, files);
    if (!redacted.ok()) {
      problem = redacted.status();
      continue;
    }
    for (BundleJournal& journal : journals) journal.records.clear();
    for (size_t i = 0; i < choice.size(); ++i) {
      journals[choice[i]].records = std::move(files.redacted()[i]);
    }
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
