#include "journal/renaming.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace fairlead::journal {
namespace {

constexpr absl::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyz";
constexpr size_t kLongestPort = 5;

bool IsOfWord(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || absl::ascii_isalnum(byte);
}

bool IsNumber(absl::string_view word) {
  return std::all_of(word.begin(), word.end(),
                     [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
}

// `number` in `width` letters, in the order of numbers.
std::string Numbered(size_t number, size_t width) {
  std::string text(width, '0');
  for (size_t i = width; i > 0; --i, number /= kLetters.size()) {
    text[i - 1] = kLetters[number % kLetters.size()];
  }
  return text;
}

size_t WidthFor(size_t count) {
  size_t width = 1;
  for (size_t most = kLetters.size(); most < count; most *= kLetters.size()) ++width;
  return width;
}

}  // namespace

std::vector<TextPart> PartsOf(absl::string_view text) {
  std::vector<TextPart> parts;
  size_t begin = 0;
  while (begin < text.size()) {
    const bool is_word = IsOfWord(text[begin]);
    size_t end = begin + 1;
    while (end < text.size() && IsOfWord(text[end]) == is_word) ++end;
    parts.push_back({text.substr(begin, end - begin), is_word});
    begin = end;
  }
  return parts;
}

std::string BetweenWords(absl::string_view low, absl::string_view high) {
  const auto suits = [&](const std::string& base) {
    return absl::string_view(base) > low &&
           (high.empty() || (absl::string_view(base) < high && !absl::StartsWith(high, base)));
  };
  for (size_t same = 0; same <= low.size(); ++same) {
    for (const char c : kLetters) {
      std::string base = absl::StrCat(low.substr(0, same), absl::string_view(&c, 1));
      if (suits(base)) return base;
    }
  }
  return "";
}

Renaming::Renaming(const std::vector<std::string>& fixed)
    : fixed_(fixed.begin(), fixed.end()), bounds_(fixed.begin(), fixed.end()) {}

bool Renaming::IsFixed(const TextPart& part, absl::string_view before) const {
  if (fixed_.contains(part.text)) return true;
  // A port.
  return absl::EndsWith(before, ":") && part.text.size() <= kLongestPort && IsNumber(part.text);
}

void Renaming::Collect(absl::string_view text) {
  absl::string_view before;
  for (const TextPart& part : PartsOf(text)) {
    if (part.is_word && !IsFixed(part, before)) collected_.insert(std::string(part.text));
    before = part.text;
  }
}

void Renaming::Assign() {
  std::vector<std::string> words(collected_.begin(), collected_.end());
  std::sort(words.begin(), words.end());
  auto word = words.begin();
  std::string low;
  const auto fill = [&](absl::string_view high) {
    const auto begin = word;
    while (word != words.end() && (high.empty() || absl::string_view(*word) < high)) ++word;
    const auto count = static_cast<size_t>(word - begin);
    if (count == 0) return;
    const size_t width = WidthFor(count);
    // A name of its own for each, which is no word that was collected.
    std::string base = BetweenWords(low, high);
    for (bool is_new = false; !is_new; base += is_new ? "" : "x") {
      is_new = true;
      for (size_t i = 0; i < count && is_new; ++i) {
        is_new = !collected_.contains(base + Numbered(i, width));
      }
    }
    for (size_t i = 0; i < count; ++i) {
      renamed_[begin[i]] = base + Numbered(i, width);
      used_.insert(renamed_[begin[i]]);
    }
  };
  for (const std::string& bound : bounds_) {
    fill(bound);
    low = bound;
  }
  fill("");
}

bool Renaming::Of(absl::string_view text, std::string& out) const {
  out.clear();
  absl::string_view before;
  for (const TextPart& part : PartsOf(text)) {
    if (part.is_word && !IsFixed(part, before)) {
      const auto found = renamed_.find(part.text);
      if (found == renamed_.end()) return false;
      absl::StrAppend(&out, found->second);
    } else {
      absl::StrAppend(&out, part.text);
    }
    before = part.text;
  }
  return true;
}

bool Renaming::Override(absl::string_view word, absl::string_view other) {
  if (fixed_.contains(other) || !used_.insert(std::string(other)).second) return false;
  renamed_[std::string(word)] = std::string(other);
  return true;
}

}  // namespace fairlead::journal
