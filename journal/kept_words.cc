#include "journal/kept_words.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "journal/kept_lists.h"
#include "journal/public_hardware.h"
#include "journal/renaming.h"
#include "scheduler/framework/known_plugins.h"
#include "scheduler/model/instance_facts.h"
#include "scheduler/plugins/registry.h"
#include "scheduler/verdict/verdict.h"

namespace fairlead::journal {
namespace {

constexpr size_t kLongestAmount = 32;

absl::flat_hash_set<std::string> SetOf(absl::string_view list) {
  return absl::StrSplit(list, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

// "mig-1g.5gb" and "1g.5gb.me", "hugepages-2Mi": names with amounts in them.
bool IsSizedName(absl::string_view text) {
  for (const absl::string_view prefix : {"nvidia.com/mig-", "amd.com/mig-", "hugepages-", ""}) {
    if (!absl::StartsWith(text, prefix)) continue;
    const std::vector<absl::string_view> parts =
        absl::StrSplit(text.substr(prefix.size()), absl::ByAnyChar(".+"));
    return !text.empty() && std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
      if (part == "me" || part == "gfx") return true;
      size_t digits = 0;
      while (digits < part.size() &&
             absl::ascii_isdigit(static_cast<unsigned char>(part[digits]))) {
        ++digits;
      }
      const absl::string_view unit = part.substr(digits);
      return digits > 0 && digits <= 3 &&
             (unit == "g" || unit == "gb" || unit == "c" || unit == "Mi" || unit == "Gi");
    });
  }
  return false;
}

}  // namespace

KeptWords::KeptWords(const std::vector<std::string>& more) : words_(more.begin(), more.end()) {
  for (const absl::string_view list : {kKeys, kWords}) words_.merge(SetOf(list));
  for (int i = 0; i < verdict::kCodeCount; ++i) {
    words_.insert(std::string(verdict::CodeName(static_cast<verdict::Code>(i))));
  }
  for (const std::string& plugin : framework::BuiltInPluginNames()) words_.insert(plugin);
  for (const std::string& plugin : plugins::BuiltIn()->Names()) words_.insert(plugin);
}

bool KeptWords::Has(absl::string_view text) const {
  return words_.contains(text) || IsSizedName(text);
}

void KeptWords::AddHardware(absl::string_view text) {
  if (!IsPublicHardware(text)) return;
  words_.insert(std::string(text));
  for (const TextPart& part : PartsOf(text)) {
    if (part.is_word) hardware_.insert(absl::AsciiStrToUpper(part.text));
  }
}

void KeptWords::AddInstanceType(absl::string_view name) {
  if (name.empty() || !types_.insert(std::string(name)).second) return;
  if (!IsPublicInstanceType(name)) return;
  words_.insert(std::string(name));
  const std::string family = model::InstanceFamily(name);
  words_.insert(absl::AsciiStrToLower(family));
  words_.insert(family);
}

bool KeptWords::IsHardware(absl::string_view text) const {
  const std::vector<TextPart> parts = PartsOf(text);
  return std::all_of(parts.begin(), parts.end(), [&](const TextPart& part) {
    return !part.is_word || hardware_.contains(absl::AsciiStrToUpper(part.text));
  });
}

bool KeptWords::IsAmountKey(absl::string_view key) const {
  static const auto& keys = *new auto(SetOf(kAmountKeys));
  return keys.contains(key) || number_keys_.contains(key);
}

bool KeptWords::IsHardwareKey(absl::string_view key) {
  static const auto& keys = *new auto(SetOf(kHardwareKeys));
  return keys.contains(key);
}

bool KeptWords::IsConfigurationField(absl::string_view name) {
  static const auto& fields = *new auto(SetOf(kConfigurationFields));
  return fields.contains(name) || absl::c_linear_search(framework::kPointNames, name);
}

bool KeptWords::IsGroupingField(absl::string_view name) {
  static const auto& fields = *new auto(SetOf(kGroupingFields));
  return fields.contains(name);
}

bool KeptWords::IsApiField(absl::string_view name) {
  static const auto& fields = *new auto(SetOf(kApiFields));
  return fields.contains(name);
}

bool KeptWords::IsAmount(absl::string_view text) {
  if (text == "true" || text == "false") return true;
  if (text.empty() || text.size() > kLongestAmount) return false;
  // An address is none; a time has a date in front.
  if (std::count(text.begin(), text.end(), '.') > 1) return false;
  if (absl::StrContains(text, ":") && (text.size() < 20 || text[4] != '-')) return false;
  // Numbers, with units of at most two letters, and what is between the parts of a time.
  size_t letters = 0;
  bool has_digit = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isdigit(byte)) {
      has_digit = true;
      letters = 0;
    } else if (absl::ascii_isalpha(byte)) {
      if (++letters > 2 || !has_digit) return false;
    } else if (!absl::StrContains("+-.,:%* /", absl::string_view(&c, 1))) {
      return false;
    }
  }
  return has_digit;
}

std::vector<std::string> FixedWords() {
  // "default" and others begin names that are kept, which have a place among the renamed ones.
  std::vector<std::string> words = {"default", "fl", "gpu", "http", "https", "kai",
                                    "kube",    "pg", "set", "tcp",  "unix"};
  for (char digit = '0'; digit <= '9'; ++digit) words.emplace_back(1, digit);
  return words;
}

}  // namespace fairlead::journal
