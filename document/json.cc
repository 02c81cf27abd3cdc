#include "document/json.h"

#include <simdjson.h>

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/json_writer.h"
#include "base/strings.h"

namespace fairlead {
namespace {

namespace dom = simdjson::dom;

std::string Indent(int depth) { return std::string(static_cast<size_t>(depth) * 2, ' '); }

// Plain scalars of YAML that every reader takes for a string.
bool IsPlainYaml(absl::string_view text) {
  if (text.empty() || text.back() == ' ') return false;
  const auto alpha = [](char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); };
  if (!alpha(text[0]) && text[0] != '/') return false;
  for (const char c : text) {
    const bool fine = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ||
                      c == '.' || c == '/' || c == ' ';
    if (!fine) return false;
  }
  const std::string lower = absl::AsciiStrToLower(text);
  static constexpr const char* kWords[] = {"true", "false", "null", "yes", "no",
                                           "on",   "off",   "y",    "n"};
  return std::none_of(std::begin(kWords), std::end(kWords),
                      [&](const char* word) { return lower == word; });
}

std::string YamlString(const std::string& text) {
  return IsPlainYaml(text) ? text : JsonQuoted(text);
}

}  // namespace

Json Json::Bool(bool value) {
  Json json(Type::kBool);
  json.text_ = value ? "true" : "false";
  return json;
}

Json Json::Int(int64_t value) {
  Json json(Type::kNumber);
  json.text_ = absl::StrCat(value);
  return json;
}

Json Json::Number(absl::string_view spelling) {
  Json json(Type::kNumber);
  json.text_ = std::string(spelling);
  return json;
}

Json Json::String(absl::string_view value) {
  Json json(Type::kString);
  json.text_ = std::string(value);
  return json;
}

namespace {

Json Convert(const dom::element& element) {
  switch (element.type()) {
    case dom::element_type::OBJECT: {
      Json json = Json::Object();
      for (const auto& [key, value] : dom::object(element)) {
        json.Set(ToAbsl(key), Convert(value));
      }
      return json;
    }
    case dom::element_type::ARRAY: {
      Json json = Json::Array();
      for (const dom::element item : dom::array(element)) json.Add(Convert(item));
      return json;
    }
    case dom::element_type::STRING:
      return Json::String(ToAbsl(std::string_view(element)));
    case dom::element_type::BOOL:
      return Json::Bool(bool(element));
    case dom::element_type::NULL_VALUE:
      return {};
    default:
      return Json::Number(simdjson::minify(element));
  }
}

}  // namespace

absl::StatusOr<Json> Json::Parse(absl::string_view text) {
  dom::parser parser;
  dom::element root;
  if (const auto error = parser.parse(text.data(), text.size()).get(root);
      error != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        absl::StrCat("malformed JSON: ", simdjson::error_message(error)));
  }
  return Convert(root);
}

const Json* Json::Find(absl::string_view key) const {
  for (const Field& field : fields_) {
    if (field.first == key) return &field.second;
  }
  return nullptr;
}

Json* Json::Find(absl::string_view key) {
  return const_cast<Json*>(static_cast<const Json*>(this)->Find(key));
}

const Json* Json::At(std::initializer_list<absl::string_view> path) const {
  const Json* at = this;
  for (const absl::string_view key : path) {
    at = at->Find(key);
    if (at == nullptr) return nullptr;
  }
  return at;
}

Json* Json::At(std::initializer_list<absl::string_view> path) {
  return const_cast<Json*>(static_cast<const Json*>(this)->At(path));
}

std::string Json::TextAt(std::initializer_list<absl::string_view> path) const {
  const Json* found = At(path);
  return found == nullptr ? "" : found->text_;
}

Json& Json::Set(absl::string_view key, Json value) {
  if (Json* field = Find(key); field != nullptr) {
    *field = std::move(value);
  } else {
    fields_.emplace_back(std::string(key), std::move(value));
  }
  return *this;
}

Json& Json::SetUnlessEmpty(absl::string_view key, absl::string_view value) {
  return value.empty() ? *this : Set(key, value);
}

Json& Json::Append(std::string key, Json value) {
  fields_.emplace_back(std::move(key), std::move(value));
  return *this;
}

Json& Json::Add(Json item) {
  items_.push_back(std::move(item));
  return *this;
}

std::string Json::Scalar() const {
  if (type_ == Type::kNull) return "null";
  return type_ == Type::kString ? JsonQuoted(text_) : text_;
}

bool Json::IsEmptyContainer() const {
  return (type_ == Type::kArray && items_.empty()) || (type_ == Type::kObject && fields_.empty());
}

void Json::Write(JsonWriter& out) const {
  if (type_ == Type::kObject) {
    out.BeginObject();
    for (const auto& [key, value] : fields_) value.Write(out.Key(key));
    out.EndObject();
  } else if (type_ == Type::kArray) {
    out.BeginArray();
    for (const Json& item : items_) item.Write(out);
    out.EndArray();
  } else if (type_ == Type::kString) {
    out.String(text_);
  } else {
    out.Raw(Scalar());
  }
}

// Writes from the current column; nested blocks begin on lines of their own.
void Json::WriteYaml(int depth, std::string& out) const {
  if (IsEmptyContainer()) {
    out += type_ == Type::kObject ? "{}\n" : "[]\n";
  } else if (type_ == Type::kObject) {
    for (size_t i = 0; i < fields_.size(); ++i) {
      const auto& [key, value] = fields_[i];
      absl::StrAppend(&out, i == 0 ? "" : Indent(depth), YamlString(key), ":");
      if (value.type_ == Type::kObject && !value.IsEmptyContainer()) {
        absl::StrAppend(&out, "\n", Indent(depth + 1));
        value.WriteYaml(depth + 1, out);
      } else if (value.type_ == Type::kArray && !value.IsEmptyContainer()) {
        absl::StrAppend(&out, "\n", Indent(depth));
        value.WriteYaml(depth, out);
      } else {
        out += ' ';
        value.WriteYaml(depth, out);
      }
    }
  } else if (type_ == Type::kArray) {
    for (size_t i = 0; i < items_.size(); ++i) {
      absl::StrAppend(&out, i == 0 ? "" : Indent(depth), "- ");
      items_[i].WriteYaml(depth + 1, out);
    }
  } else {
    absl::StrAppend(&out, type_ == Type::kString ? YamlString(text_) : Scalar(), "\n");
  }
}

std::string Json::Compact() const {
  JsonWriter out;
  Write(out);
  return out.Take();
}

std::string Json::Pretty() const {
  JsonWriter out(JsonLayout::kPretty);
  Write(out);
  return out.Take() + "\n";
}

std::string Json::Yaml() const {
  std::string out;
  WriteYaml(0, out);
  return out;
}

}  // namespace fairlead
