// Strict reading of small YAML files with places in every error: "file:line:column: field: what is
// wrong", lines and columns from 1. Unknown and repeated fields are errors.
//
// yaml-cpp is expensive to compile: include this in .cc files only.
// Thread-safety: immutable after Parse.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fairlead::sim {

class YamlFields {
 public:
  explicit YamlFields(absl::string_view file_name) : file_(file_name) {}

  // One document; an empty one is an error.
  absl::StatusOr<YAML::Node> Parse(absl::string_view text) const;

  [[nodiscard]] absl::Status Error(const YAML::Node& node, absl::string_view field,
                                   absl::string_view what) const;

  using Handler = std::function<absl::Status(const YAML::Node& value, const std::string& field)>;
  // Every key must have a handler; `required` ones must occur.
  absl::Status Map(const YAML::Node& node, const std::string& field,
                   const std::map<std::string, Handler>& handlers,
                   const std::vector<std::string>& required = {}) const;
  // Any keys.
  absl::Status AnyMap(
      const YAML::Node& node, const std::string& field,
      const std::function<absl::Status(const std::string& key, const YAML::Node& value,
                                       const std::string& field)>& handle) const;
  absl::Status List(const YAML::Node& node, const std::string& field, const Handler& item) const;

  // Handlers that store one value.
  Handler Text(std::string* out) const;
  Handler Integer(int64_t* out, int64_t minimum) const;
  Handler Duration(absl::Duration* out) const;  // "1h30m", not negative
  Handler Time(absl::Time* out) const;          // RFC 3339
  Handler TextList(std::vector<std::string>* out) const;

 private:
  std::string file_;
};

}  // namespace fairlead::sim
