// Reads owners of pods, of whatever kind, for core/pod_grouper.h and core/suspensions.h. Their
// status and managedFields are left out: no group depends on them, and they are most of some
// objects.
//
// Ownership: `api` and `kinds` outlive it; no answer comes after the end of `api`'s answers.
// Thread-safety: the owner's thread. Complexity: one request, and those of `kinds`. Errors:
// NotFound; PermissionDenied; else as hook::ObjectApi. Messages name the object; a second line says
// what helps, if that is known.
#pragma once

#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "autoscale-hook/providers/groups/object_api.h"
#include "cmd/fairlead/app/kind_paths.h"
#include "document/json.h"
#include "scheduler/model/action.h"

namespace fairlead::cmd {

class OwnerReader {
 public:
  using Done = std::function<void(absl::StatusOr<Json>)>;
  OwnerReader(hook::ObjectApi* api, KindPaths* kinds) : api_(api), kinds_(kinds) {}

  void Read(const model::ReadObject& object, Done done);

 private:
  void Get(const model::ReadObject& object, const ServedKind& kind, Done done);

  hook::ObjectApi* api_;
  KindPaths* kinds_;
};

}  // namespace fairlead::cmd
