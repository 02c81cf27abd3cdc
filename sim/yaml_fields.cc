#include "sim/yaml_fields.h"

#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fairlead::sim {
namespace {

std::string Join(const std::string& field, const std::string& key) {
  return field.empty() ? key : absl::StrCat(field, ".", key);
}

}  // namespace

absl::StatusOr<YAML::Node> YamlFields::Parse(absl::string_view text) const {
  try {
    YAML::Node root = YAML::Load(std::string(text));
    if (!root.IsDefined() || root.IsNull()) {
      return absl::InvalidArgumentError(absl::StrCat(file_, ": the file is empty"));
    }
    return root;
  } catch (const YAML::Exception& e) {  // yaml-cpp throws; nothing of it leaves this function
    return absl::InvalidArgumentError(
        absl::StrCat(file_, ":", e.mark.line + 1, ":", e.mark.column + 1, ": ", e.msg));
  }
}

absl::Status YamlFields::Error(const YAML::Node& node, absl::string_view field,
                               absl::string_view what) const {
  const YAML::Mark mark = node.Mark();
  const std::string place =
      mark.is_null() ? "" : absl::StrCat(":", mark.line + 1, ":", mark.column + 1);
  return absl::InvalidArgumentError(
      absl::StrCat(file_, place, ": ", field, field.empty() ? "" : ": ", what));
}

absl::Status YamlFields::AnyMap(
    const YAML::Node& node, const std::string& field,
    const std::function<absl::Status(const std::string&, const YAML::Node&, const std::string&)>&
        handle) const {
  if (!node.IsMap()) return Error(node, field, "must be a mapping");
  std::set<std::string> seen;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) return Error(entry.first, field, "keys must be text");
    const std::string& key = entry.first.Scalar();
    if (!seen.insert(key).second) return Error(entry.first, Join(field, key), "given twice");
    FAIRLEAD_RETURN_IF_ERROR(handle(key, entry.second, Join(field, key)));
  }
  return absl::OkStatus();
}

absl::Status YamlFields::Map(const YAML::Node& node, const std::string& field,
                             const std::map<std::string, Handler>& handlers,
                             const std::vector<std::string>& required) const {
  std::set<std::string> seen;
  FAIRLEAD_RETURN_IF_ERROR(AnyMap(
      node, field,
      [&](const std::string& key, const YAML::Node& value, const std::string& at) -> absl::Status {
        auto handler = handlers.find(key);
        if (handler == handlers.end()) return Error(value, at, "unknown field");
        seen.insert(key);
        return handler->second(value, at);
      }));
  for (const std::string& key : required) {
    if (!seen.contains(key)) return Error(node, Join(field, key), "is missing");
  }
  return absl::OkStatus();
}

absl::Status YamlFields::List(const YAML::Node& node, const std::string& field,
                              const Handler& item) const {
  if (!node.IsSequence()) return Error(node, field, "must be a list");
  for (size_t i = 0; i < node.size(); ++i) {
    FAIRLEAD_RETURN_IF_ERROR(item(node[i], absl::StrCat(field, "[", i, "]")));
  }
  return absl::OkStatus();
}

YamlFields::Handler YamlFields::Text(std::string* out) const {
  return [this, out](const YAML::Node& node, const std::string& field) {
    if (!node.IsScalar() || node.Scalar().empty()) return Error(node, field, "must be text");
    *out = node.Scalar();
    return absl::OkStatus();
  };
}

YamlFields::Handler YamlFields::Integer(int64_t* out, int64_t minimum) const {
  return [this, out, minimum](const YAML::Node& node, const std::string& field) {
    if (!node.IsScalar() || !absl::SimpleAtoi(node.Scalar(), out) || *out < minimum) {
      return Error(node, field, absl::StrCat("must be a whole number of at least ", minimum));
    }
    return absl::OkStatus();
  };
}

YamlFields::Handler YamlFields::Duration(absl::Duration* out) const {
  return [this, out](const YAML::Node& node, const std::string& field) {
    if (!node.IsScalar() || !absl::ParseDuration(node.Scalar(), out) ||
        *out < absl::ZeroDuration() || *out == absl::InfiniteDuration()) {
      return Error(node, field, "must be a duration like 1h30m");
    }
    return absl::OkStatus();
  };
}

YamlFields::Handler YamlFields::Time(absl::Time* out) const {
  return [this, out](const YAML::Node& node, const std::string& field) {
    std::string problem;
    if (!node.IsScalar() || !absl::ParseTime(absl::RFC3339_full, node.Scalar(), out, &problem)) {
      return Error(node, field, "must be a time like 2026-03-02T00:00:00Z");
    }
    return absl::OkStatus();
  };
}

YamlFields::Handler YamlFields::TextList(std::vector<std::string>* out) const {
  return [this, out](const YAML::Node& node, const std::string& field) {
    return List(node, field, [&](const YAML::Node& item, const std::string& at) {
      out->emplace_back();
      return Text(&out->back())(item, at);
    });
  };
}

}  // namespace fairlead::sim
