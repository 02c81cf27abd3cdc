#include "tests/conformance/json.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/strings.h"

namespace fairlead::conformance {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

std::string Shortest(double value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  return {buffer, end};
}

Json FromElement(const element& from) {
  Json to;
  switch (from.type()) {
    case element_type::NULL_VALUE:
      break;
    case element_type::BOOL:
      to.type = Json::Type::kBool;
      to.flag = from.get_bool().value_unsafe();
      break;
    case element_type::INT64:
      to.type = Json::Type::kNumber;
      to.text = absl::StrCat(from.get_int64().value_unsafe());
      break;
    case element_type::UINT64:
      to.type = Json::Type::kNumber;
      to.text = absl::StrCat(from.get_uint64().value_unsafe());
      break;
    case element_type::DOUBLE:
      to.type = Json::Type::kNumber;
      to.text = Shortest(from.get_double().value_unsafe());
      break;
    case element_type::STRING:
      to = Json::String(ToAbsl(from.get_string().value_unsafe()));
      break;
    // Copied, for value_unsafe() refers into a result that is gone before the loop begins.
    case element_type::ARRAY: {
      to.type = Json::Type::kArray;
      const simdjson::dom::array items = from.get_array().value_unsafe();
      for (const element item : items) to.items.push_back(FromElement(item));
      break;
    }
    case element_type::OBJECT: {
      to.type = Json::Type::kObject;
      const simdjson::dom::object members = from.get_object().value_unsafe();
      for (const auto& [key, value] : members) {
        to.members.emplace_back(std::string(key), FromElement(value));
      }
      break;
    }
  }
  return to;
}

void AppendString(absl::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      constexpr char kHex[] = "0123456789abcdef";
      absl::StrAppend(&out, "\\u00", absl::string_view(&kHex[byte >> 4], 1),
                      absl::string_view(&kHex[byte & 15], 1));
    } else {
      out += c;
    }
  }
  out += '"';
}

void Append(const Json& json, std::string& out) {
  bool first = true;
  const auto comma = [&] {
    if (!first) out += ',';
    first = false;
  };
  switch (json.type) {
    case Json::Type::kNull:
      out += "null";
      break;
    case Json::Type::kBool:
      out += json.flag ? "true" : "false";
      break;
    case Json::Type::kNumber:
      out += json.text;
      break;
    case Json::Type::kString:
      AppendString(json.text, out);
      break;
    case Json::Type::kArray:
      out += '[';
      for (const Json& item : json.items) {
        comma();
        Append(item, out);
      }
      out += ']';
      break;
    case Json::Type::kObject:
      out += '{';
      for (const auto& [key, value] : json.members) {
        comma();
        AppendString(key, out);
        out += ':';
        Append(value, out);
      }
      out += '}';
      break;
  }
}

}  // namespace

Json Json::String(absl::string_view text) {
  Json json;
  json.type = Type::kString;
  json.text = std::string(text);
  return json;
}

Json Json::Object() {
  Json json;
  json.type = Type::kObject;
  return json;
}

const Json* Json::Find(absl::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

Json* Json::Find(absl::string_view key) {
  return const_cast<Json*>(static_cast<const Json*>(this)->Find(key));
}

Json& Json::Member(absl::string_view key) {
  if (type != Type::kObject) *this = Object();
  if (Json* present = Find(key)) return *present;
  return members.emplace_back(std::string(key), Json()).second;
}

void Json::Erase(absl::string_view key) {
  members.erase(std::remove_if(members.begin(), members.end(),
                               [key](const auto& member) { return member.first == key; }),
                members.end());
}

std::string Json::TextAt(std::initializer_list<absl::string_view> path) const {
  const Json* at = this;
  for (absl::string_view key : path) {
    at = at->Find(key);
    if (at == nullptr) return "";
  }
  return at->type == Type::kString ? at->text : "";
}

absl::StatusOr<Json> ParseJson(absl::string_view text) {
  simdjson::dom::parser parser;
  element root;
  const simdjson::error_code error = parser.parse(simdjson::padded_string(ToStd(text))).get(root);
  if (error != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(absl::StrCat("not JSON: ", simdjson::error_message(error)));
  }
  return FromElement(root);
}

std::string ToText(const Json& json) {
  std::string out;
  Append(json, out);
  return out;
}

void JsonView::Fault(absl::string_view what) const {
  if (error_->ok()) *error_ = absl::InvalidArgumentError(absl::StrCat(path_, ": ", what));
}

bool JsonView::Is(Json::Type type, absl::string_view name) const {
  if (!present()) return false;
  if (value_->type == type) return true;
  Fault(absl::StrCat("must be ", name));
  return false;
}

JsonView JsonView::At(absl::string_view key) const {
  const Json* child = Is(Json::Type::kObject, "an object") ? value_->Find(key) : nullptr;
  return {child, path_.empty() ? std::string(key) : absl::StrCat(path_, ".", key), error_};
}

JsonView JsonView::Need(absl::string_view key) const {
  JsonView child = At(key);
  if (!child.present()) child.Fault("is missing");
  return child;
}

std::vector<std::pair<std::string, JsonView>> JsonView::Members() const {
  std::vector<std::pair<std::string, JsonView>> members;
  if (!Is(Json::Type::kObject, "an object")) return members;
  for (const auto& [key, value] : value_->members) members.emplace_back(key, At(key));
  return members;
}

std::vector<JsonView> JsonView::Items() const {
  std::vector<JsonView> items;
  if (!Is(Json::Type::kArray, "an array")) return items;
  for (size_t i = 0; i < value_->items.size(); ++i) {
    items.emplace_back(&value_->items[i], absl::StrCat(path_, "[", i, "]"), error_);
  }
  return items;
}

std::string JsonView::Text() const {
  return Is(Json::Type::kString, "a string") ? value_->text : "";
}

std::vector<std::string> JsonView::Texts() const {
  std::vector<std::string> texts;
  for (const JsonView& item : Items()) texts.push_back(item.Text());
  return texts;
}

double JsonView::Number(double otherwise) const {
  if (!Is(Json::Type::kNumber, "a number")) return otherwise;
  double value = 0;
  if (!absl::SimpleAtod(value_->text, &value) || !std::isfinite(value)) Fault("is out of range");
  return value;
}

int64_t JsonView::Integer(int64_t otherwise) const {
  if (!Is(Json::Type::kNumber, "a whole number")) return otherwise;
  int64_t value = otherwise;
  if (!absl::SimpleAtoi(value_->text, &value)) Fault("must be a whole number");
  return value;
}

bool JsonView::Flag(bool otherwise) const {
  return Is(Json::Type::kBool, "true or false") ? value_->flag : otherwise;
}

}  // namespace fairlead::conformance
