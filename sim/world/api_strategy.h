// What the API server makes of an object before it is stored (upstream's "strategies", admission
// included): the fields that it owns, defaults, which half of an object a write may change, and
// what it refuses.
//
// Thread-safety: pure functions of the store. Complexity: O(size of the object).
#pragma once

#include <string>

#include "absl/time/time.h"
#include "sim/world/api_error.h"
#include "sim/world/api_store.h"
#include "sim/world/json.h"

namespace fairlead::sim::world {

// The kind of writer, and what it may write.
enum class WriteScope {
  kObject,       // a client, and all but the status
  kStatus,       // a client, and the status alone (and what metadata goes with it)
  kSubresource,  // the server itself for a binding or an eviction: anything, with no new generation
  kActor,        // an actor of the world: anything
};

// Completes a new object: server-owned fields, defaults, normal form.
ApiError PrepareForCreate(const ApiStore& store, const ResourceRow& row, WriteScope scope,
                          absl::Time now, const std::string& uid, Json& object);

// `object` is `old` with the writer's changes: takes back what the writer may not change, in
// silence where upstream does so. Generation grows if anything but metadata and status is
// different.
ApiError PrepareForUpdate(const ResourceRow& row, WriteScope scope, const Json& old, Json& object);

// Whether an object that is being deleted goes with this version.
bool IsFinished(const Json& object);

}  // namespace fairlead::sim::world
