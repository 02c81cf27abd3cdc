// Field selectors of lists and watches. Thread-safety: a plain value. Complexity: O(terms).
#pragma once

#include <string>
#include <vector>

#include "sim/world/api_error.h"
#include "sim/world/json.h"
#include "sim/world/resource_types.h"

namespace fairlead::sim::world {

class FieldSelector {
 public:
  // BadRequest for what the type does not support. An empty text selects everything.
  static ApiError Parse(const ResourceRow& row, const std::string& text, FieldSelector& out);

  [[nodiscard]] bool empty() const { return terms_.empty(); }
  [[nodiscard]] bool Matches(const Json& object) const;

 private:
  struct Term {
    std::string section, field;  // "status", "phase"
    bool equal = true;
    std::string value;
  };
  std::vector<Term> terms_;
};

}  // namespace fairlead::sim::world
