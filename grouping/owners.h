// The owners of a pod, from the nearest to the topmost: at each object the one that is its
// controller, else the first.
//
// The objects come from a port that remembers what was read, so the walk is done again whenever one
// more is known. Tenants write owner references: an owner that another object has replaced, a
// circle, and a chain of more than kMostOwners are errors.
//
// Thread-safety: as the port. Complexity: O(owners).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "document/json.h"
#include "grouping/table.h"
#include "scheduler/model/pod.h"

namespace fairlead::grouping {

inline constexpr size_t kMostOwners = 16;

// Of an object in the namespace of the pod, or of one without a namespace.
struct ObjectName {
  std::string api_version, kind, ns, name;
  std::string uid;  // empty: whichever has the name
  // "batch/v1 Job ns/name"
  [[nodiscard]] std::string Text() const;
  friend bool operator==(const ObjectName&, const ObjectName&) = default;
};

// What is read of a pod for that: metadata, schedulerName and priorityClassName. InvalidArgument:
// an owner reference cannot be read.
absl::StatusOr<model::Pod> PodFrom(const Json& object, const ObjectName& name);

// What the world is known to have.
class Objects {
 public:
  virtual ~Objects() = default;
  // Null: it has not been read. NotFound: it is gone. Other errors, PermissionDenied among them,
  // say why it cannot be read. Valid as long as the objects do not change.
  [[nodiscard]] virtual absl::StatusOr<const Json*> Find(const ObjectName& name) const = 0;
  [[nodiscard]] virtual bool HasPriorityClass(absl::string_view name) const = 0;
};

struct Owner {
  ObjectName name;
  const Json* object = nullptr;  // null: of a kind that is not read
};

struct Chain {
  std::vector<Owner> owners;        // nearest first
  std::optional<ObjectName> needs;  // this one has to be read first
};

// InvalidArgument: the references cannot be followed; NotFound: an owner is gone or was replaced;
// else the error of the port. Names the object.
absl::StatusOr<Chain> OwnersOf(const model::Pod& pod, const KindTable& table,
                               const Objects& objects);

}  // namespace fairlead::grouping
