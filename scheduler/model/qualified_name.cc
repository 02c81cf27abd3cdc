#include "scheduler/model/qualified_name.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace fairlead::model {
namespace {

constexpr size_t kLongestNamePart = 63;
constexpr size_t kLongestDomain = 253;

// Begins and ends with a letter or a digit, and has no other characters than these and `inner`.
bool IsName(absl::string_view text, absl::string_view inner) {
  return !text.empty() && absl::ascii_isalnum(static_cast<unsigned char>(text.front())) &&
         absl::ascii_isalnum(static_cast<unsigned char>(text.back())) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  inner.find(c) != absl::string_view::npos;
         });
}

bool IsDnsPart(absl::string_view text) {
  return IsName(text, "-") && std::none_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isupper(static_cast<unsigned char>(c));
         });
}

}  // namespace

bool IsDnsLabel(absl::string_view text) {
  return text.size() <= kLongestNamePart && IsDnsPart(text);
}

bool IsDnsSubdomain(absl::string_view text) {
  if (text.size() > kLongestDomain) return false;
  while (true) {
    const size_t dot = text.find('.');
    if (!IsDnsPart(text.substr(0, dot))) return false;
    if (dot == absl::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool IsLabelValue(absl::string_view value) {
  return value.empty() || (value.size() <= kLongestNamePart && IsName(value, "-_."));
}

bool IsQualifiedName(absl::string_view name) {
  const size_t slash = name.find('/');
  if (slash != absl::string_view::npos) {
    if (!IsDnsSubdomain(name.substr(0, slash))) return false;
    name.remove_prefix(slash + 1);
  }
  return !name.empty() && IsLabelValue(name);
}

bool IsExtendedResourceName(absl::string_view name) {
  const absl::string_view domain = name.substr(0, name.find('/'));
  const bool native = domain == "kubernetes.io" || absl::EndsWith(domain, ".kubernetes.io");
  return domain.size() < name.size() && IsQualifiedName(name) && !native &&
         !absl::StartsWith(name, "requests.");
}

}  // namespace fairlead::model
