// The syntax tree of a CEL expression about a device, and its parser. device_selector.h says which
// part of CEL that is.
//
// Source: the CEL language definition (cel.dev), sections Syntax and Gradual Type Checking.
// Ownership: a tree is a value; compiled patterns are shared. Thread-safety: pure functions.
// Complexity: O(length). Nesting is bounded, so that no input exhausts the stack.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/state/device_version.h"

namespace re2 {
class RE2;
}

namespace fairlead::state {

// An amount, as the function quantity() makes it: base units, rounded up.
struct ExpressionQuantity {
  int64_t units = 0;
};

enum class ExpressionKind : uint8_t {
  kLiteral,
  kDriver,      // device.driver
  kForSeveral,  // device.allowMultipleAllocations
  kAttributes,  // device.attributes: by domain
  kCapacity,    // device.capacity: by domain
  kMember,      // args[0] at the key args[1]: `a["b"]`, or `a.b`
  kHas,         // has(args[0].b), with args as of kMember
  kList,        // args
  kNot,         // args[0]
  kAnd,         // args[0] && args[1]
  kOr,          // args[0] || args[1]
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,           // args[0] in args[1]
  kConditional,  // args[0] ? args[1] : args[2]
  kCall,         // function, with the object of a method as args[0]
};

enum class ExpressionFunction : uint8_t {
  kNone,
  kStartsWith,
  kEndsWith,
  kContains,
  kMatches,  // `pattern`
  kLowerAscii,
  kUpperAscii,
  kSize,
  kCompareTo,
  kIsGreaterThan,
  kIsLessThan,
  kMajor,
  kMinor,
  kPatch,
  kQuantity,
  kSemver,
};

struct Expression {
  ExpressionKind kind = ExpressionKind::kLiteral;
  std::variant<bool, int64_t, std::string> literal = false;
  ExpressionFunction function = ExpressionFunction::kNone;
  std::shared_ptr<const re2::RE2> pattern = nullptr;
  std::vector<Expression> args = {};
};

// InvalidArgument says what was not understood, from where on.
absl::StatusOr<Expression> ParseExpression(absl::string_view text);

}  // namespace fairlead::state
