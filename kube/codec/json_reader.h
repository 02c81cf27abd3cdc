// Reads JSON objects of the API server with simdjson's on-demand parser: one forward pass that
// parses only the requested fields. Numbers stay text until the caller names the unit.
//
// There are two kinds of errors, as in codec.h. Text that is not JSON ends the reading: ok() turns
// false and every method does nothing from then on. A value of the wrong type or content becomes a
// problem of the object, and reading continues. null is an absent value.
//
// Ownership: views that a method returns live until the end of ReadJson. Thread-safety: one thread
// per reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/strings.h"
#include "kube/codec/field_problems.h"
#include "scheduler/model/object_meta.h"
#include "scheduler/model/resources.h"
#include "simdjson.h"

namespace fairlead::kube {

using JsonValue = simdjson::ondemand::value;
using JsonType = simdjson::ondemand::json_type;

class JsonReader {
 public:
  [[nodiscard]] bool ok() const { return error_.ok(); }
  [[nodiscard]] const absl::Status& error() const { return error_; }
  // Ends the reading: the message is invalid.
  void Fail(absl::string_view why);

  // The problems of the object that is being read.
  Problems& problems() { return problems_; }

  // Calls fn(key, value) for every field that is not null.
  template <typename Fn>
  void Fields(JsonValue value, const FieldPath& path, Fn fn) {
    if (!Is(value, JsonType::object, path)) return;
    simdjson::ondemand::object object;
    if (Check(value.get_object().get(object))) EachField(object, fn);
  }

  // As above, with the object's own text: `raw` stays empty if the value is no object.
  template <typename Fn>
  void RawFields(JsonValue value, const FieldPath& path, std::string& raw, Fn fn) {
    if (!Is(value, JsonType::object, path)) return;
    simdjson::ondemand::object object;
    std::string_view text;
    bool any = false;
    if (!Check(value.get_object().get(object)) || !Check(object.raw_json().get(text)) ||
        !Check(object.reset().get(any))) {
      return;
    }
    raw = std::string(absl::StripAsciiWhitespace(ToAbsl(text)));
    if (any) EachField(object, fn);
  }

  // Calls fn(index, value) for every item, null ones included.
  template <typename Fn>
  void Items(JsonValue value, const FieldPath& path, Fn fn) {
    if (!Is(value, JsonType::array, path)) return;
    simdjson::ondemand::array array;
    if (!Check(value.get_array().get(array))) return;
    size_t index = 0;
    for (auto result : array) {
      JsonValue child;
      if (!Check(std::move(result).get(child))) return;
      fn(index++, child);
      if (!ok()) return;
    }
  }

  // Empty if it is no string.
  absl::string_view Text(JsonValue value, const FieldPath& path);
  void String(JsonValue value, const FieldPath& path, std::string& out);
  void Strings(JsonValue value, const FieldPath& path, std::vector<std::string>& out);
  void Map(JsonValue value, const FieldPath& path, model::StringMap& out);
  void Bool(JsonValue value, const FieldPath& path, bool& out);
  // No value if it is not an integer of that size.
  std::optional<int64_t> Int64(JsonValue value, const FieldPath& path);
  std::optional<int32_t> Int32(JsonValue value, const FieldPath& path);
  // RFC 3339.
  void Time(JsonValue value, const FieldPath& path, std::optional<absl::Time>& out);
  // Go's form ("1h30m"), as metav1.Duration is written.
  void Duration(JsonValue value, const FieldPath& path, std::optional<absl::Duration>& out);
  // The text of a string, or a number's token as it was written: the two forms of a quantity.
  std::optional<absl::string_view> NumberOrText(JsonValue value, const FieldPath& path);
  // A number, read without a double (model::ParseDecimal).
  std::optional<int64_t> Decimal(JsonValue value, const FieldPath& path, int64_t units_per_one);
  // {name: quantity}.
  void Quantities(JsonValue value, const FieldPath& path, model::ResourceList& out);

  [[nodiscard]] bool IsNull(JsonValue& value);
  [[nodiscard]] JsonType TypeOf(JsonValue& value);
  // True if the value has the type; otherwise adds a problem, or nothing for null.
  bool Is(JsonValue& value, JsonType wanted, const FieldPath& path);
  // False on a parser error, which ends the reading.
  bool Check(simdjson::error_code error);

 private:
  template <typename Fn>
  void EachField(simdjson::ondemand::object& object, Fn& fn) {
    for (auto result : object) {
      simdjson::ondemand::field field;
      if (!Check(std::move(result).get(field))) return;
      std::string_view key;
      if (!Check(field.unescaped_key().get(key))) return;
      JsonValue& child = field.value();
      if (!IsNull(child)) fn(ToAbsl(key), child);
      if (!ok()) return;
    }
  }
  absl::string_view NumberToken(JsonValue& value);

  absl::Status error_;
  Problems problems_;
};

// Reads one JSON object: calls fn(reader, root). InvalidArgument if the text is not a JSON object,
// if other text follows, or if fn called Fail.
template <typename Fn>
absl::Status ReadJson(absl::string_view text, Fn fn) {
  const simdjson::padded_string padded(text.data(), text.size());
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  JsonReader reader;
  JsonValue root;
  JsonType type{};
  if (!reader.Check(parser.iterate(padded).get(document)) ||
      !reader.Check(document.type().get(type))) {
    return reader.error();
  }
  if (type != JsonType::object) return absl::InvalidArgumentError("malformed JSON: not an object");
  if (!reader.Check(document.get_value().get(root))) return reader.error();
  fn(reader, root);
  if (reader.ok() && document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
    reader.Fail("malformed JSON: something follows the object");
  }
  return reader.error();
}

}  // namespace fairlead::kube
