#include "scheduler/state/device_version.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace fairlead::state {
namespace {

bool IsNumber(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

bool HasLeadingZero(absl::string_view text) { return text.size() > 1 && text.front() == '0'; }

bool IsIdentifier(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-';
  });
}

// Numbers are below words; numbers may be of any length.
int CompareIdentifiers(absl::string_view a, absl::string_view b) {
  const bool number = IsNumber(a);
  if (number != IsNumber(b)) return number ? -1 : 1;
  if (number && a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  const int order = a.compare(b);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

}  // namespace

std::optional<SemanticVersion> SemanticVersion::Parse(absl::string_view text) {
  SemanticVersion out;
  const auto cut = [&](char at) -> std::optional<absl::string_view> {
    const size_t place = text.find(at);
    if (place == absl::string_view::npos) return std::nullopt;
    const absl::string_view rest = text.substr(place + 1);
    text = text.substr(0, place);
    return rest;
  };
  if (const auto build = cut('+')) {
    for (const absl::string_view part : absl::StrSplit(*build, '.')) {
      if (!IsIdentifier(part)) return std::nullopt;
    }
  }
  if (const auto pre_release = cut('-')) {
    for (const absl::string_view part : absl::StrSplit(*pre_release, '.')) {
      if (!IsIdentifier(part) || (IsNumber(part) && HasLeadingZero(part))) return std::nullopt;
      out.pre_release.emplace_back(part);
    }
  }
  const std::vector<absl::string_view> numbers = absl::StrSplit(text, '.');
  uint64_t* const fields[] = {&out.major, &out.minor, &out.patch};
  if (numbers.size() != 3) return std::nullopt;
  for (size_t i = 0; i < 3; ++i) {
    if (!IsNumber(numbers[i]) || HasLeadingZero(numbers[i]) ||
        !absl::SimpleAtoi(numbers[i], fields[i])) {
      return std::nullopt;
    }
  }
  return out;
}

int Compare(const SemanticVersion& a, const SemanticVersion& b) {
  const uint64_t left[] = {a.major, a.minor, a.patch}, right[] = {b.major, b.minor, b.patch};
  for (size_t i = 0; i < 3; ++i) {
    if (left[i] != right[i]) return left[i] < right[i] ? -1 : 1;
  }
  if (a.pre_release.empty() != b.pre_release.empty()) return a.pre_release.empty() ? 1 : -1;
  for (size_t i = 0; i < std::min(a.pre_release.size(), b.pre_release.size()); ++i) {
    const int order = CompareIdentifiers(a.pre_release[i], b.pre_release[i]);
    if (order != 0) return order;
  }
  if (a.pre_release.size() == b.pre_release.size()) return 0;
  return a.pre_release.size() < b.pre_release.size() ? -1 : 1;
}

}  // namespace fairlead::state
