// Reads owners of pods, of whatever kind, for core/pod_grouper.h: first, once per apiVersion, how
// its kinds are called in paths, then the object. Its status and managedFields are left out: no
// group depends on them, and they are most of some objects.
//
// Ownership: `api` outlives it; no answer comes after the end of `api`'s answers. Thread-safety:
// the owner's thread. Complexity: one or two requests per object. Errors: NotFound;
// PermissionDenied; else as hook::ObjectApi. Messages name the object; a second line says what
// helps, if that is known.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "autoscale-hook/providers/groups/object_api.h"
#include "document/json.h"
#include "scheduler/model/action.h"

namespace fairlead::cmd {

class OwnerReader {
 public:
  using Done = std::function<void(absl::StatusOr<Json>)>;
  explicit OwnerReader(hook::ObjectApi* api) : api_(api) {}

  void Read(const model::ReadObject& object, Done done);

 private:
  struct Resource {
    std::string plural;
    bool is_namespaced = true;
  };
  using Resources = std::map<std::string, Resource>;  // by kind

  void Get(const model::ReadObject& object, const Resource& resource, Done done);
  [[nodiscard]] static Resources ResourcesOf(const Json& list);

  hook::ObjectApi* api_;
  std::map<std::string, Resources> known_;  // by apiVersion
};

}  // namespace fairlead::cmd
