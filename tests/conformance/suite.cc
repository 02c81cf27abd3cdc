#include "tests/conformance/suite.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tests/conformance/case_runner.h"
#include "tests/conformance/isolate.h"
#include "tests/conformance/kai_faults.h"
#include "tests/conformance/queue_tables.h"
#include "tests/conformance/scheduling_case.h"

namespace fairlead::conformance {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> FilesOf(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<std::vector<Json>> ReadCases(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  if (!in) return absl::UnavailableError("cannot be read");
  FAIRLEAD_ASSIGN_OR_RETURN(Json root, ParseJson(text.str()));
  if (root.type != Json::Type::kArray) {
    return absl::InvalidArgumentError("not an array of cases");
  }
  return std::move(root.items);
}

struct Findings {
  std::vector<std::string> differences, log;
  std::string kai_fault = {};  // of a case that differs
};

Findings FromStatus(const absl::StatusOr<std::vector<std::string>>& differences) {
  if (differences.ok()) return {*differences, {}};
  return {{absl::StrCat("malformed case: ", differences.status().message())}, {}};
}

Findings RunCase(const Json& json, const SuiteOptions& options, const Deviation* deviation) {
  if (IsFairShareCase(json)) return FromStatus(RunFairShareCase(json));
  if (IsQueueCheckCase(json)) return FromStatus(RunQueueCheckCase(json));
  if (json.Find("objects") == nullptr) {
    return {{"malformed case: neither objects, operation nor check: of no known form"}, {}};
  }
  absl::StatusOr<SchedulingCase> test = ReadSchedulingCase(json);
  if (!test.ok()) return FromStatus(test.status());
  if (deviation != nullptr) {
    const absl::Status applied = ApplyDeviation(*deviation, test->expect);
    if (!applied.ok()) return FromStatus(applied);
  }
  CaseReport report = RunSchedulingCase(*test, options.run_session);
  Findings findings{std::move(report.differences), std::move(report.log)};
  if (findings.differences.empty() || deviation != nullptr) return findings;
  const std::string fault = KaiFaultIn(json);
  if (fault.empty()) return findings;
  const std::vector<std::string> problems = PlacementProblems(json, report.pods);
  if (problems.empty()) {
    findings.kai_fault = fault;
  } else {
    findings.differences.insert(findings.differences.end(), problems.begin(), problems.end());
  }
  return findings;
}

// The pipe's protocol is one line per text.
std::string OneLine(absl::string_view text) {
  std::string line;
  for (const char c : text) line += c == '\n' || c == '\r' ? ' ' : c;
  return line;
}

std::string Pack(const Findings& findings) {
  std::string text;
  for (const std::string& line : findings.differences)
    absl::StrAppend(&text, "d", OneLine(line), "\n");
  for (const std::string& line : findings.log) absl::StrAppend(&text, "l", OneLine(line), "\n");
  if (!findings.kai_fault.empty()) absl::StrAppend(&text, "k", OneLine(findings.kai_fault), "\n");
  return text;
}

Findings Unpack(absl::string_view text) {
  Findings findings;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line[0] == 'k') {
      findings.kai_fault = std::string(line.substr(1));
      continue;
    }
    auto& list = line[0] == 'd' ? findings.differences : findings.log;
    list.emplace_back(line.substr(1));
  }
  return findings;
}

Findings RunSafely(const Json& json, const SuiteOptions& options, const Deviation* deviation) {
  if (!options.isolate) return RunCase(json, options, deviation);
  const absl::StatusOr<std::string> packed =
      RunIsolated(options.case_limit, [&] { return Pack(RunCase(json, options, deviation)); });
  if (!packed.ok()) return {{std::string(packed.status().message())}, {}};
  return Unpack(*packed);
}

class Suite {
 public:
  Suite(const SuiteOptions& options, SuiteResult& out) : options_(options), out_(out) {}

  void RunFile(const fs::path& file) {
    const std::string name = file.filename().string();
    const absl::StatusOr<std::vector<Json>> cases = ReadCases(file);
    if (!cases.ok()) {
      CaseResult& result = out_.cases.emplace_back();
      result.id = result.file = name;
      result.differences = {absl::StrCat(file.string(), ": ", cases.status().message())};
      return;
    }
    for (size_t i = 0; i < cases->size(); ++i) RunOne(name, i, (*cases)[i]);
  }

 private:
  std::string IdOf(const std::string& file, size_t index, const Json& json) {
    std::string id = json.TextAt({"source"});
    if (id.empty()) id = absl::StrCat(file, "[", index, "]");
    if (IsFairShareCase(json) || IsQueueCheckCase(json)) {
      absl::StrAppend(&id, " ", json.TextAt({"name"}));
    }
    const int64_t times = ++seen_[id];
    return times == 1 ? id : absl::StrCat(id, " [", times, "]");
  }

  void RunOne(const std::string& file, size_t index, const Json& json) {
    CaseResult result;
    result.id = IdOf(file, index, json);
    result.name = json.TextAt({"name"});
    result.file = file;
    const bool wanted = absl::StrContains(result.id, options_.filter) ||
                        absl::StrContains(result.name, options_.filter) ||
                        absl::StrContains(result.file, options_.filter);
    if (!wanted) return;
    Findings findings = RunSafely(json, options_, nullptr);
    const auto listed = options_.deviations.find(result.id);
    const bool deviates = listed != options_.deviations.end();
    if (deviates) result.deviation = listed->second.why;
    if (findings.differences.empty()) {
      result.outcome = Outcome::kPassed;
      if (deviates) out_.needless_deviations.push_back(result.id);
    } else if (deviates) {
      const std::vector<std::string> from_kai = std::move(findings.differences);
      findings = RunSafely(json, options_, &listed->second);
      if (findings.differences.empty()) {
        result.outcome = Outcome::kDeviates;
        findings.differences = from_kai;
      }
    }
    if (result.outcome == Outcome::kFailed && !deviates && !findings.kai_fault.empty()) {
      result.outcome = Outcome::kKaiFault;
      result.deviation = std::move(findings.kai_fault);
    }
    result.differences = std::move(findings.differences);
    result.log = std::move(findings.log);
    out_.cases.push_back(std::move(result));
  }

  const SuiteOptions& options_;
  SuiteResult& out_;
  std::map<std::string, int64_t> seen_;
};

const char* OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kDeviates:
      return "deviates";
    case Outcome::kKaiFault:
      return "kai-fault";
  }
  return "";
}

Json Number(int64_t value) {
  Json json;
  json.type = Json::Type::kNumber;
  json.text = absl::StrCat(value);
  return json;
}

void AppendCounts(const SuiteResult& result, std::string& out) {
  std::map<std::string, std::pair<int64_t, int64_t>> files;  // passed, all
  for (const CaseResult& one : result.cases) {
    auto& [passed, all] = files[one.file];
    if (one.outcome == Outcome::kPassed) ++passed;
    ++all;
  }
  for (const auto& [file, counts] : files) {
    absl::StrAppend(&out, "  ", file, ": ", counts.first, " of ", counts.second, "\n");
  }
}

}  // namespace

int64_t SuiteResult::Count(Outcome outcome) const {
  return std::count_if(cases.begin(), cases.end(),
                       [outcome](const CaseResult& one) { return one.outcome == outcome; });
}

SuiteResult RunSuite(const std::vector<std::string>& paths, const SuiteOptions& options) {
  SuiteResult result;
  Suite suite(options, result);
  for (const std::string& path : paths) {
    if (!fs::exists(path)) {
      result.skipped.push_back(path);
      continue;
    }
    for (const fs::path& file : FilesOf(path)) suite.RunFile(file);
  }
  return result;
}

std::string ToJson(const SuiteResult& result) {
  Json root = Json::Object();
  root.Member("passed") = Number(result.Count(Outcome::kPassed));
  root.Member("failed") = Number(result.Count(Outcome::kFailed));
  root.Member("deviating") = Number(result.Count(Outcome::kDeviates));
  root.Member("kaiFaults") = Number(result.Count(Outcome::kKaiFault));
  Json cases = Json::Object();
  for (const CaseResult& one : result.cases) {
    Json row = Json::Object();
    row.Member("result") = Json::String(OutcomeName(one.outcome));
    row.Member("name") = Json::String(one.name);
    row.Member("file") = Json::String(one.file);
    Json& differences = row.Member("differences");
    differences.type = Json::Type::kArray;
    for (const std::string& line : one.differences) {
      differences.items.push_back(Json::String(line));
    }
    if (!one.deviation.empty()) row.Member("deviation") = Json::String(one.deviation);
    // Ids are unique: no search for the member.
    cases.members.emplace_back(one.id, std::move(row));
  }
  root.Member("cases") = std::move(cases);
  return ToText(root) + "\n";
}

std::string ToText(const SuiteResult& result, bool verbose) {
  std::string out;
  for (const CaseResult& one : result.cases) {
    if (one.outcome == Outcome::kFailed) {
      absl::StrAppend(&out, "FAILED ", one.id, "\n  ", one.file, ": ", one.name, "\n");
      for (const std::string& line : one.differences) absl::StrAppend(&out, "    ", line, "\n");
    } else if (verbose) {
      absl::StrAppend(&out, OutcomeName(one.outcome), " ", one.id, "\n");
    }
    if (one.outcome == Outcome::kFailed || verbose) {
      for (const std::string& line : one.log) absl::StrAppend(&out, "      . ", line, "\n");
    }
  }
  for (const CaseResult& one : result.cases) {
    if (one.outcome != Outcome::kDeviates) continue;
    absl::StrAppend(&out, "deviates by decision: ", one.id, "\n    ", one.deviation, "\n");
    for (const std::string& line : one.differences) absl::StrAppend(&out, "    ", line, "\n");
  }
  for (const CaseResult& one : result.cases) {
    if (one.outcome != Outcome::kKaiFault) continue;
    absl::StrAppend(&out, "a fault of KAI's, not copied: ", one.id, "\n    ", one.file, ": ",
                    one.name, ": ", one.deviation, "\n");
  }
  for (const std::string& id : result.needless_deviations) {
    absl::StrAppend(&out, "listed as a deviation, but does as KAI does: ", id, "\n");
  }
  AppendCounts(result, out);
  for (const std::string& folder : result.skipped) {
    absl::StrAppend(&out, "skipped: there is no ", folder, "\n");
  }
  const int64_t deviating = result.Count(Outcome::kDeviates);
  if (deviating > 0) absl::StrAppend(&out, deviating, " deviate by decision\n");
  const int64_t faults = result.Count(Outcome::kKaiFault);
  if (faults > 0) absl::StrAppend(&out, faults, " differ by a fault of KAI's that a rule shows\n");
  absl::StrAppend(&out, result.Count(Outcome::kPassed), " passed, ", result.Count(Outcome::kFailed),
                  " failed\n");
  return out;
}

}  // namespace fairlead::conformance
