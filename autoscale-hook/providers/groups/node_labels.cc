#include "autoscale-hook/providers/groups/node_labels.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "scheduler/model/qualified_name.h"
#include "scheduler/model/taint_effect.h"

namespace fairlead::hook {
namespace {

constexpr size_t kLongestQuote = 80;

absl::Status NotA(absl::string_view what, absl::string_view text) {
  const bool cut = text.size() > kLongestQuote;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text.substr(0, kLongestQuote), cut ? ".." : "", "\" is not a ", what));
}

}  // namespace

absl::Status CheckLabelKey(absl::string_view key) {
  return model::IsQualifiedName(key) ? absl::OkStatus() : NotA("label key", key);
}

absl::Status CheckLabelValue(absl::string_view value) {
  return model::IsLabelValue(value) ? absl::OkStatus() : NotA("label value", value);
}

absl::StatusOr<model::Taint> MakeTaint(absl::string_view key, absl::string_view value,
                                       absl::string_view effect) {
  FAIRLEAD_RETURN_IF_ERROR(CheckLabelKey(key));
  FAIRLEAD_RETURN_IF_ERROR(CheckLabelValue(value));
  const std::optional<model::TaintEffect> known = model::ParseTaintEffect(effect);
  if (!known.has_value()) {
    return NotA(absl::StrCat("taint effect (", model::kTaintEffects, ")"), effect);
  }
  return model::Taint{std::string(key), std::string(value), *known};
}

absl::StatusOr<model::Taint> ParseTaint(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return NotA("taint (key=value:Effect)", text);
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text.substr(0, colon), absl::MaxSplits('=', 1));
  return MakeTaint(parts.first, parts.second, text.substr(colon + 1));
}

}  // namespace fairlead::hook
