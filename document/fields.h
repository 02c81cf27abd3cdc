// Strict reading of small YAML files with places in every error: "file:line:column: field: what is
// wrong", lines and columns from 1. Unknown and repeated fields are errors.
// Thread-safety: immutable.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "document/json.h"

namespace fairlead {

class FieldReader {
 public:
  explicit FieldReader(absl::string_view file_name) : file_(file_name) {}

  // One document; an empty one is an error.
  absl::StatusOr<Json> Parse(absl::string_view text) const;

  [[nodiscard]] absl::Status Error(const Json& node, absl::string_view field,
                                   absl::string_view what) const {
    return ErrorAt(node.place(), field, what);
  }
  [[nodiscard]] absl::Status ErrorAt(TextPlace place, absl::string_view field,
                                     absl::string_view what) const;

  using Handler = std::function<absl::Status(const Json& value, const std::string& field)>;
  // Reads a mapping: every key must have a handler; `required` ones must occur. An unknown key is
  // an error at its place; keys occur once (yaml.h).
  absl::Status Map(const Json& node, const std::string& field,
                   const std::map<std::string, Handler>& handlers,
                   const std::vector<std::string>& required = {}) const;
  // Any keys.
  absl::Status AnyMap(const Json& node, const std::string& field,
                      const std::function<absl::Status(const std::string& key, const Json& value,
                                                       const std::string& field)>& handle) const;
  absl::Status List(const Json& node, const std::string& field, const Handler& item) const;

  // Handlers that store one value.
  Handler Text(std::string* out) const;
  Handler Integer(int64_t* out, int64_t minimum) const;
  Handler Duration(absl::Duration* out) const;  // "1h30m", not negative
  Handler Time(absl::Time* out) const;          // RFC 3339
  Handler TextList(std::vector<std::string>* out) const;

 private:
  std::string file_;
};

}  // namespace fairlead
