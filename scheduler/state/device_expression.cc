#include "scheduler/state/device_expression.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "re2/re2.h"
#include "scheduler/model/quantity.h"

namespace fairlead::state {
namespace {

constexpr size_t kMaxLength = 10 * 1024;  // as the API server's
constexpr int kMaxNesting = 50;
constexpr size_t kToldText = 100;

struct Method {
  const char* name;
  ExpressionFunction function;
  size_t args;  // besides the object
};
constexpr Method kMethods[] = {
    {"startsWith", ExpressionFunction::kStartsWith, 1},
    {"endsWith", ExpressionFunction::kEndsWith, 1},
    {"contains", ExpressionFunction::kContains, 1},
    {"matches", ExpressionFunction::kMatches, 1},
    {"lowerAscii", ExpressionFunction::kLowerAscii, 0},
    {"upperAscii", ExpressionFunction::kUpperAscii, 0},
    {"size", ExpressionFunction::kSize, 0},
    {"compareTo", ExpressionFunction::kCompareTo, 1},
    {"isGreaterThan", ExpressionFunction::kIsGreaterThan, 1},
    {"isLessThan", ExpressionFunction::kIsLessThan, 1},
    {"major", ExpressionFunction::kMajor, 0},
    {"minor", ExpressionFunction::kMinor, 0},
    {"patch", ExpressionFunction::kPatch, 0},
};
constexpr Method kFunctions[] = {
    {"quantity", ExpressionFunction::kQuantity, 1},
    {"semver", ExpressionFunction::kSemver, 1},
    {"size", ExpressionFunction::kSize, 1},
};
constexpr std::pair<const char*, ExpressionKind> kRelations[] = {
    {"==", ExpressionKind::kEqual},     {"!=", ExpressionKind::kNotEqual},
    {"<=", ExpressionKind::kLessEqual}, {">=", ExpressionKind::kGreaterEqual},
    {"<", ExpressionKind::kLess},       {">", ExpressionKind::kGreater},
};

bool IsNameChar(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  absl::StatusOr<Expression> Run() {
    if (text_.size() > kMaxLength) return absl::InvalidArgumentError("it is too long");
    FAIRLEAD_ASSIGN_OR_RETURN(Expression whole, Conditional());
    SkipSpace();
    if (!text_.empty()) return Wrong();
    return whole;
  }

 private:
  using Result = absl::StatusOr<Expression>;

  [[nodiscard]] absl::Status Wrong() const {
    if (text_.empty()) return absl::InvalidArgumentError("it ends too early");
    return absl::InvalidArgumentError(text_.substr(0, kToldText));
  }
  void SkipSpace() { text_ = absl::StripLeadingAsciiWhitespace(text_); }
  bool Take(absl::string_view token) {
    SkipSpace();
    if (!absl::StartsWith(text_, token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  // A name that stands alone.
  bool TakeWord(absl::string_view word) {
    SkipSpace();
    if (PeekName() != word) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  [[nodiscard]] absl::string_view PeekName() const {
    size_t length = 0;
    while (length < text_.size() && IsNameChar(text_[length])) ++length;
    if (length > 0 && absl::ascii_isdigit(static_cast<unsigned char>(text_.front()))) length = 0;
    return text_.substr(0, length);
  }
  static Expression Make(ExpressionKind kind, std::vector<Expression> args) {
    return {.kind = kind, .args = std::move(args)};
  }
  static Expression Literal(std::variant<bool, int64_t, std::string> value) {
    return {.kind = ExpressionKind::kLiteral, .literal = std::move(value)};
  }

  Result Conditional() {
    if (nesting_ >= kMaxNesting) return absl::InvalidArgumentError("it is nested too deep");
    ++nesting_;
    Result out = ConditionalWithin();
    --nesting_;
    return out;
  }
  Result ConditionalWithin() {
    FAIRLEAD_ASSIGN_OR_RETURN(Expression condition, Or());
    if (!Take("?")) return condition;
    FAIRLEAD_ASSIGN_OR_RETURN(Expression then, Or());
    if (!Take(":")) return Wrong();
    FAIRLEAD_ASSIGN_OR_RETURN(Expression otherwise, Conditional());
    return Make(ExpressionKind::kConditional,
                {std::move(condition), std::move(then), std::move(otherwise)});
  }
  Result Or() { return Chain("||", ExpressionKind::kOr, &Parser::And); }
  Result And() { return Chain("&&", ExpressionKind::kAnd, &Parser::Relation); }
  // Chains are flat: they nest no deeper than they are written.
  Result Chain(absl::string_view token, ExpressionKind kind, Result (Parser::*part)()) {
    std::vector<Expression> args;
    do {
      FAIRLEAD_ASSIGN_OR_RETURN(Expression next, (this->*part)());
      args.push_back(std::move(next));
    } while (Take(token));
    return args.size() == 1 ? std::move(args.front()) : Make(kind, std::move(args));
  }
  Result Relation() {
    FAIRLEAD_ASSIGN_OR_RETURN(Expression left, Unary());
    for (int depth = 0;; ++depth) {
      std::optional<ExpressionKind> kind;
      for (const auto& [token, relation] : kRelations) {
        if (!kind.has_value() && Take(token)) kind = relation;
      }
      if (!kind.has_value() && TakeWord("in")) kind = ExpressionKind::kIn;
      if (!kind.has_value()) return left;
      FAIRLEAD_ASSIGN_OR_RETURN(Expression right, Unary());
      left = Make(*kind, {std::move(left), std::move(right)});
      if (depth > kMaxNesting) return absl::InvalidArgumentError("it is nested too deep");
    }
  }
  Result Unary() {
    bool negated = false;
    while (Take("!")) negated = !negated;
    FAIRLEAD_ASSIGN_OR_RETURN(Expression value, Member());
    // `!!x` is x, if x is a truth value.
    return negated ? Make(ExpressionKind::kNot, {std::move(value)}) : std::move(value);
  }
  Result Member() {
    FAIRLEAD_ASSIGN_OR_RETURN(Expression value, Primary());
    for (int depth = 0;; ++depth) {
      if (depth > kMaxNesting) return absl::InvalidArgumentError("it is nested too deep");
      SkipSpace();
      const absl::string_view at = text_;
      const auto no_member = [&] { return absl::InvalidArgumentError(at.substr(0, kToldText)); };
      if (Take("[")) {
        if (!HasMembers(value)) return no_member();
        FAIRLEAD_ASSIGN_OR_RETURN(Expression key, Conditional());
        if (!Take("]")) return Wrong();
        value = Make(ExpressionKind::kMember, {std::move(value), std::move(key)});
      } else if (Take(".")) {
        SkipSpace();
        const std::string name(PeekName());
        if (name.empty()) return Wrong();
        const absl::string_view from = text_;
        text_.remove_prefix(name.size());
        if (Take("(")) {
          FAIRLEAD_ASSIGN_OR_RETURN(std::vector<Expression> args, Arguments());
          args.insert(args.begin(), std::move(value));
          FAIRLEAD_ASSIGN_OR_RETURN(value, Call(kMethods, name, 1, std::move(args), from));
        } else {
          if (!HasMembers(value)) return no_member();
          value = Make(ExpressionKind::kMember, {std::move(value), Literal(name)});
        }
      } else {
        return value;
      }
    }
  }
  // The domains of a device, and what is in one of them.
  static bool HasMembers(const Expression& value) {
    const auto has_domains = [](const Expression& e) {
      return e.kind == ExpressionKind::kAttributes || e.kind == ExpressionKind::kCapacity;
    };
    return has_domains(value) ||
           (value.kind == ExpressionKind::kMember && has_domains(value.args[0]));
  }
  // After the opening parenthesis.
  absl::StatusOr<std::vector<Expression>> Arguments() {
    std::vector<Expression> args;
    if (Take(")")) return args;
    do {
      FAIRLEAD_ASSIGN_OR_RETURN(Expression arg, Conditional());
      args.push_back(std::move(arg));
    } while (Take(","));
    if (!Take(")")) return Wrong();
    return args;
  }
  // `from`: where the call begins. `objects`: of `args` that are no arguments.
  template <size_t n>
  Result Call(const Method (&known)[n], const std::string& name, size_t objects,
              std::vector<Expression> args, absl::string_view from) {
    const Method* const found = std::find_if(std::begin(known), std::end(known),
                                             [&](const Method& each) { return each.name == name; });
    const auto wrong = [&] { return absl::InvalidArgumentError(from.substr(0, kToldText)); };
    if (found == std::end(known) || found->args + objects != args.size()) return wrong();
    Expression call = Make(ExpressionKind::kCall, std::move(args));
    call.function = found->function;
    const bool literal = !call.args.empty() && call.args.back().kind == ExpressionKind::kLiteral;
    const std::string* const text =
        literal ? std::get_if<std::string>(&call.args.back().literal) : nullptr;
    if (call.function == ExpressionFunction::kMatches) {
      auto pattern = text == nullptr ? nullptr : std::make_shared<const RE2>(*text, RE2::Quiet);
      if (pattern == nullptr || !pattern->ok()) return wrong();
      call.pattern = std::move(pattern);
      call.args.pop_back();
    }
    const bool malformed =
        text != nullptr &&
        ((call.function == ExpressionFunction::kQuantity && !model::ParseQuantity(*text, 1).ok()) ||
         (call.function == ExpressionFunction::kSemver &&
          !SemanticVersion::Parse(*text).has_value()));
    if (malformed) return wrong();
    return call;
  }
  Result Primary() {
    SkipSpace();
    const absl::string_view from = text_;
    if (Take("(")) {
      FAIRLEAD_ASSIGN_OR_RETURN(Expression within, Conditional());
      if (!Take(")")) return Wrong();
      return within;
    }
    if (Take("[")) {
      Expression list = Make(ExpressionKind::kList, {});
      if (Take("]")) return list;
      do {
        FAIRLEAD_ASSIGN_OR_RETURN(Expression item, Conditional());
        list.args.push_back(std::move(item));
      } while (Take(","));
      if (!Take("]")) return Wrong();
      return list;
    }
    if (const std::optional<int64_t> number = TakeNumber()) return Literal(*number);
    if (std::optional<std::string> text = TakeString()) return Literal(*std::move(text));
    if (TakeWord("true")) return Literal(true);
    if (TakeWord("false")) return Literal(false);
    if (TakeWord("device")) return DeviceField(from);
    if (TakeWord("has")) return Has(from);
    const std::string name(PeekName());
    text_.remove_prefix(name.size());
    if (name.empty() || !Take("(")) {
      text_ = from;
      return Wrong();
    }
    FAIRLEAD_ASSIGN_OR_RETURN(std::vector<Expression> args, Arguments());
    return Call(kFunctions, name, 0, std::move(args), from);
  }
  Result DeviceField(absl::string_view from) {
    if (Take(".")) {
      SkipSpace();
      if (TakeWord("driver")) return Make(ExpressionKind::kDriver, {});
      if (TakeWord("attributes")) return Make(ExpressionKind::kAttributes, {});
      if (TakeWord("capacity")) return Make(ExpressionKind::kCapacity, {});
      if (TakeWord("allowMultipleAllocations")) return Make(ExpressionKind::kForSeveral, {});
    }
    text_ = from;
    return Wrong();
  }
  Result Has(absl::string_view from) {
    if (Take("(")) {
      FAIRLEAD_ASSIGN_OR_RETURN(Expression field, Conditional());
      if (field.kind == ExpressionKind::kMember && Take(")")) {
        field.kind = ExpressionKind::kHas;
        return field;
      }
    }
    text_ = from;
    return Wrong();
  }

  std::optional<int64_t> TakeNumber() {
    size_t length = !text_.empty() && text_.front() == '-' ? 1 : 0;
    const size_t digits = length;
    while (length < text_.size() && IsNameChar(text_[length])) ++length;
    // A point: a floating-point number, which nothing here can be compared with.
    if (length == digits || (length < text_.size() && text_[length] == '.')) return std::nullopt;
    int64_t number = 0;
    if (!absl::ascii_isdigit(static_cast<unsigned char>(text_[digits])) ||
        !absl::SimpleAtoi(text_.substr(0, length), &number)) {
      return std::nullopt;
    }
    text_.remove_prefix(length);
    return number;
  }

  // "a", 'a', and both with the prefix r, which turns escapes off.
  std::optional<std::string> TakeString() {
    absl::string_view rest = text_;
    const bool raw = !rest.empty() && (rest.front() == 'r' || rest.front() == 'R');
    if (raw) rest.remove_prefix(1);
    if (rest.empty() || (rest.front() != '"' && rest.front() != '\'')) return std::nullopt;
    const char quote = rest.front();
    if (absl::StartsWith(rest, std::string(3, quote))) return std::nullopt;
    std::string value;
    for (size_t i = 1; i < rest.size() && rest[i] != '\n'; ++i) {
      if (rest[i] == quote) {
        text_ = rest.substr(i + 1);
        return value;
      }
      if (rest[i] != '\\' || raw) {
        value += rest[i];
        continue;
      }
      constexpr absl::string_view kEscapes = "\\\"'`?abfnrtv", kMeanings = "\\\"'`?\a\b\f\n\r\t\v";
      const size_t escape = i + 1 < rest.size() ? kEscapes.find(rest[i + 1]) : kEscapes.npos;
      if (escape == absl::string_view::npos) return std::nullopt;
      value += kMeanings[escape];
      ++i;
    }
    return std::nullopt;
  }

  absl::string_view text_;
  int nesting_ = 0;
};

}  // namespace

absl::StatusOr<Expression> ParseExpression(absl::string_view text) { return Parser(text).Run(); }

}  // namespace fairlead::state
