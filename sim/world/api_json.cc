#include "sim/world/api_json.h"

namespace fairlead::sim::world {

const Json* At(const Json* from, absl::string_view step) {
  if (from == nullptr || !from->is_object()) return nullptr;
  const auto found = from->find(step);
  return found == from->end() ? nullptr : &*found;
}

const Json* At(const Json& from, JsonPath path) {
  const Json* at = &from;
  for (const absl::string_view step : path) at = At(at, step);
  return at;
}

std::string Text(const Json* value) {
  return value != nullptr && value->is_string() ? value->get_ref<const std::string&>()
                                                : std::string();
}

std::string TextAt(const Json& from, JsonPath path) { return Text(At(from, path)); }

int64_t IntAt(const Json& from, JsonPath path, int64_t otherwise) {
  const Json* const at = At(from, path);
  return at != nullptr && at->is_number_integer() ? at->get<int64_t>() : otherwise;
}

bool BoolAt(const Json& from, JsonPath path) {
  const Json* const at = At(from, path);
  return at != nullptr && at->is_boolean() && at->get<bool>();
}

bool HasItems(const Json* value) {
  return value != nullptr && value->is_structured() && !value->empty();
}

bool HasItems(const Json& from, JsonPath path) { return HasItems(At(from, path)); }

const Json& ItemsAt(const Json& from, JsonPath path) {
  static const auto* const kNone = new Json(Json::array());
  const Json* const value = At(from, path);
  return value != nullptr && value->is_array() ? *value : *kNone;
}

Json& MakeObject(Json& from, JsonPath path) {
  Json* at = &from;
  if (!at->is_object()) *at = Json::object();
  for (const absl::string_view step : path) {
    at = &(*at)[std::string(step)];
    if (!at->is_object()) *at = Json::object();
  }
  return *at;
}

bool Erase(Json& from, JsonPath parent, const char* field) {
  Json* at = &from;
  for (const absl::string_view step : parent) {
    if (!at->is_object()) return false;
    const auto found = at->find(step);
    if (found == at->end()) return false;
    at = &*found;
  }
  return at->is_object() && at->erase(field) > 0;
}

std::string Dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json Parse(absl::string_view text) {
  return Json::parse(text.data(), text.data() + text.size(), nullptr, /*allow_exceptions=*/false);
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace fairlead::sim::world
