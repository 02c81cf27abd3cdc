#include "kube/codec/field_values.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/model/quantity.h"
#include "scheduler/model/taint_effect.h"

namespace fairlead::kube {
namespace {

void AddUnknown(absl::string_view text, absl::string_view allowed, const FieldPath& path,
                Problems& problems) {
  problems.Add(path, absl::StrCat(Quoted(text), " is none of ", allowed));
}

// The forms of nearly every quantity: digits, and digits with "m", "Ki", "Mi" or "Gi". Returns no
// value for other forms and for amounts that might overflow; model::ParseResourceQuantity reads
// those.
std::optional<int64_t> ParsePlainQuantity(absl::string_view text, int64_t units_per_one) {
  constexpr size_t kMaxSafeDigits = 8;  // times 2^30 and 1000 still fits
  size_t digits = 0;
  int64_t value = 0;
  while (digits < text.size() && digits <= kMaxSafeDigits && text[digits] >= '0' &&
         text[digits] <= '9') {
    value = value * 10 + (text[digits] - '0');
    ++digits;
  }
  if (digits == 0 || digits > kMaxSafeDigits) return std::nullopt;
  const absl::string_view suffix = text.substr(digits);
  if (suffix.empty()) return value * units_per_one;
  if (suffix == "m" && units_per_one == 1000) return value;
  if (suffix.size() != 2 || suffix[1] != 'i') return std::nullopt;
  switch (suffix[0]) {
    case 'K':
      return (value << 10) * units_per_one;
    case 'M':
      return (value << 20) * units_per_one;
    case 'G':
      return (value << 30) * units_per_one;
    default:
      return std::nullopt;
  }
}

}  // namespace

void SetOperator(absl::string_view text, SelectorKind kind, const FieldPath& path,
                 Problems& problems, model::SelectorOperator& out) {
  using model::SelectorOperator;
  const bool nodes = kind == SelectorKind::kNodes;
  if (text == "In") {
    out = SelectorOperator::kIn;
  } else if (text == "NotIn") {
    out = SelectorOperator::kNotIn;
  } else if (text == "Exists") {
    out = SelectorOperator::kExists;
  } else if (text == "DoesNotExist") {
    out = SelectorOperator::kDoesNotExist;
  } else if (nodes && text == "Gt") {
    out = SelectorOperator::kGt;
  } else if (nodes && text == "Lt") {
    out = SelectorOperator::kLt;
  } else {
    AddUnknown(
        text, nodes ? "In, NotIn, Exists, DoesNotExist, Gt, Lt" : "In, NotIn, Exists, DoesNotExist",
        path, problems);
  }
}

void SetTaintEffect(absl::string_view text, const FieldPath& path, Problems& problems,
                    model::TaintEffect& out) {
  if (std::optional<model::TaintEffect> effect = model::ParseTaintEffect(text)) {
    out = *effect;
  } else {
    AddUnknown(text, model::kTaintEffects, path, problems);
  }
}

bool RunsToEnd(absl::string_view restart_policy) {
  return restart_policy == "Never" || restart_policy == "OnFailure";
}

void SetTolerationOperator(absl::string_view text, const FieldPath& path, Problems& problems,
                           model::Toleration& out) {
  if (text == "Exists") {
    out.exists = true;
  } else if (text.empty() || text == "Equal") {
    out.exists = false;
  } else {
    AddUnknown(text, "Equal, Exists", path, problems);
  }
}

void SetTolerationEffect(absl::string_view text, const FieldPath& path, Problems& problems,
                         model::Toleration& out) {
  out.effect = model::ParseTaintEffect(text);
  if (!out.effect.has_value() && !text.empty())
    AddUnknown(text, model::kTaintEffects, path, problems);
}

void SetWhenUnsatisfiable(absl::string_view text, const FieldPath& path, Problems& problems,
                          model::TopologySpreadConstraint& out) {
  if (text == "DoNotSchedule") {
    out.do_not_schedule = true;
  } else if (text == "ScheduleAnyway") {
    out.do_not_schedule = false;
  } else {
    AddUnknown(text, "DoNotSchedule, ScheduleAnyway", path, problems);
  }
}

void SetHonorPolicy(absl::string_view text, const FieldPath& path, Problems& problems, bool& out) {
  if (text == "Honor") {
    out = true;
  } else if (text == "Ignore") {
    out = false;
  } else {
    AddUnknown(text, "Honor, Ignore", path, problems);
  }
}

void SetPositive(int64_t value, const FieldPath& path, Problems& problems, int32_t& out) {
  if (value < 1 || value > std::numeric_limits<int32_t>::max()) {
    problems.Add(path, absl::StrCat(value, " must be at least 1"));
    return;
  }
  out = static_cast<int32_t>(value);
}

void SetWeight(int64_t value, const FieldPath& path, Problems& problems, int32_t& out) {
  if (value < 1 || value > 100) {
    problems.Add(path, absl::StrCat(value, " must be between 1 and 100"));
  }
  out = static_cast<int32_t>(std::clamp<int64_t>(value, 1, 100));
}

model::PodPhase ParsePodPhase(absl::string_view text) {
  if (text.empty() || text == "Pending") return model::PodPhase::kPending;
  if (text == "Running") return model::PodPhase::kRunning;
  if (text == "Succeeded") return model::PodPhase::kSucceeded;
  if (text == "Failed") return model::PodPhase::kFailed;
  return model::PodPhase::kUnknown;
}

void SetQuantity(absl::string_view name, absl::string_view quantity, const FieldPath& path,
                 Problems& problems, model::ResourceList& out) {
  if (std::optional<int64_t> plain = ParsePlainQuantity(quantity, model::BaseUnitsPerUnit(name))) {
    model::Set(out, name, *plain);
    return;
  }
  absl::StatusOr<int64_t> amount =
      quantity.size() > 64
          ? absl::InvalidArgumentError(absl::StrCat(Quoted(quantity), " is not a quantity"))
          : model::ParseResourceQuantity(name, quantity);
  if (!amount.ok()) {
    problems.Add(path.Key(name), amount.status().message());
  } else if (*amount < 0) {
    problems.Add(path.Key(name), absl::StrCat(Quoted(quantity), " must not be negative"));
  } else {
    model::Set(out, name, *amount);
  }
}

void PrependMatchLabels(const model::StringMap& match_labels, model::LabelSelector& out) {
  std::vector<model::SelectorRequirement> requirements;
  requirements.reserve(match_labels.size() + out.requirements.size());
  for (const auto& [key, value] : match_labels) {
    requirements.push_back({key, model::SelectorOperator::kIn, {value}});
  }
  std::move(out.requirements.begin(), out.requirements.end(), std::back_inserter(requirements));
  out.requirements = std::move(requirements);
}

}  // namespace fairlead::kube
