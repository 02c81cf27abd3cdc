#include "grouping/values.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace fairlead::grouping {
namespace {

std::string Join(absl::string_view at, absl::string_view name) {
  return at.empty() ? std::string(name) : absl::StrCat(at, ".", name);
}

// What was written wrongly.
std::string ShownValue(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return Shown(value.text());
}

absl::StatusOr<int64_t> Checked(int64_t number, absl::string_view field) {
  if (number >= 0 && number <= kMostPods) return number;
  return Wrong(field, number < 0 ? absl::StrCat(number, " must not be negative")
                                 : absl::StrCat(number, " is more than ", kMostPods));
}

absl::StatusOr<int64_t> ParseCount(absl::string_view text, absl::string_view field) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) {
    return Wrong(field, absl::StrCat(Shown(text), " is not a whole number of pods"));
  }
  return Checked(number, field);
}

}  // namespace

std::string Shown(absl::string_view text) {
  constexpr size_t kLongest = 64;
  return Quoted(TruncateUtf8(text, kLongest));
}

absl::Status Wrong(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

// ---- paths --------------------------------------------------------------------------------------

absl::StatusOr<Path> Path::Parse(absl::string_view text) {
  Path path;
  path.text_ = std::string(text);
  path.names_ = absl::StrSplit(text, '.');
  for (const std::string& name : path.names_) {
    if (name.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " is not a path of fields"));
    }
  }
  return path;
}

std::string Path::Field(const Scope& scope) const {
  return empty() ? scope.at : Join(scope.at, text_);
}

absl::StatusOr<const Json*> Path::Find(const Scope& scope) const {
  const Json* value = &scope.object;
  std::string at = scope.at;
  for (const std::string& name : names_) {
    if (value->is_null()) return nullptr;
    if (!value->is_object())
      return Wrong(at, absl::StrCat(ShownValue(*value), " is not an object"));
    value = value->Find(name);
    if (value == nullptr) return nullptr;
    at = Join(at, name);
  }
  return value->is_null() ? nullptr : value;
}

absl::Status ForEach(const Path& path, const Scope& scope,
                     const std::function<absl::Status(const Scope&)>& call) {
  FAIRLEAD_ASSIGN_OR_RETURN(const Json* list, path.Find(scope));
  if (list == nullptr) return absl::OkStatus();
  const std::string field = path.Field(scope);
  const Json* owner = scope.owner == nullptr ? &scope.object : scope.owner;
  if (list->is_array()) {
    for (size_t i = 0; i < list->items().size(); ++i) {
      FAIRLEAD_RETURN_IF_ERROR(call({.object = list->items()[i],
                                     .pod = scope.pod,
                                     .at = absl::StrCat(field, "[", i, "]"),
                                     .owner = owner}));
    }
    return absl::OkStatus();
  }
  if (!list->is_object()) {
    return Wrong(field, absl::StrCat(ShownValue(*list), " is neither a list nor an object"));
  }
  for (const auto& [key, value] : list->fields()) {
    FAIRLEAD_RETURN_IF_ERROR(call(
        {.object = value, .pod = scope.pod, .at = Join(field, key), .key = key, .owner = owner}));
  }
  return absl::OkStatus();
}

// ---- texts --------------------------------------------------------------------------------------

namespace {

// Labels and annotations of the object, or of the template at the path.
absl::StatusOr<std::string> FindMetadata(const Text& text, absl::string_view map,
                                         const Scope& scope) {
  FAIRLEAD_ASSIGN_OR_RETURN(const Json* part, text.path.Find(scope));
  if (part == nullptr) return "";
  const std::string at = Join(text.path.Field(scope), "metadata");
  const Json* node = part;
  for (const absl::string_view name : {absl::string_view("metadata"), map}) {
    if (!node->is_object()) {
      return Wrong(text.path.Field(scope), absl::StrCat(ShownValue(*node), " is not an object"));
    }
    node = node->Find(name);
    if (node == nullptr || node->is_null()) return "";
  }
  if (!node->is_object()) {
    return Wrong(Join(at, map), absl::StrCat(ShownValue(*node), " is not an object"));
  }
  const Json* value = node->Find(text.name);
  if (value == nullptr || value->is_null()) return "";
  if (value->type() != Json::Type::kString) {
    return Wrong(text.Field(scope), absl::StrCat(ShownValue(*value), " is not a string"));
  }
  return value->text();
}

}  // namespace

std::string Text::Field(const Scope& scope) const {
  const std::string of = path.empty() ? scope.at : path.Field(scope);
  switch (from) {
    case From::kConstant:
      return name;
    case From::kPath:
      return path.Field(scope);
    case From::kLabel:
      return absl::StrCat(Join(of, "metadata.labels"), "[", name, "]");
    case From::kAnnotation:
      return absl::StrCat(Join(of, "metadata.annotations"), "[", name, "]");
    case From::kOwnerAnnotation:
      return absl::StrCat("metadata.annotations[", name, "]");
    case From::kPodLabel:
      return absl::StrCat("pod label ", name);
    case From::kPodAnnotation:
      return absl::StrCat("pod annotation ", name);
    case From::kKey:
      return absl::StrCat("the key of ", scope.at);
  }
  return "";
}

absl::StatusOr<std::string> Text::Get(const Scope& scope) const {
  switch (from) {
    case From::kConstant:
      return name;
    case From::kLabel:
      return FindMetadata(*this, "labels", scope);
    case From::kAnnotation:
      return FindMetadata(*this, "annotations", scope);
    case From::kOwnerAnnotation:
      return FindMetadata(
          *this, "annotations",
          {.object = scope.owner == nullptr ? scope.object : *scope.owner, .pod = scope.pod});
    case From::kPodLabel:
      return std::string(scope.pod.meta.labels.Get(name));
    case From::kPodAnnotation:
      return std::string(scope.pod.meta.annotations.Get(name));
    case From::kKey:
      return scope.key;
    case From::kPath:
      break;
  }
  FAIRLEAD_ASSIGN_OR_RETURN(const Json* value, path.Find(scope));
  if (value == nullptr) return "";
  if (!value->is_text()) {
    return Wrong(path.Field(scope), absl::StrCat(ShownValue(*value), " is not text"));
  }
  return value->text();
}

absl::StatusOr<bool> Text::Exists(const Scope& scope) const {
  if (from == From::kPath) {
    FAIRLEAD_ASSIGN_OR_RETURN(const Json* value, path.Find(scope));
    return value != nullptr;
  }
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string text, Get(scope));
  return !text.empty();
}

absl::StatusOr<std::string> Texts::Get(const Scope& scope) const {
  for (const Text& text : list) {
    FAIRLEAD_ASSIGN_OR_RETURN(std::string found, text.Get(scope));
    if (!found.empty()) return found;
  }
  return "";
}

// ---- conditions ---------------------------------------------------------------------------------

absl::StatusOr<bool> Condition::Holds(const Scope& scope) const {
  switch (form) {
    case Form::kExists:
      return text.Exists(scope);
    case Form::kEquals: {
      FAIRLEAD_ASSIGN_OR_RETURN(const std::string found, text.Get(scope));
      return found == value;
    }
    case Form::kNot: {
      FAIRLEAD_ASSIGN_OR_RETURN(const bool holds, of.front().Holds(scope));
      return !holds;
    }
    case Form::kAll:
    case Form::kAny:
      break;
  }
  const bool ends = form == Form::kAny;
  for (const Condition& part : of) {
    FAIRLEAD_ASSIGN_OR_RETURN(const bool holds, part.Holds(scope));
    if (holds == ends) return ends;
  }
  return !ends;
}

// ---- numbers ------------------------------------------------------------------------------------

Number Constant(int64_t value) {
  Number number;
  number.constant = value;
  return number;
}

std::string Number::Field(const Scope& scope) const {
  switch (form) {
    case Form::kConstant:
      return "";
    case Form::kText:
      return text.Field(scope);
    case Form::kCount:
    case Form::kSumOver:
      return path.Field(scope);
    default:
      break;
  }
  std::vector<std::string> fields;
  for (const Number& part : of) {
    const std::string field = part.Field(scope);
    const bool is_new = std::find(fields.begin(), fields.end(), field) == fields.end();
    if (!field.empty() && is_new) fields.push_back(field);
  }
  return absl::StrJoin(fields, ", ");
}

namespace {

using Found = absl::StatusOr<std::optional<int64_t>>;

Found FindText(const Number& number, const Scope& scope) {
  const Text& text = number.text;
  if (text.from == Text::From::kPath) {
    FAIRLEAD_ASSIGN_OR_RETURN(const Json* value, text.path.Find(scope));
    if (value == nullptr) return number.otherwise;
    if (value->type() != Json::Type::kNumber) {
      return Wrong(text.Field(scope), absl::StrCat(ShownValue(*value), " is not a number"));
    }
    FAIRLEAD_ASSIGN_OR_RETURN(const int64_t read, ParseCount(value->text(), text.Field(scope)));
    return read;
  }
  FAIRLEAD_ASSIGN_OR_RETURN(const std::string found, text.Get(scope));
  if (found.empty()) return number.otherwise;
  FAIRLEAD_ASSIGN_OR_RETURN(const int64_t read, ParseCount(found, text.Field(scope)));
  return read;
}

// Refuses a number that is above its bound: two fields contradict each other.
Found Bounded(const Number& number, const Scope& scope) {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::optional<int64_t> found, FindText(number, scope));
  if (!found.has_value() || number.of.empty()) return found;
  const Number& bound = number.of.front();
  FAIRLEAD_ASSIGN_OR_RETURN(const int64_t most, bound.Get(scope));
  if (*found <= most) return found;
  return Wrong(number.text.Field(scope),
               absl::StrCat(*found, " is more than ", bound.Field(scope), ": ", most));
}

Found CountEntries(const Number& number, const Scope& scope) {
  int64_t count = 0;
  FAIRLEAD_RETURN_IF_ERROR(ForEach(number.path, scope, [&](const Scope&) {
    ++count;
    return absl::OkStatus();
  }));
  FAIRLEAD_ASSIGN_OR_RETURN(const int64_t checked, Checked(count, number.path.Field(scope)));
  return checked;
}

Found SumOver(const Number& number, const Scope& scope) {
  int64_t sum = 0;
  FAIRLEAD_RETURN_IF_ERROR(ForEach(number.path, scope, [&](const Scope& entry) -> absl::Status {
    for (const Condition& condition : number.condition) {
      FAIRLEAD_ASSIGN_OR_RETURN(const bool holds, condition.Holds(entry));
      if (!holds) return absl::OkStatus();
    }
    FAIRLEAD_ASSIGN_OR_RETURN(const int64_t part, number.of.front().Get(entry));
    FAIRLEAD_ASSIGN_OR_RETURN(sum, Checked(sum + part, number.path.Field(scope)));
    return absl::OkStatus();
  }));
  return sum;
}

int64_t Combine(Number::Form form, int64_t a, int64_t b) {
  switch (form) {
    case Number::Form::kProduct:
      return a * b;
    case Number::Form::kDifference:
      return std::max<int64_t>(0, a - b);
    case Number::Form::kLeast:
      return std::min(a, b);
    case Number::Form::kGreatest:
      return std::max(a, b);
    default:
      return a + b;
  }
}

}  // namespace

Found Number::Find(const Scope& scope) const {
  switch (form) {
    case Form::kConstant:
      return constant;
    case Form::kText:
      return Bounded(*this, scope);
    case Form::kCount:
      return CountEntries(*this, scope);
    case Form::kSumOver:
      return SumOver(*this, scope);
    case Form::kIf: {
      FAIRLEAD_ASSIGN_OR_RETURN(const bool holds, condition.front().Holds(scope));
      return of[holds ? 0 : 1].Find(scope);
    }
    case Form::kFirst:
    case Form::kFirstPositive:
      for (const Number& part : of) {
        FAIRLEAD_ASSIGN_OR_RETURN(const std::optional<int64_t> found, part.Find(scope));
        if (found.has_value() && (form == Form::kFirst || *found > 0)) return found;
      }
      return form == Form::kFirst ? std::nullopt : std::optional<int64_t>(0);
    default:
      break;
  }
  // Both operands are kMostPods at most, so that nothing overflows.
  FAIRLEAD_ASSIGN_OR_RETURN(int64_t result, of.front().Get(scope));
  for (size_t i = 1; i < of.size(); ++i) {
    FAIRLEAD_ASSIGN_OR_RETURN(const int64_t next, of[i].Get(scope));
    FAIRLEAD_ASSIGN_OR_RETURN(result, Checked(Combine(form, result, next), Field(scope)));
  }
  return result;
}

absl::StatusOr<int64_t> Number::Get(const Scope& scope) const {
  FAIRLEAD_ASSIGN_OR_RETURN(const std::optional<int64_t> found, Find(scope));
  if (!found.has_value()) return Wrong(Field(scope), "is missing");
  return *found;
}

}  // namespace fairlead::grouping
