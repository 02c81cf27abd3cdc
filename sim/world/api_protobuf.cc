#include "sim/world/api_protobuf.h"

#include <utility>

#include "absl/strings/match.h"
#include "sim/world/api_json.h"

namespace fairlead::sim::world {
namespace {

constexpr absl::string_view kMagic("k8s\0", 4);
constexpr uint32_t kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5;

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// ---- encoding -----------------------------------------------------------------------------------

std::string QuantityMessage(const Json& value) {
  std::string out;
  AppendBytesField(1, value.is_string() ? value.get_ref<const std::string&>() : Dump(value), out);
  return out;
}

std::string TimeMessage(const std::string& text) {
  std::string out;
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) return out;
  const int64_t seconds = absl::ToUnixSeconds(time);
  const int64_t nanos = absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds));
  AppendVarintField(1, static_cast<uint64_t>(seconds), out);
  AppendVarintField(2, static_cast<uint64_t>(nanos), out);
  return out;
}

std::string IntOrStringMessage(const Json& value) {
  std::string out;
  if (value.is_number_integer()) {
    AppendVarintField(1, 0, out);
    AppendVarintField(2, static_cast<uint64_t>(value.get<int64_t>()), out);
  } else if (value.is_string()) {
    AppendVarintField(1, 1, out);
    AppendBytesField(3, value.get_ref<const std::string&>(), out);
  }
  return out;
}

// True if the value is of the field's type; then it was appended.
bool AppendValue(const FieldSchema& field, uint32_t number, const Json& value, std::string& out) {
  switch (field.type) {
    case FieldType::kString:
      if (!value.is_string()) return false;
      AppendBytesField(number, value.get_ref<const std::string&>(), out);
      return true;
    case FieldType::kInt:
      if (!value.is_number_integer()) return false;
      AppendVarintField(number, static_cast<uint64_t>(value.get<int64_t>()), out);
      return true;
    case FieldType::kBool:
      if (!value.is_boolean()) return false;
      AppendVarintField(number, value.get<bool>() ? 1 : 0, out);
      return true;
    case FieldType::kQuantity:
      if (!value.is_string() && !value.is_number()) return false;
      AppendBytesField(number, QuantityMessage(value), out);
      return true;
    case FieldType::kTime:
      if (!value.is_string()) return false;
      AppendBytesField(number, TimeMessage(value.get_ref<const std::string&>()), out);
      return true;
    case FieldType::kIntOrString:
      AppendBytesField(number, IntOrStringMessage(value), out);
      return true;
    case FieldType::kMessage:
    case FieldType::kInlined:
      if (!value.is_object()) return false;
      AppendBytesField(number, EncodeMessage(*field.message, value), out);
      return true;
  }
  return false;
}

void AppendField(const FieldSchema& field, const Json& value, std::string& out) {
  if (value.is_null()) return;
  switch (field.shape) {
    case FieldShape::kOne:
      AppendValue(field, field.number, value, out);
      break;
    case FieldShape::kList:
      if (!value.is_array()) return;
      for (const Json& item : value) AppendValue(field, field.number, item, out);
      break;
    case FieldShape::kMap:
      if (!value.is_object()) return;
      for (auto it = value.begin(); it != value.end(); ++it) {
        std::string entry;
        AppendBytesField(1, it.key(), entry);
        if (AppendValue(field, 2, *it, entry)) AppendBytesField(field.number, entry, out);
      }
      break;
  }
}

// ---- decoding -----------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : rest_(bytes) {}
  // False at the end or on an error; see failed().
  bool Next() {
    uint64_t tag = 0;
    if (rest_.empty() || !Varint(tag)) return false;
    number_ = static_cast<uint32_t>(tag >> 3);
    type_ = static_cast<uint32_t>(tag & 7);
    uint64_t size = 0;
    switch (type_) {
      case kVarint:
        return Varint(value_);
      case kFixed64:
        return Take(8);
      case kFixed32:
        return Take(4);
      case kLengthDelimited:
        return Varint(size) && Take(size);
      default:
        return Fail();
    }
  }
  [[nodiscard]] uint32_t number() const { return number_; }
  [[nodiscard]] bool is_bytes() const { return type_ == kLengthDelimited; }
  [[nodiscard]] bool is_varint() const { return type_ == kVarint; }
  [[nodiscard]] absl::string_view bytes() const { return bytes_; }
  [[nodiscard]] uint64_t value() const { return value_; }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  bool Fail() {
    failed_ = true;
    rest_ = {};
    return false;
  }
  bool Take(uint64_t size) {
    if (size > rest_.size()) return Fail();
    bytes_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  bool Varint(uint64_t& out) {
    out = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      out |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return Fail();
  }

  absl::string_view rest_, bytes_;
  uint32_t number_ = 0, type_ = 0;
  uint64_t value_ = 0;
  bool failed_ = false;
};

std::string TextOf(absl::string_view bytes) { return std::string(bytes); }

Json TimeJson(absl::string_view bytes) {
  int64_t seconds = 0;
  Reader reader(bytes);
  while (reader.Next()) {
    if (reader.number() == 1) seconds = static_cast<int64_t>(reader.value());
  }
  return TimeText(absl::FromUnixSeconds(seconds));
}

Json IntOrStringJson(absl::string_view bytes) {
  Json out = 0;
  Reader reader(bytes);
  while (reader.Next()) {
    if (reader.number() == 2) out = static_cast<int32_t>(reader.value());
    if (reader.number() == 3) out = TextOf(reader.bytes());
  }
  return out;
}

Json ValueOf(const FieldSchema& field, const Reader& reader) {
  switch (field.type) {
    case FieldType::kString:
      return TextOf(reader.bytes());
    case FieldType::kInt:
      return static_cast<int64_t>(reader.value());
    case FieldType::kBool:
      return reader.value() != 0;
    case FieldType::kQuantity: {
      Reader quantity(reader.bytes());
      return quantity.Next() ? TextOf(quantity.bytes()) : std::string();
    }
    case FieldType::kTime:
      return TimeJson(reader.bytes());
    case FieldType::kIntOrString:
      return IntOrStringJson(reader.bytes());
    case FieldType::kMessage:
    case FieldType::kInlined:
      return DecodeMessage(*field.message, reader.bytes());
  }
  return Json(Json::value_t::discarded);
}

bool ReadMapEntry(const FieldSchema& field, absl::string_view bytes, Json& map) {
  std::string key;
  Json value = "";
  Reader entry(bytes);
  while (entry.Next()) {
    if (entry.number() == 1 && entry.is_bytes()) key = TextOf(entry.bytes());
    if (entry.number() == 2) value = ValueOf(field, entry);
  }
  if (entry.failed() || value.is_discarded()) return false;
  map[key] = std::move(value);
  return true;
}

bool ReadField(const FieldSchema& field, const Reader& reader, Json& object) {
  const bool scalar = field.type == FieldType::kInt || field.type == FieldType::kBool;
  const bool as_varint = scalar && field.shape != FieldShape::kMap;
  if (as_varint ? !reader.is_varint() : !reader.is_bytes()) return false;
  if (field.shape == FieldShape::kMap) {
    return ReadMapEntry(field, reader.bytes(), object[field.name]);
  }
  Json value = ValueOf(field, reader);
  if (value.is_discarded()) return false;
  if (field.type == FieldType::kInlined) {
    object.update(value);
  } else if (field.shape == FieldShape::kList) {
    object[field.name].push_back(std::move(value));
  } else {
    object[field.name] = std::move(value);
  }
  return true;
}

}  // namespace

void AppendBytesField(uint32_t number, absl::string_view bytes, std::string& out) {
  AppendVarint(uint64_t{number} << 3 | kLengthDelimited, out);
  AppendVarint(bytes.size(), out);
  out.append(bytes.data(), bytes.size());
}

void AppendVarintField(uint32_t number, uint64_t value, std::string& out) {
  AppendVarint(uint64_t{number} << 3 | kVarint, out);
  AppendVarint(value, out);
}

std::string EncodeMessage(const MessageSchema& schema, const Json& object) {
  std::string out;
  if (!object.is_object()) return out;
  for (size_t i = 0; i < schema.count; ++i) {
    const FieldSchema& field = schema.fields[i];
    if (field.type == FieldType::kInlined) {
      const std::string inlined = EncodeMessage(*field.message, object);
      if (!inlined.empty()) AppendBytesField(field.number, inlined, out);
      continue;
    }
    const auto found = object.find(field.name);
    if (found != object.end()) AppendField(field, *found, out);
  }
  return out;
}

Json DecodeMessage(const MessageSchema& schema, absl::string_view bytes) {
  Json object = Json::object();
  Reader reader(bytes);
  while (reader.Next()) {
    for (size_t i = 0; i < schema.count; ++i) {
      if (schema.fields[i].number != reader.number()) continue;
      if (!ReadField(schema.fields[i], reader, object)) return Json(Json::value_t::discarded);
    }
  }
  if (reader.failed()) return Json(Json::value_t::discarded);
  return object;
}

std::string Enveloped(absl::string_view api_version, absl::string_view kind,
                      absl::string_view message) {
  std::string type;
  AppendBytesField(1, api_version, type);
  AppendBytesField(2, kind, type);
  std::string out(kMagic.data(), kMagic.size());
  out.reserve(message.size() + type.size() + 16);
  AppendBytesField(1, type, out);
  AppendBytesField(2, message, out);
  AppendBytesField(3, "", out);
  AppendBytesField(4, "", out);
  return out;
}

bool OpenEnvelope(absl::string_view body, Envelope& out) {
  if (!absl::StartsWith(body, kMagic)) return false;
  Reader reader(body.substr(kMagic.size()));
  while (reader.Next()) {
    if (reader.number() == 2 && reader.is_bytes()) out.message = reader.bytes();
    if (reader.number() != 1 || !reader.is_bytes()) continue;
    Reader type(reader.bytes());
    while (type.Next()) {
      if (type.number() == 1) out.api_version = TextOf(type.bytes());
      if (type.number() == 2) out.kind = TextOf(type.bytes());
    }
    if (type.failed()) return false;
  }
  return !reader.failed();
}

}  // namespace fairlead::sim::world
