// What nodes of an instance type really bring, by type and pool (whose image, kubelet settings and
// DaemonSets decide): amounts as far as they are less than the catalogue says, and devices.
//
//   size      The latest node that became usable counts. It is learned from
//             NodeRequest.status.allocatable, so a restart learns it again from existing objects. A
//             larger node is used as it is, but not planned with.
//   overhead  What DaemonSets and static pods request on such a node: the most that one of the
//             present nodes has; if none is left, what it was last. Of a type without a node: of
//             the other types of its pool, those with GPUs and those without apart, because
//             DaemonSets tell these apart. It is learned from nodes.
//
//   devices   What DRA drivers published for the latest node that became usable, in the place of
//             what the catalogue declares. A node may get more of them later; what it loses later
//             is its own loss. It is learned from nodes. GPUs beyond those that the catalogue
//             counts are left out, because no cap would hold them.
//
// Thread-safety: none. Complexity: O(log shapes) per query.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "scheduler/model/node.h"
#include "scheduler/model/node_devices.h"
#include "scheduler/model/resources.h"

namespace fairlead::hook {

class ObservedShapes {
 public:
  // True if the known size has changed.
  bool Learn(const std::string& type, const std::string& pool, const model::ResourceList& promised,
             const model::ResourceList& observed, absl::Time ready_at);
  // The overhead of the usable nodes that there are. True if what is known has changed. O(nodes).
  struct NodeOverhead {
    absl::string_view type, pool;  // of names that outlive the call
    bool has_gpus = false;
    const model::ResourceList* requests = nullptr;
  };
  bool LearnOverhead(const std::vector<NodeOverhead>& nodes);
  // What is published for a usable node; null: nothing. True if what is known has changed.
  bool LearnDevices(const std::string& type, const std::string& pool, const std::string& node,
                    absl::Time ready_at, const std::shared_ptr<const model::NodeDevices>& devices);
  // Reduces the node, by its labels, to the observed size, and by the overhead, and gives it the
  // observed devices. True if it is another one.
  bool Apply(model::Node& node) const;
  // Size and devices alone: what runs on it already counts as what it is.
  bool ApplySize(model::Node& node) const;
  [[nodiscard]] bool Knows(const model::Node& node) const {
    return Find(node) != nullptr || OverheadOf(node) != nullptr || DevicesOf(node) != nullptr;
  }
  // "nodes of type T have 29Gi of memory instead of 32Gi of memory"; empty if they are as
  // announced.
  [[nodiscard]] std::string Describe(const model::Node& node) const;

 private:
  struct Shape {
    absl::Time ready_at = absl::InfinitePast();
    model::ResourceList less;      // only amounts below the announced ones
    model::ResourceList promised;  // of these
  };
  struct Devices {
    std::pair<absl::Time, std::string> source = {absl::InfinitePast(), ""};  // ready at, node
    std::shared_ptr<const model::NodeDevices> published, counted;            // with GPUs; without
    int64_t gpus = 0;
  };
  using Kind = std::pair<std::string, std::string>;  // (type, pool)
  static Kind KindOf(const model::Node& node);
  [[nodiscard]] const Shape* Find(const model::Node& node) const;
  // Null: none are known.
  [[nodiscard]] const Devices* DevicesOf(const model::Node& node) const;
  // Of the node, as they may be planned with.
  static const std::shared_ptr<const model::NodeDevices>& Counted(const Devices& devices,
                                                                  const model::Node& node);
  // Null: none is known.
  [[nodiscard]] const model::ResourceList* OverheadOf(const model::Node& node) const;

  std::map<std::pair<std::string, std::string>, Shape> shapes_;
  std::map<Kind, Devices> devices_;
  std::map<std::pair<std::string, std::string>, model::ResourceList> overhead_;  // (type, pool)
  std::map<std::pair<std::string, bool>, model::ResourceList> pool_overhead_;    // (pool, has GPUs)
};

}  // namespace fairlead::hook
