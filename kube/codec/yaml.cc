// The strict YAML loader: yaml-cpp's events straight to JSON text. Nothing else includes yaml-cpp's
// parser for manifests; no exception leaves this file.
//
// Scalars follow the core schema of YAML 1.2: null, true/false and numbers in its spellings,
// everything else is a string (yes, no, on, off included; 0777 is seven hundred seventy-seven).
#include "kube/codec/yaml.h"

#include <sstream>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kube/codec/field_problems.h"
#include "kube/codec/json_writer.h"
#include "yaml-cpp/anchor.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/parser.h"

namespace fairlead::kube {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxNodes = 5 * 1000 * 1000;
constexpr size_t kMaxBytes = size_t{256} << 20;

// Thrown by the handler through yaml-cpp, caught in YamlDocuments.
struct Refused {
  YAML::Mark mark;
  std::string why;
};

std::string At(const YAML::Mark& mark) {
  if (mark.is_null()) return "";
  return absl::StrCat("line ", mark.line + 1, ", column ", mark.column + 1, ": ");
}

size_t CountDigits(absl::string_view text) {
  size_t n = 0;
  while (n < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[n]))) ++n;
  return n;
}

// JSON's spelling of a decimal number of the core schema; empty if it is none.
std::string JsonNumber(absl::string_view text) {
  std::string out;
  if (absl::ConsumePrefix(&text, "-")) {
    out = "-";
  } else {
    absl::ConsumePrefix(&text, "+");
  }
  absl::string_view whole = text.substr(0, CountDigits(text));
  text.remove_prefix(whole.size());
  absl::string_view fraction;
  if (absl::ConsumePrefix(&text, ".")) {
    fraction = text.substr(0, CountDigits(text));
    text.remove_prefix(fraction.size());
  }
  if (whole.empty() && fraction.empty()) return "";
  while (whole.size() > 1 && whole[0] == '0') whole.remove_prefix(1);
  absl::StrAppend(&out, whole.empty() ? "0" : whole);
  if (!fraction.empty()) absl::StrAppend(&out, ".", fraction);
  if (text.empty()) return out;
  if (text[0] != 'e' && text[0] != 'E') return "";
  text.remove_prefix(1);
  out += 'e';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    out += text[0];
    text.remove_prefix(1);
  }
  if (text.empty() || CountDigits(text) != text.size()) return "";
  return absl::StrCat(out, text);
}

// 0x1F and 0o17; empty if it is neither.
std::string JsonOfPrefixedInteger(absl::string_view text) {
  int base = 0;
  if (absl::ConsumePrefix(&text, "0x")) base = 16;
  if (base == 0 && absl::ConsumePrefix(&text, "0o")) base = 8;
  const char* digits = base == 16 ? "0123456789abcdefABCDEF" : "01234567";
  if (base == 0 || text.empty() || text.find_first_not_of(digits) != absl::string_view::npos) {
    return "";
  }
  uint64_t value = 0;
  for (char c : text) {
    const int digit =
        c <= '9' ? c - '0' : absl::ascii_tolower(static_cast<unsigned char>(c)) - 'a' + 10;
    if (value > (UINT64_MAX >> 4)) return "";  // too large: stays a string
    value = value * static_cast<uint64_t>(base) + static_cast<uint64_t>(digit);
  }
  return absl::StrCat(value);
}

bool IsNull(absl::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

bool IsNotFinite(absl::string_view text) {
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return true;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return text == ".inf" || text == ".Inf" || text == ".INF";
}

class JsonBuilder final : public YAML::EventHandler {
 public:
  explicit JsonBuilder(size_t& nodes) : nodes_(nodes) {}

  std::string TakeText() { return json_.Take(); }
  // The first token that belongs to it, which may be a separator.
  [[nodiscard]] const YAML::Mark& document() const { return document_; }
  // Of its first value.
  [[nodiscard]] const YAML::Mark& start() const { return start_; }

  void OnDocumentStart(const YAML::Mark& mark) override { document_ = mark; }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    BeginNode(mark, anchor);
    if (ExpectsKey()) throw Refused{mark, "a key must be a string"};
    EndValue();
    json_.Null();
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{mark, "aliases are not allowed"};
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    BeginNode(mark, anchor);
    if (ExpectsKey()) return TakeKey(mark, tag, value);
    EndValue();
    WriteScalar(mark, tag, value);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    BeginCollection(mark, tag, "tag:yaml.org,2002:seq", anchor);
    levels_.emplace_back();
    json_.BeginArray();
  }
  void OnSequenceEnd() override {
    levels_.pop_back();
    json_.EndArray();
  }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    BeginCollection(mark, tag, "tag:yaml.org,2002:map", anchor);
    levels_.emplace_back().is_map = true;
    json_.BeginObject();
  }
  void OnMapEnd() override {
    levels_.pop_back();
    json_.EndObject();
  }

 private:
  struct Level {
    bool is_map = false;
    bool has_key = false;  // the next node is a value
    absl::flat_hash_set<std::string> keys;
  };

  void BeginNode(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (start_.is_null()) start_ = mark;
    if (anchor != YAML::NullAnchor) throw Refused{mark, "anchors are not allowed"};
    if (++nodes_ > kMaxNodes) {
      throw Refused{mark, absl::StrCat("more than ", kMaxNodes, " values")};
    }
  }

  void BeginCollection(const YAML::Mark& mark, const std::string& tag, absl::string_view own_tag,
                       YAML::anchor_t anchor) {
    BeginNode(mark, anchor);
    if (!tag.empty() && tag != "?" && tag != "!" && tag != own_tag) {
      throw Refused{mark, absl::StrCat("tag ", Quoted(tag), " is not supported")};
    }
    if (ExpectsKey()) throw Refused{mark, "a key must be a string"};
    if (levels_.size() >= kMaxDepth) {
      throw Refused{mark, absl::StrCat("nested deeper than ", kMaxDepth)};
    }
    EndValue();
  }

  [[nodiscard]] bool ExpectsKey() const {
    return !levels_.empty() && levels_.back().is_map && !levels_.back().has_key;
  }
  void EndValue() {
    if (!levels_.empty()) levels_.back().has_key = false;
  }

  void TakeKey(const YAML::Mark& mark, const std::string& tag, const std::string& value) {
    if (tag == "?" && value == "<<") throw Refused{mark, "merge keys are not allowed"};
    if (tag != "?" && tag != "!" && !tag.empty() && tag != "tag:yaml.org,2002:str") {
      throw Refused{mark, "a key must be a string"};
    }
    Level& level = levels_.back();
    if (!level.keys.insert(value).second) {
      throw Refused{mark, absl::StrCat("key ", Quoted(value), " is there twice")};
    }
    level.has_key = true;
    json_.Key(value);
  }

  void WriteScalar(const YAML::Mark& mark, const std::string& tag, const std::string& value) {
    if (tag == "!" || tag == "tag:yaml.org,2002:str") {
      json_.String(value);
      return;
    }
    if (!tag.empty() && tag != "?") {
      throw Refused{mark, absl::StrCat("tag ", Quoted(tag), " is not supported")};
    }
    if (IsNull(value)) {
      json_.Null();
    } else if (value == "true" || value == "True" || value == "TRUE") {
      json_.Bool(true);
    } else if (value == "false" || value == "False" || value == "FALSE") {
      json_.Bool(false);
    } else if (IsNotFinite(value)) {
      throw Refused{mark, absl::StrCat(Quoted(value), " is not a number that JSON has")};
    } else if (std::string number = JsonNumber(value); !number.empty()) {
      json_.Raw(number);
    } else if (number = JsonOfPrefixedInteger(value); !number.empty()) {
      json_.Raw(number);
    } else {
      json_.String(value);
    }
  }

  size_t& nodes_;
  JsonWriter json_;
  YAML::Mark document_ = YAML::Mark::null_mark();
  YAML::Mark start_ = YAML::Mark::null_mark();
  std::vector<Level> levels_;
};

}  // namespace

absl::StatusOr<std::vector<YamlDocument>> YamlDocuments(absl::string_view yaml) {
  if (yaml.size() > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat("YAML of more than ", kMaxBytes, " bytes"));
  }
  std::vector<YamlDocument> documents;
  size_t nodes = 0;
  int last_position = -1;
  try {
    std::istringstream stream{std::string(yaml)};
    YAML::Parser parser(stream);
    for (;;) {
      JsonBuilder builder(nodes);
      if (!parser.HandleNextDocument(builder)) break;
      // At a token that starts no node the parser makes empty documents for ever.
      if (builder.document().pos <= last_position) {
        throw Refused{builder.document(), "unexpected text"};
      }
      last_position = builder.document().pos;
      std::string text = builder.TakeText();
      if (text.empty()) text = "null";
      documents.push_back({std::move(text), builder.start().line + 1, builder.start().column + 1});
    }
  } catch (const Refused& refused) {
    return absl::InvalidArgumentError(absl::StrCat("YAML: ", At(refused.mark), refused.why));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("YAML: ", At(error.mark), error.msg));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("YAML: ", error.what()));
  }
  return documents;
}

absl::StatusOr<std::vector<std::string>> YamlToJson(absl::string_view yaml) {
  absl::StatusOr<std::vector<YamlDocument>> documents = YamlDocuments(yaml);
  if (!documents.ok()) return documents.status();
  std::vector<std::string> texts;
  texts.reserve(documents->size());
  for (YamlDocument& document : *documents) texts.push_back(std::move(document.json));
  return texts;
}

}  // namespace fairlead::kube
