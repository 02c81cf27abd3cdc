#include "autoscale-hook/providers/groups/node_labels.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "scheduler/model/qualified_name.h"

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
  const bool good =
      value.empty() || (!absl::StrContains(value, "/") && model::IsQualifiedName(value));
  return good ? absl::OkStatus() : NotA("label value", value);
}

absl::StatusOr<model::Taint> MakeTaint(absl::string_view key, absl::string_view value,
                                       absl::string_view effect) {
  FAIRLEAD_RETURN_IF_ERROR(CheckLabelKey(key));
  FAIRLEAD_RETURN_IF_ERROR(CheckLabelValue(value));
  model::Taint taint{std::string(key), std::string(value), model::TaintEffect::kNoSchedule};
  if (effect == "NoSchedule") return taint;
  if (effect == "PreferNoSchedule") {
    taint.effect = model::TaintEffect::kPreferNoSchedule;
  } else if (effect == "NoExecute") {
    taint.effect = model::TaintEffect::kNoExecute;
  } else {
    return NotA("taint effect (NoSchedule, PreferNoSchedule, NoExecute)", effect);
  }
  return taint;
}

absl::StatusOr<model::Taint> ParseTaint(absl::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return NotA("taint (key=value:Effect)", text);
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text.substr(0, colon), absl::MaxSplits('=', 1));
  return MakeTaint(parts.first, parts.second, text.substr(colon + 1));
}

}  // namespace fairlead::hook
