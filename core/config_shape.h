// Fields that describe equal machines (model::MachineShape), of every section of
// FairleadConfiguration that has groups of them. Internal to core.
//
// Errors: InvalidArgument with the path of the field. Thread-safety: none; lives while one group is
// read.
#pragma once

#include <simdjson.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/config_fields.h"
#include "scheduler/model/machine_shape.h"
#include "scheduler/model/object_meta.h"

namespace fairlead::core {

class ShapeReader {
 public:
  // `shape` outlives it.
  explicit ShapeReader(model::MachineShape* shape) : shape_(shape) {}
  ShapeReader(const ShapeReader&) = delete;
  ShapeReader& operator=(const ShapeReader&) = delete;

  // instanceType, template, zone, priceUSDPerHour, nodeSelector. They are valid as long as the
  // reader.
  [[nodiscard]] std::map<std::string, Handler> Fields();
  // After all fields are read.
  [[nodiscard]] absl::Status Check(const std::string& path) const;

 private:
  model::MachineShape* shape_;
  bool has_template_ = false;
};

// minSize and maxSize of one group.
absl::Status CheckSizes(const std::string& path, int64_t min_size, int64_t max_size);

// Refuses a group that has the name or the nodes of one before it. Group: with Id() and
// node_selector.
template <typename Group>
absl::Status CheckOnce(const std::string& path, const Group& group,
                       const std::vector<Group>& before) {
  for (const Group& other : before) {
    if (other.Id() == group.Id()) {
      return Bad(absl::StrCat(path, ".name"), absl::StrCat(group.Id(), " is given twice"));
    }
    if (other.node_selector == group.node_selector) {
      return Bad(absl::StrCat(path, ".nodeSelector"),
                 absl::StrCat("is that of ", other.Id(), " too"));
    }
  }
  return absl::OkStatus();
}

}  // namespace fairlead::core
