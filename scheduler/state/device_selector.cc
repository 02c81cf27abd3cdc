#include "scheduler/state/device_selector.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "scheduler/model/quantity.h"

namespace fairlead::state {
namespace {

constexpr size_t kMaxExpression = 10 * 1024;  // as the API server's

absl::Status NotUnderstood(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("selector not understood: ", text.substr(0, 200)));
}

bool IsNameChar(char c) { return absl::ascii_isalnum(c) || c == '_'; }

void SkipSpace(absl::string_view& text) { text = absl::StripLeadingAsciiWhitespace(text); }

bool Take(absl::string_view& text, absl::string_view token) {
  SkipSpace(text);
  return absl::ConsumePrefix(&text, token);
}

// A quoted string without escapes.
std::optional<std::string> TakeString(absl::string_view& text) {
  SkipSpace(text);
  if (text.empty() || (text.front() != '"' && text.front() != '\'')) return std::nullopt;
  const size_t end = text.find(text.front(), 1);
  if (end == absl::string_view::npos) return std::nullopt;
  std::string value(text.substr(1, end - 1));
  if (absl::StrContains(value, "\\")) return std::nullopt;
  text.remove_prefix(end + 1);
  return value;
}

std::optional<std::string> TakeName(absl::string_view& text) {
  size_t length = 0;
  while (length < text.size() && IsNameChar(text[length])) ++length;
  if (length == 0) return std::nullopt;
  std::string name(text.substr(0, length));
  text.remove_prefix(length);
  return name;
}

// ["domain"].name
bool TakeMember(absl::string_view& text, std::string& domain, std::string& name) {
  if (!Take(text, "[")) return false;
  std::optional<std::string> in = TakeString(text);
  if (!in.has_value() || !Take(text, "]") || !Take(text, ".")) return false;
  std::optional<std::string> id = TakeName(text);
  if (!id.has_value()) return false;
  domain = *std::move(in);
  name = *std::move(id);
  return true;
}

// The parts between && that are not within quotes or brackets; parentheses around a part go.
std::vector<absl::string_view> Conjuncts(absl::string_view text) {
  std::vector<absl::string_view> parts;
  int depth = 0;
  char quote = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      --depth;
    } else if (depth == 0 && c == '&' && i + 1 < text.size() && text[i + 1] == '&') {
      parts.push_back(text.substr(start, i - start));
      start = ++i + 1;
    }
  }
  parts.push_back(text.substr(start));
  return parts;
}

template <typename T, typename C>
bool Holds(C compare, const T& a, const T& b) {
  switch (compare) {
    case C::kEqual:
      return a == b;
    case C::kNotEqual:
      return a != b;
    case C::kLess:
      return a < b;
    case C::kLessEqual:
      return a <= b;
    case C::kGreater:
      return a > b;
    case C::kGreaterEqual:
      return a >= b;
  }
  return false;
}

// A name of the driver's own is written without its domain.
template <typename Map>
auto FindMember(const Map& map, absl::string_view driver, const std::string& domain,
                const std::string& name) {
  auto it = map.find(absl::StrCat(domain, "/", name));
  if (it == map.end() && domain == driver) it = map.find(name);
  return it;
}

}  // namespace

absl::StatusOr<DeviceSelector> DeviceSelector::Parse(absl::string_view expression) {
  if (expression.size() > kMaxExpression) return NotUnderstood("it is too long");
  DeviceSelector selector;
  for (absl::string_view part : Conjuncts(expression)) {
    FAIRLEAD_ASSIGN_OR_RETURN(Term term, ParseTerm(part));
    selector.terms_.push_back(std::move(term));
  }
  return selector;
}

absl::StatusOr<DeviceSelector::Term> DeviceSelector::ParseTerm(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const absl::string_view whole = text;
  // One pair of parentheses around a single term; what is nested deeper fails below.
  if (absl::StartsWith(text, "(") && absl::EndsWith(text, ")")) {
    text = absl::StripAsciiWhitespace(text.substr(1, text.size() - 2));
  }
  Term term;
  if (absl::ConsumePrefix(&text, "device.driver")) {
    term.subject = Subject::kDriver;
  } else if (absl::ConsumePrefix(&text, "device.attributes")) {
    term.subject = Subject::kAttribute;
    if (!TakeMember(text, term.domain, term.name)) return NotUnderstood(whole);
  } else if (absl::ConsumePrefix(&text, "device.capacity")) {
    term.subject = Subject::kCapacity;
    if (!TakeMember(text, term.domain, term.name)) return NotUnderstood(whole);
    if (!Take(text, ".compareTo(") || !Take(text, "quantity(")) return NotUnderstood(whole);
    const std::optional<std::string> amount = TakeString(text);
    if (!amount.has_value() || !Take(text, ")") || !Take(text, ")")) return NotUnderstood(whole);
    const absl::StatusOr<int64_t> units = model::ParseQuantity(*amount, 1);
    if (!units.ok()) return NotUnderstood(whole);
    term.value = *units;
  } else {
    return NotUnderstood(whole);
  }
  constexpr std::pair<const char*, Compare> kOperators[] = {
      {"==", Compare::kEqual},     {"!=", Compare::kNotEqual}, {">=", Compare::kGreaterEqual},
      {"<=", Compare::kLessEqual}, {">", Compare::kGreater},   {"<", Compare::kLess}};
  const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                   [&](const auto& entry) { return Take(text, entry.first); });
  if (found == std::end(kOperators)) return NotUnderstood(whole);
  term.compare = found->second;
  const bool ordered = term.compare != Compare::kEqual && term.compare != Compare::kNotEqual;
  SkipSpace(text);
  if (term.subject == Subject::kCapacity) {
    if (absl::StripAsciiWhitespace(text) != "0") return NotUnderstood(whole);
    return term;
  }
  int64_t number = 0;
  if (std::optional<std::string> literal = TakeString(text)) {
    if (ordered || !absl::StripAsciiWhitespace(text).empty()) return NotUnderstood(whole);
    term.value = *std::move(literal);
  } else if (term.subject == Subject::kDriver) {
    return NotUnderstood(whole);
  } else if (text == "true" || text == "false") {
    if (ordered) return NotUnderstood(whole);
    term.value = text == "true";
  } else if (absl::SimpleAtoi(text, &number)) {
    term.value = number;
  } else {
    return NotUnderstood(whole);
  }
  return term;
}

const model::DeviceAttribute* FindAttribute(absl::string_view driver, const model::Device& device,
                                            absl::string_view name) {
  const size_t slash = name.find('/');
  if (slash == absl::string_view::npos) return nullptr;
  const auto it = FindMember(device.attributes, driver, std::string(name.substr(0, slash)),
                             std::string(name.substr(slash + 1)));
  return it == device.attributes.end() ? nullptr : &it->second;
}

bool DeviceSelector::Matches(absl::string_view driver, const model::Device& device) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& term) {
    if (term.subject == Subject::kDriver) {
      return Holds(term.compare, std::string(driver), std::get<std::string>(term.value));
    }
    if (term.subject == Subject::kCapacity) {
      const auto it = FindMember(device.capacity, driver, term.domain, term.name);
      return it != device.capacity.end() &&
             Holds(term.compare, it->second, std::get<int64_t>(term.value));
    }
    const auto it = FindMember(device.attributes, driver, term.domain, term.name);
    return it != device.attributes.end() && it->second.value.index() == term.value.index() &&
           Holds(term.compare, it->second.value, term.value);
  });
}

}  // namespace fairlead::state
