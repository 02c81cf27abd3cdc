#include "sim/world/api_object.h"

#include "absl/strings/str_cat.h"
#include "sim/world/api_json.h"
#include "sim/world/api_protobuf.h"

namespace fairlead::sim::world {

const std::string& ApiObject::Text() const {
  if (text_.empty()) text_ = Dump(json_);
  return text_;
}

const std::string& ApiObject::Message() const {
  if (message_.empty()) message_ = EncodeMessage(SchemaOf(row_.type), json_);
  return message_;
}

std::string ObjectKey(const ResourceRow& row, absl::string_view ns, absl::string_view name) {
  return row.namespaced ? absl::StrCat(ns, "/", name) : std::string(name);
}

std::string ObjectKey(const ResourceRow& row, const Json& object) {
  return ObjectKey(row, TextAt(object, {"metadata", "namespace"}),
                   TextAt(object, {"metadata", "name"}));
}

}  // namespace fairlead::sim::world
