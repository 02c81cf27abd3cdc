#include "journal/public_hardware.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "autoscale-hook/catalog/catalog.h"

namespace fairlead::journal {
namespace {

using Words = absl::flat_hash_set<std::string>;

Words WordsOf(absl::string_view text) { return absl::StrSplit(text, ' '); }

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }

// Takes the longest beginning of the text whose characters suit.
template <typename Suits>
absl::string_view Take(absl::string_view& text, const Suits& suits) {
  const auto end = std::find_if_not(text.begin(), text.end(), suits);
  const auto size = static_cast<size_t>(end - text.begin());
  const absl::string_view taken = text.substr(0, size);
  text.remove_prefix(size);
  return taken;
}

bool IsShortNumber(absl::string_view text) {
  return !text.empty() && text.size() <= 3 && std::all_of(text.begin(), text.end(), IsDigit);
}

// "24xlarge", "metal", "metal-48xl".
bool IsAwsSize(absl::string_view size) {
  static const Words& sizes = *new Words(WordsOf("nano micro small medium large xlarge metal"));
  absl::ConsumePrefix(&size, "metal-");
  absl::string_view rest = size;
  const absl::string_view count = Take(rest, IsDigit);
  if (count.empty()) return sizes.contains(size);
  return IsShortNumber(count) && (rest == "xlarge" || rest == "xl");
}

bool IsAwsType(absl::string_view text) {
  static const Words& series =
      *new Words(WordsOf("a c d dl f g h hpc i im inf is m mac p r t trn u u- vt x z"));
  const size_t dot = text.find('.');
  if (dot == absl::string_view::npos || !IsAwsSize(text.substr(dot + 1))) return false;
  absl::string_view family = text.substr(0, dot);
  const absl::string_view letters = Take(family, [](char c) { return IsLetter(c) || c == '-'; });
  if (!series.contains(letters)) return false;
  if (!IsShortNumber(Take(family, IsDigit))) return false;
  // "u-6tb1"
  if (absl::ConsumePrefix(&family, "tb")) return IsShortNumber(family);
  absl::string_view options = family;
  absl::ConsumePrefix(&options, "-");
  return options.size() <= 4 && std::all_of(options.begin(), options.end(), IsLetter);
}

bool IsGoogleType(absl::string_view text) {
  static const Words& series = *new Words(
      WordsOf("a2 a3 a4 a4x c2 c2d c3 c3d c4 c4a c4d ct5lp e2 f1 g2 g4 h3 m1 m2 m3 m4 n1 n2 n2d n4 "
              "t2a t2d z3"));
  static const Words& classes = *new Words(
      WordsOf("edgegpu highcpu highgpu highmem hypermem megagpu megamem standard ultragpu "
              "ultramem"));
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '-');
  if (parts.size() != 3 || !series.contains(parts[0]) || !classes.contains(parts[1])) return false;
  absl::string_view number = parts[2];
  absl::ConsumeSuffix(&number, "g");
  return IsShortNumber(number);
}

bool IsAzureType(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "Standard_")) return false;
  for (const absl::string_view part : absl::StrSplit(text, '_')) {
    absl::string_view rest = part;
    const size_t before = Take(rest, IsLetter).size();
    if (before > 2 || !IsShortNumber(Take(rest, IsDigit))) return false;
    if (rest.size() > 4 || !std::all_of(rest.begin(), rest.end(), IsLetter)) return false;
  }
  return true;
}

// Of the words of geography with which the text begins, the longest; 0: there is none. Azure puts
// them together ("westeurope").
size_t LongestPlace(absl::string_view text) {
  constexpr absl::string_view kPlaces[] = {
      "africa",  "ap",    "asia",         "australia", "brazil", "ca",    "canada",
      "central", "cn",    "east",         "eu",        "europe", "gov",   "il",
      "india",   "japan", "korea",        "me",        "mx",     "north", "northamerica",
      "sa",      "south", "southamerica", "uk",        "us",     "west"};
  size_t longest = 0;
  for (const absl::string_view place : kPlaces) {
    if (absl::StartsWith(text, place)) longest = std::max(longest, place.size());
  }
  return longest;
}

Words CatalogueNames() {
  Words names;
  for (const hook::InstanceType& type : hook::Catalog::BuiltIn().types()) {
    names.insert(type.name);
    names.insert(type.gpu_model);
    names.insert(type.zones.begin(), type.zones.end());
  }
  names.erase("");
  return names;
}

bool IsOfCatalogue(absl::string_view text) {
  static const Words& names = *new Words(CatalogueNames());
  return names.contains(text);
}

}  // namespace

bool IsPublicInstanceType(absl::string_view text) {
  return IsOfCatalogue(text) || IsAwsType(text) || IsGoogleType(text) || IsAzureType(text);
}

bool IsPublicZone(absl::string_view text) {
  bool has_place = false;
  for (const absl::string_view part : absl::StrSplit(text, '-')) {
    absl::string_view rest = part;
    while (!rest.empty()) {
      const size_t size = LongestPlace(rest);
      if (size == 0) break;
      rest.remove_prefix(size);
      has_place = true;
    }
    if (rest.empty() && !part.empty()) continue;
    // "1a", "4", "b"
    const size_t digits = Take(rest, IsDigit).size();
    if (part.empty() || digits > 2 || rest.size() > 1) return false;
    if (!rest.empty() && !IsLetter(rest.front())) return false;
  }
  return has_place;
}

bool IsPublicGpu(absl::string_view text) {
  if (IsOfCatalogue(text)) return true;
  static const Words& vendors = *new Words(WordsOf("nvidia tesla amd intel"));
  static const Words& known = *new Words(
      WordsOf("ada blackwell generation geforce gtx hbm instinct laptop nvidia nvl pcie quadro rtx "
              "shared super sxm tesla ti titan"));
  const std::vector<absl::string_view> words = absl::StrSplit(text, absl::ByAnyChar("- "));
  if (words.size() < 2 || !vendors.contains(absl::AsciiStrToLower(words[0]))) return false;
  return std::all_of(words.begin() + 1, words.end(), [&](absl::string_view word) {
    const std::string low = absl::AsciiStrToLower(word);
    if (known.contains(low)) return true;
    // "A100", "SXM4", "80GB", "A10G", "MI300X", "HBM3e".
    absl::string_view rest = low;
    const absl::string_view before = Take(rest, IsLetter);
    if (before.size() > 2 && !known.contains(before)) return false;
    const size_t digits = Take(rest, IsDigit).size();
    return digits > 0 && digits <= 4 && rest.size() <= 2 &&
           std::all_of(rest.begin(), rest.end(), IsLetter);
  });
}

bool IsPublicHardware(absl::string_view text) {
  return IsPublicInstanceType(text) || IsPublicZone(text) || IsPublicGpu(text);
}

}  // namespace fairlead::journal
