#include "document/fields.h"

#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "document/yaml.h"

namespace fairlead {
namespace {

std::string Join(const std::string& field, const std::string& key) {
  return field.empty() ? key : absl::StrCat(field, ".", key);
}

}  // namespace

absl::StatusOr<Json> FieldReader::Parse(absl::string_view text) const {
  FAIRLEAD_ASSIGN_OR_RETURN(std::vector<Json> documents, LoadYaml(text, {.file_name = file_}));
  if (documents.empty() || documents[0].is_null()) {
    return absl::InvalidArgumentError(absl::StrCat(file_, ": the file is empty"));
  }
  if (documents.size() > 1) return ErrorAt(documents[1].place(), "", "a second document");
  return std::move(documents[0]);
}

absl::Status FieldReader::ErrorAt(TextPlace place, absl::string_view field,
                                  absl::string_view what) const {
  const std::string at = place.line == 0 ? "" : absl::StrCat(":", place.line, ":", place.column);
  return absl::InvalidArgumentError(
      absl::StrCat(file_, at, ": ", field, field.empty() ? "" : ": ", what));
}

absl::Status FieldReader::AnyMap(
    const Json& node, const std::string& field,
    const std::function<absl::Status(const std::string&, const Json&, const std::string&)>& handle)
    const {
  if (!node.is_object()) return Error(node, field, "must be a mapping");
  for (const auto& [key, value] : node.fields()) {
    FAIRLEAD_RETURN_IF_ERROR(handle(key, value, Join(field, key)));
  }
  return absl::OkStatus();
}

absl::Status FieldReader::Map(const Json& node, const std::string& field,
                              const std::map<std::string, Handler>& handlers,
                              const std::vector<std::string>& required) const {
  std::set<std::string> seen;
  FAIRLEAD_RETURN_IF_ERROR(
      AnyMap(node, field,
             [&](const std::string& key, const Json& value, const std::string& at) -> absl::Status {
               auto handler = handlers.find(key);
               if (handler == handlers.end())
                 return ErrorAt(value.key_place(), at, "unknown field");
               seen.insert(key);
               return handler->second(value, at);
             }));
  for (const std::string& key : required) {
    if (!seen.contains(key)) return Error(node, Join(field, key), "is missing");
  }
  return absl::OkStatus();
}

absl::Status FieldReader::List(const Json& node, const std::string& field,
                               const Handler& item) const {
  if (!node.is_array()) return Error(node, field, "must be a list");
  for (size_t i = 0; i < node.items().size(); ++i) {
    FAIRLEAD_RETURN_IF_ERROR(item(node.items()[i], absl::StrCat(field, "[", i, "]")));
  }
  return absl::OkStatus();
}

FieldReader::Handler FieldReader::Text(std::string* out) const {
  return [this, out](const Json& node, const std::string& field) {
    if (!node.is_text() || node.text().empty()) return Error(node, field, "must be text");
    *out = node.text();
    return absl::OkStatus();
  };
}

FieldReader::Handler FieldReader::Integer(int64_t* out, int64_t minimum) const {
  return [this, out, minimum](const Json& node, const std::string& field) {
    if (!node.is_text() || !absl::SimpleAtoi(node.text(), out) || *out < minimum) {
      return Error(node, field, absl::StrCat("must be a whole number of at least ", minimum));
    }
    return absl::OkStatus();
  };
}

FieldReader::Handler FieldReader::Duration(absl::Duration* out) const {
  return [this, out](const Json& node, const std::string& field) {
    if (!node.is_text() || !absl::ParseDuration(node.text(), out) || *out < absl::ZeroDuration() ||
        *out == absl::InfiniteDuration()) {
      return Error(node, field, "must be a duration like 1h30m");
    }
    return absl::OkStatus();
  };
}

FieldReader::Handler FieldReader::Time(absl::Time* out) const {
  return [this, out](const Json& node, const std::string& field) {
    std::string problem;
    if (!node.is_text() || !absl::ParseTime(absl::RFC3339_full, node.text(), out, &problem)) {
      return Error(node, field, "must be a time like 2026-03-02T00:00:00Z");
    }
    return absl::OkStatus();
  };
}

FieldReader::Handler FieldReader::TextList(std::vector<std::string>* out) const {
  return [this, out](const Json& node, const std::string& field) {
    return List(node, field, [&](const Json& item, const std::string& at) {
      out->emplace_back();
      return Text(&out->back())(item, at);
    });
  };
}

}  // namespace fairlead
