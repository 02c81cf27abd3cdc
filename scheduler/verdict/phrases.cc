#include "scheduler/verdict/phrases.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "scheduler/model/device_names.h"
#include "scheduler/verdict/text.h"

namespace fairlead::verdict {
namespace {

constexpr size_t kMaxKindsNamed = 6;
constexpr size_t kMaxResourcesNamed = 4;

}  // namespace

std::string Count(int64_t count, absl::string_view singular, absl::string_view plural) {
  return absl::StrCat(count, " ", count == 1 ? singular : plural);
}

std::string AmountText(absl::string_view resource, int64_t base_units) {
  const std::string amount = model::FormatAmount(resource, base_units);
  const bool one = amount == "1";
  if (resource == model::kGpuName) return absl::StrCat(amount, one ? " GPU" : " GPUs");
  if (resource == model::kCpuName) return absl::StrCat(amount, one ? " CPU core" : " CPU cores");
  if (resource == model::kPodsName) return absl::StrCat(amount, one ? " pod slot" : " pod slots");
  if (resource == model::kMemoryName || resource == model::kEphemeralStorageName) {
    const bool bytes = base_units > -1024 && base_units < 1024;
    return absl::StrCat(amount, bytes ? (one ? " byte" : " bytes") : "", " of ",
                        ResourceNoun(resource));
  }
  // The number of claims of a shape that fit is of no use to people.
  if (absl::StartsWith(resource, model::kShapePrefix)) return ResourceNoun(resource);
  if (absl::ConsumePrefix(&resource, model::kDemandPrefix)) {
    return absl::StrCat(amount, one ? " device" : " devices", " of class ", resource);
  }
  return absl::StrCat(amount, " ", resource);
}

std::string AndList(const std::vector<std::string>& parts, size_t limit) {
  if (parts.empty()) return "";
  std::vector<std::string> shown(
      parts.begin(), parts.begin() + static_cast<ptrdiff_t>(std::min(limit, parts.size())));
  if (shown.size() < parts.size())
    shown.push_back(absl::StrCat(parts.size() - shown.size(), " more"));
  if (shown.size() == 1) return shown[0];
  const std::string last = std::move(shown.back());
  shown.pop_back();
  return absl::StrCat(absl::StrJoin(shown, ", "), " and ", last);
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

bool IsFinite(const std::optional<absl::Time>& time) {
  return time.has_value() && *time != absl::InfiniteFuture() && *time != absl::InfinitePast();
}

std::string RequestText(const model::PodSpec& spec) {
  std::vector<std::string> parts;
  const auto add = [&](absl::string_view resource) {
    const int64_t amount = model::Get(spec.requests, resource);
    if (amount != 0) parts.push_back(AmountText(resource, amount));
  };
  add(model::kGpuName);
  if (spec.gpu_share.IsSet()) {
    const model::GpuShare& share = spec.gpu_share;
    parts.push_back(absl::StrCat(
        share.fraction_milli != 0 ? model::FormatAmount(model::kGpuName, share.fraction_milli)
                                  : absl::StrCat(share.memory_mib, "Mi of the memory"),
        share.devices == 1 ? " of a GPU" : absl::StrCat(" of each of ", share.devices, " GPUs")));
  }
  for (const auto& [name, amount] : spec.requests) {
    const bool other =
        name != model::kGpuName && name != model::kCpuName && name != model::kMemoryName;
    if (other && amount != 0) parts.push_back(AmountText(name, amount));
  }
  add(model::kCpuName);
  add(model::kMemoryName);
  return parts.empty() ? "no resources" : AndList(parts, parts.size());
}

std::string ReasonsText(const std::vector<FailedPredicate>& predicates) {
  std::vector<std::string> kinds;
  for (const FailedPredicate& p : predicates) {
    std::string kind;
    absl::string_view reason = p.reason;
    if (!p.missing.empty()) {
      std::vector<std::string> lacks;
      for (const MissingAmount& m : p.missing) {
        lacks.push_back(m.resource == model::kPodsName ? "a free pod slot"
                                                       : ResourceNoun(m.resource));
      }
      std::sort(lacks.begin(), lacks.end());
      kind = absl::StrCat("nodes lack ", AndList(lacks, kMaxResourcesNamed));
    } else if (absl::ConsumePrefix(&reason, "node(s) ")) {
      kind = absl::StrCat("nodes ", reason);
    } else if (absl::ConsumePrefix(&reason, "Insufficient ")) {
      kind = absl::StrCat("nodes lack ", ResourceNoun(reason));
    } else if (reason == "Too many pods") {
      kind = "nodes lack a free pod slot";
    } else {
      kind = absl::StrCat("nodes refuse (", reason.empty() ? p.plugin : reason, ")");
    }
    kinds.push_back(std::move(kind));
  }
  // Predicates are listed by node count, which changes; the text needs a stable order.
  std::sort(kinds.begin(), kinds.end());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  if (kinds.size() > kMaxKindsNamed) {
    kinds.resize(kMaxKindsNamed);
    kinds.push_back("others refuse for other reasons");
  }
  return absl::StrJoin(kinds, ", ");
}

std::string ShortageText(const std::vector<FailedPredicate>& predicates) {
  std::map<std::string, int64_t> smallest;
  for (const FailedPredicate& p : predicates) {
    for (const MissingAmount& m : p.missing) {
      if (m.smallest <= 0) continue;
      const auto [known, added] = smallest.try_emplace(m.resource, m.smallest);
      if (!added) known->second = std::min(known->second, m.smallest);
    }
  }
  std::vector<std::string> parts;
  for (const auto& [resource, amount] : smallest) {
    if (parts.size() == kMaxResourcesNamed) break;
    parts.push_back(AmountText(resource, amount));
  }
  return parts.empty()
             ? ""
             : absl::StrCat("Smallest shortage on a node: ", AndList(parts, parts.size()));
}

std::string DetailsText(const std::vector<FailedPredicate>& predicates) {
  std::map<std::string, std::set<std::string>> by_plugin;
  for (const FailedPredicate& p : predicates) {
    if (!p.detail.empty()) by_plugin[p.plugin].insert(p.detail);
  }
  std::vector<std::string> texts;
  for (const auto& [plugin, details] : by_plugin) {
    texts.push_back(absl::StrCat(
        plugin, ": ",
        AndList(std::vector<std::string>(details.begin(), details.end()), kMaxKindsNamed)));
  }
  return absl::StrJoin(texts, "; ");
}

}  // namespace fairlead::verdict
