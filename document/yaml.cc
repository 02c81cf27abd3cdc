#include "document/yaml.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "yaml-cpp/anchor.h"
#include "yaml-cpp/eventhandler.h"
#include "yaml-cpp/exceptions.h"
#include "yaml-cpp/parser.h"

namespace fairlead {
namespace {

constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxNodes = 5 * 1000 * 1000;
constexpr size_t kMaxNodesWithAliases = 1000 * 1000;
constexpr size_t kMaxBytes = size_t{256} << 20;

// The handler throws it through yaml-cpp; LoadYaml catches it.
struct Refused {
  YAML::Mark mark;
  std::string why;
};

TextPlace PlaceOf(const YAML::Mark& mark) {
  return mark.is_null() ? TextPlace{} : TextPlace{mark.line + 1, mark.column + 1};
}

absl::Status ErrorAt(const YAML::Mark& mark, absl::string_view why, const YamlOptions& options) {
  const auto [line, column] = PlaceOf(mark);
  const bool in_file = !options.file_name.empty();
  std::string where = in_file ? options.file_name : "YAML";
  if (line > 0) {
    absl::StrAppend(&where, in_file ? ":" : ": line ", line, in_file ? ":" : ", column ", column);
  }
  // A quotation from the text follows a colon.
  if (!options.quotes) why = why.substr(0, why.find(':'));
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", why));
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

constexpr size_t kMaxQuotedBytes = 64;

std::string Quoted(absl::string_view text) {
  return JsonQuoted(TruncateUtf8(text, kMaxQuotedBytes));
}

// One document, from yaml-cpp's events.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(const YamlOptions& options, size_t& nodes) : options_(options), nodes_(nodes) {}

  Json TakeTree() { return std::move(root_); }
  // The first token that belongs to it, which may be a separator.
  [[nodiscard]] const YAML::Mark& document() const { return document_; }

  void OnDocumentStart(const YAML::Mark& mark) override { document_ = mark; }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    BeginNode(mark, anchor);
    if (ExpectsKey()) throw Refused{mark, "a key must be a string"};
    EndNode(Json(), 0, mark, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (!options_.aliases) throw Refused{mark, "aliases are not allowed"};
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Refused{mark, "an alias inside what it stands for"};
    if (ExpectsKey()) throw Refused{mark, "a key must be a string"};
    nodes_ += found->second.nodes;
    CheckSize(mark);
    CheckDepth(mark, found->second.height);
    EndNode(found->second.value, found->second.height, mark, YAML::NullAnchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    BeginNode(mark, anchor);
    if (ExpectsKey()) return TakeKey(mark, tag, value);
    EndNode(Scalar(mark, tag, value), 0, mark, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    BeginCollection(mark, tag, "tag:yaml.org,2002:seq", anchor, Json::Array());
  }
  void OnSequenceEnd() override { EndCollection(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    BeginCollection(mark, tag, "tag:yaml.org,2002:map", anchor, Json::Object());
  }
  void OnMapEnd() override { EndCollection(); }

 private:
  // A collection that has begun.
  struct Level {
    Json value;
    YAML::Mark mark;
    YAML::anchor_t anchor;
    size_t nodes_before;
    size_t height;                   // 1 if it has no collections in it
    std::optional<std::string> key;  // the next node is its value
    TextPlace key_place;
    absl::flat_hash_set<std::string> keys;
  };
  struct Anchored {
    Json value;
    size_t height, nodes;
  };

  void CheckSize(const YAML::Mark& mark) const {
    const size_t most = options_.aliases ? kMaxNodesWithAliases : kMaxNodes;
    if (nodes_ > most) throw Refused{mark, absl::StrCat("more than ", most, " values")};
  }
  // `height` of what begins here.
  void CheckDepth(const YAML::Mark& mark, size_t height) const {
    if (levels_.size() + height > kMaxDepth) {
      throw Refused{mark, absl::StrCat("nested deeper than ", kMaxDepth)};
    }
  }

  void BeginNode(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor && !options_.aliases) {
      throw Refused{mark, "anchors are not allowed"};
    }
    ++nodes_;
    CheckSize(mark);
  }

  void BeginCollection(const YAML::Mark& mark, const std::string& tag, absl::string_view own_tag,
                       YAML::anchor_t anchor, Json empty) {
    const size_t before = nodes_;
    BeginNode(mark, anchor);
    if (!tag.empty() && tag != "?" && tag != "!" && tag != own_tag) {
      throw Refused{mark, absl::StrCat("tag is not supported: ", Quoted(tag))};
    }
    if (ExpectsKey()) throw Refused{mark, "a key must be a string"};
    CheckDepth(mark, 1);
    levels_.push_back({std::move(empty), mark, anchor, before, 1, std::nullopt, {}, {}});
  }

  void EndCollection() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    nodes_before_ = level.nodes_before;
    EndNode(std::move(level.value), level.height, level.mark, level.anchor);
  }

  // The value is complete: adds it to the surrounding collection.
  void EndNode(Json value, size_t height, const YAML::Mark& mark, YAML::anchor_t anchor) {
    value.SetPlace(PlaceOf(mark));
    if (anchor != YAML::NullAnchor) {
      anchors_[anchor] = {value, height, height == 0 ? 1 : nodes_ - nodes_before_};
    }
    if (levels_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& level = levels_.back();
    level.height = std::max(level.height, height + 1);
    if (!level.key.has_value()) {
      level.value.Add(std::move(value));
      return;
    }
    value.SetKeyPlace(level.key_place);
    level.value.Append(*std::exchange(level.key, std::nullopt), std::move(value));
  }

  [[nodiscard]] bool ExpectsKey() const {
    return !levels_.empty() && levels_.back().value.is_object() && !levels_.back().key.has_value();
  }

  void TakeKey(const YAML::Mark& mark, const std::string& tag, const std::string& value) {
    if (tag == "?" && value == "<<") throw Refused{mark, "merge keys are not allowed"};
    if (tag != "?" && tag != "!" && !tag.empty() && tag != "tag:yaml.org,2002:str") {
      throw Refused{mark, "a key must be a string"};
    }
    Level& level = levels_.back();
    if (!level.keys.insert(value).second) {
      throw Refused{mark, absl::StrCat("given twice: ", Quoted(value))};
    }
    level.key = value;
    level.key_place = PlaceOf(mark);
  }

  static Json Scalar(const YAML::Mark& mark, const std::string& tag, const std::string& value) {
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return Json::String(value);
    if (!tag.empty() && tag != "?") {
      throw Refused{mark, absl::StrCat("tag is not supported: ", Quoted(tag))};
    }
    if (IsNull(value)) return {};
    if (value == "true" || value == "True" || value == "TRUE") return Json::Bool(true);
    if (value == "false" || value == "False" || value == "FALSE") return Json::Bool(false);
    if (IsNotFinite(value)) {
      throw Refused{mark, absl::StrCat("not a number that JSON has: ", Quoted(value))};
    }
    if (std::string number = JsonNumber(value); !number.empty()) return Json::Number(number);
    if (std::string number = JsonOfPrefixedInteger(value); !number.empty()) {
      return Json::Number(number);
    }
    return Json::String(value);
  }

  const YamlOptions& options_;
  size_t& nodes_;
  size_t nodes_before_ = 0;  // the collection that ends
  Json root_;
  YAML::Mark document_ = YAML::Mark::null_mark();
  std::vector<Level> levels_;
  absl::flat_hash_map<YAML::anchor_t, Anchored> anchors_;
};

// The field of the object with the longest key that the path begins with: keys may contain dots.
const Json::Field* LongestMatch(const Json& object, absl::string_view path) {
  const Json::Field* best = nullptr;
  for (const Json::Field& field : object.fields()) {
    const std::string& key = field.first;
    if (key.empty() || !absl::StartsWith(path, key)) continue;
    if (best != nullptr && best->first.size() >= key.size()) continue;
    const absl::string_view rest = path.substr(key.size());
    if (rest.empty() || rest[0] == '.' || rest[0] == '[') best = &field;
  }
  return best;
}

}  // namespace

absl::StatusOr<std::vector<Json>> LoadYaml(absl::string_view yaml, const YamlOptions& options) {
  if (yaml.size() > kMaxBytes) {
    return ErrorAt(YAML::Mark::null_mark(), absl::StrCat("more than ", kMaxBytes, " bytes"),
                   options);
  }
  std::vector<Json> documents;
  size_t nodes = 0;
  int last_position = -1;
  try {
    std::istringstream stream{std::string(yaml)};
    YAML::Parser parser(stream);
    for (;;) {
      TreeBuilder builder(options, nodes);
      if (!parser.HandleNextDocument(builder)) break;
      // yaml-cpp makes empty documents for ever at a token that starts no node.
      if (builder.document().pos <= last_position) {
        throw Refused{builder.document(), "unexpected text"};
      }
      last_position = builder.document().pos;
      documents.push_back(builder.TakeTree());
    }
  } catch (const Refused& refused) {
    return ErrorAt(refused.mark, refused.why, options);
  } catch (const YAML::Exception& error) {
    return ErrorAt(error.mark, error.msg, options);
  } catch (const std::exception& error) {
    return ErrorAt(YAML::Mark::null_mark(), error.what(), options);
  }
  return documents;
}

absl::StatusOr<std::vector<std::string>> YamlToJson(absl::string_view yaml,
                                                    const YamlOptions& options) {
  absl::StatusOr<std::vector<Json>> documents = LoadYaml(yaml, options);
  if (!documents.ok()) return documents.status();
  std::vector<std::string> texts;
  texts.reserve(documents->size());
  for (const Json& document : *documents) texts.push_back(document.Compact());
  return texts;
}

TextPlace FindPlace(const Json& root, absl::string_view path) {
  const Json* at = &root;
  TextPlace place = root.place();
  while (!path.empty()) {
    if (at->is_array() && absl::ConsumePrefix(&path, "[")) {
      const size_t end = path.find(']');
      size_t index = 0;
      if (end == absl::string_view::npos || !absl::SimpleAtoi(path.substr(0, end), &index) ||
          index >= at->items().size()) {
        return place;
      }
      path.remove_prefix(end + 1);
      at = &at->items()[index];
      place = at->place();
    } else {
      const Json::Field* field = LongestMatch(*at, path);
      if (field == nullptr) return place;
      path.remove_prefix(field->first.size());
      at = &field->second;
      place = at->key_place();
    }
    absl::ConsumePrefix(&path, ".");
  }
  return place;
}

}  // namespace fairlead
