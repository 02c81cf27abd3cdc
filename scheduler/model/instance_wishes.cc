#include "scheduler/model/instance_wishes.h"

#include <algorithm>
#include <array>
#include <list>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "re2/re2.h"
#include "scheduler/model/api_names.h"
#include "scheduler/model/instance_facts.h"
#include "scheduler/model/quantity.h"

namespace fairlead::model {
namespace {

constexpr int64_t kHighestMaxCostUsd = 1'000'000;
constexpr size_t kRememberedPatterns = 32;
constexpr size_t kMostShown = 60;  // characters of a wrong value

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

// Of a wrong value in a message: printable, and not long.
std::string Shown(absl::string_view value) {
  std::string shown;
  for (const char c : value.substr(0, kMostShown)) {
    shown.push_back(absl::ascii_isprint(static_cast<unsigned char>(c)) ? c : '?');
  }
  return absl::StrCat("\"", shown, value.size() > kMostShown ? "..." : "", "\"");
}

// The entries of a comma-separated list, as written but without spaces around them.
absl::StatusOr<std::vector<std::string>> ReadList(absl::string_view text, absl::string_view of) {
  constexpr size_t kLongestList = kMostWishes * (kLongestWish + 2);
  if (text.size() > kLongestList) {
    return Wrong(absl::StrCat(Shown(text), " is longer than ", kLongestList, " characters"));
  }
  std::vector<std::string> entries;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const absl::string_view entry = absl::StripAsciiWhitespace(part);
    const bool legal = std::all_of(entry.begin(), entry.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' ||
             c == '_' || c == ' ';
    });
    if (entry.empty() || entry.size() > kLongestWish || !legal) {
      return Wrong(absl::StrCat(Shown(text), " must be a comma-separated list of ", of,
                                " (letters, digits, '.', '-' and '_'; at most ", kLongestWish,
                                " characters each)"));
    }
    entries.emplace_back(entry);
  }
  if (entries.size() > kMostWishes) {
    return Wrong(absl::StrCat(entries.size(), " entries are more than the ", kMostWishes,
                              " that the list may have"));
  }
  return entries;
}

absl::Status ReadFamilies(absl::string_view text, std::vector<std::string>& families) {
  absl::StatusOr<std::vector<std::string>> entries = ReadList(text, "instance families");
  if (!entries.ok()) return entries.status();
  for (std::string& family : *entries) absl::AsciiStrToLower(&family);
  std::sort(entries->begin(), entries->end());
  entries->erase(std::unique(entries->begin(), entries->end()), entries->end());
  families = *std::move(entries);
  return absl::OkStatus();
}

absl::Status ReadInclusions(absl::string_view text, InstanceWishes& wishes) {
  return ReadFamilies(text, wishes.families);
}

absl::Status ReadExclusions(absl::string_view text, InstanceWishes& wishes) {
  return ReadFamilies(text, wishes.other_families);
}

absl::Status ReadPattern(absl::string_view text, InstanceWishes& wishes) {
  absl::StatusOr<TypePattern> pattern = TypePattern::Make(text);
  if (!pattern.ok()) return pattern.status();
  wishes.type = *std::move(pattern);
  return absl::OkStatus();
}

absl::Status ReadGpuModels(absl::string_view text, InstanceWishes& wishes) {
  absl::StatusOr<std::vector<std::string>> entries = ReadList(text, "GPU models");
  if (!entries.ok()) return entries.status();
  std::set<std::string> seen;
  for (std::string& entry : *entries) {
    absl::AsciiStrToUpper(&entry);
    // An entry without a word would suit nothing.
    if (!GpuModelSuits(entry, entry)) {
      return Wrong(absl::StrCat(Shown(entry), " is no GPU model"));
    }
    if (seen.insert(entry).second) wishes.gpu_models.push_back(std::move(entry));
  }
  return absl::OkStatus();
}

absl::Status ReadOfferings(absl::string_view text, InstanceWishes& wishes) {
  absl::StatusOr<std::vector<std::string>> entries = ReadList(text, "offerings");
  if (!entries.ok()) return entries.status();
  for (const std::string& entry : *entries) {
    if (entry == "spot") {
      wishes.spot = true;
    } else if (entry == "on-demand") {
      wishes.on_demand = true;
    } else if (entry == "reserved") {
      wishes.reserved = true;
    } else {
      return Wrong(
          absl::StrCat(Shown(entry), " is no offering: allowed are spot, on-demand and reserved"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadMaxCost(absl::string_view text, InstanceWishes& wishes) {
  constexpr size_t kLongestNumber = 20;
  const absl::string_view number = absl::StripAsciiWhitespace(text);
  const bool plain = !number.empty() && number.size() <= kLongestNumber &&
                     number.find_first_not_of("0123456789.") == absl::string_view::npos;
  const absl::StatusOr<int64_t> micro_usd =
      plain ? ParseDollars(number) : absl::InvalidArgumentError("");
  if (!micro_usd.ok() || *micro_usd > kHighestMaxCostUsd * kMicroUsdPerUsd) {
    return Wrong(absl::StrCat(Shown(text), " must be dollars per hour, as 2.50, and at most ",
                              kHighestMaxCostUsd));
  }
  wishes.max_micro_usd_per_hour = *micro_usd;
  return absl::OkStatus();
}

absl::Status ReadMaxGpus(absl::string_view text, InstanceWishes& wishes) {
  const absl::string_view number = absl::StripAsciiWhitespace(text);
  int64_t gpus = 0;
  const bool digits =
      !number.empty() && number.find_first_not_of("0123456789") == absl::string_view::npos;
  if (!digits || !absl::SimpleAtoi(number, &gpus) || gpus > kMostWishedGpus) {
    return Wrong(absl::StrCat(Shown(text), " must be a whole number from 0 to ", kMostWishedGpus));
  }
  wishes.max_gpus = gpus;
  return absl::OkStatus();
}

// An annotation with two names.
struct Reader {
  const char* own;
  const char* luna;
  absl::Status (*read)(absl::string_view text, InstanceWishes& wishes);
};
constexpr std::array<Reader, 7> kReaders = {{
    {kFamilyExclusionsAnnotation, kLunaFamilyExclusionsAnnotation, ReadExclusions},
    {kFamilyInclusionsAnnotation, kLunaFamilyInclusionsAnnotation, ReadInclusions},
    {kGpuSkusAnnotation, kLunaGpuSkusAnnotation, ReadGpuModels},
    {kMaxCostAnnotation, kLunaMaxCostAnnotation, ReadMaxCost},
    {kMaxGpusAnnotation, kLunaMaxGpusAnnotation, ReadMaxGpus},
    {kOfferingsAnnotation, kLunaOfferingsAnnotation, ReadOfferings},
    {kTypeRegexpAnnotation, kLunaTypeRegexpAnnotation, ReadPattern},
}};

// The part of the wishes that one annotation says; null: the pod lacks it, or it is wrong.
std::optional<InstanceWishes> ReadOne(const Reader& reader, const char* key,
                                      const StringMap& annotations,
                                      std::vector<WishProblem>& problems) {
  const std::string* value = annotations.Find(key);
  if (value == nullptr) return std::nullopt;
  InstanceWishes wishes;
  const absl::Status status = reader.read(*value, wishes);
  if (status.ok()) return wishes;
  problems.push_back({key, std::string(status.message())});
  return std::nullopt;
}

void Contradicts(const char* key, const char* other, std::vector<WishProblem>& problems) {
  problems.push_back({key, absl::StrCat("contradicts ", other, ": remove one of them")});
}

void CheckYesNo(const StringMap& annotations, const char* key, std::vector<WishProblem>& problems) {
  const std::string* value = annotations.Find(key);
  if (value == nullptr || *value == "true" || *value == "false") return;
  problems.push_back({key, absl::StrCat(Shown(*value), R"( must be "true" or "false")")});
}

bool AnyIsRead(const StringMap& annotations) {
  return std::any_of(annotations.begin(), annotations.end(), [](const auto& entry) {
    return absl::StartsWith(entry.first, "fairlead.dev/") ||
           absl::StartsWith(entry.first, kLunaNodePrefix) ||
           entry.first == kLunaDoNotEvictAnnotation;
  });
}

// What this thread compiled last, latest first. Only costs depend on it: a pattern that is not here
// is compiled again, and equal texts match the same names.
std::list<TypePattern>& RememberedPatterns() {
  thread_local std::list<TypePattern>& patterns = *new std::list<TypePattern>();
  return patterns;
}

bool Contains(const std::vector<std::string>& families, const std::string& family) {
  return std::binary_search(families.begin(), families.end(), family);
}

}  // namespace

absl::string_view TypePattern::text() const {
  return compiled_ == nullptr
             ? absl::string_view()
             : absl::string_view(compiled_->pattern().data(), compiled_->pattern().size());
}

absl::StatusOr<TypePattern> TypePattern::Make(absl::string_view text) {
  if (text.empty()) return Wrong("\"\" must be a regular expression");
  if (text.size() > kLongestPattern) {
    return Wrong(absl::StrCat(Shown(text), " is longer than ", kLongestPattern, " characters"));
  }
  std::list<TypePattern>& remembered = RememberedPatterns();
  const auto known = std::find_if(remembered.begin(), remembered.end(),
                                  [&](const TypePattern& p) { return p.text() == text; });
  if (known != remembered.end()) {
    remembered.splice(remembered.begin(), remembered, known);
    return remembered.front();
  }
  RE2::Options options(RE2::Quiet);
  options.set_max_mem(kPatternMemory);
  options.set_never_capture(true);
  auto compiled = std::make_shared<const RE2>(re2::StringPiece(text.data(), text.size()), options);
  if (!compiled->ok()) {
    return Wrong(absl::StrCat(Shown(text),
                              " is not a regular expression of RE2: ", Shown(compiled->error())));
  }
  TypePattern pattern;
  pattern.compiled_ = std::move(compiled);
  remembered.push_front(pattern);
  if (remembered.size() > kRememberedPatterns) remembered.pop_back();
  return pattern;
}

bool TypePattern::Matches(absl::string_view type_name) const {
  if (compiled_ == nullptr) return true;
  return RE2::PartialMatch(re2::StringPiece(type_name.data(), type_name.size()), *compiled_);
}

InstanceWishes ParseInstanceWishes(const StringMap& annotations,
                                   std::vector<WishProblem>& problems) {
  InstanceWishes wishes;
  if (!AnyIsRead(annotations)) return wishes;
  for (const Reader& reader : kReaders) {
    const auto own = ReadOne(reader, reader.own, annotations, problems);
    const auto luna = ReadOne(reader, reader.luna, annotations, problems);
    if (own.has_value() && luna.has_value() && !(*own == *luna)) {
      Contradicts(reader.own, reader.luna, problems);
      continue;
    }
    const char* said = own.has_value() ? reader.own : reader.luna;
    if (!own.has_value() && !luna.has_value()) continue;
    // It was read before without an error, and it says nothing that another annotation says.
    static_cast<void>(reader.read(annotations.Get(said), wishes));
  }
  for (const std::string& family : wishes.families) {
    if (!Contains(wishes.other_families, family)) continue;
    const auto name = [&](const char* own, const char* luna) {
      return annotations.Has(own) ? own : luna;
    };
    Contradicts(name(kFamilyInclusionsAnnotation, kLunaFamilyInclusionsAnnotation),
                name(kFamilyExclusionsAnnotation, kLunaFamilyExclusionsAnnotation), problems);
    break;
  }
  for (const char* key : {kDoNotEvictAnnotation, kLunaDoNotEvictAnnotation, kEstimateAnnotation}) {
    CheckYesNo(annotations, key, problems);
  }
  const std::string* own = annotations.Find(kDoNotEvictAnnotation);
  const std::string* luna = annotations.Find(kLunaDoNotEvictAnnotation);
  if (own != nullptr && luna != nullptr && *own != *luna) {
    Contradicts(kDoNotEvictAnnotation, kLunaDoNotEvictAnnotation, problems);
  }
  return wishes;
}

bool MustStay(const StringMap& annotations) {
  const auto says = [&](const char* key, absl::string_view value) {
    const std::string* said = annotations.Find(key);
    return said != nullptr && *said == value;
  };
  for (const char* key : {kDoNotEvictAnnotation, kLunaDoNotEvictAnnotation}) {
    if (annotations.Has(key) && !says(key, "false")) return true;
  }
  return says(kKarpenterDoNotDisruptAnnotation, "true") || says(kDoNotRemoveAnnotation, "true") ||
         says(kSafeToEvictAnnotation, "false");
}

bool WantsEstimate(const StringMap& annotations) {
  return annotations.Get(kEstimateAnnotation) == "true";
}

absl::string_view UnmetWish(const InstanceWishes& wishes, const StringMap& node_labels,
                            int64_t gpus) {
  const absl::string_view type = node_labels.Get(kInstanceTypeLabel);
  if (!wishes.families.empty() || !wishes.other_families.empty()) {
    const std::string family = absl::AsciiStrToLower(InstanceFamily(type));
    if (!wishes.families.empty() && !Contains(wishes.families, family)) {
      return "instance-family-inclusions";
    }
    if (Contains(wishes.other_families, family)) return "instance-family-exclusions";
  }
  if (wishes.type.IsSet() && (type.empty() || !wishes.type.Matches(type))) {
    return "instance-type-regexp";
  }
  if (!wishes.gpu_models.empty()) {
    const absl::string_view product = GpuProductOf(node_labels);
    const bool suits =
        std::any_of(wishes.gpu_models.begin(), wishes.gpu_models.end(),
                    [&](const std::string& model) { return GpuModelSuits(model, product); });
    if (!suits) return "instance-gpu-skus";
  }
  if (wishes.ReadsOffering()) {
    const bool suits = (IsSpotNode(node_labels) ? wishes.spot : wishes.on_demand) ||
                       (wishes.reserved && IsReservedNode(node_labels));
    if (!suits) return "instance-offerings";
  }
  if (wishes.max_gpus.has_value() && gpus > *wishes.max_gpus) return "instance-max-gpus";
  return "";
}

}  // namespace fairlead::model
