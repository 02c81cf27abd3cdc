// Writes JSON, in the order of the calls. Escapes strings and makes them valid UTF-8. The result is
// JSON if Begin and End are paired and every value of an object follows a Key.
// Thread-safety: one thread per instance.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace fairlead {

enum class JsonLayout : uint8_t {
  kCompact,  // no spaces
  kPretty,   // a line per value, two spaces per level
};

class JsonWriter {
 public:
  explicit JsonWriter(JsonLayout layout = JsonLayout::kCompact)
      : pretty_(layout == JsonLayout::kPretty) {}

  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(absl::string_view key);
  JsonWriter& String(absl::string_view value);
  JsonWriter& Int(int64_t value);
  JsonWriter& Bool(bool value) { return Raw(value ? "true" : "false"); }
  JsonWriter& Null() { return Raw("null"); }
  // Text that is JSON already.
  JsonWriter& Raw(absl::string_view json);

  // Key and value.
  JsonWriter& Field(absl::string_view key, absl::string_view value) {
    return Key(key).String(value);
  }
  JsonWriter& FieldUnlessEmpty(absl::string_view key, absl::string_view value) {
    return value.empty() ? *this : Field(key, value);
  }

  // Returns the text so far and empties the writer.
  std::string Take() {
    needs_comma_ = after_key_ = false;
    depth_ = 0;
    return std::exchange(text_, {});
  }

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void Separate();
  void BreakLine();
  void AppendQuoted(absl::string_view value);

  bool pretty_;
  std::string text_;
  bool needs_comma_ = false;  // the last thing written was a value
  bool after_key_ = false;    // the last thing written was a key
  int depth_ = 0;             // open brackets
};

// `text` as a JSON string, quotes included.
std::string JsonQuoted(absl::string_view text);

}  // namespace fairlead
