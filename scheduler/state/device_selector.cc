#include "scheduler/state/device_selector.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "re2/re2.h"
#include "scheduler/model/quantity.h"

namespace fairlead::state {
namespace {

using Function = ExpressionFunction;

// CEL's error: no such key, no such overload.
struct Fault {};
// device.attributes or device.capacity, and what is in one domain of it.
struct Domains {
  bool capacity = false;
};
struct Domain {
  bool capacity = false;
  std::string name;
};
struct Value {
  std::variant<Fault, bool, int64_t, std::string, SemanticVersion, ExpressionQuantity, Domains,
               Domain, std::vector<Value>>
      is;
};

template <typename T>
const T* As(const Value& value) {
  return std::get_if<T>(&value.is);
}
bool IsFault(const Value& value) { return As<Fault>(value) != nullptr; }

// A name of the driver's own is written without its domain.
template <typename Map>
auto FindIn(const Map& map, absl::string_view driver, absl::string_view domain,
            absl::string_view name) {
  auto it = map.find(absl::StrCat(domain, "/", name));
  if (it == map.end() && domain == driver) it = map.find(std::string(name));
  return it;
}

template <typename Map>
bool HasDomain(const Map& map, absl::string_view driver, absl::string_view domain) {
  return std::any_of(map.begin(), map.end(), [&](const auto& entry) {
    const absl::string_view name = entry.first;
    const size_t slash = name.find('/');
    return slash == absl::string_view::npos ? domain == driver : name.substr(0, slash) == domain;
  });
}

Value ValueOf(const model::DeviceAttribute& attribute) {
  if (const auto* number = std::get_if<int64_t>(&attribute.value)) return {*number};
  if (const auto* truth = std::get_if<bool>(&attribute.value)) return {*truth};
  if (const auto* text = std::get_if<std::string>(&attribute.value)) return {*text};
  auto version = SemanticVersion::Parse(std::get<model::DeviceVersion>(attribute.value).text);
  if (!version.has_value()) return {Fault()};
  return {*std::move(version)};
}

template <typename T>
Value Ordered(ExpressionKind kind, const T& a, const T& b) {
  switch (kind) {
    case ExpressionKind::kLess:
      return {a < b};
    case ExpressionKind::kLessEqual:
      return {!(b < a)};
    case ExpressionKind::kGreater:
      return {b < a};
    default:
      return {!(a < b)};
  }
}

// -1, 0 or 1; nothing if they have no order.
std::optional<int64_t> CompareTo(const Value& a, const Value& b) {
  const auto *version = As<SemanticVersion>(a), *other_version = As<SemanticVersion>(b);
  if (version != nullptr && other_version != nullptr) return Compare(*version, *other_version);
  const auto *amount = As<ExpressionQuantity>(a), *other_amount = As<ExpressionQuantity>(b);
  if (amount == nullptr || other_amount == nullptr) return std::nullopt;
  return amount->units < other_amount->units ? -1 : amount->units > other_amount->units;
}

// Nothing: an error.
std::optional<bool> AreEqual(const Value& a, const Value& b) {
  if (IsFault(a) || IsFault(b)) return std::nullopt;
  if (a.is.index() != b.is.index()) return false;
  if (const std::optional<int64_t> order = CompareTo(a, b)) return *order == 0;
  if (const auto* truth = As<bool>(a)) return *truth == *As<bool>(b);
  if (const auto* number = As<int64_t>(a)) return *number == *As<int64_t>(b);
  if (const auto* text = As<std::string>(a)) return *text == *As<std::string>(b);
  const auto *list = As<std::vector<Value>>(a), *other = As<std::vector<Value>>(b);
  if (list == nullptr) return std::nullopt;
  if (list->size() != other->size()) return false;
  std::optional<bool> equal = true;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::optional<bool> same = AreEqual((*list)[i], (*other)[i]);
    if (same.has_value() && !*same) return false;
    if (!same.has_value()) equal = std::nullopt;
  }
  return equal;
}

int64_t CodePoints(absl::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

class Evaluation {
 public:
  Evaluation(absl::string_view driver, const model::Device& device)
      : driver_(driver), device_(device) {}

  Value Of(const Expression& e) const {
    switch (e.kind) {
      case ExpressionKind::kLiteral:
        return std::visit([](const auto& value) { return Value{value}; }, e.literal);
      case ExpressionKind::kDriver:
        return {std::string(driver_)};
      case ExpressionKind::kForSeveral:
        return {device_.for_several};
      case ExpressionKind::kAttributes:
      case ExpressionKind::kCapacity:
        return {Domains{e.kind == ExpressionKind::kCapacity}};
      case ExpressionKind::kMember:
        return Member(Of(e.args[0]), Of(e.args[1]));
      case ExpressionKind::kHas:
        return Has(Of(e.args[0]), Of(e.args[1]));
      case ExpressionKind::kList:
        return List(e.args);
      case ExpressionKind::kNot: {
        const Value value = Of(e.args[0]);
        const bool* const truth = As<bool>(value);
        return truth == nullptr ? Value{Fault()} : Value{!*truth};
      }
      case ExpressionKind::kAnd:
        return Joined(e.args, /*decides=*/false);
      case ExpressionKind::kOr:
        return Joined(e.args, /*decides=*/true);
      case ExpressionKind::kEqual:
      case ExpressionKind::kNotEqual: {
        const std::optional<bool> equal = AreEqual(Of(e.args[0]), Of(e.args[1]));
        if (!equal.has_value()) return {Fault()};
        return {*equal == (e.kind == ExpressionKind::kEqual)};
      }
      case ExpressionKind::kIn:
        return In(Of(e.args[0]), Of(e.args[1]));
      case ExpressionKind::kConditional: {
        const Value condition = Of(e.args[0]);
        const bool* const truth = As<bool>(condition);
        return truth == nullptr ? Value{Fault()} : Of(e.args[*truth ? 1 : 2]);
      }
      case ExpressionKind::kCall:
        return Call(e);
      default:
        return Relation(e.kind, Of(e.args[0]), Of(e.args[1]));
    }
  }

 private:
  Value Member(const Value& of, const Value& key) const {
    const std::string* const name = As<std::string>(key);
    if (name == nullptr) return {Fault()};
    // A domain of which the device has nothing is empty.
    if (const auto* domains = As<Domains>(of)) return {Domain{domains->capacity, *name}};
    const Domain* const domain = As<Domain>(of);
    if (domain == nullptr) return {Fault()};
    if (domain->capacity) {
      const auto it = FindIn(device_.capacity, driver_, domain->name, *name);
      return it == device_.capacity.end() ? Value{Fault()} : Value{ExpressionQuantity{it->second}};
    }
    const auto it = FindIn(device_.attributes, driver_, domain->name, *name);
    return it == device_.attributes.end() ? Value{Fault()} : ValueOf(it->second);
  }

  Value Has(const Value& of, const Value& key) const {
    const std::string* const name = As<std::string>(key);
    if (name == nullptr) return {Fault()};
    if (const auto* domains = As<Domains>(of)) {
      return {domains->capacity ? HasDomain(device_.capacity, driver_, *name)
                                : HasDomain(device_.attributes, driver_, *name)};
    }
    const Domain* const domain = As<Domain>(of);
    if (domain == nullptr) return {Fault()};
    return {domain->capacity
                ? FindIn(device_.capacity, driver_, domain->name, *name) != device_.capacity.end()
                : FindIn(device_.attributes, driver_, domain->name, *name) !=
                      device_.attributes.end()};
  }

  Value In(const Value& value, const Value& of) const {
    const auto* const list = As<std::vector<Value>>(of);
    if (list == nullptr) return Has(of, value);
    if (IsFault(value)) return value;
    for (const Value& item : *list) {
      if (AreEqual(value, item).value_or(false)) return {true};
    }
    return {false};
  }

  Value List(const std::vector<Expression>& items) const {
    std::vector<Value> list;
    for (const Expression& item : items) {
      list.push_back(Of(item));
      if (IsFault(list.back())) return {Fault()};
    }
    return {std::move(list)};
  }

  // An error counts only if no part decides.
  Value Joined(const std::vector<Expression>& parts, bool decides) const {
    bool fault = false;
    for (const Expression& part : parts) {
      const Value value = Of(part);
      const bool* const truth = As<bool>(value);
      if (truth != nullptr && *truth == decides) return {decides};
      fault |= truth == nullptr;
    }
    return fault ? Value{Fault()} : Value{!decides};
  }

  static Value Relation(ExpressionKind kind, const Value& a, const Value& b) {
    if (a.is.index() != b.is.index()) return {Fault()};
    if (const auto* number = As<int64_t>(a)) return Ordered(kind, *number, *As<int64_t>(b));
    if (const auto* text = As<std::string>(a)) return Ordered(kind, *text, *As<std::string>(b));
    if (const auto* truth = As<bool>(a)) return Ordered(kind, *truth, *As<bool>(b));
    return {Fault()};
  }

  Value Call(const Expression& e) const {
    const Value object = Of(e.args[0]);
    const Value arg = e.args.size() > 1 ? Of(e.args[1]) : Value{Fault()};
    switch (e.function) {
      case Function::kCompareTo:
      case Function::kIsGreaterThan:
      case Function::kIsLessThan: {
        const std::optional<int64_t> order = CompareTo(object, arg);
        if (!order.has_value()) return {Fault()};
        if (e.function == Function::kCompareTo) return {*order};
        return {e.function == Function::kIsGreaterThan ? *order > 0 : *order < 0};
      }
      case Function::kMajor:
      case Function::kMinor:
      case Function::kPatch: {
        const auto* const version = As<SemanticVersion>(object);
        if (version == nullptr) return {Fault()};
        return {static_cast<int64_t>(e.function == Function::kMajor   ? version->major
                                     : e.function == Function::kMinor ? version->minor
                                                                      : version->patch)};
      }
      default:
        break;
    }
    if (const auto* list = As<std::vector<Value>>(object); e.function == Function::kSize && list) {
      return {static_cast<int64_t>(list->size())};
    }
    const std::string* const text = As<std::string>(object);
    return text == nullptr ? Value{Fault()} : OfText(e, *text, As<std::string>(arg));
  }

  static Value OfText(const Expression& e, const std::string& text, const std::string* arg) {
    switch (e.function) {
      case Function::kMatches:
        return {RE2::PartialMatch(text, *e.pattern)};
      case Function::kLowerAscii:
        return {absl::AsciiStrToLower(text)};
      case Function::kUpperAscii:
        return {absl::AsciiStrToUpper(text)};
      case Function::kSize:
        return {CodePoints(text)};
      case Function::kQuantity: {
        const absl::StatusOr<int64_t> units = model::ParseQuantity(text, 1);
        return units.ok() ? Value{ExpressionQuantity{*units}} : Value{Fault()};
      }
      case Function::kSemver: {
        std::optional<SemanticVersion> version = SemanticVersion::Parse(text);
        return version.has_value() ? Value{*std::move(version)} : Value{Fault()};
      }
      default:
        break;
    }
    if (arg == nullptr) return {Fault()};
    if (e.function == Function::kStartsWith) return {absl::StartsWith(text, *arg)};
    if (e.function == Function::kEndsWith) return {absl::EndsWith(text, *arg)};
    if (e.function == Function::kContains) return {absl::StrContains(text, *arg)};
    return {Fault()};
  }

  const absl::string_view driver_;
  const model::Device& device_;
};

}  // namespace

absl::StatusOr<DeviceSelector> DeviceSelector::Parse(absl::string_view expression) {
  absl::StatusOr<Expression> parsed = ParseExpression(expression);
  if (parsed.ok()) return DeviceSelector(*std::move(parsed));
  return absl::InvalidArgumentError(
      absl::StrCat("selector not understood: ", parsed.status().message()));
}

const model::DeviceAttribute* FindAttribute(absl::string_view driver, const model::Device& device,
                                            absl::string_view name) {
  const size_t slash = name.find('/');
  if (slash == absl::string_view::npos) return nullptr;
  const auto it = FindIn(device.attributes, driver, name.substr(0, slash), name.substr(slash + 1));
  return it == device.attributes.end() ? nullptr : &it->second;
}

bool DeviceSelector::Matches(absl::string_view driver, const model::Device& device) const {
  const Value result = Evaluation(driver, device).Of(expression_);
  const bool* const truth = As<bool>(result);
  return truth != nullptr && *truth;
}

}  // namespace fairlead::state
