// A JSON text as a tree that can be changed. Cases are read from it, and the objects of a case are
// rewritten between rounds before the product's decoders read them.
//
// Numbers keep their value as text in the shortest form that reads back as the same number.
// Thread-safety: plain values. Errors: ParseJson gives InvalidArgument; a JsonView records the
// first invalid value, with its path, and continues with an empty value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fairlead::conformance {

struct Json {
  enum class Type : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  Type type = Type::kNull;
  bool flag = false;
  std::string text;                                   // of a string; the token of a number
  std::vector<Json> items;                            // of an array
  std::vector<std::pair<std::string, Json>> members;  // of an object, in the order of the text

  static Json String(absl::string_view text);
  static Json Object();

  // Null if absent, or if this is no object.
  [[nodiscard]] const Json* Find(absl::string_view key) const;
  Json* Find(absl::string_view key);
  // The member, created if absent; makes this an object if it is not.
  Json& Member(absl::string_view key);
  void Erase(absl::string_view key);
  // The text of the string at a path of keys, "" if there is none.
  [[nodiscard]] std::string TextAt(std::initializer_list<absl::string_view> path) const;
};

absl::StatusOr<Json> ParseJson(absl::string_view text);
std::string ToText(const Json& json);

// A value and its path.
class JsonView {
 public:
  // `error` outlives the view and all that come from it.
  JsonView(const Json* value, std::string path, absl::Status* error)
      : value_(value), path_(std::move(path)), error_(error) {}

  // False for an absent value and for null.
  [[nodiscard]] bool present() const {
    return value_ != nullptr && value_->type != Json::Type::kNull;
  }
  [[nodiscard]] const Json* value() const { return value_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  [[nodiscard]] JsonView At(absl::string_view key) const;
  // As At, but an absent value is an error.
  [[nodiscard]] JsonView Need(absl::string_view key) const;
  // Empty for an absent value; an error for a value of another type.
  [[nodiscard]] std::vector<std::pair<std::string, JsonView>> Members() const;
  [[nodiscard]] std::vector<JsonView> Items() const;
  [[nodiscard]] std::string Text() const;
  [[nodiscard]] std::vector<std::string> Texts() const;
  [[nodiscard]] double Number(double otherwise = 0) const;
  [[nodiscard]] int64_t Integer(int64_t otherwise = 0) const;
  [[nodiscard]] bool Flag(bool otherwise = false) const;

  void Fault(absl::string_view what) const;

 private:
  bool Is(Json::Type type, absl::string_view name) const;

  const Json* value_;
  std::string path_;
  absl::Status* error_;
};

}  // namespace fairlead::conformance
