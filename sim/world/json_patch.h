// The patches that the API server takes: JSON patch (RFC 6902, with the liberties of the library
// that it uses), merge patch (RFC 7386) and strategic merge patch.
//
// Thread-safety: pure functions. Errors: text for a Status; empty if it went well.
#pragma once

#include <string>

#include "sim/world/json.h"
#include "sim/world/resource_types.h"

namespace fairlead::sim::world {

// All or nothing is the caller's affair: `target` is a copy. What is missing passes a `test` for
// null; nothing else is taken to be there.
std::string ApplyJsonPatch(const Json& operations, Json& target);

void ApplyMergePatch(const Json& patch, Json& target);

// Lists that upstream merges by key are merged: conditions by type, containers and volumes by name,
// ownerReferences and reservedFor by uid, addresses by type; finalizers are a set. All other lists
// are replaced. "$patch" (delete, replace) is understood.
std::string ApplyStrategicMergePatch(const ResourceRow& row, const Json& patch, Json& target);

// "type" for "conditions" in a status; empty if lists of that name are replaced. "=": a set of
// strings.
std::string MergeKeyOf(const ResourceRow& row, const std::string& field);

}  // namespace fairlead::sim::world
