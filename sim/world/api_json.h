// Reading and writing the JSON DOM without exceptions: what is missing or of another type is empty.
// Thread-safety: pure functions. Complexity: O(length of the path).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "sim/world/json.h"

namespace fairlead::sim::world {

using JsonPath = std::initializer_list<absl::string_view>;

// Null if a step is missing or is no object.
const Json* At(const Json& from, JsonPath path);
// One step, of what another step led to: null from null.
const Json* At(const Json* from, absl::string_view step);
// Empty unless there is a string.
std::string TextAt(const Json& from, JsonPath path);
std::string Text(const Json* value);
// The default unless there is an integer.
int64_t IntAt(const Json& from, JsonPath path, int64_t otherwise = 0);
bool BoolAt(const Json& from, JsonPath path);
// Whether there is an array or object with something in it.
bool HasItems(const Json& from, JsonPath path);
bool HasItems(const Json* value);
// The array at `path`; an empty one unless there is one.
const Json& ItemsAt(const Json& from, JsonPath path);
// The object at `path`. Makes it if it is missing; replaces steps that are no objects.
Json& MakeObject(Json& from, JsonPath path);
// Takes a field away; true if it was there.
bool Erase(Json& from, JsonPath parent, const char* field);

// As text, without white space. Bytes that are no UTF-8 are replaced.
std::string Dump(const Json& value);
// Discarded (is_discarded) if it is no JSON.
Json Parse(absl::string_view text);

// meta.v1.Time: RFC 3339 in whole seconds.
std::string TimeText(absl::Time time);

}  // namespace fairlead::sim::world
