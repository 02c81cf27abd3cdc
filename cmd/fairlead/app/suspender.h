// Suspends and releases workloads of whatever kind, and lists what is suspended, for
// core/suspensions.h.
//
// Ownership: `api` and `kinds` outlive it; no answer comes after the end of `api`'s answers.
// Thread-safety: the owner's thread. Complexity: a request, and those of `kinds`. Errors: as
// hook::ObjectApi; a rule that is missing is named in a second line.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autoscale-hook/providers/groups/object_api.h"
#include "cmd/fairlead/app/kind_paths.h"
#include "document/json.h"
#include "scheduler/model/action.h"

namespace fairlead::cmd {

class Suspender {
 public:
  using Done = std::function<void(const absl::Status&)>;
  using ListDone = std::function<void(const absl::StatusOr<Json>&)>;
  Suspender(hook::ObjectApi* api, KindPaths* kinds) : api_(api), kinds_(kinds) {}

  void Set(const model::SetSuspended& set, Done done);
  // Of each object what tells it from others, and its labels and annotations.
  void List(const model::ListSuspended& list, ListDone done);

 private:
  hook::ObjectApi* api_;
  KindPaths* kinds_;
};

}  // namespace fairlead::cmd
