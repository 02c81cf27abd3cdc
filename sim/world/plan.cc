#include "sim/world/plan.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace fairlead::sim::world {
namespace {

bool IsPlain(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) != 0 ||
         absl::string_view("-_./:,+").find(c) != absl::string_view::npos;
}

// Everything but plain characters as %XX.
std::string Escape(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    if (IsPlain(c)) {
      out.push_back(c);
    } else {
      absl::StrAppend(&out, "%", absl::BytesToHexString(absl::string_view(&c, 1)));
    }
  }
  return out;
}

std::string Unescape(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += absl::HexStringToBytes(text.substr(i + 1, 2));
      i += 2;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

absl::Status ReadHeader(absl::string_view line, Plan& plan) {
  for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    bool ok = true;
    if (field.first == "seed") ok = absl::SimpleAtoi(field.second, &plan.seed);
    if (field.first == "end_ms") ok = absl::SimpleAtoi(field.second, &plan.end_ms);
    if (field.first == "hook") plan.hook = field.second == "on";
    if (field.first == "paced") plan.paced = field.second == "on";
    if (field.first == "empties") plan.empties = field.second == "on";
    if (field.first == "sharded") plan.sharded = field.second == "on";
    if (field.first == "kai_status") plan.kai_status = field.second == "on";
    if (field.first == "max_nodes") ok = absl::SimpleAtoi(field.second, &plan.max_nodes);
    if (field.first == "max_usd") ok = absl::SimpleAtoi(field.second, &plan.max_usd_per_hour);
    if (field.first == "search") ok = absl::SimpleAtoi(field.second, &plan.max_search_work);
    if (!ok) return absl::InvalidArgumentError(absl::StrCat("not a number: ", word));
  }
  return absl::OkStatus();
}

absl::StatusOr<Operation> ReadOperation(absl::string_view line) {
  Operation out;
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  if (words.size() < 2 || !absl::SimpleAtoi(words[0], &out.at_ms)) {
    return absl::InvalidArgumentError("not \"MILLISECONDS VERB [KEY=VALUE...]\"");
  }
  out.verb = std::string(words[1]);
  for (size_t i = 2; i < words.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    out.With(field.first, Unescape(field.second));
  }
  return out;
}

}  // namespace

Operation& Operation::With(absl::string_view key, absl::string_view value) {
  arguments.emplace_back(key, value);
  return *this;
}

Operation& Operation::With(absl::string_view key, int64_t value) {
  return With(key, absl::string_view(absl::StrCat(value)));
}

std::string Operation::Text(absl::string_view key) const {
  for (const auto& [name, value] : arguments) {
    if (name == key) return value;
  }
  return "";
}

int64_t Operation::Number(absl::string_view key, int64_t otherwise) const {
  int64_t number = 0;
  return absl::SimpleAtoi(Text(key), &number) ? number : otherwise;
}

std::string PrintOperation(const Operation& operation) {
  std::string out = absl::StrCat(operation.at_ms, " ", operation.verb);
  for (const auto& [key, value] : operation.arguments) {
    absl::StrAppend(&out, " ", key, "=", Escape(value));
  }
  return out;
}

std::string PrintPlan(const Plan& plan) {
  std::string out =
      absl::StrCat("# seed=", plan.seed, " end_ms=", plan.end_ms,
                   " hook=", plan.hook ? "on" : "off", " max_nodes=", plan.max_nodes,
                   " max_usd=", plan.max_usd_per_hour, " paced=", plan.paced ? "on" : "off",
                   plan.empties ? " empties=on" : "", plan.kai_status ? " kai_status=on" : "",
                   plan.sharded ? " sharded=on" : "", " search=", plan.max_search_work, "\n");
  for (const Operation& operation : plan.operations) {
    absl::StrAppend(&out, PrintOperation(operation), "\n");
  }
  return out;
}

absl::StatusOr<Plan> ParsePlan(absl::string_view text) {
  Plan plan;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    const auto at_line = [&](const absl::Status& status) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", status.message()));
    };
    if (line.front() == '#') {
      const absl::Status header = ReadHeader(line.substr(1), plan);
      if (!header.ok()) return at_line(header);
      continue;
    }
    absl::StatusOr<Operation> operation = ReadOperation(line);
    if (!operation.ok()) return at_line(operation.status());
    plan.operations.push_back(*std::move(operation));
  }
  std::stable_sort(plan.operations.begin(), plan.operations.end(),
                   [](const Operation& a, const Operation& b) { return a.at_ms < b.at_ms; });
  return plan;
}

bool GroupsByOwners(const Plan& plan) {
  return std::any_of(plan.operations.begin(), plan.operations.end(),
                     [](const Operation& each) { return each.Text("grouping") == "owners"; });
}

}  // namespace fairlead::sim::world
