// The real size of nodes of an instance type, if it is less than the catalogue says: by type and
// pool (whose image and kubelet settings decide what is reserved). The latest node that became
// usable counts. It is learned from NodeRequest.status.allocatable, so a restart learns it again
// from existing objects. A larger node is used as it is, but not planned with.
//
// Thread-safety: none. Complexity: O(log shapes) per query.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "scheduler/model/node.h"
#include "scheduler/model/resources.h"

namespace fairlead::hook {

class ObservedShapes {
 public:
  // True if the known size has changed.
  bool Learn(const std::string& type, const std::string& pool, const model::ResourceList& promised,
             const model::ResourceList& observed, absl::Time ready_at);
  // Reduces the node, by its labels, to the observed size. True if that is less.
  bool Apply(model::Node& node) const;
  [[nodiscard]] bool Knows(const model::Node& node) const { return Find(node) != nullptr; }
  [[nodiscard]] bool empty() const { return shapes_.empty(); }
  // "nodes of type T have 29Gi of memory instead of 32Gi of memory"; empty if they are as
  // announced.
  [[nodiscard]] std::string Describe(const model::Node& node) const;

 private:
  struct Shape {
    absl::Time ready_at = absl::InfinitePast();
    model::ResourceList less;      // only amounts below the announced ones
    model::ResourceList promised;  // of these
  };
  [[nodiscard]] const Shape* Find(const model::Node& node) const;
  std::map<std::pair<std::string, std::string>, Shape> shapes_;
};

}  // namespace fairlead::hook
