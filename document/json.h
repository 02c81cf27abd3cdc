// A JSON document as a tree of values: read from JSON or YAML, changed, and printed as either.
//
// Objects keep the order in which fields were set. A tree that was read from YAML (yaml.h) knows
// the place of every value in its file, so that errors can name it.
// Thread-safety: plain values. Complexity: finding a field is linear in the fields of its object.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fairlead {

class JsonWriter;

// A place in a text file, both numbers from 1. Zero: unknown.
struct TextPlace {
  int line = 0, column = 0;
};

class Json {
 public:
  enum class Type : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  using Field = std::pair<std::string, Json>;

  Json() = default;  // null
  static Json Bool(bool value);
  static Json Int(int64_t value);
  static Json Number(absl::string_view spelling);  // as JSON spells it
  static Json String(absl::string_view value);
  static Json Array() { return Json(Type::kArray); }
  static Json Object() { return Json(Type::kObject); }
  // InvalidArgument if it is not one JSON value.
  static absl::StatusOr<Json> Parse(absl::string_view text);

  [[nodiscard]] Type type() const { return type_; }
  [[nodiscard]] bool is_null() const { return type_ == Type::kNull; }
  [[nodiscard]] bool is_object() const { return type_ == Type::kObject; }
  [[nodiscard]] bool is_array() const { return type_ == Type::kArray; }
  // True for a string, number or boolean: text() is its content.
  [[nodiscard]] bool is_text() const { return !is_null() && !is_object() && !is_array(); }
  // The content of a string, the spelling of a number or boolean, otherwise "".
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::vector<Json>& items() const { return items_; }
  std::vector<Json>& items() { return items_; }
  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }

  // The field of an object; null if there is no such field, or this is no object.
  [[nodiscard]] const Json* Find(absl::string_view key) const;
  Json* Find(absl::string_view key);
  // Follows a path of fields.
  [[nodiscard]] const Json* At(std::initializer_list<absl::string_view> path) const;
  Json* At(std::initializer_list<absl::string_view> path);
  [[nodiscard]] std::string TextAt(std::initializer_list<absl::string_view> path) const;

  // Where the value begins, and its key if it is a field of an object.
  [[nodiscard]] TextPlace place() const { return place_; }
  [[nodiscard]] TextPlace key_place() const { return key_place_; }
  void SetPlace(TextPlace place) { place_ = place; }
  void SetKeyPlace(TextPlace place) { key_place_ = place; }

  // Replaces or appends; for objects.
  Json& Set(absl::string_view key, Json value);
  Json& Set(absl::string_view key, absl::string_view value) { return Set(key, String(value)); }
  Json& Set(absl::string_view key, const char* value) { return Set(key, String(value)); }
  Json& SetUnlessEmpty(absl::string_view key, absl::string_view value);
  // Appends without looking for the key; for objects that are known not to have it.
  Json& Append(std::string key, Json value);
  Json& Add(Json item);  // for arrays

  [[nodiscard]] std::string Compact() const;
  [[nodiscard]] std::string Pretty() const;  // two spaces per level, a newline at the end
  [[nodiscard]] std::string Yaml() const;    // a newline at the end

 private:
  explicit Json(Type type) : type_(type) {}
  void Write(JsonWriter& out) const;
  void WriteYaml(int depth, std::string& out) const;
  [[nodiscard]] bool IsEmptyContainer() const;
  [[nodiscard]] std::string Scalar() const;  // as JSON

  Type type_ = Type::kNull;
  TextPlace place_, key_place_;
  std::string text_;
  std::vector<Json> items_;
  std::vector<Field> fields_;
};

}  // namespace fairlead
