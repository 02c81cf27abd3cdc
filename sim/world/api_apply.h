// Server-side apply (application/apply-patch+yaml, here JSON, by force): what a manager applied
// last is remembered, so that a field that it leaves out is taken away; fields of others stay.
//
// Ownership: owns what was applied, by object and manager. Thread-safety: none, one thread.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "sim/world/api_writes.h"

namespace fairlead::sim::world {

class Applier {
 public:
  explicit Applier(ApiWriter* writer) : writer_(writer) {}
  ApiResult Apply(const ResourceRow& row, const std::string& ns, const std::string& name,
                  const Json& wanted, const std::string& manager, absl::string_view actor);

 private:
  ApiWriter* writer_;
  std::map<std::pair<std::string, std::string>, Json> applied_;  // (uid, manager)
};

}  // namespace fairlead::sim::world
