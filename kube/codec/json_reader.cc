#include "kube/codec/json_reader.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kube/codec/field_values.h"
#include "scheduler/model/quantity.h"

namespace fairlead::kube {
namespace {

const char* TypeName(JsonType type) {
  switch (type) {
    case JsonType::array:
      return "a list";
    case JsonType::object:
      return "an object";
    case JsonType::number:
      return "a number";
    case JsonType::string:
      return "a string";
    case JsonType::boolean:
      return "true or false";
    case JsonType::null:
      return "null";
  }
  return "something else";
}

}  // namespace

void JsonReader::Fail(absl::string_view why) {
  if (error_.ok()) error_ = absl::InvalidArgumentError(why);
}

bool JsonReader::Check(simdjson::error_code error) {
  if (error == simdjson::SUCCESS) return ok();
  Fail(absl::StrCat("malformed JSON: ", simdjson::error_message(error)));
  return false;
}

JsonType JsonReader::TypeOf(JsonValue& value) {
  JsonType type = JsonType::null;
  if (ok()) Check(value.type().get(type));
  return type;
}

bool JsonReader::IsNull(JsonValue& value) {
  if (TypeOf(value) != JsonType::null) return false;
  // The first letter decides the type; the rest of the word has to be checked.
  if (ok() && absl::StripAsciiWhitespace(ToAbsl(value.raw_json_token())) != "null") {
    Fail("malformed JSON: neither null nor anything else");
  }
  return true;
}

bool JsonReader::Is(JsonValue& value, JsonType wanted, const FieldPath& path) {
  const JsonType type = TypeOf(value);
  if (!ok() || type == JsonType::null) return false;
  if (type == wanted) return true;
  problems_.Add(path, absl::StrCat("must be ", TypeName(wanted), ", not ", TypeName(type)));
  return false;
}

absl::string_view JsonReader::Text(JsonValue value, const FieldPath& path) {
  std::string_view text;
  if (Is(value, JsonType::string, path)) Check(value.get_string().get(text));
  return ToAbsl(text);
}

void JsonReader::String(JsonValue value, const FieldPath& path, std::string& out) {
  const absl::string_view text = Text(value, path);
  out.assign(text.data(), text.size());
}

void JsonReader::Strings(JsonValue value, const FieldPath& path, std::vector<std::string>& out) {
  Items(value, path,
        [&](size_t index, JsonValue item) { String(item, path.Item(index), out.emplace_back()); });
}

void JsonReader::Map(JsonValue value, const FieldPath& path, model::StringMap& out) {
  Fields(value, path,
         [&](absl::string_view key, JsonValue item) { out.Set(key, Text(item, path.Key(key))); });
}

void JsonReader::Bool(JsonValue value, const FieldPath& path, bool& out) {
  if (Is(value, JsonType::boolean, path)) Check(value.get_bool().get(out));
}

absl::string_view JsonReader::NumberToken(JsonValue& value) {
  return absl::StripAsciiWhitespace(ToAbsl(value.raw_json_token()));
}

std::optional<int64_t> JsonReader::Int64(JsonValue value, const FieldPath& path) {
  if (!Is(value, JsonType::number, path)) return std::nullopt;
  const absl::string_view token = NumberToken(value);
  int64_t number = 0;
  if (absl::SimpleAtoi(token, &number)) return number;
  problems_.Add(path, absl::StrCat(Quoted(token), " is not an integer of 64 bits"));
  return std::nullopt;
}

std::optional<int32_t> JsonReader::Int32(JsonValue value, const FieldPath& path) {
  if (!Is(value, JsonType::number, path)) return std::nullopt;
  const absl::string_view token = NumberToken(value);
  int32_t number = 0;
  if (absl::SimpleAtoi(token, &number)) return number;
  problems_.Add(path, absl::StrCat(Quoted(token), " is not an integer of 32 bits"));
  return std::nullopt;
}

void JsonReader::Time(JsonValue value, const FieldPath& path, std::optional<absl::Time>& out) {
  if (!Is(value, JsonType::string, path)) return;
  const absl::string_view text = Text(value, path);
  absl::Time time;
  std::string why;
  if (!ok()) return;
  if (absl::ParseTime(absl::RFC3339_full, text, &time, &why) && time != absl::InfinitePast() &&
      time != absl::InfiniteFuture()) {
    out = time;
  } else {
    problems_.Add(path, absl::StrCat(Quoted(text), " is not a time (RFC 3339)"));
  }
}

void JsonReader::Duration(JsonValue value, const FieldPath& path,
                          std::optional<absl::Duration>& out) {
  if (!Is(value, JsonType::string, path)) return;
  const absl::string_view text = Text(value, path);
  absl::Duration duration;
  if (!ok()) return;
  if (absl::ParseDuration(text, &duration) && duration != absl::InfiniteDuration() &&
      duration != -absl::InfiniteDuration()) {
    out = duration;
  } else {
    problems_.Add(path, absl::StrCat(Quoted(text), " is not a duration (like 90s or 1h30m)"));
  }
}

std::optional<absl::string_view> JsonReader::NumberOrText(JsonValue value, const FieldPath& path) {
  const JsonType type = TypeOf(value);
  if (!ok() || type == JsonType::null) return std::nullopt;
  if (type == JsonType::number) return NumberToken(value);
  if (type == JsonType::string) {
    const absl::string_view text = Text(value, path);
    if (ok()) return text;
    return std::nullopt;
  }
  problems_.Add(path, absl::StrCat("must be a number or a string, not ", TypeName(type)));
  return std::nullopt;
}

std::optional<int64_t> JsonReader::Decimal(JsonValue value, const FieldPath& path,
                                           int64_t units_per_one) {
  if (!Is(value, JsonType::number, path)) return std::nullopt;
  const absl::string_view token = NumberToken(value);
  const absl::StatusOr<int64_t> number = model::ParseDecimal(token, units_per_one);
  if (number.ok()) return *number;
  problems_.Add(path, absl::StrCat(Quoted(token), " is not a number"));
  return std::nullopt;
}

void JsonReader::Quantities(JsonValue value, const FieldPath& path, model::ResourceList& out) {
  Fields(value, path, [&](absl::string_view name, JsonValue item) {
    if (auto text = NumberOrText(item, path.Key(name))) {
      SetQuantity(name, *text, path, problems_, out);
    }
  });
}

}  // namespace fairlead::kube
