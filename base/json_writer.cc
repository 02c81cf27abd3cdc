#include "base/json_writer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/utf8.h"

namespace fairlead {

void JsonWriter::Separate() {
  if (needs_comma_) text_ += ',';
  if (pretty_ && depth_ > 0 && !after_key_) BreakLine();
  needs_comma_ = true;
  after_key_ = false;
}

void JsonWriter::BreakLine() {
  text_ += '\n';
  text_.append(static_cast<size_t>(depth_) * 2, ' ');
}

JsonWriter& JsonWriter::Open(char bracket) {
  Separate();
  text_ += bracket;
  needs_comma_ = false;
  ++depth_;
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  --depth_;
  if (pretty_ && needs_comma_) BreakLine();
  text_ += bracket;
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(absl::string_view key) {
  Separate();
  AppendQuoted(key);
  text_.append(pretty_ ? ": " : ":");
  needs_comma_ = false;
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::String(absl::string_view value) {
  Separate();
  AppendQuoted(value);
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  Separate();
  absl::StrAppend(&text_, value);
  return *this;
}

JsonWriter& JsonWriter::Raw(absl::string_view json) {
  Separate();
  text_.append(json.data(), json.size());
  return *this;
}

void JsonWriter::AppendQuoted(absl::string_view value) {
  text_ += '"';
  for (char c : ToValidUtf8(value)) {
    switch (c) {
      case '"':
        text_ += "\\\"";
        break;
      case '\\':
        text_ += "\\\\";
        break;
      case '\n':
        text_ += "\\n";
        break;
      case '\t':
        text_ += "\\t";
        break;
      case '\r':
        text_ += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          absl::StrAppendFormat(&text_, "\\u%04x", static_cast<unsigned>(c));
        } else {
          text_ += c;
        }
    }
  }
  text_ += '"';
}

std::string JsonQuoted(absl::string_view text) { return JsonWriter().String(text).Take(); }

}  // namespace fairlead
