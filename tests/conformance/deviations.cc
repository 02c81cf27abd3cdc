#include "tests/conformance/deviations.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace fairlead::conformance {
namespace {

absl::Status ReadWord(absl::string_view word, Deviation& out) {
  const std::vector<absl::string_view> sides = absl::StrSplit(word, absl::MaxSplits('=', 1));
  if (sides.size() != 2 || sides[0].empty() || sides[1].empty()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", word, "\" is no NAME=VALUE"));
  }
  std::optional<int64_t>* limit = sides[0] == "bindCountMax"       ? &out.limits.binds
                                  : sides[0] == "evictCountMax"    ? &out.limits.evictions
                                  : sides[0] == "pipelineCountMax" ? &out.limits.pipelines
                                                                   : nullptr;
  if (limit != nullptr) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(sides[1], &number) || number < 0) {
      return absl::InvalidArgumentError(absl::StrCat("\"", word, "\" has no number"));
    }
    *limit = number;
    return absl::OkStatus();
  }
  const std::vector<absl::string_view> place = absl::StrSplit(sides[1], absl::MaxSplits('@', 1));
  ExpectedPod& pod = out.pods[std::string(sides[0])];
  pod.status = std::string(place[0]);
  if (place.size() == 2) pod.node = std::string(place[1]);
  return absl::OkStatus();
}

absl::Status ReadLine(absl::string_view line, Deviations& out) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
  if (fields.size() < 2 || fields.size() > 3 || fields[0].empty() || fields[1].empty()) {
    return absl::InvalidArgumentError("needs a case, a TAB and the reason, and at most one more");
  }
  auto [it, added] = out.try_emplace(std::string(fields[0]));
  if (!added) return absl::InvalidArgumentError(absl::StrCat(fields[0], " comes twice"));
  it->second.why = std::string(fields[1]);
  if (fields.size() == 2) return absl::OkStatus();
  for (absl::string_view word : absl::StrSplit(fields[2], ' ', absl::SkipEmpty())) {
    FAIRLEAD_RETURN_IF_ERROR(ReadWord(word, it->second));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Deviations> ReadDeviations(absl::string_view text) {
  Deviations deviations;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripSuffix(line, "\r");
    if (line.empty() || line[0] == '#') continue;
    const absl::Status status = ReadLine(line, deviations);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("deviations, line ", number, ": ", status.message()));
    }
  }
  return deviations;
}

absl::Status ApplyDeviation(const Deviation& deviation, Expectations& expect) {
  for (const auto& [name, pod] : deviation.pods) {
    const auto expected = expect.pods.find(name);
    if (expected == expect.pods.end()) {
      return absl::NotFoundError(
          absl::StrCat("the deviation names pod ", name, ", of which the case says nothing"));
    }
    expected->second = pod;
  }
  if (deviation.limits.binds.has_value()) expect.limits.binds = deviation.limits.binds;
  if (deviation.limits.evictions.has_value()) expect.limits.evictions = deviation.limits.evictions;
  if (deviation.limits.pipelines.has_value()) expect.limits.pipelines = deviation.limits.pipelines;
  return absl::OkStatus();
}

}  // namespace fairlead::conformance
